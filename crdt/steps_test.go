package crdt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"noted/notebook"
)

// crook is one actor of a hostile device: as many as it likes.
type crook struct {
	author notebook.Author
	epoch  notebook.Epoch
	seq    uint64
}

func crooks(n int) []*crook {
	all := make([]*crook, n)
	for i := range all {
		all[i] = &crook{
			author: notebook.Author{Device: notebook.DeviceID{byte(i / maxDeviceActors)}, Class: notebook.Agent, Label: fmt.Sprint("crook", i)},
			epoch:  notebook.Epoch{1},
		}
	}
	return all
}

// makes takes a change of ops on deps into the page, and returns its steps.
func (h *crook) makes(t testing.TB, p *Page, deps []notebook.Hash, start uint32, actors []notebook.ActorID, ops []op) (notebook.Hash, uint64) {
	t.Helper()
	h.seq++
	before := p.Steps()
	body := encoded(&change{deps: deps, actor: h.author.Actor(h.epoch), seq: h.seq, start: start, actors: actors, ops: ops})
	a, err := p.check(body, h.author, h.epoch, sawAll)
	must(t, err)
	p.take(a, h.seq)
	return ChangeHash(body), p.Steps() - before
}

// maxInsertSteps is what an insert may cost at most, wherever it goes: the runs
// of three leaves and the children of two ways through the tree, whose height is
// at most six where an element of a full page stands alone, and the moves of a
// split, of which sixteen inserts pay one.
const maxInsertSteps = 3*leafRuns + 2*6*nodeChild + leafRuns/2*maxRun/16 + opSteps + 8

// TestInsertIsBoundedWhereverItGoes lets colluding actors insert where it is
// dearest: at one place with falling names, and into the middle of each other's runs.
func TestInsertIsBoundedWhereverItGoes(t *testing.T) {
	const rounds = 300
	crowd := crooks(rounds)
	first := []notebook.ActorID{firstActor}
	root := []notebook.Hash{firstHash}
	t.Run("at one place", func(t *testing.T) {
		p := NewPage(notebook.PageID{7})
		most, total, ops := uint64(0), uint64(0), 0
		for _, h := range crowd {
			h.seq = 0
			list := make([]op, 200)
			for i := range list {
				list[i] = op{char: 'x'}
			}
			_, steps := h.makes(t, p, root, 2, first, list)
			most, total, ops = max(most, steps/uint64(len(list))), total+steps, ops+len(list)
		}
		t.Logf("steps per insert: %d on average, %d in the worst change", total/uint64(ops), most)
		if most > maxInsertSteps {
			t.Errorf("%d steps per insert, and %d are the most", most, maxInsertSteps)
		}
	})
	t.Run("into runs", func(t *testing.T) {
		p := NewPage(notebook.PageID{7})
		base := crooks(rounds + 1)[rounds]
		list := []op{{char: 'x'}}
		for i := range 100_000 {
			list = append(list, op{counter: uint32(2 + i), char: 'x'})
		}
		head, _ := base.makes(t, p, root, 2, first, list)
		baseActor := base.author.Actor(base.epoch)
		random := rand.New(rand.NewPCG(1, 2))
		most, total, ops := uint64(0), uint64(0), 0
		for _, h := range crowd {
			h.seq = 0
			list := make([]op, 200)
			for i := range list {
				list[i] = op{counter: uint32(2 + random.IntN(100_000)), actor: 0, char: 'y'}
			}
			actors := []notebook.ActorID{firstActor, baseActor}
			at := uint16(2)
			if string(baseActor[:]) < string(firstActor[:]) {
				actors[0], actors[1], at = baseActor, firstActor, 1
			}
			for i := range list {
				list[i].actor = at
			}
			_, steps := h.makes(t, p, []notebook.Hash{head}, 100_003, actors, list)
			most, total, ops = max(most, steps/uint64(len(list))), total+steps, ops+len(list)
		}
		t.Logf("steps per insert: %d on average, %d in the worst change", total/uint64(ops), most)
		if most > maxInsertSteps {
			t.Errorf("%d steps per insert, and %d are the most", most, maxInsertSteps)
		}
	})
}

// TestDeletionsByACrowdAreFollowedOnce: elements that were deleted by one actor
// each, and then by a whole crowd at the same time, have long chains that differ
// at their beginning. One more change of few bytes that deletes them all follows
// each deletion of the page once at most.
func TestDeletionsByACrowdAreFollowedOnce(t *testing.T) {
	const elements, crowd = 300, 300
	p := NewPage(notebook.PageID{7})
	all := crooks(1 + elements + crowd)
	list := []op{{char: 'x'}}
	for i := range elements - 1 {
		list = append(list, op{counter: uint32(2 + i), char: 'x'})
	}
	base := all[0].author.Actor(all[0].epoch)
	head, _ := all[0].makes(t, p, []notebook.Hash{firstHash}, 2, []notebook.ActorID{firstActor}, list)
	actors, at := []notebook.ActorID{firstActor, base}, uint16(2)
	if string(base[:]) < string(firstActor[:]) {
		actors[0], actors[1], at = base, firstActor, 1
	}
	deletes := func(h *crook, from, to int) uint64 {
		var ops []op
		for i := from; i < to; i++ {
			ops = append(ops, op{counter: uint32(2 + i), actor: at, char: deleting})
		}
		_, steps := h.makes(t, p, []notebook.Hash{head}, 2+elements, actors, ops)
		return steps
	}
	// The crowd deletes all, so all share one chain, which then differs at its end.
	for _, h := range all[1 : 1+crowd] {
		if steps := deletes(h, 0, elements); steps > uint64(elements*(leafRuns+2+shortChain+opSteps+2)+len(p.deletions)+len(p.changes)*4) {
			t.Fatalf("%d steps to delete %d elements of a page with %d deletions", steps, elements, len(p.deletions))
		}
	}
	for i, h := range all[1+crowd:] {
		deletes(h, i, i+1)
	}
	last := crooks(2 + elements + crowd)[1+elements+crowd]
	steps := deletes(last, 0, elements)
	plain := uint64(elements * crowd)
	t.Logf("%d steps, where each chain by itself takes %d; %d deletions", steps, plain, len(p.deletions))
	if steps >= plain {
		t.Errorf("%d steps, as if each chain were followed by itself", steps)
	}
	before := p.Steps()
	spans := make([]span, 0, elements)
	for r := range p.seq.each {
		spans = append(spans, span{run: *r, dead: true})
	}
	origin := p.origin(spans)
	if len(origin) != elements+crowd+1 {
		t.Errorf("%d authors of the deletions, want %d", len(origin), elements+crowd+1)
	}
	if steps := p.Steps() - before; steps >= plain {
		t.Errorf("%d steps to find who deleted", steps)
	}
}

// TestOldDependenciesWalkThePageOnce: a change that goes on from the middle of a
// long history costs one walk over it, and no more.
func TestOldDependenciesWalkThePageOnce(t *testing.T) {
	p := NewPage(notebook.PageID{7})
	all := crooks(200)
	first := []notebook.ActorID{firstActor}
	heads := make([]notebook.Hash, 0, 2000)
	head, start := firstHash, uint32(2)
	for range 2000 {
		head, _ = all[0].makes(t, p, []notebook.Hash{head}, start, first, []op{{char: 'x'}})
		heads = append(heads, head)
		start++
	}
	for i, h := range all[1:] {
		k := 10 * i
		_, steps := h.makes(t, p, []notebook.Hash{heads[k]}, uint32(k+3), first, []op{{char: 'y'}})
		if most := uint64(2*len(p.changes) + len(p.actors) + maxInsertSteps); steps > most {
			t.Fatalf("%d steps for a page of %d changes, and %d are the most", steps, len(p.changes), most)
		}
	}
}
