package trust

import (
	"bytes"
	"slices"
	"sync"

	"noted/notebook"
)

// chainID names one device's log in one epoch.
type chainID struct {
	device notebook.DeviceID
	epoch  notebook.Epoch
}

func chainOf(p notebook.Position) chainID { return chainID{p.Device, p.Epoch} }

// chain is one device's log in one epoch. The chains of a device form a tree:
// each but the first continues another at some entry.
type chain struct {
	// Set when the chain is made, and read by every past that shares it.
	id     chainID
	base   notebook.Head // the entry that the chain continues; zero for a root
	parent *chain        // the chain of base
	jump   *chain        // an ancestor far up, so that any is found in logarithmic time
	depth  int

	// The tip. Only the log that owns the chain reads and writes these.
	last      uint64
	seen      *vector
	continued uint64          // the furthest entry that another chain continues
	recent    []notebook.Hash // hashes of the newest entries, the tip's last
	changed   bool            // since the last flush
}

func newChain(id chainID, base notebook.Head, parent *chain) *chain {
	c := &chain{id: id, base: base, parent: parent}
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

func (c *chain) tip() notebook.Head {
	return notebook.Head{
		Position: notebook.Position{Device: c.id.device, Epoch: c.id.epoch, Seq: c.last},
		Hash:     c.recent[len(c.recent)-1],
	}
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
	mu     sync.RWMutex
	chains map[chainID]*chain
}

func newForest() *forest { return &forest{chains: make(map[chainID]*chain)} }

func (f *forest) find(id chainID) *chain {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.chains[id]
}

func (f *forest) plant(c *chain) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chains[c.id] = c
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

func (p past) saw(q notebook.Position) bool {
	if p.chain == nil || q.Seq == 0 {
		return false
	}
	if chainOf(q) == p.chain.id {
		return q.Seq < p.seq
	}
	t := p.forest.find(chainOf(q))
	if t == nil {
		return false
	}
	return p.chain.within(p.seq, t) >= q.Seq || p.seen.saw(t, q.Seq)
}
