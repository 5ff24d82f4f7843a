package daemon

import (
	"context"
	"slices"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// A query looks the records of all pages through, as they are on the disk: there
// is no index that could be behind, hold what was purged, or take memory while
// nobody asks. Its transactions are short, so that no commit waits for it, and
// nothing of it happens under d.mu.

// maxLook is how long a query may look, its turn waited for included: ten times
// what one that every block answers takes of 10,000 pages on a slow machine.
const maxLook = 5 * time.Second

var errLook = notebook.Errorf(notebook.CodeExhausted, "the query was not done with the notebook's pages in %v", maxLook).
	With("ask for a word or a #tag that fewer pages have, or ask again when the machine has less to do")

// find answers a query of c.
func (d *Daemon) find(ctx context.Context, c caller, q *notebook.Query) (*notebook.Rows, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxLook, errLook)
	defer cancel()
	looking := d.looking
	if c.role == roleAgent {
		looking = d.agentLooking
	}
	select { // one at a time: each holds what it found, and takes a processor
	case looking <- struct{}{}:
		defer func() { <-looking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s := q.Select()
	pages := 0 // since the store gave back what it holds of its file
	for first := range 256 {
		err := d.db.View(func(tx *store.Tx) error {
			for r, err := range tx.All(store.Infos, []byte{byte(first)}) {
				if err != nil {
					return err
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				pages++
				if err := look(ctx, tx, s, notebook.PageID(r.Key), r.Value); err != nil {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					s.Missed(notebook.PageID(r.Key))
					d.logUnread(notebook.PageID(r.Key), err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if pages >= releaseAfter {
			pages = 0
			if err := d.db.Release(); err != nil {
				d.logger.Warn("the store cannot give memory back", "error", err)
			}
		}
	}
	return s.Rows(), nil
}

// logUnread writes why a page cannot be looked through, once until the next start:
// whoever asks is told each time, and may ask often.
func (d *Daemon) logUnread(id notebook.PageID, err error) {
	if _, known := d.unread.LoadOrStore(id, true); !known {
		d.logger.Error("a page cannot be looked through", "page", id, "error", err)
	}
}

// look looks one page through, unless it is deleted. A page of which anything is
// damaged that an answer rests on has no part in it: what nobody can tell the
// authors of would count as nobody's.
func look(ctx context.Context, tx *store.Tx, s *notebook.Selection, id notebook.PageID, info []byte) error {
	var c card
	if err := notebook.Unmarshal(info, &c, maxCard); err != nil {
		return err
	}
	if c.Deleted || c.Purged {
		return nil
	}
	record, err := tx.Get(store.Shadows, id[:])
	if err != nil {
		return err
	}
	page, err := crdt.ReadHands(id, record)
	if err != nil {
		return err
	}
	var titled notebook.Origin // who gave the page its title
	return s.Look(id, c.Title, page.Text, func(spans []notebook.Span) (notebook.Origin, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if titled == nil {
			var err error
			if titled, err = titleOrigin(tx, id); err != nil {
				return nil, err
			}
		}
		hands, err := page.Of(spans)
		return hands.Union(titled), err
	})
}

// titleOrigin is who gave a page its title. Where that is not known it is nobody
// whom anybody could trust.
func titleOrigin(tx *store.Tx, id notebook.PageID) (notebook.Origin, error) {
	unknown := notebook.NewOrigin(notebook.Author{})
	record, err := tx.Get(store.Registers, id[:])
	if err != nil {
		return nil, err
	}
	registers, err := crdt.OpenRegisters(id, record)
	if err != nil {
		return nil, err
	}
	values := registers.Values(notebook.RegisterTitle)
	if len(values) == 0 {
		return unknown, nil
	}
	s, err := tx.Entry(notebook.Place{Position: values[0].Head.Position})
	if err != nil {
		return nil, err
	}
	if s == nil || s.Entry.Hash() != values[0].Head.Hash { // it is of a branch that came later
		return unknown, nil
	}
	h, err := notebook.DecodeHeader(s.Entry.Header)
	if err != nil {
		return nil, err
	}
	return notebook.NewOrigin(h.Author()), nil
}

// query answers a client's query. Each row says how its text stands here.
func (d *Daemon) query(ctx context.Context, c caller, text string) (*notebook.Rows, error) {
	q, err := notebook.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	rows, err := d.find(ctx, c, q)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lostRow(rows) {
		return nil, errLostRow
	}
	self, roster := d.signer.Device(), d.log.Roster()
	for i := range rows.List {
		r := &rows.List[i]
		r.Standing = trust.Stand(self, roster, r.Authors, true, true).String()
	}
	return rows, nil
}

var errLostRow = notebook.Errorf(notebook.CodeStale, "a page that the query found was deleted meanwhile").With("ask again")

// lostRow reports whether a page that was found was deleted since. It is called
// under d.mu.
func (d *Daemon) lostRow(rows *notebook.Rows) bool {
	return slices.ContainsFunc(rows.List, func(r notebook.Row) bool {
		c, known := d.index.cards[r.Page]
		return !known || c.Deleted || d.isPurged(r.Page)
	})
}

// finding is what there is for a fence that is to run: what is outside of the
// notebook, and what its query found.
type finding struct {
	sight *sight
	part  notebook.Part  // whose query it was
	rows  *notebook.Rows // nil where it is handed none
}

// lookFor looks for what a fence that is to run would be handed: what is outside
// of the notebook, and the answer to its query, if it has one and would get it.
// The decision on the run comes later, and rests on what was found.
func (d *Daemon) lookFor(ctx context.Context, c caller, req notebook.RunRequest) (*finding, error) {
	var part *notebook.Part
	var err error
	a := &finding{sight: d.see(func(s *sight) { part, err = d.looksFor(s, c, req) })}
	if err != nil || part == nil {
		return a, err
	}
	q, err := part.Query()
	if err != nil {
		return nil, err
	}
	a.part = *part
	a.rows, err = d.find(ctx, c, q)
	return a, err
}

// looksFor is the fence, if it would be handed what its query finds; nil if not.
// It is called under d.mu.
func (d *Daemon) looksFor(s *sight, c caller, req notebook.RunRequest) (*notebook.Part, error) {
	p, i, err := d.findFence(req.Page, req.Fence)
	if err != nil {
		return nil, err
	}
	part := p.fences[i].Part
	inputs := []trust.Input{} // for what is outside of the notebook to come to
	_, none := part.Query()
	if none == nil {
		inputs = p.offered(nil)
	}
	r := d.closer(s).request(c, p, i, inputs)
	if none != nil {
		return nil, nil
	}
	r.Shown, r.Args = req.Shown, req.Args
	grant, refused := trust.Decide(r)
	if refused != nil || !slices.Contains(grant.Capabilities(), notebook.CapQuery) {
		return nil, nil // the decision that is recorded says so again
	}
	return &part, nil
}

// input is what the fence is handed, if it still is the one that asked. It is
// called under d.mu.
func (a *finding) input(part notebook.Part) []trust.Input {
	if a.rows == nil || a.part != part {
		return nil
	}
	return []trust.Input{{Capability: notebook.CapQuery, Value: notebook.EncodeRows(a.rows), Authors: a.rows.Authors()}}
}

// pages are those of which a grant hands in rows.
func (a *finding) pages(grant trust.Grant) (pages []notebook.PageID) {
	if a.rows == nil || !slices.Contains(grant.Capabilities(), notebook.CapQuery) {
		return nil
	}
	for _, r := range a.rows.List {
		if !slices.Contains(pages, r.Page) {
			pages = append(pages, r.Page)
		}
	}
	return pages
}
