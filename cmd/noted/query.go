package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) queryCommand() *cobra.Command {
	return data("rows", verb("query QUERY…", "find blocks or pages by words, tags, tasks and dates", `
Finds the blocks (list items, paragraphs, headings, fences) that meet every term of
the query, by the title of their page. Several arguments are one query. Before a
query that begins with a minus stands --.

  word "some words"   in the block or in the title of its page, whatever the case
  #tag tag:NAME       of the block or of its page, or a tag below it
  task:todo           or done, or any
  date:2026-11-30     a day that the block names, or else that its journal page is
  after: before:      a day after this one, before this one
  page:"part"         in the title of the page
  -term               not so
  show:pages          pages instead of blocks
  sort:date           instead of by title
  limit:20            at most so many, and never more than 1000

A fence asks the same with the language query, or is handed what was found with
wants="query" query="…" in its info string. Pages that are damaged on this device
are passed over, and the answer says so. docs/query.md tells all of it.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		rows, err := b.Query(ctx, strings.Join(args, " "))
		if err != nil {
			return err
		}
		return a.answer(rowsShape(rows), func(t *text) { rowLines(t, rows) })
	}))
}

// rowLines writes each row as one line: where it is, and what it says.
func rowLines(t *text, rows *notebook.Rows) {
	for _, r := range rows.List {
		if r.Line == 0 {
			t.line("%s", r.Title)
			continue
		}
		words := strings.Join(strings.Fields(r.Text), " ")
		switch r.Task {
		case notebook.Todo:
			words = "[ ] " + words
		case notebook.Done:
			words = "[x] " + words
		}
		t.line("%s:%d: %s", r.Title, r.Line, words)
	}
	switch more := rows.Found - len(rows.List); {
	case rows.Found == 0:
		t.line("nothing found")
	case more > 0:
		t.line("… and %d more: ask for less", more)
	}
	if rows.Unread == 0 {
		return
	}
	t.line("%s %s damaged and could not be read: what is there was not looked through", t.paint(yellow, "note:"), plural(rows.Unread, "page is", "pages are"))
	for _, id := range rows.Damaged {
		t.line("next: noted page rebuild =%s", id)
	}
	if more := rows.Unread - len(rows.Damaged); more > 0 {
		t.line("… and %d more: noted doctor names them", more)
	}
}
