package trust

import (
	"bytes"
	"slices"
	"testing"

	"noted/notebook"
)

// FuzzTake changes bytes of entries that would be taken. Nothing that was not
// signed by its device is ever taken, and nothing makes the log panic or grow.
func FuzzTake(f *testing.F) {
	laptop := newDev(f, "laptop").found()
	phone := laptop.invite(newDev(f, "phone"))
	for range 3 {
		phone.writes("text")
	}
	phone.renames("mobile")
	entries := phone.missing(laptop.log.Heads())
	records := laptop.backup().records
	signed := make(map[notebook.Hash]bool)
	for _, e := range append(slices.Clone(phone.entries), laptop.entries...) {
		signed[e.Hash()] = true
	}
	f.Add(uint8(0), uint8(0), uint16(0), []byte(nil))
	f.Add(uint8(1), uint8(0), uint16(40), []byte{1})
	f.Add(uint8(2), uint8(1), uint16(3), []byte{0xff, 0xff})
	f.Add(uint8(3), uint8(2), uint16(0), []byte("other"))
	f.Add(uint8(0), uint8(0), uint16(200), []byte{0x82, 0x18, 0x20})
	f.Fuzz(func(t *testing.T, which, part uint8, at uint16, xor []byte) {
		log, err := OpenLog(laptop.id(), sorted(records))
		if err != nil {
			t.Fatal(err)
		}
		log.Recall(laptop.look)
		batch := slices.Clone(entries)
		i := int(which) % len(batch)
		e := notebook.Entry{Header: bytes.Clone(batch[i].Header), Sig: bytes.Clone(batch[i].Sig), Body: bytes.Clone(batch[i].Body)}
		target := [][]byte{e.Header, e.Sig, e.Body}[int(part)%3]
		for j, x := range xor {
			if k := int(at) + j; k < len(target) {
				target[k] ^= x
			}
		}
		batch[i] = e
		same := bytes.Equal(e.Header, entries[i].Header) && bytes.Equal(e.Sig, entries[i].Sig) && bytes.Equal(e.Body, entries[i].Body)
		vs, err := log.Take(notebook.DeviceID{}, batch)
		if same != (err == nil && len(vs) == len(batch)) {
			t.Fatalf("took %d of %d, changed %v: %v", len(vs), len(batch), !same, err)
		}
		for _, v := range vs {
			e := v.Entry()
			if !signed[v.Hash()] || e.Hash() != v.Hash() || !v.Valid() {
				t.Fatalf("took %v, which nobody signed", v.Header().Position())
			}
			if _, err := open(e); err != nil {
				t.Fatalf("took an entry that does not hold: %v", err)
			}
		}
	})
}
