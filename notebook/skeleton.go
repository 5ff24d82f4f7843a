package notebook

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Skeleton is what two names have in common that a person takes for one: the
// name without blanks at its ends and without what is not seen, in compatibility
// form, case folded, and with letters of Latin, Greek and Cyrillic that look
// alike made one. It is for comparing only, never shown and never kept. Names
// that look alike in other scripts, or only in some typeface, have two.
func Skeleton(name string) string {
	var b strings.Builder
	// Full folding swaps the two cases of Cherokee; the simple one after it makes them one.
	folded := strings.Map(fold, cases.Fold().String(norm.NFKC.String(name)))
	folded = strings.ReplaceAll(folded, "vv", "w")
	for _, r := range norm.NFKD.String(folded) {
		switch {
		case unicode.IsSpace(r) || r == '\u2800': // the blank of Braille
			b.WriteByte(' ')
		case unseen(r):
		default:
			if same, found := lookalikes[r]; found {
				b.WriteString(same)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return norm.NFC.String(strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "rn", "m")), " "))
}

// unseen reports whether r is Default_Ignorable_Code_Point or another format
// character: what a line of text shows nothing of.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// lookalikes maps a folded letter to the one that stands for all that look like
// it, small or capital: a fold makes Н and н one, so what either looks like
// comes together. The Greek, Cyrillic and odd Latin letters are those that
// confusables.txt of Unicode Technical Standard #39 lists for a basic Latin one;
// digits and strokes were added by eye. Too much in one class costs a
// fingerprint beside a name, too little a mistaken device.
var lookalikes = map[rune]string{
	// basic Latin that looks alike by itself, or by way of a Greek capital
	'0': "o", '1': "i", 'l': "i", '|': "i", 'v': "n", 'y': "u",
	// Latin
	'ı': "i", 'ǀ': "i", 'ɩ': "i", 'ɪ': "i", 'ɑ': "a", 'ɡ': "g", 'ƅ': "b", 'ʋ': "n", 'ʏ': "u", 'ɣ': "u", 'ƨ': "2", 'ʟ': "i", 'ᴄ': "c", 'ᴏ': "o",
	'ᴜ': "u", 'ᴠ': "n", 'ᴡ': "w", 'ᴢ': "z", 'ꜱ': "s", 'ᴋ': "k", 'ʙ': "b", 'ʜ': "h", 'ᴛ': "t", 'ᴍ': "m",
	// Greek
	'α': "a", 'β': "b", 'γ': "u", 'ε': "e", 'ζ': "z", 'η': "h", 'ι': "i", 'κ': "k", 'μ': "m", 'ν': "n", 'ο': "o", 'ρ': "p", 'σ': "o", 'τ': "t",
	'υ': "u", 'χ': "x", 'ω': "w", 'ϲ': "c", 'ϳ': "j", 'ϝ': "f",
	// Cyrillic
	'а': "a", 'в': "b", 'г': "r", 'е': "e", 'з': "3", 'и': "u", 'к': "k", 'м': "m", 'н': "h", 'о': "o", 'п': "n", 'р': "p", 'с': "c", 'т': "t",
	'у': "u", 'х': "x", 'ь': "b", 'ѕ': "s", 'і': "i", 'ј': "j", 'ԁ': "d", 'ԛ': "q", 'ԝ': "w", 'һ': "h", 'ү': "u", 'ѵ': "n", 'ӏ': "i", 'ԍ': "g",
	'б': "6", 'ґ': "r", 'є': "e", 'ԑ': "e", 'ҽ': "e", 'ѡ': "w", 'ғ': "f",
	// what joins the words of a name
	'‐': "-", '‑': "-", '‒': "-", '–': "-", '—': "-", '−': "-", '⁃': "-", '_': "-", '’': "'", '‘': "'", 'ʼ': "'", '`': "'", '´': "'", '∼': "~", '⁓': "~", '․': ".",
}
