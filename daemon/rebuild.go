package daemon

import (
	"fmt"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
)

// rebuild makes a page anew from its log: everything passes the gate once more,
// into a fresh shadow and a fresh document. It is the way out of a page whose
// records were damaged, or whose document does not agree with its history. The
// fences that count as this person's are not in the log, so they never become
// more: one that does not read as it is recorded is this person's no more.
func (d *Daemon) rebuild(ref string) (*notebook.PageInfo, error) {
	var id notebook.PageID
	var notes []string
	err := d.step(func(b *batch) (err error) {
		if id, err = d.index.resolveAny(ref, time.Now()); err != nil {
			return err
		}
		if d.index.cards[id].Purged {
			return notebook.Errorf(notebook.CodeNotFound, "the text of that page was purged, so there is nothing to make it from")
		}
		notes, err = d.remake(b, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	info := d.index.info(id, d.index.cards[id])
	p, err := d.page(id)
	if err == nil {
		_, err = d.writer(p)
	}
	if err != nil {
		notes = append(notes, "it can be read, and not written on this device: copy its text into a new page with noted page show --raw")
		d.logger.Error("a page that was made anew cannot be written", "page", id, "error", err)
	}
	info.Notes = append(info.Notes, notes...)
	return &info, nil
}

// remake puts a page that is made from its entries in the place of the one that
// is kept, and says what was different.
func (d *Daemon) remake(b *batch, id notebook.PageID) (notes []string, err error) {
	if err := d.drain(); err != nil {
		return nil, err
	}
	p := &page{id: id, shadow: crdt.NewPage(id), registers: crdt.NewRegisters(id), own: crdt.NewOwnFences(), used: d.tick, anew: true}
	changed, entries, void, holds := 0, 0, d.void, false
	var own []byte
	err = d.db.View(func(tx *store.Tx) error {
		if own, err = tx.Get(store.OwnFences, id[:]); err != nil {
			return err
		}
		var s store.Stored
		for v, err := range d.log.Replay(func(yield func(notebook.Entry, error) bool) {
			for stored, err := range tx.Entries(1) {
				s = stored
				if !yield(stored.Entry, err) {
					return
				}
			}
		}) {
			if err != nil {
				return notebook.Errorf(notebook.CodeFailed, "the log itself is damaged: %s", notebook.EscapeLine(err.Error())).
					With("keep a copy of noted.db and pair this device again; other members have what it had sent")
			}
			h := v.Header()
			if h.Page != id || h.Kind != notebook.KindText && h.Kind != notebook.KindSet {
				continue
			}
			entries++
			reason := v.Void()
			if reason == "" {
				apply := p.registers.Apply
				if h.Kind == notebook.KindText {
					apply = p.applyText
				}
				switch err := apply(v); {
				case err == nil:
					p.changed, holds = max(p.changed, h.Time), true
				case isVoid(err):
					reason = voidReason(err)
				default:
					return err
				}
			}
			if reason == s.Void {
				continue
			}
			changed++
			if s.Void != "" {
				void--
			}
			if reason != "" {
				void++
			}
			place := v.Place()
			b.write(func(tx *store.Tx) error { return tx.SetVoid(place, reason) })
		}
		return nil
	})
	if err != nil {
		b.writes = nil // nothing of a log that cannot be followed counts
		return nil, err
	}
	if !holds {
		return nil, notebook.Errorf(notebook.CodeNotFound, "nothing that the log says of this page holds")
	}
	if recorded, err := crdt.OpenOwnFences(own); err == nil {
		p.own = recorded
		p.own.Other(p.shadow)
	} else {
		notes = append(notes, "the record of the fences that you typed here was damaged: they count as foreign now")
	}
	if void != d.void {
		d.setVoid(b, void)
	}
	if changed > 0 {
		notes = append(notes, count(changed, "entry is", "entries are")+" judged differently now")
	}
	if old := d.open[id]; old != nil {
		old.closeWriter()
	}
	delete(d.models.killers, id)
	d.open[id] = p
	b.touch(p, p.changed)
	b.tell(notebook.Event{Kind: "note", Page: id, Text: fmt.Sprintf("%s was made anew from %s", d.pageName(id), count(entries, "entry", "entries"))})
	return notes, nil
}
