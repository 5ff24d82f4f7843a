package notebook

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TextDigest names a text by what is left of it when its layout is taken away:
// see [AppendBare]. It is half a SHA-256, since there is one for every line
// that others ever wrote.
type TextDigest [16]byte

// textDomain is the domain of text digests.
const textDomain = "noted/text/v1"

// DigestText is the digest of a text that [AppendBare] or [AppendSolid] made,
// the same for texts that differ in nothing but how Unicode composes them.
func DigestText(bare []byte) TextDigest {
	if !isASCII(bare) {
		bare = norm.NFC.Bytes(bare)
	}
	// The input of Digest, in one piece: a page has a thousand lines.
	var room [256]byte
	b := binary.BigEndian.AppendUint64(room[:0], uint64(len(textDomain)))
	b = append(b, textDomain...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(bare)))
	b = append(b, bare...)
	h := sha256.Sum256(b)
	return TextDigest(h[:16])
}

func isASCII[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// AppendBare appends what is left of a line without what lists, quotes and
// indentation put before it, without white space and without characters that
// nobody sees. A line that was indented anew, put into a list or into a quote
// leaves the same.
func AppendBare(dst []byte, line string) []byte {
	if !isASCII(line) {
		// What is pasted often has its blanks as others and its invisible
		// characters not at all, which makes list markers of what was none.
		line = strings.Map(plain, line)
	}
	return AppendSolid(dst, withoutPrefix(line))
}

// maxFold is how many bytes a character may become: some have a sentence in them.
const maxFold = 12

// AppendSolid appends what is left of a text without white space and without
// characters that nobody sees, with plain characters for those that are their
// wide, narrow, joined or mathematical forms: the same however the text is wrapped.
func AppendSolid(dst []byte, text string) []byte {
	for i, r := range text {
		if r < utf8.RuneSelf {
			if r > ' ' && r != 0x7f {
				dst = append(dst, byte(r))
			}
			continue
		}
		if plain(r) <= ' ' {
			continue
		}
		parts := norm.NFKD.PropertiesString(text[i:]).Decomposition()
		if len(parts) == 0 || len(parts) > maxFold {
			dst = utf8.AppendRune(dst, r)
			continue
		}
		for len(parts) > 0 {
			r, size := utf8.DecodeRune(parts)
			if plain(r) > ' ' {
				dst = append(dst, parts[:size]...)
			}
			parts = parts[size:]
		}
	}
	return dst
}

// plain is a blank for white space, negative for what nobody sees, and the
// character itself for any other.
func plain(r rune) rune {
	switch {
	case r == '\n':
		return r
	case unicode.IsSpace(r) || r == 0x2800: // a braille pattern without dots
		return ' '
	case !Allowed(r) || r == 0x7f || unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return r
}

// withoutPrefix cuts what CommonMark's containers put before a line: blanks,
// quote marks, and list markers with the blank that makes them such.
func withoutPrefix(line string) string {
	for {
		line = strings.TrimLeft(line, " \t")
		switch n := marker(line); {
		case n > 0:
			line = line[n:]
		case strings.HasPrefix(line, ">"):
			line = line[1:]
		default:
			return line
		}
	}
}

// marker is the length of the list marker that a line begins with, 0 without one.
func marker(line string) int {
	n := 0
	for n < len(line) && n < 9 && line[n] >= '0' && line[n] <= '9' {
		n++
	}
	if n == len(line) || n > 0 && line[n] != '.' && line[n] != ')' || n == 0 && strings.IndexByte("-+*", line[0]) < 0 {
		return 0
	}
	if n++; n == len(line) || strings.IndexByte(" \t\n", line[n]) >= 0 {
		return n
	}
	return 0
}
