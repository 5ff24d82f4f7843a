package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) pageRebuild() *cobra.Command {
	cmd := verb("rebuild PAGE", "make a damaged or quarantined page anew from its history, on this device", `
All of the log is verified once more, and what it says of the page passes every
check into a new copy. The text and its authors come out as they were written; a
fence that does not read as you typed it here counts as foreign afterwards, and
none counts as yours that did not before.

PAGE is a title, =IDPREFIX or today.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		page, err := b.Rebuild(ctx, args[0])
		if err != nil {
			return err
		}
		return a.answer(pageShape(*page), func(t *text) {
			t.line("rebuilt =%s %s: %s, %s", page.ID.String()[:8], page.Title, size(int64(page.Size)), plural(page.Fences, "fence", "fences"))
			for _, note := range page.Notes {
				t.line("%s %s", t.paint(yellow, "note:"), note)
			}
		})
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("page", cmd)
}
