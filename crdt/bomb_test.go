package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// hand writes changes of one actor, without a document.
type hand struct {
	author notebook.Author
	epoch  notebook.Epoch
	seq    uint64
}

// newHand is a hand of a device, as many as there are labels.
func newHand(device byte, n int) *hand {
	return &hand{author: notebook.Author{Device: notebook.DeviceID{device}, Class: notebook.Agent, Label: fmt.Sprintf("agent%d", n)}, epoch: notebook.Epoch{device}}
}

// on is a change on top of others of a page, with the actors that it may name.
func (h *hand) on(p *Page, deps []int32, others ...*hand) *change {
	c := &change{actor: h.author.Actor(h.epoch), seq: h.seq + 1, actors: []notebook.ActorID{firstActor}}
	for _, k := range deps {
		c.deps = append(c.deps, p.changes[k].hash)
		c.start = max(c.start, p.changes[k].last()+1)
	}
	slices.SortFunc(c.deps, compareHashes)
	for _, o := range others {
		c.actors = append(c.actors, o.author.Actor(o.epoch))
	}
	slices.SortFunc(c.actors, func(a, b notebook.ActorID) int { return bytes.Compare(a[:], b[:]) })
	return c
}

// of is the number of another hand in a change.
func (h *hand) of(c *change) uint16 {
	return uint16(slices.Index(c.actors, h.author.Actor(h.epoch)) + 1)
}

func (h *hand) takes(t testing.TB, p *Page, body []byte) {
	t.Helper()
	a, err := p.check(body, h.author, h.epoch, sawAll)
	must(t, err)
	h.seq++
	p.take(a, h.seq)
}

// types puts n characters at the beginning of a page.
func (h *hand) types(t testing.TB, p *Page, deps []int32, n int) {
	t.Helper()
	c := h.on(p, deps)
	c.ops = make([]op, n)
	for i := range c.ops {
		c.ops[i].char = 'x'
		if i > 0 {
			c.ops[i].counter = c.start + uint32(i-1)
		}
	}
	h.takes(t, p, encoded(c))
}

// deletions deletes n elements of an actor, each step after the one before.
func (h *hand) deletions(c *change, from uint32, n int, step uint32) {
	actor := h.of(c)
	for i := range n {
		c.ops = append(c.ops, op{counter: from + uint32(i)*step, actor: actor, char: deleting})
	}
}

// costs runs what a bomb sets off, away from the test: it has to come to an end.
func costs(t testing.TB, f func()) (took time.Duration, grew uint64) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		f()
		took = time.Since(began)
		runtime.ReadMemStats(&after)
		grew = after.TotalAlloc - before.TotalAlloc
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it does not come to an end")
	}
	return took, grew
}

// pageOf is a page on which a hand has typed n characters.
func pageOf(t testing.TB, n int) (*Page, *hand) {
	t.Helper()
	p, h := NewPage(notebook.PageID{7}), newHand(1, 0)
	h.types(t, p, []int32{0}, n)
	return p, h
}

// TestSmallBombs are changes of a few bytes, and large ones that say nothing,
// against a page of a few characters. None costs more than its own size.
func TestSmallBombs(t *testing.T) {
	p, h := pageOf(t, 5)
	before := p.Record()
	honest := h.on(p, []int32{1})
	honest.ops = []op{{char: 'a'}, {counter: 2, char: deleting}}
	written := func(spoil func(*raw)) []byte {
		c := rawOf(encoded(honest))
		spoil(c)
		return c.encode()
	}
	runs := func(n int64, action int64, values int) []byte {
		return written(func(c *raw) {
			for _, spec := range []uint64{columnObjectActor, columnObjectCounter, columnKeyActor, columnKeyCounter, columnAction, columnValueMeta, columnPredCount} {
				r, _ := c.column(spec).runs()
				c.column(spec).set([]rawRun{{n, r[0].values[:1]}})
			}
			c.column(columnAction).set([]rawRun{{n, []int64{action}}})
			c.column(columnValue).data = bytes.Repeat([]byte("x"), values)
		})
	}
	for _, b := range []struct {
		name string
		body []byte
		why  string
	}{
		{"a hundred million inserts", runs(100_000_000, actionSet, 1), "more operations"},
		{"all inserts that there can be", runs(math.MaxInt64, actionSet, 1), "more operations"},
		{"inserts for a few bytes", runs(maxOps, actionSet, 100), "more operations"},
		{"two million deletions", runs(2_000_000, actionDelete, 0), "more operations"},
		{"a hundred thousand deletions", runs(100_000, actionDelete, 0), "more operations"},
		{"a column that nobody knows, of numbers without end", written(func(c *raw) {
			c.column(columnKeyActor).spec, c.column(columnKeyActor).data = 1<<64-1, bytes.Repeat([]byte{0xff}, 1<<20)
		}), ""},
		{"keys of numbers without end", written(func(c *raw) { c.column(columnKeyActor).data = bytes.Repeat([]byte{0xff}, 1<<20) }), ""},
		{"numbers of the largest size", chunk(bytes.Repeat([]byte{0xff}, maxChunk-64)), "malformed"},
		{"four billion dependencies", chunk(append(appendUleb(nil, 1<<32), 1, 2, 3)), "out of bounds"},
		{"as many dependencies as bytes", chunk(append(appendUleb(nil, maxDeps), make([]byte, 64)...)), "ends too early"},
		{"a long message", written(func(c *raw) { c.message = make([]byte, 1<<20) }), "message"},
		{"an actor of a mebibyte", written(func(c *raw) { c.actor = make([]byte, 1<<20) }), "an actor of 1048576 bytes"},
		{"a compressed change", typed(append(encoded(honest), make([]byte, 1<<20)...), 2), "chunk of type 2"},
		{"a document", typed(append(encoded(honest), make([]byte, 1<<20)...), 0), "chunk of type 0"},
		{"a sync message that divides by zero", []byte{0x42, 0, 0, 1, 0, 3, 1, 0, 1, 0}, "not an automerge change"},
		{"larger than any", chunk(make([]byte, maxChunk)), "bytes where at most"},
		{"ten thousand runs of no nulls", written(func(c *raw) { c.column(columnKeyActor).set(slices.Repeat([]rawRun{{0, []int64{0}}}, 10_000)) }), ""},
		{"ten thousand runs of one", written(func(c *raw) { c.column(columnAction).set(slices.Repeat([]rawRun{{1, []int64{1}}}, 10_000)) }), "more operations"},
	} {
		var err error
		_, grew := costs(t, func() { _, err = p.check(b.body, h.author, h.epoch, sawAll) })
		var void *trust.Void
		if !errors.As(err, &void) || !strings.Contains(void.Reason, b.why) {
			t.Errorf("%s: %v", b.name, err)
		}
		if most := uint64(len(b.body) + 64<<10); grew > most && !raceDetector {
			t.Errorf("%s: %d bytes were allocated for a change of %d", b.name, grew, len(b.body))
		}
	}
	if !bytes.Equal(p.Record(), before) {
		t.Fatal("a refused change left something behind")
	}
	h.takes(t, p, encoded(honest))
}

// TestBombs are changes that cost what they do because of the page, which is as
// large as a page can be: each has a bound that holds whatever the change says.
// Run with -v it says what each costs; docs/security.md has the numbers.
func TestBombs(t *testing.T) {
	size := notebook.MaxBody
	if testing.Short() {
		size /= 8
	}
	reader := newHand(2, 0)
	// Each returns a hostile change with its author, and why it is refused, if it is.
	for _, b := range []struct {
		name string
		most uint64 // mebibytes allocated by the gate, and by the page if it takes the change
		make func(t *testing.T) (p *Page, by *hand, c *change, why string)
	}{
		{"deletions of one element", 64, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, size)
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, size, 0)
			return p, reader, c, "twice"
		}},
		{"deletions of all elements", 96, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, size)
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, size, 1)
			return p, reader, c, ""
		}},
		{"deletions of every second element", 128, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, size)
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, size/2, 2)
			return p, reader, c, ""
		}},
		{"deletions of all, again", 96, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, size)
			h := newHand(3, 0)
			other := h.on(p, []int32{1}, v)
			v.deletions(other, 2, size, 1)
			h.takes(t, p, encoded(other))
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, size, 1)
			return p, reader, c, ""
		}},
		{"deletions of elements that a thousand deleted", 8, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, 2000)
			for i := range 1000 {
				h := newHand(3, i)
				c := h.on(p, []int32{1}, v)
				v.deletions(c, 2, 2000, 1)
				h.takes(t, p, encoded(c))
			}
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, 2000, 1)
			return p, reader, c, ""
		}},
		{"deletions of elements that hundreds deleted in different ways", 16, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, 2000)
			random := rand.New(rand.NewSource(1))
			for i := range 300 {
				h := newHand(3, i)
				c := h.on(p, []int32{1}, v)
				v.deletions(c, 2, 2000, 1)
				c.ops = slices.DeleteFunc(c.ops, func(op) bool { return random.Intn(2) == 0 })
				h.takes(t, p, encoded(c))
			}
			c := reader.on(p, []int32{1}, v)
			v.deletions(c, 2, 2000, 1)
			return p, reader, c, ""
		}},
		{"a mebibyte of inserts with one that cannot be at the end", 64, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, 1)
			c := v.on(p, []int32{1})
			c.ops = slices.Repeat([]op{{char: 'x'}}, maxChunk-400)
			c.ops[len(c.ops)-1].counter = 1 << 30
			return p, v, c, "cannot know"
		}},
		{"a change on all heads of four thousand", 4, func(t *testing.T) (*Page, *hand, *change, string) {
			p, heads := headsOf(t, maxDeviceActors)
			c := reader.on(p, heads)
			c.ops = []op{{char: 'x'}}
			return p, reader, c, ""
		}},
		{"a change on all of them but one", 4, func(t *testing.T) (*Page, *hand, *change, string) {
			p, heads := headsOf(t, maxDeviceActors)
			c := reader.on(p, heads[1:])
			c.ops = []op{{char: 'x'}}
			return p, reader, c, ""
		}},
		{"a change on the middle of a long history", 16, func(t *testing.T) (*Page, *hand, *change, string) {
			p, v := pageOf(t, 1)
			for i := range 100_000 {
				v.types(t, p, []int32{int32(i + 1)}, 1)
			}
			c := reader.on(p, []int32{50_000})
			c.ops = []op{{char: 'x'}}
			return p, reader, c, ""
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			p, by, c, why := b.make(t)
			body := encoded(c)
			var a *arrival
			var err error
			took, grew := costs(t, func() { a, err = p.check(body, by.author, by.epoch, sawAll) })
			if why != "" {
				var void *trust.Void
				if !errors.As(err, &void) || !strings.Contains(void.Reason, why) {
					t.Errorf("the gate says %v, want void because of %q", err, why)
				}
			} else if err != nil {
				t.Error(err)
			}
			var more time.Duration
			if a != nil {
				var g uint64
				more, g = costs(t, func() { p.take(a, 1) })
				grew += g
			}
			t.Logf("%d bytes: gate %.1f ms, page %.1f ms, %d MiB", len(body), ms(took), ms(more), grew>>20)
			if grew > b.most<<20 && !raceDetector {
				t.Errorf("%d MiB were allocated, at most %d are allowed", grew>>20, b.most)
			}
		})
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// headsOf is a page with n heads, each of another actor.
func headsOf(t testing.TB, n int) (p *Page, heads []int32) {
	t.Helper()
	p = NewPage(notebook.PageID{7})
	for i := range n {
		newHand(1, i).types(t, p, []int32{0}, 1)
		heads = append(heads, int32(i+1))
	}
	return p, heads
}
