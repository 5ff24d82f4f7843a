package crdt

import "slices"

// past is what of a page's history a change, or a revision, knows: everything,
// or for each actor the operations up to a counter. Since counters ascend along
// an actor's chain and the chain is linear, this is exact.
type past struct {
	all   bool
	clock []uint32 // by actor; an actor that is not in it is not known
}

// has reports whether the operation with this name is in the past.
func (t *past) has(x name) bool {
	return t.all || int(x.actor) < len(t.clock) && x.counter <= t.clock[x.actor]
}

// hasChange reports whether a change is in the past.
func (t *past) hasChange(c *applied) bool { return t.has(name{c.last(), c.actor}) }

// cut is how many of a run's elements are in the past: always the first ones.
func (t *past) cut(r *run) int {
	switch {
	case t.all:
		return int(r.n)
	case int(r.actor) >= len(t.clock) || t.clock[r.actor] < r.counter:
		return 0
	}
	return int(min(uint32(r.n), t.clock[r.actor]-r.counter+1))
}

// pastOf is what the changes deps, each listed once, and everything that they depend on know.
func (p *Page) pastOf(deps []int32) past {
	heads := 0
	for _, d := range deps {
		if p.changes[d].head > 0 {
			heads++
		}
	}
	if heads == len(p.heads) {
		return past{all: true}
	}
	var clock []uint32
	for i, d := range deps {
		lane, ok := p.lanes[d]
		if !ok {
			return past{clock: p.walk(deps)}
		}
		p.steps += uint64(len(lane))
		if i == 0 {
			clock = append(make([]uint32, 0, len(p.actors)), lane...)
			continue
		}
		for len(clock) < len(lane) {
			clock = append(clock, 0)
		}
		for a, c := range lane {
			clock[a] = max(clock[a], c)
		}
	}
	return past{clock: clock}
}

// walk makes the clock of deps from the whole history: backwards, so that every
// change is met after all that depend on it.
func (p *Page) walk(deps []int32) []uint32 {
	newest := slices.Max(deps)
	known := make([]uint64, newest/64+1)
	for _, d := range deps {
		known[d/64] |= 1 << (d % 64)
	}
	p.steps += uint64(newest)
	var clock []uint32
	for k := newest; k >= 0; k-- {
		if known[k/64]&(1<<(k%64)) == 0 {
			continue
		}
		c := &p.changes[k]
		for len(clock) <= int(c.actor) {
			clock = append(clock, 0)
		}
		clock[c.actor] = max(clock[c.actor], c.last())
		p.steps += uint64(c.depCount)
		for _, d := range p.deps[c.deps : c.deps+c.depCount] {
			known[d/64] |= 1 << (d % 64)
		}
	}
	return clock
}

// keepLane remembers the clock of the change k, which t was the past of, for
// the change that goes on from it.
func (p *Page) keepLane(k int32, t past) {
	if t.all {
		return // who goes on from here alone is found by one walk
	}
	c := &p.changes[k]
	clock := t.clock
	p.steps += uint64(c.actor) / 4
	for len(clock) <= int(c.actor) {
		clock = append(clock, 0)
	}
	clock[c.actor] = c.last()
	if len(p.laneOrder) == maxLanes {
		delete(p.lanes, p.laneOrder[0])
		p.laneOrder = append(p.laneOrder[:0], p.laneOrder[1:]...)
	}
	p.lanes[k] = clock
	p.laneOrder = append(p.laneOrder, k)
}
