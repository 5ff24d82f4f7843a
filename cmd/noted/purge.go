package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) pagePurge() *cobra.Command {
	var yes bool
	cmd := verb("purge PAGE", "let go of the text of a deleted or full page for good, on all devices", `
The text of the page and the results of its fences are dropped, here and, as soon
as they hear of it, on every other device of the notebook; nothing brings them
back. Who wrote when, and the page's title, stay in the log, so that it still
verifies. A page of that title that is made later is another one. Takes the PIN.

PAGE is a title, also of a deleted page, =IDPREFIX or today.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		if !yes {
			if err := a.sure(ctx, fmt.Sprintf("Purge %s for good, on all devices?", args[0])); err != nil {
				return err
			}
		}
		var page *notebook.PageInfo
		err = a.present(ctx, b, func(p notebook.Presence) error {
			page, err = b.Purge(ctx, args[0], p)
			return err
		})
		if err != nil {
			return err
		}
		return a.answer(pageShape(*page), func(t *text) { t.line("purged =%s %s", page.ID.String()[:8], page.Title) })
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask whether you are sure; the PIN is asked all the same")
	cmd.ValidArgsFunction = a.completePages()
	return data("page", a.pinFlag(cmd))
}
