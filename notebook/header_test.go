package notebook

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a committed file. The bytes of entries are for ever:
// a difference is a new format version, not a file to update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".hex")
	text := hexLines(got)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s: the encoding changed\n got %s\nwant %s", name, text, want)
	}
}

func hexLines(b []byte) string {
	var s strings.Builder
	for line := range slices.Chunk(b, 32) {
		s.WriteString(hex.EncodeToString(line) + "\n")
	}
	return s.String()
}

// Values whose bytes are all the same are told apart by eye in the golden files.
func device(b byte) DeviceID { return DeviceID(bytes.Repeat([]byte{b}, 32)) }
func epoch(b byte) Epoch     { return Epoch(bytes.Repeat([]byte{b}, 16)) }
func hash(b byte) Hash       { return Hash(bytes.Repeat([]byte{b}, 32)) }
func page(b byte) PageID     { return PageID(bytes.Repeat([]byte{b}, 16)) }

func head(d, e byte, seq uint64, h byte) Head {
	return Head{Position: Position{Device: device(d), Epoch: epoch(e), Seq: seq}, Hash: hash(h)}
}

// typedHeader is a text entry in the middle of a chain, typed on a device that
// has just merged two others.
func typedHeader() *Header {
	return &Header{
		Version: 1, Notebook: NotebookID(hash(0x11)), Device: device(0xd1), Epoch: epoch(0xe1), Seq: 7,
		Prev: head(0xd1, 0xe1, 6, 0xa6),
		Seen: []Head{head(0xd1, 0xe0, 300, 0xb0), head(0xd2, 0xe2, 70000, 0xb2)},
		Time: 1796000000000, Kind: KindText, Page: page(0x33), Class: Typed, Body: hash(0xcc), Size: 1234,
	}
}

func movedHeader() *Header {
	h := typedHeader()
	h.Seen, h.Class = nil, Moved
	h.Source = []Source{{Device: device(0xd2), Class: Agent, Label: "clerk"}}
	return h
}

func genesisHeader() *Header {
	return &Header{
		Version: 1, Device: device(0xd1), Epoch: epoch(0xe1), Seq: 1,
		Time: 1796000000000, Kind: KindRoster, Class: Typed, Body: hash(0xcc), Size: 99,
	}
}

func TestHeaderBytesAreForEver(t *testing.T) {
	for name, h := range map[string]*Header{"typed": typedHeader(), "moved": movedHeader(), "genesis": genesisHeader()} {
		b, err := EncodeHeader(h)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, "header-"+name, b)
		back, err := DecodeHeader(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again, err := EncodeHeader(back); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: decoded and encoded again: %x, %v", name, again, err)
		}
	}
}

// each denial changes one thing of a header that is accepted.
func TestHeaderFieldsGoTogether(t *testing.T) {
	deny := []struct {
		name string
		from func() *Header
		edit func(*Header)
		want string
	}{
		{"version 0", typedHeader, func(h *Header) { h.Version = 0 }, "version"},
		{"no device", typedHeader, func(h *Header) { h.Device = DeviceID{} }, "without a device"},
		{"no epoch", typedHeader, func(h *Header) { h.Epoch = Epoch{} }, "without an epoch"},
		{"seq 0", typedHeader, func(h *Header) { h.Seq = 0 }, "counts from 1"},
		{"seq at the end of numbers", typedHeader, func(h *Header) { h.Seq, h.Prev.Position.Seq = 1<<64-1, 1<<64-2 }, "counts from 1"},
		{"no entry before the seventh", typedHeader, func(h *Header) { h.Prev = Head{} }, "names no entry before"},
		{"gap", typedHeader, func(h *Header) { h.Prev.Position.Seq = 5 }, "entry before"},
		{"itself before", typedHeader, func(h *Header) { h.Prev.Position.Seq = 7 }, "entry before"},
		{"other epoch before", typedHeader, func(h *Header) { h.Prev.Position.Epoch = epoch(0xe0) }, "entry before"},
		{"other device before", typedHeader, func(h *Header) { h.Prev.Position.Device = device(0xd2) }, "entry before"},
		{"no hash before", typedHeader, func(h *Header) { h.Prev.Hash = Hash{} }, "no hash"},
		{"first of an epoch continues itself", typedHeader, func(h *Header) { h.Seq = 1 }, "continues"},
		{"first of an epoch continues another device", typedHeader, func(h *Header) { h.Seq, h.Prev = 1, head(0xd2, 0xe2, 3, 1) }, "continues"},
		{"first of an epoch continues place 0", typedHeader, func(h *Header) { h.Seq, h.Prev = 1, head(0xd1, 0xe0, 0, 1) }, "counts from 1"},
		{"seen not sorted", typedHeader, func(h *Header) { slices.Reverse(h.Seen) }, "sorted"},
		{"seen twice", typedHeader, func(h *Header) { h.Seen = append(h.Seen, h.Seen[1]) }, "sorted"},
		{"seen names the own chain", typedHeader, func(h *Header) { h.Seen = []Head{head(0xd1, 0xe1, 2, 1)} }, "own chain"},
		{"seen without hash", typedHeader, func(h *Header) { h.Seen[0].Hash = Hash{} }, "no hash"},
		{"seen at place 0", typedHeader, func(h *Header) { h.Seen[0].Position.Seq = 0 }, "counts from 1"},
		{"before 1970", typedHeader, func(h *Header) { h.Time = -1 }, "years"},
		{"after 9999", typedHeader, func(h *Header) { h.Time = MaxTime + 1 }, "years"},
		{"no kind", typedHeader, func(h *Header) { h.Kind = 0 }, "no kind"},
		{"text of no page", typedHeader, func(h *Header) { h.Page = PageID{} }, "of a page"},
		{"roster of a page", genesisHeader, func(h *Header) { h.Page = page(1) }, "of a page"},
		{"text without notebook", typedHeader, func(h *Header) { h.Notebook = NotebookID{} }, "no notebook"},
		{"genesis with an entry before", genesisHeader, func(h *Header) { h.Prev = head(0xd1, 0xe0, 3, 1) }, "no notebook"},
		{"genesis that has seen", genesisHeader, func(h *Header) { h.Seen = []Head{head(2, 2, 2, 2)} }, "no notebook"},
		{"no class", typedHeader, func(h *Header) { h.Class = 0 }, "class"},
		{"class of the future", typedHeader, func(h *Header) { h.Class = 5 }, "class"},
		{"typed with a label", typedHeader, func(h *Header) { h.Label = "x" }, "label"},
		{"typed with an empty source", typedHeader, func(h *Header) { h.Source = []Source{{}} }, "empty source"},
		{"typed with a source", movedHeader, func(h *Header) { h.Class = Typed }, "source"},
		{"agent without a label", typedHeader, func(h *Header) { h.Class = Agent }, "empty"},
		{"import without a label", typedHeader, func(h *Header) { h.Class = Import }, "empty"},
		{"agent with a source", movedHeader, func(h *Header) { h.Class, h.Label = Agent, "clerk" }, "source"},
		{"label too long", typedHeader, func(h *Header) { h.Class, h.Label = Agent, strings.Repeat("x", MaxLabel+1) }, "97 bytes"},
		{"label not UTF-8", typedHeader, func(h *Header) { h.Class, h.Label = Agent, "a\xff" }, "UTF-8"},
		{"label with a newline", typedHeader, func(h *Header) { h.Class, h.Label = Agent, "a\nb" }, "control"},
		{"label with an escape", typedHeader, func(h *Header) { h.Class, h.Label = Agent, "a\x1b[2J" }, "control"},
		{"moved without a source", movedHeader, func(h *Header) { h.Source = nil }, "source"},
		{"moved with an empty source", movedHeader, func(h *Header) { h.Source[0] = Source{} }, "source"},
		{"moved with two sources", movedHeader, func(h *Header) { h.Source = append(h.Source, h.Source[0]) }, "2 sources"},
		{"moved with a label", movedHeader, func(h *Header) { h.Label = "x" }, "label"},
		{"moved from moved", movedHeader, func(h *Header) { h.Source[0].Class = Moved }, "moved itself"},
		{"moved from typed with a label", movedHeader, func(h *Header) { h.Source[0].Class = Typed }, "label"},
		{"moved from no device", movedHeader, func(h *Header) { h.Source[0].Device = DeviceID{} }, "without a device"},
		{"moved from an agent without name", movedHeader, func(h *Header) { h.Source[0].Label = "" }, "empty"},
		{"roster by an agent", genesisHeader, func(h *Header) { h.Class, h.Label = Agent, "clerk" }, "only a person"},
		{"moved result", movedHeader, func(h *Header) { h.Kind = KindResult }, "moved"},
		{"empty body", typedHeader, func(h *Header) { h.Size = 0 }, "0 bytes"},
		{"text too large", typedHeader, func(h *Header) { h.Size = MaxText + 1 }, "are allowed"},
		{"result too large", typedHeader, func(h *Header) { h.Kind, h.Size = KindResult, MaxResult+1 }, "are allowed"},
		{"set too large", typedHeader, func(h *Header) { h.Kind, h.Size = KindSet, MaxSmall+1 }, "are allowed"},
		{"roster too large", genesisHeader, func(h *Header) { h.Size = MaxSmall + 1 }, "are allowed"},
	}
	for _, c := range deny {
		h := c.from()
		if _, err := EncodeHeader(h); err != nil {
			t.Fatalf("%s: the header it starts from: %v", c.name, err)
		}
		c.edit(h)
		if _, err := EncodeHeader(h); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: encoded: error %v, want one with %q", c.name, err, c.want)
		}
		// A peer does not use our encoder.
		b, err := encoding.Marshal(h)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		back, err := DecodeHeader(b)
		if err == nil || back != nil {
			t.Errorf("%s: decoded to %+v", c.name, back)
		}
		if errors.Is(err, ErrNewer) {
			t.Errorf("%s: taken for a newer header: %v", c.name, err)
		}
	}

	allow := []struct {
		name string
		from func() *Header
		edit func(*Header)
	}{
		{"agent", typedHeader, func(h *Header) { h.Class, h.Label = Agent, "clerk" }},
		{"longest label", typedHeader, func(h *Header) { h.Class, h.Label = Import, strings.Repeat("ä", MaxLabel/2) }},
		{"first entry of a joined device", typedHeader, func(h *Header) { h.Seq, h.Prev = 1, Head{} }},
		{"first entry of a second epoch", typedHeader, func(h *Header) { h.Seq, h.Prev = 1, head(0xd1, 0xe0, 9, 1) }},
		{"result of an agent's run", typedHeader, func(h *Header) { h.Kind, h.Class, h.Label, h.Size = KindResult, Agent, "clerk", MaxResult }},
		{"moved from what was typed", movedHeader, func(h *Header) { h.Source[0] = Source{Device: device(2), Class: Typed} }},
		{"moved title", movedHeader, func(h *Header) { h.Kind = KindSet }},
		{"later roster entry", genesisHeader, func(h *Header) { h.Notebook, h.Seen = NotebookID(hash(1)), []Head{head(2, 2, 2, 2)} }},
		{"largest text", typedHeader, func(h *Header) { h.Size = MaxText }},
		{"as much seen as fits", typedHeader, func(h *Header) { h.Seen = manySeen(40) }},
	}
	for _, c := range allow {
		h := c.from()
		c.edit(h)
		b, err := EncodeHeader(h)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _, err := DecodeHeader(b); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func manySeen(n int) (seen []Head) {
	for i := range n {
		seen = append(seen, head(byte(i+1), 1, 1<<20, 1))
	}
	return seen
}

func TestHeaderThatDoesNotFit(t *testing.T) {
	h := typedHeader()
	h.Seen = manySeen(60)
	if _, err := EncodeHeader(h); err == nil || !strings.Contains(err.Error(), "60 seen heads") {
		t.Errorf("encoded: %v", err)
	}
	b, err := encoding.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeHeader(b); err == nil || !strings.Contains(err.Error(), "at most 4096") {
		t.Errorf("decoded: %v", err)
	}
}

func TestNewerHeaderIsNoFault(t *testing.T) {
	kind := typedHeader()
	kind.Kind = 5
	ofKind, err := encoding.Marshal(kind)
	if err != nil {
		t.Fatal(err)
	}
	version := typedHeader()
	version.Version = 2
	ofVersion, err := encoding.Marshal(version)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"unknown kind":            ofKind,
		"next version":            ofVersion,
		"shorter array":           {0x82, 0x02, 0x61, 'x'},
		"version beyond a byte":   {0x81, 0x19, 0x01, 0x00},
		"forty elements":          append([]byte{0x98, 40, 2}, make([]byte, 39)...),
		"nothing but its version": {0x81, 0x02},
	} {
		if h, err := DecodeHeader(b); h != nil || !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "update noted here") {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":                    nil,
		"empty array":                {0x80},
		"a map":                      {0xa1, 0x02, 0x02},
		"a number":                   {0x02},
		"a text for a version":       {0x81, 0x61, '2'},
		"a negative version":         {0x81, 0x21},
		"a version written too long": {0x81, 0x18, 0x02},
		"a tagged version":           {0x81, 0xc1, 0x02},
		"an endless array":           {0x9f, 0x02, 0xff},
		"more after the array":       {0x81, 0x02, 0x00},
		"cut short":                  {0x83, 0x02, 0x00},
		"version 1 of another shape": {0x81, 0x01},
		"too large":                  append([]byte{0x82, 0x02, 0x59, 0x10, 0x00}, make([]byte, 4096)...),
	} {
		if h, err := DecodeHeader(b); h != nil || err == nil || errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
}

// A device that signed several histories of one epoch has several heads in it.
func TestHeadsOfSeveralHistories(t *testing.T) {
	a, b, c := head(0xd1, 0xe1, 5, 1), head(0xd1, 0xe1, 5, 2), head(0xd1, 0xe1, 7, 1)
	if err := CheckHeads([]Head{a, b, c}); err != nil {
		t.Error(err)
	}
	for _, heads := range [][]Head{{b, a, c}, {a, a}, {a, c, b}} {
		if CheckHeads(heads) == nil {
			t.Errorf("%v are sorted", heads)
		}
	}
	h := typedHeader()
	h.Seen = []Head{head(0xd2, 0xe2, 5, 1), head(0xd2, 0xe2, 5, 2)}
	if b, err := EncodeHeader(h); err != nil {
		t.Error(err)
	} else if _, err := DecodeHeader(b); err != nil {
		t.Error(err)
	}
}
