package main

import (
	"context"
	"fmt"
	"slices"

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
	var given []string
	cmd := verb("answer ASK…", "answer asks with yes or no", `
A yes approves the exact bytes that are shown, and takes the PIN; without a
terminal the digest of each proposal, from ask list --json, says what was seen.
Several asks are answered in one act, with one PIN: all of them or none. A no
holds until the bytes change.`, func(ctx context.Context, args []string) error {
		if yes == no {
			return notebook.Errorf(notebook.CodeInvalid, "an answer is either yes or no").With("--yes or --no")
		}
		if len(given) > 0 && len(given) != len(args) {
			return notebook.Errorf(notebook.CodeInvalid, "%d digests for %d asks", len(given), len(args)).With("give --digest once for each ask, in their order")
		}
		numbers, err := askNumbers(args)
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		asks, err := findAsks(ctx, b, numbers)
		if err != nil {
			return err
		}
		var answered []notebook.Ask
		if no {
			answered, err = b.Answer(ctx, denials(asks), false, notebook.Presence{})
		} else {
			answered, err = a.answerYes(ctx, b, asks, given)
		}
		if err != nil {
			return err
		}
		return a.answer(shape(answered, askShape), func(t *text) {
			for _, k := range answered {
				t.line("ask %d is %s", k.ID, k.State)
			}
		})
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "approve what is asked for")
	cmd.Flags().BoolVar(&no, "no", false, "deny it")
	cmd.Flags().StringArrayVar(&given, "digest", nil, "`digest` of the proposal that was seen; once for each ask, in their order")
	cmd.ValidArgsFunction = a.completeAsks
	return data("list of ask", a.pinFlag(cmd))
}

func askNumbers(args []string) (numbers []uint64, err error) {
	for _, arg := range args {
		n, err := parseNumber("an ask", arg)
		if err != nil {
			return nil, failure(err).With("noted ask list")
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// findAsks finds the asks of the given numbers.
func findAsks(ctx context.Context, b rpc.Backend, numbers []uint64) (found []*notebook.Ask, err error) {
	asks, err := b.Asks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		i := slices.IndexFunc(asks, func(k notebook.Ask) bool { return k.ID == n })
		if i < 0 {
			return nil, notebook.Errorf(notebook.CodeNotFound, "there is no ask %d", n).With("noted ask list")
		}
		found = append(found, &asks[i])
	}
	return found, nil
}

func denials(asks []*notebook.Ask) (all []notebook.Answer) {
	for _, k := range asks {
		all = append(all, notebook.Answer{Ask: k.ID})
	}
	return all
}

// answerYes shows what each ask is for, or takes the digests that were seen
// elsewhere, and says yes to all of them.
func (a *app) answerYes(ctx context.Context, b rpc.Backend, asks []*notebook.Ask, given []string) ([]notebook.Ask, error) {
	answers := denials(asks)
	for i, digest := range given {
		var err error
		if answers[i].Digest, err = notebook.ParseHash(digest); err != nil {
			return nil, notebook.Errorf(notebook.CodeInvalid, "--digest: %v", err).With("take it from ask list --json")
		}
	}
	if len(given) == 0 {
		for _, k := range asks {
			if k.State == askOpen && k.Proposal.Digest.IsZero() {
				return nil, notebook.Errorf(notebook.CodeRefused, "ask %d has nothing to agree to: %s", k.ID, k.Fence.Reason).With("noted ask answer %d --no", k.ID)
			}
		}
		question := "Allow exactly this?"
		if len(asks) > 1 {
			question = fmt.Sprintf("Allow exactly these %d?", len(asks))
		}
		err := a.agree(ctx, question, func(t *text) {
			for i, k := range asks {
				if len(asks) > 1 {
					t.line("%d of %d", i+1, len(asks))
				}
				t.line("ask %d: %s asks, and says: %s", k.ID, k.Client, k.Reason)
				renderProposal(t, k.Title, &k.Proposal)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, k := range asks {
			answers[i].Digest = k.Proposal.Digest
		}
	}
	var answered []notebook.Ask
	err := a.present(ctx, b, func(p notebook.Presence) (err error) {
		answered, err = b.Answer(ctx, answers, true, p)
		return err
	})
	return answered, err
}
