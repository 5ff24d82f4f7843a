package daemon

import (
	"fmt"
	"slices"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// A purge lets go of a page's text for good: the bodies of its text and its
// results are dropped, their headers and signatures stay, so that every chain
// still verifies. It is an entry of the page like any other, by whoever purged
// it. On such a page no text entry has a verdict, before and after the purge, so
// that devices which never had the text find the same as those that had it.
//
// What is dropped can only be passed on without its text, and what comes
// without its text is taken where a member's purge comes in its place. Each
// member that hears of a purge says so itself: a new device goes by the word of
// the device that took it in, before it knows anybody else.

// excuses reports whether an entry of a page may come without its body because
// a device purged the page. It is called by the log, under d.mu.
func (d *Daemon) excuses(page notebook.PageID, by notebook.DeviceID) bool {
	if d.isPurged(page) {
		return true
	}
	return d.vouches(by) || d.member(by) && !d.log.Roster().Has(by)
}

// vouches reports whether a device is a member that writes.
func (d *Daemon) vouches(device notebook.DeviceID) bool {
	return slices.ContainsFunc(d.log.Roster().Members(), func(m trust.Member) bool {
		return m.Device == device && !m.Removed && m.Role != notebook.RoleHub
	})
}

// isPurged reports whether a page is purged, as far as this device knows now.
func (d *Daemon) isPurged(id notebook.PageID) bool {
	if p := d.open[id]; p != nil {
		return p.registers.Purged()
	}
	return d.index.cards[id].Purged
}

// comesBare reports whether an entry is kept without its body, and so has no
// verdict: that of a purged page, and one that tells of a purge.
func (d *Daemon) comesBare(v trust.Verified) bool {
	h := v.Header()
	return (h.Kind == notebook.KindText || h.Kind == notebook.KindResult) && (v.Entry().Body == nil || d.isPurged(h.Page))
}

// logVoid is why the log says that an entry does nothing. One that is kept
// without its body has no verdict.
func (d *Daemon) logVoid(v trust.Verified) string {
	if d.comesBare(v) {
		return ""
	}
	return v.Void()
}

// lostPurge empties a page whose purge is of a history that does not stand:
// where that was not known yet the text is gone, and no device is to have more
// than another.
func (d *Daemon) lostPurge(b *batch, v trust.Verified) error {
	h := v.Header()
	if h.Kind != notebook.KindSet || !v.Lost() || h.Class != notebook.Typed {
		return nil
	}
	if set, err := notebook.DecodeSet(v.Entry().Body); err != nil || set.Register != notebook.RegisterPurged {
		return nil
	}
	p, err := d.page(h.Page)
	if err != nil || p.registers.Purged() {
		return err
	}
	excuse, err := notebook.EncodeExcuse(v.Entry())
	if err != nil {
		return err
	}
	p.registers.Purge(excuse)
	b.touch(p, 0)
	return d.empty(b, p)
}

// stayPurged makes registers that are made anew those of a purged page, as they
// were: what was dropped does not come back.
func stayPurged(tx *store.Tx, page notebook.PageID, before, now *crdt.Registers) error {
	if !before.Purged() {
		return nil
	}
	excuse := before.Excuse()
	if values := before.Values(notebook.RegisterPurged); len(values) > 0 {
		var err error
		if excuse, err = purgeEntry(tx, page, values[0].Head); err != nil {
			return err
		}
	}
	now.Purge(excuse)
	return nil
}

// applyBare takes an entry of a purged page, whose body is not kept. It may be
// how this device learns of the purge.
func (d *Daemon) applyBare(b *batch, p *page, v trust.Verified) error {
	b.bare[v.Hash()] = true
	if p.registers.Purged() {
		return nil
	}
	p.registers.Purge(v.Excuse())
	b.touch(p, 0)
	return d.empty(b, p)
}

// empty drops all that is kept of a page's text. What is on its way to the disk
// is waited for, since it is dropped there.
func (d *Daemon) empty(b *batch, p *page) error {
	if err := d.drain(); err != nil {
		return err
	}
	id, self := p.id, d.signer.Device()
	p.changed = 0
	var drop []notebook.Place
	err := d.db.View(func(tx *store.Tx) error {
		for s, err := range tx.PageEntries(id) {
			if err != nil {
				return err
			}
			h, err := notebook.DecodeHeader(s.Entry.Header)
			switch {
			case err != nil:
				return err
			case h.Kind == notebook.KindSet && s.Void == "":
				p.changed = max(p.changed, h.Time)
			case h.Kind == notebook.KindText || h.Kind == notebook.KindResult:
				drop = append(drop, s.Place)
				d.account(h.Device).Used.Bytes -= uint64(len(s.Entry.Body))
				b.accounts[h.Device] = true
				if s.Void != "" {
					d.void--
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Of this batch, what came before: what it has put, and what it is about to.
	forget := func(k *bodied) (dropped bool) {
		switch h := k.header; {
		case h.Page != id:
		case h.Kind == notebook.KindSet && k.void == "":
			p.changed = max(p.changed, h.Time)
		case h.Kind == notebook.KindText || h.Kind == notebook.KindResult:
			d.account(h.Device).Used.Bytes -= uint64(k.body)
			k.body = 0
			return true
		}
		return false
	}
	for i := range b.onPages {
		if k := &b.onPages[i]; forget(k) {
			drop = append(drop, k.place)
			if k.void != "" {
				d.void--
				k.void = ""
			}
		}
	}
	for i := range b.judged {
		if k := &b.judged[i]; forget(k) {
			b.bare[k.hash], b.verdicts[k.hash] = true, ""
		}
	}
	d.setVoid(b, d.void)
	d.learnPage(b, p) // a copy of it that comes back is foreign still
	p.shadow, p.own, p.learned, p.unsaved = crdt.NewPage(id), crdt.NewOwnFences(), learned{}, nil
	p.closeWriter()
	p.textChanged()
	d.approvals.Forget(id)
	d.keepDecisions(b)
	b.write(func(tx *store.Tx) error {
		for _, at := range drop {
			if err := tx.DropBody(at); err != nil {
				return err
			}
		}
		if err := dropResults(tx, id); err != nil {
			return err
		}
		return purgeOutcomes(tx, id)
	})
	b.tell(notebook.Event{Kind: "note", Page: id, Device: self, Text: "the text of " + d.pageName(id) + " was purged, for good"})
	return nil
}

// dropResults drops the newest results of a page's fences, and of those that
// include one of it or whose query found something on it.
func dropResults(tx *store.Tx, page notebook.PageID) error {
	var keys [][]byte
	for r, err := range tx.All(store.Results, nil) {
		if err != nil {
			return err
		}
		if rec, err := openRun(r.Value); err != nil || rec.touches(page) { // of one that cannot be read nobody can tell
			keys = append(keys, r.Key)
		}
	}
	for _, key := range keys {
		if err := tx.Delete(store.Results, key); err != nil {
			return err
		}
	}
	return nil
}

// confirmPurges says of the pages that others purged that their text is gone
// here too, and of those of which that could not be said yet.
func (d *Daemon) confirmPurges(b *batch) {
	d.unsaid = append(d.unsaid, b.purged...)
	b.purged = nil
	if len(d.unsaid) == 0 || !d.vouches(d.signer.Device()) {
		return
	}
	pages := d.unsaid
	d.unsaid = nil
	for _, id := range pages {
		p, err := d.page(id)
		if err == nil && !p.registers.PurgedBy(d.signer.Device()) {
			err = d.setRegister(b, typed, p, notebook.Set{Register: notebook.RegisterPurged, Flag: true})
		}
		if err != nil {
			d.logger.Warn("a purge was not confirmed", "page", id, "error", err)
		}
	}
}

// excuseFor is what is sent instead of the bodies of a page's entries: this
// device's own purge, or another's as long as it has not said so itself.
func excuseFor(tx *store.Tx, self notebook.DeviceID, known map[notebook.PageID][]byte, page notebook.PageID) ([]byte, error) {
	if b := known[page]; b != nil {
		return b, nil
	}
	record, err := tx.Get(store.Registers, page[:])
	if err != nil {
		return nil, err
	}
	registers, err := crdt.OpenRegisters(page, record)
	if err != nil {
		return nil, err
	}
	excuse := registers.Excuse()
	if values := registers.Values(notebook.RegisterPurged); len(values) > 0 {
		head := values[0].Head
		if i := slices.IndexFunc(values, func(v crdt.Value) bool { return v.Head.Position.Device == self }); i >= 0 {
			head = values[i].Head
		}
		if excuse, err = purgeEntry(tx, page, head); err != nil {
			return nil, err
		}
	}
	known[page] = excuse
	return excuse, nil
}

// purgeEntry is the purge of a page that a head names, as an excuse.
func purgeEntry(tx *store.Tx, page notebook.PageID, head notebook.Head) ([]byte, error) {
	s, err := tx.Entry(notebook.Place{Position: head.Position})
	if err != nil {
		return nil, err
	}
	if s != nil && s.Entry.Hash() == head.Hash {
		return notebook.EncodeExcuse(s.Entry)
	}
	for s, err := range tx.PageEntries(page) { // it is of a branch that came later
		if err != nil {
			return nil, err
		}
		if s.Entry.Hash() == head.Hash {
			return notebook.EncodeExcuse(s.Entry)
		}
	}
	return nil, fmt.Errorf("the purge %v of page %s is not kept", head.Position, page)
}

// purge lets go of the text of a page that is deleted or full.
func (d *Daemon) purge(ref string, presence notebook.Presence) (*notebook.PageInfo, error) {
	id, title, err := d.purgeable(ref)
	if err != nil {
		return nil, err
	}
	if err := d.present(presence, "purge "+title); err != nil {
		return nil, err
	}
	err = d.step(func(b *batch) error {
		p, err := d.page(id)
		if err != nil {
			return err
		}
		if p.registers.Purged() {
			return nil
		}
		if err := d.setRegister(b, typed, p, notebook.Set{Register: notebook.RegisterPurged, Flag: true}); err != nil {
			return err
		}
		return d.empty(b, p)
	})
	if err == nil {
		err = d.resume()
	}
	if err != nil {
		return nil, err
	}
	return d.pageInfo(id), nil
}

// purgeable finds the page that is to be purged, and its title as a line.
func (d *Daemon) purgeable(ref string) (id notebook.PageID, title string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id, err = d.index.resolveAny(ref, time.Now()); err != nil {
		return id, "", err
	}
	card := d.index.cards[id]
	full := slices.ContainsFunc(slices.Collect(pausedPages(d.paused)), func(page notebook.PageID) bool { return page == id })
	if !card.Deleted && !full {
		p, err := d.page(id)
		if err != nil {
			return id, "", err
		}
		full = p.shadow.Full()
	}
	switch {
	case card.Purged:
		return id, "", notebook.Errorf(notebook.CodeNotFound, "the text of %s was purged already", d.pageName(id))
	case !card.Deleted && !full:
		return id, "", notebook.Errorf(notebook.CodeRefused, "the page %s is neither deleted nor full", d.pageName(id)).
			With("noted page delete %s comes first", quoted("="+id.String()))
	}
	return id, d.pageName(id), nil
}

// pausedPages yields the pages for which a log is paused.
func pausedPages(paused map[notebook.DeviceID]pause) func(func(notebook.PageID) bool) {
	return func(yield func(notebook.PageID) bool) {
		for _, p := range paused {
			if !p.page.IsZero() && !yield(p.page) {
				return
			}
		}
	}
}
