package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) pageEdit() *cobra.Command {
	cmd := verb("edit PAGE", "edit a page in $VISUAL or $EDITOR", `
With a terminal on stdin and stdout what you write counts as typed by you; where
a script drives the editor it stands as import:editor. If the page cannot be
saved the text stays in a file, and its name is told.

`+aboutPages, func(ctx context.Context, args []string) error {
		b, page, err := a.page(ctx, args[0])
		if err != nil {
			return err
		}
		path, err := a.draft(page)
		if err != nil {
			return err
		}
		body, err := a.edit(ctx, path)
		if err != nil {
			return kept(path, err)
		}
		if body == page.Body {
			_ = os.Remove(path)
			return a.changed(&page.PageInfo, nil, "not changed:")
		}
		via := "editor"
		if a.atKeys() {
			via = ""
		}
		info, err := b.Put(ctx, notebook.Put{Page: page.ID, Base: page.Revision, Body: body, Via: via})
		if err != nil {
			return kept(path, err)
		}
		_ = os.Remove(path)
		return a.changed(info, nil, "saved")
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("page", cmd)
}

// draft writes the body into a file that only this person can read.
func (a *app) draft(page *notebook.PageView) (path string, err error) {
	home, err := a.paths()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home.State, "drafts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make a place for the text: %w", err)
	}
	f, err := os.CreateTemp(dir, page.ID.String()[:8]+"-*.md") // 0600
	if err != nil {
		return "", fmt.Errorf("cannot make a file for the text: %w", err)
	}
	_, err = f.WriteString(page.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("cannot write %s: %w", f.Name(), err)
	}
	return f.Name(), nil
}

// edit lets the person's editor change the file and reads what it left.
func (a *app) edit(ctx context.Context, path string) (string, error) {
	editor := a.env["VISUAL"]
	if editor == "" {
		editor = a.env["EDITOR"]
	}
	if editor == "" {
		editor = "vi"
	}
	// The shell splits the variable as every other program that honours it does.
	cmd := osexec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "noted", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	if a.json {
		cmd.Stdout = a.stderr // stdout is for the envelope
	}
	if err := cmd.Run(); err != nil {
		return "", notebook.Errorf(notebook.CodeFailed, "the editor (%s) failed: %v", editor, err).
			With("set VISUAL or EDITOR to an editor that works")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the editor left no file: %w", err)
	}
	defer f.Close()
	return readAll(f, notebook.MaxBody)
}

// kept adds to err where the person's text is.
func kept(path string, err error) error {
	f := failure(err)
	next := "your text is in " + path
	if f.Hint != "" {
		next = f.Hint + "; " + next
	}
	f = f.With("%s", next)
	if _, ok := errors.AsType[unreachableError](err); ok {
		return unreachableError{f}
	}
	return f
}
