package notebook

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"":                        "",
		"plain ä 日本 𝄞 e\u0301":    "plain ä 日本 𝄞 e\u0301",
		"a\tb\nc":                 "a\tb\nc",
		"a\r\n":                   "a\\u{d}\n",
		"\x1b[2J\x07":             `\u{1b}[2J\u{7}`,
		"\u007f\u009b":            `\u{7f}\u{9b}`,
		"x\u202ey\u2066z":         `x\u{202e}y\u{2066}z`,
		"a\u200bb\u200dc\ufeffd":  `a\u{200b}b\u{200d}c\u{feff}d`,
		"\u00ad\u2060\u061c":      `\u{ad}\u{2060}\u{61c}`,
		"\u2028\u2029":            `\u{2028}\u{2029}`,
		"\u3164\u115f\uffa0":      `\u{3164}\u{115f}\u{ffa0}`,
		"\U000e0041\U000e0100":    `\u{e0041}\u{e0100}`,
		"\ue000\U0010fffd":        `\u{e000}\u{10fffd}`,
		"\u0378":                  `\u{378}`,
		"a\xffb\xc3":              `a\x{ff}b\x{c3}`,
		"\xed\xa0\x80":            `\x{ed}\x{a0}\x{80}`,
		"\ufffd":                  "\ufffd",
		`C:\u{202e}`:              `C:\u{202e}`,
		"Bonjour\u00a0! 全\u3000角": "Bonjour\u00a0! 全\u3000角",
		"⚠\ufe0f a\ufe0f ⚠\ufe0f\ufe0f \ufe0f": "⚠\ufe0f a\\u{fe0f} ⚠\ufe0f\\u{fe0f} \\u{fe0f}",
		"⚠\ufe0e": `⚠\u{fe0e}`,
	} {
		if got := Escape(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{"a\tb\nc\x00": `a\u{9}b\u{a}c\u{0}`, "\n": `\u{a}`, "a b": "a b"} {
		if got := EscapeLine(s); got != want {
			t.Errorf("line %q: %q, want %q", s, got, want)
		}
	}
}

// noise is text of what terminals, browsers and markdown do things with.
func noise() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"```", "~~~", "`", "````lua\n", "\n", "\r", "\t", "> ", "- ", "    ", "<!--", "\x1b]0;x\x07", "\u202e", "\u2066", "\ufe0f", "\xff", "\xc3", "x", "\u2028", "$$", "[a]: b\n"}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") })
}

func TestWhatIsShownIsVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := noise().Draw(t, "text")
		shown, line := Escape(s), EscapeLine(s)
		if !utf8.ValidString(shown) || !utf8.ValidString(line) {
			t.Errorf("%q is shown as %q and %q", s, shown, line)
		}
		for _, r := range line {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) {
				t.Errorf("%q is shown with %U", s, r)
			}
		}
		if strings.NewReplacer("\t", `\u{9}`, "\n", `\u{a}`).Replace(shown) != EscapeLine(s) {
			t.Errorf("%q is %q in lines, and %q in one", s, shown, line)
		}
		if Escape(shown) != shown {
			t.Errorf("%q is shown as %q, and that as %q", s, shown, Escape(shown))
		}
	})
}

// Output never becomes a fence: wherever it is shown, it is the code of the one
// fence around it.
func TestOutputStaysInItsFence(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, output string) {
		body := "before\n\n" + FenceOutput(output) + "after\n"
		fences, err := Fences(body)
		if err != nil || len(fences) != 1 || !fences[0].Closed() {
			t.Errorf("%q: %d fences in %q, %v", output, len(fences), body, err)
			return
		}
		want := Escape(output)
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got := fences[0].Code(body); got != want {
			t.Errorf("%q became %q, want %q", output, got, want)
		}
	}
	for output, want := range map[string]string{
		"":           "```\n```\n",
		"a":          "```\na\n```\n",
		"`a``b`\n":   "```\n`a``b`\n```\n",
		"```\n````x": "`````\n```\n````x\n`````\n",
	} {
		if got := FenceOutput(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
	for _, output := range []string{"", "\n", "x", "```", "a\n```\n~~~lua\nos.exit()\n~~~\n", "``````", "`` ` ````\r```", "    ```\n"} {
		check(t, output)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, noise().Draw(t, "output")) })
}
