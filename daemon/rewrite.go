package daemon

import (
	"errors"
	"fmt"
	"strings"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
)

// maxRewrites is how often a daemon writes again, between two starts, what
// another history of some device has undone. An honest household needs one for
// each side that a hostile device has told; more is somebody who makes this
// device work.
const maxRewrites = 64

// lostRecord is what this device had done to one page and is void since another
// history of some device stands: to be done again.
type lostRecord struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Title   string // of the page as it was, for the person
	Parts   []lostPart
}

// lostPart is what one change of what stands has undone.
type lostPart struct {
	_     struct{}        `cbor:",toarray"`
	Base  []notebook.Hash // the revision of which the splices speak
	Edits []lostEdit
	Sets  []lostValue
}

type lostEdit struct {
	_       struct{} `cbor:",toarray"`
	Class   notebook.Class
	Label   string
	Source  notebook.Source // of text that was moved
	Chars   int
	Splices []lostSplice
}

type lostSplice struct {
	_      struct{} `cbor:",toarray"`
	At     int
	Delete int
	Insert string
}

type lostValue struct {
	_     struct{} `cbor:",toarray"`
	Class notebook.Class
	Label string
	Body  []byte
}

const (
	lostVersion = 1
	maxLost     = 64 << 20 // a page whose every character is a splice of its own
)

// remember keeps what this device had done to a page and is gone.
func (o *overturning) remember(b *batch, r *remade, lost []crdt.Loss) error {
	id := r.page.id
	record := lostPart{Base: r.page.shadow.Revision()}
	for _, l := range lost {
		edit := lostEdit{Class: l.Author.Class, Label: l.Author.Label, Source: l.Author.Source, Chars: l.Chars}
		for _, s := range l.Splices {
			edit.Splices = append(edit.Splices, lostSplice{At: s.At, Delete: s.Delete, Insert: s.Insert})
		}
		record.Edits = append(record.Edits, edit)
	}
	for register, s := range r.sets {
		if values := r.before.registers.Values(register); len(values) == 0 || values[0].Head.Hash != s.hash {
			continue // another one had won
		}
		body, err := notebook.EncodeSet(&s.set)
		if err != nil {
			return err
		}
		record.Sets = append(record.Sets, lostValue{Class: s.author.Class, Label: s.author.Label, Body: body})
	}
	if len(record.Edits)+len(record.Sets) == 0 {
		return nil
	}
	kept, err := o.tx.Get(store.Lost, id[:])
	if err != nil {
		return err
	}
	all, err := openLost(kept)
	if err != nil {
		return err
	}
	if all.Title == "" {
		all.Title = r.before.registers.Title()
	}
	all.Parts = append(all.Parts, record)
	b.lost = true
	return keepLost(b, id, all)
}

func openLost(value []byte) (*lostRecord, error) {
	r := &lostRecord{Version: lostVersion}
	if value == nil {
		return r, nil
	}
	if err := notebook.Unmarshal(value, r, maxLost); err != nil {
		return nil, fmt.Errorf("what is to be written again cannot be read: %w", err)
	}
	if r.Version != lostVersion {
		return nil, fmt.Errorf("what is to be written again is kept in version %d: update noted", r.Version)
	}
	return r, nil
}

// keepLost keeps what is still to be written again of a page.
func keepLost(b *batch, id notebook.PageID, r *lostRecord) error {
	value, err := notebook.Marshal(r)
	if err != nil {
		return err
	}
	done := len(r.Parts) == 0
	b.write(func(tx *store.Tx) error {
		if done {
			return tx.Delete(store.Lost, id[:])
		}
		return tx.Put(store.Lost, id[:], value)
	})
	return nil
}

// rewrite does again what another history of some device has undone here, each
// page in a step of its own. What cannot be done now is done after the next
// start, or when the person has decided about this device.
func (d *Daemon) rewrite() {
	var pages []notebook.PageID
	err := d.db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Lost, nil) {
			if err != nil {
				return err
			}
			pages = append(pages, notebook.PageID(r.Key))
		}
		return nil
	})
	for _, id := range pages {
		err = errors.Join(err, d.step(func(b *batch) error { return d.rewritePage(b, id) }))
	}
	if err != nil {
		d.logger.Warn("what another history had undone was not written again", "error", err)
	}
}

// lostOf is what is to be written again of a page, nothing if that was done
// since somebody saw it there.
func (d *Daemon) lostOf(id notebook.PageID) (value []byte, err error) {
	if err := d.drain(); err != nil {
		return nil, err
	}
	err = d.db.View(func(tx *store.Tx) error {
		value, err = tx.Get(store.Lost, id[:])
		return err
	})
	return value, err
}

func (d *Daemon) rewritePage(b *batch, id notebook.PageID) error {
	value, err := d.lostOf(id)
	if err != nil || value == nil || d.log.Stopped(d.signer.Device()) {
		return err
	}
	record, err := openLost(value)
	if err != nil {
		return fmt.Errorf("page %s: %w", id, err)
	}
	title := notebook.EscapeLine(record.Title)
	if d.rewritten >= maxRewrites {
		d.remind(b, fmt.Sprintf("text of this device in %q is void and was not written again, as it happens too often: remove the device that signed two histories with noted device remove, then start the daemon again", title))
		return nil
	}
	p, err := d.page(id)
	if err != nil {
		return err
	}
	chars := 0
	for err == nil && len(record.Parts) > 0 {
		var n int
		n, err = d.rewritePart(b, p, &record.Parts[0])
		if chars += n; err == nil {
			record.Parts = record.Parts[1:]
		}
	}
	if err == nil && p.registers.Title() == "" {
		// Its title was of the history that does not stand.
		set := notebook.Set{Register: notebook.RegisterTitle, Text: "Written again " + id.String()[:8]}
		err = d.setRegister(b, door{class: notebook.Import, label: "resolve", again: true}, p, set)
	}
	if err != nil && !b.entries {
		d.remind(b, fmt.Sprintf("%q rested on a history that does not stand, and what this device had written there cannot be written again now: %v; it is kept, and tried again at the next start", title, notebook.EscapeLine(err.Error())))
		return nil
	}
	d.rewritten++
	text := fmt.Sprintf("%q rested on a history that does not stand: what this device had written there is written again, %s", title, count(chars, "character", "characters"))
	if err != nil {
		text += notebook.EscapeLine(fmt.Sprintf(", but for the rest: %v", err))
	}
	d.remind(b, text)
	return keepLost(b, id, record)
}

// rewritePart does again what is left of one part, and takes out of it what is done.
func (d *Daemon) rewritePart(b *batch, p *page, part *lostPart) (chars int, err error) {
	for ; len(part.Sets) > 0; part.Sets = part.Sets[1:] {
		v := part.Sets[0]
		set, err := notebook.DecodeSet(v.Body)
		if err != nil {
			return chars, err
		}
		if err := d.setRegister(b, door{class: v.Class, label: v.Label, again: true}, p, *set); err != nil {
			return chars, err
		}
	}
	for ; len(part.Edits) > 0; part.Edits = part.Edits[1:] {
		if err := d.rewriteEdit(b, p, part.Base, part.Edits[0]); err != nil {
			return chars, err
		}
		chars += part.Edits[0].Chars
	}
	return chars, nil
}

// rewriteEdit does again what one author had done. The fences that it makes are
// no own fences: nobody typed them here now.
func (d *Daemon) rewriteEdit(b *batch, p *page, base notebook.Revision, e lostEdit) error {
	splices := make([]notebook.Splice, len(e.Splices))
	for i, s := range e.Splices {
		splices[i] = notebook.Splice{At: s.At, Delete: s.Delete, Insert: s.Insert}
	}
	if _, err := p.shadow.Rebase(base, splices); err != nil {
		// The revision is void, too, by now: the text goes to the end of the page.
		var text strings.Builder
		for _, s := range splices {
			text.WriteString(s.Insert)
		}
		base, splices = p.shadow.Revision(), []notebook.Splice{{At: p.shadow.Len(), Insert: "\n" + text.String()}}
	}
	return d.edit(b, door{class: e.Class, label: e.Label, source: e.Source, again: true}, p, base, splices)
}

// remind tells the person, now and in status.
func (d *Daemon) remind(b *batch, text string) {
	d.keepNote(text)
	b.tell(notebook.Event{Kind: "note", Text: text})
}
