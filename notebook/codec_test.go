package notebook

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sample has one field of each shape that bodies and records are made of.
type sample struct {
	_     struct{} `cbor:",toarray"`
	Small uint8
	Large uint64
	Sign  int64
	Flag  bool
	Text  string
	Bytes []byte
	ID    [4]byte
	List  []Position
	Names map[string]string
}

func TestOneValueOneEncoding(t *testing.T) {
	v := sample{Small: 1, Large: 500, Sign: -3, Flag: true, Text: "ä", Bytes: []byte{7}, ID: [4]byte{1, 2, 3, 4}, Names: map[string]string{"b": "1", "a": "2"}}
	b, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	const want = "89" + "01" + "1901f4" + "22" + "f5" + "62c3a4" + "4107" + "4401020304" + "80" + "a2616161326162" + "6131"
	if got := hex.EncodeToString(b); got != want {
		t.Fatalf("encoded %s, want %s", got, want)
	}
	for _, c := range []struct{ name, old, new string }{
		{"a number in a byte more than it needs", "8901", "891801"},
		{"a number in two bytes more", "1901f4", "1a000001f4"},
		{"a float for a number", "8901", "89f93c00"},
		{"a big number tagged", "8901", "89c24101"},
		{"a tagged number", "8901", "89c101"},
		{"null for a number", "8901", "89f6"},
		{"undefined for a number", "8901", "89f7"},
		{"null for a text", "62c3a4", "f6"},
		{"null for bytes", "4107", "f6"},
		{"null for a list", "80a2", "f6a2"},
		{"null for a map", "80a261616132616" + "26131", "80f6"},
		{"a number beyond its field", "8901", "89190100"},
		{"a length in a byte more", "62c3a4", "7802c3a4"},
		{"a text in pieces", "62c3a4", "7f62c3a4ff"},
		{"bytes in pieces", "4107", "5f4107ff"},
		{"a text that is not UTF-8", "62c3a4", "62c328"},
		{"bytes for a text", "62c3a4", "42c3a4"},
		{"a text for bytes", "4107", "6107"},
		{"three bytes for an id of four", "4401020304", "43010203"},
		{"five bytes for an id of four", "4401020304", "450102030405"},
		{"numbers for the bytes of an id", "4401020304", "8401020304"},
		{"a list without end", "80a2", "9fffa2"},
		{"a map in another order", "a26161613261626131", "a26162613161616132"},
		{"a map with a key twice", "a26161613261626131", "a26161613261616132"},
		{"a map without end", "a26161613261626131", "bf6161613261626131ff"},
		{"a field less", "8901", "88"},
		{"a field less, counted", "8901", "8801"},
		{"a field more", "a26161613261626131", "a2616161326162613100"},
		{"a field more, counted", "8901", "8a0101"},
		{"an array without end", "8901", "9f01"},
		{"true as a number", "f5", "01"},
		{"false in two bytes", "f5", "f814"},
	} {
		bad := strings.Replace(want, c.old, c.new, 1)
		if bad == want {
			t.Fatalf("%s: changes nothing", c.name)
		}
		b, err := hex.DecodeString(bad)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := Unmarshal(b, new(sample), 1<<10); err == nil {
			t.Errorf("%s: %s is accepted", c.name, bad)
		}
	}
	for _, bad := range []string{"", "f6", "f7", "80", "00", "a0"} {
		b, _ := hex.DecodeString(bad)
		if err := Unmarshal(b, new(sample), 1<<10); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for cut := range b {
		if err := Unmarshal(b[:cut], new(sample), 1<<10); err == nil {
			t.Errorf("the first %d bytes are accepted", cut)
		}
	}
	back := new(sample)
	if err := Unmarshal(b, back, len(b)); err != nil || !reflect.DeepEqual(back.Names, v.Names) || back.Text != "ä" {
		t.Errorf("%+v, %v", back, err)
	}
	if err := Unmarshal(b, new(sample), len(b)-1); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("beyond its size: %v", err)
	}
}

func TestNilAndEmptyAreOne(t *testing.T) {
	a, err := Marshal(sample{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Marshal(sample{Bytes: []byte{}, List: []Position{}, Names: map[string]string{}})
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("%x and %x, %v", a, b, err)
	}
	if err := Unmarshal(a, new(sample), len(a)); err != nil {
		t.Error(err)
	}
}

// A record with a text that cannot be read again would be a record that is lost.
func TestMarshalRefusesTextThatIsNotUTF8(t *testing.T) {
	long := strings.Repeat("x", 300) // its length takes two bytes
	for _, text := range []string{"\xff", long + "\xc3", "a\xc3(", "\xed\xa0\x80"} {
		for _, v := range []any{sample{Text: text}, sample{Bytes: []byte(text), Names: map[string]string{text: "x"}}, []string{long, text}} {
			if b, err := Marshal(v); err == nil {
				t.Errorf("%q in %T: encoded to %x", text, v, b)
			}
		}
	}
	if _, err := Marshal(sample{Text: long + "ä", Bytes: []byte("\xff" + long + "\xff"), Large: 1 << 63, Sign: -1 << 63}); err != nil {
		t.Error(err)
	}
}

func TestMarshalRefusesWhatHasNoEncoding(t *testing.T) {
	for _, v := range []any{make(chan int), func() {}, []any{make(chan int)}} {
		if b, err := Marshal(v); err == nil {
			t.Errorf("%T: encoded to %x", v, b)
		}
	}
}

// A list costs its memory before its elements are read, so small inputs have short lists.
func TestListsAreBoundedByTheSizeOfInput(t *testing.T) {
	list := func(n int) []byte {
		b, err := Marshal(make([]bool, n))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct{ most, elements int }{
		{0, 1024}, {MaxSmall, 1024}, {64 << 10, 1024}, {64<<10 + 1, 2048}, {MaxResult, 2048}, {4 << 20, 64 << 10},
	} {
		var v []bool
		if err := decoding(c.most).Unmarshal(list(c.elements), &v); err != nil {
			t.Errorf("%d elements for inputs of %d bytes: %v", c.elements, c.most, err)
		}
		if err := decoding(c.most).Unmarshal(list(c.elements+1), &v); err == nil {
			t.Errorf("%d elements for inputs of %d bytes are accepted", c.elements+1, c.most)
		}
	}
	if decoding(1<<40) != decodings[len(decodings)-1] {
		t.Error("the largest inputs have no bound")
	}
}

func TestNestingOfEncodingsIsBounded(t *testing.T) {
	var v any
	deep := append(bytes.Repeat([]byte{0x81}, 8), 0x80)
	if err := Unmarshal(deep[1:], &v, 16); err != nil {
		t.Errorf("8 levels: %v", err)
	}
	if err := Unmarshal(deep, &v, 16); err == nil {
		t.Error("9 levels are accepted")
	}
}

func TestHostileLengthsAllocateNothing(t *testing.T) {
	for _, b := range [][]byte{
		{0x9b, 0, 0, 0, 1, 0, 0, 0, 0}, {0x9a, 0x7f, 0xff, 0xff, 0xff}, {0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0xbb, 0, 0, 0, 1, 0, 0, 0, 0},
	} {
		allocated := testing.AllocsPerRun(10, func() {
			var heads []Head
			if err := Unmarshal(b, &heads, 1<<20); err == nil {
				t.Errorf("%x is accepted", b)
			}
		})
		if allocated > 50 {
			t.Errorf("%x: %v allocations", b, allocated)
		}
	}
}

func TestEntryTravels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.Byte(), 0, 300)
		e := Entry{Header: some.Draw(t, "header"), Sig: some.Draw(t, "sig"), Body: some.Draw(t, "body")}
		b, err := Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Entry
		if err := Unmarshal(b, &back, MaxEntry); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Header, e.Header) || !bytes.Equal(back.Sig, e.Sig) || !bytes.Equal(back.Body, e.Body) {
			t.Errorf("%+v became %+v", e, back)
		}
	})
	b, err := Marshal(Entry{Header: make([]byte, MaxHeader), Sig: make([]byte, 64), Body: make([]byte, MaxText)})
	if err != nil || len(b) > MaxEntry {
		t.Errorf("the largest entry has %d bytes, more than %d (%v)", len(b), MaxEntry, err)
	}
}

func FuzzDecodeHeader(f *testing.F) {
	for _, h := range []*Header{typedHeader(), movedHeader(), genesisHeader()} {
		b, err := EncodeHeader(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x82, 0x02, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeader(b)
		if err != nil {
			if h != nil {
				t.Errorf("a header beside the error %v", err)
			}
			return
		}
		again, err := EncodeHeader(h)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x is accepted and encoded again as %x, %v", b, again, err)
		}
		if err := h.Author().Check(); err != nil {
			t.Errorf("%x is accepted with an author that is none: %v", b, err)
		}
	})
}

func BenchmarkHeader(b *testing.B) {
	enc, err := EncodeHeader(typedHeader())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(enc)), "bytes")
	for b.Loop() {
		if _, err := DecodeHeader(enc); err != nil {
			b.Fatal(err)
		}
	}
}
