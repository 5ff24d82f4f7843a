package crdt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// handsIn is who has a hand in a span, told from the elements of an open page.
func handsIn(p *Page, s notebook.Span) notebook.Origin {
	var authors []notebook.Author
	at := 0
	for _, e := range elementsOf(p) {
		if len(e.deleters) > 0 {
			if at >= s.From && at <= s.To {
				authors = append(authors, e.deleters...)
			}
			continue
		}
		if size := len(string(e.char)); at < s.To && at+size > s.From {
			authors = append(authors, e.author)
		}
		at += len(string(e.char))
	}
	return notebook.NewOrigin(authors...)
}

// TestHands: the record alone tells the same text and the same hands as the open
// page, of any part of it.
func TestHands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		group := []*replica{newReplica(t, 1), newReplica(t, 2), newReplica(t, 3)}
		for range rapid.IntRange(0, 25).Draw(rt, "steps") {
			r, other := group[rapid.IntRange(0, 2).Draw(rt, "who")], group[rapid.IntRange(0, 2).Draw(rt, "other")]
			r.edit(t, func(text editor) {
				n := text.Len()
				at := rapid.IntRange(0, n).Draw(rt, "at")
				del := rapid.IntRange(0, min(n-at, 4)).Draw(rt, "delete")
				must(t, text.Splice(at, del, rapid.StringOfN(rapid.RuneFrom([]rune("xyzé漢\n")), 1, 4, -1).Draw(rt, "insert")))
			})
			if r != other && rapid.Bool().Draw(rt, "pull") {
				for _, from := range group { // what other has, with what it rests on
					for _, c := range from.made {
						if from != r && (from == other || other.had[string(c)]) && !r.had[string(c)] {
							if _, err := r.page.check(c, from.author, from.epoch, sawAll); err == nil {
								r.pull(t, from, c)
							}
						}
					}
				}
			}
		}
		p := group[0].page
		h, err := ReadHands(p.id, p.Record())
		must(t, err)
		if h.Text != p.Text() {
			rt.Fatalf("the record has %q, the page %q", h.Text, p.Text())
		}
		for range 5 {
			chars := []rune(h.Text)
			from := rapid.IntRange(0, len(chars)).Draw(rt, "from")
			to := rapid.IntRange(from, len(chars)).Draw(rt, "to")
			s := notebook.Span{From: len(string(chars[:from])), To: len(string(chars[:to]))}
			got, err := h.Of([]notebook.Span{s})
			must(t, err)
			if want := handsIn(p, s); !slices.Equal(got, want) {
				rt.Fatalf("in %v of %q: %v, want %v", s, h.Text, got, want)
			}
		}
	})
}

// TestHandsOfParts tells who is named in which part, by example.
func TestHandsOfParts(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "one\ntwo\nthree\n")
	m.pull(v)
	m.types("two", "2wo")
	v.as(notebook.Agent, "helper", "three", "thre")
	sync(v, m)
	h, err := ReadHands(v.page.id, v.page.Record())
	must(t, err)
	if h.Text != "one\n2wo\nthre\n" {
		t.Fatalf("the text is %q", h.Text)
	}
	self := notebook.Author{Device: v.signer.Device(), Class: notebook.Typed}
	other := notebook.Author{Device: m.signer.Device(), Class: notebook.Typed}
	agent := notebook.Author{Device: v.signer.Device(), Class: notebook.Agent, Label: "helper"}
	for _, c := range []struct {
		span notebook.Span
		want notebook.Origin
	}{
		{notebook.Span{From: 0, To: 3}, notebook.NewOrigin(self)},
		{notebook.Span{From: 4, To: 7}, notebook.NewOrigin(self, other)},
		{notebook.Span{From: 8, To: 12}, notebook.NewOrigin(self, agent)}, // who only deleted
		{notebook.Span{From: 8, To: 10}, notebook.NewOrigin(self)},
	} {
		got, err := h.Of([]notebook.Span{c.span})
		must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("in %q: %v, want %v", h.Text[c.span.From:c.span.To], got, c.want)
		}
	}
	all, err := h.Of([]notebook.Span{{From: 0, To: 3}, {From: 4, To: 7}, {From: 8, To: 12}})
	must(t, err)
	if want := notebook.NewOrigin(self, other, agent); !slices.Equal(all, want) {
		t.Errorf("in all of them: %v, want %v", all, want)
	}
	record := v.page.Record()
	for i := range record {
		if _, err := ReadHands(v.page.id, record[:i]); err == nil {
			t.Errorf("a record cut at byte %d of %d was read", i, len(record))
		}
	}
	if _, err := ReadHands(v.page.id, append(slices.Clone(record), 0)); err == nil {
		t.Error("a record with a byte more was read")
	}
	if _, err := ReadHands(notebook.PageID{1}, record); err == nil {
		t.Error("another page's record was read")
	}
	record[0]++
	if _, err := ReadHands(v.page.id, record); err == nil {
		t.Error("a record of a later version was read")
	}
}

// FuzzReadHands: a damaged record is an error or a text, and one that opens is
// read as it opens.
func FuzzReadHands(f *testing.F) {
	a, b := newReplica(f, 1), newReplica(f, 2)
	f.Add(a.page.Record())
	b.pull(f, a, a.edit(f, func(text editor) { must(f, text.Insert(0, "hello")) }))
	a.edit(f, func(text editor) { must(f, text.Splice(1, 3, "ipp")) })
	a.pull(f, b, b.edit(f, func(text editor) { must(f, text.Splice(0, 3, "漢")) }))
	f.Add(a.page.Record())
	f.Fuzz(func(t *testing.T, record []byte) {
		h, err := ReadHands(a.page.id, record)
		p, opens := OpenPage(a.page.id, record)
		if opens == nil && (err != nil || h.Text != p.Text()) {
			t.Fatalf("a page with %q is read as %+v: %v", p.Text(), h, err)
		}
		if err != nil {
			return
		}
		whole := notebook.Span{From: 0, To: len(h.Text)}
		got, err := h.Of([]notebook.Span{whole})
		if opens == nil && (err != nil || !slices.Equal(got, handsIn(p, whole))) {
			t.Fatalf("in %q: %v, %v", h.Text, got, err)
		}
	})
}

func BenchmarkReadHands(b *testing.B) {
	r := newReplica(b, 1)
	for range 40 {
		r.edit(b, func(text editor) {
			must(b, text.Insert(text.Len(), "- [ ] a line of a page with some words in it #tag\n"))
		})
	}
	record := r.page.Record()
	b.Run("hands", func(b *testing.B) {
		b.SetBytes(int64(len(record)))
		for b.Loop() {
			if _, err := ReadHands(r.page.id, record); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			p, err := OpenPage(r.page.id, record)
			if err != nil {
				b.Fatal(err)
			}
			_ = p.Text()
		}
	})
}
