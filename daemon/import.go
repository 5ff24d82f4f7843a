package daemon

import (
	"context"
	"os"

	"noted/importer"
	"noted/notebook"
)

// importBytes and importPages are how much shares one step: enough to make the
// disk's part small, little enough that others get their turn.
const (
	importBytes = 128 << 10
	importPages = 16
)

// importFolder reads a folder into pages of class import.
func (d *Daemon) importFolder(ctx context.Context, format, dir string, progress func(int, string)) (*notebook.ImportReport, error) {
	if format != "markdown" {
		return nil, notebook.Errorf(notebook.CodeInvalid, "%q is no format that noted imports", notebook.EscapeLine(format)).With("noted import markdown DIR")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeNotFound, "the folder %s cannot be opened: %v", notebook.EscapeLine(dir), unwrapPath(err)).
			With("name a folder of markdown files that this user can read")
	}
	defer root.Close()
	label := importer.Label(dir)
	from := door{class: notebook.Import, label: label}
	in := importer.Markdown(root, label)
	done, size := 0, 0
	var group []importer.Page
	flush := func() error {
		err := d.step(func(b *batch) error {
			for _, page := range group {
				if err := d.importPage(b, from, page); err != nil {
					if broken := d.broken(); broken != nil {
						return broken
					}
					in.Leave(page, notebook.EscapeLine(err.Error()))
				}
			}
			return nil
		})
		group, size = group[:0], 0
		return err
	}
	for page, err := range in.Pages() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, notebook.Errorf(notebook.CodeFailed, "the import ended after %d pages: %v", done, err).
				With("the pages so far are kept; run it again for the rest")
		}
		done++
		group, size = append(group, page), size+len(page.Body)
		if size >= importBytes || len(group) >= importPages {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		if progress != nil {
			progress(done, notebook.EscapeLine(page.Path))
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	report := in.Report()
	return &report, nil
}

func (d *Daemon) importPage(b *batch, from door, in importer.Page) error {
	p, err := d.newPage(b, from, in.Title)
	if err != nil {
		return err
	}
	if in.Body == "" {
		return nil
	}
	return d.edit(b, from, p, p.shadow.Revision(), []notebook.Splice{{Insert: in.Body}})
}
