package crdt

import (
	"bytes"
	"errors"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"noted/notebook"
)

// TestLongHistory grows a page beyond what fits one node of its tree, by two
// replicas that write all over it, and holds it against automerge.
func TestLongHistory(t *testing.T) {
	a, b := newReplica(t, 1), newReplica(t, 2)
	random := rand.New(rand.NewSource(7))
	for range 60 {
		for _, r := range []*replica{a, b} {
			for range 1 + random.Intn(4) {
				r.edit(t, func(text editor) {
					n := text.Len()
					for range 40 {
						at := random.Intn(n + 1)
						del := min(n-at, random.Intn(3))
						insert := strings.Repeat("x", 1+random.Intn(4))
						must(t, text.Splice(at, del, insert))
						n += len(insert) - del
					}
				})
			}
		}
		for _, c := range b.made {
			a.pull(t, b, c)
		}
		for _, c := range a.made {
			b.pull(t, a, c)
		}
		a.agree(t)
		b.agree(t)
	}
	if len(a.page.seq.nodes) < 10 {
		t.Fatalf("the page's tree has %d nodes, which tests nothing", len(a.page.seq.nodes))
	}
	wholeTree(t, a.page)
	opened, err := OpenPage(a.page.id, a.page.Record())
	must(t, err)
	wholeTree(t, opened)
	samePage(t, opened, a.page)
	// The opened page goes on as well as the one that it was written from.
	body := b.edit(t, func(text editor) { must(t, text.Splice(text.Len()/2, 5, "goes on")) })
	arrival, err := opened.check(body, b.author, b.epoch, sawAll)
	must(t, err)
	opened.take(arrival, uint64(len(b.made)))
	a.pull(t, b, body)
	samePage(t, opened, a.page)
	if !bytes.Equal(opened.Record(), a.page.Record()) {
		t.Fatal("equal pages have different records")
	}
}

// wholeTree checks every promise of the tree.
func wholeTree(t testing.TB, p *Page) {
	t.Helper()
	s := &p.seq
	var order []int32
	var walk func(id int32, up int32) summary
	walk = func(id, up int32) summary {
		u := s.nodes[id]
		if u.up != up || u.n < 1 {
			t.Fatalf("node %d is below %d and says %d", id, up, u.up)
		}
		all := summary{low: highest}
		for j := range u.n {
			var below summary
			if u.bottom {
				lf := s.leaves[u.child[j]]
				if lf.up != id {
					t.Fatalf("leaf %d is below %d and says %d", u.child[j], id, lf.up)
				}
				order = append(order, u.child[j])
				below = s.summary(lf)
				for _, r := range lf.runs[:lf.n] {
					for k := range int32(r.n) {
						if s.leafOf[r.op+k] != u.child[j] {
							t.Fatalf("operation %d is in leaf %d and known in %d", r.op+k, u.child[j], s.leafOf[r.op+k])
						}
						if got := p.operation(name{r.counter + uint32(k), r.actor}); got != r.op+k {
							t.Fatalf("operation %d is named as %d", r.op+k, got)
						}
					}
				}
			} else {
				below = walk(u.child[j], id)
			}
			if below != u.below[j] {
				t.Fatalf("entry %d of node %d says %v, below it is %v", j, id, u.below[j], below)
			}
			if s.less(below.low, all.low) {
				all.low = below.low
			}
			all.visible += below.visible
		}
		return all
	}
	if all := walk(s.root, -1); int(all.visible) != p.Len() {
		t.Fatalf("the tree counts %d characters of %d", all.visible, p.Len())
	}
	var linked []int32
	for l := int32(0); l >= 0; l = s.leaves[l].next {
		linked = append(linked, l)
	}
	if !slices.Equal(order, linked) || len(order) != len(s.leaves) {
		t.Fatalf("the leaves are in the order %v and linked as %v", order, linked)
	}
}

// TestClocks compares the causal past that is found by clocks with the one that
// is found by following dependencies.
func TestClocks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		group := []*replica{newReplica(t, 1), newReplica(t, 2), newReplica(t, 3)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			r := group[rapid.IntRange(0, 2).Draw(rt, "who")]
			if from := rapid.IntRange(0, 4).Draw(rt, "from"); from < 3 && group[from] != r {
				pullAll(t, r, group[from], group)
				continue
			}
			r.edit(t, func(text editor) { must(t, text.Insert(0, "x")) })
		}
		p := group[0].page
		for _, r := range group[1:] {
			pullAll(t, group[0], r, group)
		}
		for k := range p.changes {
			ancestors := map[int32]bool{}
			var visit func(k int32)
			visit = func(k int32) {
				if !ancestors[k] {
					ancestors[k] = true
					c := &p.changes[k]
					for _, d := range p.deps[c.deps : c.deps+c.depCount] {
						visit(d)
					}
				}
			}
			visit(int32(k))
			for _, forget := range []bool{false, true} {
				if forget {
					clear(p.lanes)
					p.laneOrder = nil
				}
				past := p.pastOf([]int32{int32(k)})
				for j := range p.changes {
					if past.hasChange(&p.changes[j]) != ancestors[int32(j)] {
						t.Fatalf("change %d in the past of %d: %v, want %v", j, k, !ancestors[int32(j)], ancestors[int32(j)])
					}
				}
			}
		}
	})
}

// pullAll takes what from has, of whomever.
func pullAll(t testing.TB, r, from *replica, group []*replica) {
	t.Helper()
	for k := 1; k < len(from.page.changes); k++ {
		h := from.page.changes[k].hash
		if r.page.lookup(h) >= 0 {
			continue
		}
		for _, g := range group {
			for _, c := range g.made {
				if ChangeHash(c) == h {
					r.pull(t, g, c)
				}
			}
		}
	}
}

// TestColludingInserts is two changes of many inserts at one place, such that a
// plain walk over the later ones would take the product of both.
func TestColludingInserts(t *testing.T) {
	const n = 200_000
	a, b := newReplica(t, 1), newReplica(t, 2)
	if x, y := a.author.Actor(a.epoch), b.author.Actor(b.epoch); bytes.Compare(x[:], y[:]) < 0 {
		a, b = b, a // the one with the higher actor comes first
	}
	p := NewPage(a.page.id)
	began := time.Now()
	for i, r := range []*replica{a, b} {
		c := &change{deps: []notebook.Hash{firstHash}, actor: r.author.Actor(r.epoch), seq: 1, start: 2, actors: []notebook.ActorID{firstActor}}
		for range n {
			c.ops = append(c.ops, op{char: rune('a' + i)})
		}
		arrival, err := p.check(encoded(c), r.author, r.epoch, sawAll)
		must(t, err)
		p.take(arrival, 1)
	}
	if took := time.Since(began); took > time.Minute {
		t.Fatalf("it took %v", took)
	}
	if p.Len() != 2*n || !strings.HasPrefix(p.Text(), "abab") {
		t.Fatalf("%d characters: %.20q", p.Len(), p.Text())
	}
	wholeTree(t, p)
}

// TestFullPage fills a page: what does not fit any more is told to wait, and is not void.
func TestFullPage(t *testing.T) {
	p := NewPage(notebook.PageID{7})
	author := notebook.Author{Device: notebook.DeviceID{1}, Class: notebook.Agent}
	write := func(label string, n int) error {
		author := author
		author.Label = label
		epoch := notebook.Epoch{1}
		c := &change{deps: []notebook.Hash{firstHash}, actor: author.Actor(epoch), seq: 1, start: 2, actors: []notebook.ActorID{firstActor}}
		for range n {
			c.ops = append(c.ops, op{char: 'x'})
		}
		arrival, err := p.check(encoded(c), author, epoch, sawAll)
		if err == nil {
			p.take(arrival, 1)
		}
		return err
	}
	label := func(i int) string { return strings.Repeat("a", i%90) + string(rune('a'+i/90)) }
	for i := range maxDeviceActors {
		must(t, write(label(i), 1))
	}
	own := author
	own.Label = "one more"
	if has, then := p.Actors(own, notebook.Epoch{1}); has != maxDeviceActors || then != has+1 {
		t.Fatalf("the device has %d actors, and would have %d", has, then)
	}
	c := &change{deps: []notebook.Hash{firstHash}, actor: own.Actor(notebook.Epoch{1}), seq: 1, start: 2, actors: []notebook.ActorID{firstActor}, ops: []op{{char: 'x'}}}
	if err := p.Admits(encoded(c), own, notebook.Epoch{1}); !errors.Is(err, ErrFull) {
		t.Fatalf("one own actor more than allowed: %v", err)
	}
	own.Label = label(7)
	if has, then := p.Actors(own, notebook.Epoch{1}); has != then {
		t.Fatalf("an actor that is there counts twice: %d, %d", has, then)
	}
	p.actors = append(p.actors, make([]actor, maxPageActors-len(p.actors))...)
	if err := write("one more", 1); !errors.Is(err, ErrFull) {
		t.Fatalf("one actor more than a page keeps: %v", err)
	}
	p = NewPage(notebook.PageID{7})
	author.Device = notebook.DeviceID{2}
	must(t, write("another device", 1_000_000))
	must(t, write("and", 1_000_000))
	must(t, write("again", 1_000_000))
	must(t, write("and again", 1_000_000))
	if err := write("too much", 1_000_000); !errors.Is(err, ErrFull) {
		t.Fatalf("more operations than a page keeps: %v", err)
	}
	must(t, write("little", 10))
	reopened, err := OpenPage(p.id, p.Record())
	must(t, err)
	if has, _ := reopened.Actors(author, notebook.Epoch{1}); has != 5 {
		t.Fatalf("the page that was opened again has %d actors of the device", has)
	}
}

// TestAdmitsHoldsOwnEditsToTheSize: a page that others have made as large as
// can be takes theirs and not ours, until it is smaller.
func TestAdmitsHoldsOwnEditsToTheSize(t *testing.T) {
	p := NewPage(notebook.PageID{7})
	author, epoch := notebook.Author{Device: notebook.DeviceID{1}, Class: notebook.Typed}, notebook.Epoch{1}
	c := &change{deps: []notebook.Hash{firstHash}, actor: author.Actor(epoch), seq: 1, start: 2, actors: []notebook.ActorID{firstActor}}
	for range notebook.MaxBody / 4 {
		c.ops = append(c.ops, op{char: '😀'})
	}
	body := encoded(c)
	must(t, p.Admits(body, author, epoch))
	a, err := p.check(body, author, epoch, sawAll)
	must(t, err)
	p.take(a, 1)

	next := &change{deps: []notebook.Hash{ChangeHash(body)}, actor: c.actor, seq: 2, start: 2 + uint32(len(c.ops)), actors: c.actors}
	next.ops = []op{{char: 'x'}}
	var e *notebook.Error
	if err := p.Admits(encoded(next), author, epoch); !errors.As(err, &e) || !strings.Contains(e.Message, "larger") {
		t.Errorf("an own edit beyond the size: %v", err)
	}
	if _, err := p.check(encoded(next), author, epoch, sawAll); err != nil {
		t.Errorf("the same from elsewhere: %v", err)
	}
	next.ops = []op{{char: 'x'}, {counter: 2, char: deleting}, {counter: next.start, char: deleting}}
	must(t, p.Admits(encoded(next), author, epoch))
}

// TestRecordIsStrict cuts and changes a record: it is an error or another page,
// never a panic.
func TestRecordIsStrict(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello, 漢字\n")
	m.pull(v)
	m.as(notebook.Agent, "helper", "hello", "hallo")
	v.types("hello", "")
	v.change(notebook.Author{Device: v.signer.Device(), Class: notebook.Moved, Source: notebook.Source{Device: m.signer.Device(), Class: notebook.Import, Label: "x"}}, []notebook.Splice{{Insert: "moved"}})
	sync(v, m)
	record := v.page.Record()
	opened, err := OpenPage(storyPage, record)
	must(t, err)
	samePage(t, opened, v.page)
	if !bytes.Equal(opened.Record(), record) {
		t.Fatal("a record is written differently the second time")
	}
	for i := range record {
		if _, err := OpenPage(storyPage, record[:i]); err == nil {
			t.Errorf("a record cut at byte %d of %d was read", i, len(record))
		}
	}
	if _, err := OpenPage(storyPage, append(slices.Clone(record), 0)); err == nil {
		t.Error("a record with a byte more was read")
	}
	if _, err := OpenPage(notebook.PageID{1}, record); err == nil {
		t.Error("another page's record was read")
	}
	twice, err := OpenPage(storyPage, record)
	must(t, err)
	lf := twice.seq.leaves[0]
	lf.runs[lf.n] = lf.runs[0]
	lf.n++
	if _, err := OpenPage(storyPage, twice.Record()); err == nil {
		t.Error("a record with an element twice was read")
	}
	future := slices.Clone(record)
	future[0]++
	if _, err := OpenPage(storyPage, future); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a record of a later version: %v", err)
	}
}

// FuzzOpenPage gives damaged records to the store's reader.
func FuzzOpenPage(f *testing.F) {
	a, b := newReplica(f, 1), newReplica(f, 2)
	f.Add(a.page.Record())
	b.pull(f, a, a.edit(f, func(text editor) { must(f, text.Insert(0, "hello")) }))
	a.edit(f, func(text editor) { must(f, text.Splice(1, 3, "ipp")) })
	f.Add(a.page.Record())
	a.pull(f, b, b.edit(f, func(text editor) { must(f, text.Splice(0, 3, "漢")) }))
	f.Add(a.page.Record())
	f.Fuzz(func(t *testing.T, record []byte) {
		p, err := OpenPage(a.page.id, record)
		if err != nil {
			return
		}
		wholeTree(t, p)
		text := p.Text()
		if again, err := p.TextAt(p.Revision()); err != nil || again != text {
			t.Fatalf("%q at its own revision is %q: %v", text, again, err)
		}
		if _, err := p.Fences(); err != nil {
			t.Logf("no fences: %v", err)
		}
		if _, err := OpenPage(p.id, p.Record()); err != nil {
			t.Fatalf("what was read and written again is refused: %v", err)
		}
	})
}

// TestRecordDoesNotDependOnTheWay: a page that was closed and opened between
// its changes is cut into runs in another way than one that was made at once, and
// both are kept as the same bytes.
func TestRecordDoesNotDependOnTheWay(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", strings.Repeat("a line of a long page\n", 1000))
	m.pull(v)
	for n := 1; n <= 40; n++ {
		at := (n * 7919) % v.page.Len()
		v.typesAt(v.page.Revision(), notebook.Splice{At: at, Delete: min(n*13%700, v.page.Len()-at), Insert: strings.Repeat("x", n*31%600)})
		m.pull(v)
		opened, err := OpenPage(m.page.ID(), m.page.Record())
		must(t, err)
		m.page, m.writer = opened, nil
		if !bytes.Equal(v.page.Record(), m.page.Record()) {
			t.Fatalf("after %d edits the records differ", n)
		}
	}
}
