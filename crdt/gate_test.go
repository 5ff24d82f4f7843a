package crdt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// TestFirstChange pins the first change of every page: its bytes for good.
func TestFirstChange(t *testing.T) {
	const golden = "856f4a8339ce8934012f00106e6f7465642f626f64792f7631000000010100000005150634014202560270027f04626f6479017f047f007f00"
	if got := hex.EncodeToString(firstChange); got != golden {
		t.Errorf("the first change is\n%s, pinned is\n%s", got, golden)
	}
	if err := new(change).decode(firstChange, new(encoder)); err == nil {
		t.Error("the first change passes for one that anybody may make")
	}
}

// decoded reads an own change back; hostile tests start from it.
func decoded(t testing.TB, body []byte) *change {
	t.Helper()
	c := new(change)
	must(t, c.decode(body, new(encoder)))
	return c
}

func encoded(c *change) []byte { return chunk(new(encoder).encode(c)) }

// couple is V, who wrote a page, and M, whose next change is honest: it inserts
// two characters and deletes two of V's.
func couple(t testing.TB) (v, m *replica, next []byte) {
	t.Helper()
	v, m = newReplica(t, 1), newReplica(t, 2)
	body := v.edit(t, func(text editor) { must(t, text.Insert(0, "hello")) })
	m.pull(t, v, body)
	v.pull(t, m, m.edit(t, func(text editor) { must(t, text.Insert(5, "!")) }))
	next = m.edit(t, func(text editor) {
		must(t, text.Splice(1, 2, "ab"))
	})
	return v, m, next
}

// TestGateRefuses breaks one rule at a time of a change that is otherwise
// admitted. Every refusal is void with its reason and leaves the page as it was.
func TestGateRefuses(t *testing.T) {
	stranger := notebook.ActorID([]byte("sixteen stranger"))
	for _, c := range []struct {
		name  string
		spoil func(c *change, v, m *replica)
		why   string
	}{
		{"another actor", func(c *change, v, m *replica) { c.actor = stranger }, "another actor"},
		{"the reader's own actor", func(c *change, v, m *replica) {
			c.actor, c.actors = v.author.Actor(v.epoch), []notebook.ActorID{firstActor}
			c.ops = []op{{char: 'z'}}
		}, "another actor"},
		{"the first change's actor", func(c *change, v, m *replica) { c.actor = firstActor }, "not sorted"},
		{"a sequence number again", func(c *change, v, m *replica) { c.seq = 1 }, "number 1, where number 2 follows"},
		{"a sequence number left out", func(c *change, v, m *replica) { c.seq = 3 }, "number 3, where number 2 follows"},
		{"no dependency", func(c *change, v, m *replica) { c.deps = nil }, "from 8, where its dependencies say 0"},
		{"an unknown dependency", func(c *change, v, m *replica) { c.deps[0][0] ^= 1 }, "not a change of this page"},
		{"not its own change before", func(c *change, v, m *replica) { c.deps[0] = v.page.changes[1].hash; c.start = 7 }, "does not follow its actor's change"},
		{"a counter ahead", func(c *change, v, m *replica) { c.start++ }, "from 9, where its dependencies say 8"},
		{"a counter behind", func(c *change, v, m *replica) { c.start-- }, "from 7, where its dependencies say 8"},
		{"a counter far ahead", func(c *change, v, m *replica) { c.start = maxCounter - 10 }, "where its dependencies say 8"},
		{"an insert after an element that is not there", func(c *change, v, m *replica) { c.op(true).counter = 999 }, "names an element 999"},
		{"an insert after itself", func(c *change, v, m *replica) { o := c.op(true); o.actor, o.counter = 0, c.start+c.index(o) }, "names an element"},
		{"an insert after a later one", func(c *change, v, m *replica) { o := c.op(true); o.actor, o.counter = 0, c.start+c.index(o)+1 }, "names an element"},
		{"an insert after a deletion", func(c *change, v, m *replica) {
			o := &c.ops[len(c.ops)-1]
			*o = op{char: 'z', counter: c.start + c.index(c.op(false))}
		}, "names an element"},
		{"an insert after the body itself", func(c *change, v, m *replica) {
			o := c.op(true)
			o.counter, o.actor = firstCounter, c.number(firstActor)
		}, "names an element 1"},
		{"an element of an actor that never wrote", func(c *change, v, m *replica) {
			c.actors[c.number(v.author.Actor(v.epoch))-1] = stranger
			c.sort()
		}, "which is not on this page"},
		{"a deletion of nothing", func(c *change, v, m *replica) { c.op(false).counter = 999 }, "names an element 999"},
		{"a deletion twice", func(c *change, v, m *replica) { c.ops = append(c.ops, *c.op(false)) }, "deletes an element twice"},
		{"a byte order mark", func(c *change, v, m *replica) { c.op(true).char = '\ufeff' }, "U+FEFF"},
		{"a carriage return", func(c *change, v, m *replica) { c.op(true).char = '\r' }, "U+000D"},
		{"a NUL", func(c *change, v, m *replica) { c.op(true).char = 0 }, "U+0000"},
		{"a C1 control", func(c *change, v, m *replica) { c.op(true).char = '\u0085' }, "U+0085"},
		{"a noncharacter", func(c *change, v, m *replica) { c.op(true).char = '\ufdd0' }, "U+FDD0"},
		{"a time that no clock shows", func(c *change, v, m *replica) { c.time = maxTime + 1 }, "time is out of bounds"},
		{"a time long before all clocks", func(c *change, v, m *replica) { c.time = -1 }, "time is out of bounds"},
		{"nothing", func(c *change, v, m *replica) { c.ops = nil; c.actors = []notebook.ActorID{firstActor} }, "changes nothing"},
		{"dependencies not sorted", func(c *change, v, m *replica) { c.deps = append(c.deps, notebook.Hash{}) }, "not sorted"},
		{"a dependency twice", func(c *change, v, m *replica) { c.deps = append(c.deps, c.deps[0]) }, "not sorted"},
		{"actors not sorted", func(c *change, v, m *replica) {
			c.actors[0], c.actors[1] = c.actors[1], c.actors[0]
		}, "not sorted"},
		{"an actor that it does not name", func(c *change, v, m *replica) {
			c.actors = append(c.actors, notebook.ActorID(bytes.Repeat([]byte{0xff}, 16)))
		}, "does not name"},
		{"itself among the others", func(c *change, v, m *replica) {
			c.actors = append(c.actors, c.actor)
			c.sort()
		}, "not sorted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, m, next := couple(t)
			before := v.page.Record()
			hostile := decoded(t, next)
			c.spoil(hostile, v, m)
			refused(t, v.page, encoded(hostile), m, sawAll, c.why)
			if !bytes.Equal(v.page.Record(), before) {
				t.Fatal("a refused change left something behind")
			}
			v.pull(t, m, next)
			v.agree(t)
		})
	}
}

// refused expects that the gate finds a change void for a reason.
func refused(t testing.TB, p *Page, body []byte, by *replica, saw func(notebook.Position) bool, why string) {
	t.Helper()
	_, err := p.check(body, by.author, by.epoch, saw)
	var void *trust.Void
	if !errors.As(err, &void) || !strings.Contains(void.Reason, why) {
		t.Fatalf("the gate says %v, want void because of %q", err, why)
	}
}

// op is the first insert, or the first deletion.
func (c *change) op(insert bool) *op {
	for i := range c.ops {
		if c.ops[i].inserts() == insert {
			return &c.ops[i]
		}
	}
	panic("no such operation")
}

func (c *change) index(o *op) uint32 {
	for i := range c.ops {
		if &c.ops[i] == o {
			return uint32(i)
		}
	}
	panic("no such operation")
}

func (c *change) number(a notebook.ActorID) uint16 {
	for i := range c.actors {
		if c.actors[i] == a {
			return uint16(i + 1)
		}
	}
	panic("no such actor")
}

// sort puts the actors into order and lets the operations follow.
func (c *change) sort() {
	for i := range c.actors {
		for j := range i {
			if bytes.Compare(c.actors[i][:], c.actors[j][:]) < 0 {
				c.actors[i], c.actors[j] = c.actors[j], c.actors[i]
				for k := range c.ops {
					switch c.ops[k].actor {
					case uint16(i + 1):
						c.ops[k].actor = uint16(j + 1)
					case uint16(j + 1):
						c.ops[k].actor = uint16(i + 1)
					}
				}
			}
		}
	}
}

// TestGateKnowsWhatTheAuthorKnew holds changes to their causal past: what is on
// the page here is not what their author knew.
func TestGateKnowsWhatTheAuthorKnew(t *testing.T) {
	v, m, next := couple(t)
	// Meanwhile V inserts and deletes; M's change has not seen it.
	v.edit(t, func(text editor) { must(t, text.Splice(0, 1, "V")) })
	fresh := decoded(t, v.made[1])

	t.Run("an element that it cannot know", func(t *testing.T) {
		c := decoded(t, next)
		o := c.op(true)
		o.actor, o.counter = c.number(v.author.Actor(v.epoch)), fresh.start
		refused(t, v.page, encoded(c), m, sawAll, "which it cannot know")
	})
	t.Run("an element that was deleted at once, deleted again", func(t *testing.T) {
		c := decoded(t, next)
		o := c.op(false)
		o.counter = 2 // V's first letter
		if _, err := v.page.check(encoded(c), m.author, m.epoch, sawAll); err != nil {
			t.Fatalf("two devices may delete one character: %v", err)
		}
	})
	t.Run("an element that it knows to be deleted", func(t *testing.T) {
		c := decoded(t, next)
		c.deps = append(c.deps, fresh.hash)
		c.sortDeps()
		c.start = v.page.changes[len(v.page.changes)-1].last() + 1
		c.op(false).counter = 2
		shiftOwn(c, decoded(t, next).start)
		refused(t, v.page, encoded(c), m, sawAll, "knows to be deleted")
	})
	t.Run("a dependency that its author had not seen", func(t *testing.T) {
		none := func(notebook.Position) bool { return false }
		refused(t, v.page, next, m, none, "had not seen")
		onlyOwn := func(p notebook.Position) bool { return p.Device == m.author.Device }
		if _, err := v.page.check(next, m.author, m.epoch, onlyOwn); err != nil {
			t.Fatalf("its only dependency is its own change: %v", err)
		}
	})
	v.pull(t, m, next)
	v.agree(t)
}

func (c *change) sortDeps() {
	for i := range c.deps {
		for j := range i {
			if compareHashes(c.deps[i], c.deps[j]) < 0 {
				c.deps[i], c.deps[j] = c.deps[j], c.deps[i]
			}
		}
	}
}

// shiftOwn moves a change's references to its own elements along with its start.
func shiftOwn(c *change, from uint32) {
	for i := range c.ops {
		if o := &c.ops[i]; o.actor == 0 && o.counter >= from && o.inserts() {
			o.counter += c.start - from
		}
	}
}

// TestGateWantsCanonicalBytes changes how a change is written and not what it says.
func TestGateWantsCanonicalBytes(t *testing.T) {
	v, m, next := couple(t)
	start := len(next) - len(content(next))
	for _, c := range []struct {
		name string
		body []byte
		why  string
	}{
		{"nothing", nil, "not an automerge change"},
		{"another magic number", append([]byte{0x86}, next[1:]...), "not an automerge change"},
		{"a wrong checksum", flip(next, 5), "checksum is wrong"},
		{"a changed byte", flip(next, len(next)-1), "checksum is wrong"},
		{"a document", typed(next, 0), "chunk of type 0"},
		{"a compressed change", typed(next, 2), "chunk of type 2"},
		{"a byte after the end", append(append([]byte(nil), next...), 0), "checksum is wrong"},
		{"two changes", append(append([]byte(nil), next...), next...), "checksum is wrong"},
		{"a longer length", long(next), "length is wrong"},
		{"a byte inside the end", chunk(append(append([]byte(nil), next[start:]...), 0)), "bytes after its end"},
		{"a cut end", chunk(next[start : len(next)-1]), ""},
		{"the first change again", firstChange, ""},
		{"too large", append(append([]byte(nil), next...), make([]byte, maxChunk)...), "at most"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, v.page, c.body, m, sawAll, c.why) })
	}
	v.pull(t, m, next)
	v.agree(t)
}

func flip(b []byte, i int) []byte {
	b = append([]byte(nil), b...)
	b[i] ^= 1
	return b
}

func typed(b []byte, kind byte) []byte {
	return repaired(append(append(append([]byte(nil), b[:preludeSize]...), kind), b[preludeSize+1:]...))
}

// long writes the length in one byte more than necessary.
func long(b []byte) []byte {
	n := len(content(b))
	out := append([]byte(nil), b[:preludeSize+1]...)
	out = append(out, byte(n)|0x80, byte(n>>7)|0x80, 0)
	return repaired(append(out, content(b)...))
}

// content is what stands behind the length.
func content(chunk []byte) []byte {
	r := reader{b: chunk[preludeSize+1:]}
	r.uleb()
	return r.b
}

// repaired gives hostile bytes the checksum that they need to be read at all.
func repaired(b []byte) []byte {
	h := ChangeHash(b)
	copy(b[len(magic):], h[:preludeSize-len(magic)])
	return b
}

// TestBombs are short changes that say they are long.
func TestBombs(t *testing.T) {
	v, m, next := couple(t)
	many := func(n int, step uint32) func(theirs uint16) []op {
		return func(theirs uint16) (ops []op) {
			for i := range n {
				ops = append(ops, op{counter: 2 + uint32(i)*step, actor: theirs, char: deleting})
			}
			return ops
		}
	}
	for _, c := range []struct {
		name string
		ops  func(theirs uint16) []op
		why  string
	}{
		{"a hundred thousand deletions of one element", many(100_000, 0), "twice"},
		{"more operations than any change", many(maxOps+1, 0), "more operations"},
		{"deletions of elements that follow each other", many(1_000_000, 1), "cannot know"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hostile := decoded(t, next)
			theirs := v.author.Actor(v.epoch)
			hostile.actors = []notebook.ActorID{firstActor, theirs}
			hostile.sort()
			hostile.ops = c.ops(hostile.number(theirs))
			body := encoded(hostile)
			if len(body) > 300 {
				t.Fatalf("the bomb has %d bytes", len(body))
			}
			began := time.Now()
			refused(t, v.page, body, m, sawAll, c.why)
			if took := time.Since(began); took > 20*time.Second {
				t.Fatalf("it took %v to refuse", took)
			}
		})
	}
	v.pull(t, m, next)
	v.agree(t)
}
