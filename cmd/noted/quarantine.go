package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) deviceQuarantine() *cobra.Command {
	cmd := verb("quarantine DEVICE", "let nothing that a device wrote run here unasked", `
Stops what runs of its fences, voids the approvals that rest on its text, and
lists what of it ran here already. From then on each of its fences asks, whatever
policy says, also where its text was moved. It holds on this device only, and
until it is released. DEVICE is a name or the beginning of an id; it may be one
that was removed.`, func(ctx context.Context, args []string) error {
		b, d, err := a.device(ctx, args[0])
		if err != nil {
			return err
		}
		report, err := b.Quarantine(ctx, d.ID)
		if err != nil {
			return err
		}
		return a.answer(quarantineShape(d, report), func(t *text) { renderQuarantine(t, d, report) })
	})
	cmd.ValidArgsFunction = a.completeDevices
	return data("quarantine", cmd)
}

func renderQuarantine(t *text, d *notebook.DeviceInfo, r *notebook.QuarantineReport) {
	t.line("%s (%s) is in quarantine: each of its fences asks before it runs here", d.Name, d.ID.Short())
	t.line("%d runs were stopped, %d approvals are void", len(r.Stopped), len(r.Voided))
	if r.Count == 0 {
		t.line("nothing of it ever ran here")
	} else {
		t.line("of it ran here before (%d):", r.Count)
		rows := [][]string{{"RUN", "STARTED", "FENCE", "RUNG", "END", "CLIENT"}}
		for _, run := range r.Ran {
			rows = append(rows, []string{
				fmt.Sprint(run.Number), when(time.UnixMilli(run.Result.Started)), clip(run.Title, 30) + "#" + run.Fence.Short(),
				run.Result.Rung.String(), string(verdict(&text{}, run)), run.Client,
			})
		}
		t.table(rows...)
	}
	t.line("next: noted device release %s, once you trust it again", quoted(d.Name))
}

func (a *app) deviceRelease() *cobra.Command {
	cmd := verb("release DEVICE", "end the quarantine of a device", `
Takes the PIN. Policy decides on its fences again; the approvals that the
quarantine voided stay void. DEVICE is a name or the beginning of an id.`, func(ctx context.Context, args []string) error {
		b, d, err := a.device(ctx, args[0])
		if err != nil {
			return err
		}
		err = a.present(ctx, b, func(p notebook.Presence) error { return b.Release(ctx, d.ID, p) })
		if err != nil {
			return err
		}
		d.Quarantined = time.Time{}
		return a.answer(deviceShape(*d), func(t *text) { t.line("released %s (%s)", d.Name, d.ID.Short()) })
	})
	cmd.ValidArgsFunction = a.completeDevices
	return data("device", a.pinFlag(cmd))
}
