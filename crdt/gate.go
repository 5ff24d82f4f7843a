package crdt

import (
	"fmt"
	"slices"

	"noted/notebook"
	"noted/trust"
)

// arrival is a change that passed every check and waits to be taken.
type arrival struct {
	change *change
	author notebook.Author
	epoch  notebook.Epoch
	deps   []int32
	actors []uint16 // the page's number of each actor of the change; the own one may be new
	past   past
	refs   []int32 // for each operation the operation that inserted its element, -1 for the beginning
}

func void(format string, args ...any) error {
	return &trust.Void{Reason: fmt.Sprintf(format, args...)}
}

// check is the gate. It changes nothing of the page that anyone could see. What
// a change says of itself comes before its operations: those of a few hundred
// bytes can be as many as the history before them.
func (p *Page) check(body []byte, a notebook.Author, e notebook.Epoch, saw func(notebook.Position) bool) (*arrival, error) {
	c := p.scratch
	content, ops, err := c.open(body)
	if err != nil {
		return nil, void("the change was refused: %s", err)
	}
	if c.actor != a.Actor(e) {
		return nil, void("the change was written under another actor than its entry's author has")
	}
	arrival := &arrival{change: c, author: a, epoch: e}
	p.steps += opSteps*uint64(len(c.ops)) + uint64(len(c.deps))
	start := uint32(0)
	for _, h := range c.deps {
		k := p.lookup(h)
		if k < 0 {
			return nil, void("the change depends on %s, which is not a change of this page", h)
		}
		d := &p.changes[k]
		if k > 0 && !saw(p.position(d)) {
			return nil, void("the change depends on %s, which its author had not seen", h)
		}
		start = max(start, d.last()+1)
		arrival.deps = append(arrival.deps, k)
	}
	if c.start != start {
		return nil, void("the change counts its operations from %d, where its dependencies say %d", c.start, start)
	}
	arrival.past = p.pastOf(arrival.deps)
	if err := p.checkChain(arrival); err != nil {
		return nil, err
	}
	err = c.read(content, ops, p.encoder)
	if len(c.ops) > 1<<12 { // do not hold on to what a large change needed
		p.scratch, p.encoder = new(change), new(encoder)
	}
	if err != nil {
		return nil, void("the change was refused: %s", err)
	}
	if err := p.checkOps(arrival); err != nil {
		return nil, err
	}
	if err := p.checkRoom(arrival); err != nil {
		return nil, err
	}
	return arrival, nil
}

// position is where the entry stands that brought a change.
func (p *Page) position(c *applied) notebook.Position {
	a := &p.actors[c.actor]
	return notebook.Position{Device: a.author.Device, Epoch: a.epoch, Seq: c.entry}
}

// checkChain holds an actor to one chain: each change counts one more and knows the one before.
func (p *Page) checkChain(a *arrival) error {
	c := a.change
	own, known := p.actorOf[c.actor]
	var chain []int32
	if known {
		chain = p.actors[own].changes
	} else {
		own = uint16(len(p.actors)) // checkRoom sees to it that this fits
	}
	if want := uint64(len(chain)) + 1; c.seq != want {
		return void("the change is its actor's number %d, where number %d follows", c.seq, want)
	}
	if len(chain) > 0 && !a.past.hasChange(&p.changes[chain[len(chain)-1]]) {
		return void("the change does not follow its actor's change before it")
	}
	a.actors = append(a.actors, own)
	for _, id := range c.actors {
		number, known := p.actorOf[id]
		if !known {
			return void("the change names an actor %s, which is not on this page", id)
		}
		a.actors = append(a.actors, number)
	}
	return nil
}

// checkOps holds every operation to what its change knows: it inserts after an
// element, or deletes one, that is there in the change's own past.
func (p *Page) checkOps(a *arrival) error {
	c := a.change
	base := int32(len(p.chars))
	var deleted []int32
	dead := map[int32]bool{} // by chain of deletions, of which elements that went together have one
	a.refs = make([]int32, len(c.ops))
	p.asked = nil
	for i := range c.ops {
		o := &c.ops[i]
		if o.counter == 0 {
			a.refs[i] = -1
			continue
		}
		ref := int32(-1)
		if o.actor == 0 && o.counter >= c.start {
			if k := int(o.counter - c.start); k < i && c.ops[k].inserts() {
				ref = base + int32(k)
			}
		} else if x := (name{o.counter, a.actors[o.actor]}); int(x.actor) < len(p.actors) && a.past.has(x) {
			if ref = p.operation(x); ref >= 0 && p.seq.leafOf[ref] < 0 {
				ref = -1
			}
		}
		if ref < 0 {
			return void("the change names an element %d of %s, which it cannot know", o.counter, p.idOf(c, o))
		}
		a.refs[i] = ref
		if o.inserts() {
			continue
		}
		if ref < base && p.isDeleted(ref, &a.past, dead) {
			return void("the change deletes element %d of %s, which it knows to be deleted", o.counter, p.idOf(c, o))
		}
		deleted = append(deleted, ref)
	}
	slices.Sort(deleted)
	if n := len(deleted); len(slices.Compact(deleted)) < n {
		return void("the change deletes an element twice")
	}
	return nil
}

func (p *Page) idOf(c *change, o *op) notebook.ActorID {
	if o.actor == 0 {
		return c.actor
	}
	return c.actors[o.actor-1]
}

// isDeleted reports whether a deletion of the element that op inserted is in the
// past. Chains that were walked are remembered in known: they are as long as
// there are actors, and a change of a hundred bytes can ask for millions.
func (p *Page) isDeleted(op int32, t *past, known map[int32]bool) bool {
	l, i, _ := p.seq.find(op)
	newest := p.seq.leaves[l].runs[i].deleted
	if newest == 0 || t.all {
		return newest != 0
	}
	is, ok := known[newest]
	if !ok {
		is = p.anyDeletion(newest, &p.asked, func(k int32) bool { return t.hasChange(&p.changes[k]) })
		known[newest] = is
	}
	return is
}

// checkRoom keeps the page within what this device can hold of it.
func (p *Page) checkRoom(a *arrival) error {
	if len(p.chars)+len(a.change.ops) > maxPageOps || int(a.actors[0]) >= maxPageActors {
		return ErrFull
	}
	return nil
}

// take puts an arrival into the page. It cannot fail.
func (p *Page) take(a *arrival, entry uint64) {
	c := a.change
	own := a.actors[0]
	if int(own) == len(p.actors) {
		p.actors = append(p.actors, actor{author: a.author, epoch: a.epoch})
		p.lanesOf[a.author.Device]++
		p.actorOf[c.actor] = own
		p.seq.ids = append(p.seq.ids, c.actor)
	}
	k, base := int32(len(p.changes)), int32(len(p.chars))
	p.changes = append(p.changes, applied{
		hash: c.hash, entry: entry, start: c.start, n: uint32(len(c.ops)), op: base,
		deps: int32(len(p.deps)), depCount: int32(len(a.deps)), actor: own,
	})
	for _, d := range a.deps {
		p.behead(d)
	}
	p.heads = append(p.heads, k)
	p.changes[k].head = int32(len(p.heads))
	p.deps = append(p.deps, a.deps...)
	p.actors[own].changes = append(p.actors[own].changes, k)
	if p.byHash != nil {
		p.byHash[c.hash] = k
	}

	if len(c.ops) > 1 {
		p.chars = slices.Grow(p.chars, len(c.ops))
		p.seq.leafOf = slices.Grow(p.seq.leafOf, len(c.ops))
	}
	for i := range c.ops {
		p.chars = append(p.chars, max(0, c.ops[i].char)) // 0 for a deletion
		p.seq.leafOf = append(p.seq.leafOf, -1)
	}
	marks := map[int32]int32{}
	for i := 0; i < len(c.ops); {
		x := name{c.start + uint32(i), own}
		if !c.ops[i].inserts() {
			p.erase(a.refs[i], k, marks)
			i++
			continue
		}
		n := 1
		for i+n < len(c.ops) && c.ops[i+n].inserts() && a.refs[i+n] == base+int32(i+n-1) {
			n++
		}
		p.seq.insert(a.refs[i], x, base+int32(i), n)
		for j := range n {
			p.length++
			p.size += runeLen(c.ops[i+j].char)
		}
		i += n
	}
	p.text = nil
	p.keepLane(k, a.past)
}

// behead takes a change out of the heads, if it is one: the last takes its place.
func (p *Page) behead(k int32) {
	at := p.changes[k].head
	if at == 0 {
		return
	}
	last := p.heads[len(p.heads)-1]
	p.heads[at-1] = last
	p.changes[last].head = at
	p.changes[k].head = 0
	p.heads = p.heads[:len(p.heads)-1]
}

func runeLen(r rune) int {
	switch {
	case r < 0x80:
		return 1
	case r < 0x800:
		return 2
	case r < 0x10000:
		return 3
	}
	return 4
}

// erase records that change k deletes an element. Elements with the same
// deletions share them; marks knows which of them this change has made so far.
func (p *Page) erase(op, k int32, marks map[int32]int32) {
	l, i, _ := p.seq.find(op)
	before := p.seq.leaves[l].runs[i].deleted
	mark, ok := marks[before]
	if !ok {
		p.deletions = append(p.deletions, deletion{change: k, before: before})
		mark = int32(len(p.deletions))
		marks[before] = mark
	}
	if before == 0 {
		p.length--
		p.size -= runeLen(p.chars[op])
	}
	p.seq.mark(op, mark)
}
