package crdt

import (
	"encoding/binary"
	"math/rand"
	"slices"
	"sort"

	"noted/notebook"
)

// mutate damages bytes in the ways that decoders stumble over.
func mutate(r *rand.Rand, b []byte) []byte {
	values := [][]byte{{0}, {1}, {0x7f}, {0x80}, {0xff}, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {0x80, 0x80, 0x80, 0x80, 0x08}, {0x7e}, {0x40}, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}}
	b = slices.Clone(b)
	for range 1 + r.Intn(3) {
		if len(b) == 0 {
			return b
		}
		i := r.Intn(len(b))
		j := min(len(b), i+r.Intn(16))
		v := values[r.Intn(len(values))]
		switch r.Intn(6) {
		case 0:
			b[i] ^= 1 << r.Intn(8)
		case 1:
			b[i] += byte(r.Intn(5)) - 2
		case 2:
			b = slices.Insert(b, i, v...)
		case 3:
			copy(b[i:], v)
		case 4:
			b = slices.Delete(b, i, j)
		case 5:
			b = slices.Insert(b, j, b[i:j]...)
		}
	}
	return b
}

// anElement is one of the page's elements, if a few tries find one.
func anElement(r *rand.Rand, p *Page) (x name, ok bool) {
	for range 8 {
		op := int32(r.Intn(len(p.chars)))
		if p.seq.leafOf[op] < 0 {
			continue
		}
		k := sort.Search(len(p.changes), func(i int) bool { return p.changes[i].op > op }) - 1
		c := &p.changes[k]
		return name{c.start + uint32(op-c.op), c.actor}, true
	}
	return x, false
}

// refer makes an operation name an element, whose actor c lists from then on.
func (c *change) refer(p *Page, o *op, x name) {
	o.counter, o.actor = x.counter, 0
	id := p.seq.ids[x.actor]
	if id == c.actor {
		return
	}
	i := slices.Index(c.actors, id)
	if i < 0 {
		i = len(c.actors)
		c.actors = append(c.actors, id)
	}
	o.actor = uint16(i + 1)
}

// distort changes what a change says, and leaves how it says it correct.
func distort(r *rand.Rand, p *Page, c *change) {
	counter := func() uint32 {
		return []uint32{0, 1, 2, uint32(r.Intn(200)), c.start, c.start + 1, maxCounter}[r.Intn(7)]
	}
	for range 1 + r.Intn(3) {
		var o *op
		if len(c.ops) > 0 {
			o = &c.ops[r.Intn(len(c.ops))]
		} else {
			o = new(op)
		}
		switch r.Intn(14) {
		case 0:
			c.seq = []uint64{0, 1, c.seq + 1, c.seq - 1, 1 << 63}[r.Intn(5)]
		case 1:
			c.start = []uint32{0, 1, c.start + 1, c.start - 1, maxCounter}[r.Intn(5)]
		case 2:
			c.deps = []notebook.Hash{p.changes[r.Intn(len(p.changes))].hash}
		case 3:
			c.deps = append(c.deps, p.changes[r.Intn(len(p.changes))].hash)
			c.sortDeps()
		case 4:
			o.counter, o.actor = counter(), uint16(r.Intn(len(c.actors)+1))
		case 5:
			o.char = []rune{deleting, 'a', '\n', '漢', '😀', 0, '\r', '\ufeff'}[r.Intn(8)]
		case 6:
			c.ops = append(c.ops, *o)
		case 7:
			i, j := r.Intn(max(1, len(c.ops))), r.Intn(max(1, len(c.ops)))
			if j < len(c.ops) {
				c.ops[i], c.ops[j] = c.ops[j], c.ops[i]
			}
		case 8:
			c.ops = c.ops[:r.Intn(len(c.ops)+1)]
		case 9:
			c.actor = p.seq.ids[r.Intn(len(p.seq.ids))]
		case 10:
			c.time = []int64{0, -1, 1, maxTime, maxTime + 1, 1 << 62, -1 << 63}[r.Intn(7)]
		case 11:
			c.ops = append(c.ops, op{counter: counter(), actor: uint16(r.Intn(len(c.actors) + 1)), char: 'n'})
		case 12, 13:
			if x, ok := anElement(r, p); ok {
				c.refer(p, o, x)
			}
		}
	}
	if r.Intn(4) > 0 {
		c.prune()
	}
}

// craft makes a change with dependencies and references from all over a page.
func craft(r *rand.Rand, p *Page, id notebook.ActorID) *change {
	c := &change{actor: id, seq: 1, actors: []notebook.ActorID{firstActor}}
	deps := map[int32]bool{}
	if own, known := p.actorOf[id]; known {
		chain := p.actors[own].changes
		c.seq = uint64(len(chain)) + 1
		deps[chain[len(chain)-1]] = true
	}
	if r.Intn(3) == 0 {
		for _, k := range p.heads {
			deps[k] = true
		}
	}
	for n := r.Intn(3); n > 0 || len(deps) == 0; n-- {
		deps[int32(r.Intn(len(p.changes)))] = true
	}
	for k := range deps {
		c.deps = append(c.deps, p.changes[k].hash)
		c.start = max(c.start, p.changes[k].last()+1)
	}
	slices.SortFunc(c.deps, compareHashes)
	for range 1 + r.Intn(6) {
		o := op{char: []rune("aé\n`😀")[r.Intn(5)]}
		if x, ok := anElement(r, p); ok && r.Intn(8) > 0 {
			c.refer(p, &o, x)
			if r.Intn(3) == 0 {
				o.char = deleting
			}
		} else if n := len(c.ops); n > 0 && c.ops[n-1].inserts() {
			o.counter = c.start + uint32(n-1)
		}
		c.ops = append(c.ops, o)
	}
	c.prune()
	return c
}

// prune leaves the actors that the operations name, in order.
func (c *change) prune() {
	for i := len(c.actors) - 1; i >= 0; i-- {
		n := uint16(i + 1)
		if c.actors[i] == firstActor || slices.ContainsFunc(c.ops, func(o op) bool { return o.actor == n }) {
			continue
		}
		c.actors = slices.Delete(c.actors, i, i+1)
		for k := range c.ops {
			if c.ops[k].actor > n {
				c.ops[k].actor--
			}
		}
	}
	c.sort()
}

// raw is a change as it is written: nothing of it has to make sense.
type raw struct {
	deps    [][]byte
	actor   []byte
	seq     uint64
	start   uint64
	time    int64
	message []byte
	actors  [][]byte
	columns []rawColumn
	tail    []byte
}

type rawColumn struct {
	spec uint64
	data []byte
}

// rawOf takes an honest change apart.
func rawOf(body []byte) *raw {
	r := reader{b: content(body)}
	bytes := func() []byte { return slices.Clone(r.bytes(r.uleb())) }
	c := new(raw)
	for range r.uleb() {
		c.deps = append(c.deps, slices.Clone(r.bytes(32)))
	}
	c.actor, c.seq, c.start, c.time, c.message = bytes(), r.uleb(), r.uleb(), r.sleb(), bytes()
	for range r.uleb() {
		c.actors = append(c.actors, bytes())
	}
	var sizes []uint64
	for range r.uleb() {
		c.columns = append(c.columns, rawColumn{spec: r.uleb()})
		sizes = append(sizes, r.uleb())
	}
	for i, n := range sizes {
		c.columns[i].data = slices.Clone(r.bytes(n))
	}
	if r.err != nil || len(r.b) > 0 {
		panic("not an honest change")
	}
	return c
}

func (c *raw) encode() []byte {
	prefixed := func(b, s []byte) []byte { return append(appendUleb(b, uint64(len(s))), s...) }
	b := appendUleb(nil, uint64(len(c.deps)))
	for _, d := range c.deps {
		b = append(b, d...)
	}
	b = prefixed(b, c.actor)
	b = appendUleb(b, c.seq)
	b = appendUleb(b, c.start)
	b = appendSleb(b, c.time)
	b = prefixed(b, c.message)
	b = appendUleb(b, uint64(len(c.actors)))
	for _, a := range c.actors {
		b = prefixed(b, a)
	}
	b = appendUleb(b, uint64(len(c.columns)))
	for _, col := range c.columns {
		b = appendUleb(b, col.spec)
		b = appendUleb(b, uint64(len(col.data)))
	}
	for _, col := range c.columns {
		b = append(b, col.data...)
	}
	return chunk(append(b, c.tail...))
}

// column is the column with a spec, which is added in its order where it is missing.
func (c *raw) column(spec uint64) *rawColumn {
	i, found := slices.BinarySearchFunc(c.columns, spec, func(col rawColumn, spec uint64) int { return int(col.spec) - int(spec) })
	if !found {
		c.columns = slices.Insert(c.columns, i, rawColumn{spec: spec})
	}
	return &c.columns[i]
}

// rawRun is a run of a column as it is written: n times one value, or -n
// values one after the other, or for n = 0 as many nulls as the one value says.
type rawRun struct {
	n      int64
	values []int64
}

func signedColumn(spec uint64) bool { return spec&7 == 3 }

// runs reads a run-length column, ok if it is one.
func (c *rawColumn) runs() (runs []rawRun, ok bool) {
	switch c.spec & 7 {
	case 0, 1, 2, 3, 6: // group, actor, unsigned, delta, value meta
	default:
		return nil, false
	}
	r := column{reader: reader{b: c.data}, signed: signedColumn(c.spec)}
	for r.err == nil && len(r.b) > 0 {
		run := rawRun{n: r.sleb()}
		if run.n == 0 {
			run.values = []int64{int64(r.uleb())}
		}
		for range min(max(1, -run.n), 1<<16) {
			if run.n != 0 && r.err == nil {
				run.values = append(run.values, r.value())
			}
		}
		runs = append(runs, run)
	}
	return runs, r.err == nil
}

func (c *rawColumn) set(runs []rawRun) {
	c.data = c.data[:0]
	for _, run := range runs {
		c.data = appendSleb(c.data, run.n)
		for _, v := range run.values {
			if signedColumn(c.spec) {
				c.data = appendSleb(c.data, v)
			} else {
				c.data = appendUleb(c.data, uint64(v))
			}
		}
	}
}

// The columns that automerge knows and a page's change has no use for, and some that it does not know.
var strangeColumns = []uint64{0x15, 0x05, 0x61, 0x63, 0x94, 0xa5, 0x77, 0x80, columnKeyCounter | 8, columnValue | 8, 1<<32 - 1}

// warp changes how a change is written: numbers, lists, columns and their runs.
func (c *raw) warp(r *rand.Rand) {
	number := func(n uint64) uint64 {
		return []uint64{0, 1, n - 1, n + 1, 2 * n, 1<<31 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}[r.Intn(10)]
	}
	list := func(l [][]byte) [][]byte {
		if len(l) == 0 {
			return [][]byte{slices.Repeat([]byte{byte(r.Intn(256))}, 1+r.Intn(32))}
		}
		i, j := r.Intn(len(l)), r.Intn(len(l))
		switch r.Intn(4) {
		case 0:
			return slices.Delete(l, i, i+1)
		case 1:
			return slices.Insert(l, j, l[i])
		case 2:
			l[i], l[j] = l[j], l[i]
		case 3:
			l[i] = mutate(r, l[i])
		}
		return l
	}
	for range 1 + r.Intn(3) {
		switch r.Intn(12) {
		case 0:
			c.seq = number(c.seq)
		case 1:
			c.start = number(c.start)
		case 2:
			c.time = int64(number(uint64(c.time)))
		case 3:
			c.deps = list(c.deps)
		case 4:
			c.actors = list(c.actors)
		case 5:
			switch r.Intn(3) {
			case 0:
				c.message = []byte("a message")
			case 1:
				c.tail = binary.AppendUvarint(nil, number(9))
			case 2:
				c.actor = mutate(r, c.actor)
			}
		default:
			c.warpColumn(r, number)
		}
	}
}

func (c *raw) warpColumn(r *rand.Rand, number func(uint64) uint64) {
	if len(c.columns) == 0 {
		return
	}
	i, j := r.Intn(len(c.columns)), r.Intn(len(c.columns))
	col := &c.columns[i]
	switch r.Intn(10) {
	case 0:
		c.columns = slices.Delete(c.columns, i, i+1)
	case 1:
		c.columns[i], c.columns[j] = c.columns[j], c.columns[i]
	case 2:
		c.columns = slices.Insert(c.columns, j, rawColumn{col.spec, slices.Clone(col.data)})
	case 3:
		strange := c.column(strangeColumns[r.Intn(len(strangeColumns))])
		strange.data = []byte{0x7f, byte(r.Intn(4))}
	case 4:
		col.data = mutate(r, col.data)
	default:
		runs, ok := col.runs()
		if !ok || len(runs) == 0 {
			col.data = mutate(r, col.data)
			return
		}
		k := r.Intn(len(runs))
		run := &runs[k]
		v := r.Intn(len(run.values))
		switch r.Intn(5) {
		case 0:
			run.n = int64(number(uint64(run.n)))
		case 1:
			run.values[v] = int64(number(uint64(run.values[v])))
		case 2: // a run in two
			if run.n > 1 {
				at := 1 + r.Int63n(run.n-1)
				second := rawRun{run.n - at, slices.Clone(run.values)}
				run.n = at
				runs = slices.Insert(runs, k+1, second)
			}
		case 3: // a run as single values
			if run.n > 0 && run.n < 64 {
				run.values = slices.Repeat(run.values, int(run.n))
				run.n = -run.n
			}
		case 4:
			runs = slices.Insert(runs, k, rawRun{0, []int64{int64(r.Intn(3))}})
		}
		col.set(runs)
	}
}
