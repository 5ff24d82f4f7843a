package crdt

import (
	"strings"

	"noted/notebook"
)

// Fence is a live fence of a page with what the shadow knows of it. It stays as
// it was when the page goes on.
type Fence struct {
	notebook.Fence // by bytes of the body it was read from
	ID             notebook.FenceID
	From, To       int // Whole in code points
	Part           notebook.Part

	// Origin is the authors of every visible character of the span, from just
	// after the line end before the opening line to and including the line end
	// after the closing one, and the deleters of what stood between them,
	// edges included.
	Origin notebook.Origin

	opening []run  // visible elements of the opening line, without its line end
	span    []span // of the whole fence, in order
}

// Fences are the live fences of the page, in order.
func (p *Page) Fences() ([]Fence, error) { return p.fences(now()) }

// fences are the fences that v sees. Only of the page as it is the origins are told.
func (p *Page) fences(v *view) ([]Fence, error) {
	t := p.layout(v)
	found, err := notebook.Fences(t.body)
	if err != nil {
		return nil, err
	}
	fences := make([]Fence, len(found))
	for i := range found {
		fences[i] = p.fence(found[i], t, v)
	}
	return fences, nil
}

func (p *Page) fence(found notebook.Fence, t *layout, v *view) Fence {
	f := Fence{Fence: found, Part: found.Part(t.body), From: t.char(found.Whole.From), To: t.char(found.Whole.To)}
	from := strings.LastIndexByte(t.body[:f.Whole.From], '\n') + 1
	to := t.lineEnd(max(f.Whole.From, f.Whole.To-1))
	// What was deleted behind the end of a fence's own closing line cannot have
	// made it what it is. A fence that ends in another way was perhaps cut there.
	cut := !f.Closed() || t.body[to-1] != '\n'
	f.span = t.between(from, to, cut)
	if v.all {
		f.Origin = p.origin(f.span)
	}
	opening := t.lineEnd(from)
	if t.body[opening-1] == '\n' {
		opening--
	}
	for _, s := range t.between(from, opening, false) {
		if !s.dead {
			f.opening = append(f.opening, s.run)
		}
	}
	for _, s := range t.between(f.Open.From, f.Open.From+1, false) {
		if !s.dead {
			f.ID = notebook.NewFenceID(p.id, p.element(name{s.counter, s.actor}))
		}
	}
	return f
}

// origin is who wrote and who deleted in spans.
func (p *Page) origin(spans []span) notebook.Origin {
	seen := map[uint16]bool{}
	var followed map[int32]bool // chains share their older parts
	for i := range spans {
		if !spans[i].dead {
			seen[spans[i].actor] = true
		}
		p.anyDeletion(spans[i].deleted, &followed, func(k int32) bool {
			seen[p.changes[k].actor] = true
			return false
		})
	}
	authors := make([]notebook.Author, 0, len(seen))
	for a := range seen {
		authors = append(authors, p.actors[a].author)
	}
	return notebook.NewOrigin(authors...)
}

// Ranges are the fence's characters and deletions by author, in order: what a
// person is shown who asks why it stands as it does. Positions are code points
// of the text that the fence was read from.
func (p *Page) Ranges(f *Fence) []notebook.Range {
	var ranges []notebook.Range
	add := func(r notebook.Range) {
		if n := len(ranges) - 1; n >= 0 && ranges[n].Author == r.Author && ranges[n].Deleted == r.Deleted && ranges[n].To == r.From {
			ranges[n].To = r.To
			ranges[n].Text += r.Text
			return
		}
		ranges = append(ranges, r)
	}
	for i := range f.span {
		s := &f.span[i]
		text := string(p.chars[s.op : s.op+int32(s.n)])
		if !s.dead {
			add(notebook.Range{From: s.char, To: s.char + int(s.n), Text: text, Author: p.actors[s.actor].author})
			continue
		}
		for d := s.deleted; d > 0; d = p.deletions[d-1].before {
			by := p.changes[p.deletions[d-1].change].actor
			add(notebook.Range{From: s.char, To: s.char, Text: text, Author: p.actors[by].author, Deleted: true})
		}
	}
	return ranges
}
