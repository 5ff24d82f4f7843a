package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"noted/notebook"
)

// Bounds of one import. They keep a hostile folder from costing more than a
// large honest one: a vault of 100,000 notes exists, one with folders 32 deep
// does not.
const (
	maxFiles = 100_000 // files and folders looked at
	maxDepth = 32      // folders inside folders
	maxFile  = 2 * notebook.MaxBody
)

// Page is one file as a page.
type Page struct {
	Title string // the path without its ending, as "folder/name"
	Body  string
	Path  string // relative to the folder, as it is on the disk

	fences int
}

// Import is one walk through a folder of markdown files.
type Import struct {
	root   *os.Root
	books  books
	titles map[notebook.Hash]bool // digests of the title keys that are taken
	looked int                    // files and folders
	full   bool                   // maxFiles was reached, and said so
}

// Markdown prepares to read the markdown files under root. label is what the
// report calls the source; see [Label].
func Markdown(root *os.Root, label string) *Import {
	return &Import{root: root, books: books{source: label}, titles: map[notebook.Hash]bool{}}
}

// Pages reads the folder, once, and yields a page for every file that becomes
// one, in the order of the names. A page that is yielded counts as taken unless
// [Import.Leave] says otherwise. The only error is a folder that cannot be
// read at all; it comes last.
func (im *Import) Pages() iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		entries, err := im.list(".")
		if err != nil {
			yield(Page{}, fmt.Errorf("the folder cannot be read: %w", reason(err)))
			return
		}
		im.folder(".", 0, entries, func(p Page) bool { return yield(p, nil) })
	}
}

// Leave says that the page, which was yielded, did not land after all, and why.
func (im *Import) Leave(p Page, why string) { im.books.leave(p, why) }

// Report says what was found, taken and left so far.
func (im *Import) Report() notebook.ImportReport { return im.books.report() }

// folder reads one folder and those in it; false means that nobody wants more.
func (im *Import) folder(dir string, depth int, entries []fs.DirEntry, yield func(Page) bool) bool {
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if im.looked++; im.looked > maxFiles {
			if !im.full {
				im.full = true
				im.books.left(dir, fmt.Sprintf("more than %d files and folders: this one and what comes after it was not read; import a part of it", maxFiles))
			}
			return true
		}
		switch {
		case e.IsDir():
			if !im.enter(name, depth+1, yield) {
				return false
			}
		case strings.HasPrefix(e.Name(), "."):
			im.books.other("hidden")
		case !e.Type().IsRegular():
			im.books.left(name, notRegular(e.Type()))
		case !isMarkdown(name):
			im.books.other(strings.ToLower(path.Ext(name)))
		default:
			page, ok := im.file(name)
			if !ok {
				continue
			}
			im.books.take(page)
			if !yield(page) {
				return false
			}
		}
	}
	return true
}

// enter reads the folder name unless there is a reason not to.
func (im *Import) enter(name string, depth int, yield func(Page) bool) bool {
	switch {
	case strings.HasPrefix(path.Base(name), "."):
		im.books.left(name, "a hidden folder; its files were not read")
		return true
	case name == "logseq" && im.isFile("logseq/config.edn"):
		im.books.left(name, "Logseq's own settings and backups; its files were not read")
		return true
	case depth > maxDepth:
		im.books.left(name, fmt.Sprintf("nested more than %d folders deep; its files were not read", maxDepth))
		return true
	}
	entries, err := im.list(name)
	if err != nil {
		im.books.left(name, fmt.Sprintf("the folder cannot be read: %v", reason(err)))
		return true
	}
	return im.folder(name, depth, entries, yield)
}

// list is what the folder holds, by name. It stops where the import's bound is
// passed.
func (im *Import) list(name string) (entries []fs.DirEntry, err error) {
	f, err := im.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for len(entries) <= maxFiles-im.looked {
		some, err := f.ReadDir(1024)
		entries = append(entries, some...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (im *Import) isFile(name string) bool {
	info, err := im.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// file makes a page of the file name; where it cannot, it says so in the books.
func (im *Import) file(name string) (p Page, ok bool) {
	leave := func(format string, args ...any) (Page, bool) {
		im.books.left(name, fmt.Sprintf(format, args...))
		return Page{}, false
	}
	title, replaced := title(name)
	if err := notebook.CheckTitle(title); err != nil {
		return leave("its name cannot be a title: %v", err)
	}
	// By its digest, since the titles of a hostile folder are many and long.
	key := notebook.Digest("noted/import/title", []byte(notebook.TitleKey(title)))
	if im.titles[key] {
		return leave("another file was taken with the title %s (letter case does not count)", notebook.EscapeLine(title))
	}
	raw, err := im.read(name)
	if err != nil {
		return leave("%v", reason(err))
	}
	if strings.HasPrefix(raw, "\xff\xfe") || strings.HasPrefix(raw, "\xfe\xff") {
		return leave("it is UTF-16; convert it to UTF-8")
	}
	body, wrong := notebook.ReplaceText(strings.TrimPrefix(raw, "\ufeff")) // a mark of the encoding, not of the text
	if err := notebook.CheckBody(body); err != nil {
		return leave("%v", err)
	}
	im.titles[key] = true
	if replaced > 0 {
		im.books.changed(name, fmt.Sprintf("its name holds what a title cannot; that became \ufffd (%d times)", replaced))
	}
	if wrong > 0 {
		im.books.changed(name, fmt.Sprintf("it holds characters or bytes that a page cannot; they became \ufffd (%d times)", wrong))
	}
	found, err := notebook.Fences(body)
	if err != nil {
		im.books.changed(name, fmt.Sprintf("its fences are not known, so none of them runs: %v", err))
	}
	return Page{Title: title, Body: body, Path: name, fences: len(found)}, true
}

// read returns the bytes of a regular file. It asks before it opens, since
// opening a device may do something; it opens without waiting, since a named
// pipe may stand there by then; and it asks again afterwards, since a link may.
func (im *Import) read(name string) (string, error) {
	before, err := im.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !before.Mode().IsRegular() {
		return "", errors.New(notRegular(before.Mode()))
	}
	if before.Size() > maxFile {
		return "", tooLarge(before.Size())
	}
	f, err := im.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !now.Mode().IsRegular() || !os.SameFile(before, now) {
		return "", errors.New("it was replaced while it was read")
	}
	return readText(f, before.Size())
}

// readText reads all of r, which may have more than the size it spoke of.
func readText(r io.Reader, size int64) (string, error) {
	var b strings.Builder
	b.Grow(int(size))
	n, err := io.Copy(&b, io.LimitReader(r, maxFile+1))
	if err != nil {
		return "", err
	}
	if n > maxFile {
		return "", tooLarge(n)
	}
	return b.String(), nil
}

func tooLarge(n int64) error {
	return fmt.Errorf("%d bytes are more than the %d that a page can hold; split it", n, notebook.MaxBody)
}

func notRegular(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link; links are not followed"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe, not a file"
	case m&fs.ModeSocket != 0:
		return "a socket, not a file"
	case m&fs.ModeDevice != 0:
		return "a device, not a file"
	}
	return "not a regular file"
}

// reason is the part of a file error that does not repeat the path.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
