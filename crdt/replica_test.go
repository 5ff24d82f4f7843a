package crdt

import (
	"fmt"
	"slices"
	"testing"

	"noted/notebook"
)

// editor is a text that is edited by one change; automerge's has these methods.
type editor interface {
	Len() int
	Splice(at, del int, insert string) error
	Insert(at int, s string) error
	Delete(at, del int) error
}

// scribe makes the changes of a replica: an automerge document with cgo, and
// then the oracle, too; the page itself without.
type scribe interface {
	edit(actor notebook.ActorID, f func(editor)) ([]byte, error)
	load(change []byte) error
	state() (text string, heads notebook.Revision, err error)
}

// replica is a scribe beside a page: whatever one of them has, the other one has.
type replica struct {
	author notebook.Author
	epoch  notebook.Epoch
	doc    scribe
	page   *Page
	made   [][]byte // changes by this author
	seq    uint64
	had    map[string]bool
}

func newReplica(t testing.TB, n byte) *replica {
	t.Helper()
	r := &replica{
		author: notebook.Author{Device: notebook.DeviceID{n}, Class: notebook.Typed},
		epoch:  notebook.Epoch{n},
		page:   NewPage(notebook.PageID{7}),
		had:    map[string]bool{},
	}
	r.doc = newScribe(r.page)
	must(t, r.doc.load(firstChange))
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// edit makes a change and takes it into the page.
func (r *replica) edit(t testing.TB, f func(text editor)) []byte {
	t.Helper()
	body, err := r.doc.edit(r.author.Actor(r.epoch), f)
	must(t, err)
	r.seq++
	a, err := r.page.check(body, r.author, r.epoch, sawAll)
	must(t, err)
	r.page.take(a, r.seq)
	r.made = append(r.made, body)
	return body
}

func sawAll(notebook.Position) bool { return true }

// pull takes what from has made, as far as n changes, in causal order: what
// those rest on was pulled before, since every replica pulls whole prefixes of
// what everyone has pulled.
func (r *replica) pull(t testing.TB, from *replica, body []byte) {
	t.Helper()
	if r.had[string(body)] {
		return
	}
	r.had[string(body)] = true
	a, err := r.page.check(body, from.author, from.epoch, sawAll)
	must(t, err)
	r.page.take(a, uint64(slices.IndexFunc(from.made, func(b []byte) bool { return string(b) == string(body) })+1))
	must(t, r.doc.load(body))
}

func (r *replica) agree(t testing.TB) {
	t.Helper()
	text, heads, err := r.doc.state()
	must(t, err)
	if text != r.page.Text() {
		t.Fatalf("the scribe has %q, the shadow %q", text, r.page.Text())
	}
	if n := len([]rune(text)); n != r.page.Len() || len(text) != r.page.Size() {
		t.Fatalf("the shadow counts %d characters and %d bytes of %d and %d", r.page.Len(), r.page.Size(), n, len(text))
	}
	if !slices.Equal(heads, r.page.Revision()) {
		t.Fatalf("the scribe has heads %v, the shadow %v", heads, r.page.Revision())
	}
}

// samePage holds two pages against each other, element by element.
func samePage(t testing.TB, a, b *Page) {
	t.Helper()
	if a.Text() != b.Text() || a.Len() != b.Len() || a.Size() != b.Size() || !slices.Equal(a.Revision(), b.Revision()) {
		t.Fatalf("pages differ: %q and %q", a.Text(), b.Text())
	}
	if x, y := fmt.Sprint(elementsOf(a)), fmt.Sprint(elementsOf(b)); x != y {
		t.Fatalf("elements differ:\n%s\n%s", x, y)
	}
}

type seen struct {
	id       notebook.ElementID
	char     rune
	author   notebook.Author
	deleters []notebook.Author
}

func elementsOf(p *Page) []seen {
	var all []seen
	for r := range p.seq.each {
		for k := range r.n {
			s := seen{
				id:     p.element(name{r.counter + uint32(k), r.actor}),
				char:   p.chars[r.op+int32(k)],
				author: p.actors[r.actor].author,
			}
			for d := r.deleted; d > 0; d = p.deletions[d-1].before {
				s.deleters = append(s.deleters, p.actors[p.changes[p.deletions[d-1].change].actor].author)
			}
			all = append(all, s)
		}
	}
	return all
}
