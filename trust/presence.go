package trust

import (
	"crypto/subtle"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"noted/notebook"
)

// The cost of one try of the PIN: RFC 9106's second recommended option, for
// machines that cannot spare 2 GiB. A PIN has little to guess, so the tries are
// what protects it here; the cost is for whoever copies the record away.
const (
	pinTime   = 3
	pinMemory = 64 << 10 // KiB
	pinLanes  = 4
	pinTries  = 5
	minPIN    = 4
	maxPIN    = 64
)

// Presence knows how a person proves to be there: with a PIN, or, in a home
// without one, by typing a sentence on a terminal.
type Presence struct {
	hash  []byte // nil: no PIN
	salt  [16]byte
	tries int // left
}

// Present is the proof that a person was there, for the door that asks for it.
// Only [Presence.Check] makes one that counts.
type Present struct{ valid bool }

// Valid reports whether p was made by [Presence.Check].
func (p Present) Valid() bool { return p.valid }

// NewPresence sets a PIN of 4 to 64 characters; the salt is random.
func NewPresence(pin string, salt [16]byte) (*Presence, error) {
	if !utf8.ValidString(pin) || utf8.RuneCountInString(pin) < minPIN || len(pin) > maxPIN {
		return nil, notebook.Errorf(notebook.CodeInvalid, "a PIN has %d to %d characters", minPIN, maxPIN).With("choose another PIN")
	}
	p := &Presence{salt: salt, tries: pinTries}
	p.hash = p.derive(pin)
	return p, nil
}

// NoPIN is the presence of a home that has no PIN: it rests on a terminal.
func NoPIN() *Presence { return &Presence{} }

// lockedHint is the way out of a locked PIN.
const lockedHint = "what needs no PIN goes on; noted owner reset, with the daemon stopped, sets another PIN and voids every approval"

func (p *Presence) derive(pin string) []byte {
	return argon2.IDKey([]byte(pin), p.salt[:], pinTime, pinMemory, pinLanes, 32)
}

// HasPIN reports whether the home has a PIN.
func (p *Presence) HasPIN() bool { return p.hash != nil }

// Left is how many tries are left before the PIN is locked.
func (p *Presence) Left() int { return p.tries }

// Sentence is what a person types in a home without a PIN to do act, which
// names what is done and to what.
func Sentence(act string) string { return "yes, " + act }

// Check reports whether a person is there who wants act done. A try counts
// before it is known to be wrong: the caller stores [Presence.Record] before it
// answers, whatever the outcome, so that killing noted gives no further try. It
// takes about a tenth of a second and 64 MiB.
func (p *Presence) Check(proof notebook.Presence, act string) (Present, error) {
	if p.hash == nil {
		want := Sentence(act)
		if !same(strings.TrimSpace(proof.Typed), want) {
			return Present{}, notebook.Errorf(notebook.CodeRefused, "this needs a person, and there is no PIN here").
				With("type exactly: %s", want)
		}
		return Present{valid: true}, nil
	}
	if p.tries <= 0 {
		return Present{}, notebook.Errorf(notebook.CodeRefused, "the PIN is locked after %d wrong tries", pinTries).
			With(lockedHint)
	}
	if proof.PIN == "" {
		return Present{}, notebook.Errorf(notebook.CodeRefused, "this needs the PIN").With("type it on the terminal, or pass it with --pin-fd")
	}
	p.tries--
	if len(proof.PIN) > maxPIN || subtle.ConstantTimeCompare(p.derive(proof.PIN), p.hash) != 1 {
		hint := fmt.Sprintf("%d tries are left", p.tries)
		switch p.tries {
		case 1:
			hint = "one try is left"
		case 0:
			hint = "that was the last try: " + lockedHint
		}
		return Present{}, notebook.Errorf(notebook.CodeRefused, "the PIN is wrong").With("%s", hint)
	}
	p.tries = pinTries
	return Present{valid: true}, nil
}

// same compares in a time that depends on the lengths only.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

type presenceRecord struct {
	_      struct{} `cbor:",toarray"`
	Hash   []byte   // empty: no PIN
	Salt   [16]byte
	Time   uint32
	Memory uint32
	Lanes  uint8
	Tries  uint8
}

// Record is p as it is stored.
func (p *Presence) Record() []byte {
	r, err := newRecord(nil, &presenceRecord{
		Hash: p.hash, Salt: p.salt, Time: pinTime, Memory: pinMemory, Lanes: pinLanes, Tries: uint8(p.tries),
	})
	if err != nil {
		panic("trust: a record of numbers does not encode: " + err.Error())
	}
	return r.Value
}

// OpenPresence reads what [Presence.Record] wrote.
func OpenPresence(record []byte) (*Presence, error) {
	var r presenceRecord
	if err := readRecord(record, &r); err != nil {
		return nil, fmt.Errorf("presence: %w", err)
	}
	if r.Time != pinTime || r.Memory != pinMemory || r.Lanes != pinLanes || r.Tries > pinTries || len(r.Hash) != 0 && len(r.Hash) != 32 {
		return nil, fmt.Errorf("presence: a record of another kind: update noted here")
	}
	p := &Presence{salt: r.Salt, tries: int(r.Tries)}
	if len(r.Hash) > 0 {
		p.hash = r.Hash
	}
	return p, nil
}
