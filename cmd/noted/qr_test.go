package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQRFitsATerminal(t *testing.T) {
	drawn := 0
	for n := 1; n <= 1200; n++ {
		code := qr(strings.Repeat("x", n))
		if code == "" {
			continue
		}
		drawn = n
		for line := range strings.Lines(code) {
			if w := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); w > columns {
				t.Fatalf("%d bytes draw a line of %d columns", n, w)
			}
		}
	}
	// An invitation with a handful of addresses has some 300 bytes.
	if drawn < 400 {
		t.Errorf("only up to %d bytes are drawn", drawn)
	}
}

func TestQRIsSquareAndQuiet(t *testing.T) {
	code := strings.Split(strings.TrimSuffix(qr("noted:invitation"), "\n"), "\n")
	width := utf8.RuneCountInString(code[0])
	if rows := 2 * len(code); rows < width-1 || rows > width+2 {
		t.Errorf("%d columns and %d half rows", width, rows)
	}
	for _, r := range code[0] {
		if r != '█' {
			t.Errorf("the quiet zone begins with %q", code[0])
			break
		}
	}
}
