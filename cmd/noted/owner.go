package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

func (a *app) ownerCommand() *cobra.Command {
	return noun("owner", "the person whose device this is", a.ownerReset())
}

func (a *app) ownerReset() *cobra.Command {
	var noPIN, yes bool
	cmd := verb("reset", "replace a lost PIN and owner's token, while the daemon is stopped", `
Sets a new PIN and makes a new owner's token. Nobody has to know the old ones, so
what they had allowed is taken back: every approval is void, and every agent
needs a new token. Pages, devices and the accepted policy stay. The ledger and,
for three months, noted status tell of it.`, func(ctx context.Context, _ []string) error {
		if noPIN && a.pinFD >= 0 {
			return notebook.Errorf(notebook.CodeInvalid, "--no-pin and --pin-fd contradict each other").With("give one of them")
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		if !home.Exists() {
			return noHome(home)
		}
		if _, err := daemon.HasPIN(home); err != nil {
			return err // a daemon serves it
		}
		if !yes {
			if err := a.sure(ctx, "Void every approval and agent's token, and set a new PIN?"); err != nil {
				return err
			}
		}
		pin := ""
		if !noPIN {
			if pin, err = a.newPIN(ctx); err != nil {
				return err
			}
		}
		report, err := daemon.ResetOwner(home, pin)
		if err != nil {
			return err
		}
		return a.answer(resetJSON{Approvals: report.Approvals, Agents: report.Agents}, func(t *text) {
			t.line("the owner is reset; %s", plural(report.Approvals, "approval is void", "approvals are void"))
			if len(report.Agents) > 0 {
				t.line("these agents need a new token, from noted agent add: %s", strings.Join(report.Agents, ", "))
			}
			if noPIN {
				t.line("%s without a PIN, whoever has your terminal can approve anything", t.paint(yellow, "note:"))
			}
		})
	})
	cmd.Flags().BoolVar(&noPIN, "no-pin", false, "no PIN: a sentence typed on a terminal is proof enough")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask whether you are sure")
	return data("reset", a.pinFlag(cmd))
}

type resetJSON struct {
	Approvals int      `json:"approvals"`
	Agents    []string `json:"agents,omitempty"`
}
