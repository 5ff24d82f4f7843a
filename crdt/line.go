package crdt

import (
	"iter"
	"slices"
	"unicode/utf8"

	"noted/notebook"
)

// Line is a line of a page's text, without its line end, and who has a hand in
// it: the authors of its characters and the deleters of what stood between
// them. Who took away whole lines before it has none in it.
type Line struct {
	Text   string
	Origin notebook.Origin
}

// Lines yields the lines of the present text, in order, that were changed since
// the mark: something was inserted or deleted in them, or a line end before
// them. Its time grows with the number of the page's runs and with the length of
// these lines, not with the text.
func (p *Page) Lines(since Mark) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		if int(since) >= len(p.changes) {
			return
		}
		w := lineWalk{page: p, since: int32(since), from: p.changes[since].op}
		for r := range p.seq.each {
			w.runs = append(w.runs, *r)
		}
		for i := range w.runs {
			k := w.changed(i)
			if w.at.run == i {
				k = max(k, w.at.char)
			}
			if w.changed(i) < 0 || w.at.run > i || k >= int(w.runs[i].n) {
				continue
			}
			w.seek(place{i, k})
			for again := true; again && w.at.run < len(w.runs); {
				line, end := w.line()
				if !yield(line) {
					return
				}
				again = end || w.at.run == i && w.at.char <= w.last(i)
			}
		}
	}
}

// place is a character of a run, by their numbers.
type place struct{ run, char int }

type lineWalk struct {
	page  *Page
	since int32
	from  int32 // the first operation since the mark
	runs  []run
	at    place // where the next line begins

	text   []byte
	hands  []uint16 // actors of the line
	before []uint16 // of the line before, with its origin
	origin notebook.Origin
}

// changed is the first character of run i that was inserted or deleted since the mark, or -1.
func (w *lineWalk) changed(i int) int {
	r := &w.runs[i]
	if r.deleted > 0 && w.page.deletions[r.deleted-1].change >= w.since {
		return 0
	}
	if w.last(i) >= 0 {
		return int(max(w.from-r.op, 0))
	}
	return -1
}

// last is the last character of run i if it is visible and was inserted since the mark, or -1.
func (w *lineWalk) last(i int) int {
	r := &w.runs[i]
	if r.deleted == 0 && r.op+int32(r.n) > w.from {
		return int(r.n) - 1
	}
	return -1
}

// seek goes back from a character to the beginning of its line, and not behind
// where the walk is already.
func (w *lineWalk) seek(to place) {
	for i := to.run; i >= w.at.run; i-- {
		r := &w.runs[i]
		if r.deleted > 0 {
			continue
		}
		k := int(r.n) - 1
		if i == to.run {
			k = to.char - 1
		}
		for ; k >= 0 && (i > w.at.run || k >= w.at.char); k-- {
			if w.page.chars[r.op+int32(k)] == '\n' {
				w.at = place{i, k + 1}
				return
			}
		}
	}
}

// line reads the line that begins here and goes on behind its end; end reports
// that it has one and that this was inserted since the mark.
func (w *lineWalk) line() (l Line, end bool) {
	w.text, w.hands = w.text[:0], w.hands[:0]
	for ; w.at.run < len(w.runs); w.at = (place{w.at.run + 1, 0}) {
		r := &w.runs[w.at.run]
		chars := w.page.chars[r.op : r.op+int32(r.n)]
		if r.deleted > 0 {
			w.tombstones(r, chars)
			continue
		}
		if w.at.char < len(chars) {
			w.hand(r.actor)
		}
		for k := w.at.char; k < len(chars); k++ {
			if chars[k] == '\n' {
				w.at = place{w.at.run, k + 1}
				return w.made(), r.op+int32(k) >= w.from
			}
			w.text = utf8.AppendRune(w.text, chars[k])
		}
	}
	return w.made(), false
}

// tombstones counts who deleted what stood here. Where the line has not begun
// to be visible, what was deleted with its own line end was another line.
func (w *lineWalk) tombstones(r *run, chars []rune) {
	if len(w.text) == 0 {
		if i := slices.Index(chars, '\n'); i >= 0 {
			w.hands = w.hands[:0]
			if chars[len(chars)-1] == '\n' {
				return
			}
		}
	}
	for d := r.deleted; d > 0; d = w.page.deletions[d-1].before {
		w.hand(w.page.changes[w.page.deletions[d-1].change].actor)
	}
}

func (w *lineWalk) hand(actor uint16) {
	if !slices.Contains(w.hands, actor) {
		w.hands = append(w.hands, actor)
	}
}

func (w *lineWalk) made() Line {
	if !slices.Equal(w.hands, w.before) || w.origin == nil {
		w.before = append(w.before[:0], w.hands...)
		authors := make([]notebook.Author, len(w.hands))
		for i, a := range w.hands {
			authors[i] = w.page.actors[a].author
		}
		w.origin = notebook.NewOrigin(authors...)
	}
	return Line{Text: string(w.text), Origin: w.origin}
}
