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
	if len(b) > maxChunk {
		return fmt.Errorf("it has %d bytes where at most %d are allowed", len(b), maxChunk)
	}
	if len(b) <= preludeSize || !bytes.Equal(b[:len(magic)], magic) {
		return errors.New("it is not an automerge change")
	}
	if b[preludeSize] != chunkType {
		return fmt.Errorf("it is a chunk of type %d, which is refused", b[preludeSize])
	}
	c.hash = ChangeHash(b)
	if !bytes.Equal(c.hash[:4], b[len(magic):preludeSize]) {
		return errors.New("its checksum is wrong")
	}
	r := reader{b: b[preludeSize+1:]}
	n := r.uleb()
	if r.err != nil || n != uint64(len(r.b)) || ulebSize(n) != len(b)-preludeSize-1-len(r.b) {
		return errors.New("its length is wrong")
	}
	body := r.b
	if err := c.decodeBody(&r); err != nil {
		return err
	}
	if !bytes.Equal(e.encode(c), body) {
		return errors.New("it is not the canonical encoding of inserts and deletions in the page's body")
	}
	return nil
}

func (c *change) decodeBody(r *reader) error {
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
	start := r.count(maxCounter)
	c.time = r.sleb()
	if c.time < 0 || c.time > maxTime {
		return errors.New("its time is out of bounds")
	}
	if r.count(maxChunk) != 0 {
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
	if c.seq == 0 || start == 0 {
		return errors.New("it counts from zero")
	}
	c.start = uint32(start)
	return c.decodeOps(r)
}

func ascend[T any](s []T, key func(*T) []byte) bool {
	for i := 1; i < len(s); i++ {
		if bytes.Compare(key(&s[i-1]), key(&s[i])) >= 0 {
			return false
		}
	}
	return true
}

// decodeOps reads what the operations are from the columns that decide it.
// What the other columns must hold follows from that, so they, their order and
// their number are checked by encoding again.
func (c *change) decodeOps(r *reader) error {
	var specs, sizes [columns]uint64
	n := r.count(columns)
	for i := range n {
		specs[i], sizes[i] = r.uleb(), r.uleb()
	}
	var action, keyActor, meta column
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
		case columnValueMeta:
			meta.b = data
		case columnValue:
			values = data
		}
	}
	if r.err != nil {
		return r.err
	}
	if len(r.b) > 0 {
		return errors.New("it has bytes after its end")
	}
	if err := c.decodeActions(&action); err != nil {
		return err
	}
	if err := c.decodeKeys(&keyActor, &keyCounter); err != nil {
		return err
	}
	return c.decodeValues(&meta, values)
}

func (c *change) decodeActions(action *column) error {
	c.ops = c.ops[:0]
	most := min(maxOps, maxCounter-int(c.start))
	for action.err == nil && (len(action.b) > 0 || action.literal > 0) {
		v, rows := action.next(most - len(c.ops))
		if rows < 1 || action.err == errRuns {
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
	if len(c.ops) == 0 && action.err == nil {
		return errors.New("it changes nothing")
	}
	return action.end()
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
		} else if v >= int64(len(used)) {
			return errors.New("it names an actor that it does not list")
		} else {
			used[v] = true
		}
		for range rows {
			c.ops[i].actor = uint16(v)
			i++
		}
	}
	if err := actor.end(); err != nil {
		return err
	}
	if slices.Contains(used, false) {
		return errors.New("it lists an actor that it does not name")
	}
	at := int64(0)
	for i := 0; i < len(c.ops); {
		v, rows := counter.next(len(c.ops) - i)
		if v == null {
			return errors.New("it writes to another object than the page's body")
		}
		for range rows {
			if v < -maxCounter || v > maxCounter {
				return errors.New("a counter in it is out of bounds")
			}
			at += v
			o := &c.ops[i]
			if at < 0 || at > maxCounter || (at == 0) != (o.actor == beginning) || at == 0 && !o.inserts() {
				return errors.New("it names an element that cannot be")
			}
			if at == 0 {
				o.actor = 0
			}
			o.counter = uint32(at)
			i++
		}
	}
	return counter.end()
}

func (c *change) decodeValues(meta *column, values []byte) error {
	for i := 0; i < len(c.ops); {
		v, rows := meta.next(len(c.ops) - i)
		for range rows {
			o := &c.ops[i]
			i++
			if !o.inserts() {
				if v != 0 {
					return errors.New("a deletion in it has a value")
				}
				continue
			}
			if v < 0 || v&15 != valueString || v>>4 > utf8.UTFMax {
				return errors.New("an insert in it is not one character")
			}
			r, size := utf8.DecodeRune(values)
			if size != int(v>>4) || r == utf8.RuneError && size < 2 {
				return errors.New("an insert in it is not one character")
			}
			if !notebook.Allowed(r) {
				return fmt.Errorf("it inserts %U, which a page cannot hold", r)
			}
			o.char = r
			values = values[size:]
		}
	}
	if len(values) > 0 {
		return errors.New("it has values that no operation uses")
	}
	return meta.end()
}
