package crdt

import (
	"iter"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// linesOf yields the lines of a text without their ends.
func linesOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// TextDigests are the digests of a text that is not a page: of each of its
// lines, and of the whole.
func TextDigests(text string) []notebook.TextDigest {
	all := BodyDigests(text)
	for line := range linesOf(text) {
		if d, chars := LineDigest(line); chars > 0 {
			all = append(all, d)
		}
	}
	return all
}

// excerpt is a part of a fence's code that is compared: some of its lines, or all.
type excerpt struct {
	fence    int
	from, to int // lines
	whole    bool
	digest   notebook.TextDigest
}

// excerpts are what is compared of a fence's code as it reads now: the whole,
// at any length; every line of [MinMoved] characters or more; and neighbouring
// lines together, which may be one line that was wrapped.
func excerpts(fence int, f *Fence, yield func(excerpt)) {
	for _, d := range BodyDigests(f.Part.Code) {
		yield(excerpt{fence, 0, len(f.Lines), true, d})
	}
	lines := strings.SplitAfter(f.Part.Code, "\n")
	lines = lines[:min(len(lines), len(f.Lines))]
	var bare []byte
	for i := range lines {
		bare = notebook.AppendBare(bare[:0], lines[i])
		if len(bare) == 0 {
			continue
		}
		for j := i + 1; ; {
			if utf8.RuneCount(bare) >= MinMoved && !isDelimiter(bare) {
				yield(excerpt{fence, i, j, false, notebook.DigestText(bare)})
			}
			if j == min(i+maxWrapped, len(lines)) {
				break
			}
			size := len(bare)
			for ; j < min(i+maxWrapped, len(lines)) && len(bare) == size; j++ {
				bare = notebook.AppendBare(bare, lines[j])
			}
			if len(bare) == size {
				break
			}
		}
	}
}

// Move is text of a page that is to be written again as moved from its source.
// The splices put the same text where it stands, so that all moves of one text
// can be made one after the other, in pieces.
type Move struct {
	Source  notebook.Source
	Splices []notebook.Splice
}

// Moves looks for foreign text in fences of the present text, and says what is
// to be written again as moved, and which fences hold any. perhaps is a quick no
// for most digests, look tells what is known of those that are left. Characters
// that are another's already, or that were moved before, stay as they are.
func (p *Page) Moves(self notebook.DeviceID, fences []*Fence, perhaps func(notebook.TextDigest) bool, look func(map[notebook.TextDigest]*Known) error) (moves []Move, in []*Fence, err error) {
	var found []excerpt
	known := map[notebook.TextDigest]*Known{}
	for i, f := range fences {
		excerpts(i, f, func(s excerpt) {
			if perhaps(s.digest) {
				found = append(found, s)
				known[s.digest] = &Known{}
			}
		})
	}
	if len(found) == 0 {
		return nil, nil, nil
	}
	if err := look(known); err != nil {
		return nil, nil, err
	}
	m := mover{page: p, self: self}
	for i, f := range fences {
		lines := make([]*Known, len(f.Lines))
		hit := false
		for _, s := range found {
			k := known[s.digest]
			if s.fence != i || !k.Foreign() {
				continue
			}
			hit = true
			for l := s.from; l < s.to; l++ {
				if lines[l] == nil || s.whole && !lines[l].Foreign() {
					lines[l] = k
				}
			}
		}
		if hit {
			in = append(in, f)
			m.fence(f, lines)
		}
	}
	return m.moves, in, nil
}

type mover struct {
	page  *Page
	self  notebook.DeviceID
	moves []Move
}

// fence moves the lines of a fence of which something is known.
func (m *mover) fence(f *Fence, lines []*Known) {
	body := m.page.Text()
	ranges := m.page.Ranges(f)
	at, char := f.Whole.From, f.From
	for i, l := range f.Lines {
		to := l.Span.To
		if to > l.Span.From && body[to-1] == '\n' {
			to--
		}
		char += utf8.RuneCountInString(body[at:l.Span.From])
		end := char + utf8.RuneCountInString(body[l.Span.From:to])
		for len(ranges) > 0 && ranges[0].To <= char {
			ranges = ranges[1:]
		}
		if lines[i] != nil {
			for _, r := range ranges {
				if r.From >= end {
					break
				}
				if !r.Deleted && m.replaces(r.Author, lines[i]) {
					m.splice(lines[i].Sources[0], r, char, end)
				}
			}
		}
		at, char = to, end
	}
}

// replaces reports whether a character of a matched text is written again: one
// that was typed here, or came in by another door of this device than the text did.
func (m *mover) replaces(a notebook.Author, k *Known) bool {
	if a.Device != m.self || a.Class == notebook.Moved {
		return false
	}
	if a.Class == notebook.Typed {
		return true
	}
	s := SourceOf(m.self, a)
	for _, t := range k.Sources {
		if s == t {
			return false
		}
	}
	return true
}

// splice writes what a range has between two code points again.
func (m *mover) splice(s notebook.Source, r notebook.Range, from, to int) {
	text := []rune(r.Text)
	from, to = max(from, r.From), min(to, r.To)
	text = text[from-r.From : to-r.From]
	i := 0
	for i < len(m.moves) && m.moves[i].Source != s {
		i++
	}
	if i == len(m.moves) {
		m.moves = append(m.moves, Move{Source: s})
	}
	m.moves[i].Splices = append(m.moves[i].Splices, notebook.Splice{At: from, Delete: len(text), Insert: string(text)})
}
