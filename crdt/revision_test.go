package crdt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// TestTextAt looks back at every revision that a page of two writers ever had.
func TestTextAt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := newReplica(t, 1), newReplica(t, 2)
		type moment struct {
			rev  notebook.Revision
			text string
		}
		var moments []moment
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			r, other := a, b
			if rapid.Bool().Draw(rt, "b") {
				r, other = b, a
			}
			r.edit(t, func(text editor) {
				n := text.Len()
				at := rapid.IntRange(0, n).Draw(rt, "at")
				del := rapid.IntRange(0, min(n-at, 4)).Draw(rt, "delete")
				must(t, text.Splice(at, del, rapid.StringOfN(rapid.RuneFrom([]rune("xyzé")), 1, 4, -1).Draw(rt, "insert")))
			})
			moments = append(moments, moment{r.page.Revision(), r.page.Text()})
			if rapid.Bool().Draw(rt, "pull") {
				for _, c := range other.made {
					r.pull(t, other, c)
				}
				moments = append(moments, moment{r.page.Revision(), r.page.Text()})
			}
		}
		for _, c := range b.made {
			a.pull(t, b, c)
		}
		opened, err := OpenPage(a.page.id, a.page.Record())
		must(t, err)
		for _, m := range moments {
			for _, p := range []*Page{a.page, opened} {
				text, err := p.TextAt(m.rev)
				must(t, err)
				if text != m.text {
					t.Fatalf("at %v the text was %q, now it is said to have been %q", m.rev, m.text, text)
				}
			}
		}
	})
}

// TestViewsOfCommits: what came since a mark is seen once, whether or not the
// revision beside it has it already.
func TestViewsOfCommits(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	base := v.page.Revision()
	m.pull(v)
	m.types("hello", "M hello")
	v.pull(m)
	mark := v.page.Mark()
	v.types("hello", "hallo")
	seen, err := v.page.at(base)
	must(t, err)
	for want, view := range map[string]*view{
		"hello":   seen,
		"hallo":   v.page.with(seen, mark),
		"M hallo": v.page.with(now(), mark),
	} {
		if got := v.page.layout(view).body; got != want {
			t.Errorf("sees %q, want %q", got, want)
		}
	}
	if got := v.page.layout(v.page.with(seen, 1)).body; got != v.page.Text() {
		t.Errorf("everything since the beginning is %q, want %q", got, v.page.Text())
	}
}

func TestUnknownRevision(t *testing.T) {
	r := newReplica(t, 1)
	r.edit(t, func(text editor) { must(t, text.Insert(0, "x")) })
	for _, rev := range []notebook.Revision{nil, {}, {notebook.Hash{1}}, append(r.page.Revision(), notebook.Hash{1})} {
		if _, err := r.page.TextAt(rev); !errors.Is(err, ErrUnknownRevision) {
			t.Errorf("text at %v: %v", rev, err)
		}
		if _, err := r.page.Rebase(rev, nil); !errors.Is(err, ErrUnknownRevision) {
			t.Errorf("rebase from %v: %v", rev, err)
		}
	}
	if _, err := r.page.TextAt(NewPage(notebook.PageID{}).Revision()); err != nil {
		t.Errorf("every page has been empty once: %v", err)
	}
}

// TestRebase carries an edit over what has happened meanwhile.
func TestRebase(t *testing.T) {
	for _, c := range []struct {
		name      string
		base      string
		meanwhile []notebook.Splice
		edit      []notebook.Splice
		want      string
	}{
		{"nothing has happened", "hello", nil, []notebook.Splice{{At: 1, Delete: 3, Insert: "ipp"}}, "hippo"},
		{"text before", "hello", []notebook.Splice{{Insert: "oh, "}}, []notebook.Splice{{At: 5, Insert: "!"}}, "oh, hello!"},
		{"text after", "hello", []notebook.Splice{{At: 5, Insert: "!"}}, []notebook.Splice{{At: 0, Delete: 1, Insert: "j"}}, "jello!"},
		{"text inside what is deleted", "hello", []notebook.Splice{{At: 2, Insert: "XX"}}, []notebook.Splice{{At: 1, Delete: 3}}, "hXXo"},
		{"what is deleted has gone", "hello", []notebook.Splice{{At: 1, Delete: 3}}, []notebook.Splice{{At: 0, Delete: 5, Insert: "bye"}}, "bye"},
		{"the place of an insert has gone", "hello", []notebook.Splice{{At: 1, Delete: 3}}, []notebook.Splice{{At: 2, Insert: "-"}}, "h-o"},
		{"the whole text has gone", "hello", []notebook.Splice{{Delete: 5}}, []notebook.Splice{{At: 5, Insert: "still here"}}, "still here"},
		{"both replace the same", "hello", []notebook.Splice{{At: 1, Delete: 3, Insert: "A"}}, []notebook.Splice{{At: 1, Delete: 3, Insert: "B"}}, "hBAo"},
		{"several at once", "one two three", []notebook.Splice{{At: 3, Insert: ","}, {At: 7, Insert: ","}}, []notebook.Splice{{At: 0, Delete: 3, Insert: "1"}, {At: 4, Delete: 3, Insert: "2"}, {At: 8, Delete: 5, Insert: "3"}}, "1, 2, 3"},
		{"wide characters", "😀漢é", []notebook.Splice{{At: 0, Delete: 1, Insert: "ab"}}, []notebook.Splice{{At: 2, Delete: 1, Insert: "e"}}, "ab漢e"},
		{"next to each other", "abcd", []notebook.Splice{{At: 2, Insert: "-"}}, []notebook.Splice{{At: 1, Delete: 1}, {At: 2, Delete: 1, Insert: "C"}}, "aC-d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := devices(t, "V")[0]
			d.types("", c.base)
			base := d.page.Revision()
			if c.meanwhile != nil {
				d.typesAt(base, c.meanwhile...)
			}
			rebased, err := d.page.Rebase(base, c.edit)
			must(t, err)
			if got := apply(d.page.Text(), rebased); got != c.want {
				t.Fatalf("got %q by %+v, want %q", got, rebased, c.want)
			}
			d.typesAt(base, c.edit...)
			if got := d.page.Text(); got != c.want {
				t.Fatalf("the page has %q, want %q", got, c.want)
			}
		})
	}
}

// TestRebaseKeepsBothEdits is the property behind the table: what one deleted
// is gone, what one inserted is there, and the rest is in its order.
func TestRebaseKeepsBothEdits(t *testing.T) {
	d := devices(t, "V")[0]
	rapid.Check(t, func(rt *rapid.T) {
		const base = "abcdefghij"
		p := NewPage(storyPage)
		w, err := OpenWriter(p, NewModel(p), func(func([]byte, error) bool) {})
		must(t, err)
		seq := uint64(0)
		edit := func(s []notebook.Splice) {
			body, err := w.Splice(d.author(), d.epoch, someTime, s)
			must(t, err)
			seq++
			a, err := p.check(body, d.author(), d.epoch, sawAll)
			must(t, err)
			p.take(a, seq)
		}
		edit([]notebook.Splice{{Insert: base}})
		rev := p.Revision()
		one, two := drawSplices(rt, "12"), drawSplices(rt, "34")
		if len(one) > 0 {
			edit(one)
		}
		rebased, err := p.Rebase(rev, two)
		must(t, err)
		must(t, checkSplices(rebased, p.Len()))
		got := apply(p.Text(), rebased)
		kept := strings.Map(func(r rune) rune {
			if strings.ContainsRune("1234", r) {
				return -1
			}
			return r
		}, got)
		gone := func(i int) bool {
			return slices.ContainsFunc(slices.Concat(one, two), func(s notebook.Splice) bool { return s.At <= i && i < s.At+s.Delete })
		}
		want := ""
		for i, r := range base {
			if !gone(i) {
				want += string(r)
			}
		}
		if kept != want {
			t.Fatalf("%q: of the base %q is left, want %q (%+v and %+v)", got, kept, want, one, two)
		}
		for _, s := range slices.Concat(one, two) {
			if strings.Count(got, s.Insert) < 1 {
				t.Fatalf("%q has lost the insert %q", got, s.Insert)
			}
		}
	})
}

// drawSplices draws an edit of a text of ten characters.
func drawSplices(rt *rapid.T, alphabet string) []notebook.Splice {
	var s []notebook.Splice
	at := 0
	for at <= 10 && len(s) < 3 {
		at = rapid.IntRange(at, 10).Draw(rt, "at")
		x := notebook.Splice{At: at, Delete: rapid.IntRange(0, 10-at).Draw(rt, "delete")}
		x.Insert = rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 0, 3, -1).Draw(rt, "insert")
		at += x.Delete + 1
		if x.Delete > 0 || x.Insert != "" {
			s = append(s, x)
		}
	}
	return s
}

func TestSplicesThatAreNone(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "hello")
	rev := d.page.Revision()
	for _, s := range [][]notebook.Splice{
		{{At: -1}},
		{{At: 6}},
		{{At: 0, Delete: -1}},
		{{At: 3, Delete: 3}},
		{{At: 1, Delete: 1 << 62}},
		{{At: 3}, {At: 2}},
		{{At: 1, Delete: 2}, {At: 2}},
		{{Insert: "\r"}},
		{{Insert: "\xff"}},
		{{Insert: strings.Repeat("x", notebook.MaxBody+1)}},
		{{Insert: strings.Repeat("x", notebook.MaxBody)}, {Insert: "x"}},
		make([]notebook.Splice, maxSplices+1),
	} {
		var e *notebook.Error
		if _, err := d.page.Rebase(rev, s); !errors.As(err, &e) || e.Code != notebook.CodeInvalid {
			t.Errorf("rebase of %d splices beginning with %.60q: %v", len(s), s[0].Insert, err)
		}
		if _, err := d.writer.Splice(d.author(), d.epoch, someTime, s); !errors.As(err, &e) || e.Code != notebook.CodeInvalid {
			t.Errorf("splice %d beginning with %.60q: %v", len(s), s[0].Insert, err)
		}
	}
	d.types("hello", "hello, all of this left the writer usable")
}
