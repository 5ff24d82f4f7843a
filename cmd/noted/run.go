package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) runCommand() *cobra.Command {
	return noun("run", "runs and refusals in this device's ledger",
		a.runList(), a.runShow(), a.runCancel(), a.runVerify())
}

func (a *app) runList() *cobra.Command {
	var most int
	cmd := verb("list", "list the newest runs and refusals", "", func(ctx context.Context, _ []string) error {
		if most < 1 {
			return notebook.Errorf(notebook.CodeInvalid, "--most %d shows nothing", most).With("give a number from 1")
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		runs, err := b.Runs(ctx, most)
		if err != nil {
			return err
		}
		return a.answer(shape(runs, runShape), func(t *text) { runTable(t, runs) })
	})
	cmd.Flags().IntVarP(&most, "most", "n", 50, "how `many`")
	return data("list of run", cmd)
}

func runTable(t *text, runs []notebook.RunInfo) {
	if len(runs) == 0 {
		t.line("nothing has run here yet")
		return
	}
	rows := [][]string{{"RUN", "STARTED", "FENCE", "LANGUAGE", "STANDING", "RUNG", "END", "TOOK", "CLIENT"}}
	for _, r := range runs {
		started, rung, spent := "-", "-", "-"
		if r.Result.Started != 0 {
			started = when(time.UnixMilli(r.Result.Started))
		}
		if r.Result.Rung != notebook.NoRung {
			rung = r.Result.Rung.String()
		}
		if r.Result.Took != 0 {
			spent = took(r.Result)
		}
		rows = append(rows, []string{
			fmt.Sprint(r.Number), started, clip(r.Title, 30) + "#" + r.Fence.Short(), r.Language, r.Standing, rung,
			string(verdict(&text{}, r)), spent, r.Client,
		})
	}
	t.table(rows...)
}

// verdict is how a run ended, or that it was refused or still runs.
func verdict(t *text, r notebook.RunInfo) safe {
	switch {
	case r.State == "refused":
		return t.paint(red, "refused")
	case r.State == "running":
		return t.paint(yellow, "running")
	case r.Result.Verdict == notebook.OK:
		return t.paint(green, "ok")
	}
	return t.paint(red, r.Result.Verdict.String())
}

func (a *app) runShow() *cobra.Command {
	cmd := verb("show RUN", "show one run with its output", "RUN is its number in the ledger.", func(ctx context.Context, args []string) error {
		n, err := runNumber(args[0])
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		run, err := b.RunInfo(ctx, n)
		if err != nil {
			return err
		}
		return a.answer(runShape(*run), func(t *text) { renderRun(t, run) })
	})
	cmd.ValidArgsFunction = a.completeRuns
	return data("run", cmd)
}

func runNumber(s string) (uint64, error) {
	n, err := parseNumber("a run", s)
	if err != nil {
		return 0, failure(err).With("noted run list")
	}
	return n, nil
}

func renderRun(t *text, r *notebook.RunInfo) {
	res := r.Result
	t.line("run %d of %s#%s: %s", r.Number, r.Title, r.Fence.Short(), verdict(t, *r))
	rows := [][]string{{"standing", r.Standing}, {"asked by", r.Client}}
	if r.Reason != "" {
		rows = append(rows, []string{"refused", r.Reason})
	}
	if res.Verdict != notebook.NoVerdict {
		rows = append(rows, []string{"rung", res.Rung.String()}, []string{"took", took(res)})
		if res.Started != 0 {
			rows = append(rows, []string{"started", when(time.UnixMilli(res.Started))})
		}
		if res.Peak > 0 {
			rows = append(rows, []string{"peak memory", size(res.Peak)})
		}
		rows = append(rows, []string{"bytes", res.Closure.String()})
		if len(res.Layers) > 0 {
			rows = append(rows, []string{"held by", strings.Join(res.Layers, ", ")})
		}
	}
	if res.Error != "" {
		rows = append(rows, []string{"error", res.Error})
	}
	t.table(rows...)
	if out := output(res); out != "" {
		t.block(bar, notebook.FenceOutput(out))
	}
}

func (a *app) runCancel() *cobra.Command {
	cmd := verb("cancel RUN", "stop a run that is going on", "RUN is its number in the ledger.", func(ctx context.Context, args []string) error {
		n, err := runNumber(args[0])
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		if err := b.Cancel(ctx, n); err != nil {
			return err
		}
		return a.answer(n, func(t *text) { t.line("run %d is cancelled", n) })
	})
	cmd.ValidArgsFunction = a.completeRuns
	return data("the number of the run", cmd)
}

func (a *app) runVerify() *cobra.Command {
	var seal bool
	cmd := verb("verify", "check the chain of the ledger", `
Each record of the ledger holds the hash of the one before. One that was changed,
taken out or moved shows, and nothing behind it can be believed. With --seal a
record is added that names what is wrong and everything that is there as it is,
and a new chain begins with it. Nothing is mended, and the seal stays in sight.`, func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		var report *notebook.LedgerReport
		if seal {
			err = a.present(ctx, b, func(p notebook.Presence) error {
				report, err = b.SealLedger(ctx, p)
				return err
			})
		} else {
			report, err = b.VerifyLedger(ctx)
		}
		if err != nil {
			return err
		}
		if report.Problem != "" {
			return &outcome{data: ledgerShape(report), err: notebook.Errorf(notebook.CodeFailed, "the ledger does not hold: %s", report.Problem).
				With("believe nothing of it after record %d; noted run verify --seal begins a new chain", report.Records)}
		}
		return a.answer(ledgerShape(report), func(t *text) {
			t.line("%s: %d records, head %s", t.paint(green, "the ledger holds"), report.Records, report.Head)
			for _, s := range report.Seals {
				t.line("%s at record %d, which proves nothing before it: %s", t.paint(yellow, "sealed"), s.Number, s.Reason)
			}
		})
	})
	cmd.Flags().BoolVar(&seal, "seal", false, "begin a new chain after a broken one")
	return data("ledger", a.pinFlag(cmd))
}
