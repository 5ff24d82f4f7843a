package crdt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/automerge/automerge-go"
	"pgregory.net/rapid"

	"noted/notebook"
)

// replica is an automerge document beside a page: whatever one of them has, the
// other one has.
type replica struct {
	author notebook.Author
	epoch  notebook.Epoch
	doc    *automerge.Doc
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
		doc:    automerge.New(),
		page:   NewPage(notebook.PageID{7}),
		had:    map[string]bool{},
	}
	must(t, r.doc.LoadIncremental(firstChange))
	must(t, r.doc.SetActorID(r.author.Actor(r.epoch).String()))
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// edit makes a change with automerge and takes it into the page.
func (r *replica) edit(t testing.TB, f func(text *automerge.Text)) []byte {
	t.Helper()
	f(r.doc.Path(bodyKey).Text())
	hash, err := r.doc.Commit("", automerge.CommitOptions{Time: &time.Time{}})
	must(t, err)
	change, err := r.doc.Change(hash)
	must(t, err)
	body := change.Save()
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
	must(t, r.doc.LoadIncremental(body))
}

func (r *replica) agree(t testing.TB) {
	t.Helper()
	text, err := r.doc.Path(bodyKey).Text().Get()
	must(t, err)
	if text != r.page.Text() {
		t.Fatalf("automerge has %q, the shadow %q", text, r.page.Text())
	}
	if n := len([]rune(text)); n != r.page.Len() || len(text) != r.page.Size() {
		t.Fatalf("the shadow counts %d characters and %d bytes of %d and %d", r.page.Len(), r.page.Size(), n, len(text))
	}
	var heads notebook.Revision
	for _, h := range r.doc.Heads() {
		heads = append(heads, notebook.Hash(h))
	}
	slices.SortFunc(heads, compareHashes)
	if !slices.Equal(heads, r.page.Revision()) {
		t.Fatalf("automerge has heads %v, the shadow %v", heads, r.page.Revision())
	}
}

// made is a change and who made it.
type made struct {
	by   *replica
	body []byte
}

// TestShadowAgreesWithAutomerge lets replicas edit, exchange prefixes of their
// histories and edit again, and holds every shadow against the document that
// automerge has of the same changes.
func TestShadowAgreesWithAutomerge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		group := make([]*replica, rapid.IntRange(1, 4).Draw(rt, "replicas"))
		for i := range group {
			group[i] = newReplica(t, byte(i+1))
		}
		var log []made // in an order in which every change follows what it knows
		taken := make([]int, len(group))
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(group)-1).Draw(rt, "who")
			r := group[i]
			if rapid.IntRange(0, 2).Draw(rt, "what") == 0 {
				// The log is a causal order, so each prefix of it can be taken.
				upTo := rapid.IntRange(taken[i], len(log)).Draw(rt, "up to")
				for _, m := range log[taken[i]:upTo] {
					if m.by != r {
						r.pull(t, m.by, m.body)
					}
				}
				taken[i] = max(taken[i], upTo)
				r.agree(t)
				continue
			}
			body := r.edit(t, func(text *automerge.Text) {
				for k := range rapid.IntRange(1, 5).Draw(rt, "splices") {
					n := text.Len()
					at := rapid.IntRange(0, n).Draw(rt, "at")
					del := rapid.IntRange(0, min(n-at, 8)).Draw(rt, "delete")
					insert := rapid.StringOfN(rapid.SampledFrom([]rune("ab`\n é漢😀")), 0, 6, -1).Draw(rt, "insert")
					if k == 0 && insert == "" {
						insert = "x"
					}
					must(t, text.Splice(at, del, insert))
				}
			})
			log = append(log, made{r, body})
			r.agree(t)
		}
		for _, r := range group {
			for _, m := range log {
				if m.by != r {
					r.pull(t, m.by, m.body)
				}
			}
			r.agree(t)
			if got, want := r.page.Text(), group[0].page.Text(); got != want {
				t.Fatalf("two replicas with the same changes have %q and %q", got, want)
			}
			opened, err := OpenPage(r.page.id, r.page.Record())
			must(t, err)
			samePage(t, opened, r.page)
		}
	})
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
