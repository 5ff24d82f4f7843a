package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"noted/notebook"
	"noted/trust"
)

// ErrUnknownRevision says that a revision names a change which this page does not have here.
var ErrUnknownRevision = notebook.Errorf(notebook.CodeStale, "that revision of the page is not known here").
	With("read the page again and repeat the change")

// ErrFull says that a page has reached what any device can keep of it. Nothing
// is wrong with the change that did not fit; it waits, with the log that it is in.
var ErrFull = notebook.Errorf(notebook.CodeExhausted, "the page has reached the number of edits that it can keep").
	With("put its text into a new page, then let go of this one: noted page purge")

// Page is the shadow of a page: its elements in order with the author of each
// and the deleters of tombstones, and the history that tells one revision from
// another. It is not safe for concurrent use.
type Page struct {
	id        notebook.PageID
	actors    []actor
	actorOf   map[notebook.ActorID]uint16
	lanesOf   map[notebook.DeviceID]int // how many actors are a device's
	changes   []applied
	deps      []int32                 // of all changes, in their order
	byHash    map[notebook.Hash]int32 // made when it is first needed
	heads     []int32                 // changes that no other one depends on
	lanes     map[int32][]uint32      // clocks of recent changes
	laneOrder []int32                 // of lanes, oldest first
	seq       sequence
	chars     []rune // by operation, 0 for deletions
	deletions []deletion
	length    int // code points
	size      int // bytes of UTF-8
	text      *string
	steps     uint64
	asked     map[int32]bool // by deletion, whether it or one before it is in the past of the change being checked

	scratch *change
	encoder *encoder
}

// actor is who may insert and delete under one automerge actor.
type actor struct {
	author  notebook.Author
	epoch   notebook.Epoch
	changes []int32 // its chain
}

// applied is a change that the page has.
type applied struct {
	hash     notebook.Hash
	entry    uint64 // the entry's place in its epoch's chain
	start, n uint32 // counters of its operations
	op       int32  // number of its first operation in the page
	deps     int32  // where its dependencies begin in the page's
	depCount int32
	actor    uint16
	head     int32 // 1 + its place in the page's heads, 0 where another change depends on it
}

// last is the counter of a change's last operation.
func (c *applied) last() uint32 { return c.start + c.n - 1 }

// NewPage returns the page as every page begins: empty, with the one first change.
func NewPage(id notebook.PageID) *Page {
	p := &Page{
		id:      id,
		actorOf: map[notebook.ActorID]uint16{firstActor: 0},
		lanes:   map[int32][]uint32{},
		lanesOf: map[notebook.DeviceID]int{},
		seq:     newSequence(),
		scratch: new(change),
		encoder: new(encoder),
	}
	p.actors = []actor{{changes: []int32{0}}}
	p.seq.ids = []notebook.ActorID{firstActor}
	p.seq.leafOf = []int32{-1}
	p.chars = []rune{0}
	p.changes = []applied{{hash: firstHash, start: firstCounter, n: 1, head: 1}}
	p.heads = []int32{0}
	return p
}

// ID is the page's.
func (p *Page) ID() notebook.PageID { return p.id }

// Revision is the page's present state: its sorted heads.
func (p *Page) Revision() notebook.Revision {
	r := make(notebook.Revision, len(p.heads))
	for i, k := range p.heads {
		r[i] = p.changes[k].hash
	}
	slices.SortFunc(r, compareHashes)
	return r
}

func compareHashes(a, b notebook.Hash) int { return bytes.Compare(a[:], b[:]) }

// Len is the length of the text in code points.
func (p *Page) Len() int { return p.length }

// Size is the length of the text in bytes.
func (p *Page) Size() int { return p.size }

// Changes is how many changes the page has, its first one included.
func (p *Page) Changes() int { return len(p.changes) }

// Elements is how many characters the page keeps, deleted ones included.
func (p *Page) Elements() int {
	n := 0
	for r := range p.seq.each {
		n += int(r.n)
	}
	return n
}

// Authors are all who ever wrote or deleted here: who may have a hand in the text.
func (p *Page) Authors() notebook.Origin {
	authors := make([]notebook.Author, 0, len(p.actors))
	for _, a := range p.actors[1:] { // the first change has no author
		authors = append(authors, a.author)
	}
	return notebook.NewOrigin(authors...)
}

// Text is the page's text.
func (p *Page) Text() string {
	if p.text == nil {
		var b strings.Builder
		b.Grow(p.size)
		for r := range p.seq.each {
			if r.deleted == 0 {
				writeRunes(&b, p.chars[r.op:r.op+int32(r.n)])
			}
		}
		s := b.String()
		p.text = &s
	}
	return *p.text
}

func writeRunes(b *strings.Builder, runes []rune) {
	for _, r := range runes {
		if r < utf8.RuneSelf {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(r)
		}
	}
}

// opSteps is what an operation costs wherever it goes, to read it, to encode it
// again and to keep it: measured beside the steps of a search.
const opSteps = 16

// Steps is how much work the changes that the page was asked to take have been
// so far, in elementary steps of about five nanoseconds. It is a function of
// what was applied in which order, not of the machine.
func (p *Page) Steps() uint64 { return p.steps + p.seq.steps }

// Weight is about what the page takes in memory and in its record, in bytes.
func (p *Page) Weight() int { return 48*len(p.changes) + 8*len(p.chars) + 16*len(p.deletions) + p.size }

// Full reports whether the page takes no more edits.
func (p *Page) Full() bool { return len(p.chars) >= maxPageOps || len(p.actors) >= maxPageActors }

// Actors is how many actors a device has on the page, and would have with this
// one. An actor is one door of a device in one opening of its store.
func (p *Page) Actors(a notebook.Author, e notebook.Epoch) (has, then int) {
	has = p.lanesOf[a.Device]
	if _, known := p.actorOf[a.Actor(e)]; known {
		return has, has
	}
	return has, has + 1
}

// Apply takes a text entry of this page into the shadow. Entries come in an
// order in which none precedes what its author had seen, as [trust.Log] releases
// them. A *[trust.Void] says which rule the entry breaks: every device finds
// the same, the entry is kept and skipped, and the page is as before. [ErrFull]
// says that the entry has to wait. Any other error is the caller's mistake.
func (p *Page) Apply(v trust.Verified) error {
	if !v.Valid() {
		return errors.New("apply to a page: the entry was not verified")
	}
	h, entry := v.Header(), v.Entry()
	if h.Kind != notebook.KindText || h.Page != p.id {
		return fmt.Errorf("apply to page %s: a %s entry of page %s", p.id, h.Kind, h.Page)
	}
	if reason := v.Void(); reason != "" {
		return &trust.Void{Reason: reason}
	}
	a, err := p.check(entry.Body, v.Author(), h.Epoch, v.Saw)
	if err != nil {
		return err
	}
	p.take(a, h.Seq)
	return nil
}

// Admits is the gate for an own change before it is signed: nil says that
// [Page.Apply] will take it. Beside the rules of the gate the text must stay
// within the size of a page.
func (p *Page) Admits(body []byte, a notebook.Author, e notebook.Epoch) error {
	_, err := p.admit(body, a, e)
	return err
}

func (p *Page) admit(body []byte, a notebook.Author, e notebook.Epoch) (*arrival, error) {
	arrival, err := p.check(body, a, e, func(notebook.Position) bool { return true })
	if err != nil {
		return nil, err
	}
	if has, then := p.Actors(a, e); then > has && has >= maxDeviceActors {
		return nil, ErrFull
	}
	size := p.size
	for i, ref := range arrival.refs {
		switch o := &arrival.change.ops[i]; {
		case o.inserts():
			size += runeLen(o.char)
		case int(ref) < len(p.chars):
			size -= runeLen(p.chars[ref])
		default:
			size -= runeLen(arrival.change.ops[int(ref)-len(p.chars)].char)
		}
	}
	if size > notebook.MaxBody && size > p.size {
		return nil, errTooLarge(size)
	}
	return arrival, nil
}

func errTooLarge(size int) error {
	return notebook.Errorf(notebook.CodeInvalid, "a page of %d bytes is larger than the %d that a page can hold", size, notebook.MaxBody).
		With("split it into several pages")
}

// lookup returns the change with this hash, or -1.
func (p *Page) lookup(h notebook.Hash) int32 {
	if len(p.heads) <= 4 { // what the next change depends on, usually
		for _, k := range p.heads {
			if p.changes[k].hash == h {
				return k
			}
		}
	}
	if p.byHash == nil {
		p.byHash = make(map[notebook.Hash]int32, len(p.changes))
		for k := range p.changes {
			p.byHash[p.changes[k].hash] = int32(k)
		}
	}
	if k, ok := p.byHash[h]; ok {
		return k
	}
	return -1
}

// operation returns the page's number of the operation with this name, or -1.
// Counters of an actor ascend along its chain, so a search finds its change.
func (p *Page) operation(x name) int32 {
	k := p.changeOf(x)
	if k < 0 {
		return -1
	}
	c := &p.changes[k]
	return c.op + int32(x.counter-c.start)
}

// changeOf is the change that holds the operation with this name, or -1.
func (p *Page) changeOf(x name) int32 {
	chain := p.actors[x.actor].changes
	i := len(chain)
	if i > 0 && p.changes[chain[i-1]].start > x.counter { // usually it is in the last one
		i = sort.Search(len(chain), func(i int) bool { return p.changes[chain[i]].start > x.counter })
	}
	if i == 0 || x.counter > p.changes[chain[i-1]].last() {
		return -1
	}
	return chain[i-1]
}

// element is the id by which the world knows an element.
func (p *Page) element(x name) notebook.ElementID {
	return notebook.ElementID{Counter: uint64(x.counter), Actor: p.seq.ids[x.actor]}
}
