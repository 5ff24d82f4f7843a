package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func written(d []change) string {
	var b strings.Builder
	for _, c := range d {
		b.WriteByte(c.op)
		b.WriteString(c.line)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDiffLines(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\n", "a\n", " a\n"},
		{"", "a\nb\n", "+a\n+b\n"},
		{"a\nb\n", "", "-a\n-b\n"},
		{"a\nb\nc\n", "a\nx\nc\n", " a\n-b\n+x\n c\n"},
		{"a\nb\nc\nd\n", "b\nd\ne\n", "-a\n b\n-c\n d\n+e\n"},
	} {
		if diff := cmp.Diff(tt.want, written(diffLines(tt.before, tt.after))); diff != "" {
			t.Errorf("%q to %q:\n%s", tt.before, tt.after, diff)
		}
	}
}

// Dropping the plus lines gives the old text back, dropping the minus lines the new.
func TestDiffHoldsBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", ""})
		before, after := rapid.SliceOfN(line, 0, 12).Draw(t, "before"), rapid.SliceOfN(line, 0, 12).Draw(t, "after")
		text := func(l []string) string { return strings.Join(l, "\n") + "\n" }
		var x, y []string
		for _, c := range diffLines(text(before), text(after)) {
			if c.op != '+' {
				x = append(x, c.line)
			}
			if c.op != '-' {
				y = append(y, c.line)
			}
		}
		if diff := cmp.Diff(lines(text(before)), x); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(lines(text(after)), y); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Sixty-four kibibytes of lines that are all different must not keep a person waiting.
func TestDiffIsBounded(t *testing.T) {
	done := make(chan int)
	go func() {
		done <- len(diffLines(strings.Repeat("a\n", 32<<10), strings.Repeat("b\n", 32<<10)))
	}()
	select {
	case n := <-done:
		if n != 64<<10 {
			t.Errorf("%d lines", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("still comparing after 10 s")
	}
}
