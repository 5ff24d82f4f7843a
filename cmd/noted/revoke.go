package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"noted/notebook"
	"noted/rpc"
)

func (a *app) fenceApprovals() *cobra.Command {
	var all bool
	cmd := verb("approvals", "list what you approved on this device", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		approvals, err := b.Approvals(ctx)
		if err != nil {
			return err
		}
		shown := []notebook.Approval{}
		for _, p := range approvals {
			if all || p.Void == "" && !p.Spent {
				shown = append(shown, p)
			}
		}
		return a.answer(shape(shown, approvalShape), func(t *text) { approvalTable(t, shown) })
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that are spent or void")
	return data("list of approval", cmd)
}

func approvalTable(t *text, approvals []notebook.Approval) {
	if len(approvals) == 0 {
		t.line("nothing is approved")
		return
	}
	rows := [][]string{{"APPROVAL", "GIVEN", "FENCE", "FOR", "WHAT"}}
	for _, p := range approvals {
		rows = append(rows, []string{
			fmt.Sprint(p.ID), when(p.Given), fmt.Sprintf("%s#%s", clip(p.Title, 30), p.Fence.Short()), p.For, approvalWords(p),
		})
	}
	t.table(rows...)
	t.line("next: noted fence revoke APPROVAL takes one back")
}

func (a *app) fenceRevoke() *cobra.Command {
	cmd := verb("revoke APPROVAL", "take an approval back", `
APPROVAL is its number, as fence show says it, or a fence (PAGE#N) whose
approvals are all taken back.`, func(ctx context.Context, args []string) error {
		var b rpc.Backend
		var numbers []uint64
		if strings.Contains(args[0], "#") {
			backend, _, f, err := a.fence(ctx, args[0])
			if err != nil {
				return err
			}
			b = backend
			for _, p := range f.Approved {
				if p.Void == "" && !p.Spent {
					numbers = append(numbers, p.ID)
				}
			}
			if len(numbers) == 0 {
				return notebook.Errorf(notebook.CodeNotFound, "%s has no approval that holds", args[0]).
					With("noted fence show %s", quoted(args[0]))
			}
		} else {
			n, err := parseNumber("an approval", args[0])
			if err != nil {
				return failure(err).With("noted fence approvals lists them")
			}
			if b, err = a.backend(); err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		for _, n := range numbers {
			if err := b.Revoke(ctx, n); err != nil {
				return err
			}
		}
		return a.answer(numbers, func(t *text) {
			for _, n := range numbers {
				t.line("approval %d is taken back", n)
			}
		})
	})
	cmd.ValidArgsFunction = a.completeFences
	return data("list of the numbers of approvals", cmd)
}
