package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"noted/notebook"
)

// recordVersion is the first byte of a page's record. Then come, with all
// numbers in LEB128: the page's id; the actors in their order without the first
// change's; the changes without the first one (hash, actor, operations, place of
// the entry, dependencies as distances back); the deletions; the runs in the
// order of the text, each as long as it can be; and their characters as UTF-8.
const recordVersion = 1

// Record is the page as it is kept, the same for equal histories.
func (p *Page) Record() []byte {
	b := make([]byte, 0, 64+len(p.changes)*44+p.size*2)
	b = append(b, recordVersion)
	b = append(b, p.id[:]...)
	b = appendUleb(b, uint64(len(p.actors)-1))
	for _, a := range p.actors[1:] {
		b = append(b, a.author.Device[:]...)
		b = append(b, a.epoch[:]...)
		b = appendDoor(b, a.author.Class, a.author.Label)
		if a.author.Class == notebook.Moved {
			b = append(b, a.author.Source.Device[:]...)
			b = appendDoor(b, a.author.Source.Class, a.author.Source.Label)
		}
	}
	b = appendUleb(b, uint64(len(p.changes)-1))
	for k := 1; k < len(p.changes); k++ {
		c := &p.changes[k]
		b = append(b, c.hash[:]...)
		b = appendUleb(b, uint64(c.actor))
		b = appendUleb(b, uint64(c.n))
		b = appendUleb(b, c.entry)
		b = appendUleb(b, uint64(c.depCount))
		for _, d := range p.deps[c.deps : c.deps+c.depCount] {
			b = appendUleb(b, uint64(int32(k)-d))
		}
	}
	b = appendUleb(b, uint64(len(p.deletions)))
	for _, d := range p.deletions {
		b = appendUleb(b, uint64(d.change))
		b = appendUleb(b, uint64(d.before))
	}
	runs, size := 0, 0
	for r := range p.seq.strands {
		runs++
		for _, c := range p.chars[r.op : r.op+int32(r.length)] {
			size += runeLen(c)
		}
	}
	b = appendUleb(b, uint64(runs))
	for r := range p.seq.strands {
		b = appendUleb(b, uint64(r.actor))
		b = appendUleb(b, uint64(r.counter))
		b = appendUleb(b, uint64(r.length))
		b = appendUleb(b, uint64(r.deleted))
	}
	b = slices.Grow(b, size)
	for r := range p.seq.each {
		for _, c := range p.chars[r.op : r.op+int32(r.n)] {
			b = utf8.AppendRune(b, c)
		}
	}
	return b
}

func appendDoor(b []byte, c notebook.Class, label string) []byte {
	b = append(b, byte(c))
	b = appendUleb(b, uint64(len(label)))
	return append(b, label...)
}

// OpenPage reads what [Page.Record] wrote, as far as a record can be checked
// without its entries: what does not fit together is an error, never a panic.
func OpenPage(id notebook.PageID, record []byte) (*Page, error) {
	r := &reader{b: record}
	if v := r.bytes(1); r.err == nil && v[0] != recordVersion {
		return nil, fmt.Errorf("open page %s: a record of version %d, where this program knows version %d", id, v[0], recordVersion)
	}
	if got := r.bytes(uint64(len(id))); r.err == nil && !bytes.Equal(got, id[:]) {
		return nil, fmt.Errorf("open page %s: the record of page %x", id, got)
	}
	p := NewPage(id)
	for _, part := range []func(*reader){p.openActors, p.openChanges, p.openDeletions, p.openRuns} {
		if part(r); r.err != nil {
			return nil, fmt.Errorf("open page %s: the record is damaged: %w", id, r.err)
		}
	}
	return p, nil
}

var (
	errRecord  = errors.New("its parts do not fit together")
	errMoreRec = errors.New("it goes on after its end")
)

func (r *reader) door() (notebook.Class, string) {
	class := r.bytes(1)
	label := string(r.bytes(uint64(r.count(notebook.MaxLabel))))
	if r.err != nil {
		return 0, ""
	}
	return notebook.Class(class[0]), label
}

func (r *reader) device() (d notebook.DeviceID) {
	copy(d[:], r.bytes(uint64(len(d))))
	return d
}

func (p *Page) openActors(r *reader) {
	for range r.count(maxPageActors) {
		var a actor
		a.author.Device = r.device()
		copy(a.epoch[:], r.bytes(uint64(len(a.epoch))))
		a.author.Class, a.author.Label = r.door()
		if a.author.Class == notebook.Moved {
			a.author.Source.Device = r.device()
			a.author.Source.Class, a.author.Source.Label = r.door()
		}
		if r.err != nil {
			return
		}
		id := a.author.Actor(a.epoch)
		p.actorOf[id] = uint16(len(p.actors))
		p.actors = append(p.actors, a)
		p.lanesOf[a.author.Device]++
		p.seq.ids = append(p.seq.ids, id)
	}
	if len(p.actorOf) != len(p.actors) {
		r.fail(errRecord)
	}
}

func (p *Page) openChanges(r *reader) {
	n := r.count(maxPageOps)
	p.changes = slices.Grow(p.changes, min(n, len(r.b)/36))
	p.deps = slices.Grow(p.deps, min(n, len(r.b)/36))
	ops := len(p.chars)
	hashes := make(map[notebook.Hash]struct{}, min(n, len(r.b)/36)+1)
	hashes[firstHash] = struct{}{}
	for k := int32(1); k <= int32(n); k++ {
		hash := r.bytes(32)
		c := applied{actor: uint16(r.count(len(p.actors) - 1)), n: uint32(r.count(maxPageOps - ops)), entry: r.uleb(), depCount: int32(r.count(maxDeps))}
		if r.err != nil {
			return
		}
		c.hash = notebook.Hash(hash)
		hashes[c.hash] = struct{}{}
		c.op, c.deps, c.head = int32(ops), int32(len(p.deps)), 1
		for range c.depCount {
			d := k - int32(r.count(int(k)))
			if d < 0 || d >= k {
				r.fail(errRecord)
				return
			}
			p.deps = append(p.deps, d)
			p.changes[d].head = 0
			c.start = max(c.start, p.changes[d].last()+1)
		}
		if c.actor == 0 || c.n == 0 || c.start == 0 || c.start > maxCounter-c.n {
			r.fail(errRecord)
			return
		}
		if chain := p.actors[c.actor].changes; len(chain) > 0 && p.changes[chain[len(chain)-1]].last() >= c.start {
			r.fail(errRecord)
			return
		}
		ops += int(c.n)
		p.changes = append(p.changes, c)
		p.actors[c.actor].changes = append(p.actors[c.actor].changes, k)
	}
	if len(hashes) != len(p.changes) {
		r.fail(errRecord) // a revision would name two changes
		return
	}
	p.heads = p.heads[:0]
	for k := range p.changes {
		if c := &p.changes[k]; c.head > 0 {
			p.heads = append(p.heads, int32(k))
			c.head = int32(len(p.heads))
		}
	}
	p.chars = make([]rune, ops)
	p.seq.leafOf = make([]int32, ops)
	for i := range p.seq.leafOf {
		p.seq.leafOf[i] = -1
	}
}

func (p *Page) openDeletions(r *reader) {
	for i := range r.count(len(p.chars)) {
		d := deletion{change: int32(r.count(len(p.changes) - 1)), before: int32(r.count(i))}
		if r.err != nil {
			return
		}
		if d.change == 0 {
			r.fail(errRecord)
			return
		}
		p.deletions = append(p.deletions, d)
	}
}

func (p *Page) openRuns(r *reader) {
	n := r.count(len(p.chars))
	runs := make([]run, 0, min(n, len(r.b)/4))
	for range n {
		x := run{actor: uint16(r.count(len(p.actors) - 1)), counter: uint32(r.count(math.MaxInt32))}
		length := r.count(len(p.chars))
		x.deleted = int32(r.count(len(p.deletions)))
		if r.err != nil {
			return
		}
		x.op = p.operation(name{x.counter, x.actor})
		if length == 0 || x.op < 1 || len(runs) > 0 && runs[len(runs)-1].reaches(x) {
			r.fail(errRecord)
			return
		}
		for length > 0 {
			x.n = uint16(min(length, maxRun))
			if !p.claim(&x) {
				r.fail(errRecord)
				return
			}
			runs = append(runs, x)
			x.counter, x.op, length = x.counter+uint32(x.n), x.op+int32(x.n), length-int(x.n)
		}
	}
	for i := range runs {
		x := &runs[i]
		for k := x.op; k < x.op+int32(x.n); k++ {
			c, size := utf8.DecodeRune(r.b)
			if c == utf8.RuneError && size < 2 || !notebook.Allowed(c) {
				r.fail(errRecord)
				return
			}
			r.b = r.b[size:]
			p.chars[k] = c
			if x.deleted == 0 {
				p.length++
				p.size += size
			}
		}
	}
	if len(r.b) > 0 {
		r.fail(errMoreRec)
		return
	}
	p.seq.fill(runs)
}

// claim takes a run's operations as elements. They follow each other under one
// actor, perhaps in several changes, and are no other run's.
func (p *Page) claim(x *run) bool {
	counter, op := x.counter, x.op
	for k := p.changeOf(name{x.counter, x.actor}); op < x.op+int32(x.n); k++ {
		if int(k) == len(p.changes) {
			return false
		}
		c := &p.changes[k]
		if c.actor != x.actor || c.op+int32(counter-c.start) != op {
			return false
		}
		for ; counter <= c.last() && op < x.op+int32(x.n); op++ {
			if p.seq.leafOf[op] >= 0 {
				return false
			}
			p.seq.leafOf[op] = 0
			counter++
		}
	}
	return true
}
