package trust

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// walk is what within does, without jumps.
func walk(c *chain, seq uint64, t *chain) uint64 {
	for c != t {
		if c.parent == nil {
			return 0
		}
		c, seq = c.parent, c.base.Position.Seq
	}
	return seq
}

func TestAncestorsAreFoundOverJumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var chains []*chain
		for i := range rapid.IntRange(1, 200).Draw(t, "chains") {
			var parent *chain
			var base notebook.Head
			if i > 0 && rapid.IntRange(0, 50).Draw(t, "root") > 0 {
				// Mostly one long line, as of a device that restarts, with some branches.
				parent = chains[max(0, i-rapid.SampledFrom([]int{1, 1, 1, 1, 2, 7, 50}).Draw(t, "back"))]
				base.Position = notebook.Position{Epoch: parent.id.epoch, Seq: rapid.Uint64Range(1, 9).Draw(t, "at")}
			}
			chains = append(chains, newChain(chainID{epochID: epochID{epoch: epochOf("x", i)}}, 1, base, parent))
		}
		pick := rapid.SampledFrom(chains)
		for range 50 {
			c, target := pick.Draw(t, "chain"), pick.Draw(t, "ancestor")
			if got, want := c.within(5, target), walk(c, 5, target); got != want {
				t.Fatalf("within is %d, walking gives %d", got, want)
			}
		}
	})
}

func TestDeepTreesAreCheap(t *testing.T) {
	root := newChain(chainID{epochID: epochID{epoch: epochOf("x", 0)}}, 1, notebook.Head{}, nil)
	c := root
	for i := range 10_000 {
		c = newChain(chainID{epochID: epochID{epoch: epochOf("x", i+1)}}, 1, notebook.Head{Position: notebook.Position{Seq: 1}}, c)
	}
	steps := 0
	for at := c; at.depth > 1; steps++ {
		if at.jump.depth > 0 {
			at = at.jump
		} else {
			at = at.parent
		}
	}
	if steps > 60 {
		t.Errorf("%d steps to the root of 10,000 epochs", steps)
	}
}

func TestVectorHoldsLeavesOnly(t *testing.T) {
	a := newChain(chainID{epochID: epochID{epoch: epochOf("x", 1)}}, 1, notebook.Head{}, nil)
	b := newChain(chainID{epochID: epochID{epoch: epochOf("x", 2)}}, 1, notebook.Head{Position: notebook.Position{Epoch: a.id.epoch, Seq: 5}}, a)
	before := new(vector).with([]mark{{a, 4}})
	after := before.with([]mark{{b, 1}})
	if n := len(after.devices[0].leaves); n != 1 || !after.saw(a, 5) || after.saw(a, 6) {
		t.Errorf("%d leaves", n)
	}
	if before.saw(b, 1) || before.saw(a, 5) {
		t.Error("a vector changed")
	}
	beside := after.with([]mark{{a, 7}})
	if n := len(beside.devices[0].leaves); n != 2 || !beside.saw(a, 7) || !beside.saw(b, 1) {
		t.Errorf("%d leaves", n)
	}
	if again := beside.with([]mark{{a, 6}, {b, 1}}); again != beside {
		t.Error("what is seen already makes a new vector")
	}
}

// A log whose store cannot look entries up says so, and believes nothing.
func TestRecallIsNeeded(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	p1 := phone.writes("p1")
	tablet.pull(phone)
	old := tablet.writes("rests on p1")
	phone.writes("p2")
	laptop.pull(phone)
	laptop.restarts(2)
	laptop.log.Recall(func(notebook.Place) (notebook.Entry, bool) { return notebook.Entry{}, false })
	if vs, err := laptop.log.Take(notebook.DeviceID{}, []notebook.Entry{old.Entry()}); len(vs) != 0 || !errors.Is(err, ErrRecall) {
		t.Errorf("took %d, %v", len(vs), err)
	}
	laptop.log.Recall(laptop.look)
	if vs := laptop.takes(old.Entry(), p1.Entry()); len(vs) != 1 {
		t.Errorf("took %d", len(vs))
	}
}

func TestHashesAreForgottenOnceTheyCanBeLookedUp(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	for i := range 3 * keepHashes {
		phone.writes(fmt.Sprint(i))
	}
	laptop.pull(phone)
	laptop.log.Flush()
	c := phone.log.forest.find(chainID{epochID: epochID{phone.id(), phone.epoch}})
	if n := len(c.recent); n > 2*keepHashes {
		t.Errorf("%d hashes are kept", n)
	}
	early := phone.entries[5]
	if vs, err := phone.take(early); len(vs) != 0 || err != nil {
		t.Errorf("a duplicate of long ago: %d, %v", len(vs), err)
	}
}

func TestCoversIgnoresWhatItDoesNotKnow(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	laptop.writes("2")
	laptop.writes("3")
	heads := laptop.log.Heads()
	at := func(seq uint64) notebook.Position {
		return notebook.Position{Device: laptop.id(), Epoch: laptop.epoch, Seq: seq}
	}
	change := func(f func(*notebook.Head)) []notebook.Head {
		h := heads[0]
		f(&h)
		return []notebook.Head{h}
	}
	for _, c := range []struct {
		name string
		have []notebook.Head
		want uint64
	}{
		{"nothing", nil, 0},
		{"the tip", heads, 3},
		{"an earlier one", change(func(h *notebook.Head) { h.Position.Seq, h.Hash = 2, laptop.entries[1].Hash() }), 2},
		{"further along", change(func(h *notebook.Head) { h.Position.Seq = 9 }), 3},
		{"an unknown epoch", change(func(h *notebook.Head) { h.Position.Epoch[0] ^= 1 }), 0},
		{"an unknown device", change(func(h *notebook.Head) { h.Position.Device[0] ^= 1 }), 0},
		{"another hash at the tip", change(func(h *notebook.Head) { h.Hash[0] ^= 1 }), 0},
		{"another hash before", change(func(h *notebook.Head) { h.Position.Seq = 1 }), 0},
		{"place 0", change(func(h *notebook.Head) { h.Position.Seq = 0 }), 0},
	} {
		covered := laptop.log.Covers(c.have)
		for seq := range uint64(5) {
			if got := covered(notebook.Place{Position: at(seq)}); got != (seq > 0 && seq <= c.want) && seq > 0 {
				t.Errorf("%s: entry %d covered: %v", c.name, seq, got)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	laptop := newDev(b, "laptop").found()
	phone := laptop.invite(newDev(b, "phone"))
	records := laptop.backup().records
	for range 1000 {
		phone.writes("text of about the size of a few keystrokes")
	}
	entries := phone.missing(laptop.log.Heads())
	for b.Loop() {
		l, err := OpenLog(laptop.id(), sorted(records))
		if err != nil {
			b.Fatal(err)
		}
		if vs, err := l.Take(notebook.DeviceID{}, entries); len(vs) != len(entries) || err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/entry")
}

func TestStretchesAreOfAllChains(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	laptop.writes("2")
	laptop.restarts(2)
	laptop.writes("in the next epoch")
	all := laptop.log.Stretches()
	if len(all) != 2 || all[0].Tip.Compare(all[1].Tip) >= 0 || all[0].Tip.Position.Seq+all[1].Tip.Position.Seq != 3 || len(laptop.log.Heads()) != 1 {
		t.Errorf("stretches %v, heads %v", all, laptop.log.Heads())
	}
}
