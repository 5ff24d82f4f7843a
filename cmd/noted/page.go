package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) pageCommand() *cobra.Command {
	return noun("page", "pages of the notebook",
		a.pageList(), a.pageShow(), a.pageNew(), a.pageEdit(), a.pagePut(), a.pageAppend(), a.pageRename(), a.pageDelete(), a.pagePurge(), a.pageRebuild())
}

// aboutPages says how a page is named; every command that takes one shows it.
const aboutPages = "PAGE is a title, = and the beginning of an id, or the word today."

func (a *app) pageList() *cobra.Command {
	return data("list of page", verb("list", "list all pages", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		pages, err := b.Pages(ctx)
		if err != nil {
			return err
		}
		return a.answer(shape(pages, pageShape), func(t *text) { pageTable(t, pages) })
	}))
}

func pageTable(t *text, pages []notebook.PageInfo) {
	if len(pages) == 0 {
		t.line("no pages yet")
		t.line("next: noted page new TITLE, or noted import markdown DIR")
		return
	}
	rows := [][]string{{"ID", "TITLE", "SIZE", "FENCES", "CHANGED"}}
	for _, p := range pages {
		rows = append(rows, []string{"=" + p.ID.String()[:8], p.Title, size(int64(p.Size)), fmt.Sprint(p.Fences), when(p.Changed)})
	}
	t.table(rows...)
	for _, p := range pages {
		for _, n := range p.Notes {
			t.line("%s =%s: %s: %s", t.paint(yellow, "note"), p.ID.String()[:8], p.Title, n)
		}
	}
}

func (a *app) pageShow() *cobra.Command {
	var raw bool
	cmd := verb("show PAGE", "show a page with the results of its fences", `
Shows the body of a page. Below each fence, behind a bar, stands what noted
thinks of it and its newest result. Characters that a terminal would act on or
not show are written as escapes; --raw writes the exact bytes of the body and
nothing else.

`+aboutPages, func(ctx context.Context, args []string) error {
		_, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		return a.answer(pageViewShape(page), func(t *text) {
			if raw {
				t.buf.WriteString(page.Body)
				return
			}
			renderPage(t, page)
		})
	})
	cmd.Flags().BoolVar(&raw, "raw", false, "write the exact bytes of the body and nothing else")
	cmd.ValidArgsFunction = a.completePages()
	return data("page view", cmd)
}

// renderPage writes the body with a note below each fence. The notes stand
// behind a bar, so that the text of a result is never the text of a fence, even
// if all of this is pasted into a page.
func renderPage(t *text, page *notebook.PageView) {
	for _, n := range page.Notes {
		t.line("%s %s", t.paint(yellow, "note:"), n)
	}
	fences, err := notebook.Fences(page.Body)
	if err != nil || len(fences) != len(page.Fences) {
		t.block("", page.Body)
		for _, f := range page.Fences {
			renderNote(t, f)
		}
		return
	}
	from := 0
	for i, f := range fences {
		// Text between fences keeps its empty lines; a line end belongs to what it ends.
		t.block("", page.Body[from:f.Whole.To])
		renderNote(t, page.Fences[i])
		from = f.Whole.To
	}
	t.block("", page.Body[from:])
}

const bar = "│ "

// renderNote says in a line what a fence is to noted, and below it its newest result.
func renderNote(t *text, f notebook.FenceInfo) {
	t.line("%s#%d %s %s, %s%s%s", safe(bar), f.Number, f.ID.Short(), f.Standing, f.Decision, includesNote(f), lastWords(t, f))
	if f.Last == nil || f.Last.Result.Verdict == notebook.NoVerdict {
		return
	}
	if f.Last.Result.Error != "" {
		t.block(bar, f.Last.Result.Error)
	}
	if f.Last.Result.Output != "" {
		t.block(bar, notebook.FenceOutput(output(f.Last.Result)))
	}
}

// lastWords is how the newest run of f ended, after a comma. What was left out of
// its output is said here, where no output can say something else.
func lastWords(t *text, f notebook.FenceInfo) safe {
	if f.Last == nil {
		return ""
	}
	words := ", last " + string(verdict(t, *f.Last))
	if f.Stale {
		words += " " + string(t.paint(yellow, "(of other bytes)"))
	}
	if n := f.Last.Result.Dropped; n > 0 {
		words += fmt.Sprintf(", %d bytes of output left out", n)
	}
	return safe(words)
}

func (a *app) pageNew() *cobra.Command {
	return data("page", verb("new TITLE", "make an empty page", `
The word today stands for the date of today, which is how a journal's pages are
called.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		title := args[0]
		if title == "today" {
			title = time.Now().Format(time.DateOnly)
		}
		page, err := b.NewPage(ctx, title)
		return a.changed(page, err, "new page")
	}))
}

// changed answers with a page that was changed.
func (a *app) changed(page *notebook.PageInfo, err error, what string) error {
	if err != nil {
		return err
	}
	return a.answer(pageShape(*page), func(t *text) {
		t.line("%s =%s %s (%s)", what, page.ID.String()[:8], page.Title, size(int64(page.Size)))
		for _, n := range page.Notes {
			t.line("%s %s", t.paint(yellow, "note:"), n)
		}
	})
}

func (a *app) pagePut() *cobra.Command {
	var as string
	cmd := verb("put PAGE", "replace a page's body with the text on stdin", `
Text that came through a pipe was not typed: what is new in it stands as
import:stdin, and what both texts share keeps its authors. With --as typed a
person vouches for it, which needs the PIN.

`+aboutPages, func(ctx context.Context, args []string) error {
		if as != "" && as != "typed" {
			return notebook.Errorf(notebook.CodeInvalid, "--as %s is not possible", as).With("--as typed, or leave it out")
		}
		b, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		a.invite(a.stdin)
		body, err := readAll(a.stdin, notebook.MaxBody)
		if err != nil {
			return err
		}
		put := notebook.Put{Page: page.ID, Base: page.Revision, Body: body, Via: "stdin"}
		if as == "" {
			info, err := b.Put(ctx, put)
			return a.changed(info, err, "saved")
		}
		put.AsTyped = true
		var info *notebook.PageInfo
		err = a.present(ctx, b, func(p notebook.Presence) (err error) {
			put.Presence = p
			info, err = b.Put(ctx, put)
			return err
		})
		return a.changed(info, err, "saved as typed")
	})
	cmd.Flags().StringVar(&as, "as", "", "typed: vouch for the text as if you had typed it (`class`)")
	cmd.ValidArgsFunction = a.completePages()
	return data("page", a.pinFlag(cmd))
}

func (a *app) pageAppend() *cobra.Command {
	cmd := verb("append PAGE [TEXT]", "add text, or what comes on stdin, to the end of a page", `
TEXT given by a person, with a terminal on stdin and stdout, counts as typed; in
a script, and all text from a pipe, it stands as import:stdin.

`+aboutPages, func(ctx context.Context, args []string) error {
		b, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		via, from := "stdin", a.stdin
		if len(args) == 2 {
			from = strings.NewReader(args[1])
			if a.atKeys() {
				via = ""
			}
		}
		a.invite(from)
		added, err := readAll(from, notebook.MaxBody)
		if err != nil {
			return err
		}
		if added == "" {
			return notebook.Errorf(notebook.CodeInvalid, "there is no text to append").With("noted page append %s TEXT", quoted(args[0]))
		}
		if !strings.HasSuffix(added, "\n") {
			added += "\n"
		}
		info, err := b.Append(ctx, page.ID, added, via)
		return a.changed(info, err, "saved")
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("page", cmd)
}

// invite tells a person at a terminal that the command waits for text.
func (a *app) invite(from io.Reader) {
	if isTerminal(from) {
		a.note("write the text; Ctrl-D at the start of a line ends it")
	}
}

// atKeys reports whether a person's keys and eyes are on both ends of this command.
func (a *app) atKeys() bool { return isTerminal(a.stdin) && isTerminal(a.stdout) }

func (a *app) pageRename() *cobra.Command {
	cmd := verb("rename PAGE TITLE", "give a page another title", aboutPages, func(ctx context.Context, args []string) error {
		b, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		info, err := b.Rename(ctx, page.ID, args[1])
		return a.changed(info, err, "renamed")
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("page", cmd)
}

func (a *app) pageDelete() *cobra.Command {
	cmd := verb("delete PAGE", "delete a page on all devices", `
The page leaves the list and its fences no longer run. An edit on another device
that did not know of the deletion brings it back, and says so.

`+aboutPages, func(ctx context.Context, args []string) error {
		b, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		if err := b.Delete(ctx, page.ID); err != nil {
			return err
		}
		page.Deleted = true
		return a.answer(pageShape(page.PageInfo), func(t *text) {
			t.line("deleted =%s %s", page.ID.String()[:8], page.Title)
		})
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("page", cmd)
}
