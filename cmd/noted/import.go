package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) importCommand() *cobra.Command {
	return noun("import", "bring pages from other tools", a.importMarkdown())
}

func (a *app) importMarkdown() *cobra.Command {
	cmd := verb("markdown DIR", "make pages of a folder of markdown files", `
Reads the regular files under DIR that end in .md, never a link and never
anything outside. The pages stand as import:NAME, where NAME is the folder's.
What could not be taken, or not as it was, is listed; the rest lands.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		dir, err := absolute(args[0])
		if err != nil {
			return err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return notebook.Errorf(notebook.CodeNotFound, "%s is not a folder", dir).With("noted import markdown DIR, with the folder that holds the files")
		}
		var progress func(int, string)
		if isTerminal(a.stderr) && !a.json {
			progress = func(done int, path string) {
				fmt.Fprintf(a.stderr, "\r%d files, %s\x1b[K", done, notebook.EscapeLine(clip(path, 50)))
			}
		} else {
			progress = func(int, string) {}
		}
		report, err := b.Import(ctx, "markdown", dir, progress)
		if isTerminal(a.stderr) && !a.json {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
		if err != nil {
			return err
		}
		return a.answer(importShape(report), func(t *text) { renderImport(t, report) })
	})
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return data("import", cmd)
}

func renderImport(t *text, r *notebook.ImportReport) {
	t.line("%d files of %s: %d pages with %d fences, %s", r.Files, r.Source, r.Pages, r.Fences, size(r.Bytes))
	if len(r.Lines) == 0 {
		return
	}
	rows := [][]string{{"FILE", "", "WHY"}}
	for _, l := range r.Lines {
		what := "left out"
		if l.Taken {
			what = "changed"
		}
		rows = append(rows, []string{l.Path, what, l.Reason})
	}
	t.table(rows...)
}
