package importer

import (
	"fmt"
	"maps"
	"slices"

	"noted/notebook"
)

const (
	maxLines = 2000 // of the report
	maxPath  = 300  // bytes of an escaped path in it
	maxKinds = 20   // endings that are counted apart
)

// books accounts for every file and unread folder: each is a page, or a line
// that says why not.
type books struct {
	source string
	pages  int
	out    int // left
	fences int
	bytes  int64
	lines  []notebook.ImportLine
	more   int            // lines that did not fit
	others map[string]int // files that are no markdown, by their ending
}

// take counts a page.
func (b *books) take(p Page) {
	b.pages++
	b.fences += p.fences
	b.bytes += int64(len(p.Body))
}

// leave takes the page out again.
func (b *books) leave(p Page, why string) {
	b.pages--
	b.fences -= p.fences
	b.bytes -= int64(len(p.Body))
	b.left(p.Path, why)
}

// left is for a file or a whole folder that becomes no page.
func (b *books) left(path, why string) {
	b.out++
	b.line(path, why, false)
}

// changed is for a file that is not taken as it was.
func (b *books) changed(path, why string) { b.line(path, why, true) }

// other is for a file that nobody expects to become a page.
func (b *books) other(kind string) {
	b.out++
	if b.others == nil {
		b.others = map[string]int{}
	}
	if _, known := b.others[kind]; !known && len(b.others) >= maxKinds {
		kind = "other"
	}
	b.others[kind]++
}

func (b *books) line(path, why string, taken bool) {
	if len(b.lines) == maxLines {
		b.more++
		return
	}
	b.lines = append(b.lines, notebook.ImportLine{Path: show(path), Taken: taken, Reason: why})
}

func (b *books) report() notebook.ImportReport {
	r := notebook.ImportReport{
		Source: b.source, Files: b.pages + b.out, Pages: b.pages, Fences: b.fences, Bytes: b.bytes,
		Lines: slices.Clone(b.lines),
	}
	if b.more > 0 {
		r.Lines = append(r.Lines, notebook.ImportLine{Path: "…", Reason: fmt.Sprintf("%d more lines like these", b.more)})
	}
	for _, kind := range slices.Sorted(maps.Keys(b.others)) {
		r.Lines = append(r.Lines, others(kind, b.others[kind]))
	}
	return r
}

// others is the line for all files of a kind that is not read.
func others(kind string, n int) notebook.ImportLine {
	line := notebook.ImportLine{Path: "*" + show(kind), Reason: "not markdown, not read"}
	switch kind {
	case "":
		line.Path = "*"
		line.Reason = "without an ending, not read"
	case "hidden":
		line.Path = ".*"
		line.Reason = "hidden, not read"
	case "other":
		line.Path = "*.*"
	}
	if n == 1 {
		line.Reason = "1 file " + line.Reason
	} else {
		line.Reason = fmt.Sprintf("%d files %s", n, line.Reason)
	}
	return line
}

// show is a path as it may stand in a report.
func show(path string) string {
	path = notebook.EscapeLine(path)
	if len(path) <= maxPath {
		return path
	}
	cut := maxPath
	for cut > 0 && path[cut]&0xc0 == 0x80 { // not inside a character
		cut--
	}
	return path[:cut] + "…"
}
