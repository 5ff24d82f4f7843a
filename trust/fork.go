package trust

import (
	"bytes"
	"slices"

	"noted/notebook"
)

// frozen is what is known of a device that signed two histories.
type frozen struct {
	proof *Equivocation
	kept  bool // a person here said that it may go on, in another epoch
}

// torn reports whether several histories of an epoch are known.
func (l *Log) torn(id epochID) bool { return len(l.forest.epochs[id]) > 1 }

// stopped reports whether nothing new is taken of a device in this epoch.
func (l *Log) stopped(id epochID) bool {
	f := l.frozen[id.device]
	return f != nil && (!f.kept || l.torn(id))
}

// Frozen are the devices that contradicted themselves and wait for a person's
// decision, sorted.
func (l *Log) Frozen() []notebook.DeviceID {
	var devices []notebook.DeviceID
	for d, f := range l.frozen {
		if !f.kept {
			devices = append(devices, d)
		}
	}
	slices.SortFunc(devices, func(a, b notebook.DeviceID) int { return bytes.Compare(a[:], b[:]) })
	return devices
}

// Stopped reports whether the device waits for a person's decision.
func (l *Log) Stopped(d notebook.DeviceID) bool {
	f := l.frozen[d]
	return f != nil && !f.kept
}

// Proof is the newest contradiction of the device that is known here, also
// after a person let it go on; nil if there is none.
func (l *Log) Proof(d notebook.DeviceID) *Equivocation {
	if f := l.frozen[d]; f != nil {
		return f.proof
	}
	return nil
}

// Keep lets a device that contradicted itself go on: what it writes in another
// epoch, after the history that stands, is taken again. It reports whether the
// device was frozen. This device itself goes on in another epoch, too.
func (l *Log) Keep(d notebook.DeviceID) bool {
	f := l.frozen[d]
	if f == nil || f.kept {
		return false
	}
	f.kept = true
	l.newlyFrozen = append(l.newlyFrozen, d)
	return true
}

// Histories is how many branches the log holds beside the first chain of each epoch.
func (l *Log) Histories() (n int) {
	for _, c := range l.forest.chains {
		if !c.id.fork.IsZero() {
			n++
		}
	}
	return n
}

// Stands reports whether the entry at a place is of a history that stands.
func (l *Log) Stands(p notebook.Place) bool {
	c := l.forest.find(chainOf(p))
	return c != nil && c.has(p.Position.Seq) && p.Position.Seq < c.lost
}

// Overturned reports whether entries that were handed out as standing are void
// since, so that what was made of them has to be made anew with [Log.Replay].
func (l *Log) Overturned() bool { return l.overturned }

// chainFor is the chain that an entry with this predecessor goes into, which
// may be yet to begin; and whether another entry has its place already.
func (l *Log) chainFor(h *notebook.Header, hash notebook.Hash, parent *chain) (c *chain, forks bool) {
	epoch := epochOfPosition(h.Position())
	switch {
	case h.Seq > 1 && parent.last == h.Prev.Position.Seq:
		return parent, false
	case h.Seq == 1 && len(l.forest.epochs[epoch]) == 0:
		c = newChain(chainID{epochID: epoch}, 1, h.Prev, parent)
	default:
		c, forks = newChain(chainID{epoch, hash}, h.Seq, h.Prev, parent), true
	}
	if parent != nil && parent.lost <= h.Prev.Position.Seq {
		c.lost = c.from
	}
	return c, forks
}

// rivals are the chains whose entry stands after the same one as the first
// entry of c, a branch that is not planted yet.
func (l *Log) rivals(c *chain) (rivals []*chain) {
	for _, k := range l.forest.epochs[c.id.epochID] {
		switch {
		case c.from == 1:
			if k.from == 1 {
				rivals = append(rivals, k)
			}
		case k == c.parent, k.parent == c.parent && k.from == c.from:
			rivals = append(rivals, k)
		}
	}
	return rivals
}

// contest is what the first entry of a new branch changes.
type contest struct {
	branch *chain
	loser  *chain // that stood until then; nil if it goes on to stand
	proof  *Equivocation
	news   bool // it was not known that the epoch has several histories, or another one stands now
}

// contend decides which stands of a new branch and its rivals: the one whose
// first entry has the lowest hash. The first entry of the notebook always does.
// Nothing changes until it is settled.
func (l *Log) contend(c *chain, e notebook.Entry) (*contest, error) {
	var lowest *chain
	var least notebook.Hash
	for _, k := range l.rivals(c) {
		hash, known := l.hashAt(k, c.from)
		if !known {
			return nil, refused(k.place(c.from).Position, ErrRecall)
		}
		if lowest == nil || l.lower(hash, least) {
			lowest, least = k, hash
		}
	}
	rival, found := l.look(lowest, c.from)
	if !found {
		return nil, refused(lowest.place(c.from).Position, ErrRecall)
	}
	signed := func(e notebook.Entry) notebook.Entry {
		return notebook.Entry{Header: bytes.Clone(e.Header), Sig: bytes.Clone(e.Sig)}
	}
	x := &contest{branch: c, news: !l.torn(c.id.epochID), proof: &Equivocation{
		Position: c.place(c.from).Position, Hashes: [2]notebook.Hash{least, c.id.fork}, Proof: [2]notebook.Entry{signed(rival), signed(e)},
	}}
	if !l.lower(c.id.fork, least) {
		c.lost = c.from
		return x, nil
	}
	slices.Reverse(x.proof.Hashes[:])
	slices.Reverse(x.proof.Proof[:])
	if c.from < lowest.lost {
		x.loser, x.news = lowest, true
	}
	return x, nil
}

// settled makes void what has lost, and freezes the device, unless a person let
// it go on and nothing changes by this.
func (l *Log) settled(x *contest) {
	device := x.branch.id.device
	if x.loser != nil {
		for _, k := range l.forest.lose(x.loser, x.branch.from) {
			l.unadd(k)
			l.touch(k)
		}
		l.overturned = true
	}
	if f := l.frozen[device]; f == nil || f.kept && x.news {
		l.frozen[device] = &frozen{proof: x.proof}
		l.newlyFrozen = append(l.newlyFrozen, device)
		if device == l.self {
			l.writing = notebook.Epoch{}
		}
	}
}

// lower reports whether the entry a stands against b.
func (l *Log) lower(a, b notebook.Hash) bool {
	genesis := notebook.Hash(l.nb)
	return a == genesis || b != genesis && bytes.Compare(a[:], b[:]) < 0
}

// unadd remembers the adds that c has lost, for what was built on them while
// they stood.
func (l *Log) unadd(c *chain) {
	n := &Roster{devices: l.roster.devices, unadded: make(map[notebook.DeviceID][]notebook.Place)}
	for d, places := range l.roster.unadded {
		n.unadded[d] = places
	}
	for d, m := range l.roster.devices {
		for _, a := range m.adds {
			if epochOfPosition(a.At) == c.id.epochID && a.At.Seq >= c.lost && c.has(a.At.Seq) {
				n.unadded[d] = insert(n.unadded[d], c.place(a.At.Seq), func(at notebook.Place) notebook.Place { return at })
			}
		}
	}
	l.roster = n
}

// forks is how many branches there are of a device's epochs.
func (l *Log) forks(d notebook.DeviceID) (n int) {
	for _, c := range l.forest.devices[d] {
		if !c.id.fork.IsZero() {
			n++
		}
	}
	return n
}

// rewindStep is how many entries are read at most to know what one of them had
// seen, once that was asked for of a later one.
const rewindStep = 512

// rewind is what the author of the entry seq of c had merged by then.
func (l *Log) rewind(c *chain, seq uint64) (*vector, error) {
	if seq == c.last {
		return c.seen, nil
	}
	if len(c.steps) == 0 {
		start := new(vector)
		if c.from > 1 {
			var err error
			if start, err = l.rewind(c.parent, c.from-1); err != nil {
				return nil, err
			}
		}
		c.steps = []*vector{start}
	}
	// Step i is the vector after i*rewindStep entries of c.
	step := min(uint64(len(c.steps)-1), (seq-c.from+1)/rewindStep)
	v := c.steps[step]
	for at := c.from + step*rewindStep; at <= seq; at++ {
		e, found := l.look(c, at)
		if !found {
			return nil, refused(c.place(at).Position, ErrRecall)
		}
		h, err := notebook.DecodeHeader(e.Header)
		if err != nil {
			return nil, err
		}
		marks, err := l.marks(h.Seen)
		if err != nil {
			return nil, err
		}
		v = v.with(marks)
		if n := at - c.from + 1; n%rewindStep == 0 && n/rewindStep == uint64(len(c.steps)) {
			c.steps = append(c.steps, v)
		}
	}
	return v, nil
}
