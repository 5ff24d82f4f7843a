package notebook

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Allowed reports whether a body may hold r: Unicode scalar values without
// U+FEFF, noncharacters, C1 controls and C0 controls other than tab and line
// feed.
func Allowed(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n'
	case r < 0x80:
		return true
	case r < 0xa0:
		return false
	case r < 0xd800:
		return true
	case r < 0xe000: // surrogates
		return false
	case r == 0xfeff, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
		return false
	}
	return r <= utf8.MaxRune
}

// next decodes the first code point of s; ok is false for what a body may not hold.
func next(s string) (r rune, size int, ok bool) {
	r, size = utf8.DecodeRuneInString(s)
	return r, size, Allowed(r) && (r != utf8.RuneError || size > 1)
}

// offender names the code point or byte at the beginning of s.
func offender(s string) string {
	if r, size := utf8.DecodeRuneInString(s); r != utf8.RuneError || size > 1 {
		return fmt.Sprintf("%U", r)
	}
	return fmt.Sprintf("byte 0x%02x, which is not UTF-8", s[0])
}

// CheckBody says why s cannot be a page's body: it has more than [MaxBody]
// bytes, or it holds something outside the alphabet, which the error names with
// its line and its column in code points, both from 1.
func CheckBody(s string) error {
	if len(s) > MaxBody {
		return tooLarge(len(s))
	}
	line, start := 1, 0
	for i := 0; i < len(s); {
		r, size, ok := next(s[i:])
		if !ok {
			column := 1 + utf8.RuneCountInString(s[start:i])
			return Errorf(CodeInvalid, "a page cannot hold %s (line %d, column %d)", offender(s[i:]), line, column).
				With("remove it and try again")
		}
		i += size
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return nil
}

func tooLarge(n int) error {
	return Errorf(CodeInvalid, "a page of %d bytes is larger than the %d that a page can hold", n, MaxBody).
		With("split it into several pages")
}

// NormalizeText is text as it comes through a local door: CRLF and CR become
// LF, and what a body cannot hold is an error as of [CheckBody].
func NormalizeText(s string) (string, error) {
	if len(s) > 2*MaxBody { // not even if every line end is two bytes
		return "", tooLarge(len(s))
	}
	s = lineFeeds(s)
	if err := CheckBody(s); err != nil {
		return "", err
	}
	return s, nil
}

// ReplaceText is the form of [NormalizeText] for text that has to be taken as
// far as possible: each code point, or byte that is not UTF-8, which a body
// cannot hold becomes U+FFFD. It returns how many did. It does not bound the size.
func ReplaceText(s string) (string, int) {
	s = lineFeeds(s)
	var b strings.Builder
	replaced, from := 0, 0
	for i := 0; i < len(s); {
		_, size, ok := next(s[i:])
		if !ok {
			b.WriteString(s[from:i])
			b.WriteRune(utf8.RuneError)
			from = i + size
			replaced++
		}
		i += size
	}
	if replaced == 0 {
		return s, 0
	}
	b.WriteString(s[from:])
	return b.String(), replaced
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func lineFeeds(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return lineEnds.Replace(s)
}
