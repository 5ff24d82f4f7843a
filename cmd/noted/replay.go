package main

import (
	"context"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) runReplay() *cobra.Command {
	cmd := verb("replay RUN", "do a run again with what it was given, and compare", `
RUN is its number in the ledger. Its fence has to read as it did then, and may run
today with at least what the run had: a replay is a run like any other, is recorded
as one, and gets the clock, the seed, the page and the arguments of then. What
differs is named: the engine, the limits, the verdict, the error, the output. The
exit code is 0 only if nothing does. The fence's result stays what it was.`, func(ctx context.Context, args []string) error {
		n, err := runNumber(args[0])
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		replay, err := b.Replay(ctx, n)
		if err != nil {
			return err
		}
		if len(replay.Differs) == 0 {
			return a.answer(replayShape(replay), func(t *text) {
				t.line("run %d is run %d again: %s", replay.Run.Number, n, t.paint(green, "the same"))
			})
		}
		if !a.json {
			t := a.text()
			for _, d := range replay.Differs {
				t.line("%s", d)
			}
			if err := t.flush(); err != nil {
				return err
			}
		}
		return &outcome{data: replayShape(replay), err: notebook.Errorf(notebook.CodeFailed, "run %d is not run %d again", replay.Run.Number, n).
			With("noted run show %d", replay.Run.Number)}
	})
	cmd.ValidArgsFunction = a.completeRuns
	return data("replay", cmd)
}
