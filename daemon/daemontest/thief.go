package daemontest

import (
	"context"
	"crypto/ed25519"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/p2p"
	"noted/store"
	"noted/trust"
)

// Thief writes with the key of a member: what a stolen or hostile device can
// do, which keeps to the rules only where it wants to.
type Thief struct {
	t       testing.TB
	ID      notebook.DeviceID
	key     ed25519.PrivateKey
	Signer  *trust.Signer
	Log     *trust.Log
	Epoch   notebook.Epoch
	entries []notebook.Entry
	at      map[notebook.Place]notebook.Entry
	bodies  map[notebook.PageID][][]byte
	pages   map[notebook.PageID]*crdt.Page
	writers map[notebook.PageID]*crdt.Writer
}

// Stolen stops the device and gives all that it has to a thief.
func (d *Device) Stolen() *Thief {
	t := d.w.t
	t.Helper()
	d.Stops()
	th := &Thief{
		t: t, ID: d.ID, key: d.Key(), Epoch: notebook.Epoch{0xbd}, at: map[notebook.Place]notebook.Entry{},
		bodies: map[notebook.PageID][][]byte{}, pages: map[notebook.PageID]*crdt.Page{}, writers: map[notebook.PageID]*crdt.Writer{},
	}
	th.Signer = trust.NewSigner(th.key)
	var all []notebook.Entry
	err := d.Reads(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			all = append(all, s.Entry)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	th.takes(all)
	return th
}

// Invents is a device of the thief's making, which knows what the thief knows.
func (th *Thief) Invents(name string) *Thief {
	th.t.Helper()
	seed := notebook.Digest("noted/test/invented", []byte(name))
	x := &Thief{
		t: th.t, key: ed25519.NewKeyFromSeed(seed[:]), Epoch: notebook.Epoch{0xbf}, at: map[notebook.Place]notebook.Entry{},
		bodies: map[notebook.PageID][][]byte{}, pages: map[notebook.PageID]*crdt.Page{}, writers: map[notebook.PageID]*crdt.Writer{},
	}
	x.Signer = trust.NewSigner(x.key)
	x.ID = x.Signer.Device()
	x.takes(th.entries)
	return x
}

// Adds is a change of the roster that adds a device, with its consent.
func (th *Thief) Adds(x *Thief, name string) []byte {
	th.t.Helper()
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{
		Act: notebook.RosterAdd, Device: x.ID, Name: name, Role: notebook.RoleMember, Number: 1,
		Joiner: trust.AcceptJoin(x.Signer, th.Log.Notebook(), th.ID, 1, name),
	})
	if err != nil {
		th.t.Fatal(err)
	}
	return body
}

// takes begins the thief's log with all that it has.
func (th *Thief) takes(all []notebook.Entry) {
	th.t.Helper()
	log, genesis, err := trust.JoinLog(th.ID, all[0])
	if err != nil {
		th.t.Fatal(err)
	}
	th.Log = log
	log.Recall(th.recall)
	th.keep(genesis)
	taken, err := log.Retake(all[1:])
	if err != nil {
		th.t.Fatal(err)
	}
	for _, v := range taken {
		th.keep(v)
	}
}

func (th *Thief) keep(v trust.Verified) {
	e, h := v.Entry(), v.Header()
	th.entries = append(th.entries, e)
	th.at[v.Place()] = e
	if h.Kind == notebook.KindText && th.page(h.Page).Apply(v) == nil {
		th.bodies[h.Page] = append(th.bodies[h.Page], e.Body)
	}
}

func (th *Thief) page(id notebook.PageID) *crdt.Page {
	p := th.pages[id]
	if p == nil {
		p = crdt.NewPage(id)
		th.pages[id] = p
	}
	return p
}

// Change is an honest change of a page that replaces all its text, by an author
// of the thief's choice.
func (th *Thief) Change(id notebook.PageID, a notebook.Author, text string) []byte {
	th.t.Helper()
	p := th.page(id)
	splices := crdt.Diff(p.Text(), text)
	if w := th.writers[id]; w != nil {
		// It is behind where its last change was not given to anybody.
		if body, err := w.Splice(a, th.Epoch, time.UnixMilli(1), splices); err == nil {
			return body
		} else if !errors.Is(err, crdt.ErrBehind) {
			th.t.Fatal(err)
		}
	}
	w, err := crdt.OpenWriter(p, crdt.NewModel(p), func(yield func([]byte, error) bool) {
		for _, b := range th.bodies[id] {
			if !yield(b, nil) {
				return
			}
		}
	})
	if err != nil {
		th.t.Fatal(err)
	}
	th.writers[id] = w
	body, err := w.Splice(a, th.Epoch, time.UnixMilli(1), splices)
	if err != nil {
		th.t.Fatal(err)
	}
	return body
}

// Forgets drops what the thief needs for changing a page, which it does no more.
func (th *Thief) Forgets(id notebook.PageID) {
	if w := th.writers[id]; w != nil {
		_ = w.Close() // it is not asked for anything any more
	}
	delete(th.writers, id)
	delete(th.pages, id)
	delete(th.bodies, id)
}

// Self is the thief as an author who types.
func (th *Thief) Self() notebook.Author {
	return notebook.Author{Device: th.ID, Class: notebook.Typed}
}

// Appends signs an entry as the thief's next, whatever is in it.
func (th *Thief) Appends(d trust.Draft) notebook.Entry {
	th.t.Helper()
	v, err := th.Log.Append(th.Signer, th.Epoch, d)
	if err != nil {
		th.t.Fatal(err)
	}
	th.keep(v)
	return v.Entry()
}

// Types replaces a page's text in an honest entry.
func (th *Thief) Types(id notebook.PageID, text string) notebook.Entry {
	th.t.Helper()
	return th.Appends(trust.Draft{Kind: notebook.KindText, Page: id, Class: notebook.Typed, Body: th.Change(id, th.Self(), text)})
}

// Fills types the text of an empty page, in as many entries as it takes.
func (th *Thief) Fills(id notebook.PageID, text string) (entries []notebook.Entry) {
	th.t.Helper()
	const piece = 90_000 // ASCII characters
	for n := 0; n < len(text); n += piece {
		entries = append(entries, th.Types(id, text[:min(n+piece, len(text))]))
	}
	return entries
}

// Keeps takes an entry that was sealed for the thief's own.
func (th *Thief) Keeps(e notebook.Entry) trust.Verified {
	th.t.Helper()
	log, _, err := trust.JoinLog(th.ID, th.entries[0])
	if err != nil {
		th.t.Fatal(err)
	}
	log.Recall(th.recall)
	taken, err := log.Retake(append(slices.Clone(th.entries[1:]), e))
	if err != nil || len(taken) != len(th.entries) {
		th.t.Fatalf("of %d entries %d are taken: %v", len(th.entries), len(taken), err)
	}
	th.Log = log
	v := taken[len(taken)-1]
	th.keep(v)
	return v
}

func (th *Thief) recall(p notebook.Place) (notebook.Entry, bool) {
	e, found := th.at[p]
	return e, found
}

// Seals signs any header and body with the thief's key, and keeps nothing of it.
func (th *Thief) Seals(h *notebook.Header, body []byte) notebook.Entry {
	th.t.Helper()
	h.Body, h.Size = notebook.BodyDigest(body), uint32(len(body))
	header, err := notebook.EncodeHeader(h)
	if err != nil {
		th.t.Fatal(err)
	}
	digest := notebook.Digest("noted/entry/v1", header)
	return notebook.Entry{Header: header, Sig: ed25519.Sign(th.key, digest[:]), Body: body}
}

// Next is the header that an honest next entry of text would have.
func (th *Thief) Next(page notebook.PageID) *notebook.Header {
	h := &notebook.Header{
		Version: notebook.EntryVersion, Notebook: th.Log.Notebook(), Device: th.ID, Epoch: th.Epoch, Seq: 1,
		Kind: notebook.KindText, Page: page, Class: notebook.Typed,
	}
	for _, head := range th.Log.Heads() {
		switch {
		case head.Position.Device != th.ID:
			h.Seen = append(h.Seen, head)
		case head.Position.Epoch == th.Epoch:
			h.Seq, h.Prev, h.Seen = head.Position.Seq+1, head, nil
			return h
		default:
			h.Prev = head
		}
	}
	return h
}

// Gives hands entries to a device as if they came from the thief's node.
func (th *Thief) Gives(to *Device, entries ...notebook.Entry) error {
	return to.Daemon.Accept(context.Background(), th.ID, entries)
}

// Serves runs a node of this network under the thief's key that sends what it
// is told to, and nothing else, until the test ends.
func (th *Thief) Serves(w *World, to *Device, entries ...notebook.Entry) {
	th.t.Helper()
	c := p2p.Config{Key: th.key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Log: &poison{th, entries}}
	if w.links != nil {
		w.links.Attach(&c)
	}
	node, err := p2p.New(c)
	if err != nil {
		th.t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = node.Serve(serving)
	}()
	th.t.Cleanup(func() {
		stop()
		<-ended
	})
	if err := node.SetAddresses(to.ID, to.listen); err != nil {
		th.t.Fatal(err)
	}
}

// poison is the log that a thief's node shows.
type poison struct {
	th      *Thief
	entries []notebook.Entry
}

func (p *poison) Notebook() notebook.NotebookID { return p.th.Log.Notebook() }
func (p *poison) Heads() []notebook.Head        { return p.th.Log.Heads() }

func (p *poison) Missing([]notebook.Head) iter.Seq2[notebook.Entry, error] {
	return func(yield func(notebook.Entry, error) bool) {
		for _, e := range p.entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
func (p *poison) Accept(context.Context, notebook.DeviceID, []notebook.Entry) error { return nil }
func (p *poison) Acknowledged(notebook.DeviceID, []notebook.Head)                   {}
func (p *poison) Histories() int                                                    { return 0 }
func (p *poison) Commits(context.Context) <-chan struct{}                           { return nil }
func (p *poison) Member(notebook.DeviceID) bool                                     { return true }
