package notebook

import "testing"

// TestBare: what is left of a line, and with it which lines are the same.
func TestBare(t *testing.T) {
	for _, c := range []struct{ line, bare, solid string }{
		{"", "", ""},
		{"  \t ", "", ""},
		{"return 6 * 7", "return6*7", "return6*7"},
		{"\t\treturn 6*7  ", "return6*7", "return6*7"},
		{"> > return", "return", ">>return"},
		{">return", "return", ">return"},
		{"- * + return", "return", "-*+return"},
		{"12. > 3) return", "return", "12.>3)return"},
		{"1234567890. return", "1234567890.return", "1234567890.return"},
		{"- ", "", "-"},
		{"-", "", "-"},
		{"-1", "-1", "-1"},
		{"--comment", "--comment", "--comment"},
		{"1.5 + 2", "1.5+2", "1.5+2"},
		{"12", "12", "12"},
		{"re\u200bturn\u00a0\u202e1\u00ad", "return1", "return1"},
		{"\u00a0 return", "return", "return"},
		{"a\nb\tc", "abc", "abc"},

		// Characters that nobody sees, blanks of all kinds, and prefixes with them.
		{"a\u034fb\ufe0fc\U000e0101d\u3164e\u115ff\u17b4g\u180bh\u2800i\u2028j\u3000k\x7fl\u0085m\ufeffn\U000e0041o", "abcdefghijklmno", "abcdefghijklmno"},
		{"\u200b> x", "x", ">x"},
		{"\ufe0f12.\u00a0x", "x", "12.x"},
		{"-\u00a0x", "x", "-x"},
		{"-\u200bx", "-x", "-x"},
		{"-\u2060 x", "x", "-x"},

		// Other forms of plain characters.
		{"ｏｓ．ｒｅｍｏｖｅ（ｘ）", "os.remove(x)", "os.remove(x)"},
		{"𝐨𝐬.remove(ﬁle)", "os.remove(file)", "os.remove(file)"},
		{"\uffa0x\u1160", "x", "x"},
		{"a\u00b4", "a\u0301", "a\u0301"},
		{"\ufdfa", "\ufdfa", "\ufdfa"},
		{"оs.remove(x)", "оs.remove(x)", "оs.remove(x)"}, // a Cyrillic letter is another one
	} {
		if got := string(AppendBare(nil, c.line)); got != c.bare {
			t.Errorf("%q leaves %q, not %q", c.line, got, c.bare)
		}
		if got := string(AppendSolid(nil, c.line)); got != c.solid {
			t.Errorf("%q is %q without white space, not %q", c.line, got, c.solid)
		}
	}
	same := func(a, b string) bool { return DigestText([]byte(a)) == DigestText([]byte(b)) }
	solid := func(s string) string { return string(AppendSolid(nil, s)) }
	if !same(solid("각 né"), solid("\u1100\u1161\u11a8 ne\u200b\u0301")) || !same(solid("q\u0323\u0307"), solid("q\u0307\u200b\u0323")) {
		t.Error("a text is another one when it is composed in another way")
	}
	if !same("café", "cafe\u0301") || same("café", "cafe") || same("a", "b") || same("", "a") {
		t.Error("digests do not tell texts apart by what they say")
	}
	if d := Digest(textDomain, []byte("café")); TextDigest(d[:16]) != DigestText([]byte("café")) {
		t.Error("a text digest is not the beginning of the digest under its domain")
	}
}
