package daemon

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// The daemon is the log that the sync exchange reads and feeds: see [p2p.Log].

// Notebook is which notebook this is.
func (d *Daemon) Notebook() notebook.NotebookID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Notebook()
}

// Heads are the committed leaves of every device's log, and some of the entries
// that they continue: a peer that has not heard of a new epoch yet finds among
// them what it need not send.
func (d *Daemon) Heads() []notebook.Head { return *d.committed.Load() }

// Commits returns a channel that gets a value after commits.
func (d *Daemon) Commits(ctx context.Context) <-chan struct{} { return d.feed.subscribe(ctx) }

// Member reports whether the roster holds the device now.
func (d *Daemon) Member(device notebook.DeviceID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.member(device)
}

// member is Member under the mutex. A device that has just joined knows nobody
// but who took it in, until the roster has come.
func (d *Daemon) member(device notebook.DeviceID) bool {
	roster := d.log.Roster()
	return roster.Has(device) || device == d.introducer && !roster.Has(d.signer.Device())
}

// Missing yields the committed entries that a peer with these heads lacks, each
// after all that its author had seen.
func (d *Daemon) Missing(have []notebook.Head) iter.Seq2[notebook.Entry, error] {
	return func(yield func(notebook.Entry, error) bool) {
		rest := d.missing(have)
		for len(rest) > 0 {
			entries, err := d.read(rest)
			if err != nil {
				yield(notebook.Entry{}, err)
				return
			}
			if len(entries) == 0 {
				return // what is left is not committed yet
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// missing finds what of each chain is not covered by the heads. What a peer
// has of a chain is a beginning of it.
func (d *Daemon) missing(have []notebook.Head) []*trust.Stretch {
	d.mu.Lock()
	defer d.mu.Unlock()
	covered := d.log.Covers(have)
	var rest []*trust.Stretch
	for _, s := range d.log.Stretches() {
		if s.From = firstMissing(covered, s); s.From <= s.Tip.Position.Seq {
			rest = append(rest, &s)
		}
	}
	return rest
}

// firstMissing is the first entry of a stretch that is not covered.
func firstMissing(covered func(notebook.Place) bool, s trust.Stretch) uint64 {
	at := s.Tip
	return s.From + uint64(sort.Search(int(at.Position.Seq-s.From+1), func(i int) bool {
		at.Position.Seq = s.From + uint64(i)
		return !covered(at)
	}))
}

// A read transaction pins the pages that it sees, so a long exchange is many
// short ones of at most this much.
const (
	readEntries = 512
	readBytes   = 1 << 20
)

// read returns the next entries of the stretches in the order in which they
// arrived here, and shortens the stretches by them. Entries of one stretch
// arrived in the order of the chain, so the next one of all is the earliest
// among the first of each.
func (d *Daemon) read(rest []*trust.Stretch) ([]notebook.Entry, error) {
	var entries []notebook.Entry
	err := d.db.View(func(tx *store.Tx) error {
		excuses := map[notebook.PageID][]byte{}
		var err error
		next := make([]*store.Stored, len(rest))
		fetch := func(i int) error {
			s := rest[i]
			next[i] = nil
			at := s.Tip
			if s.From > at.Position.Seq {
				return nil
			}
			at.Position.Seq = s.From
			stored, err := tx.Entry(at)
			next[i] = stored
			return err
		}
		for i := range rest {
			if err := fetch(i); err != nil {
				return err
			}
		}
		for size := 0; len(entries) < readEntries && size < readBytes; {
			first := -1
			for i, s := range next {
				if s != nil && (first < 0 || s.Ordinal < next[first].Ordinal) {
					first = i
				}
			}
			if first < 0 {
				return nil
			}
			e := next[first].Entry
			if e.Body == nil {
				if e.Body, err = excuseFor(tx, d.signer.Device(), excuses, next[first].Page); err != nil {
					return err
				}
			}
			entries = append(entries, e)
			size += len(e.Header) + len(e.Body)
			rest[first].From++
			if err := fetch(first); err != nil {
				return err
			}
		}
		return nil
	})
	return entries, err
}

// Histories is how many histories are here beside those that devices should have.
func (d *Daemon) Histories() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Histories()
}

// Accept takes entries that peer sent and returns once they are committed.
func (d *Daemon) Accept(_ context.Context, peer notebook.DeviceID, entries []notebook.Entry) error {
	return d.takeIn(peer, entries)
}

// takeIn takes entries that peer sent, in as many steps as their work makes
// good, and returns once they are committed. Without a peer it looks again at
// what waits here for room, or for calm.
func (d *Daemon) takeIn(peer notebook.DeviceID, entries []notebook.Entry) error {
	var late []error // what became of entries that may still come in
	var cut []notebook.DeviceID
	taken, lost := 0, false
	for again := peer.IsZero(); again || len(entries) > 0; {
		var offence error
		err := d.step(func(b *batch) error {
			d.taking = b
			defer func() { d.taking = nil }()
			var verified []trust.Verified
			if again {
				verified = d.log.Retry()
			}
			for len(entries) > 0 && b.work < stepWork && !b.more && offence == nil && d.broken() == nil {
				n := min(takeChunk, len(entries))
				more, err := d.log.Take(peer, entries[:n])
				verified, entries = append(verified, more...), entries[n:]
				switch {
				case err != nil && trust.Held(err):
					late = append(late, err) // a later entry may rest on it
				case err != nil && trust.Innocent(err):
					if errors.Is(err, trust.ErrCloned) {
						d.newEpoch()
					}
					d.note(b, peer, err)
				case err != nil:
					offence = err
				}
			}
			taken += len(verified)
			if err := d.applyAll(b, verified); err != nil {
				d.fail(err)
			}
			if d.broken() != nil {
				return nil
			}
			lost = lost || b.lost
			for _, dropped := range d.log.Dropped() {
				d.note(b, peer, dropped)
			}
			if offence != nil {
				d.note(b, peer, offence)
			}
			cut, b.cut = append(cut, b.cut...), nil
			again = b.more && offence == nil
			if again || len(entries) > 0 && offence == nil {
				return nil
			}
			b.cut = cut
			if len(late) > 0 && d.log.Waiting() > 0 {
				d.note(b, peer, late[0])
			}
			if taken > 0 && !peer.IsZero() {
				b.tell(notebook.Event{Kind: "sync", Device: peer, Text: count(taken, "entry", "entries") + " from " + d.name(peer)})
			}
			d.joined(b)
			if err := d.cutRemoved(b); err != nil {
				d.logger.Error("the cut of a removed device was not written", "error", err) // no fault of the peer
			}
			return nil
		})
		if err != nil {
			return err
		}
		if offence != nil {
			return offence
		}
	}
	if lost {
		d.rewrite()
	}
	return nil
}

// applyAll applies what the log took in one step.
func (d *Daemon) applyAll(b *batch, verified []trust.Verified) error {
	if d.log.Overturned() {
		if err := d.overturn(b, verified); err != nil {
			return err
		}
	} else {
		for _, v := range verified {
			if d.apply(b, v); d.broken() != nil {
				return nil
			}
		}
	}
	b.judged = nil
	d.confirmPurges(b)
	return nil
}

// maxNotes is how many notes wait for a person at one time.
const maxNotes = 64

// note tells the person of something that was not taken, once.
func (d *Daemon) note(b *batch, peer notebook.DeviceID, err error) {
	text := "from " + d.name(peer) + ": " + notebook.EscapeLine(err.Error())
	if !d.keepNote(text) {
		return
	}
	b.tell(notebook.Event{Kind: "note", Device: peer, Text: text})
}

// keepNote adds a note to those that wait for a person; false if it does already.
func (d *Daemon) keepNote(text string) bool {
	if slices.Contains(d.notes, text) {
		return false
	}
	d.notes = append(d.notes, text)
	if len(d.notes) > maxNotes {
		d.notes = d.notes[1:]
	}
	return true
}

// Acknowledged remembers what a peer has committed.
func (d *Daemon) Acknowledged(peer notebook.DeviceID, heads []notebook.Head) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acknowledged[peer] = slices.Clone(heads)
}
