package trust

import (
	"crypto/ed25519"
	"fmt"
	"iter"
	"maps"
	"slices"

	"noted/notebook"
)

// tester is what a story needs of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// dev is a device of a story: its key, its log, and what it has stored.
type dev struct {
	t       tester
	name    string
	signer  *Signer
	epoch   notebook.Epoch
	log     *Log
	entries []notebook.Entry // in the order in which they came in
	places  []notebook.Place // of entries
	at      map[notebook.Place]notebook.Entry
	void    map[notebook.Hash]string // why entries do nothing; empty of those that do something
	records map[string][]byte
	clock   int64
}

// newDev makes a device whose key and epochs depend on nothing but its name.
func newDev(t tester, name string) *dev {
	seed := notebook.Digest("test/key", []byte(name))
	return &dev{
		t: t, name: name, signer: NewSigner(ed25519.NewKeyFromSeed(seed[:])),
		epoch: epochOf(name, 1), at: make(map[notebook.Place]notebook.Entry), void: make(map[notebook.Hash]string), records: make(map[string][]byte),
	}
}

func epochOf(name string, n int) notebook.Epoch {
	h := notebook.Digest("test/epoch", []byte(name), []byte{byte(n >> 8), byte(n)})
	return notebook.Epoch(h[:16])
}

func (d *dev) id() notebook.DeviceID { return d.signer.Device() }

func (d *dev) look(p notebook.Place) (notebook.Entry, bool) {
	e, found := d.at[p]
	return e, found
}

func (d *dev) keep(vs ...Verified) {
	for _, v := range vs {
		if !v.Valid() {
			d.t.Fatalf("%s: an entry that is not valid", d.name)
		}
		d.entries = append(d.entries, v.Entry())
		d.places = append(d.places, v.Place())
		d.at[v.Place()] = v.Entry()
		d.void[v.Hash()] = v.Void()
	}
	if d.log.Overturned() {
		d.replays()
		d.replays() // as a caller does that first looks for what is judged otherwise
	}
	for _, r := range d.log.Flush() {
		d.records[string(r.Key)] = r.Value
		if r.Value == nil {
			delete(d.records, string(r.Key))
		}
	}
}

// replays judges everything that d has stored anew.
func (d *dev) replays() (judged int) {
	d.t.Helper()
	for v, err := range d.log.Replay(func(yield func(notebook.Entry, error) bool) {
		for _, e := range d.entries {
			if !yield(e, nil) {
				return
			}
		}
	}) {
		if err != nil {
			d.t.Fatalf("%s replays: %v", d.name, err)
		}
		d.void[v.Hash()] = v.Void()
		judged++
	}
	return judged
}

func (d *dev) found() *dev {
	d.t.Helper()
	l, v, err := Found(d.signer, d.epoch, d.name, [16]byte{1}, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	d.log = l
	l.Recall(d.look)
	d.keep(v)
	return d
}

// genesis is the first entry of the notebook that d is in.
func (d *dev) genesis() notebook.Entry { return d.entries[0] }

// invite pairs: d adds e, which begins its log with the genesis and then takes all.
func (d *dev) invite(e *dev) *dev { return d.inviteAs(e, notebook.RoleMember) }

func (d *dev) inviteAs(e *dev, role notebook.Role) *dev {
	d.t.Helper()
	d.roster(d.adds(e, role))
	l, v, err := JoinLog(e.id(), d.genesis())
	if err != nil {
		d.t.Fatal(err)
	}
	e.log = l
	l.Recall(e.look)
	e.keep(v)
	e.pull(d)
	return e
}

func (d *dev) adds(e *dev, role notebook.Role) *notebook.RosterChange {
	n := d.log.Roster().Number(e.id()) + 1
	return &notebook.RosterChange{
		Act: notebook.RosterAdd, Device: e.id(), Name: e.name, Role: role, Number: n,
		Joiner: AcceptJoin(e.signer, d.log.Notebook(), d.id(), n, e.name),
	}
}

func rosterDraft(t tester, c *notebook.RosterChange) Draft {
	t.Helper()
	body, err := notebook.EncodeRosterChange(c)
	if err != nil {
		t.Fatal(err)
	}
	return Draft{Kind: notebook.KindRoster, Class: notebook.Typed, Body: body}
}

func textDraft(body string) Draft {
	return Draft{Kind: notebook.KindText, Page: notebook.PageID{1}, Class: notebook.Typed, Body: []byte(body)}
}

func (d *dev) roster(c *notebook.RosterChange) Verified {
	d.t.Helper()
	return d.append(rosterDraft(d.t, c))
}

func (d *dev) append(draft Draft) Verified {
	d.t.Helper()
	d.clock++
	draft.Time = d.clock
	v, err := d.log.Append(d.signer, d.epoch, draft)
	if err != nil {
		d.t.Fatalf("%s appends: %v", d.name, err)
	}
	d.keep(v)
	return v
}

// writes appends a text entry.
func (d *dev) writes(body string) Verified {
	d.t.Helper()
	return d.append(textDraft(body))
}

func (d *dev) removes(e *dev) Verified {
	d.t.Helper()
	return d.roster(&notebook.RosterChange{Act: notebook.RosterRemove, Device: e.id()})
}

func (d *dev) renames(name string) Verified {
	d.t.Helper()
	return d.roster(&notebook.RosterChange{Act: notebook.RosterRename, Device: d.id(), Name: name})
}

// missing is what d has and somebody with these heads lacks, in causal order.
func (d *dev) missing(have []notebook.Head) (list []notebook.Entry) {
	covered := d.log.Covers(have)
	for i, e := range d.entries {
		if !covered(d.places[i]) {
			list = append(list, e)
		}
	}
	return list
}

// take takes entries as from whoever signed them.
func (d *dev) take(entries ...notebook.Entry) ([]Verified, error) {
	return d.takeFrom(notebook.DeviceID{}, entries...)
}

func (d *dev) takeFrom(peer notebook.DeviceID, entries ...notebook.Entry) ([]Verified, error) {
	vs, err := d.log.Take(peer, entries)
	d.keep(vs...)
	return vs, err
}

// takes fails the test where take has an error.
func (d *dev) takes(entries ...notebook.Entry) []Verified {
	d.t.Helper()
	vs, err := d.take(entries...)
	if err != nil {
		d.t.Fatalf("%s takes: %v", d.name, err)
	}
	return vs
}

func (d *dev) pull(e *dev) []Verified {
	d.t.Helper()
	vs, err := d.takeFrom(e.id(), e.missing(d.log.Locator())...)
	if err != nil && !Innocent(err) {
		d.t.Fatalf("%s takes: %v", d.name, err)
	}
	return vs
}

func exchange(devices ...*dev) {
	for range devices {
		for _, a := range devices {
			a.t.Helper()
			for _, b := range devices {
				if a != b {
					a.pull(b)
				}
			}
		}
	}
}

func sorted(records map[string][]byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(records)) {
			if !yield([]byte(k), records[k]) {
				return
			}
		}
	}
}

// restarts opens the log again from its records, in a new epoch.
func (d *dev) restarts(n int) {
	d.t.Helper()
	l, err := OpenLog(d.id(), sorted(d.records))
	if err != nil {
		d.t.Fatal(err)
	}
	d.log, d.epoch = l, epochOf(d.name, n)
	l.Recall(d.look)
}

// backup is a copy of d as it is now.
func (d *dev) backup() *dev {
	c := *d
	c.entries = slices.Clone(d.entries)
	c.places = slices.Clone(d.places)
	c.at = maps.Clone(d.at)
	c.void = maps.Clone(d.void)
	c.records = maps.Clone(d.records)
	c.log = nil
	return &c
}

// dump is everything of a log that is kept.
func dump(l *Log) string {
	l.changed, l.members, l.unadded, l.newlyFrozen, l.changedSelf = nil, nil, nil, nil, true
	for _, c := range l.forest.chains {
		c.changed = true
		l.changed = append(l.changed, c)
	}
	for d := range l.roster.devices {
		l.members = append(l.members, d)
	}
	for d := range l.roster.unadded {
		l.unadded = append(l.unadded, d)
	}
	for d := range l.frozen {
		l.newlyFrozen = append(l.newlyFrozen, d)
	}
	records := l.Flush()
	slices.SortFunc(records, func(a, b Record) int { return slices.Compare(a.Key, b.Key) })
	return fmt.Sprintf("%x\nleaves %v\nwaiting %d", records, l.Heads(), l.Waiting())
}

// sealed is an entry signed with s, whatever it says.
func sealed(t tester, s *Signer, h notebook.Header, body []byte) notebook.Entry {
	t.Helper()
	h.Version, h.Device = notebook.EntryVersion, s.Device()
	h.Body, h.Size = notebook.BodyDigest(body), uint32(len(body))
	header, err := notebook.EncodeHeader(&h)
	if err != nil {
		t.Fatal(err)
	}
	return notebook.Entry{Header: header, Sig: s.sign(entryDomain, header), Body: body}
}

// text is a header of a text entry.
func (d *dev) text(seq uint64, prev notebook.Head, seen ...notebook.Head) notebook.Header {
	return notebook.Header{
		Notebook: d.log.Notebook(), Epoch: d.epoch, Seq: seq, Prev: prev, Seen: seen,
		Kind: notebook.KindText, Page: notebook.PageID{1}, Class: notebook.Typed,
	}
}

func headOf(v Verified) notebook.Head {
	return notebook.Head{Position: v.Header().Position(), Hash: v.Hash()}
}
