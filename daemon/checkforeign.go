package daemon

import (
	"slices"

	"noted/crdt"
	"noted/notebook"
)

// What others had here at some time and have no longer cannot be told from the
// log. What they have now can, and all of it has to be in the record; and the
// record may call nothing the person's own that it knew from others before.

// openForeign reads the record of foreign text.
func (c *checker) openForeign() error {
	c.foreign = map[notebook.TextDigest]struct{}{}
	for t, err := range foreignText(c.tx) {
		if err != nil {
			return err
		}
		for s, digest := range t.Each { // what was typed first comes first
			if _, theirs := c.foreign[digest]; theirs && s.IsZero() {
				c.report("foreign text: %x was others' before it was recorded as typed here first", digest)
			}
			if !s.IsZero() {
				c.foreign[digest] = struct{}{}
			}
		}
	}
	return nil
}

// holds reports what of a text is missing in the record.
func (c *checker) holds(what string, digests ...notebook.TextDigest) {
	if slices.ContainsFunc(digests, func(d notebook.TextDigest) bool { _, there := c.foreign[d]; return !there }) {
		c.report("foreign text: the record lacks %s", what)
	}
}

// checkForeignPage holds the record against a page as its entries make it.
func (c *checker) checkForeignPage(p *page) {
	typedHere := notebook.Author{Device: c.self, Class: notebook.Typed}
	for line := range p.shadow.Lines(0) {
		if line.Origin.Only(typedHere) {
			continue
		}
		c.holds("a line of page "+p.id.String(), crdt.LineDigests(line.Text)...)
	}
	fences, err := p.readFences()
	if err != nil {
		return // none is live
	}
	for i := range fences {
		if f := &fences[i]; !standsLocal(c.self, p, f) {
			c.holds("the fence "+f.ID.Short(), crdt.BodyDigests(f.Part.Code)...)
		}
	}
}

// checkForeignTitle holds the record against an entry of a page's registers.
func (c *checker) checkForeignTitle(e taken) {
	if set, err := notebook.DecodeSet(e.Entry().Body); err == nil && e.Author() != (notebook.Author{Device: c.self, Class: notebook.Typed}) {
		c.holds("a title of page "+e.Header().Page.String(), crdt.TextDigests(set.Text)...)
	}
}

// checkForeignResult holds the record against another device's result.
func (c *checker) checkForeignResult(r *notebook.Result) {
	c.holds("a result of fence "+r.Fence.Short(), crdt.TextDigests(r.Output)...)
	c.holds("an error of fence "+r.Fence.Short(), crdt.TextDigests(r.Error)...)
}
