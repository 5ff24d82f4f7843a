package trust

import (
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
)

// Take takes entries that a peer sent and returns what is verified now, in
// causal order: those of entries whose past is here, and those that had waited
// for them. Entries whose past is not here wait inside, within bounds;
// duplicates are skipped. The error is that of the first entry that nobody may
// send, where Take stops; what came before it is returned all the same.
// Errors that concern the entry and not who sent it do not stop it
// ([ErrNewer], [ErrRemoved], [ErrFrozen], [ErrUnadded], [ErrLeaves],
// [ErrUnexcused], [ErrCloned]), nor does an *[Equivocation]: the first of them is returned
// after everything else was taken; that it was paused is known to who said so
// ([Log.Room]). The entries are kept, not copied.
//
// What is returned may be overturned already; see [Log.Overturned].
func (l *Log) Take(peer notebook.DeviceID, entries []notebook.Entry) ([]Verified, error) {
	return l.takeAll(entries, func(p *pending) {
		_, frozen := l.frozen[peer]
		p.relayed = !peer.IsZero() && peer != p.header.Device && !frozen && !l.roster.removed(peer)
	})
}

// Retake takes entries that this device had taken before, in the order in which
// it took them, whatever the reason for which it did.
func (l *Log) Retake(entries []notebook.Entry) ([]Verified, error) {
	return l.takeAll(entries, func(p *pending) { p.demanded = true })
}

func (l *Log) takeAll(entries []notebook.Entry, from func(*pending)) ([]Verified, error) {
	var taken []Verified
	var note error
	var heldWhy error
	var held notebook.Position
	frozen := len(l.newlyFrozen)
	for _, e := range entries {
		p, err := l.take(e, from, &taken)
		switch {
		case err == nil:
		case errors.Is(err, ErrPaused): // as the caller knows
		case isHeld(err):
			// It waits: the rest of the batch may rest on it.
			if heldWhy == nil || l.Has(held) {
				heldWhy, held = err, p.header.Position()
			}
		case errors.Is(err, ErrNewer), errors.Is(err, ErrFrozen), errors.Is(err, ErrUnexcused), errors.Is(err, ErrCloned):
			if note == nil {
				note = err
			}
		default:
			return taken, err
		}
	}
	if len(l.newlyFrozen) > frozen {
		return taken, l.Proof(l.newlyFrozen[frozen])
	}
	if note == nil && heldWhy != nil && !l.Has(held) {
		note = heldWhy
	}
	return taken, note
}

// isHeld reports whether an entry waits although all that it rests on is here:
// until an entry of a member rests on it, or there is room.
func isHeld(err error) bool {
	return errors.Is(err, ErrRemoved) || errors.Is(err, ErrUnadded) || errors.Is(err, ErrLeaves) || errors.Is(err, ErrPaused)
}

// open reads an entry and checks its signature and its body.
func open(e notebook.Entry) (*notebook.Header, error) {
	h, err := notebook.DecodeHeader(e.Header)
	if errors.Is(err, ErrNewer) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !signed(h.Device, e.Sig, entryDomain, e.Header) {
		return nil, refused(h.Position(), ErrSignature)
	}
	if len(e.Body) != int(h.Size) || notebook.BodyDigest(e.Body) != h.Body {
		return nil, refused(h.Position(), ErrBody)
	}
	return h, nil
}

// take reads one entry and lets it in with all that waited for it.
func (l *Log) take(e notebook.Entry, from func(*pending), taken *[]Verified) (*pending, error) {
	hash := e.Hash()
	if hash == notebook.Hash(l.nb) {
		return nil, nil // the genesis, which every log begins with
	}
	if p := l.waiting.byHash[hash]; p != nil {
		from(p)
		if !p.need.IsZero() {
			return nil, nil
		}
		l.waiting.remove(p) // held: what kept it out may have changed
		return p, l.settle([]*pending{p}, taken)
	}
	// Decoding comes before the signature, so that the many entries which are
	// here already, sent again, cost no verification.
	h, err := notebook.DecodeHeader(e.Header)
	switch {
	case errors.Is(err, ErrNewer):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	case h.Notebook != l.nb:
		return nil, refused(h.Position(), ErrNotebook)
	}
	if l.holds(h, hash) {
		return nil, nil
	}
	var excuse []byte
	if _, err = open(e); errors.Is(err, ErrBody) {
		err = l.excused(h, e.Body)
		excuse, e.Body = e.Body, nil
	}
	if err != nil {
		return nil, err
	}
	p := &pending{entry: e, header: h, hash: hash, excuse: excuse}
	from(p)
	if l.roster.Has(h.Device) || l.roster.removed(h.Device) {
		p.owner = h.Device
	}
	cloned := h.Device == l.self && h.Epoch == l.writing && !l.Has(h.Position())
	if err = l.settle([]*pending{p}, taken); err == nil && cloned {
		l.writing = notebook.Epoch{}
		err = refused(h.Position(), ErrCloned)
	}
	return p, err
}

// holds reports whether an entry is here, or one of its place that cannot be looked up.
func (l *Log) holds(h *notebook.Header, hash notebook.Hash) bool {
	return slices.ContainsFunc(l.forest.epochs[epochOfPosition(h.Position())], func(c *chain) bool {
		if !c.has(h.Seq) {
			return false
		}
		stands, known := l.hashAt(c, h.Seq)
		return !known || stands == hash
	})
}

// settle lets work in, and whatever becomes possible by that. The error is that
// of the first of work; others are remembered for [Log.Dropped].
func (l *Log) settle(work []*pending, taken *[]Verified) error {
	var first error
	for i := 0; i < len(work); i++ {
		p := work[i]
		v, err := l.admit(p)
		var missing *missing
		switch {
		case err == nil && v.Valid():
			*taken = append(*taken, v)
			work = append(work, l.waiting.ready(p.hash)...)
		case err == nil: // it came in another way meanwhile
		case errors.As(err, &missing):
			p.need = missing.head.Hash
			work = append(work, l.wait(p)...)
		case isHeld(err):
			p.need = notebook.Hash{}
			work = append(work, l.wait(p)...)
			if i == 0 {
				first = err
			}
		case i == 0:
			return err
		default:
			l.drop(err)
		}
	}
	return first
}

// wait keeps p until what it needs is here. If an entry of a member rests on p,
// what p rests on may come in, whoever signed it.
func (l *Log) wait(p *pending) (held []*pending) {
	l.waiting.add(p)
	switch {
	case p.demanded:
		return l.waiting.demand(p.need)
	case l.wanted(p.hash):
		return l.waiting.demand(p.hash)
	case l.vouches(p):
		return l.waiting.demand(p.need)
	}
	return nil
}

// wanted reports whether something that may ask for it waits for an entry.
func (l *Log) wanted(hash notebook.Hash) bool {
	return slices.ContainsFunc(l.waiting.byNeed[hash], func(q *pending) bool { return q.demanded || l.vouches(q) })
}

// vouches reports whether p may ask for what it rests on: its device is a
// member that did not contradict itself, and it waits for something.
func (l *Log) vouches(p *pending) bool {
	return l.roster.Has(p.header.Device) && !l.stopped(epochOfPosition(p.header.Position()))
}

func (l *Log) drop(err error) {
	if len(l.dropped) < maxDropped {
		l.dropped = append(l.dropped, err)
	}
}

// missing is the error of an entry that rests on one that is not here.
type missing struct{ head notebook.Head }

func (m *missing) Error() string {
	return fmt.Sprintf("rests on %v, which is not here", m.head.Position)
}

// admit makes p the tip of its chain if everything that it rests on is here and
// its device may write. A zero Verified without an error is a duplicate.
func (l *Log) admit(p *pending) (Verified, error) {
	h := p.header
	at := h.Position()
	if l.holds(h, p.hash) {
		return Verified{}, nil
	}
	var parent *chain
	var err error
	if !h.Prev.IsZero() {
		if parent, err = l.before(h.Prev); err != nil {
			return Verified{}, err
		}
	}
	c, forks := l.chainFor(h, p.hash, parent)
	seen := c.seen
	if seen == nil { // c begins
		seen = new(vector)
		if c.from > 1 {
			if seen, err = l.rewind(parent, h.Prev.Position.Seq); err != nil {
				return Verified{}, err
			}
		}
	}
	marks, err := l.marks(h.Seen)
	if err != nil {
		return Verified{}, err
	}
	seen = seen.with(marks)
	then := past{forest: l.forest, chain: c, seq: h.Seq, seen: seen}
	if err := l.welcome(p, c, forks, then); err != nil {
		return Verified{}, refused(at, err)
	}
	var dispute *contest
	if forks {
		if dispute, err = l.contend(c, p.entry); err != nil {
			return Verified{}, err
		}
		if dispute.loser != nil && !l.overturned && l.calm != nil && !l.calm() {
			return Verified{}, refused(at, ErrPaused)
		}
	}
	void := l.judge(l.roster, h, p.entry.Body, then)
	if l.room != nil {
		if err := l.room(Verified{entry: p.entry, header: *h, hash: p.hash, past: then, void: void, excuse: p.excuse}); err != nil {
			return Verified{}, refused(at, err)
		}
	}
	if forks {
		l.settled(dispute)
	}
	return l.accept(p.entry, h, p.hash, c, seen, void), nil
}

// Retry lets in what is held here if what held it has passed, and all that
// becomes possible by that, in causal order.
func (l *Log) Retry() (taken []Verified) {
	var held []*pending
	for e := l.waiting.all.entries.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*pending); p.need.IsZero() {
			held = append(held, p)
		}
	}
	for _, p := range held {
		if l.waiting.byHash[p.hash] != p {
			continue // one before it brought it in
		}
		l.waiting.remove(p)
		if err := l.settle([]*pending{p}, &taken); err != nil && !Innocent(err) {
			l.drop(err)
		}
	}
	return taken
}

// welcome says why an entry may not come in although all that it rests on is here.
func (l *Log) welcome(p *pending, c *chain, forks bool, then past) error {
	h := p.header
	stranger := l.roster.stranger(h.Device, then)
	if stranger && !l.roster.mentioned(h.Device, then) {
		return ErrStranger
	}
	if p.demanded || l.wanted(p.hash) {
		return nil
	}
	if forks && l.forks(h.Device) >= maxForks {
		return ErrLeaves
	}
	if l.roster.removed(h.Device) {
		return ErrRemoved
	}
	if !forks && h.Seq == c.from && len(l.leaves[h.Device]) >= maxLeaves {
		if replaces := c.parent != nil && c.parent.isLeaf() && c.parent.last == h.Prev.Position.Seq; !replaces {
			return ErrLeaves
		}
	}
	switch {
	case p.relayed:
		return nil
	case stranger:
		return ErrUnadded
	case l.stopped(c.id.epochID):
		return ErrFrozen
	}
	return nil
}

// before finds the chain of an entry that something rests on.
func (l *Log) before(h notebook.Head) (*chain, error) {
	known := true
	for _, c := range l.forest.epochs[epochOfPosition(h.Position)] {
		if !c.has(h.Position.Seq) {
			continue
		}
		if hash, found := l.hashAt(c, h.Position.Seq); found && hash == h.Hash {
			return c, nil
		} else if !found {
			known = false
		}
	}
	if !known {
		return nil, refused(h.Position, ErrRecall)
	}
	return nil, &missing{head: h}
}

// marks finds the entries that heads name.
func (l *Log) marks(heads []notebook.Head) ([]mark, error) {
	marks := make([]mark, len(heads))
	for i, h := range heads {
		c, err := l.before(h)
		if err != nil {
			return nil, err
		}
		marks[i] = mark{chain: c, seq: h.Position.Seq}
	}
	return marks, nil
}
