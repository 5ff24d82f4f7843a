package crdt

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// layout is a text and where the page's elements stand in it.
type layout struct {
	body  string
	spans []span
}

// span is a part of a run with its place in a text; a tombstone stands where it
// would be, and has no size.
type span struct {
	run
	dead bool
	at   int // byte
	size int // bytes
	char int // code point
}

func (p *Page) layout(v *view) *layout {
	var b strings.Builder
	t := &layout{}
	char := 0
	for r, dead := range p.elements(v) {
		s := span{run: r, dead: dead, at: b.Len(), char: char}
		if !dead {
			writeRunes(&b, p.chars[r.op:r.op+int32(r.n)])
			s.size = b.Len() - s.at
			char += int(r.n)
		}
		t.spans = append(t.spans, s)
	}
	t.body = b.String()
	return t
}

// first is the index of the first span that reaches to byte at or behind it:
// the tombstones before the character there, then the span with that character.
func (t *layout) first(at int) int {
	return sort.Search(len(t.spans), func(i int) bool { return t.spans[i].at >= at || t.spans[i].at+t.spans[i].size > at })
}

// char is the code point at a byte offset, which is at the boundary of one.
func (t *layout) char(at int) int {
	i := t.first(at)
	if i == len(t.spans) {
		if i == 0 {
			return 0
		}
		i--
	}
	s := &t.spans[i]
	return s.char + t.chars(s, at)
}

// chars is how many of a span's characters stand before byte at.
func (t *layout) chars(s *span, at int) int {
	switch n := min(at-s.at, s.size); {
	case n <= 0:
		return 0
	case s.size == int(s.n):
		return n
	default:
		return utf8.RuneCountInString(t.body[s.at : s.at+n])
	}
}

// lineEnd is the offset behind the line that holds byte at, its end included.
func (t *layout) lineEnd(at int) int {
	if n := strings.IndexByte(t.body[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(t.body)
}

// between is what stands from byte from to byte to, the tombstones directly
// before it included, and with cut those directly behind it.
func (t *layout) between(from, to int, cut bool) []span {
	var spans []span
	for _, s := range t.spans[t.first(from):] {
		if s.at > to || s.at == to && !(s.dead && cut) {
			break
		}
		if !s.dead {
			i, j := t.chars(&s, from), t.chars(&s, to)
			if i == j {
				continue
			}
			head := max(from-s.at, 0)
			size := min(to-s.at, s.size) - head
			s = span{run: s.part(i, j), at: s.at + head, size: size, char: s.char + i}
		}
		spans = append(spans, s)
	}
	return spans
}
