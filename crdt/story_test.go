package crdt

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"noted/notebook"
	"noted/trust"
)

// device is one device of a story: its log, and one page with all that this
// package keeps of it, as the daemon keeps it.
type device struct {
	t         testing.TB
	name      string
	signer    *trust.Signer
	log       *trust.Log
	epoch     notebook.Epoch
	entries   []notebook.Entry // all it has, in causal order
	id        notebook.PageID
	page      *Page
	bodies    [][]byte // of the text entries that the page took
	writer    *Writer
	registers *Registers
	own       *OwnFences
	voids     []string // why entries were void, in order
}

var storyPage = notebook.PageID{0xaa}

// devices is a notebook of devices with these names that all know each other.
func devices(t testing.TB, names ...string) []*device {
	t.Helper()
	group := make([]*device, len(names))
	for i, n := range names {
		seed := sha256.Sum256([]byte(n))
		group[i] = &device{
			t: t, name: n, signer: trust.NewSigner(ed25519.NewKeyFromSeed(seed[:])), epoch: notebook.Epoch(seed[:16]),
			id: storyPage, page: NewPage(storyPage), registers: NewRegisters(storyPage), own: NewOwnFences(),
		}
	}
	first := group[0]
	log, v, err := trust.Found(first.signer, first.epoch, first.name, [16]byte{1}, 1)
	must(t, err)
	first.log, first.entries = log, []notebook.Entry{v.Entry()}
	for _, d := range group[1:] {
		d.log, v, err = trust.JoinLog(d.signer.Device(), first.entries[0])
		must(t, err)
		d.entries = []notebook.Entry{v.Entry()}
		body, err := notebook.EncodeRosterChange(&notebook.RosterChange{
			Act: notebook.RosterAdd, Device: d.signer.Device(), Name: d.name, Role: notebook.RoleMember, Number: 1,
			Joiner: trust.AcceptJoin(d.signer, log.Notebook(), first.signer.Device(), 1, d.name),
		})
		must(t, err)
		v, err = log.Append(first.signer, first.epoch, trust.Draft{Kind: notebook.KindRoster, Class: notebook.Typed, Time: 1, Body: body})
		must(t, err)
		first.entries = append(first.entries, v.Entry())
	}
	for _, d := range group[1:] {
		d.pull(first)
	}
	return group
}

func (d *device) author() notebook.Author {
	return notebook.Author{Device: d.signer.Device(), Class: notebook.Typed}
}

// change makes splices of the present text as an author: the change passes the
// writer, the log and the page, in this order.
func (d *device) change(a notebook.Author, s []notebook.Splice) {
	d.t.Helper()
	if d.writer == nil {
		w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
		must(d.t, err)
		d.writer = w
	}
	body, err := d.writer.Splice(a, d.epoch, time.UnixMilli(1), s)
	must(d.t, err)
	must(d.t, d.page.Apply(d.append(notebook.KindText, a, body)))
	d.bodies = append(d.bodies, body)
}

func (d *device) stored() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, b := range d.bodies {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func (d *device) append(k notebook.Kind, a notebook.Author, body []byte) trust.Verified {
	d.t.Helper()
	draft := trust.Draft{Kind: k, Page: d.id, Class: a.Class, Label: a.Label, Time: 1, Body: body}
	if a.Class == notebook.Moved {
		draft.Source = []notebook.Source{a.Source}
	}
	v, err := d.log.Append(d.signer, d.epoch, draft)
	must(d.t, err)
	d.entries = append(d.entries, v.Entry())
	must(d.t, d.registers.Apply(v))
	return v
}

// typesAt is an edit by the person at the keys, who sees the revision base.
func (d *device) typesAt(base notebook.Revision, s ...notebook.Splice) {
	d.t.Helper()
	before, err := d.page.Fences()
	if err != nil {
		before = nil // nothing of the page is live
	}
	mark := d.page.Mark()
	rebased, err := d.page.Rebase(base, s)
	must(d.t, err)
	d.change(d.author(), rebased)
	must(d.t, d.recordsTyped(before, base, mark))
}

// recordsTyped tells the own fences that what the page took since the mark was typed.
func (d *device) recordsTyped(before []Fence, base notebook.Revision, mark Mark) error {
	now, err := d.page.Fences()
	if err != nil {
		now = nil
	}
	return d.own.Typed(d.page, before, now, base, mark)
}

// types replaces the first old of the text by new, seeing the text as it is.
func (d *device) types(old, new string) {
	d.t.Helper()
	d.typesAt(d.page.Revision(), d.splice(old, new))
}

// as is an edit through another door.
func (d *device) as(c notebook.Class, label, old, new string) {
	d.t.Helper()
	d.change(notebook.Author{Device: d.signer.Device(), Class: c, Label: label}, []notebook.Splice{d.splice(old, new)})
	d.own.Other(d.page)
}

// splice replaces the first old by new; an empty old is the end of the text.
func (d *device) splice(old, new string) notebook.Splice {
	d.t.Helper()
	text := d.page.Text()
	i := strings.Index(text, old)
	if old == "" {
		i = len(text)
	}
	if i < 0 {
		d.t.Fatalf("%s has no %q in %q", d.name, old, text)
	}
	for old != "" && new != "" && old[0] == new[0] { // as an editor does, which knows where its keys went
		old, new, i = old[1:], new[1:], i+1
	}
	for old != "" && new != "" && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	return notebook.Splice{At: utf8.RuneCountInString(text[:i]), Delete: utf8.RuneCountInString(old), Insert: new}
}

func (d *device) set(s notebook.Set) {
	d.t.Helper()
	body, err := notebook.EncodeSet(&s)
	must(d.t, err)
	d.append(notebook.KindSet, d.author(), body)
}

// pull takes everything that from has.
func (d *device) pull(from *device) {
	d.t.Helper()
	d.take(from.entries)
}

func (d *device) take(entries []notebook.Entry) {
	d.t.Helper()
	taken, err := d.log.Take(notebook.DeviceID{}, entries)
	must(d.t, err)
	for _, v := range taken {
		d.entries = append(d.entries, v.Entry())
		var void *trust.Void
		switch v.Header().Kind {
		case notebook.KindText:
			if err := d.page.Apply(v); errors.As(err, &void) {
				d.voids = append(d.voids, void.Reason)
				continue
			} else if err != nil {
				d.t.Fatal(err)
			}
			must(d.t, d.registers.Apply(v))
			d.bodies = append(d.bodies, v.Entry().Body)
			d.own.Other(d.page)
			if d.writer != nil {
				must(d.t, d.writer.Load(v.Entry().Body))
			}
		case notebook.KindSet:
			must(d.t, d.registers.Apply(v))
		}
	}
}

// stands says of every fence of the page by its info string how it stands on d.
func (d *device) stands() string {
	d.t.Helper()
	fences, err := d.page.Fences()
	must(d.t, err)
	var all []string
	for i := range fences {
		all = append(all, fences[i].Part.Info+"="+d.standing(&fences[i]))
	}
	return strings.Join(all, " ")
}

// standing is the rule of who a fence's standing rests on, without policy.
func (d *device) standing(f *Fence) string {
	if len(f.Origin) == 0 {
		d.t.Fatalf("a fence without an author: %+v", f)
	}
	if f.Origin.Only(d.author()) {
		if d.own.Has(f) && f.Closed() {
			return "local"
		}
		return "structure"
	}
	var who []string
	for _, a := range f.Origin {
		switch {
		case a == d.author():
		case a.Device != d.signer.Device():
			who = append(who, "foreign")
		default:
			who = append(who, a.Class.String())
		}
	}
	slices.Sort(who)
	return strings.Join(slices.Compact(who), "+")
}
