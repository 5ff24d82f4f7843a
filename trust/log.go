package trust

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"noted/notebook"
)

const (
	// maxSeen bounds the heads that one entry names: as many as fit its header
	// beside the longest label and source. A head has 96 bytes.
	maxSeen = 32
	// maxLeaves bounds the logs of one device that nothing continues. Usually
	// there is one; a restored backup makes a second. Further ones wait until an
	// entry of a member rests on them.
	maxLeaves = 64
	// keepHashes is how many hashes of a chain's newest entries are kept for
	// comparing; older ones are looked up. It must cover what the caller has not
	// stored yet.
	keepHashes = 1024
	maxDropped = 64
	// maxForks bounds the branches of one device that signed several histories:
	// each member may have been given one of its own, and have found one more. A
	// device with more of them has accomplices. Further ones wait until an entry
	// of a member rests on them: what one honest device has taken, all others have
	// to take, or they would wait for it for ever.
	maxForks = 2 * maxMembers
)

// Log is what is verified of a notebook: the heads of every device's logs, the
// roster, and a bounded set of entries that wait for what they rest on. Its
// size depends on the number of epochs and not on that of entries. The caller
// calls it from one goroutine at a time, and stores what it hands out; a
// [Verified], a [Roster] and the answer of [Log.Covers] may be used from any.
type Log struct {
	self    notebook.DeviceID
	nb      notebook.NotebookID
	forest  *forest
	leaves  map[notebook.DeviceID][]*chain
	roster  *Roster
	waiting *waiting
	frozen  map[notebook.DeviceID]*frozen
	own     *chain         // that this device wrote last
	writing notebook.Epoch // of this opening; zero before its first entry
	recall  func(notebook.Place) (notebook.Entry, bool)
	fresh   map[notebook.Place]notebook.Entry // taken since the last flush, where recall does not find them yet
	room    func(Verified) error
	calm    func() bool
	excuse  func(notebook.PageID, notebook.DeviceID) bool
	pardon  pardon
	dropped []error
	// overturned says that what was handed out as standing is void since, so
	// that everything has to be judged anew; see [Log.Replay].
	overturned bool

	changed     []*chain // since the last flush, as are the following
	members     []notebook.DeviceID
	unadded     []notebook.DeviceID
	newlyFrozen []notebook.DeviceID
	changedSelf bool
}

func newLog(self notebook.DeviceID, nb notebook.NotebookID) *Log {
	return &Log{
		self: self, nb: nb, changedSelf: true,
		forest:  newForest(),
		leaves:  make(map[notebook.DeviceID][]*chain),
		roster:  newRoster(),
		waiting: newWaiting(),
		frozen:  make(map[notebook.DeviceID]*frozen),
		fresh:   make(map[notebook.Place]notebook.Entry),
	}
}

// Found founds a notebook with s's device as its first member. The salt is
// random; now is in Unix milliseconds. The entry is the notebook's genesis.
func Found(s *Signer, epoch notebook.Epoch, name string, salt [16]byte, now int64) (*Log, Verified, error) {
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{
		Act: notebook.RosterGenesis, Device: s.device, Name: name, Role: notebook.RoleMember, Salt: salt,
	})
	if err != nil {
		return nil, Verified{}, fmt.Errorf("found a notebook: %w", err)
	}
	h := &notebook.Header{
		Version: notebook.EntryVersion, Device: s.device, Epoch: epoch, Seq: 1, Time: now,
		Kind: notebook.KindRoster, Class: notebook.Typed, Body: notebook.BodyDigest(body), Size: uint32(len(body)),
	}
	header, err := notebook.EncodeHeader(h)
	if err != nil {
		return nil, Verified{}, fmt.Errorf("found a notebook: %w", err)
	}
	l, v, err := JoinLog(s.device, notebook.Entry{Header: header, Sig: s.sign(entryDomain, header), Body: body})
	if err == nil {
		l.writing = epoch
	}
	return l, v, err
}

// JoinLog begins the log of a device that is about to join: it holds the
// genesis entry and nothing else. The caller has checked that the entry's hash
// is the notebook it was invited to.
func JoinLog(self notebook.DeviceID, genesis notebook.Entry) (*Log, Verified, error) {
	l := newLog(self, notebook.NotebookID(genesis.Hash()))
	h, err := open(genesis)
	if err != nil {
		return nil, Verified{}, err
	}
	c, err := notebook.DecodeRosterChange(genesis.Body)
	if err != nil {
		return nil, Verified{}, fmt.Errorf("genesis: %w", err)
	}
	if (h.Notebook != notebook.NotebookID{}) || c.Act != notebook.RosterGenesis || c.Device != h.Device {
		return nil, Verified{}, fmt.Errorf("%w: not the first entry of a notebook", ErrMalformed)
	}
	first := newChain(chainID{epochID: epochOfPosition(h.Position())}, 1, notebook.Head{}, nil)
	return l, l.accept(genesis, h, genesis.Hash(), first, new(vector), ""), nil
}

// Recall tells the log how to look up an entry that it has handed out and the
// caller was handed before the last flush. It is used to compare what a peer sends or names with
// what stands here, and may be left out by a caller that never reopens a log.
func (l *Log) Recall(look func(notebook.Place) (notebook.Entry, bool)) { l.recall = look }

// Room sets who is asked right before an entry that a peer sent is accepted, in
// causal order: whether there is room for it here. Nil says that there is, and
// the entry is accepted whatever comes, so that the caller may act on it at
// once. An error, which wraps [ErrPaused], holds the entry, and with it all that
// rests on it, until [Log.Retry] finds room or it is sent again.
func (l *Log) Room(ask func(Verified) error) { l.room = ask }

// Calm sets who is asked right before another history of a device comes to stand
// than did, which costs the caller a replay. Where it says no, the entry is held
// as one without room is; see [Log.Room]. It is not asked again once one was let
// in since the last replay: that is of all of them.
func (l *Log) Calm(ask func() bool) { l.calm = ask }

// Notebook is the notebook's id, the hash of its genesis entry.
func (l *Log) Notebook() notebook.NotebookID { return l.nb }

// Roster is who is in the notebook now.
func (l *Log) Roster() *Roster { return l.roster }

// Waiting is how many entries wait for what they rest on.
func (l *Log) Waiting() int { return l.waiting.all.entries.Len() }

// Dropped returns, and forgets, why entries that had waited were not taken in
// the end. They came from an earlier exchange, so they are no fault of the last.
func (l *Log) Dropped() []error {
	dropped := l.dropped
	l.dropped = nil
	return dropped
}

// Has reports whether the log holds an entry at p.
func (l *Log) Has(p notebook.Position) bool {
	return slices.ContainsFunc(l.forest.epochs[epochOfPosition(p)], func(c *chain) bool { return c.has(p.Seq) })
}

// Heads are the leaves of all devices' logs, sorted: they stand for everything
// that the log holds.
func (l *Log) Heads() []notebook.Head {
	var heads []notebook.Head
	for _, leaves := range l.leaves {
		for _, c := range leaves {
			heads = append(heads, c.tip())
		}
	}
	sortHeads(heads)
	return heads
}

// Locator are the heads, and for each a few of the entries that its chain
// continues: the nearest, and those two, four and eight epochs back. A peer that
// has not heard of the newest epochs finds among them how far it may skip.
func (l *Log) Locator() []notebook.Head {
	furthest := make(map[*chain]notebook.Head)
	put := func(c *chain, h notebook.Head) {
		if old, found := furthest[c]; !found || old.Position.Seq < h.Position.Seq {
			furthest[c] = h
		}
	}
	for _, leaves := range l.leaves {
		for _, c := range leaves {
			put(c, c.tip())
			for up := 1; up <= 8 && c.parent != nil; up++ {
				if up&(up-1) == 0 {
					put(c.parent, c.base)
				}
				c = c.parent
			}
		}
	}
	heads := make([]notebook.Head, 0, len(furthest))
	for _, h := range furthest {
		heads = append(heads, h)
	}
	sortHeads(heads)
	return heads
}

func sortHeads(heads []notebook.Head) {
	slices.SortFunc(heads, notebook.Head.Compare)
}

// Covers returns what a peer with these heads has of the entries here. A head
// further along an epoch than this log covers what is here of it; one of an
// epoch that is not known here says nothing, and neither does one that is not
// here where other histories of its epoch are.
func (l *Log) Covers(have []notebook.Head) func(notebook.Place) bool {
	v := new(vector)
	for _, h := range have {
		chains := l.forest.epochs[epochOfPosition(h.Position)]
		for _, c := range chains {
			switch seq := h.Position.Seq; {
			case c.has(seq):
				if stands, known := l.hashAt(c, seq); !known || stands == h.Hash {
					v = v.with([]mark{{chain: c, seq: seq}})
				}
			case seq > c.last && len(chains) == 1:
				v = v.with([]mark{{chain: c, seq: c.last}})
			}
		}
	}
	forest := l.forest
	return func(p notebook.Place) bool {
		t := forest.find(chainOf(p))
		return t != nil && v.saw(t, p.Position.Seq)
	}
}

// hashAt is the hash of the entry seq of c, which the log holds.
func (l *Log) hashAt(c *chain, seq uint64) (notebook.Hash, bool) {
	if back := c.last - seq; back < uint64(len(c.recent)) {
		return c.recent[len(c.recent)-1-int(back)], true
	}
	e, found := l.look(c, seq)
	return e.Hash(), found
}

// look finds the entry seq of c, which the log holds.
func (l *Log) look(c *chain, seq uint64) (notebook.Entry, bool) {
	if e, found := l.fresh[c.place(seq)]; found || l.recall == nil {
		return e, found
	}
	return l.recall(c.place(seq))
}

// Draft is an entry before it has a place.
type Draft struct {
	Kind   notebook.Kind
	Page   notebook.PageID
	Class  notebook.Class
	Label  string
	Source []notebook.Source
	Time   int64 // Unix milliseconds
	Body   []byte
}

// Append signs d as this device's next entry in epoch, which names everything
// that was merged since the one before. A change of the roster that does not
// hold is refused as *[Void] before it is signed. After an error the log is as
// it was. The caller stores the entry before it appends the next or sends any.
func (l *Log) Append(s *Signer, epoch notebook.Epoch, d Draft) (Verified, error) {
	return l.append(s, epoch, d, false)
}

// Declare appends an entry that does nothing but name what was merged, if that
// is more than one entry can name; it reports whether it did. A caller that
// merges much at once declares until there is nothing to declare, then appends.
func (l *Log) Declare(s *Signer, epoch notebook.Epoch, now int64) (Verified, bool, error) {
	c, seen := l.next(epoch)
	if len(l.merged(c, seen)) <= maxSeen {
		return Verified{}, false, nil
	}
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{
		Act: notebook.RosterRename, Device: l.self, Name: l.roster.Name(l.self),
	})
	if err != nil {
		return Verified{}, false, err
	}
	v, err := l.append(s, epoch, Draft{Kind: notebook.KindRoster, Class: notebook.Typed, Time: now, Body: body}, true)
	return v, err == nil, err
}

// next is the chain that this device's next entry in epoch stands in, which may
// be yet to begin, and what its entry before had seen.
func (l *Log) next(epoch notebook.Epoch) (*chain, *vector) {
	id := chainID{epochID: epochID{l.self, epoch}}
	if c := l.forest.find(id); c != nil {
		return c, c.seen
	}
	parent := l.own
	if parent == nil || parent.lost <= parent.last {
		parent = nil
		for _, leaf := range l.leaves[l.self] {
			if leaf.last < leaf.lost {
				parent = leaf
				break
			}
		}
	}
	if parent == nil {
		return newChain(id, 1, notebook.Head{}, nil), new(vector)
	}
	// The first entry of an epoch names everything, so that what it has seen
	// does not depend on knowing the state at the entry that it continues.
	return newChain(id, 1, parent.tip(), parent), new(vector)
}

// merged are the leaves that neither c nor seen covers, sorted.
func (l *Log) merged(c *chain, seen *vector) []notebook.Head {
	at := c.last
	if at == 0 {
		at = 1 // of a chain that begins, as its parents are covered from there
	}
	var heads []notebook.Head
	for _, leaves := range l.leaves {
		for _, leaf := range leaves {
			if c.within(at, leaf) < leaf.last && !seen.saw(leaf, leaf.last) {
				heads = append(heads, leaf.tip())
			}
		}
	}
	sortHeads(heads)
	return heads
}

func (l *Log) append(s *Signer, epoch notebook.Epoch, d Draft, part bool) (Verified, error) {
	switch {
	case s.device != l.self:
		return Verified{}, fmt.Errorf("append with the key of %s to the log of %s", s.device.Short(), l.self.Short())
	case l.stopped(epochID{l.self, epoch}):
		return Verified{}, fmt.Errorf("append: %w", ErrFrozen)
	case l.roster.removed(l.self):
		return Verified{}, fmt.Errorf("append: %w", ErrRemoved)
	case !l.roster.Has(l.self):
		return Verified{}, fmt.Errorf("append: this device is not in the notebook yet")
	}
	c, seen := l.next(epoch)
	heads := l.merged(c, seen)
	if len(heads) > maxSeen {
		if !part {
			return Verified{}, ErrUndeclared
		}
		heads = l.pick(heads)
	}
	h := &notebook.Header{
		Version: notebook.EntryVersion, Notebook: l.nb, Device: l.self, Epoch: epoch, Seq: c.last + 1, Prev: c.base,
		Seen: heads, Time: d.Time, Kind: d.Kind, Page: d.Page, Class: d.Class, Label: d.Label, Source: d.Source,
		Body: notebook.BodyDigest(d.Body), Size: uint32(min(len(d.Body), notebook.MaxText+1)),
	}
	if c.last > 0 {
		h.Prev = c.tip()
	}
	header, err := notebook.EncodeHeader(h)
	if err != nil {
		return Verified{}, fmt.Errorf("append: %w", err)
	}
	marks, err := l.marks(heads)
	if err != nil {
		return Verified{}, fmt.Errorf("append: %w", err)
	}
	seen = seen.with(marks)
	at := past{forest: l.forest, chain: c, seq: h.Seq, seen: seen}
	if l.roster.stranger(l.self, at) {
		return Verified{}, fmt.Errorf("append: %w", ErrStranger)
	}
	if reason := l.judge(l.roster, h, d.Body, at); reason != "" {
		return Verified{}, &Void{Reason: reason}
	}
	e := notebook.Entry{Header: header, Sig: s.sign(entryDomain, header), Body: d.Body}
	v := l.accept(e, h, e.Hash(), c, seen, "")
	l.own, l.writing, l.changedSelf = c, epoch, true
	return v, nil
}

// pick chooses as many of heads as one entry can name. The logs of the devices
// that added this one come first: without them its first entry were a stranger's.
func (l *Log) pick(heads []notebook.Head) []notebook.Head {
	adders := l.roster.devices[l.self].adds
	slices.SortStableFunc(heads, func(a, b notebook.Head) int {
		adder := func(h notebook.Head) int {
			return slices.IndexFunc(adders, func(x added) bool { return x.By == h.Position.Device })
		}
		return cmp.Compare(min(0, adder(b)), min(0, adder(a)))
	})
	heads = heads[:maxSeen]
	sortHeads(heads)
	return heads
}

// Why entries are void that would hold but for another history of some device.
const (
	// VoidLost is why an entry is void whose device signed another history, which stands.
	VoidLost    = "its device signed two histories, and the other one stands"
	voidUnadded = "its device was added by an entry that does not stand"
)

// judge says why an entry with this past does nothing: by its past alone, and
// by which histories stand of the devices that signed several.
func (l *Log) judge(roster *Roster, h *notebook.Header, body []byte, at past) string {
	switch {
	case at.chain.lost <= h.Seq:
		return VoidLost
	case roster.stranger(h.Device, at):
		return voidUnadded
	}
	hub := roster.isHub(h.Device, at)
	if h.Kind != notebook.KindRoster {
		if hub {
			return "a hub writes nothing"
		}
		return ""
	}
	change, err := notebook.DecodeRosterChange(body)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	if hub && change.Act != notebook.RosterRename {
		return "a hub changes nothing but its name"
	}
	return roster.check(l.nb, h.Device, change, at)
}

// accept makes e the tip of its chain.
func (l *Log) accept(e notebook.Entry, h *notebook.Header, hash notebook.Hash, c *chain, seen *vector, void string) Verified {
	at := past{forest: l.forest, chain: c, seq: h.Seq, seen: seen}
	if h.Seq == c.from {
		l.forest.plant(c)
		if p := c.parent; p != nil {
			p.continued = max(p.continued, c.base.Position.Seq)
			if !p.isLeaf() {
				l.leaves[p.id.device] = slices.DeleteFunc(l.leaves[p.id.device], func(o *chain) bool { return o == p })
			}
		}
	}
	if !c.isLeaf() { // also where it has no entry yet
		l.leaves[c.id.device] = append(l.leaves[c.id.device], c)
	}
	c.last, c.seen = h.Seq, seen
	c.recent = append(c.recent, hash)
	l.fresh[c.place(h.Seq)] = e
	l.touch(c)
	l.roster = l.roster.after(l, h, hash, e.Body, at, void)
	return Verified{entry: e, header: *h, hash: hash, past: at, void: void}
}

func (l *Log) touch(c *chain) {
	if !c.changed {
		c.changed = true
		l.changed = append(l.changed, c)
	}
}

// OpenLog opens the log of a device from the records that it flushed.
func OpenLog(self notebook.DeviceID, records iter.Seq2[[]byte, []byte]) (*Log, error) {
	return readLog(self, records)
}
