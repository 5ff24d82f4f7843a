package daemon

import (
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
	"noted/store"
)

// notice is kept of a page in which something looks as if it set policy, so
// that a person is told once, and not again after a restart.
type notice struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	What    string // as [notebook.PolicyText] says it
	Over    bool   // a person was shown the page since, or it reads so no more
}

const (
	noticeVersion = 1
	maxNotice     = 256 // bytes of a record
	maxNotices    = 1024
	shownNotices  = 8 // in the status, which says how many more there are
)

func openNotice(b []byte) (*notice, error) {
	n := new(notice)
	if err := notebook.Unmarshal(b, n, maxNotice); err != nil {
		return nil, err
	}
	if n.Version != noticeVersion {
		return nil, errors.New("it was kept by a newer noted: update noted")
	}
	return n, nil
}

func readNotices(tx *store.Tx) (map[notebook.PageID]*notice, error) {
	all := map[notebook.PageID]*notice{}
	for r, err := range tx.All(store.Notices, nil) {
		if err != nil {
			return nil, err
		}
		n, err := openNotice(r.Value)
		if err != nil {
			return nil, fmt.Errorf("the notice of page %x: %w", r.Key, err)
		}
		all[notebook.PageID(r.Key)] = n
	}
	return all, nil
}

func (d *Daemon) keepNotice(b *batch, id notebook.PageID, n *notice) error {
	n.Version = noticeVersion
	value, err := notebook.Marshal(n)
	if err != nil {
		return err
	}
	d.notices[id] = n
	b.write(func(tx *store.Tx) error { return tx.Put(store.Notices, id[:], value) })
	return nil
}

// noticePolicy tells of a changed page that looks as if it set policy. It is
// read for nothing else. A page is told of once, whatever becomes of it.
func (d *Daemon) noticePolicy(b *batch, p *page) error {
	before := d.notices[p.id]
	if before != nil && before.Over || before == nil && p.registers.Deleted() {
		return nil
	}
	title := p.registers.Title()
	what := notebook.PolicyText(title, p.shadow.Text())
	switch {
	case before != nil && (what == "" || p.registers.Deleted()):
		return d.keepNotice(b, p.id, &notice{What: before.What, Over: true})
	case before != nil || what == "":
		return nil
	case len(d.notices) >= maxNotices:
		if text := "more pages than are counted look as if they set policy: they are text and change nothing"; d.keepNote(text) {
			b.tell(notebook.Event{Kind: "note", Text: text})
		}
		return nil
	}
	b.tell(notebook.Event{Kind: "note", Page: p.id, Title: title, Text: notebook.EscapeLine(title) + " " + looksLikePolicy(what)})
	return d.keepNotice(b, p.id, &notice{What: what})
}

func looksLikePolicy(what string) string {
	return "looks as if it set policy (" + what + "): that is text and changes nothing; what may run is set by noted policy accept alone"
}

// shownTo notes that a client was shown a page: where that is a person, the
// notice of it is over. What it answers does so, once the mutex is free; nil if
// there is nothing to do. It is called under d.mu.
func (d *Daemon) shownTo(c caller, id notebook.PageID) (end func() error) {
	n := d.notices[id]
	if n == nil || n.Over || c.role != roleOwner && c.role != roleBrowser {
		return nil
	}
	return func() error {
		return d.step(func(b *batch) error {
			if now := d.notices[id]; now != nil && !now.Over {
				return d.keepNotice(b, id, &notice{What: now.What, Over: true})
			}
			return nil
		})
	}
}

// policyNotices are the notices that wait for a person. It is called under d.mu.
func (d *Daemon) policyNotices() (lines []string) {
	for id, n := range d.notices {
		if c, known := d.index.cards[id]; known && !c.Deleted && !n.Over {
			lines = append(lines, notebook.EscapeLine(c.Title)+" "+looksLikePolicy(n.What)+" (noted page show ends this note)")
		}
	}
	slices.Sort(lines)
	if more := len(lines) - shownNotices; more > 0 {
		lines = append(lines[:shownNotices], count(more, "more page looks", "more pages look")+" as if they set policy")
	}
	return lines
}
