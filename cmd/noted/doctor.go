package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

func (a *app) doctorCommand() *cobra.Command {
	var clock, mend bool
	cmd := verb("doctor", "check everything that is kept, while the daemon is stopped", `
Reads the whole file: its structure, every signature and chain, every page as it
follows from the log, results, approvals and the ledger. Nothing is changed,
unless --mend is given: then pages that are not what the log makes of them are
made anew from it.

With --clock, and a person, the latest time that was ever seen here is forgotten.
Approvals expire against that time and not against a clock that anybody may set
back; where the clock itself had once been far ahead, they would all count as
expired. Those that do are void for good.`, func(ctx context.Context, _ []string) error {
		if clock && mend {
			return notebook.Errorf(notebook.CodeInvalid, "--clock and --mend are two things").With("do one after the other")
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		if !home.Exists() {
			return noHome(home)
		}
		if clock {
			return a.resetClock(ctx, home)
		}
		if answers(home) {
			return notebook.Errorf(notebook.CodeUnavailable, "the daemon serves this home, and the file is its own").With("noted daemon stop, then noted doctor")
		}
		var found doctorJSON
		damaged := found.check(home)
		if mend && len(damaged) > 0 {
			notes, err := daemon.Mend(daemon.Config{Home: home}, damaged)
			if err != nil {
				return err
			}
			found = doctorJSON{Mended: len(damaged), Notes: notes}
			damaged = found.check(home)
		}
		return a.diagnosis(&found, len(damaged) > 0 && !mend, home)
	})
	cmd.Flags().BoolVar(&clock, "clock", false, "forget a time that a wrong clock had left behind")
	cmd.Flags().BoolVar(&mend, "mend", false, "make damaged pages anew from the log")
	return data("doctor", a.pinFlag(cmd))
}

// check notes what is wrong with a home, and returns the pages that can be mended.
func (d *doctorJSON) check(home daemon.Home) (damaged []notebook.PageID) {
	for err := range daemon.Check(home) {
		d.Problems = append(d.Problems, err.Error())
		if page, ok := errors.AsType[*daemon.Damage](err); ok && !slices.Contains(damaged, page.Page) {
			damaged = append(damaged, page.Page)
		}
	}
	return damaged
}

func (a *app) diagnosis(found *doctorJSON, mendable bool, home daemon.Home) error {
	show := func(t *text) {
		if found.Mended > 0 {
			t.line("%s made anew from the log", plural(found.Mended, "page was", "pages were"))
		}
		for _, n := range found.Notes {
			t.line("%s", n)
		}
		for _, p := range found.Problems {
			t.line("%s %s", t.paint(red, "wrong:"), p)
		}
		if len(found.Problems) == 0 {
			t.line("%s: %s", t.paint(green, "all is well"), home.Database())
		}
	}
	if len(found.Problems) == 0 {
		return a.answer(*found, show)
	}
	wrong := notebook.Errorf(notebook.CodeFailed, "%s", plural(len(found.Problems), "thing is wrong", "things are wrong")).
		With("what the other devices have is intact: copy the file %s away before you change anything", home.Database())
	if mendable {
		wrong = wrong.With("noted doctor --mend makes the damaged pages anew from the log")
	}
	if !a.json {
		t := a.text()
		show(t)
		if err := t.flush(); err != nil {
			return err
		}
	}
	return &outcome{data: *found, err: wrong}
}

type doctorJSON struct {
	Problems []string `json:"problems,omitempty"`
	Mended   int      `json:"mended,omitempty"` // pages that were made anew
	Notes    []string `json:"notes,omitempty"`  // what was different in them
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
