package crdt

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"noted/notebook"
)

// TestHostileText takes text of every kind through the gate, a foreign device's
// first edit: what the alphabet excludes is refused, by name; of the rest every
// position is in code points, and a fence keeps its id whatever comes before it.
func TestHostileText(t *testing.T) {
	const fence = "~~~lua\nprint(1)\n~~~\n"
	for _, c := range []struct {
		name, text string
		fences     int    // in text, when fence follows on a line of its own
		why        string // or why it is refused
	}{
		{"plain", "a line\n", 1, ""},
		{"CRLF", "a\r\nb\r\n", 0, "U+000D"},
		{"lone CR", "a\r~~~lua\r", 0, "U+000D"},
		{"NUL", "a\x00b\n", 0, "U+0000"},
		{"escape", "\x1b[2J\n", 0, "U+001B"},
		{"form feed", "a\f\n", 0, "U+000C"},
		{"NEL, a C1 control", "a\u0085b\n", 0, "U+0085"},
		{"byte order mark", "\ufeffa\n", 0, "U+FEFF"},
		{"noncharacter", "a\U0010ffff\n", 0, "U+10FFFF"},
		{"delete, a control that is allowed", "a\x7fb\n", 1, ""},
		{"tabs", "\ta\tb\n\n", 1, ""},
		{"line and paragraph separators", "a\u2028~~~lua\u2029b\n", 1, ""},
		{"zero width", "a\u200b\u200d\u2060b\n", 1, ""},
		{"bidi", "\u202e// \u2066 olleh \u2069\u202c\n", 1, ""},
		{"homoglyphs", "\u02cb\u02cb\u02cblua\n\uff5e\uff5e\uff5elua\nl\u0443a\n", 1, ""},
		{"combining", "e\u0301\u0327 n\u0303\n", 1, ""},
		{"emoji of many code points", "👩‍👩‍👧‍👦🏳️‍🌈\n", 1, ""},
		{"outside of the basic plane", "𝄞😀𐍈\n", 1, ""},
		{"replacement character", "\ufffd\n", 1, ""},
		{"zero width before a fence", "\u200b~~~lua\nx\n\n", 1, ""},
		{"tilde fence", "~~~\nx\n~~~\n", 2, ""},
		{"longer fence around a shorter one", "~~~~\n~~~lua\nx\n~~~\n~~~~\n", 2, ""},
		{"longer end", "~~~\nx\n~~~~~~\n", 2, ""},
		{"backticks in tildes", "~~~\n```\n~~~\n", 2, ""},
		{"in a list", "- a\n\n  ~~~lua\n  x\n  ~~~\n\n", 2, ""},
		{"in a quote", "> ~~~lua\n> x\n\n", 2, ""},
		{"in lists and quotes", "> 1. > - ~~~lua\n>    >   x\n\n", 2, ""},
		{"after an HTML block", "<div>\n~~~lua\n~~~\n</div>\n\n", 1, ""},
		{"after a script", "<script>\n~~~lua\n\n~~~\n</script>\n", 1, ""},
		{"after a comment", "<!-- ~~~\n\n~~~lua\n-->\n", 1, ""},
		{"every line a fence", strings.Repeat("~~~\n", 200), 101, ""},
		{"every line a longer fence", "~~~\n~~~~\n~~~~~\n~~~~~~\n~~~~~~~\n~~~~~~~~\n", 4, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, h := NewPage(notebook.PageID{7}), newHand(1, 0)
			m := newHand(2, 0)
			write := func(by *hand, text string) []byte {
				change := by.on(p, p.heads)
				for i, r := range []rune(text) {
					o := op{char: r}
					if i > 0 {
						o.counter = change.start + uint32(i-1)
					}
					change.ops = append(change.ops, o)
				}
				return encoded(change)
			}
			h.takes(t, p, write(h, fence))
			own, err := p.Fences()
			must(t, err)
			body := write(m, c.text)
			if c.why != "" {
				before := p.Text()
				_, err := p.check(body, m.author, m.epoch, sawAll)
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("the gate says %v, want %s", err, c.why)
				}
				if _, err := notebook.NormalizeText(c.text); err == nil && !strings.Contains(c.text, "\r") {
					t.Error("the local doors take it")
				}
				if p.Text() != before {
					t.Errorf("the page is %q", p.Text())
				}
				return
			}
			m.takes(t, p, body)
			if want := c.text + fence; p.Text() != want || p.Len() != utf8.RuneCountInString(want) || p.Size() != len(want) {
				t.Fatalf("the page is %q, of %d characters and %d bytes", p.Text(), p.Len(), p.Size())
			}
			fences, err := p.Fences()
			must(t, err)
			if len(fences) != c.fences {
				t.Fatalf("%d fences, want %d: %+v", len(fences), c.fences, fences)
			}
			runes := []rune(p.Text())
			var ids []notebook.FenceID
			for i := range fences {
				f := &fences[i]
				if got, want := string(runes[f.From:f.To]), p.Text()[f.Whole.From:f.Whole.To]; got != want {
					t.Errorf("by code points the fence is %q, by bytes %q", got, want)
				}
				var shown strings.Builder
				for _, r := range p.Ranges(f) {
					if r.Text != string(runes[r.From:r.To]) {
						t.Errorf("a range is %q and stands at %q", r.Text, string(runes[r.From:r.To]))
					}
					shown.WriteString(r.Text)
				}
				if !strings.HasSuffix(shown.String(), string(runes[f.From:f.To])) {
					t.Errorf("the ranges are %q, the fence %q", shown.String(), string(runes[f.From:f.To]))
				}
				if slices.Contains(ids, f.ID) {
					t.Error("two fences have one id")
				}
				ids = append(ids, f.ID)
			}
			if last := fences[len(fences)-1]; last.ID != own[0].ID || last.Part != own[0].Part {
				t.Errorf("the fence that was there is %s with %+v, was %s with %+v", last.ID, last.Part, own[0].ID, own[0].Part)
			}
			opened, err := OpenPage(p.id, p.Record())
			must(t, err)
			again, err := opened.Fences()
			must(t, err)
			for i := range again {
				if again[i].ID != ids[i] {
					t.Errorf("fence %d is called %s after opening, was %s", i, again[i].ID, ids[i])
				}
			}
		})
	}
}
