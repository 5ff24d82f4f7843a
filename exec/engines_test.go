package exec

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheCompilerIsTheOneThatIsLinked(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "github.com/tetratelabs/wazero "+wazeroVersion+"\n") {
		t.Errorf("go.mod does not require wazero %s: compiled code would be taken for that of another version", wazeroVersion)
	}
}

// section is a section of a module, with its length in the fewest bytes.
func section(id byte, content string) string {
	b := []byte{id}
	n := len(content)
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return string(append(b, byte(n))) + content
}

const emptyModule = "\x00asm\x01\x00\x00\x00"

func TestStrip(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ name, in, out string }{
		{"nothing", emptyModule, emptyModule},
		{"a custom section", emptyModule + section(0, "\x04name"), emptyModule},
		{"custom sections between others", emptyModule + section(0, long) + section(1, "a") + section(0, "b") + section(3, long) + section(0, ""), emptyModule + section(1, "a") + section(3, long)},
		{"a length in more bytes than it needs", emptyModule + "\x01\x81\x80\x80\x80\x00a", emptyModule + "\x01\x81\x80\x80\x80\x00a"},
	} {
		if out, err := strip([]byte(c.in)); err != nil || string(out) != c.out {
			t.Errorf("%s: %q, %v", c.name, out, err)
		}
	}
	for name, in := range map[string]string{
		"nothing at all":                   "",
		"a header that is cut":             emptyModule[:7],
		"another version":                  "\x00asm\x02\x00\x00\x00",
		"a program of another kind":        "\x7fELF\x02\x01\x01\x00",
		"a section without a length":       emptyModule + "\x01",
		"a length that is cut":             emptyModule + "\x01\x80",
		"a section that is cut":            emptyModule + section(1, "abc")[:4],
		"a custom section that is cut":     emptyModule + "\x00\x7f",
		"a length of more than five bytes": emptyModule + "\x01\x81\x80\x80\x80\x80\x00a",
		"a length beyond all bounds":       emptyModule + "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		if out, err := strip([]byte(in)); err == nil {
			t.Errorf("%s is stripped to %q", name, out)
		}
	}
}

// TestStripKeepsAllElse: what is left are the other sections, byte for byte, and
// nothing is left of a second strip.
func TestStripKeepsAllElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, want := emptyModule, emptyModule
		for range rapid.IntRange(0, 8).Draw(t, "sections") {
			s := section(rapid.ByteRange(0, 13).Draw(t, "id"), string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "content")))
			if in += s; s[0] != 0 {
				want += s
			}
		}
		once, err := strip([]byte(in))
		if err != nil || string(once) != want {
			t.Fatalf("%q became %q, %v", in, once, err)
		}
		if twice, err := strip(once); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("a second strip: %q, %v", twice, err)
		}
	})
}

func FuzzStrip(f *testing.F) {
	f.Add([]byte(emptyModule + section(0, "name") + section(1, "a")))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := strip(in)
		if err != nil {
			return
		}
		if len(out) > len(in) {
			t.Errorf("%d bytes became %d", len(in), len(out))
		}
		if again, err := strip(out); err != nil || !bytes.Equal(again, out) {
			t.Errorf("a second strip: %v", err)
		}
	})
}
