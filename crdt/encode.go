package crdt

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"noted/notebook"
)

// encoder holds the buffers of [change.encode], to be used again.
type encoder struct {
	rows []int64
	data []byte
	out  []byte
}

// encode writes the change as automerge would, into e's buffer.
func (e *encoder) encode(c *change) []byte {
	first, _ := slices.BinarySearchFunc(c.actors, firstActor, func(a, b notebook.ActorID) int { return bytes.Compare(a[:], b[:]) })
	var specs, sizes [columns]uint64
	n := 0
	e.data = slices.Grow(e.data[:0], 64+len(c.ops))
	e.rows = slices.Grow(e.rows[:0], len(c.ops))
	add := func(spec uint64, from int) {
		if size := len(e.data) - from; size > 0 {
			specs[n], sizes[n] = spec, uint64(size)
			n++
		}
	}
	same := func(spec uint64, v int64) {
		from := len(e.data)
		if len(c.ops) == 1 {
			e.data = appendSleb(e.data, -1)
		} else {
			e.data = appendSleb(e.data, int64(len(c.ops)))
		}
		e.data = appendUleb(e.data, uint64(v))
		add(spec, from)
	}
	each := func(spec uint64, signed bool, row func(*op) (int64, bool)) {
		e.rows = e.rows[:0]
		for i := range c.ops {
			if v, ok := row(&c.ops[i]); ok {
				e.rows = append(e.rows, v)
			}
		}
		from := len(e.data)
		e.data = appendColumn(e.data, e.rows, signed)
		add(spec, from)
	}
	same(columnObjectActor, int64(first)+1)
	same(columnObjectCounter, firstCounter)
	each(columnKeyActor, false, func(o *op) (int64, bool) {
		if o.counter == 0 {
			return null, true
		}
		return int64(o.actor), true
	})
	last := int64(0)
	each(columnKeyCounter, true, func(o *op) (int64, bool) {
		v := int64(o.counter) - last
		last += v
		return v, true
	})
	from := len(e.data)
	e.data = appendFlags(e.data, c.ops)
	add(columnInsert, from)
	each(columnAction, false, func(o *op) (int64, bool) {
		if o.inserts() {
			return actionSet, true
		}
		return actionDelete, true
	})
	each(columnValueMeta, false, func(o *op) (int64, bool) {
		if o.inserts() {
			return int64(utf8.RuneLen(o.char))<<4 | valueString, true
		}
		return 0, true
	})
	from = len(e.data)
	for i := range c.ops {
		if c.ops[i].inserts() {
			e.data = utf8.AppendRune(e.data, c.ops[i].char)
		}
	}
	add(columnValue, from)
	each(columnPredCount, false, func(o *op) (int64, bool) {
		if o.inserts() {
			return 0, true
		}
		return 1, true
	})
	each(columnPredActor, false, func(o *op) (int64, bool) { return int64(o.actor), !o.inserts() })
	last = 0
	each(columnPredCounter, true, func(o *op) (int64, bool) {
		if o.inserts() {
			return 0, false
		}
		v := int64(o.counter) - last
		last += v
		return v, true
	})

	b := slices.Grow(e.out[:0], 128+32*len(c.deps)+17*len(c.actors)+len(e.data))
	b = appendUleb(b, uint64(len(c.deps)))
	for i := range c.deps {
		b = append(b, c.deps[i][:]...)
	}
	b = appendUleb(b, uint64(len(c.actor)))
	b = append(b, c.actor[:]...)
	b = appendUleb(b, c.seq)
	b = appendUleb(b, uint64(c.start))
	b = appendSleb(b, c.time)
	b = append(b, 0) // no message
	b = appendUleb(b, uint64(len(c.actors)))
	for i := range c.actors {
		b = appendUleb(b, uint64(len(c.actors[i])))
		b = append(b, c.actors[i][:]...)
	}
	b = appendUleb(b, uint64(n))
	for i := range n {
		b = appendUleb(b, specs[i])
		b = appendUleb(b, sizes[i])
	}
	b = append(b, e.data...)
	e.out = b
	return b
}

// chunk wraps an encoded body as automerge stores it.
func chunk(body []byte) []byte {
	b := make([]byte, 0, preludeSize+len(body)+8)
	b = append(b, magic...)
	b = append(b, 0, 0, 0, 0, chunkType)
	b = appendUleb(b, uint64(len(body)))
	b = append(b, body...)
	h := ChangeHash(b)
	copy(b[len(magic):], h[:preludeSize-len(magic)])
	return b
}
