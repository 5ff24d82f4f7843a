package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

func (a *app) doctorCommand() *cobra.Command {
	var clock bool
	cmd := verb("doctor", "check everything that is kept, while the daemon is stopped", `
Reads the whole file: its structure, every signature and chain, every page as it
follows from the log, results, approvals and the ledger. Nothing is changed.

With --clock, and a person, the latest time that was ever seen here is forgotten.
Approvals expire against that time and not against a clock that anybody may set
back; where the clock itself had once been far ahead, they would all count as
expired. Those that do are void for good.`, func(ctx context.Context, _ []string) error {
		home, err := a.paths()
		if err != nil {
			return err
		}
		if !home.Exists() {
			return notebook.Errorf(notebook.CodeNotFound, "there is no notebook in %s", home.Data).With("noted init founds one")
		}
		if clock {
			return a.resetClock(ctx, home)
		}
		if answers(home) {
			return notebook.Errorf(notebook.CodeUnavailable, "the daemon serves this home, and the file is its own").With("noted daemon stop, then noted doctor")
		}
		var found doctorJSON
		for err := range daemon.Check(home) {
			found.Problems = append(found.Problems, err.Error())
		}
		if n := len(found.Problems); n > 0 {
			t := a.text()
			if !a.json {
				for _, p := range found.Problems {
					t.line("%s %s", t.paint(red, "wrong:"), p)
				}
				if err := t.flush(); err != nil {
					return err
				}
			}
			return &outcome{data: found, err: notebook.Errorf(notebook.CodeFailed, "%s", plural(n, "thing is wrong", "things are wrong")).
				With("what the other devices have is intact: copy the file %s away before you change anything", home.Database())}
		}
		return a.answer(found, func(t *text) { t.line("%s: %s", t.paint(green, "all is well"), home.Database()) })
	})
	cmd.Flags().BoolVar(&clock, "clock", false, "forget a time that a wrong clock had left behind")
	return data("doctor", a.pinFlag(cmd))
}

type doctorJSON struct {
	Problems []string `json:"problems,omitempty"`
	Back     string   `json:"back,omitempty"`   // how far the clock went back
	Voided   int      `json:"voided,omitempty"` // approvals
}

func (a *app) resetClock(ctx context.Context, home daemon.Home) error {
	var done doctorJSON
	err := a.presentAt(ctx, home, func(p notebook.Presence) error {
		back, voided, err := daemon.ResetClock(home, p)
		done.Back, done.Voided = back.Round(time.Second).String(), voided
		return err
	})
	if err != nil {
		return err
	}
	return a.answer(done, func(t *text) {
		t.line("the clock went back by %s; %s", done.Back, plural(done.Voided, "approval is void", "approvals are void"))
	})
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
