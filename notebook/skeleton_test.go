package notebook

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSkeleton(t *testing.T) {
	for _, alike := range [][]string{
		{"phone", "Phone", "PHONE", "phone ", " phone", "phone\u00a0", "\u3000phone", "phone\u2800"},
		{"phone", "рhone", "рһоnе", "phοne", "ΡHΟΝΕ", "РНОПЕ", "ｐｈｏｎｅ", "𝗉𝗁𝗈𝗇𝖾", "ᵖhone"},
		{"phone", "pho\u200bne", "pho\u00adne", "\u2060phone", "phone\ufe0f", "ph\u034fone", "\u202ephone", "phone\u3164", "pho\U000e0061ne"},
		{"laptop", "lаptор", "Iaptop", "1aptop", "|aptop", "LАРТОР", "ΙAPTOP", "laptop\u200d"},
		{"my phone", "my  phone", "my\u2003phone", "My Phone", "mу phοne"},
		{"work-mac", "work‐mac", "work–mac", "vvork-mac", "ωork-mac", "wоrk_mac"},
		{"modem", "rnodem", "modеm", "ｍodem"},
		{"Büro", "bu\u0308ro", "BÜRO", "вüro", "bürо"},
		{"straße", "STRASSE", "strasse"},
		{"kitchen", "кitcheп", "KITCHEN", "κitchen"},
		{"ꭰ", "Ꭰ"},
		{"ν", "Ν", "n", "N", "v", "V"},
		{"~a", "∼a", "～a"},
		{"", " ", "\u200b", "\u3164\u2060", "\t"},
	} {
		for _, name := range alike {
			if got, want := Skeleton(name), Skeleton(alike[0]); got != want {
				t.Errorf("%+q has the skeleton %q, %q has %q", name, got, alike[0], want)
			}
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"", "phone", "phones", "pho ne", "laptop", "tablet", "desk", "work-mac", "work.mac", "home", "hub", "hub2", "Büro", "buro", "手机", "手機", "телефон", "тело", "שלום"} {
		if other, taken := seen[Skeleton(name)]; taken {
			t.Errorf("%q and %q have one skeleton", name, other)
		}
		seen[Skeleton(name)] = name
	}
}

// A skeleton is one of a class: it is its own, whatever the name.
func TestSkeletonOfASkeleton(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		if once := Skeleton(name); Skeleton(once) != once {
			t.Fatalf("%+q: %+q, then %+q", name, once, Skeleton(once))
		}
	})
}
