package trust

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"noted/notebook"
)

// noSeq is further along a chain than any entry can be.
const noSeq = math.MaxUint64

// epochID names all that a device signed in one epoch.
type epochID struct {
	device notebook.DeviceID
	epoch  notebook.Epoch
}

func epochOfPosition(p notebook.Position) epochID { return epochID{p.Device, p.Epoch} }

// chainID names one chain. The fork is zero for the one that an epoch had
// first here, and for a branch beside it the hash of the branch's first entry.
type chainID struct {
	epochID
	fork notebook.Hash
}

func chainOf(p notebook.Place) chainID { return chainID{epochOfPosition(p.Position), p.Fork} }

// chain is one device's log in one epoch, or a branch of it. The chains of a
// device form a tree: each but the first continues another at some entry. An
// honest epoch is one chain; where a device signed two histories, the one that
// came later continues the other at the last entry that they share.
type chain struct {
	// Set when the chain is made, and read by every past that shares it.
	id     chainID
	from   uint64        // its first entry: 1, or later for a branch
	base   notebook.Head // the entry that the chain continues; zero for a root
	parent *chain        // the chain of base
	jump   *chain        // an ancestor far up, so that any is found in logarithmic time
	depth  int

	// lost is the first entry that is void because another history of its device
	// stands; noSeq if there is none. Guarded by the forest's lock; only the log
	// that owns the chain writes it, and only ever lowers it.
	lost uint64

	// The tip. Only the log that owns the chain reads and writes these.
	last      uint64
	seen      *vector
	steps     []*vector       // of every rewindStep-th entry, once one was asked for
	continued uint64          // the furthest entry that another chain continues
	recent    []notebook.Hash // hashes of the newest entries, the tip's last
	changed   bool            // since the last flush
}

func newChain(id chainID, from uint64, base notebook.Head, parent *chain) *chain {
	c := &chain{id: id, from: from, base: base, parent: parent, lost: noSeq}
	if parent == nil {
		c.jump = c
		return c
	}
	c.depth = parent.depth + 1
	// Jumps as in a skew-binary list: two of the same length join into one.
	c.jump = parent
	if j := parent.jump; parent.depth-j.depth == j.depth-j.jump.depth {
		c.jump = j.jump
	}
	return c
}

// place is where the entry seq of c is kept.
func (c *chain) place(seq uint64) notebook.Place {
	return notebook.Place{Position: notebook.Position{Device: c.id.device, Epoch: c.id.epoch, Seq: seq}, Fork: c.id.fork}
}

// has reports whether the entry seq of the epoch is one of c.
func (c *chain) has(seq uint64) bool { return c.from <= seq && seq <= c.last }

func (c *chain) tip() notebook.Head {
	return notebook.Head{Position: c.place(c.last).Position, Hash: c.recent[len(c.recent)-1]}
}

// isLeaf reports whether nothing continues the tip of c.
func (c *chain) isLeaf() bool { return c.last > c.continued }

// within returns how far into t somebody has come who has c up to seq: 0 if t
// is neither c nor continued by it.
func (c *chain) within(seq uint64, t *chain) uint64 {
	if c == t {
		return seq
	}
	if c.depth <= t.depth {
		return 0
	}
	for c.depth > t.depth+1 {
		if c.jump.depth > t.depth {
			c = c.jump
		} else {
			c = c.parent
		}
	}
	if c.parent != t {
		return 0
	}
	return c.base.Position.Seq
}

// forest finds chains by their name. Pasts share it across goroutines, so it
// has a lock; what it holds is never taken out again.
type forest struct {
	mu      sync.RWMutex
	chains  map[chainID]*chain
	epochs  map[epochID][]*chain // the one that came first, then its branches
	devices map[notebook.DeviceID][]*chain
}

func newForest() *forest {
	return &forest{
		chains: make(map[chainID]*chain), epochs: make(map[epochID][]*chain), devices: make(map[notebook.DeviceID][]*chain),
	}
}

func (f *forest) find(id chainID) *chain {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.chains[id]
}

// standing is the chain whose entry counts at p, if the epoch comes so far; nil
// if none does.
func (f *forest) standing(p notebook.Position) *chain {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, c := range f.epochs[epochOfPosition(p)] {
		if c.from <= p.Seq && p.Seq < c.lost {
			return c
		}
	}
	return nil
}

func (f *forest) plant(c *chain) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chains[c.id] = c
	f.epochs[c.id.epochID] = append(f.epochs[c.id.epochID], c)
	f.devices[c.id.device] = append(f.devices[c.id.device], c)
}

// lose makes void what c has from seq on, and all that continues it. It returns
// the chains of which something was lost.
func (f *forest) lose(c *chain, seq uint64) (changed []*chain) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.lost <= seq {
		return nil
	}
	c.lost = seq
	changed = []*chain{c}
	for i := 0; i < len(changed); i++ {
		for _, k := range f.devices[c.id.device] {
			if k.parent == changed[i] && k.base.Position.Seq >= changed[i].lost && k.lost > k.from {
				k.lost = k.from
				changed = append(changed, k)
			}
		}
	}
	return changed
}

// mark says how far a chain has been merged.
type mark struct {
	chain *chain
	seq   uint64
}

// vector says what an author has merged of other chains. It holds leaves only:
// an epoch stands for all that it continues. It is never changed once made, and
// two vectors share what they have in common.
type vector struct {
	devices []merged // sorted by device
}

// merged is what has been merged of one device's chains.
type merged struct {
	device notebook.DeviceID
	leaves []mark
}

func (v *vector) of(d notebook.DeviceID) (int, bool) {
	return slices.BinarySearchFunc(v.devices, d, func(m merged, d notebook.DeviceID) int {
		return bytes.Compare(m.device[:], d[:])
	})
}

// saw reports whether v covers the entry seq of chain t.
func (v *vector) saw(t *chain, seq uint64) bool {
	i, found := v.of(t.id.device)
	return found && slices.ContainsFunc(v.devices[i].leaves, func(m mark) bool {
		return m.chain.within(m.seq, t) >= seq
	})
}

// with returns v and all of marks. It only grows: a mark that v covers already
// changes nothing.
func (v *vector) with(marks []mark) *vector {
	var w *vector
	for _, m := range marks {
		if w == nil && !v.saw(m.chain, m.seq) {
			w = &vector{devices: slices.Clone(v.devices)}
		}
		if w != nil {
			w.add(m)
		}
	}
	if w == nil {
		return v
	}
	return w
}

func (v *vector) add(m mark) {
	if v.saw(m.chain, m.seq) {
		return
	}
	device := m.chain.id.device
	i, found := v.of(device)
	if !found {
		v.devices = slices.Insert(v.devices, i, merged{device: device})
	}
	leaves := make([]mark, 0, len(v.devices[i].leaves)+1)
	for _, old := range v.devices[i].leaves {
		if m.chain.within(m.seq, old.chain) < old.seq {
			leaves = append(leaves, old)
		}
	}
	v.devices[i].leaves = append(leaves, m)
}

// past is the causal past of one entry: what came before it in its own chain,
// what that chain continues, and what its author had merged of others. The
// zero past is nobody's.
type past struct {
	forest *forest
	chain  *chain
	seq    uint64 // of the entry itself, which is not in its past
	seen   *vector
}

// saw reports whether the entry that stands at q is in the past.
func (p past) saw(q notebook.Position) bool {
	if p.chain == nil || q.Seq == 0 {
		return false
	}
	t := p.forest.standing(q)
	return t != nil && p.holds(t, q.Seq)
}

// sawPlace reports whether the very entry at q is in the past, whether or not it stands.
func (p past) sawPlace(q notebook.Place) bool {
	if p.chain == nil || q.Position.Seq == 0 {
		return false
	}
	t := p.forest.find(chainOf(q))
	return t != nil && p.holds(t, q.Position.Seq)
}

func (p past) holds(t *chain, seq uint64) bool {
	if t == p.chain {
		return seq < p.seq
	}
	return p.chain.within(p.seq, t) >= seq || p.seen.saw(t, seq)
}
