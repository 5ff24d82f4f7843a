package crdt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

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
		{"a surrogate", func(c *change, v, m *replica) { c.op(true).char = 0xd800 }, ""},
		{"beyond Unicode", func(c *change, v, m *replica) { c.op(true).char = 0x110000 }, ""},
		{"dependencies not sorted", func(c *change, v, m *replica) { c.deps = append(c.deps, notebook.Hash{}) }, "not sorted"},
		{"a dependency twice", func(c *change, v, m *replica) { c.deps = append(c.deps, c.deps[0]) }, "not sorted"},
		{"actors not sorted", func(c *change, v, m *replica) {
			c.actors[0], c.actors[1] = c.actors[1], c.actors[0]
		}, "not sorted"},
		{"an actor that it does not name", func(c *change, v, m *replica) { c.ops = []op{{char: 'z'}} }, "does not name"},
		{"an actor twice", func(c *change, v, m *replica) { c.actors = append(c.actors, c.actors[len(c.actors)-1]) }, "not sorted"},
		{"an actor that the page does not have", func(c *change, v, m *replica) {
			c.actors = append(c.actors, notebook.ActorID(bytes.Repeat([]byte{0xff}, 16)))
		}, "which is not on this page"},
		{"no object", func(c *change, v, m *replica) {
			c.ops = []op{{char: 'z'}}
			c.actors = nil
		}, "another object"},
		{"the object of another actor", func(c *change, v, m *replica) {
			c.actors = []notebook.ActorID{v.author.Actor(v.epoch)}
			c.ops = []op{{char: 'z', counter: 2, actor: 1}}
		}, "another object"},
		{"a counter from zero", func(c *change, v, m *replica) { c.deps, c.start = nil, 0 }, "counts from zero"},
		{"a deletion of the beginning", func(c *change, v, m *replica) { c.op(false).counter, c.op(false).actor = 0, 0 }, "deletes the beginning"},
		{"a deletion of a later insert", func(c *change, v, m *replica) {
			c.ops = append(c.ops, op{counter: c.start + uint32(len(c.ops)) + 1, char: deleting}, op{char: 'z'})
		}, "names an element"},
		{"a counter that ends beyond all", func(c *change, v, m *replica) { c.op(true).counter = 1<<32 - 1 }, "names an element"},
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
		o.actor, o.counter = c.number(v.author.Actor(v.epoch)), fresh.start+fresh.index(fresh.op(true))
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
	t.Run("an element of an actor that has written nothing", func(t *testing.T) {
		w := newHand(3, 0)
		c := w.on(v.page, v.page.heads)
		c.ops = []op{{char: 'w', counter: 2}}
		_, err := v.page.check(encoded(c), w.author, w.epoch, sawAll)
		var void *trust.Void
		if !errors.As(err, &void) || !strings.Contains(void.Reason, "which it cannot know") {
			t.Fatal(err)
		}
	})
	t.Run("nobody has to have seen the first change", func(t *testing.T) {
		w := newReplica(t, 3)
		none := func(notebook.Position) bool { return false }
		body := w.edit(t, func(text editor) { must(t, text.Insert(0, "w")) })
		if _, err := v.page.check(body, w.author, w.epoch, none); err != nil {
			t.Fatal(err)
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
		{"nothing behind a checksum", next[:preludeSize], "not an automerge change"},
		{"another magic number", append([]byte{0x86}, next[1:]...), "not an automerge change"},
		{"a wrong checksum", flip(next, 5), "checksum is wrong"},
		{"a changed byte", flip(next, len(next)-1), "checksum is wrong"},
		{"a document", typed(next, 0), "chunk of type 0"},
		{"a compressed change", typed(next, 2), "chunk of type 2"},
		{"a byte after the end", append(append([]byte(nil), next...), 0), "checksum is wrong"},
		{"two changes", append(append([]byte(nil), next...), next...), "checksum is wrong"},
		{"a longer length", long(next), "length is wrong"},
		{"a wrong length", repaired(flip(next, preludeSize+1)), "length is wrong"},
		{"a byte inside the end", chunk(append(append([]byte(nil), next[start:]...), 0)), "not the canonical encoding"},
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

// TestGateRefusesWhatNoPageNeeds writes changes that automerge has a meaning
// for, or nobody has.
func TestGateRefusesWhatNoPageNeeds(t *testing.T) {
	const (
		canonical = "not the canonical encoding"
		bound     = "a number in it is out of bounds"
	)
	column := func(spec uint64, runs ...rawRun) func(*raw) {
		return func(c *raw) { c.column(spec).set(runs) }
	}
	drop := func(specs ...uint64) func(*raw) {
		return func(c *raw) {
			c.columns = slices.DeleteFunc(c.columns, func(col rawColumn) bool { return slices.Contains(specs, col.spec) })
		}
	}
	// The honest change deletes two elements and inserts two: see couple.
	for _, c := range []struct {
		name  string
		spoil func(*raw)
		why   string
	}{
		{"a message", func(c *raw) { c.message = []byte("hi") }, "carries a message"},
		{"a short actor", func(c *raw) { c.actor = c.actor[:15] }, "an actor of 15 bytes"},
		{"no actor", func(c *raw) { c.actor = nil }, "an actor of 0 bytes"},
		{"a long actor among the others", func(c *raw) { c.actors[1] = append(c.actors[1], 0) }, "an actor of 17 bytes"},
		{"a sequence number of zero", func(c *raw) { c.seq = 0 }, "number 0, where number 2 follows"},
		{"a sequence number beyond 32 bits", func(c *raw) { c.seq += 1 << 32 }, "where number 2 follows"},
		{"a counter beyond 32 bits", func(c *raw) { c.start += 1 << 32 }, bound},
		{"a counter beyond all", func(c *raw) { c.start = 1<<64 - 1 }, bound},
		{"the earliest of all times", func(c *raw) { c.time = math.MinInt64 }, "time is out of bounds"},
		{"more dependencies than there may be", func(c *raw) { c.deps = ascending(maxDeps+1, 32) }, bound},
		{"more actors than there may be", func(c *raw) { c.actors = ascending(maxDeps+1, 16) }, bound},
		{"more columns than there are", func(c *raw) { c.column(0x94).data = []byte{1}; c.column(0xa5).data = []byte{1} }, bound},
		{"a column that is unknown", func(c *raw) { drop(columnInsert)(c); c.column(0xf7).data = []byte{1} }, canonical},
		{"a column twice", func(c *raw) { drop(columnInsert)(c); c.columns = append(c.columns, c.columns[len(c.columns)-1]) }, canonical},
		{"an empty column", func(c *raw) { c.column(columnInsert).data = nil }, canonical},
		{"columns in another order", func(c *raw) { c.columns[0], c.columns[1] = c.columns[1], c.columns[0] }, canonical},
		{"a compressed column", func(c *raw) { c.column(columnValue).spec |= 8 }, ""},
		{"a column that ends too late", func(c *raw) { col := &c.columns[len(c.columns)-1]; col.data, c.tail = append(col.data, 0), nil }, canonical},
		{"bytes after the columns", func(c *raw) { c.tail = []byte{0x7f} }, canonical},
		{"a key in a map", func(c *raw) {
			drop(columnKeyActor, columnKeyCounter)(c)
			c.column(0x15).data = []byte("\x04\x01k")
		}, ""},
		{"an empty key", func(c *raw) {
			drop(columnKeyActor, columnKeyCounter)(c)
			c.column(0x15).data = []byte("\x04\x00")
		}, ""},
		{"the root object", drop(columnObjectActor, columnObjectCounter), canonical},
		{"another object", column(columnObjectCounter, rawRun{4, []int64{2}}), canonical},
		{"an object of another actor", column(columnObjectActor, rawRun{4, []int64{0}}), canonical},
		{"a new text", column(columnAction, rawRun{4, []int64{4}}), "neither inserts nor deletes"},
		{"a new map", column(columnAction, rawRun{4, []int64{0}}), "neither inserts nor deletes"},
		{"an increment", column(columnAction, rawRun{4, []int64{5}}), "neither inserts nor deletes"},
		{"a mark", column(columnAction, rawRun{4, []int64{7}}), "neither inserts nor deletes"},
		{"an action that is null", column(columnAction, rawRun{0, []int64{4}}), "neither inserts nor deletes"},
		{"an action of the largest number", column(columnAction, rawRun{4, []int64{math.MinInt64}}), "neither inserts nor deletes"},
		{"characters that replace others", drop(columnInsert), canonical},
		{"a deletion that inserts", func(c *raw) { c.column(columnInsert).data = []byte{0, 4} }, canonical},
		{"an actor that it does not list", column(columnKeyActor, rawRun{4, []int64{9}}), "does not list"},
		{"an actor beyond the last that it lists", column(columnKeyActor, rawRun{4, []int64{3}}), "does not list"},
		{"an actor of the largest number", column(columnKeyActor, rawRun{4, []int64{-1}}), "does not list"},
		{"an element without an actor", column(columnKeyActor, rawRun{2, []int64{2}}, rawRun{0, []int64{2}}), ""},
		{"an element without a counter", drop(columnKeyCounter), ""},
		{"a counter below zero", column(columnKeyCounter, rawRun{4, []int64{-1}}), canonical},
		{"a counter that comes around", column(columnKeyCounter, rawRun{4, []int64{1 << 32}}), canonical},
		{"a counter of the lowest number", column(columnKeyCounter, rawRun{4, []int64{math.MinInt64}}), ""},
		{"no values", drop(columnValue, columnValueMeta), canonical},
		{"too few values", func(c *raw) { c.column(columnValue).data = []byte("a") }, canonical},
		{"too many values", func(c *raw) { c.column(columnValue).data = []byte("abc") }, canonical},
		{"bytes that are not UTF-8", func(c *raw) { c.column(columnValue).data = []byte("\xffb") }, canonical},
		{"a surrogate in UTF-8", func(c *raw) { c.column(columnValue).data = []byte("\xed\xa0\x80b") }, canonical},
		{"a character in too many bytes", func(c *raw) { c.column(columnValue).data = []byte("\xc1\xa1b") }, canonical},
		{"an insert without a predecessor count", drop(columnPredCount), canonical},
		{"deletions without predecessors", drop(columnPredCount, columnPredActor, columnPredCounter), canonical},
		{"a predecessor of another actor", column(columnPredActor, rawRun{2, []int64{0}}), canonical},
		{"a predecessor that is another element", column(columnPredCounter, rawRun{-2, []int64{2, 3}}), canonical},
		{"an operation without a column's row", func(c *raw) { c.column(columnObjectCounter).set([]rawRun{{3, []int64{1}}}) }, canonical},
		{"a run of more rows than operations", column(columnObjectCounter, rawRun{1 << 40, []int64{1}}), canonical},
		{"a run of more elements than operations", column(columnKeyCounter, rawRun{1 << 40, []int64{1}}), ""},
		{"a run of more single elements than operations", column(columnKeyCounter, rawRun{math.MinInt64, []int64{1}}), ""},
		{"a run of nulls without end", column(columnKeyActor, rawRun{0, []int64{-1}}), ""},
		{"runs of no nulls", column(columnKeyActor, slices.Repeat([]rawRun{{0, []int64{0}}}, 1000)...), ""},
		{"a run of actions without end", column(columnAction, rawRun{math.MaxInt64, []int64{1}}), "more operations"},
		{"single actions without end", column(columnAction, rawRun{math.MinInt64, []int64{1}}), "more operations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, m, next := couple(t)
			before := v.page.Record()
			hostile := rawOf(next)
			if !bytes.Equal(hostile.encode(), next) {
				t.Fatal("the honest change is written differently")
			}
			c.spoil(hostile)
			refused(t, v.page, hostile.encode(), m, sawAll, c.why)
			if !bytes.Equal(v.page.Record(), before) {
				t.Fatal("a refused change left something behind")
			}
			v.pull(t, m, next)
			v.agree(t)
		})
	}
	t.Run("a column that goes beyond the end", func(t *testing.T) {
		v, m, next := couple(t)
		whole := content(next)
		refused(t, v.page, chunk(whole[:len(whole)-1]), m, sawAll, "ends too early")
	})
	t.Run("one run written as two, and single values as runs", func(t *testing.T) {
		v, m, next := couple(t)
		for _, spec := range []uint64{columnObjectActor, columnObjectCounter, columnKeyActor, columnKeyCounter, columnAction, columnValueMeta, columnPredCount, columnPredActor, columnPredCounter} {
			hostile := rawOf(next)
			runs, ok := hostile.column(spec).runs()
			if !ok {
				t.Fatalf("column %x", spec)
			}
			var single []rawRun
			for _, r := range runs {
				for i := range max(r.n, -r.n) {
					single = append(single, rawRun{1, []int64{r.values[min(int(i), len(r.values)-1)]}})
				}
			}
			hostile.column(spec).set(single)
			refused(t, v.page, hostile.encode(), m, sawAll, canonical)
		}
		v.pull(t, m, next)
	})
	t.Run("a predecessor twice", func(t *testing.T) {
		v, m, next := couple(t)
		hostile := rawOf(next)
		count, _ := hostile.column(columnPredCount).runs()
		actor, _ := hostile.column(columnPredActor).runs()
		for i := range count {
			for k := range count[i].values {
				count[i].values[k] *= 2
			}
		}
		actor[0].n *= 2
		hostile.column(columnPredCount).set(count)
		hostile.column(columnPredActor).set(actor)
		hostile.column(columnPredCounter).set([]rawRun{{-4, []int64{3, 0, 1, 0}}})
		refused(t, v.page, hostile.encode(), m, sawAll, canonical)
	})
}

// ascending is n strings of a size in their order.
func ascending(n, size int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = append([]byte{byte(i >> 16), byte(i >> 8), byte(i)}, make([]byte, size-3)...)
	}
	return all
}

// TestOperationsAreCounted bounds the operations of a change before they are made.
func TestOperationsAreCounted(t *testing.T) {
	inserts := func(n int) []op { return slices.Repeat([]op{{char: 'x'}}, n) }
	deletions := func(n int) []op { return slices.Repeat([]op{{counter: 1, char: deleting}}, n) }
	for _, c := range []struct {
		name  string
		start uint32
		ops   []op
		ok    bool
	}{
		{"as many as there may be", 3 << 19, deletions(maxOps), true},
		{"one more", 3 << 19, deletions(maxOps + 1), false},
		{"up to the last counter", maxCounter - 3, inserts(3), true},
		{"beyond it", maxCounter - 3, inserts(4), false},
		{"deletions of all that two actors can have written", 10, deletions(18), true},
		{"of more", 10, deletions(19), false},
		{"and of what the change inserts", 10, append(inserts(5), deletions(23)...), true},
		{"and of more", 10, append(inserts(5), deletions(24)...), false},
	} {
		c2 := &change{actor: notebook.ActorID{1}, seq: 1, start: c.start, actors: []notebook.ActorID{firstActor}, ops: c.ops}
		if err := new(change).decode(encoded(c2), new(encoder)); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "more operations") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNoRoomForAnActor: actors have numbers of 16 bits on a page.
func TestNoRoomForAnActor(t *testing.T) {
	v, m, _ := couple(t)
	other := actor{author: notebook.Author{Device: notebook.DeviceID{9}}}
	for len(v.page.actors) < maxPageActors-1 {
		v.page.actors = append(v.page.actors, other)
	}
	w := notebook.Author{Device: notebook.DeviceID{3}, Class: notebook.Typed}
	c := &change{deps: []notebook.Hash{firstHash}, actor: w.Actor(m.epoch), seq: 1, start: 2, actors: []notebook.ActorID{firstActor}, ops: []op{{char: 'w'}}}
	if _, err := v.page.check(encoded(c), w, m.epoch, sawAll); err != nil {
		t.Fatalf("the last actor: %v", err)
	}
	v.page.actors = append(v.page.actors, other)
	if _, err := v.page.check(encoded(c), w, m.epoch, sawAll); !errors.Is(err, ErrFull) {
		t.Fatalf("one actor more than a page has numbers for: %v", err)
	}
}
