package trust

import (
	"errors"
	"strings"
	"testing"

	"noted/notebook"
)

func TestPIN(t *testing.T) {
	p := must(NewPresence("2468", [16]byte{1}))
	ok, err := p.Check(notebook.Presence{PIN: "2468"}, "approve")
	if err != nil || !ok.Valid() {
		t.Fatal(err)
	}
	for i := range pinTries {
		// The caller stores the record each time, and noted is killed each time.
		p = must(OpenPresence(p.Record()))
		if p.Left() != pinTries-i {
			t.Fatalf("%d tries are left after %d", p.Left(), i)
		}
		got, err := p.Check(notebook.Presence{PIN: "1111"}, "approve")
		if got.Valid() || code(err) != notebook.CodeRefused {
			t.Fatalf("a wrong PIN: %v", err)
		}
	}
	p = must(OpenPresence(p.Record()))
	got, err := p.Check(notebook.Presence{PIN: "2468"}, "approve")
	if got.Valid() || !strings.Contains(err.Error(), "locked") || !strings.Contains(err.Error(), "noted owner reset") {
		t.Errorf("the right PIN after five wrong ones: %v", err)
	}
}

func code(err error) notebook.Code {
	var e *notebook.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestRightPINGivesTheTriesBack(t *testing.T) {
	p := must(NewPresence("pässword", [16]byte{1}))
	for range 3 {
		if _, err := p.Check(notebook.Presence{PIN: "wrong"}, ""); err == nil {
			t.Fatal("accepted")
		}
	}
	if _, err := p.Check(notebook.Presence{PIN: "pässword"}, ""); err != nil || p.Left() != pinTries {
		t.Errorf("%v, %d left", err, p.Left())
	}
}

// What asks for the PIN costs no try; the typed sentence does not replace it.
func TestPINIsAskedFor(t *testing.T) {
	p := must(NewPresence("2468", [16]byte{1}))
	for _, proof := range []notebook.Presence{{}, {Typed: Sentence("approve")}} {
		if got, err := p.Check(proof, "approve"); got.Valid() || code(err) != notebook.CodeRefused {
			t.Errorf("%+v: %v", proof, err)
		}
	}
	if p.Left() != pinTries {
		t.Errorf("%d tries left", p.Left())
	}
}

func TestPINsThatCannotBe(t *testing.T) {
	for _, pin := range []string{"", "123", "äöü", strings.Repeat("9", maxPIN+1), "1234\xff"} {
		if _, err := NewPresence(pin, [16]byte{}); code(err) != notebook.CodeInvalid {
			t.Errorf("%q: %v", pin, err)
		}
	}
	a, b := must(NewPresence("2468", [16]byte{1})), must(NewPresence("2468", [16]byte{2}))
	if string(a.hash) == string(b.hash) {
		t.Error("the salt does nothing")
	}
}

func TestNoPIN(t *testing.T) {
	p := must(OpenPresence(NoPIN().Record()))
	if p.HasPIN() {
		t.Error("has one")
	}
	want := Sentence("approve fence f123 0a1b")
	if got, err := p.Check(notebook.Presence{Typed: want + "\n"}, "approve fence f123 0a1b"); err != nil || !got.Valid() {
		t.Errorf("the sentence: %v", err)
	}
	for _, typed := range []string{"", "yes", "y", strings.ToUpper(want), want + "!", Sentence("approve fence f124 0a1b")} {
		got, err := p.Check(notebook.Presence{Typed: typed, PIN: "2468"}, "approve fence f123 0a1b")
		if got.Valid() || code(err) != notebook.CodeRefused || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", typed, err)
		}
	}
	if (Present{}).Valid() {
		t.Error("the zero proof is one")
	}
}

func TestPresenceRecordsThatAreNone(t *testing.T) {
	good := must(NewPresence("2468", [16]byte{1})).Record()
	for name, b := range map[string][]byte{
		"nothing": nil, "empty": {}, "newer": append([]byte{2}, good[1:]...), "cut off": good[:20], "longer": append(good, 0),
	} {
		if _, err := OpenPresence(b); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
