package notebook

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func bytes16(t *rapid.T, label string) [16]byte {
	return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
}

func bytes32(t *rapid.T, label string) [32]byte {
	return [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, label))
}

func TestIdsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long, short := bytes32(t, "long"), bytes16(t, "short")
		if v, err := ParseHash(Hash(long).String()); err != nil || v != Hash(long) {
			t.Error(v, err)
		}
		if v, err := ParseDeviceID(DeviceID(long).String()); err != nil || v != DeviceID(long) {
			t.Error(v, err)
		}
		if v, err := ParseDeviceID(strings.ToUpper(DeviceID(long).String())); err != nil || v != DeviceID(long) {
			t.Error(v, err)
		}
		if v, err := ParseNotebookID(NotebookID(long).String()); err != nil || v != NotebookID(long) {
			t.Error(v, err)
		}
		if v, err := ParsePageID(PageID(short).String()); err != nil || v != PageID(short) {
			t.Error(v, err)
		}
		if v, err := ParseFenceID(FenceID(short).String()); err != nil || v != FenceID(short) {
			t.Error(v, err)
		}
		if s := FenceID(short).Short(); len(s) != 10 || s[0] != 'f' {
			t.Errorf("short form %q", s)
		}
	})
}

func TestWhatIsNoId(t *testing.T) {
	parsers := map[string]func(string) error{
		"hash":     func(s string) error { v, err := ParseHash(s); return zeroUnless(err, v.IsZero()) },
		"device":   func(s string) error { v, err := ParseDeviceID(s); return zeroUnless(err, v.IsZero()) },
		"notebook": func(s string) error { v, err := ParseNotebookID(s); return zeroUnless(err, v == NotebookID{}) },
		"page":     func(s string) error { v, err := ParsePageID(s); return zeroUnless(err, v.IsZero()) },
		"fence":    func(s string) error { v, err := ParseFenceID(s); return zeroUnless(err, v.IsZero()) },
	}
	good := map[string]string{
		"hash": hash(1).String(), "device": device(1).String(), "notebook": NotebookID(hash(1)).String(), "page": page(1).String(), "fence": FenceID(page(1)).String(),
	}
	for name, parse := range parsers {
		s := good[name]
		if err := parse(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range []string{"", s[1:], s + "0", s[:len(s)-1] + "!", s[:len(s)-1] + "\x00", " " + s, s + "\n", strings.Repeat("!", len(s)), strings.Repeat("x", 1<<20)} {
			err := parse(bad)
			if err == nil || err == errNotZero {
				t.Errorf("%s: %.90q: %v", name, bad, err)
			} else if len(err.Error()) > 600 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
		}
	}
	// The last letter of a fingerprint has bits that no key uses.
	d := device(0).String()
	if _, err := ParseDeviceID(d[:51] + "b"); err == nil {
		t.Error("two fingerprints name one device")
	}
}

var errNotZero = Errorf(CodeFailed, "an id beside an error")

func zeroUnless(err error, zero bool) error {
	if err != nil && !zero {
		return errNotZero
	}
	return err
}

func TestDigestTellsListsApart(t *testing.T) {
	// Few letters and short lists, so that the same bytes are often cut in other places.
	word := rapid.StringMatching(`[ab]{0,3}`)
	list := rapid.SliceOfN(word, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		d1, d2 := word.Draw(t, "domain"), word.Draw(t, "domain")
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		equal := d1 == d2 && slices.Equal(a, b)
		if (digest(d1, a) == digest(d2, b)) != equal {
			t.Errorf("%q %q and %q %q", d1, a, d2, b)
		}
	})
	// A length is not text of the part before, and a domain is not a part.
	if digest("a", []string{"b"}) == digest("a\x00\x00\x00\x00\x00\x00\x00\x01b", nil) || digest("a", []string{"b"}) == digest("b", []string{"a"}) || digest("", []string{"a"}) == digest("a", nil) {
		t.Error("two inputs, one digest")
	}
	const want = "02cfcfae89969942bca5fa6c913621e49ea406cacc66405ecfc8405d3aa5632e"
	if got := digest("noted/test/v1", []string{"", "a", "bc"}).String(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func digest(domain string, parts []string) Hash {
	var p [][]byte
	for _, s := range parts {
		p = append(p, []byte(s))
	}
	return Digest(domain, p...)
}

func TestClosureHashTellsClosuresApart(t *testing.T) {
	word := rapid.StringMatching(`[ab]{0,2}`)
	closure := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Part {
		return Part{Delimiter: word.Draw(t, "delimiter"), Language: word.Draw(t, "language"), Info: word.Draw(t, "info"), Code: word.Draw(t, "code")}
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a := closure.Draw(t, "a")
		b := closure.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") { // all but one byte, or cut elsewhere
			b = slices.Clone(a)
			if len(b) > 0 {
				i := rapid.IntRange(0, len(b)-1).Draw(t, "part")
				p := &b[i]
				switch rapid.IntRange(0, 5).Draw(t, "edit") {
				case 0:
					p.Code += "a"
				case 1:
					p.Info, p.Code = p.Info+p.Code, ""
				case 2:
					p.Language, p.Info = p.Info, p.Language
				case 3:
					b = slices.Delete(b, i, i+1)
				case 4:
					b = slices.Insert(b, i, Part{})
				case 5:
					slices.Reverse(b)
				}
			}
		}
		if (Closure(a).Hash() == Closure(b).Hash()) != slices.Equal(a, b) {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}

func TestFenceIDsDiffer(t *testing.T) {
	base := NewFenceID(page(1), ElementID{Counter: 7, Actor: ActorID(page(2))})
	for _, other := range []FenceID{
		NewFenceID(page(3), ElementID{Counter: 7, Actor: ActorID(page(2))}),
		NewFenceID(page(1), ElementID{Counter: 8, Actor: ActorID(page(2))}),
		NewFenceID(page(1), ElementID{Counter: 7, Actor: ActorID(page(3))}),
	} {
		if other == base {
			t.Error("two fences, one id")
		}
	}
}

func TestHashesOfAnEntry(t *testing.T) {
	e := Entry{Header: []byte("x"), Body: []byte("x")}
	if e.Hash() == BodyDigest(e.Body) {
		t.Error("a body's digest is that of a header")
	}
	f := Entry{Header: []byte("x"), Sig: bytes.Repeat([]byte{1}, 64)}
	if e.Hash() != f.Hash() {
		t.Error("the hash of an entry rests on more than its header")
	}
}
