package exec

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawFields(t *rapid.T, label string) []field {
	fs := []field{}
	for range rapid.IntRange(0, 5).Draw(t, label) {
		fs = append(fs, field{rapid.String().Draw(t, "name"), rapid.String().Draw(t, "value")})
	}
	return fs
}

func TestFramesSayWhatWasSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := request{before: drawFields(t, "before"), source: rapid.String().Draw(t, "source"), inputs: drawFields(t, "inputs")}
		if rapid.Bool().Draw(t, "has args") {
			q.args = drawFields(t, "args")
		}
		b, err := readFrame(bytes.NewReader(q.encode()), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeRequest(b); err != nil || !reflect.DeepEqual(got, q) {
			t.Fatalf("%+v became %+v, %v", q, got, err)
		}
		o := outcome{failed: rapid.Bool().Draw(t, "failed"), text: rapid.String().Draw(t, "text")}
		if got, err := decodeOutcome(o.encode()[4:]); err != nil || got != o {
			t.Fatalf("%+v became %+v, %v", o, got, err)
		}
		r := ready{layers: rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "layers"), missing: rapid.String().Draw(t, "missing"), reason: rapid.String().Draw(t, "reason")}
		if got, err := decodeReady(r.encode()[4:]); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v became %+v, %v", r, got, err)
		}
	})
}

func TestFramesAreBoundedBeforeTheyAreRead(t *testing.T) {
	o := outcome{text: "fine"}
	if _, err := readFrame(bytes.NewReader(o.encode()), maxOutcomeFrame); err != nil {
		t.Fatalf("a good frame: %v", err)
	}
	for name, b := range map[string][]byte{
		"longer than allowed": append([]byte{0, 0, 0x20, 1}, make([]byte, 0x2001)...),
		"four gibibytes":      {0xff, 0xff, 0xff, 0xff},
		"cut in its length":   {0, 0},
		"cut in its body":     {0, 0, 0, 9, 1},
		"nothing":             {},
	} {
		if _, err := readFrame(bytes.NewReader(b), maxOutcomeFrame); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, err := readFrame(io.MultiReader(strings.NewReader("\x00\x00\x00\x01"), strings.NewReader("x")), 1); err != nil {
		t.Errorf("a frame in two pieces: %v", err)
	}
}

func TestMalformedOutcomesAreRefused(t *testing.T) {
	for name, b := range map[string]string{
		"empty":                 "",
		"no text":               "\x00",
		"a flag that is no bit": "\x02\x00",
		"a text too short":      "\x00\x05abc",
		"something left over":   "\x00\x03abcd",
		"a length written long": "\x00\x83\x00abc",
		"a length without end":  "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"an error of 5 KiB":     string((&outcome{failed: true, text: strings.Repeat("x", 5<<10)}).encode()[4:]),
	} {
		if o, err := decodeOutcome([]byte(b)); err == nil {
			t.Errorf("%s became %+v", name, o)
		}
	}
	if o, err := decodeOutcome([]byte("\x01\x03abc")); err != nil || o != (outcome{failed: true, text: "abc"}) {
		t.Errorf("a good one became %+v, %v", o, err)
	}
}

// FuzzFrames: what decodes encodes to the same bytes, and nothing else decodes.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00"))
	f.Add((&outcome{failed: true, text: "fence:1: no"}).encode()[4:])
	f.Add((&ready{layers: []string{"seccomp"}, missing: "rlimits", reason: "EPERM"}).encode()[4:])
	f.Add((&request{source: "return 1", inputs: []field{{"page", "text"}}, args: []field{{"a", "b"}}}).encode()[4:])
	f.Add((&request{}).encode()[4:])
	f.Add((&request{before: []field{{"faaaaaaaaa", "x = 1"}, {"fbbbbbbbbb", ""}}, source: "return x"}).encode()[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOutcome(b); err == nil && !bytes.Equal(o.encode()[4:], b) {
			t.Errorf("outcome %q is written %q", b, o.encode()[4:])
		}
		if r, err := decodeReady(b); err == nil && !bytes.Equal(r.encode()[4:], b) {
			t.Errorf("ready %q is written %q", b, r.encode()[4:])
		}
		if q, err := decodeRequest(b); err == nil && !bytes.Equal(q.encode()[4:], b) {
			t.Errorf("request %q is written %q", b, q.encode()[4:])
		}
	})
}
