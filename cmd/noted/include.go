package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) fenceInclude() *cobra.Command {
	cmd := verb("include FENCE [OTHER]…", "set which fences run before a fence, as part of it", `
What FENCE includes becomes each OTHER, in this order; with no OTHER it includes
nothing. They run before it, in one worker: a fence that includes others reads
their globals. It stands local only if all of them do, and an approval is of all
of them.

Titles and numbers are looked up now. What is written into the fence's first
line, include="=PAGE#fXXXXXXXXX #fXXXXXXXXX", are the ids of page and fence, so
that a page of the same title is never taken for another. With a terminal on stdin and stdout
the words that this writes count as typed by you; in a script they stand as
import:editor.

`+aboutFences, func(ctx context.Context, args []string) error {
		b, page, f, err := a.fence(ctx, args[0])
		if err != nil {
			return err
		}
		var includes []notebook.Include
		for _, ref := range args[1:] {
			_, on, other, err := a.fence(ctx, ref)
			if err != nil {
				return err
			}
			if err := includable(f, on, other, ref); err != nil {
				return err
			}
			i := notebook.Include{Page: on.ID, Fence: other.ID.Short()}
			if on.ID == page.ID {
				i.Page = notebook.PageID{}
			}
			if !slices.Contains(includes, i) {
				includes = append(includes, i)
			}
		}
		splice, err := includeSplice(page, f, includes)
		if err != nil {
			return err
		}
		if splice != nil {
			via := "editor"
			if a.atKeys() {
				via = ""
			}
			if _, err := b.Edit(ctx, notebook.Edit{Page: page.ID, Base: page.Revision, Splices: []notebook.Splice{*splice}, Via: via}); err != nil {
				return err
			}
		}
		why, err := b.Why(ctx, page.ID, f.ID)
		if err != nil {
			return err
		}
		now := &why.Fence
		return a.answer(fenceShape(*now), func(t *text) {
			t.line("%s#%d %s stands %s, a request to run gets: %s", page.Title, now.Number, now.ID.Short(), t.paint(bold, now.Standing), t.paint(bold, now.Decision))
			if len(now.Includes) == 0 && len(args) == 1 {
				t.line("it includes nothing")
			}
			includeTable(t, now.Includes)
			if now.Decision == "refuse" {
				t.line("because %s", now.Reason)
			}
		})
	})
	cmd.ValidArgsFunction = a.completeFences
	return data("fence", cmd)
}

// includable says why a fence of a page cannot be part of another.
func includable(f *notebook.FenceInfo, on *notebook.PageView, other *notebook.FenceInfo, ref string) error {
	switch {
	case other.ID == f.ID:
		return notebook.Errorf(notebook.CodeInvalid, "a fence cannot include itself").With("name another one")
	case notebook.Canonical(other.Language) != notebook.Canonical(f.Language):
		return notebook.Errorf(notebook.CodeInvalid, "%s is %q, and a fence includes fences of its own language, %q", ref, other.Language, f.Language).
			With("name another one")
	}
	same := 0
	for i := range on.Fences {
		if on.Fences[i].ID.Short() == other.ID.Short() {
			same++
		}
	}
	if same > 1 {
		return notebook.Errorf(notebook.CodeAmbiguous, "%q has %d fences of the id %s: one was made to look like another", on.Title, same, other.ID.Short()).
			With("type the one that you mean anew, and name that")
	}
	return nil
}

// includeSplice changes what a fence of a page includes and no character more,
// so that every other one keeps its author; nil if there is nothing to change.
func includeSplice(page *notebook.PageView, f *notebook.FenceInfo, includes []notebook.Include) (*notebook.Splice, error) {
	fences, err := notebook.Fences(page.Body)
	if err != nil {
		return nil, err
	}
	if f.Number < 1 || f.Number > len(fences) {
		return nil, notebook.Errorf(notebook.CodeFailed, "the fence is not found in the text of its page").With("noted page edit PAGE")
	}
	found := &fences[f.Number-1]
	part := found.Part(page.Body)
	info, err := part.Including(includes)
	if err != nil {
		return nil, err
	}
	before, after := []rune(part.Info), []rune(info)
	from := 0
	for from < len(before) && from < len(after) && before[from] == after[from] {
		from++
	}
	tail := 0
	for tail < len(before)-from && tail < len(after)-from && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	s := notebook.Splice{
		At:     utf8.RuneCountInString(page.Body[:found.Info.From]) + from,
		Delete: len(before) - from - tail,
		Insert: string(after[from : len(after)-tail]),
	}
	if s.Delete == 0 && s.Insert == "" {
		return nil, nil
	}
	return &s, nil
}

// includedName is an included fence as a person reads it, and as a command takes it.
func includedName(i notebook.Included) string {
	return fmt.Sprintf("%s#%s", clip(i.Title, 30), i.Fence.Short())
}

// includeTable lists included fences in the order in which they run.
func includeTable(t *text, includes []notebook.Included) {
	var rows [][]string
	for _, i := range includes {
		rows = append(rows, []string{"includes", includedName(i), "=" + i.Page.String()[:12], i.Standing})
	}
	t.table(rows...)
}

// renderParts shows the exact bytes of what a fence includes, in the order in
// which it runs, each under where it is and how it stands by itself.
func renderParts(t *text, includes []notebook.Included, closure notebook.Closure) {
	for n, i := range includes {
		if n < len(closure)-1 {
			t.line("includes %s (=%s) %s", includedName(i), i.Page.String()[:12], i.Standing)
			renderPart(t, closure[n])
		}
	}
}

func renderPart(t *text, p notebook.Part) {
	t.block("  "+bar, p.Delimiter+p.Info)
	t.block("  "+bar, p.Code)
	t.block("  "+bar, p.Delimiter)
}

// includesNote is the included fences as part of a line, after a comma.
func includesNote(f notebook.FenceInfo) string {
	if len(f.Includes) == 0 {
		return ""
	}
	var names []string
	for _, i := range f.Includes {
		name := includedName(i)
		if i.Standing != f.Standing {
			name += " (" + i.Standing + ")"
		}
		names = append(names, name)
	}
	return ", includes " + strings.Join(names, " ")
}
