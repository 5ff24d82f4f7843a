package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

func drawHeads(t *rapid.T) []notebook.Head {
	var heads []notebook.Head
	for k := range rapid.IntRange(0, 5).Draw(t, "heads") {
		heads = append(heads, notebook.Head{
			Position: notebook.Position{Device: notebook.DeviceID{byte(k + 1)}, Epoch: notebook.Epoch{1}, Seq: rapid.Uint64Range(1, 1<<40).Draw(t, "seq")},
			Hash:     notebook.Hash{rapid.Byte().Draw(t, "hash"), 1},
		})
	}
	return heads
}

func body(t *rapid.T, frame []byte, want kind) []byte {
	k, n, err := readHead(bytes.NewReader(frame))
	if err != nil || k != want || n != len(frame)-5 {
		t.Fatalf("kind %d, %d bytes, %v", k, n, err)
	}
	return frame[5:]
}

func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heads := drawHeads(t)
		h := hello{version: ProtocolVersion, notebook: notebook.NotebookID{1}, run: 2, serial: 3, heads: heads}
		got, err := readHello(body(t, h.frame(), kindHello))
		if err != nil || got.version != h.version || got.notebook != h.notebook || got.run != 2 || got.serial != 3 || !slices.Equal(got.heads, heads) {
			t.Fatalf("hello: %+v, %v", got, err)
		}
		taken, acked, err := readAck(body(t, ackFrame(7, heads), kindAck))
		if err != nil || taken != 7 || !slices.Equal(acked, heads) {
			t.Fatalf("ack: %v", err)
		}
		b := newBatch()
		var want []notebook.Entry
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			e := notebook.Entry{
				Header: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "header"),
				Sig:    rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "sig"),
				Body:   rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "body"),
			}
			if err := b.add(&e); err != nil {
				t.Fatal(err)
			}
			want = append(want, e)
		}
		entries, err := readEntries(body(t, b.end(), kindEntries))
		if err != nil || len(entries) != len(want) {
			t.Fatalf("entries: %v", err)
		}
		for k, e := range entries {
			if !bytes.Equal(e.Header, want[k].Header) || !bytes.Equal(e.Sig, want[k].Sig) || !bytes.Equal(e.Body, want[k].Body) {
				t.Fatalf("entry %d differs", k)
			}
		}
	})
}

func TestBatchesStayWithinTheirBounds(t *testing.T) {
	small := notebook.Entry{Header: []byte{1}, Sig: make([]byte, 64)}
	b := newBatch()
	for !b.full(&small) {
		if err := b.add(&small); err != nil {
			t.Fatal(err)
		}
	}
	if b.n != maxBatch {
		t.Errorf("%d entries in a batch", b.n)
	}
	largest := notebook.Entry{Header: make([]byte, notebook.MaxHeader), Sig: make([]byte, 64), Body: make([]byte, notebook.MaxText)}
	if b = newBatch(); b.full(&largest) {
		t.Error("the largest entry fits in no batch")
	}
	if err := b.add(&largest); err != nil || !b.full(&small) {
		t.Errorf("a batch over its bytes takes more: %v", err)
	}
	frame := b.end()
	if most, _ := kindEntries.most(); len(frame)-5 > most {
		t.Errorf("a frame of %d bytes where a reader takes %d", len(frame)-5, most)
	}
	for name, e := range map[string]notebook.Entry{
		"no header":       {Sig: make([]byte, 64)},
		"large header":    {Header: make([]byte, notebook.MaxHeader+1), Sig: make([]byte, 64)},
		"short signature": {Header: []byte{1}, Sig: make([]byte, 63)},
		"large body":      {Header: []byte{1}, Sig: make([]byte, 64), Body: make([]byte, notebook.MaxText+1)},
	} {
		if err := newBatch().add(&e); err == nil {
			t.Errorf("%s: a frame that nobody would read", name)
		}
	}
}

func TestCapsComeBeforeMemory(t *testing.T) {
	for k := range kind(10) {
		most, known := k.most()
		_, _, err := readHead(bytes.NewReader(binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(most+1))))
		if !errors.Is(err, errFrame) {
			t.Errorf("kind %d with a byte too many: %v", k, err)
		}
		_, n, err := readHead(bytes.NewReader(binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(most))))
		if known != (err == nil) || known && n != most {
			t.Errorf("kind %d at its cap: %v", k, err)
		}
	}
	// a count inside a frame does not allocate what the frame does not hold
	lie := append(make([]byte, 8), 0, 0, 0x0f, 0xff)
	if got := testing.AllocsPerRun(10, func() { readAck(lie) }); got > 10 {
		t.Errorf("%v allocations for 4095 heads in no bytes", got)
	}
}

func FuzzFrames(f *testing.F) {
	heads := []notebook.Head{{Position: notebook.Position{Device: notebook.DeviceID{1}, Epoch: notebook.Epoch{1}, Seq: 1}, Hash: notebook.Hash{1}}}
	h := hello{version: 1, notebook: notebook.NotebookID{1}, heads: heads}
	f.Add(h.frame())
	f.Add(ackFrame(1, heads))
	f.Add(farewellFrame(byeFlood))
	b := newBatch()
	if err := b.add(&notebook.Entry{Header: []byte{1}, Sig: make([]byte, 64), Body: []byte("x")}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.end())
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		k, n, err := readHead(r)
		if err != nil {
			return
		}
		p := make([]byte, min(n, r.Len()))
		io.ReadFull(r, p)
		var again []byte
		switch k {
		case kindHello:
			h, err := readHello(p)
			if err != nil || h.version != ProtocolVersion {
				return
			}
			again = h.frame()
		case kindAck:
			taken, heads, err := readAck(p)
			if err != nil {
				return
			}
			again = ackFrame(taken, heads)
		case kindEntries:
			entries, err := readEntries(p)
			if err != nil {
				return
			}
			b := newBatch()
			for k := range entries {
				if err := b.add(&entries[k]); err != nil {
					t.Fatal(err)
				}
			}
			again = b.end()
		case kindAgain:
			heads, err := readAgain(p)
			if err != nil {
				return
			}
			again = againFrame(heads)
		case kindFarewell:
			f, v, err := readFarewell(p)
			if err == nil && told(f, v) == nil {
				t.Fatal("a farewell without words")
			}
			return
		default:
			return
		}
		if !bytes.Equal(again[5:], p) {
			t.Fatalf("%x reads as %x", p, again[5:])
		}
	})
}
