package crdt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"noted/notebook"
)

// onlyFence is the page's one fence.
func onlyFence(t testing.TB, d *device) *Fence {
	t.Helper()
	fences, err := d.page.Fences()
	must(t, err)
	if len(fences) != 1 {
		t.Fatalf("%d fences in %q", len(fences), d.page.Text())
	}
	return &fences[0]
}

// TestOriginEdges has M insert or delete one thing around V's fence: what is
// between the line end before it and the line end behind it counts.
func TestOriginEdges(t *testing.T) {
	for _, c := range []struct {
		name     string
		text     string
		old, new string
		counts   bool
	}{
		{"text of the line before", "before\n```lua\nx\n```\nafter\n", "before", "be fore", false},
		{"a deletion in the line before", "before\n```lua\nx\n```\nafter\n", "before", "before"[1:], false},
		{"a new line before", "before\n```lua\nx\n```\nafter\n", "before", "\nbefore", false},
		{"text of the line behind", "before\n```lua\nx\n```\nafter\n", "after", "a fter", false},
		{"the beginning of the line behind deleted", "before\n```lua\nx\n```\nafter\n", "after", "fter", false},
		{"the whole line behind deleted", "before\n```lua\nx\n```\nafter\nend\n", "after\n", "", false},
		{"the beginning of the opening line deleted", "before\nx```lua\nx\n```\n", "x```", "```", true},
		{"blanks before the delimiter", "before\n```lua\nx\n```\nafter\n", "```lua", "  ```lua", true},
		{"the whole line before deleted", "before\n\nmore\n```lua\nx\n```\nafter\n", "more\n", "", true},
		{"a quote's prefix", "> ```lua\n> x\n> ```\n", "> x", ">  x", true},
		{"a quote's prefix deleted", ">  ```lua\n>  x\n>  ```\n", ">  x", "> x", true},
		{"a blank behind the closing delimiter", "```lua\nx\n```\nafter\n", "x\n```", "x\n``` ", true},
		{"a deleted blank behind the closing delimiter", "```lua\nx\n``` \nafter\n", "x\n``` ", "x\n```", true},
		{"a deletion at the end of a text without a line end", "```lua\nx\n```y", "x\n```y", "x\n```", true},
		{"a deletion at the end of a text with one", "```lua\nx\n```\ny", "\ny", "\n", false},
		{"a deletion behind a fence that is not closed", "> ```lua\n> x\n> y\n", "> y\n", "", true},
		{"a deletion far behind a fence that is not closed", "> ```lua\n> x\n\nprose\nmore\n", "more", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			group := devices(t, "V", "M")
			v, m := group[0], group[1]
			v.types("", c.text)
			m.pull(v)
			m.types(c.old, c.new)
			v.pull(m)
			f := onlyFence(t, v)
			if counts := !f.Origin.Only(v.author()); counts != c.counts {
				t.Errorf("origin %v in %q", f.Origin, v.page.Text())
			}
			foreign := false
			for _, r := range v.page.Ranges(f) {
				foreign = foreign || r.Author != v.author()
			}
			if foreign != c.counts {
				t.Errorf("the ranges %+v say otherwise", v.page.Ranges(f))
			}
		})
	}
}

// TestRanges tells who wrote what, with what was deleted, in the places of the text.
func TestRanges(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "漢\n```lua\nprint(1)\n```\nend\n")
	m.pull(v)
	m.types("(1)", "(1+😀)")
	m.types("pri", "p")
	v.pull(m)
	f := onlyFence(t, v)
	want := []notebook.Range{
		{From: 2, To: 10, Text: "```lua\np", Author: v.author()},
		{From: 10, To: 10, Text: "ri", Author: m.author(), Deleted: true},
		{From: 10, To: 14, Text: "nt(1", Author: v.author()},
		{From: 14, To: 16, Text: "+😀", Author: m.author()},
		{From: 16, To: 22, Text: ")\n```\n", Author: v.author()},
	}
	got := v.page.Ranges(f)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("range %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if f.From != 2 || f.To != 22 {
		t.Errorf("the fence is at %d to %d", f.From, f.To)
	}
	if f.Part.Code != "pnt(1+😀)\n" || f.Part.Language != "lua" {
		t.Errorf("the fence reads %+v", f.Part)
	}
}

// TestFenceIDs follow the first character of the delimiter.
func TestFenceIDs(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "  ```lua\n  x\n  ```\n")
	id := onlyFence(t, v).ID
	for _, c := range []struct {
		old, new string
		same     bool
	}{
		{"x", "yy", true},
		{"  ```lua", "prose\n\n  ```lua", true},
		{"```lua", "```lua more", true},
		{"```lua more", "````lua more", true},
	} {
		v.types(c.old, c.new)
		if got := onlyFence(t, v).ID; (got == id) != c.same {
			t.Errorf("after %q became %q the fence is %s, it was %s", c.old, c.new, got, id)
		}
	}
	v.typesAt(v.page.Revision(), notebook.Splice{At: strings.Index(v.page.Text(), "````lua"), Insert: "`"})
	if got := onlyFence(t, v).ID; got == id {
		t.Error("a fence with another first character is called the same")
	}
	m.pull(v)
	if onlyFence(t, v).ID != onlyFence(t, m).ID {
		t.Error("two devices call one fence differently")
	}
	other := NewPage(notebook.PageID{1})
	if notebook.NewFenceID(other.id, notebook.ElementID{Counter: 2}) == notebook.NewFenceID(storyPage, notebook.ElementID{Counter: 2}) {
		t.Error("two pages share a fence id")
	}
}

// TestFencesOfAnUnreadablePage: what the parser refuses has no fences, on
// record or otherwise, and is an error that says so.
func TestFencesOfAnUnreadablePage(t *testing.T) {
	v, m := typedTour(t)
	m.types("# Notes", strings.Repeat(">", 5_000)+"\n\n# Notes")
	v.pull(m)
	if _, err := v.page.Fences(); err == nil {
		t.Fatal("a page nested five thousand deep was read")
	}
	m.types(strings.Repeat(">", 5_000), "")
	v.pull(m)
	if got := v.stands(); got != "lua one=structure lua two=structure md=structure" {
		t.Fatalf("stands %q", got)
	}
}

// TestLayout compares the arithmetic of bytes and code points with counting.
func TestLayout(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "aé漢😀\n")
	d.types("é", "")
	d.types("漢", "漢x字")
	l := d.page.layout(now())
	for at := range l.body + "." {
		if got, want := l.char(at), utf8.RuneCountInString(l.body[:at]); got != want {
			t.Errorf("byte %d is code point %d, want %d", at, got, want)
		}
		for to := range l.body + "." {
			if to < at {
				continue
			}
			var text strings.Builder
			for _, s := range l.between(at, to, true) {
				if !s.dead {
					text.WriteString(string(d.page.chars[s.op : s.op+int32(s.n)]))
					if l.body[s.at:s.at+s.size] != string(d.page.chars[s.op:s.op+int32(s.n)]) {
						t.Errorf("a span from %d of %d bytes is %q", s.at, s.size, l.body[s.at:s.at+s.size])
					}
				}
			}
			if text.String() != l.body[at:to] {
				t.Errorf("between %d and %d stands %q, want %q", at, to, text.String(), l.body[at:to])
			}
		}
	}
}
