package daemon

import (
	"fmt"

	"noted/notebook"
	"noted/trust"
)

// Bounds of one look at the fences of a page. A fence alone is always seen: what
// it includes is within them.
const (
	// lookPages is how many other pages are opened for one look: half of those
	// that stay open, so that a page full of includes does not close what the
	// person works with.
	lookPages = openPages / 2

	// lookParts is how many included fences are found in one look, those of every
	// fence counted. It bounds the time (a part costs some microseconds) and the
	// answer's size.
	lookParts = 4096
)

// closer finds what fences include, for one look at a page. It is made and used under d.mu and forgotten
// with it: as long as it lives no page changes.
type closer struct {
	d     *Daemon
	pages map[notebook.PageID]*looked
	parts int    // found so far
	sight *sight // of what is outside of the notebook; nil where nothing of that matters
	short bool   // a bound was met; what was found since is not all there is
}

// looked is a page whose fences were read for a look.
type looked struct {
	page    *page
	fences  map[string][]int          // by short id
	found   map[string]trust.Included // by short id, those that were asked for
	refusal *trust.Refusal            // why there are none
}

func (d *Daemon) closer(s *sight) *closer {
	return &closer{d: d, pages: map[notebook.PageID]*looked{}, sight: s}
}

// find is a [trust.Lookup]. Nothing is found by title or number, and nothing
// that two fences share.
func (l *closer) find(id notebook.PageID, short string) (trust.Included, notebook.Part, *trust.Refusal) {
	no := func(refusal *trust.Refusal) (trust.Included, notebook.Part, *trust.Refusal) {
		return trust.Included{}, notebook.Part{}, refusal
	}
	on := l.pages[id]
	if on == nil {
		if len(l.pages) > lookPages {
			l.short = true
			return no(tooMuch)
		}
		on = l.read(id)
		l.pages[id] = on
	}
	if on.refusal != nil {
		return no(on.refusal)
	}
	if l.parts++; l.parts > lookParts {
		l.short = true
		return no(tooMuch)
	}
	title := on.page.registers.Title()
	switch found := on.fences[short]; len(found) {
	case 1:
		f := &on.page.fences[found[0]]
		in, before := on.found[short]
		if !before {
			in = trust.Included{
				Page: id, Title: title, Fence: f.ID,
				Origin: f.Origin, Own: on.page.own.Has(f), Closed: f.Closed(),
			}
			on.found[short] = in
		}
		return in, f.Part, nil
	case 0:
		return no(gone("there is no such fence on %q any more", notebook.EscapeLine(title)))
	default:
		return no(&trust.Refusal{
			Code: notebook.CodeRefused, Reason: notebook.EscapeLine(title) + " has " + count(len(found), "fence", "fences") + " of that id: one was made to look like another",
			Hint: "type the one that you mean anew, and include that: noted fence include FENCE OTHER",
		})
	}
}

// read reads the fences of a page for a look.
func (l *closer) read(id notebook.PageID) *looked {
	card, known := l.d.index.cards[id]
	switch {
	case !known:
		return &looked{refusal: &trust.Refusal{
			Code: notebook.CodeRefused, Reason: "that page is not here, or not yet",
			Hint: "noted status tells whether pages are still coming; noted fence include FENCE OTHER sets what it includes",
		}}
	case card.Deleted:
		return &looked{refusal: gone("the page %q was deleted", notebook.EscapeLine(card.Title))}
	}
	p, err := l.d.page(id)
	if err == nil {
		_, err = p.readFences()
	}
	if err != nil {
		return &looked{refusal: &trust.Refusal{
			Code: notebook.CodeRefused, Reason: "the fences of that page cannot be read: " + err.Error(), Hint: "look at that page: noted page show",
		}}
	}
	return newLooked(p)
}

func newLooked(p *page) *looked {
	on := &looked{page: p, fences: make(map[string][]int, len(p.fences)), found: map[string]trust.Included{}}
	for i := range p.fences {
		short := p.fences[i].ID.Short()
		on.fences[short] = append(on.fences[short], i)
	}
	return on
}

func gone(format, title string) *trust.Refusal {
	return &trust.Refusal{
		Code: notebook.CodeRefused, Reason: fmt.Sprintf(format, title),
		Hint: "noted fence include FENCE OTHER sets what a fence includes",
	}
}

var tooMuch = &trust.Refusal{
	Code: notebook.CodeExhausted, Reason: "the fences beside it include too much to look at all of them at once",
	Hint: "look at it alone: noted fence show FENCE",
}

// closes completes a request by what its fence includes.
func (l *closer) closes(r *trust.Request) {
	l.short = false
	r.Include(l.find)
	r.Shown = r.Closure.Hash()
}
