package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) runCommand() *cobra.Command {
	return noun("run", "runs and refusals in this device's ledger",
		a.runList(), a.runShow(), a.runCancel(), a.runReplay(), a.runVerify())
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
			runName(r), started, clip(r.Title, 30) + "#" + r.Fence.Short(), r.Language, r.Standing, rung,
			string(verdict(&text{}, r)), spent, r.Client,
		})
	}
	t.table(rows...)
}

// runName is a run's number, with that of the run which it did again.
func runName(r notebook.RunInfo) string {
	if r.Replays == 0 {
		return fmt.Sprint(r.Number)
	}
	return fmt.Sprintf("%d (again %d)", r.Number, r.Replays)
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
	if r.Replays != 0 {
		rows = append(rows, []string{"replays", fmt.Sprintf("run %d", r.Replays)})
	}
	if r.Reason != "" {
		rows = append(rows, []string{"because", r.Reason})
	}
	if r.Rule != "" {
		rows = append(rows, []string{"decided by", r.Rule})
	}
	if res.Verdict != notebook.NoVerdict {
		rows = append(rows, []string{"rung", strings.Join(append([]string{res.Rung.String()}, capabilities(r.Capabilities)...), " ")}, []string{"took", took(res)})
		if res.Started != 0 {
			rows = append(rows, []string{"started", when(time.UnixMilli(res.Started))})
		}
		if res.Peak > 0 {
			rows = append(rows, []string{"peak memory", size(res.Peak)})
		}
		l := res.Limits
		rows = append(rows,
			[]string{"limits", fmt.Sprintf("%v, %s of memory, %s of output, %s of source", l.Time, size(l.Memory), size(int64(l.Output)), size(int64(l.Source)))},
			[]string{"bytes", res.Closure.String()})
		if !res.Inputs.IsZero() {
			rows = append(rows, []string{"inputs", res.Inputs.String()})
		}
		if !r.Engine.IsZero() {
			rows = append(rows, []string{"engine", r.Engine.String()})
		}
		if res.Dropped > 0 {
			rows = append(rows, []string{"left out", fmt.Sprintf("%d bytes of output", res.Dropped)})
		}
		if slices.ContainsFunc(r.Capabilities, func(c notebook.Capability) bool { return c.Kind() == notebook.CapNet }) {
			rows = append(rows, []string{"network", fmt.Sprintf("%d bytes sent, %d received", res.Sent, res.Received)})
		}
		if len(res.Layers) > 0 {
			rows = append(rows, []string{"held by", strings.Join(res.Layers, ", ")})
		}
	}
	if res.Error != "" {
		name := "error"
		for line := range strings.SplitSeq(res.Error, "\n") {
			rows = append(rows, []string{name, line})
			name = ""
		}
	}
	t.table(rows...)
	if out := output(res); out != "" {
		t.block(bar, notebook.FenceOutput(out))
	}
}

func (a *app) runCancel() *cobra.Command {
	cmd := verb("cancel RUN", "stop a run that is going on", `
RUN is its number in the ledger. Answers when the run is dead, with how it ended:
it may have come to its own end first. A run that waits for its turn is stopped too.`, func(ctx context.Context, args []string) error {
		n, err := runNumber(args[0])
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		run, err := b.Cancel(ctx, n)
		if err != nil {
			return err
		}
		return a.answer(runShape(*run), func(t *text) {
			if run.Result.Verdict == notebook.Cancelled {
				t.line("run %d is cancelled", n)
				return
			}
			t.line("run %d had come to its end first: %s", n, verdict(t, *run))
		})
	})
	cmd.ValidArgsFunction = a.completeRuns
	return data("run", cmd)
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
