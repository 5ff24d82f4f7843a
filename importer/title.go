package importer

import (
	"path"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// isMarkdown reports whether the file's name has an ending of markdown.
func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return true
	}
	return false
}

// title is the title of the page of a file: its path without the ending. What a
// title cannot hold, and what would show it as another than it is, becomes
// U+FFFD; replaced says how often.
func title(name string) (title string, replaced int) {
	return replace(strings.TrimSuffix(name, path.Ext(name)), misleads)
}

func replace(s string, bad func(rune) bool) (string, int) {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || bad(r) {
			r = utf8.RuneError
			n++
		}
		b.WriteRune(r)
		i += size
	}
	return b.String(), n
}

// misleads reports whether r breaks a line or turns the direction of the text
// around it, or is nothing that a page may hold.
func misleads(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\u2028', r == '\u2029':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return !notebook.Allowed(r)
}

// Label is the name of a folder as the label of an import: what standings say
// after "import:". It has no blanks, which separate standings.
func Label(dir string) string {
	label, _ := replace(path.Base(dir), misleads)
	label = strings.Join(strings.Fields(label), "-")
	for len(label) > notebook.MaxLabel {
		_, size := utf8.DecodeLastRuneInString(label)
		label = label[:len(label)-size]
	}
	if strings.Trim(label, "./") == "" {
		return "folder"
	}
	return label
}
