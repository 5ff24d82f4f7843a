package crdt

import (
	"bytes"
	"fmt"
	"sort"
	"unicode/utf8"

	"noted/notebook"
)

// Hands is the text of a page as its record has it, and who has a hand in each
// part of it. It is for looking many pages through: it takes a tenth of the time
// of [OpenPage], and knows no history.
type Hands struct {
	Text string

	record  []byte
	strokes []stroke
	lost    []lost
	counts  int // of the actors
	actors  []notebook.Author
	gone    []deletion // by number, from 1; change is the deleter's actor here
}

// stroke is a run of visible characters of one actor, by where it begins.
type stroke struct {
	at    int
	actor uint16
}

// lost is where deleted characters stood, and their newest deletion.
type lost struct {
	at       int
	deletion int32
}

// ReadHands reads the text of a page's record. What does not fit together is an
// error, never a panic; a record that [OpenPage] takes is none.
func ReadHands(id notebook.PageID, record []byte) (*Hands, error) {
	r := &reader{b: record}
	if v := r.bytes(1); r.err == nil && v[0] != recordVersion {
		return nil, fmt.Errorf("read page %s: a record of version %d, where this program knows version %d", id, v[0], recordVersion)
	}
	if got := r.bytes(uint64(len(id))); r.err == nil && !bytes.Equal(got, id[:]) {
		return nil, fmt.Errorf("read page %s: the record of page %x", id, got)
	}
	h := &Hands{record: record}
	h.counts = r.count(maxPageActors)
	for range h.counts {
		r.skipActor()
	}
	changes := r.count(maxPageOps)
	for range changes {
		r.bytes(32)
		r.uleb()
		r.uleb()
		r.uleb()
		for range r.count(maxDeps) {
			r.uleb()
		}
	}
	deletions := r.count(maxPageOps)
	for range deletions {
		r.uleb()
		r.uleb()
	}
	// The characters follow all runs.
	n := r.count(maxPageOps)
	chars := &reader{b: r.b}
	for range n {
		chars.uleb()
		chars.uleb()
		chars.uleb()
		chars.uleb()
	}
	var text []byte
	for range n {
		actor := r.count(h.counts)
		r.uleb()
		length, deleted := r.count(maxPageOps), r.count(deletions)
		size := 0
		for range length {
			c, n := utf8.DecodeRune(chars.b[min(size, len(chars.b)):])
			if c == utf8.RuneError && n < 2 {
				r.fail(errRecord)
				break
			}
			size += n
		}
		if r.err != nil || chars.err != nil {
			break
		}
		if deleted > 0 {
			h.lost = append(h.lost, lost{len(text), int32(deleted)})
		} else {
			h.strokes = append(h.strokes, stroke{len(text), uint16(actor)})
			text = append(text, chars.b[:size]...)
		}
		chars.b = chars.b[size:]
	}
	if r.err == nil {
		r.err = chars.err
	}
	if r.err == nil && len(chars.b) > 0 {
		r.err = errMoreRec
	}
	if r.err != nil {
		return nil, fmt.Errorf("read page %s: the record is damaged: %w", id, r.err)
	}
	h.Text = string(text)
	return h, nil
}

func (r *reader) skipActor() {
	r.device()
	r.bytes(uint64(len(notebook.Epoch{})))
	if class, _ := r.door(); class == notebook.Moved {
		r.device()
		r.door()
	}
}

// Of is who has a hand in some parts of the text: the authors of their
// characters, and the deleters of what stood in or beside them.
func (h *Hands) Of(spans []notebook.Span) (notebook.Origin, error) {
	if err := h.open(); err != nil {
		return nil, err
	}
	seen := map[uint16]bool{}
	followed := map[int32]bool{} // chains share their older parts
	for _, s := range spans {
		// The stroke that holds the first character, and those that begin in the span.
		i := max(0, sort.Search(len(h.strokes), func(i int) bool { return h.strokes[i].at > s.From })-1)
		for ; s.From < s.To && i < len(h.strokes) && h.strokes[i].at < s.To; i++ {
			seen[h.strokes[i].actor] = true
		}
		i = sort.Search(len(h.lost), func(i int) bool { return h.lost[i].at >= s.From })
		for ; i < len(h.lost) && h.lost[i].at <= s.To; i++ {
			for d := h.lost[i].deletion; d > 0 && !followed[d]; d = h.gone[d-1].before {
				followed[d] = true
				seen[uint16(h.gone[d-1].change)] = true
			}
		}
	}
	authors := make([]notebook.Author, 0, len(seen))
	for a := range seen {
		if a > 0 { // the first change has no author, and no characters
			authors = append(authors, h.actors[a-1])
		}
	}
	return notebook.NewOrigin(authors...), nil
}

// open reads who the actors are, and who deleted, once it is asked for.
func (h *Hands) open() error {
	if h.actors != nil || h.counts == 0 {
		return nil
	}
	p := NewPage(notebook.PageID{})
	r := &reader{b: h.record[1+len(notebook.PageID{}):]}
	p.openActors(r)
	by := make([]int32, 1+r.count(maxPageOps))
	for k := range by[1:] {
		r.bytes(32)
		by[k+1] = int32(r.count(h.counts))
		r.uleb()
		r.uleb()
		for range r.count(maxDeps) {
			r.uleb()
		}
	}
	h.gone = make([]deletion, r.count(maxPageOps))
	for i := range h.gone {
		change, before := r.count(len(by)-1), r.count(i)
		if r.err != nil {
			break
		}
		h.gone[i] = deletion{change: by[change], before: int32(before)}
	}
	if r.err != nil {
		return fmt.Errorf("the record is damaged: %w", r.err)
	}
	for _, a := range p.actors[1:] {
		h.actors = append(h.actors, a.author)
	}
	return nil
}
