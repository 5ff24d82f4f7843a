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
// Errors that concern the entry and not who sent it do not stop it ([ErrNewer],
// [ErrRemoved], [ErrFrozen], [ErrBranch], [ErrLeaves], [ErrUnexcused]): the first of them is
// returned after everything else was taken; that it was paused is known to who
// said so ([Log.Room]). The entries are kept, not copied.
func (l *Log) Take(entries []notebook.Entry) ([]Verified, error) {
	var taken []Verified
	var note error
	var heldWhy error
	var held notebook.Position
	for _, e := range entries {
		p, err := l.take(e, &taken)
		switch {
		case err == nil:
		case errors.Is(err, ErrRemoved), errors.Is(err, ErrLeaves):
			// It waits: the rest of the batch may rest on it.
			if heldWhy == nil || l.Has(held) {
				heldWhy, held = err, p.header.Position()
			}
		case errors.Is(err, ErrPaused): // as the caller knows
		case errors.Is(err, ErrNewer), errors.Is(err, ErrFrozen), errors.Is(err, ErrBranch), errors.Is(err, ErrUnexcused):
			if note == nil {
				note = err
			}
		default:
			return taken, err
		}
	}
	if note == nil && heldWhy != nil && !l.Has(held) {
		note = heldWhy
	}
	return taken, note
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
func (l *Log) take(e notebook.Entry, taken *[]Verified) (*pending, error) {
	hash := e.Hash()
	if hash == notebook.Hash(l.nb) {
		return nil, nil // the genesis, which every log begins with
	}
	if p := l.waiting.byHash[hash]; p != nil {
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
	if c := l.forest.find(chainOf(h.Position())); c != nil && h.Seq <= c.last {
		if stands, known := l.hashAt(c, h.Seq); !known || stands == hash {
			return nil, nil
		}
	}
	if _, err = open(e); errors.Is(err, ErrBody) {
		err = l.excused(h, e.Body)
		e.Body = nil
	}
	if err != nil {
		return nil, err
	}
	if h.Device == l.self && h.Epoch == l.writing && l.forest.find(chainOf(h.Position())).last < h.Seq {
		return nil, refused(h.Position(), ErrCloned)
	}
	p := &pending{entry: e, header: h, hash: hash}
	if l.roster.Has(h.Device) || l.roster.removed(h.Device) {
		p.owner = h.Device
	}
	return p, l.settle([]*pending{p}, taken)
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
			work = append(work, l.waiting.ready(p.header.Position())...)
		case err == nil: // it came in another way meanwhile
		case errors.As(err, &missing):
			p.need = missing.position
			work = append(work, l.wait(p)...)
		case errors.Is(err, ErrRemoved), errors.Is(err, ErrLeaves), errors.Is(err, ErrPaused):
			p.need = notebook.Position{}
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
	case l.wanted(p.header.Position()):
		return l.waiting.demand(p.header.Position())
	case l.vouches(p):
		return l.waiting.demand(p.need)
	}
	return nil
}

// wanted reports whether something that may ask for it waits for the entry at at.
func (l *Log) wanted(at notebook.Position) bool {
	return slices.ContainsFunc(l.waiting.byNeed[at], func(q *pending) bool { return q.demanded || l.vouches(q) })
}

// vouches reports whether p may ask for what it rests on: its device is a member.
func (l *Log) vouches(p *pending) bool { return l.roster.Has(p.header.Device) }

func (l *Log) drop(err error) {
	if len(l.dropped) < maxDropped {
		l.dropped = append(l.dropped, err)
	}
}

// missing is the error of an entry that rests on one that is not here.
type missing struct{ position notebook.Position }

func (m *missing) Error() string { return fmt.Sprintf("rests on %v, which is not here", m.position) }

// admit makes p the tip of its chain if everything that it rests on is here and
// its device may write. A zero Verified without an error is a duplicate.
func (l *Log) admit(p *pending) (Verified, error) {
	h := p.header
	at := h.Position()
	if l.frozen[h.Device] != nil {
		return Verified{}, refused(at, ErrFrozen)
	}
	c := l.forest.find(chainOf(at))
	if c != nil && h.Seq <= c.last {
		stands, known := l.hashAt(c, h.Seq)
		if known && stands != p.hash {
			return Verified{}, l.freeze(at, stands, p.hash, p.entry)
		}
		return Verified{}, nil
	}
	parent, err := l.before(h.Prev)
	var wrong *branch
	if errors.As(err, &wrong) {
		return Verified{}, l.freeze(h.Prev.Position, wrong.stands, h.Prev.Hash, p.entry)
	}
	if err != nil {
		return Verified{}, err
	}
	seen := new(vector)
	if c == nil {
		if h.Seq > 1 {
			return Verified{}, &missing{position: h.Prev.Position}
		}
		c = newChain(chainOf(at), h.Prev, parent)
	} else {
		seen = c.seen
	}
	marks := make([]mark, len(h.Seen))
	for i, s := range h.Seen {
		marks[i].seq = s.Position.Seq
		if marks[i].chain, err = l.before(s); errors.As(err, &wrong) {
			return Verified{}, refused(at, fmt.Errorf("%w: %v", ErrBranch, s.Position))
		} else if err != nil {
			return Verified{}, err
		}
	}
	seen = seen.with(marks)
	then := past{forest: l.forest, chain: c, seq: h.Seq, seen: seen}
	if l.roster.stranger(h.Device, then) {
		return Verified{}, refused(at, ErrStranger)
	}
	if !p.demanded && !l.wanted(at) {
		if l.roster.removed(h.Device) {
			return Verified{}, refused(at, ErrRemoved)
		}
		replaces := parent != nil && parent.isLeaf() && parent.last == h.Prev.Position.Seq
		if h.Seq == 1 && !replaces && len(l.leaves[h.Device]) >= maxLeaves {
			return Verified{}, refused(at, ErrLeaves)
		}
	}
	void := l.judge(h, p.entry.Body, then)
	if l.room != nil {
		if err := l.room(Verified{entry: p.entry, header: *h, hash: p.hash, past: then, void: void}); err != nil {
			return Verified{}, refused(at, err)
		}
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

// branch is the error of a head that names another entry than the one that stands there.
type branch struct{ stands notebook.Hash }

func (b *branch) Error() string { return "another entry stands there" }

// before finds the chain of an entry that something rests on. Nothing is
// before the first entry of a device.
func (l *Log) before(h notebook.Head) (*chain, error) {
	if h.IsZero() {
		return nil, nil
	}
	c := l.forest.find(chainOf(h.Position))
	if c == nil || c.last < h.Position.Seq {
		return nil, &missing{position: h.Position}
	}
	stands, known := l.hashAt(c, h.Position.Seq)
	if !known {
		return nil, refused(h.Position, ErrRecall)
	}
	if stands != h.Hash {
		return nil, &branch{stands: stands}
	}
	return c, nil
}

// freeze records that a device contradicted itself, and returns the proof.
func (l *Log) freeze(at notebook.Position, stands, other notebook.Hash, e notebook.Entry) error {
	proof := &Equivocation{Position: at, Hashes: [2]notebook.Hash{stands, other}}
	if l.recall != nil {
		if mine, found := l.recall(at); found {
			proof.Proof[0] = notebook.Entry{Header: mine.Header, Sig: mine.Sig}
		}
	}
	proof.Proof[1] = notebook.Entry{Header: e.Header, Sig: e.Sig}
	l.frozen[at.Device] = proof
	l.newlyFrozen = append(l.newlyFrozen, at.Device)
	for _, p := range l.waiting.of(at.Device) {
		l.waiting.remove(p)
	}
	return proof
}
