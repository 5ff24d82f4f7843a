package notebook

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape is s as it may be shown to a person: what would not be seen as what it
// is (control, bidi and zero-width characters, line separators, private and
// unassigned code points) is written \u{202e}, and bytes that are not UTF-8
// \x{ff}. A backslash stays as it is, so the result is to be read and not to be
// parsed. Tabs and line feeds stay.
func Escape(s string) string { return escape(s, true) }

// EscapeLine is [Escape] for places that have one line: tabs and line feeds are
// escaped too.
func EscapeLine(s string) string { return escape(s, false) }

func escape(s string, lines bool) string {
	var b strings.Builder
	from, before := 0, ' '
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		invalid := r == utf8.RuneError && size == 1
		if !invalid && (visible(before, r) || lines && (r == '\t' || r == '\n')) {
			i, before = i+size, r
			continue
		}
		b.WriteString(s[from:i])
		if invalid {
			fmt.Fprintf(&b, `\x{%02x}`, s[i])
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i, before = i+size, ' '
		from = i
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// visible reports whether r, after the character before, shows as what it is: a
// letter, number, mark, punctuation, symbol or blank.
func visible(before, r rune) bool {
	switch r {
	case 0x034f, // combining grapheme joiner
		0x115f, 0x1160, 0x3164, 0xffa0, // Hangul fillers
		0x17b4, 0x17b5, // Khmer inherent vowels
		0x180b, 0x180c, 0x180d, 0x180f, // Mongolian variation selectors
		0x2800,  // blank Braille pattern
		0x1d159: // musical null notehead
		return false
	case 0xfe0f: // asks for the picture of a symbol that has also a plain form
		return before > unicode.MaxLatin1 && unicode.Is(unicode.S, before)
	}
	if r >= 0xfe00 && r <= 0xfe0e || r >= 0xe0100 && r <= 0xe01ef { // variation selectors
		return false
	}
	return unicode.IsGraphic(r)
}

// FenceOutput renders output as a fenced code block: a fence longer than any run of
// its character inside, around the escaped lines. No output can end it early or
// begin a fence of its own.
func FenceOutput(output string) string {
	output = Escape(output)
	longest := 2
	for run, i := 0, 0; i < len(output); i++ {
		if output[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return fence + "\n" + output + fence + "\n"
}
