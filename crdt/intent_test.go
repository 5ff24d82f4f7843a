package crdt

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"noted/notebook"
)

// lying is a write model that somebody has taken over: it makes sound changes of
// the right actor, and other ones than it was asked for.
type lying struct {
	Model
	page    *Page // whose revision and text it claims
	splices func([]notebook.Splice) []notebook.Splice
	later   int64
}

func (m *lying) Load([]byte) (notebook.Revision, error) { return m.page.Revision(), nil }
func (m *lying) Text() (string, error)                  { return m.page.Text(), nil }

func (m *lying) Splice(actor notebook.ActorID, at int64, s []notebook.Splice) ([]byte, error) {
	if m.splices != nil {
		s = m.splices(s)
	}
	return m.Model.Splice(actor, at+m.later, s)
}

// TestAModelCannotWriteSomethingElse: what is signed as the person's is the edit
// that the person made, whatever the process says that makes the change of it.
func TestAModelCannotWriteSomethingElse(t *testing.T) {
	typed := []notebook.Splice{{At: 1, Delete: 2, Insert: "xy"}, {At: 4, Insert: "z"}}
	replace := func(s ...notebook.Splice) func([]notebook.Splice) []notebook.Splice {
		return func([]notebook.Splice) []notebook.Splice { return s }
	}
	for name, c := range map[string]struct {
		lie    lying
		behind bool // the model lacks the page's newest change
		fails  bool
	}{
		"the edit itself":        {},
		"another character":      {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 2, Insert: "xY"}, typed[1])}, fails: true},
		"one character more":     {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 2, Insert: "xyz"}, typed[1])}, fails: true},
		"one character less":     {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 2, Insert: "x"}, typed[1])}, fails: true},
		"one at another place":   {lie: lying{splices: replace(typed[0], notebook.Splice{At: 5, Insert: "z"})}, fails: true},
		"one at the beginning":   {lie: lying{splices: replace(notebook.Splice{At: 0, Insert: "z"}, typed[0])}, fails: true},
		"another deletion":       {lie: lying{splices: replace(notebook.Splice{At: 0, Delete: 2, Insert: "xy"}, typed[1])}, fails: true},
		"one deletion more":      {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 3, Insert: "xy"}, typed[1])}, fails: true},
		"a deletion left out":    {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 1, Insert: "xy"}, typed[1])}, fails: true},
		"half of the edit":       {lie: lying{splices: replace(typed[0])}, fails: true},
		"a second edit":          {lie: lying{splices: replace(typed[0], typed[1], notebook.Splice{At: 8, Insert: "!"})}, fails: true},
		"the characters swapped": {lie: lying{splices: replace(notebook.Splice{At: 1, Delete: 2, Insert: "yx"}, typed[1])}, fails: true},
		"another time":           {lie: lying{later: 1}, fails: true},
		"an older revision":      {behind: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			group := devices(t, "V", "M")
			v, m := group[0], group[1]
			v.types("", "0123456789")
			page := v.page
			if c.behind {
				var err error
				page, err = OpenPage(storyPage, v.page.Record())
				must(t, err)
			}
			model := NewModel(page)
			w, err := OpenWriter(page, model, v.stored())
			must(t, err)
			m.pull(v)
			m.types("89", "8 9")
			v.pull(m)
			if !c.behind {
				must(t, w.Load(m.bodies[len(m.bodies)-1]))
			}
			c.lie.Model, c.lie.page = model, v.page
			w, err = OpenWriter(v.page, &c.lie, nil)
			must(t, err)
			body, err := w.Splice(v.author(), v.epoch, someTime, typed)
			if c.fails {
				if !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "another change than the edit") {
					t.Fatalf("it passed with %v", err)
				}
				return
			}
			must(t, err)
			must(t, v.page.Apply(v.append(notebook.KindText, v.author(), body)))
			if got := v.page.Text(); got != "0xy3z45678 9" {
				t.Fatalf("the page reads %q", got)
			}
		})
	}
}

// TestHonestChangesDoWhatTheySay makes random edits of a page with tombstones
// and foreign text: no honest one is taken for another.
func TestHonestChangesDoWhatTheySay(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "some text\nto begin with, 漢字\n")
	rapid.Check(t, func(rt *rapid.T) {
		d, other := v, m
		if rapid.Bool().Draw(rt, "M") {
			d, other = m, v
		}
		if rapid.IntRange(0, 3).Draw(rt, "pull") == 0 {
			d.pull(other)
			d.writer = nil
		}
		before := d.page.Text()
		length := utf8.RuneCountInString(before)
		var splices []notebook.Splice
		for at := 0; at <= length && len(splices) < 4; {
			at += rapid.IntRange(0, max(0, min(7, length-at))).Draw(rt, "skip")
			x := notebook.Splice{At: at, Delete: rapid.IntRange(0, min(3, length-at)).Draw(rt, "delete"), Insert: rapid.SampledFrom([]string{"", "a", "字b", "\n"}).Draw(rt, "insert")}
			at += x.Delete
			if splices = append(splices, x); rapid.Bool().Draw(rt, "last") {
				break
			}
		}
		if (*Writer)(&Writer{page: d.page}).fits(splices) != nil {
			return
		}
		d.change(d.author(), splices)
		if got, want := d.page.Text(), apply(before, splices); got != want {
			rt.Fatalf("%q became %q, not %q, by %+v", before, got, want, splices)
		}
	})
}
