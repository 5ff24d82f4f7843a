package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	rsc "rsc.io/qr"
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

// What a camera sees is the code of the text: light modules are drawn, dark ones
// are the background, and a quiet zone of light ones is around it.
func TestQRIsTheCodeOfItsText(t *testing.T) {
	const uri = "noted:1?n=FSCdm4UMlDjVfooW6_vBwBrtoRzkbnBj8AqLNJLI9ig&a=/ip4/127.0.0.1/tcp/38273"
	want, err := rsc.Encode(uri, rsc.L)
	if err != nil {
		t.Fatal(err)
	}
	light := map[rune][2]bool{'█': {true, true}, '▀': {true, false}, '▄': {false, true}, ' ': {false, false}}
	const quiet = 2
	rows := strings.Split(strings.TrimSuffix(qr(uri), "\n"), "\n")
	if least := (want.Size + 2*quiet) / 2; len(rows) < least {
		t.Fatalf("%d rows of half blocks for %d modules", len(rows), want.Size)
	}
	for y, row := range rows {
		if w := utf8.RuneCountInString(row); w != want.Size+2*quiet {
			t.Fatalf("row %d has %d columns, the code %d modules", y, w, want.Size)
		}
		for x, r := range []rune(row) {
			halves, known := light[r]
			if !known {
				t.Fatalf("%q is not a half block", r)
			}
			for half, isLight := range halves {
				mx, my := x-quiet, 2*y+half-quiet
				if my > want.Size { // below the quiet zone's first row the drawing may end half way
					continue
				}
				if isLight == want.Black(mx, my) {
					t.Fatalf("module %d,%d is drawn wrong", mx, my)
				}
			}
		}
	}
}
