//go:build cgo

package crdt

import (
	"errors"
	"testing"
	"time"

	"github.com/automerge/automerge-go"
	"pgregory.net/rapid"

	"noted/notebook"
)

// newScribe is an automerge document beside a page.
func newScribe(*Page) scribe { return oracleDoc{Automerge().(*document)} }

type oracleDoc struct{ *document }

// edit is a commit of any edits, one after the other: more than a model is asked for.
func (d oracleDoc) edit(actor notebook.ActorID, f func(editor)) ([]byte, error) {
	if err := d.doc.SetActorID(actor.String()); err != nil {
		return nil, err
	}
	f(d.text)
	hash, err := d.doc.Commit("", automerge.CommitOptions{Time: &time.Time{}})
	if err != nil {
		return nil, err
	}
	change, err := d.doc.Change(hash)
	if err != nil {
		return nil, err
	}
	return change.Save(), nil
}

func (d oracleDoc) load(change []byte) error {
	_, err := d.Load(change)
	return err
}

func (d oracleDoc) state() (string, notebook.Revision, error) {
	text, err := d.Text()
	if err != nil {
		return "", nil, err
	}
	heads, err := d.Load(nil)
	return text, heads, err
}

// TestFirstChangeIsAutomerges: the first change is what automerge itself writes.
func TestFirstChangeIsAutomerges(t *testing.T) {
	doc := automerge.New()
	must(t, doc.SetActorID(firstActor.String()))
	must(t, doc.Path(bodyKey).Set(automerge.NewText("")))
	hash, err := doc.Commit("", automerge.CommitOptions{Time: &time.Time{}})
	must(t, err)
	change, err := doc.Change(hash)
	must(t, err)
	if string(change.Save()) != string(firstChange) || notebook.Hash(hash) != firstHash {
		t.Errorf("automerge writes the first change as %x", change.Save())
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
			body := r.edit(t, func(text editor) {
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

// TestWriterReadsTheLog opens a document on a log that is not the page's.
func TestWriterReadsTheLog(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	m.pull(v)
	v.types("hello", "hello again")
	if _, err := OpenWriter(v.page, Automerge(), m.stored()); !errors.Is(err, ErrBehind) {
		t.Errorf("a writer without all changes: %v", err)
	}
	if _, err := OpenWriter(m.page, Automerge(), v.stored()); err == nil {
		t.Error("a writer took changes that its page does not have")
	}
	damaged := errors.New("the disk")
	if _, err := OpenWriter(v.page, Automerge(), func(yield func([]byte, error) bool) { yield(nil, damaged) }); !errors.Is(err, damaged) {
		t.Errorf("a writer whose changes cannot be read: %v", err)
	}
	w, err := OpenWriter(v.page, Automerge(), v.stored())
	must(t, err)
	must(t, w.Close())
}

// TestAutomergeQuarantine takes the ground from under a writer: automerge and the
// shadow no longer agree, and nothing is written any more.
func TestAutomergeQuarantine(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "hello")
	model := d.writer.model.(*document)
	must(t, model.text.Insert(0, "not in the shadow"))
	must(t, d.writer.load(nil))
	if err := d.writer.compare(); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("other heads: %v", err)
	}
	splice := []notebook.Splice{{At: 0, Insert: "x"}}
	if _, err := d.writer.Splice(d.author(), d.epoch, someTime, splice); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("a write to a quarantined page: %v", err)
	}
	if err := d.writer.Load(d.bodies[0]); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("a load into a quarantined page: %v", err)
	}
	w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
	must(t, err)
	d.writer = w
	d.types("hello", "hello again")

	d.page.chars[d.page.operation(name{2, 1})] = 'j'
	d.page.text = nil
	if err := d.writer.compare(); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("another text: %v", err)
	}
	if _, err := OpenWriter(d.page, NewModel(d.page), d.stored()); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("another text at opening: %v", err)
	}

	d.writer.broken = nil
	d.writer.model.(*document).text = automerge.NewText("") // on which the binding fails or panics
	if err := d.writer.Load(d.bodies[0]); !errors.Is(err, ErrQuarantined) {
		t.Fatalf("a document that cannot be read: %v", err)
	}
}
