package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) watchCommand() *cobra.Command {
	kinds := []string{"page", "run", "output", "ask", "device", "sync", "note"}
	var only []string
	cmd := verb("watch", "write a line for everything that happens, until stopped", "", func(ctx context.Context, _ []string) error {
		for _, k := range only {
			if !slices.Contains(kinds, k) {
				return notebook.Errorf(notebook.CodeInvalid, "there are no events of kind %q", k).With("--kind with one of %s", strings.Join(kinds, ", "))
			}
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		l := &live{a: a}
		err = b.Watch(ctx, func(e notebook.Event) error {
			if len(only) > 0 && !slices.Contains(only, e.Kind) {
				return nil
			}
			if e.Kind == "output" && e.Run != nil && !a.json {
				return l.write(outputPrefix(e), notebook.RunOutput{Number: e.Run.Number, Text: e.Output, Dropped: e.Dropped})
			}
			return a.answer(eventShape(e), func(t *text) {
				l.end(t)
				eventLine(t, e)
			})
		})
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return nil // the person stopped it
		}
		return err
	})
	cmd.Flags().StringSliceVar(&only, "kind", nil, "only events of this `kind`: "+strings.Join(kinds, ", "))
	return data("event, one a line", cmd)
}

func eventLine(t *text, e notebook.Event) {
	line, about := e.Text, e.Title
	if about == "" && !e.Page.IsZero() {
		about = "=" + e.Page.String()[:8]
	}
	switch {
	case line == "":
		line = about
	case about != "" && !strings.Contains(line, about):
		line = about + ": " + line
	}
	t.line("%s %-6s %s", e.Time.Local().Format("15:04:05"), e.Kind, line)
}

// outputPrefix is put before each line of a run's output.
func outputPrefix(e notebook.Event) string {
	return fmt.Sprintf("%s output run %d of %s#%s %s", e.Time.Local().Format("15:04:05"), e.Run.Number,
		notebook.EscapeLine(clip(e.Title, 30)), e.Fence.Short(), bar)
}
