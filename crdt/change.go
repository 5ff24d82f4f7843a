package crdt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"noted/notebook"
)

// change is a decoded automerge change that does nothing but insert and delete
// single characters of a page's body: all that a page's log may hold beside its
// first change.
type change struct {
	hash   notebook.Hash // as automerge names the change
	deps   []notebook.Hash
	actor  notebook.ActorID
	seq    uint64 // in the actor's chain, from 1
	start  uint32 // counter of the first operation
	time   int64
	actors []notebook.ActorID // that the operations name beside actor, sorted
	ops    []op
}

// op inserts a character after an element, or deletes an element.
type op struct {
	counter uint32 // the element's counter, 0 for the beginning of the body
	actor   uint16 // the element's actor: 0 the change's own, else actors[actor-1]
	char    rune   // deleting for a deletion
}

const deleting rune = -1

func (o *op) inserts() bool { return o.char != deleting }

// The parts of automerge's change chunk, by its published format: a magic
// number, four bytes of checksum, the type, the length, then the body. The
// change's hash is the SHA-256 of everything from the type on, and the checksum
// its beginning.
var magic = []byte{0x85, 0x6f, 0x4a, 0x83}

const (
	chunkType   = 1 // a change, not compressed
	preludeSize = 8 // magic and checksum

	columnObjectActor   = 0x01
	columnObjectCounter = 0x02
	columnKeyActor      = 0x11
	columnKeyCounter    = 0x13
	columnInsert        = 0x34
	columnAction        = 0x42
	columnValueMeta     = 0x56
	columnValue         = 0x57
	columnPredCount     = 0x70
	columnPredActor     = 0x71
	columnPredCounter   = 0x73

	columns = 11 // a change of a page has at most these

	actionSet    = 1
	actionDelete = 3
	valueString  = 6 // in the low four bits of a value's meta, the size above
)

// ChangeHash is the name that automerge gives to a change, by which revisions
// know it. It reads nothing of the bytes; whether they are a change says the gate.
func ChangeHash(body []byte) notebook.Hash {
	return sha256.Sum256(body[min(preludeSize, len(body)):])
}

// decode reads the one change that b is into c, whose slices it uses again.
// Whatever automerge would have written in another way is refused.
func (c *change) decode(b []byte, e *encoder) error {
	body, ops, err := c.open(b)
	if err != nil {
		return err
	}
	return c.read(body, ops, e)
}

// open reads who changes what: all before the operations. It returns the
// content of the change and the part of it that holds them.
func (c *change) open(b []byte) (body, ops []byte, err error) {
	if len(b) > maxChunk {
		return nil, nil, fmt.Errorf("it has %d bytes where at most %d are allowed", len(b), maxChunk)
	}
	if len(b) <= preludeSize || !bytes.Equal(b[:len(magic)], magic) {
		return nil, nil, errors.New("it is not an automerge change")
	}
	if b[preludeSize] != chunkType {
		return nil, nil, fmt.Errorf("it is a chunk of type %d, which is refused", b[preludeSize])
	}
	c.hash = ChangeHash(b)
	if !bytes.Equal(c.hash[:4], b[len(magic):preludeSize]) {
		return nil, nil, errors.New("its checksum is wrong")
	}
	r := reader{b: b[preludeSize+1:]}
	n := r.uleb()
	if r.err != nil || n != uint64(len(r.b)) || ulebSize(n) != len(b)-preludeSize-1-len(r.b) {
		return nil, nil, errors.New("its length is wrong")
	}
	body = r.b
	if err := c.openBody(&r); err != nil {
		return nil, nil, err
	}
	return body, r.b, nil
}

// read reads the operations of a change that was opened. They are far fewer
// bytes than operations where the change says so, but no more operations than
// its counter has room for.
func (c *change) read(body, ops []byte, e *encoder) error {
	if err := c.decodeOps(&reader{b: ops}); err != nil {
		return err
	}
	if !bytes.Equal(e.encode(c), body) {
		return errors.New("it is not the canonical encoding of inserts and deletions in the page's body")
	}
	return nil
}

func (c *change) openBody(r *reader) error {
	c.deps = c.deps[:0]
	for range r.count(maxDeps) {
		h := r.bytes(32)
		if r.err != nil {
			return r.err
		}
		c.deps = append(c.deps, notebook.Hash(h))
	}
	if !ascend(c.deps, func(h *notebook.Hash) []byte { return h[:] }) {
		return errors.New("its dependencies are not sorted")
	}
	actor := func() (a notebook.ActorID) {
		if n := r.uleb(); n != uint64(len(a)) {
			r.fail(fmt.Errorf("an actor of %d bytes is not one of this notebook", n))
			return a
		}
		copy(a[:], r.bytes(uint64(len(a))))
		return a
	}
	c.actor = actor()
	c.seq = r.uleb()
	c.start = uint32(r.count(maxCounter))
	c.time = r.sleb()
	if c.time < 0 || c.time > maxTime {
		return errors.New("its time is out of bounds")
	}
	if r.uleb() != 0 {
		return errors.New("it carries a message")
	}
	c.actors = c.actors[:0]
	for range r.count(maxDeps) {
		c.actors = append(c.actors, actor())
		if r.err != nil {
			return r.err
		}
	}
	if !ascend(c.actors, func(a *notebook.ActorID) []byte { return a[:] }) || slices.Contains(c.actors, c.actor) {
		return errors.New("its actors are not sorted")
	}
	if r.err != nil {
		return r.err
	}
	if c.start == 0 {
		return errors.New("it counts from zero")
	}
	return nil
}

func ascend[T any](s []T, key func(*T) []byte) bool {
	for i := 1; i < len(s); i++ {
		if bytes.Compare(key(&s[i-1]), key(&s[i])) >= 0 {
			return false
		}
	}
	return true
}

// decodeOps reads what the operations are from the columns that decide it. What
// else these and the other columns must hold follows from that, so it is checked
// by encoding again, and here is refused only what encoding cannot tell, or
// could not bear.
func (c *change) decodeOps(r *reader) error {
	var specs, sizes [columns]uint64
	n := r.count(columns)
	for i := range n {
		specs[i], sizes[i] = r.uleb(), r.uleb()
	}
	var action, keyActor column
	keyCounter := column{signed: true}
	var values []byte
	for i := range n {
		data := r.bytes(sizes[i])
		switch specs[i] {
		case columnAction:
			action.b = data
		case columnKeyActor:
			keyActor.b = data
		case columnKeyCounter:
			keyCounter.b = data
		case columnValue:
			values = data
		}
	}
	if r.err != nil {
		return r.err
	}
	if err := c.decodeActions(&action, len(values)); err != nil {
		return err
	}
	if err := c.decodeKeys(&keyActor, &keyCounter); err != nil {
		return err
	}
	return c.decodeValues(values)
}

// decodeActions reads what the operations do. An insert has a byte at least
// among the values. A deletion names an element that no other deletion of the
// change names: one of this change's, or one of an actor that it lists with a
// lower counter than its own. So a short change of many operations needs a
// history that is as long.
func (c *change) decodeActions(action *column, values int) error {
	c.ops = c.ops[:0]
	most := int(min(maxOps, maxCounter-int64(c.start), 2*int64(values)+int64(len(c.actors)+1)*int64(c.start-1)))
	for action.err == nil && (len(action.b) > 0 || action.literal > 0) {
		v, rows := action.next(most - len(c.ops))
		if action.err == errRuns {
			return errors.New("it has more operations than a change may have")
		}
		o := op{}
		switch v {
		case actionSet:
		case actionDelete:
			o.char = deleting
		default:
			return errors.New("it has an operation that neither inserts nor deletes a character")
		}
		if rows > 1 {
			c.ops = slices.Grow(c.ops, rows)
		}
		for range rows {
			c.ops = append(c.ops, o)
		}
	}
	if len(c.ops) == 0 {
		return errors.New("it changes nothing")
	}
	return nil
}

// beginning is, while the keys are read, the actor of an operation that names no element.
const beginning = math.MaxUint16

func (c *change) decodeKeys(actor, counter *column) error {
	used := make([]bool, len(c.actors)+1)
	first, found := slices.BinarySearchFunc(c.actors, firstActor, func(a, b notebook.ActorID) int { return bytes.Compare(a[:], b[:]) })
	if !found {
		return errors.New("it writes to another object than the page's body")
	}
	used[0], used[first+1] = true, true
	for i := 0; i < len(c.ops); {
		v, rows := actor.next(len(c.ops) - i)
		if v == null {
			v = beginning
		} else if uint64(v) >= uint64(len(used)) {
			return errors.New("it names an actor that it does not list")
		} else {
			used[v] = true
		}
		for range rows {
			c.ops[i].actor = uint16(v)
			i++
		}
	}
	if slices.Contains(used, false) {
		return errors.New("it lists an actor that it does not name")
	}
	at := int64(0)
	for i := 0; i < len(c.ops); {
		v, rows := counter.next(len(c.ops) - i)
		for range rows {
			at += v
			o := &c.ops[i]
			if at == 0 {
				if !o.inserts() {
					return errors.New("it deletes the beginning of the page")
				}
				o.actor = 0
			}
			o.counter = uint32(at)
			i++
		}
	}
	return nil
}

func (c *change) decodeValues(values []byte) error {
	for i := range c.ops {
		o := &c.ops[i]
		if !o.inserts() {
			continue
		}
		r, size := utf8.DecodeRune(values)
		if !notebook.Allowed(r) {
			return fmt.Errorf("it inserts %U, which a page cannot hold", r)
		}
		o.char = r
		values = values[size:]
	}
	return nil
}
