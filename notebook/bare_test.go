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
	} {
		if got := string(AppendBare(nil, c.line)); got != c.bare {
			t.Errorf("%q leaves %q, not %q", c.line, got, c.bare)
		}
		if got := string(AppendSolid(nil, c.line)); got != c.solid {
			t.Errorf("%q is %q without white space, not %q", c.line, got, c.solid)
		}
	}
	same := func(a, b string) bool { return DigestText([]byte(a)) == DigestText([]byte(b)) }
	if !same("café", "cafe\u0301") || same("café", "cafe") || same("a", "b") || same("", "a") {
		t.Error("digests do not tell texts apart by what they say")
	}
	if d := Digest(textDomain, []byte("café")); TextDigest(d[:16]) != DigestText([]byte("café")) {
		t.Error("a text digest is not the beginning of the digest under its domain")
	}
}
