package notebook

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// CheckTitle says why title cannot be a page's title: it has more than
// [MaxTitle] bytes, nothing but blanks, a line end or other control character,
// or something that a body could not hold either.
func CheckTitle(title string) error {
	if len(title) > MaxTitle {
		return Errorf(CodeInvalid, "a title of %d bytes is longer than the %d that are allowed", len(title), MaxTitle).
			With("choose a shorter title")
	}
	for i := 0; i < len(title); {
		r, size, ok := next(title[i:])
		if !ok || r == '\t' || r == '\n' || r == '\u2028' || r == '\u2029' {
			return Errorf(CodeInvalid, "a title cannot hold %s", offender(title[i:])).With("a title is one line of text")
		}
		i += size
	}
	if strings.TrimSpace(title) == "" {
		return Errorf(CodeInvalid, "a title cannot be empty").With("give the page a title")
	}
	return nil
}

// TitleKey is title form v1: what two titles have in common that name the same
// page. It is the title trimmed, in NFC and simple case folded. Page ids rest on
// it, so it is pinned to Unicode 15.0: later characters stay as they are, and
// what Unicode promises never to change gives the same key on every device.
func TitleKey(title string) string {
	title = strings.TrimSpace(title)
	var b strings.Builder
	for len(title) > 0 {
		known := strings.IndexFunc(title, isUnassigned)
		if known < 0 {
			known = len(title)
		}
		b.WriteString(norm.NFC.String(strings.Map(fold, norm.NFC.String(title[:known]))))
		title = title[known:]
		unknown := strings.IndexFunc(title, func(r rune) bool { return !isUnassigned(r) })
		if unknown < 0 {
			unknown = len(title)
		}
		b.WriteString(title[:unknown])
		title = title[unknown:]
	}
	return b.String()
}

// fold is simple case folding: the lower case of all characters that differ in
// nothing but case.
func fold(r rune) rune {
	if unicode.SimpleFold(r) == r {
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// isUnassigned reports whether r lies in a range of [unassigned]: as many firsts
// as lasts are before it outside of one.
func isUnassigned(r rune) bool {
	i, found := slices.BinarySearch(unassigned[:], r)
	return found || i%2 == 1
}

// NewPageID is the id of the page that is created in nb with this title, the
// same on every device that creates it. A journal is the page whose title is
// its date, as 2006-01-02.
func NewPageID(nb NotebookID, title string) PageID {
	h := Digest("noted/page-id/v1", nb[:], []byte(TitleKey(title)))
	return PageID(h[:16])
}
