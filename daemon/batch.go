package daemon

import (
	"maps"
	"sync"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// batch collects what one step changes. The step fills it under the daemon's
// mutex; sealed, it is written in one transaction, and what it has to tell is
// told once that is committed.
type batch struct {
	writes  []func(*store.Tx) error
	entries bool                              // entries were appended: peers want to know
	kept    map[notebook.Place]notebook.Entry // those entries
	dirty   map[notebook.PageID]*page         // pages whose records changed
	gone    []notebook.PageID                 // pages of which nothing stands any more
	removed []notebook.DeviceID               // whom to cut off
	cut     []notebook.DeviceID               // of whom this device has what the remover had not seen
	lost    bool                              // text of this device is void since, and is to be written again
	events  []notebook.Event
	foreign crdt.ForeignText // what others have written and this person has typed first

	accounts map[notebook.DeviceID]bool // that changed
	verdicts map[notebook.Hash]string   // on entries that the log is about to accept: why they are void, or nothing
	bare     map[notebook.Hash]bool     // of those, the ones that are kept without their body
	judged   []bodied                   // of those, in their order
	onPages  []bodied                   // entries of pages that were put, in their order
	purged   []notebook.PageID          // pages of which another device's purge came
	work     uint64                     // on what others sent, in steps
	more     bool                       // it came to too much for one step
}

// bodied is what a purge has to know of an entry that is not on the disk yet.
type bodied struct {
	place  notebook.Place
	header *notebook.Header
	hash   notebook.Hash
	body   int // bytes
	void   string
}

func newBatch() *batch {
	return &batch{
		dirty: map[notebook.PageID]*page{}, kept: map[notebook.Place]notebook.Entry{}, accounts: map[notebook.DeviceID]bool{},
		verdicts: map[notebook.Hash]string{}, bare: map[notebook.Hash]bool{},
	}
}

func (b *batch) write(f func(*store.Tx) error) { b.writes = append(b.writes, f) }

func (b *batch) tell(e notebook.Event) { b.events = append(b.events, e) }

// put keeps an entry. void is why its body counts for nothing, empty otherwise.
func (b *batch) put(v trust.Verified, void string) {
	b.entries = true
	place, header, entry := v.Place(), v.Header(), v.Entry()
	page := header.Page
	if b.bare[v.Hash()] {
		entry.Body = nil
	}
	b.kept[place] = entry
	if !page.IsZero() {
		b.onPages = append(b.onPages, bodied{place, header, v.Hash(), len(entry.Body), void})
	}
	b.write(func(tx *store.Tx) error {
		_, err := tx.PutEntry(place, page, entry, void)
		return err
	})
}

// sealed is a batch on its way to the disk.
type sealed struct {
	*batch
	heads []notebook.Head // of the log as of this batch
	done  chan struct{}   // closed once err is decided
	err   error
}

// wait returns once the batch is committed, or with the error that stopped the daemon.
func (s *sealed) wait() error {
	<-s.done
	return s.err
}

// committed reports whether the batch is on the disk.
func (s *sealed) committed() bool {
	select {
	case <-s.done:
		return s.err == nil
	default:
		return false
	}
}

// seal encodes what the batch changed and queues it. It is called under d.mu,
// so batches reach the disk in the order of the steps that made them.
func (d *Daemon) seal(b *batch) *sealed {
	s := &sealed{batch: b, done: make(chan struct{})}
	fail := func(err error) *sealed {
		d.fail(err)
		s.err = err
		close(s.done)
		return s
	}
	for _, p := range b.dirty {
		d.learnPage(b, p)
		if err := d.savePage(b, p); err != nil {
			return fail(err)
		}
		p.saved, p.dirty, p.unsaved, p.anew = s, false, nil, false
	}
	if err := d.foreign.seal(s); err != nil {
		return fail(err)
	}
	d.voidAsks(b)
	if err := d.voidIncluding(b); err != nil {
		return fail(err)
	}
	if err := d.saveAccounts(b); err != nil {
		return fail(err)
	}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == "page" {
			e.Title = d.index.cards[e.Page].Title
			e.Text = notebook.EscapeLine(e.Title) + " changed"
		}
	}
	d.tidyPages()
	if b.entries {
		s.heads = d.log.Locator()
		d.unsaved.add(b.kept)
	}
	d.newest = s
	d.writes.put(s)
	return s
}

// drain waits until all that was thought is on the disk, for who reads it there
// while holding d.mu.
func (d *Daemon) drain() error {
	if d.newest == nil {
		return nil
	}
	return d.newest.wait()
}

// commit writes sealed batches: all that are queued share one transaction.
func (d *Daemon) commit(group []*sealed) {
	err := d.broken()
	if err == nil {
		err = d.write(group)
	}
	if err != nil {
		// What is in memory is now ahead of the disk: nothing may be built on it.
		d.fail(err)
	}
	entries := false
	for _, s := range group {
		if s.err = err; err == nil {
			entries = entries || s.entries
			d.announce(s)
			d.unsaved.remove(s.kept)
		}
		close(s.done)
	}
	if entries {
		d.feed.signal()
	}
}

// write puts the bytes of sealed batches on the disk.
func (d *Daemon) write(group []*sealed) error {
	return d.db.Update(func(tx *store.Tx) error {
		for _, s := range group {
			for _, write := range s.writes {
				if err := write(tx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// announce makes a committed batch known.
func (d *Daemon) announce(s *sealed) {
	if s.heads != nil {
		d.committed.Store(&s.heads)
	}
	for _, device := range s.removed {
		d.node.Drop(device)
	}
	d.events.tell(s.events...)
}

// unsaved are the entries on their way to the disk.
type unsaved struct {
	mu      sync.Mutex // guards entries
	entries map[notebook.Place]notebook.Entry
}

func newUnsaved() *unsaved { return &unsaved{entries: map[notebook.Place]notebook.Entry{}} }

func (u *unsaved) add(entries map[notebook.Place]notebook.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(u.entries, entries)
}

func (u *unsaved) remove(entries map[notebook.Place]notebook.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p := range entries {
		delete(u.entries, p)
	}
}

func (u *unsaved) find(p notebook.Place) (notebook.Entry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	e, found := u.entries[p]
	return e, found
}
