package exec

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOutputKeepsHeadAndTailAndCountsTheRest(t *testing.T) {
	for _, c := range []struct {
		name          string
		limit         int
		writes        []string
		text          string
		head, dropped int
		more          bool
	}{
		{"nothing", 8, nil, "", 0, 0, true},
		{"as much as is kept", 8, []string{"12345678"}, "12345678", 8, 0, true},
		{"one more", 8, []string{"123456789"}, "12346789", 4, 1, true},
		{"byte by byte", 4, strings.Split("abcdefg", ""), "abfg", 2, 3, true},
		{"an odd limit", 5, []string{"abcdefgh"}, "abfgh", 2, 3, true},
		{"the ring goes round", 4, []string{"ab", "cdefg", "h", "ijk"}, "abjk", 2, 7, true},
		{"a character across the head's end is not kept", 6, []string{"aéé" + "xxxxx" + "end"}, "aéend", 3, 7, true},
		{"nor one across the tail's start", 6, []string{"abcxxx€"[:8] + "\xacyz"}, "abcyz", 3, 6, true},
		{"a byte that is no character", 8, []string{"a\xffb"}, "a?b", 3, 0, true},
		{"the replacement character itself stays", 8, []string{"\uFFFD"}, "\uFFFD", 3, 0, true},
		{"a flood", 2, []string{strings.Repeat("x", 2*floodFactor), "y"}, "xy", 1, 2*floodFactor - 1, false},
	} {
		o := newOutput(c.limit)
		more := true
		for _, w := range c.writes {
			more = o.write([]byte(w))
		}
		text, head, dropped := o.text()
		if text != c.text || head != c.head || int(dropped) != c.dropped || more != c.more {
			t.Errorf("%s: %q head %d dropped %d more %v, want %q %d %d %v", c.name, text, head, dropped, more, c.text, c.head, c.dropped, c.more)
		}
	}
}

func TestOutputAgainstKeepingEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		o := newOutput(limit)
		var all []byte
		for _, w := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "writes") {
			if more := o.write(w); more != (len(all)+len(w) <= floodFactor*limit) {
				t.Fatalf("more is %v after %d bytes", more, len(all)+len(w))
			}
			all = append(all, w...)
		}
		text, head, dropped := o.text()
		if len(text) > limit || !utf8.ValidString(text) || head > len(text) {
			t.Fatalf("%q of %d", text, limit)
		}
		if int(dropped)+len(text) != len(all) {
			t.Fatalf("%d kept and %d dropped of %d", len(text), dropped, len(all))
		}
		// A question mark stands for one byte, so the pieces lie where they were.
		for i := range text {
			was := all[i]
			if i >= head {
				was = all[int(dropped)+i]
			}
			if text[i] != was && text[i] != '?' {
				t.Fatalf("%q is no head and tail of %q", text, all)
			}
		}
		if dropped == 0 && utf8.Valid(all) && !bytes.Equal([]byte(text), all) {
			t.Fatalf("%q became %q", all, text)
		}
	})
}

// TestTextOfPiecesIsTheWholeText: however the pieces are cut, they make the text
// that a result would have, in whole characters.
func TestTextOfPiecesIsTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var made strings.Builder
		var text Text
		piece := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 20), rapid.Map(rapid.StringN(0, 6, -1), func(s string) []byte { return []byte(s) }))
		for _, whole := range rapid.SliceOf(piece).Draw(t, "pieces") {
			n := rapid.IntRange(0, len(whole)).Draw(t, "cut")
			for _, p := range [][]byte{whole[:n], whole[n:]} {
				s := text.Add(bytes.Clone(p))
				if !utf8.ValidString(s) {
					t.Fatalf("made %q", s)
				}
				made.WriteString(s)
				all = append(all, p...)
			}
		}
		made.WriteString(text.End())
		if made.String() != plain(all) || made.Len() != len(all) {
			t.Fatalf("made %q of %q", made.String(), all)
		}
	})
}
