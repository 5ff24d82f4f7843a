package crdt

import (
	"bytes"
	"slices"

	"noted/notebook"
)

// native makes changes from the shadow, in Go: byte for byte those that
// automerge 0.5.0 makes of the same edits.
type native struct {
	page    *Page
	change  change
	encoder encoder
	local   []uint16 // by the page's number of an actor: 1 + its number in the change, 0 where it has none
}

// Native returns the page itself as its write model. It has nothing of its own,
// so whatever the page has taken is loaded.
func Native(p *Page) Model { return &native{page: p} }

func (m *native) Load([]byte) (notebook.Revision, error) { return m.page.Revision(), nil }
func (m *native) Text() (string, error)                  { return m.page.Text(), nil }
func (m *native) Close() error                           { return nil }

func (m *native) Splice(actor notebook.ActorID, at int64, s []notebook.Splice) ([]byte, error) {
	p, c := m.page, &m.change
	own, known := p.actorOf[actor]
	var chain []int32
	if known {
		chain = p.actors[own].changes
	} else {
		own = uint16(len(p.actors)) // the gate sees to it that this fits
	}
	c.actor, c.seq, c.start, c.time = actor, uint64(len(chain))+1, uint32(p.next()), at
	c.deps = c.deps[:0]
	for _, k := range p.heads {
		c.deps = append(c.deps, p.changes[k].hash)
	}
	if len(chain) > 0 {
		// An actor's change names the one before even where another one knows it.
		if last := &p.changes[chain[len(chain)-1]]; last.head == 0 {
			c.deps = append(c.deps, last.hash)
		}
	}
	slices.SortFunc(c.deps, compareHashes)

	c.ops = c.ops[:0]
	for _, x := range slices.Backward(s) {
		m.splice(own, x)
	}
	m.number(own)
	made := chunk(m.encoder.encode(c))
	if len(c.ops) > 1<<12 { // do not hold on to what a large change needed
		m.change, m.encoder = change{}, encoder{}
	}
	return made, nil
}

// splice appends the operations of one splice of the text as the page has it:
// deletions in the order of the text, then inserts, each after the one before
// and the first after the visible character before the splice. Splices come from
// the last to the first, so that each finds the text before it as it was. Until
// [native.number] their actors are the page's numbers.
func (m *native) splice(own uint16, x notebook.Splice) {
	seq, ops := &m.page.seq, m.change.ops
	after := op{}
	l, i, k := int32(0), 0, 0
	if x.At > 0 && x.Delete+len(x.Insert) > 0 {
		l, i, k = seq.at(x.At - 1)
		r := &seq.leaves[l].runs[i]
		after = op{counter: r.counter + uint32(k), actor: r.actor}
		k++
	}
	for left := x.Delete; left > 0; k = 0 {
		lf := seq.leaves[l]
		if i == lf.n {
			l, i = lf.next, 0
			continue
		}
		if r := &lf.runs[i]; r.deleted == 0 {
			for ; k < int(r.n) && left > 0; k++ {
				ops = append(ops, op{counter: r.counter + uint32(k), actor: r.actor, char: deleting})
				left--
			}
		}
		i++
	}
	for _, char := range x.Insert {
		after.char = char
		ops = append(ops, after)
		after = op{counter: m.change.start + uint32(len(ops)) - 1, actor: own}
	}
	m.change.ops = ops
}

// number lists the actors that the operations name, in the order of their ids,
// and gives the operations the numbers of that list.
func (m *native) number(own uint16) {
	p, c := m.page, &m.change
	if n := len(p.actors); len(m.local) <= n {
		m.local = slices.Grow(m.local, n+1-len(m.local))[:n+1]
	}
	m.local[own], m.local[0] = 1, 1 // the body is an object of actor 0
	named := []uint16{0}
	for i := range c.ops {
		if o := &c.ops[i]; o.counter > 0 && m.local[o.actor] == 0 {
			m.local[o.actor] = 1
			named = append(named, o.actor)
		}
	}
	slices.SortFunc(named, func(a, b uint16) int { return bytes.Compare(p.seq.ids[a][:], p.seq.ids[b][:]) })
	c.actors = c.actors[:0]
	for i, a := range named {
		m.local[a] = uint16(i) + 2
		c.actors = append(c.actors, p.seq.ids[a])
	}
	for i := range c.ops {
		if o := &c.ops[i]; o.counter > 0 {
			o.actor = m.local[o.actor] - 1
		} else {
			o.actor = 0
		}
	}
	m.local[own] = 0
	for _, a := range named {
		m.local[a] = 0
	}
}
