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
// lines, and of the whole. Its line ends are those of any system.
func TextDigests(text string) []notebook.TextDigest {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	all := BodyDigests(text)
	for line := range linesOf(text) {
		all = append(all, LineDigests(line)...)
	}
	return all
}

// excerpt is a part of a fence's code that others perhaps had: some of its
// lines, or all.
type excerpt struct {
	from, to int // lines
	digest   notebook.TextDigest
	line     bool                // it may be one line
	own      notebook.TextDigest // by which this person had it first, otherwise
}

// codeLine is a line of a fence that holds anything.
type codeLine struct {
	number      int
	text        string
	bare, solid []byte
}

// excerpts yields what others perhaps had of a fence's code as it reads now: the
// whole, at any length; every line of [MinMoved] characters or more; and
// neighbouring lines together, which may be one line that was wrapped, perhaps
// before what looks like a list's marker.
func excerpts(f *Fence, perhaps func(notebook.TextDigest) bool, yield func(excerpt)) {
	for _, d := range BodyDigests(f.Part.Code) {
		if perhaps(d) {
			yield(excerpt{from: 0, to: len(f.Lines), digest: d, own: TypedDigest(f.Part.Code)})
		}
	}
	var lines []codeLine
	number := 0
	for text := range linesOf(f.Part.Code) {
		if l := (codeLine{number, text, notebook.AppendBare(nil, text), notebook.AppendSolid(nil, text)}); len(l.solid) > 0 {
			lines = append(lines, l)
		}
		if number++; number == len(f.Lines) {
			break
		}
	}
	var bare, solid []byte
	for i := range lines {
		if bare = append(bare[:0], lines[i].bare...); len(bare) == 0 {
			continue
		}
		solid = append(solid[:0], bare...)
		compare := func(text []byte, to int) {
			if utf8.RuneCount(text) < MinMoved || isDelimiter(text) {
				return
			}
			d := notebook.DigestText(text)
			if !perhaps(d) {
				return
			}
			e := excerpt{from: lines[i].number, to: lines[to].number + 1, digest: d, line: true, own: d}
			if to > i {
				var all strings.Builder
				for _, l := range lines[i : to+1] {
					all.WriteString(l.text + "\n")
				}
				e.own = TypedDigest(all.String())
			}
			yield(e)
		}
		compare(bare, i)
		for j := i + 1; j < min(i+maxWrapped, len(lines)); j++ {
			if bare = append(bare, lines[j].bare...); len(lines[j].bare) > 0 {
				compare(bare, j)
			}
			if solid = append(solid, lines[j].solid...); len(solid) != len(bare) {
				compare(solid, j)
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
// that are another's already, or that were moved before, stay as they are. What
// would be much more work than the edit itself, made since the mark, is left:
// left is in how many of those fences.
func (p *Page) Moves(self notebook.DeviceID, fences []*Fence, since Mark, perhaps func(notebook.TextDigest) bool, look func(map[notebook.TextDigest]*Known) error) (moves []Move, in []*Fence, left int, err error) {
	found := make([][]excerpt, len(fences))
	known := map[notebook.TextDigest]*Known{}
	for i, f := range fences {
		excerpts(f, perhaps, func(e excerpt) {
			found[i] = append(found[i], e)
			known[e.digest], known[e.own] = &Known{}, &Known{}
		})
	}
	if len(known) == 0 {
		return nil, nil, 0, nil
	}
	if err := look(known); err != nil {
		return nil, nil, 0, err
	}
	m := mover{page: p, self: self, room: minMoves}
	if int(since) < len(p.changes) {
		m.room = max(m.room, 2*(len(p.chars)-int(p.changes[since].op))) // a fence of one character takes ten, and costs 17
	}
	for i, f := range fences {
		var lines []*Known
		for _, e := range found[i] {
			k := known[e.digest]
			if len(k.Sources) == 0 || e.line && k.First || known[e.own].First {
				continue
			}
			if lines == nil {
				lines = make([]*Known, len(f.Lines))
			}
			for l := e.from; l < e.to; l++ {
				if lines[l] == nil {
					lines[l] = k
				}
			}
		}
		if lines != nil {
			in = append(in, f)
			m.fence(f, lines)
		}
	}
	return m.moves, in, m.left, nil
}

type mover struct {
	page  *Page
	self  notebook.DeviceID
	room  int // for characters to be written again
	left  int // fences for which there was none
	moves []Move
}

// piece is characters that are to be written again.
type piece struct {
	source   notebook.Source
	from, to int
	text     []rune
}

// fence moves the lines of a fence of which something is known.
func (m *mover) fence(f *Fence, lines []*Known) {
	body := m.page.Text()
	ranges := m.page.Ranges(f)
	at, char := f.Whole.From, f.From
	var pieces []piece
	cost := 0
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
					from, to := max(char, r.From), min(end, r.To)
					pieces = append(pieces, piece{lines[i].Sources[0], from, to, []rune(r.Text)[from-r.From : to-r.From]})
					cost += to - from + spliceCost
				}
			}
		}
		at, char = to, end
	}
	if cost > m.room {
		m.left++
		return
	}
	m.room -= cost
	for _, c := range pieces {
		m.splice(c)
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

// splice writes a piece again.
func (m *mover) splice(c piece) {
	i := 0
	for i < len(m.moves) && m.moves[i].Source != c.source {
		i++
	}
	if i == len(m.moves) {
		m.moves = append(m.moves, Move{Source: c.source})
	}
	m.moves[i].Splices = append(m.moves[i].Splices, notebook.Splice{At: c.from, Delete: len(c.text), Insert: string(c.text)})
}
