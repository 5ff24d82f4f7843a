package notebook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOutline(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
		tags []string
	}{
		{"", nil, nil},
		{"\n\n   \n", nil, nil},
		{"one\ntwo\n\nthree\n", []string{`1 "one\ntwo"`, `4 "three"`}, nil},
		{"# Head\ntext\n## Next ##x\n", []string{`1 "Head"`, `2 "text"`, `3 "Next ##x"`}, nil},
		{"#nohead\n####### seven\n", []string{`1 "#nohead\n####### seven" #nohead`}, nil},
		{"Head\n====\ntext\n---\nmore\n* * *\n", []string{`1 "Head"`, `3 "text"`, `5 "more"`}, nil},
		{"- a\n  more of a\n- b\n\n1. c\n2) d\n-e\n", []string{`1 "a\nmore of a"`, `3 "b"`, `5 "c"`, `6 "d\n-e"`}, nil},
		{"-\n- \n+ x\n", []string{`3 "x"`}, nil},
		{"> quoted\n> more >\n>\n> - item\n", []string{`1 "quoted\nmore >"`, `4 "item"`}, nil},
		{"- [ ] buy\n- [x] sold\n- [X]\n- [x]y\n[ ] no item\n", []string{`1 "buy" todo`, `2 "sold" done`, `4 "[x]y\n[ ] no item"`}, nil},
		{"[ ] no item\n", []string{`1 "[ ] no item"`}, nil},
		{"- TODO a\n- DONE b\n- NOW c\n- CANCELLED d\n- TODOS e\n- todo f\n- TODO\n", []string{`1 "a" todo`, `2 "b" done`, `3 "c" todo`, `4 "d" done`, `5 "TODOS e"`, `6 "todo f"`}, nil},
		{"a #one, (#two) #one #[[three words]] x#four #5 #6a #Ä/ö/ `#seven` #\n", []string{"1 \"a #one, (#two) #one #[[three words]] x#four #5 #6a #Ä/ö/ `#seven` #\" #one #two #three words #6a #Ä/ö"}, nil},
		{"https://x/#frag &#39; ##no #[[ #[[]] #[[a\nb]]\n", []string{`1 "https://x/#frag &#39; ##no #[[ #[[]] #[[a\nb]]"`}, nil},
		{"due 2026-11-30, [[2026-12-01]] <2027-01-01 Fri> 2026-02-30 12026-11-30 2026-11-301 a2028-02-29\n", []string{`1 "due 2026-11-30, [[2026-12-01]] <2027-01-01 Fri> 2026-02-30 12026-11-30 2026-11-301 a2028-02-29" 2026-11-30 2026-12-01 2027-01-01 2028-02-29`}, nil},
		{"```lua\n- [ ] #no 2026-11-30\n\n~~~\n```\n- a\n", []string{"1 \"```lua\\n- [ ] #no 2026-11-30\\n\\n~~~\\n```\"", `6 "a"`}, nil},
		{"- ~~~~\n  x\n  ~~~\n  ~~~~~\ny\n", []string{"1 \"- ~~~~\\n  x\\n  ~~~\\n  ~~~~~\"", `5 "y"`}, nil},
		{"``` a`b\nx\n", []string{"1 \"``` a`b\\nx\""}, nil},
		{"```\nnever closed\n", []string{"1 \"```\\nnever closed\""}, nil},
		{"---\ntags: [a, 'b c']\nx: y\n---\ntags:: no\n", []string{`2 "tags: [a, 'b c']\nx: y"`, `5 "tags:: no"`}, []string{"a", "b c"}},
		{"---\ntags:\n  - a\n  - \"#b\"\nother:\n  - c\ntag: d e\n---\n", []string{`2 "tags:"`, `3 "a"`, `4 "\"#b\"\nother:"`, `6 "c\ntag: d e"`}, []string{"a", "b", "d", "e"}},
		{"---\ntags: a\nnever closed\n", []string{`2 "tags: a\nnever closed"`}, nil},
		{"tags:: a, [[b c]]\ntype:: x\n\ntags:: no\n", []string{`1 "tags:: a, [[b c]]\ntype:: x"`, `4 "tags:: no"`}, []string{"a", "b c"}},
	} {
		var got, tags []string
		for b, page := range Outline(c.body) {
			tags = page.Tags
			s := fmt.Sprintf("%d %q", b.Line, b.Text)
			if b.Task != NoTask {
				s += " " + string(b.Task)
			}
			for _, tag := range b.Tags {
				s += " #" + tag
			}
			for _, d := range b.Dates {
				s += " " + d
			}
			got = append(got, s)
		}
		if !slices.Equal(got, c.want) || !slices.Equal(tags, c.tags) {
			t.Errorf("%q: blocks\n%s\nwith the tags %q, want\n%s\nwith %q", c.body, strings.Join(got, "\n"), tags, strings.Join(c.want, "\n"), c.tags)
		}
	}
}

// checkOutline holds whatever the body is.
func checkOutline(body string) error {
	at := 0
	for b, tags := range Outline(body) {
		switch {
		case b.Text == "":
			return fmt.Errorf("line %d: a block without text", b.Line)
		case b.Span.From < at || b.Span.To <= b.Span.From || b.Span.To > len(body):
			return fmt.Errorf("line %d: the span %v behind %d of %d", b.Line, b.Span, at, len(body))
		case b.Span.From > 0 && body[b.Span.From-1] != '\n' || b.Span.To < len(body) && body[b.Span.To] != '\n':
			return fmt.Errorf("line %d: the span %v is not of lines", b.Line, b.Span)
		case strings.Count(body[:b.Span.From], "\n")+1 != b.Line:
			return fmt.Errorf("line %d: the span %v begins in another", b.Line, b.Span)
		}
		at = b.Span.To
		for _, l := range strings.Split(b.Text, "\n") {
			if !strings.Contains(body[b.Span.From:b.Span.To], l) {
				return fmt.Errorf("line %d: the text %q is not in its lines", b.Line, l)
			}
		}
		if len(b.Tags) > maxTags {
			return fmt.Errorf("line %d: %d tags", b.Line, len(b.Tags))
		}
		for _, d := range b.Dates {
			if !isDate(d) {
				return fmt.Errorf("line %d: %q is no day", b.Line, d)
			}
		}
		for _, tag := range tags.Tags {
			if !strings.Contains(body[tags.Span.From:tags.Span.To], tag) {
				return fmt.Errorf("the page's tag %q is not in its span", tag)
			}
		}
	}
	return nil
}

func FuzzOutline(f *testing.F) {
	f.Add("- [ ] a #b 2026-11-30\n```\nx\n```\n# H\n> q\n")
	f.Add("---\ntags: [a]\n---\n")
	f.Fuzz(func(t *testing.T, body string) {
		if err := checkOutline(body); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	})
}

func TestOutlineOfAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"- ", "[ ] ", "TODO ", "a", "#", "# ", "b", "`", "```", "~~~", ">", "\n", "\n\n", "---\n", "tags: ", "tags:: ", "2026-11-30", " ", "\t", "[[", "]]", "é", "1. ", "===", ", "}), 0, 40).Draw(rt, "pieces")
		if err := checkOutline(strings.Join(pieces, "")); err != nil {
			rt.Fatalf("%q: %v", strings.Join(pieces, ""), err)
		}
	})
}

func TestDays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringMatching(`\d{4}-\d{2}-\d{2}`).Draw(rt, "day")
		if rapid.Bool().Draw(rt, "likely") {
			s = fmt.Sprintf("%04d-%02d-%02d", rapid.IntRange(0, 9999).Draw(rt, "y"), rapid.IntRange(0, 13).Draw(rt, "m"), rapid.IntRange(0, 32).Draw(rt, "d"))
		}
		if _, err := time.Parse(time.DateOnly, s); isDate(s) != (err == nil) {
			rt.Fatalf("%s is a day: %v, and by the library: %v", s, isDate(s), err)
		}
	})
}
