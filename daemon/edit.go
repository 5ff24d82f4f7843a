package daemon

import (
	"crypto/rand"
	"errors"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/trust"
)

// door is how a text came in here: what its author is besides this device.
type door struct {
	class  notebook.Class
	label  string
	source notebook.Source // of class moved
	again  bool            // it is written again by the daemon: nobody typed it now
}

// moved is the door of text that the daemon writes again in its author's name.
func moved(s notebook.Source) door { return door{class: notebook.Moved, source: s} }

var typed = door{class: notebook.Typed}

// lower is the door of a client's text that did not come from a person's keys.
// A client may say so of its own accord and nothing else.
func (c door) lower(via string) (door, error) {
	switch {
	case via == "":
		return c, nil
	case c.class != notebook.Typed:
		return c, nil // an agent's text is an agent's, whatever it says
	case via == "stdin" || via == "editor":
		return door{class: notebook.Import, label: via}, nil
	}
	return door{}, notebook.Errorf(notebook.CodeInvalid, "text comes from keys, stdin or editor, not from %q", notebook.EscapeLine(via))
}

func (d *Daemon) author(c door) notebook.Author {
	return notebook.Author{Device: d.signer.Device(), Class: c.class, Label: c.label, Source: c.source}
}

// append signs an entry as this device's next.
func (d *Daemon) append(b *batch, c door, kind notebook.Kind, page notebook.PageID, body []byte) (trust.Verified, error) {
	now := time.Now().UnixMilli()
	for {
		v, declared, err := d.log.Declare(d.signer, d.epoch, now)
		if err != nil {
			return trust.Verified{}, unsigned(d, err)
		}
		if !declared {
			break
		}
		d.charge(b, v)
		b.put(v, "")
	}
	draft := trust.Draft{Kind: kind, Page: page, Class: c.class, Label: c.label, Time: now, Body: body}
	if c.class == notebook.Moved {
		draft.Source = []notebook.Source{c.source}
	}
	v, err := d.log.Append(d.signer, d.epoch, draft)
	if err == nil {
		d.charge(b, v)
	}
	return v, unsigned(d, err)
}

// unsigned says to a person why this device cannot write.
func unsigned(d *Daemon, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, trust.ErrRemoved):
		return notebook.Errorf(notebook.CodeRefused, "this device was removed from the notebook, so it can read what it has and write nothing").
			With("make a new home and pair it from another device: noted --home DIR init")
	case errors.Is(err, trust.ErrFrozen):
		return notebook.Errorf(notebook.CodeRefused, "two programs wrote with this device's key, so nothing more is written with it until you decide").
			With("noted device resolve, with the name of this device, shows what happened and lets it go on")
	case !d.log.Roster().Has(d.signer.Device()):
		return notebook.Errorf(notebook.CodeUnavailable, "this device has joined, but the notebook has not come yet").
			With("wait until noted status shows a connected device")
	}
	return err
}

var errNoBase = notebook.Errorf(notebook.CodeInvalid, "an edit names the revision that it was made on").With("read the page first")

// edit changes a page's body by splices against a revision that the client saw.
// It is called under d.mu.
func (d *Daemon) edit(b *batch, c door, p *page, base notebook.Revision, splices []notebook.Splice) error {
	if len(base) == 0 {
		return errNoBase
	}
	for i := range splices {
		text, err := notebook.NormalizeText(splices[i].Insert)
		if err != nil {
			return err
		}
		splices[i].Insert = text
	}
	splices, err := p.shadow.Rebase(base, splices)
	if err != nil {
		return err
	}
	if err := fits(p, splices); err != nil {
		return err
	}
	before, _ := p.readFences()
	since := p.shadow.Mark()
	err = d.commitEdit(b, c, p, splices)
	switch {
	case p.shadow.Mark() == since:
		return err
	case err == nil && c == typed:
		now, _ := p.readFences()
		err = p.own.Typed(p.shadow, before, now, base, since)
	default:
		p.own.Other(p.shadow)
	}
	d.moveCopies(b, c, p, before, since)
	return err
}

// fits refuses an edit that would make the page too large before its first
// piece is signed.
func fits(p *page, splices []notebook.Splice) error {
	inserted, deleted := 0, 0
	for _, s := range splices {
		inserted += len(s.Insert)
		deleted += s.Delete
	}
	if p.shadow.Size()+inserted-deleted <= notebook.MaxBody {
		return nil // a deleted code point has at least one byte
	}
	text := []rune(p.shadow.Text())
	size := p.shadow.Size() + inserted
	for _, s := range splices {
		size -= len(string(text[s.At : s.At+s.Delete]))
	}
	if size > notebook.MaxBody && size > p.shadow.Size() {
		return notebook.Errorf(notebook.CodeInvalid, "the page would have %d bytes, and %d are the most", size, notebook.MaxBody).
			With("put some of it into another page")
	}
	return nil
}

// commitEdit makes, signs and applies the changes of an edit. After an error the
// page has those that came before it.
func (d *Daemon) commitEdit(b *batch, c door, p *page, splices []notebook.Splice) error {
	for _, piece := range crdt.Split(splices) {
		change, err := d.change(p, d.author(c), piece)
		if err != nil {
			return d.unwritable(p, err)
		}
		v, err := d.append(b, c, notebook.KindText, p.id, change)
		if err != nil {
			p.closeWriter()
			return err
		}
		if err := p.applyText(v); err != nil {
			// The gate admitted the change before it was signed.
			p.closeWriter()
			d.fail(err)
			return err
		}
		b.put(v, "")
		b.touch(p, v.Header().Time)
	}
	return nil
}

// unwritable says why a page cannot be edited.
func (d *Daemon) unwritable(p *page, err error) error {
	if errors.Is(err, crdt.ErrQuarantined) {
		d.logger.Error("page quarantined", "page", p.id, "error", err)
		why := "its document does not agree with its history"
		if errors.Is(err, errKiller) {
			why = "the process that writes pages died of it again and again"
		}
		return notebook.Errorf(notebook.CodeFailed, "the page is quarantined: it can be read but not written on this device: %s", why).
			With("noted page rebuild %s makes it anew from its history", quoted("="+p.id.String()))
	}
	return err
}

// setRegister writes one of a page's registers.
func (d *Daemon) setRegister(b *batch, c door, p *page, set notebook.Set) error {
	body, err := notebook.EncodeSet(&set)
	if err != nil {
		return notebook.Errorf(notebook.CodeInvalid, "%v", err)
	}
	v, err := d.append(b, c, notebook.KindSet, p.id, body)
	if err != nil {
		return err
	}
	if err := p.registers.Apply(v); err != nil {
		d.fail(err)
		return err
	}
	d.learnTitle(b, v.Author(), &set)
	b.put(v, "")
	b.touch(p, v.Header().Time)
	return nil
}

// newPage makes a page with a title and no text. Two devices that make the
// page of one title apart from each other make the same page.
func (d *Daemon) newPage(b *batch, c door, title string) (*page, error) {
	if err := notebook.CheckTitle(title); err != nil {
		return nil, notebook.Errorf(notebook.CodeInvalid, "%v", err)
	}
	if len(d.index.titles[notebook.TitleKey(title)]) > 0 {
		return nil, notebook.Errorf(notebook.CodeInvalid, "there is a page %q already", notebook.EscapeLine(title)).
			With("noted page show shows it, noted page edit changes it")
	}
	id := notebook.NewPageID(d.log.Notebook(), title)
	if _, used := d.index.cards[id]; used {
		// A page that was deleted or renamed keeps its id.
		_, _ = rand.Read(id[:])
	}
	p, err := d.page(id)
	if err != nil {
		return nil, err
	}
	return p, d.setRegister(b, c, p, notebook.Set{Register: notebook.RegisterTitle, Text: title})
}
