package daemon

import (
	"cmp"
	"errors"
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
	late      [][]byte     // changes that the page has taken and its writer has not
	lateSize  int          // of them, in bytes
	unsaved   [][]byte     // changes that no sealed batch has yet
	anew      bool         // unsaved has all its changes, and the disk other ones
	fences    []crdt.Fence // of the current text, once read
	unread    error        // why its fences cannot be read
	read      bool
	learned   learned // what the record of foreign text has of it
	changed   int64   // time of the newest entry, as its author claims
	dirty     bool    // changed by a step that is not sealed yet
	saved     *sealed // the last batch that holds its records; nil if none since it was opened
	used      uint64  // tick of the last use
}

// openPages is how many pages stay open: an order more than a person has on
// screens, few enough for their shadows to fit the memory budget.
const openPages = 128

// maxLate is how many bytes of changes from elsewhere wait for the next edit
// here. Beyond it the writer is closed, and reads them in the log if it is opened.
const maxLate = 1 << 20

// releaseAfter is how many pages are opened before the store gives back what it
// holds of its file: a few records of each, and their neighbours.
const releaseAfter = 256

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
	if d.loaded++; d.loaded%releaseAfter == 0 {
		if err := d.db.Release(); err != nil {
			d.logger.Warn("the store cannot give memory back", "error", err)
		}
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
		p.learned.upTo = p.shadow.Mark()
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
			With("noted page rebuild %s makes it anew from its history", quoted("="+id.String()))
	}
	p.learned.upTo = p.shadow.Mark()
	if card.Fences > 0 {
		for range d.strangeBodies(p) { // those of its last change are in the record
		}
	}
	return p, nil
}

// savePage puts the records of a changed page into the batch, and its card
// into the index.
func (d *Daemon) savePage(b *batch, p *page) error {
	c := p.card(d.signer.Device())
	d.index.put(p.id, c)
	if err := d.voidApprovals(b, p); err != nil {
		return err
	}
	d.noticeAuto(p)
	if err := d.noticePolicy(b, p); err != nil {
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
func (p *page) card(self notebook.DeviceID) card {
	c := card{
		Version: cardVersion, Title: p.registers.Title(), Deleted: p.registers.Deleted(), Undeleted: p.registers.Undeleted(),
		Size: p.shadow.Size(), Changed: p.changed, Revision: p.shadow.Revision(),
		Purged: p.registers.Purged(), Vouched: p.registers.PurgedBy(self),
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

// writer returns what makes the page's changes. It opens it from the log, and
// brings it to the page's revision.
func (d *Daemon) writer(p *page) (*crdt.Writer, error) {
	if p.writer != nil && len(p.late) > 0 {
		late := p.late
		p.late, p.lateSize = nil, 0
		if err := p.writer.Load(late...); err != nil {
			p.closeWriter()
			if errors.Is(err, crdt.ErrGone) {
				return nil, err
			}
			// It is opened anew, which says so if it cannot be.
			d.logger.Warn("writer of a page closed", "page", p.id, "error", err)
		}
	}
	if p.writer != nil {
		return p.writer, nil
	}
	if p.saved != nil {
		// The log below is read from the disk.
		if err := p.saved.wait(); err != nil {
			return nil, err
		}
	}
	model, err := d.model(p)
	if err != nil {
		return nil, err
	}
	viewed := d.db.View(func(tx *store.Tx) error {
		p.writer, err = crdt.OpenWriter(p.shadow, model, p.changes(tx))
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
	p.late, p.lateSize = nil, 0
}

// arrived tells the writer of a change from elsewhere, when there is one: it
// reads it when something is written here.
func (p *page) arrived(change []byte) {
	if p.writer == nil {
		return
	}
	if p.late, p.lateSize = append(p.late, change), p.lateSize+len(change); p.lateSize > maxLate {
		p.closeWriter()
	}
}

// changes yields the automerge changes that the page has taken, in order.
func (p *page) changes(tx *store.Tx) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if !p.anew {
			for change, err := range changes(tx, p.id) {
				if !yield(change, err) {
					return
				}
			}
		}
		for _, change := range p.unsaved {
			if !yield(change, nil) {
				return
			}
		}
	}
}

// changes yields the automerge changes of a page that the gate accepted and that are on the disk, in order.
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
