package daemon

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
)

// page is a page that is open: its shadow and what hangs on it.
type page struct {
	id        notebook.PageID
	shadow    *crdt.Page
	registers *crdt.Registers
	own       *crdt.OwnFences
	writer    *crdt.Writer // nil until something is written here
	fences    []crdt.Fence // of the current text, once read
	unread    error        // why its fences cannot be read
	read      bool
	changed   int64   // time of the newest entry, as its author claims
	dirty     bool    // changed by a step that is not sealed yet
	saved     *sealed // the last batch that holds its records; nil if none since it was opened
	used      uint64  // tick of the last use
}

// openPages is how many pages stay open: an order more than a person has on
// screens, few enough for their shadows to fit the memory budget.
const openPages = 128

// openWriters is how many automerge documents are opened before all but the
// newest eighth of them are dropped and their memory is given back. Each costs
// up to 1.3 MB of C heap for a small page.
const openWriters = 64

// page opens a page, or makes an empty one. It is called under d.mu.
func (d *Daemon) page(id notebook.PageID) (*page, error) {
	d.tick++
	if p, ok := d.open[id]; ok {
		p.used = d.tick
		return p, nil
	}
	p, err := d.loadPage(id)
	if err != nil {
		return nil, err
	}
	p.used = d.tick
	d.open[id] = p
	d.tidyPages()
	return p, nil
}

func (d *Daemon) loadPage(id notebook.PageID) (*page, error) {
	p := &page{id: id, shadow: crdt.NewPage(id), registers: crdt.NewRegisters(id), own: crdt.NewOwnFences()}
	card, known := d.index.cards[id]
	if !known {
		return p, nil
	}
	p.changed = card.Changed
	err := d.db.View(func(tx *store.Tx) error {
		shadow, err := tx.Get(store.Shadows, id[:])
		if err != nil {
			return err
		}
		registers, err := tx.Get(store.Registers, id[:])
		if err != nil {
			return err
		}
		own, err := tx.Get(store.OwnFences, id[:])
		if err != nil {
			return err
		}
		if p.shadow, err = crdt.OpenPage(id, shadow); err != nil {
			return err
		}
		if p.registers, err = crdt.OpenRegisters(id, registers); err != nil {
			return err
		}
		p.own, err = crdt.OpenOwnFences(own)
		return err
	})
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeFailed, "the page %s cannot be opened: %v", id, err).
			With("keep a copy of noted.db and pair this device again; other members have what it had sent")
	}
	return p, nil
}

// savePage puts the records of a changed page into the batch, and its card
// into the index.
func (d *Daemon) savePage(b *batch, p *page) error {
	c := p.card()
	d.index.put(p.id, c)
	d.voidAsks(b, p)
	if err := d.voidApprovals(b, p); err != nil {
		return err
	}
	records, err := p.records(c)
	if err != nil {
		return err
	}
	id := p.id
	b.write(func(tx *store.Tx) error {
		for _, r := range records {
			if err := tx.Put(r.space, id[:], r.value); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// card is what is remembered of the page when it is closed.
func (p *page) card() card {
	c := card{
		Version: cardVersion, Title: p.registers.Title(), Deleted: p.registers.Deleted(), Undeleted: p.registers.Undeleted(),
		Size: p.shadow.Size(), Changed: p.changed, Revision: p.shadow.Revision(),
	}
	if fences, err := p.readFences(); err == nil {
		c.Fences = len(fences)
	}
	return c
}

// pageRecord is one of the records in which a page is kept.
type pageRecord struct {
	space store.Space
	value []byte
}

func (p *page) records(c card) ([]pageRecord, error) {
	info, err := notebook.Marshal(c)
	if err != nil {
		return nil, err
	}
	registers, err := p.registers.Record()
	if err != nil {
		return nil, err
	}
	own, err := p.own.Record()
	if err != nil {
		return nil, err
	}
	return []pageRecord{{store.Infos, info}, {store.Shadows, p.shadow.Record()}, {store.Registers, registers}, {store.OwnFences, own}}, nil
}

// readFences are the fences of the current text.
func (p *page) readFences() ([]crdt.Fence, error) {
	if !p.read {
		p.fences, p.unread = p.shadow.Fences()
		p.read = true
	}
	return p.fences, p.unread
}

// textChanged forgets what was read of the old text.
func (p *page) textChanged() { p.fences, p.unread, p.read = nil, nil, false }

// writer returns what makes the page's changes, which it opens from the log.
func (d *Daemon) writer(p *page) (*crdt.Writer, error) {
	if p.writer != nil {
		return p.writer, nil
	}
	d.tidyWriters()
	if p.saved != nil {
		// The log below is read from the disk.
		if err := p.saved.wait(); err != nil {
			return nil, err
		}
	}
	var err error
	viewed := d.db.View(func(tx *store.Tx) error {
		p.writer, err = crdt.OpenWriter(p.shadow, crdt.NewModel(p.shadow), changes(tx, p.id))
		return nil
	})
	if viewed != nil {
		return nil, viewed
	}
	return p.writer, err
}

// closeWriter drops the page's writer: it is opened again when it is needed.
func (p *page) closeWriter() {
	if p.writer != nil {
		_ = p.writer.Close() // it is not asked for anything any more
		p.writer = nil
	}
}

// changes yields the automerge changes of a page that the gate accepted, in order.
func changes(tx *store.Tx, id notebook.PageID) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for s, err := range tx.PageEntries(id) {
			if err != nil {
				yield(nil, err)
				return
			}
			if s.Void != "" || s.Entry.Body == nil {
				continue
			}
			header, err := notebook.DecodeHeader(s.Entry.Header)
			if err != nil {
				yield(nil, err)
				return
			}
			if header.Kind == notebook.KindText && !yield(s.Entry.Body, nil) {
				return
			}
		}
	}
}

// byAge sorts open pages, the one that was not used for longest first.
func (d *Daemon) byAge() []*page {
	return slices.SortedFunc(maps.Values(d.open), func(a, b *page) int { return cmp.Compare(a.used, b.used) })
}

// tidyPages closes the pages that were not used for longest. Those whose
// records are not on the disk yet stay, and so does the newest, which somebody
// is about to change: from a second copy of it the change would be lost.
func (d *Daemon) tidyPages() {
	if len(d.open) <= openPages {
		return
	}
	for _, p := range d.byAge() {
		if len(d.open) <= openPages*3/4 {
			break
		}
		if p.used != d.tick && !p.dirty && (p.saved == nil || p.saved.committed()) {
			p.closeWriter()
			delete(d.open, p.id)
		}
	}
}

// tidyWriters closes the documents that were not used for longest and gives
// their memory back, once enough were opened for that to be worth its time.
func (d *Daemon) tidyWriters() {
	if d.opened++; d.opened < openWriters {
		return
	}
	d.opened = 0
	writers := 0
	for _, p := range slices.Backward(d.byAge()) {
		if p.writer == nil {
			continue
		}
		if writers++; writers > openWriters/8 {
			p.closeWriter()
		}
	}
	crdt.Collect()
}
