package notebook

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestAlphabet(t *testing.T) {
	for r := range rune(utf8.MaxRune + 2) {
		control := r < 0x20 && r != '\t' && r != '\n' || r >= 0x80 && r <= 0x9f
		nonchar := r >= 0xfdd0 && r <= 0xfdef || r&0xffff == 0xfffe || r&0xffff == 0xffff
		if want := utf8.ValidRune(r) && !control && !nonchar && r != 0xfeff; Allowed(r) != want {
			t.Errorf("%U: allowed %v, want %v", r, !want, want)
		}
	}
	if Allowed(-1) {
		t.Error("a negative number is a code point")
	}
}

func TestCheckBodyNamesTheFirstOffender(t *testing.T) {
	for body, want := range map[string]string{
		"\r\n":                    "U+000D (line 1, column 1)",
		"a\nbä\x00c\x01":          "U+0000 (line 2, column 3)",
		"\x1b[2J":                 "U+001B (line 1, column 1)",
		"x\u0085":                 "U+0085 (line 1, column 2)",
		"\ufeff# Title":           "U+FEFF (line 1, column 1)",
		"a\ufffe":                 "U+FFFE (line 1, column 2)",
		"a\U0010ffff":             "U+10FFFF (line 1, column 2)",
		"a\xffb":                  "byte 0xff, which is not UTF-8 (line 1, column 2)",
		"\n\n\xed\xa0\x80":        "byte 0xed, which is not UTF-8 (line 3, column 1)",
		"a\xc3":                   "byte 0xc3, which is not UTF-8 (line 1, column 2)",
		"overlong \xc0\xaf":       "byte 0xc0, which is not UTF-8 (line 1, column 10)",
		"beyond \xf4\x90\x80\x80": "byte 0xf4, which is not UTF-8 (line 1, column 8)",
	} {
		err := CheckBody(body)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalid || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
	for _, body := range []string{"", "a\tb\n", "\u007f", "\ufffd", "\u200b\u202e", "\ufdcf\ufdf0", "𝄞", strings.Repeat("x", MaxBody)} {
		if err := CheckBody(body); err != nil {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	if err := CheckBody(strings.Repeat("x", MaxBody+1)); err == nil || !strings.Contains(err.Error(), "split it") {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestNormalizeText(t *testing.T) {
	for in, want := range map[string]string{"a\r\nb\rc\n\r\r\n": "a\nb\nc\n\n\n", "\r": "\n", "": "", "ä": "ä"} {
		if got, err := NormalizeText(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	full := strings.Repeat("\r\n", MaxBody)
	if got, err := NormalizeText(full); err != nil || len(got) != MaxBody {
		t.Errorf("a full page of CRLF: %d bytes, %v", len(got), err)
	}
	for _, in := range []string{full + "x", full + "\r\n", "a\x00", "\ufeff", "\xff"} {
		if got, err := NormalizeText(in); err == nil || got != "" {
			t.Errorf("%.20q: %.20q, %v", in, got, err)
		}
	}
}

func TestReplaceText(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb": "a\nb", "a\x00b\xff\xfe": "a\ufffdb\ufffd\ufffd", "\ufeffx": "\ufffdx", "\xed\xa0\x80": "\ufffd\ufffd\ufffd", "\ufffd": "\ufffd",
	} {
		got, n := ReplaceText(in)
		if got != want || n != strings.Count(want, "\ufffd")-strings.Count(in, "\ufffd") {
			t.Errorf("%q: %q, %d; want %q", in, got, n, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\r\n\xc3\xa4\xef\xbb\xbf")))).Draw(t, "text"))
		got, n := ReplaceText(in)
		if err := CheckBody(got); err != nil {
			t.Errorf("%q became %q: %v", in, got, err)
		}
		plain, err := NormalizeText(in)
		if (err == nil) != (n == 0) || err == nil && plain != got {
			t.Errorf("%q: %d replaced, but %q, %v", in, n, plain, err)
		}
	})
}
