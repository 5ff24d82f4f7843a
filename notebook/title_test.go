package notebook

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCheckTitle(t *testing.T) {
	for _, title := range []string{"a", "2026-11-30", " Zürich ", "C#", "=x", "\u200b", "日記", strings.Repeat("x", MaxTitle)} {
		if err := CheckTitle(title); err != nil {
			t.Errorf("%q: %v", title, err)
		}
	}
	for title, want := range map[string]string{
		"": "empty", " ": "empty", "\u00a0\u3000": "empty",
		"a\nb": "U+000A", "a\tb": "U+0009", "a\r": "U+000D", "\x1b[2J": "U+001B", "a\u0085": "U+0085", "a\u2028b": "U+2028", "a\u2029": "U+2029",
		"\ufeffa": "U+FEFF", "a\xff": "not UTF-8", "\x00": "U+0000", strings.Repeat("x", MaxTitle+1): "longer",
	} {
		if err := CheckTitle(title); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", title, err, want)
		}
	}
}

func TestTitlesThatNameOnePage(t *testing.T) {
	for _, same := range [][]string{
		{"Groceries", "groceries", " GROCERIES\u00a0", "\tGroceries\n"},
		{"Zürich", "zu\u0308rich", "ZU\u0308RICH"},
		{"ΣΊΣΥΦΟΣ", "σίσυφοσ", "Σίσυφος"},
		{"\u212b", "å", "A\u030a"},
		{"\u1e9e", "ß"},
		{"\u0345", "ι", "Ι", "\u1fbe"},
		{"K", "k", "\u212a"},
		{"ſ", "s"},
		{"Ꭰ", "ꭰ"},
		{"\u01f2", "\u01f1", "\u01f3"},
	} {
		for _, title := range same[1:] {
			if TitleKey(title) != TitleKey(same[0]) {
				t.Errorf("%q (%q) and %q (%q) are two", title, TitleKey(title), same[0], TitleKey(same[0]))
			}
		}
	}
	for _, other := range [][2]string{
		{"a", "b"}, {"a b", "ab"}, {"a  b", "a b"}, {"ß", "ss"}, {"İ", "i"}, {"ı", "i"}, {"ﬁ", "fi"}, {"①", "1"}, {"а", "a"}, {"é", "e"}, {"a\u200b", "a"}, {"αι", "ᾳ"},
	} {
		if TitleKey(other[0]) == TitleKey(other[1]) {
			t.Errorf("%q and %q are one: %q", other[0], other[1], TitleKey(other[0]))
		}
	}
}

// Page ids rest on the key of every character. This digest is of all of them and
// never changes, whatever Unicode the Go and x/text of the day bring; if it
// does, the form needs tables of its own.
func TestTitleFormOneIsForEver(t *testing.T) {
	var keys [][]byte
	for plane := rune(0); plane <= utf8.MaxRune; plane += 0x1000 {
		var b strings.Builder
		for r := plane; r < plane+0x1000; r++ {
			if utf8.ValidRune(r) {
				b.WriteString("x" + string(r) + "\u0301y")
			}
		}
		keys = append(keys, []byte(TitleKey(b.String())))
	}
	const want = "4620b7f8728f79ea0d01e5229bfc37effe999007db35507ec33e97455135e1ff"
	if got := Digest("keys", keys...).String(); got != want {
		t.Errorf("the keys' digest is %s, want %s", got, want)
	}
	id := NewPageID(NotebookID(hash(0x11)), "Groceries")
	if got, want := hex.EncodeToString(id[:]), "dfb73643aca9a97c05cb3098661837ee"; got != want {
		t.Errorf("page id %s, want %s", got, want)
	}
}

func TestUnassignedIsUnicode15(t *testing.T) {
	for i := 1; i < len(unassigned); i++ {
		first := i%2 == 0 // which lies apart from the last before it; a range may be of one
		if unassigned[i] < unassigned[i-1] || first && unassigned[i] < unassigned[i-1]+2 {
			t.Errorf("element %d is not in order: %x", i, unassigned[i])
		}
	}
	if isUnassigned('a') || isUnassigned(0x10fffd) || !isUnassigned(0x0378) || !isUnassigned(0x10ffff) {
		t.Error("the table is not searched")
	}
	later := 0
	for r := range rune(utf8.MaxRune + 1) {
		now := unicode.Is(unicode.Cn, r)
		if now && !isUnassigned(r) {
			t.Errorf("%U has no character in Unicode %s, but one in 15.0", r, unicode.Version)
		}
		if !now && isUnassigned(r) {
			later++
		}
	}
	if unicode.Version == "15.0.0" && later > 0 {
		t.Errorf("%d characters of Unicode 15.0 are missing", later)
	}
}

func TestTitleKeyIsItsOwnKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.String().Draw(t, "title")
		key := TitleKey(title)
		if again := TitleKey(key); again != key {
			t.Errorf("%q has the key %q, which has the key %q", title, key, again)
		}
		if padded := TitleKey(" " + title + "\u2003"); padded != key {
			t.Errorf("%q: blanks around it make %q of %q", title, padded, key)
		}
	})
	for r := range rune(utf8.MaxRune + 1) {
		if fold(fold(r)) != fold(r) || fold(unicode.SimpleFold(r)) != fold(r) {
			t.Errorf("%U folds to %U, which is not what all its cases fold to", r, fold(r))
		}
	}
}

func TestNewPageID(t *testing.T) {
	nb, other := NotebookID(hash(1)), NotebookID(hash(2))
	if NewPageID(nb, "Groceries") != NewPageID(nb, " groceries ") {
		t.Error("one title, two pages")
	}
	if NewPageID(nb, "Groceries") == NewPageID(other, "Groceries") || NewPageID(nb, "a") == NewPageID(nb, "b") {
		t.Error("two titles or notebooks, one page")
	}
}
