package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"noted/notebook"
	"noted/rpc"
)

func (a *app) askCommand() *cobra.Command {
	return noun("ask", "what agents and other clients ask you to approve", a.askList(), a.askAnswer())
}

func (a *app) askList() *cobra.Command {
	var all bool
	cmd := verb("list", "list open asks", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		asks, err := b.Asks(ctx)
		if err != nil {
			return err
		}
		shown := []notebook.Ask{}
		for _, k := range asks {
			if all || k.State == askOpen {
				shown = append(shown, k)
			}
		}
		return a.answer(shape(shown, askShape), func(t *text) { askTable(t, shown) })
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that are answered or void")
	return data("list of ask", cmd)
}

const askOpen = "open"

func askTable(t *text, asks []notebook.Ask) {
	if len(asks) == 0 {
		t.line("nobody asks for anything")
		return
	}
	rows := [][]string{{"ASK", "ASKED", "CLIENT", "FENCE", "WANTS", "STATE", "REASON"}}
	for _, k := range asks {
		rows = append(rows, []string{
			fmt.Sprint(k.ID), when(k.Asked), k.Client, fmt.Sprintf("%s#%d", clip(k.Title, 30), k.Fence.Number),
			k.Proposal.Rung.String(), k.State, clip(k.Reason, 60),
		})
	}
	t.table(rows...)
	t.line("next: noted ask answer ASK --yes or --no")
}

func (a *app) askAnswer() *cobra.Command {
	var yes, no bool
	var given string
	cmd := verb("answer ASK", "answer an ask with yes or no", `
A yes approves the exact bytes that are shown, and takes the PIN; without a
terminal the digest of the proposal, from ask list --json, says what was seen. A
no holds until the bytes change.`, func(ctx context.Context, args []string) error {
		n, err := parseNumber("an ask", args[0])
		if err != nil {
			return failure(err).With("noted ask list")
		}
		if yes == no {
			return notebook.Errorf(notebook.CodeInvalid, "an answer is either yes or no").With("--yes or --no")
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		ask, err := findAsk(ctx, b, n)
		if err != nil {
			return err
		}
		var answered *notebook.Ask
		if no {
			answered, err = b.Answer(ctx, n, false, ask.Proposal.Digest, notebook.Presence{})
		} else {
			answered, err = a.answerYes(ctx, b, ask, given)
		}
		if err != nil {
			return err
		}
		return a.answer(askShape(*answered), func(t *text) { t.line("ask %d is %s", answered.ID, answered.State) })
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "approve what is asked for")
	cmd.Flags().BoolVar(&no, "no", false, "deny it")
	cmd.Flags().StringVar(&given, "digest", "", "`digest` of the proposal that was seen")
	cmd.ValidArgsFunction = a.completeAsks
	return data("ask", a.pinFlag(cmd))
}

func findAsk(ctx context.Context, b rpc.Backend, n uint64) (*notebook.Ask, error) {
	asks, err := b.Asks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range asks {
		if asks[i].ID == n {
			return &asks[i], nil
		}
	}
	return nil, notebook.Errorf(notebook.CodeNotFound, "there is no ask %d", n).With("noted ask list")
}

func (a *app) answerYes(ctx context.Context, b rpc.Backend, ask *notebook.Ask, given string) (*notebook.Ask, error) {
	if !a.json && given == "" {
		a.say("%s asks, and says: %s", ask.Client, ask.Reason)
	}
	digest, err := a.agreed(ctx, ask.Title, &ask.Proposal, given)
	if err != nil {
		return nil, err
	}
	var answered *notebook.Ask
	err = a.present(ctx, b, func(p notebook.Presence) (err error) {
		answered, err = b.Answer(ctx, ask.ID, true, digest, p)
		return err
	})
	return answered, err
}
