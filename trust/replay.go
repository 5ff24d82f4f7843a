package trust

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"noted/notebook"
)

// replayed is how far a chain has come in a replay.
type replayed struct {
	seq  uint64
	hash notebook.Hash
	seen *vector
}

// Replay judges all entries of the log anew, by the histories that stand now.
// The caller gives them in the order in which the log took them; each is yielded
// with its verdict of today. It ends with the first error: of the caller's, or
// because these are not the log's entries. Since every entry names the hash of
// the one before it, a replay that reached its end has seen the very entries whose
// signatures were verified; until then nothing that it yielded is to be kept.
// At its end the roster is as these entries make it.
func (l *Log) Replay(entries iter.Seq2[notebook.Entry, error]) iter.Seq2[Verified, error] {
	return func(yield func(Verified, error) bool) {
		r := &replay{log: l, roster: newRoster(), chains: make(map[*chain]*replayed), begin: make(map[*chain]*vector)}
		for e, err := range entries {
			var v Verified
			if err == nil {
				v, err = r.next(e)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
		for _, c := range l.forest.chains {
			if at := r.chains[c]; at == nil || at.seq != c.last || at.hash != c.tip().Hash {
				yield(Verified{}, fmt.Errorf("replay: the entries end before %v", c.place(c.last).Position))
				return
			}
		}
		// Beside what was to be flushed already: a caller may replay several times.
		for _, roster := range []*Roster{l.roster, r.roster} {
			l.members = slices.AppendSeq(l.members, maps.Keys(roster.devices))
			l.unadded = slices.AppendSeq(l.unadded, maps.Keys(roster.unadded))
		}
		l.roster, l.overturned = r.roster, false
	}
}

type replay struct {
	log    *Log
	roster *Roster
	chains map[*chain]*replayed
	begin  map[*chain]*vector // of branches: what the author had seen where they begin
}

func (r *replay) next(e notebook.Entry) (Verified, error) {
	h, err := notebook.DecodeHeader(e.Header)
	if err != nil {
		return Verified{}, fmt.Errorf("replay: %w", err)
	}
	hash := e.Hash()
	c := r.chainOf(h, hash)
	if c == nil {
		return Verified{}, fmt.Errorf("replay: entry %v does not follow those before it", h.Position())
	}
	dropped := e.Body == nil && (h.Kind == notebook.KindResult || h.Kind == notebook.KindText)
	if !dropped && (len(e.Body) != int(h.Size) || notebook.BodyDigest(e.Body) != h.Body) {
		return Verified{}, refused(h.Position(), ErrBody)
	}
	at := r.chains[c]
	if at == nil {
		at = &replayed{seen: r.begin[c]}
		if at.seen == nil {
			at.seen = new(vector)
		}
		r.chains[c] = at
	}
	marks, err := r.log.marks(h.Seen)
	if err != nil {
		return Verified{}, fmt.Errorf("replay: %w", err)
	}
	at.seq, at.hash, at.seen = h.Seq, hash, at.seen.with(marks)
	for _, k := range r.log.forest.epochs[c.id.epochID] {
		if k.parent == c && k.from == h.Seq+1 {
			r.begin[k] = at.seen
		}
	}
	past := past{forest: r.log.forest, chain: c, seq: h.Seq, seen: at.seen}
	void := r.log.judge(r.roster, h, e.Body, past)
	if hash == notebook.Hash(r.log.nb) {
		void = "" // nobody added the founder
	}
	r.roster = r.roster.after(r.log, h, hash, e.Body, past, void)
	return Verified{entry: e, header: *h, hash: hash, past: past, void: void}, nil
}

// chainOf is the chain of which an entry is the next one.
func (r *replay) chainOf(h *notebook.Header, hash notebook.Hash) *chain {
	epoch := epochOfPosition(h.Position())
	if c := r.log.forest.chains[chainID{epoch, hash}]; c != nil && c.from == h.Seq && r.chains[c] == nil {
		return c
	}
	for _, c := range r.log.forest.epochs[epoch] {
		at := r.chains[c]
		switch {
		case at == nil && h.Seq == 1 && c.id.fork.IsZero() && c.base == h.Prev:
			return c
		case at != nil && at.seq+1 == h.Seq && at.hash == h.Prev.Hash && h.Seq <= c.last:
			return c
		}
	}
	return nil
}
