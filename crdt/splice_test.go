package crdt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"noted/notebook"
)

// TestSplit makes an edit in one go and in pieces.
func TestSplit(t *testing.T) {
	base := strings.Repeat("0123456789", 30_000)
	for _, c := range []struct {
		name   string
		edit   []notebook.Splice
		pieces int
	}{
		{"nothing", nil, 0},
		{"a splice that does nothing", []notebook.Splice{{At: 7}}, 0},
		{"a word", []notebook.Splice{{At: 7, Delete: 2, Insert: "word"}}, 1},
		{"exactly one change", []notebook.Splice{{At: 7, Insert: strings.Repeat("é", maxPieceOps)}}, 1},
		{"one character more", []notebook.Splice{{At: 7, Insert: strings.Repeat("é", maxPieceOps+1)}}, 2},
		{"the whole text", []notebook.Splice{{Delete: len(base), Insert: strings.Repeat("é", len(base))}}, 6},
		{"three places", []notebook.Splice{{At: 5, Insert: strings.Repeat("a", maxPieceOps-1)}, {At: 9, Delete: 3, Insert: "bc"}, {At: 200_000, Delete: maxPieceOps, Insert: "d"}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			pieces := Split(c.edit)
			if len(pieces) != c.pieces {
				t.Fatalf("%d pieces, want %d", len(pieces), c.pieces)
			}
			text := base
			for _, p := range pieces {
				must(t, checkSplices(p, utf8.RuneCountInString(text)))
				ops := 0
				for _, s := range p {
					ops += s.Delete + utf8.RuneCountInString(s.Insert)
				}
				if ops > maxPieceOps {
					t.Fatalf("a piece has %d operations", ops)
				}
				text = apply(text, p)
			}
			if text != apply(base, c.edit) {
				t.Fatal("the pieces make another text")
			}
		})
	}
}

// TestDiff edits texts in the ways of an editor and looks at what is kept.
func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           []notebook.Splice
	}{
		{"nothing", "a\nb\n", "a\nb\n", nil},
		{"from nothing", "", "a\nb\n", []notebook.Splice{{Insert: "a\nb\n"}}},
		{"to nothing", "a\nb\n", "", []notebook.Splice{{Delete: 4}}},
		{"a word in a line", "one\ntwo words\nthree\n", "one\ntwo good words\nthree\n", []notebook.Splice{{At: 8, Insert: "good "}}},
		{"a new line", "one\nthree\n", "one\ntwo\nthree\n", []notebook.Splice{{At: 4, Insert: "two\n"}}},
		{"a line less", "one\ntwo\nthree\n", "one\nthree\n", []notebook.Splice{{At: 4, Delete: 4}}},
		{"no line end at the end", "one\ntwo", "one\ntwo\n", []notebook.Splice{{At: 7, Insert: "\n"}}},
		{"wide characters", "漢字\n😀é\n", "漢字\n😀e\n", []notebook.Splice{{At: 4, Delete: 1, Insert: "e"}}},
		{"two places", "aXb\nsame\ncYd\n", "aZb\nsame\ncd\n", []notebook.Splice{{At: 1, Delete: 1, Insert: "Z"}, {At: 10, Delete: 1}}},
		{"a paragraph within a line", "before after\n", "before " + strings.Repeat("many words ", 100) + "after\n", []notebook.Splice{{At: 7, Insert: strings.Repeat("many words ", 100)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diff(c.old, c.new)
			if apply(c.old, got) != c.new || len(got) != len(c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("splice %d is %+v, want %+v", i, got[i], c.want[i])
				}
			}
		})
	}
}

// TestDiffKeepsWhatIsCommon is the property behind it: the edit makes the new
// text, is always the same, fits, and replaces no character by itself.
func TestDiffKeepsWhatIsCommon(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("abé\n")), 0, 200, -1)
	rapid.Check(t, func(rt *rapid.T) {
		old := text.Draw(rt, "old")
		revised := text.Draw(rt, "new")
		if rapid.Bool().Draw(rt, "alike") {
			r := []rune(old)
			at := rapid.IntRange(0, len(r)).Draw(rt, "at")
			revised = string(r[:at]) + revised + string(r[at:])
		}
		s := Diff(old, revised)
		must(t, checkSplices(s, utf8.RuneCountInString(old)))
		if got := apply(old, s); got != revised {
			t.Fatalf("%+v makes %q of %q, want %q", s, got, old, revised)
		}
		again := Diff(old, revised)
		for i := range s {
			if s[i] != again[i] {
				t.Fatal("another edit the second time")
			}
			if s[i].Delete == 0 && s[i].Insert == "" {
				t.Fatalf("an edit that does nothing: %+v", s)
			}
		}
	})
}

// TestDiffOfUnlikeTexts bounds the time for texts that have next to nothing in
// common, as lines and as one line.
func TestDiffOfUnlikeTexts(t *testing.T) {
	letters := func(n int, alphabet string, lines bool) string {
		var b strings.Builder
		x := uint32(len(alphabet))
		for i := range n {
			x = x*1664525 + 1013904223
			b.WriteByte(alphabet[int(x>>16)%len(alphabet)])
			if lines && i%9 == 8 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	for _, lines := range []bool{true, false} {
		old, revised := letters(200_000, "abcdefgh", lines), letters(200_000, "efghijklm", lines)
		if got := apply(old, Diff(old, revised)); got != revised {
			t.Errorf("lines %v: the edit makes another text", lines)
		}
	}
}

func BenchmarkDiffUnlike(b *testing.B) {
	old, revised := strings.Repeat("abcdefgh", 1<<17), strings.Repeat("ijklmnop", 1<<17)
	for b.Loop() {
		Diff(old, revised)
	}
}
