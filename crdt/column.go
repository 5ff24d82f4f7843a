package crdt

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

var (
	errShort = errors.New("it ends too early")
	errLEB   = errors.New("a number in it is malformed")
	errRuns  = errors.New("a column has other rows than its change has operations")
)

// reader takes values off the front of hostile bytes. After its first failure
// everything reads as zero and the failure stays.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

// uleb reads an unsigned LEB128 number. Longer forms than necessary are let
// through: the canonical form is checked by encoding again.
func (r *reader) uleb() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errLEB)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// sleb reads a signed LEB128 number.
func (r *reader) sleb() int64 {
	var v int64
	var shift uint
	for i, c := range r.b {
		if i == binary.MaxVarintLen64 {
			break
		}
		v |= int64(c&0x7f) << shift
		shift += 7
		if c&0x80 == 0 {
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			r.b = r.b[i+1:]
			return v
		}
	}
	r.fail(errLEB)
	return 0
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// count reads a length that may be at most most, so that a bound is checked
// before anything is allocated.
func (r *reader) count(most int) int {
	n := r.uleb()
	if n > uint64(most) {
		r.fail(errors.New("a number in it is out of bounds"))
		return 0
	}
	return int(n)
}

func appendUleb(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func ulebSize(v uint64) int { return max(1, (bits.Len64(v)+6)/7) }

func appendSleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// null marks a row without a value.
const null = math.MinInt64

// column reads a run-length encoded column.
type column struct {
	reader
	signed  bool
	literal int // rows left of a literal run
}

func (c *column) value() int64 {
	if c.signed {
		return c.sleb()
	}
	return int64(c.uleb())
}

// next reads a value and how many rows in sequence have it, at most the left
// that the caller still expects. After the end, and after what is malformed, all
// rows are null.
func (c *column) next(left int) (v int64, rows int) {
	if c.literal > 0 {
		c.literal--
		return c.value(), 1
	}
	if len(c.b) == 0 {
		return null, left
	}
	n := c.sleb()
	switch {
	case n > int64(left), n < -int64(left):
		c.fail(errRuns)
		return null, left
	case n > 0:
		return c.value(), int(n)
	case n < 0:
		c.literal = int(-n) - 1
		return c.value(), 1
	}
	return null, c.count(left)
}

// appendColumn encodes rows in the one form that automerge writes: runs of two
// and more as runs, single values in literal runs as long as possible, and
// nothing where all rows are null.
func appendColumn(b []byte, rows []int64, signed bool) []byte {
	value := func(b []byte, v int64) []byte {
		if signed {
			return appendSleb(b, v)
		}
		return appendUleb(b, uint64(v))
	}
	start := len(b)
	valued := false
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[i] {
			j++
		}
		switch {
		case rows[i] == null:
			b = appendSleb(b, 0)
			b = appendUleb(b, uint64(j-i))
		case j-i > 1:
			valued = true
			b = appendSleb(b, int64(j-i))
			b = value(b, rows[i])
		default:
			valued = true
			for j < len(rows) && rows[j] != null && (j+1 == len(rows) || rows[j+1] != rows[j]) {
				j++
			}
			b = appendSleb(b, -int64(j-i))
			for _, v := range rows[i:j] {
				b = value(b, v)
			}
		}
		i = j
	}
	if !valued {
		return b[:start]
	}
	return b
}

// appendFlags encodes a column of booleans: the lengths of its runs, of false first.
func appendFlags(b []byte, ops []op) []byte {
	flag, run := false, uint64(0)
	for i := range ops {
		if insert := ops[i].inserts(); insert != flag {
			b = appendUleb(b, run)
			flag, run = insert, 0
		}
		run++
	}
	if run > 0 {
		b = appendUleb(b, run)
	}
	return b
}
