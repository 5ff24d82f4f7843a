package trust

import (
	"bytes"
	"container/list"
	"maps"
	"slices"

	"noted/notebook"
)

// Bounds of the entries that wait for what they rest on. An honest sender sends
// in causal order, so hardly anything waits; what is evicted comes again with
// the next exchange, because no head covers it.
const (
	maxWaiting          = 2048     // entries in all
	maxWaitingBytes     = 32 << 20 // in all
	maxWaitingDevice    = 512      // entries of one member
	maxDeviceBytes      = 8 << 20  // of one member; a few of the largest bodies
	maxWaitingStrangers = 64       // entries of all others together
	maxStrangersBytes   = 4 << 20  // of all others together
)

// pending is an entry that was read and whose signature holds, but whose past
// is not here yet or which may not come in by itself.
type pending struct {
	entry    notebook.Entry
	header   *notebook.Header
	hash     notebook.Hash
	owner    notebook.DeviceID // whose share it uses: its device, or zero for a stranger
	need     notebook.Hash     // the first missing entry that it rests on; zero while it is held
	demanded bool              // an entry of a member rests on it
	relayed  bool              // a member sent it that is not its device
	owned    bool              // entry has bytes of its own
	excuse   []byte            // what came instead of a purged body
	inAll    *list.Element
	inOwner  *list.Element
}

// size is what p takes in memory: the header counts twice, as it is kept decoded too.
func (p *pending) size() int {
	return 2*len(p.entry.Header) + len(p.entry.Body) + len(p.entry.Sig) + len(p.excuse)
}

// own makes p independent of the buffers that it was read from, which may be
// far larger than the entry.
func (p *pending) own() {
	if !p.owned {
		p.entry = notebook.Entry{
			Header: bytes.Clone(p.entry.Header), Sig: bytes.Clone(p.entry.Sig), Body: bytes.Clone(p.entry.Body),
		}
		p.excuse = bytes.Clone(p.excuse)
		p.owned = true
	}
}

// queue is a set of pending entries, oldest first.
type queue struct {
	entries *list.List
	bytes   int
}

// waiting is the bounded set of pending entries.
type waiting struct {
	all    queue
	owners map[notebook.DeviceID]*queue
	byHash map[notebook.Hash]*pending
	byNeed map[notebook.Hash][]*pending
}

func newWaiting() *waiting {
	return &waiting{
		all:    queue{entries: list.New()},
		owners: make(map[notebook.DeviceID]*queue),
		byHash: make(map[notebook.Hash]*pending),
		byNeed: make(map[notebook.Hash][]*pending),
	}
}

// add takes p in and evicts the oldest of its owner's, then of whoever uses
// most, until the bounds hold. What is evicted may be p itself.
func (w *waiting) add(p *pending) {
	p.own()
	w.byHash[p.hash] = p
	if !p.need.IsZero() {
		w.byNeed[p.need] = append(w.byNeed[p.need], p)
	}
	o := w.owners[p.owner]
	if o == nil {
		o = &queue{entries: list.New()}
		w.owners[p.owner] = o
	}
	p.inOwner, p.inAll = o.entries.PushBack(p), w.all.entries.PushBack(p)
	o.bytes += p.size()
	w.all.bytes += p.size()

	most, mostBytes := maxWaitingDevice, maxDeviceBytes
	if p.owner.IsZero() {
		most, mostBytes = maxWaitingStrangers, maxStrangersBytes
	}
	for o.entries.Len() > most || o.bytes > mostBytes {
		w.remove(o.entries.Front().Value.(*pending))
	}
	for w.all.entries.Len() > maxWaiting || w.all.bytes > maxWaitingBytes {
		w.remove(w.largest().entries.Front().Value.(*pending))
	}
}

// largest is the queue of the owner that uses most, so that a flood by one
// pushes out its own.
func (w *waiting) largest() *queue {
	return slices.MaxFunc(slices.Collect(maps.Values(w.owners)), func(a, b *queue) int {
		return a.share() - b.share()
	})
}

// share weighs entries against bytes, each by its own bound.
func (q *queue) share() int {
	return max(q.entries.Len()*(maxWaitingBytes/maxWaiting), q.bytes)
}

func (w *waiting) remove(p *pending) {
	delete(w.byHash, p.hash)
	rest := slices.DeleteFunc(w.byNeed[p.need], func(q *pending) bool { return q == p })
	if len(rest) == 0 {
		delete(w.byNeed, p.need)
	} else {
		w.byNeed[p.need] = rest
	}
	o := w.owners[p.owner]
	o.entries.Remove(p.inOwner)
	o.bytes -= p.size()
	if o.entries.Len() == 0 {
		delete(w.owners, p.owner)
	}
	w.all.entries.Remove(p.inAll)
	w.all.bytes -= p.size()
}

// ready takes out and returns those that waited for an entry.
func (w *waiting) ready(hash notebook.Hash) []*pending {
	ready := slices.Clone(w.byNeed[hash])
	for _, q := range ready {
		w.remove(q)
	}
	return ready
}

// demand marks an entry that waits, and all that this rests on, as rested on by
// a member's entry. It takes out and returns those that were held, which may come in now.
func (w *waiting) demand(hash notebook.Hash) (held []*pending) {
	for work := []notebook.Hash{hash}; len(work) > 0; work = work[1:] {
		q := w.byHash[work[0]]
		if q == nil || q.demanded {
			continue
		}
		q.demanded = true
		work = append(work, q.header.Prev.Hash, q.need)
		if q.need.IsZero() {
			w.remove(q)
			held = append(held, q)
		}
	}
	return held
}
