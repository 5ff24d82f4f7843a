package exec

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// floodFactor is how many times the kept output a fence may write before it is
// killed for it: what is dropped in between is counted, not kept.
const floodFactor = 16

// output keeps the first and the last bytes that a fence wrote, half of the
// limit each, and counts all of them.
type output struct {
	mu    sync.Mutex
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
}

func newOutput(limit int) *output { return &output{limit: limit} }

// write takes p and reports whether the fence may go on writing.
func (o *output) write(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	if n := o.limit/2 - len(o.head); n > 0 {
		n = min(n, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	size := o.limit - o.limit/2
	p = p[max(0, len(p)-size):]
	if n := min(size-len(o.tail), len(p)); n > 0 {
		o.tail = append(o.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(o.tail[o.next:], p)
		o.next = (o.next + n) % size
		p = p[n:]
	}
	return o.total <= floodFactor*int64(o.limit)
}

// text returns what was kept, how many bytes of it are the head, and how many
// bytes between head and tail were not kept. The text is valid UTF-8: a
// character that the cut would halve is not kept, and a byte that is no
// character becomes a question mark, so that the text never grows.
func (o *output) text() (text string, head int, dropped int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, last := o.head, append(append([]byte(nil), o.tail[o.next:]...), o.tail[:o.next]...)
	dropped = o.total - int64(len(first)+len(last))
	if dropped == 0 {
		text = plain(append(append([]byte(nil), first...), last...))
		return text, len(text), 0
	}
	for i := 1; i < utf8.UTFMax && i <= len(first); i++ {
		if b := first[len(first)-i:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				first = first[:len(first)-i]
				dropped += int64(i)
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(last) > 0 && !utf8.RuneStart(last[0]); i++ {
		last = last[1:]
		dropped++
	}
	text = plain(first)
	head = len(text)
	return text + plain(last), head, dropped
}

// Text makes of output that comes piece by piece the text that a result has of it:
// valid UTF-8, with a question mark for each byte that is no character. A
// character that two pieces halve comes with the second. The zero value is ready.
type Text struct{ half []byte }

// Add is the text of what was held back and of p, but for a character that p
// does not end.
func (t *Text) Add(p []byte) string {
	b := p
	if len(t.half) > 0 {
		b = append(t.half, p...)
		t.half = nil
	}
	whole := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if rest := b[len(b)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				whole -= i
			}
			break
		}
	}
	text := plain(b[:whole])
	if whole < len(b) {
		t.half = append([]byte(nil), b[whole:]...)
	}
	return text
}

// End is the text of what was held back when nothing more comes.
func (t *Text) End() string {
	text := plain(t.half)
	t.half = nil
	return text
}

func plain(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			s.WriteByte('?')
		} else {
			s.Write(b[:n])
		}
		b = b[n:]
	}
	return s.String()
}
