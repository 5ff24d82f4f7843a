package notebook

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
)

// Hash is a SHA-256 digest made by [Digest].
type Hash [32]byte

// Digest hashes parts under a domain: each input is preceded by its length, so
// no two different lists of parts, and no two domains, share an input.
func Digest(domain string, parts ...[]byte) Hash {
	h := sha256.New()
	var n [8]byte
	write := func(p []byte) {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	write([]byte(domain))
	for _, p := range parts {
		write(p)
	}
	return Hash(h.Sum(nil))
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero value, which is the digest of nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash reads the 64 hexadecimal digits that [Hash.String] writes.
func ParseHash(s string) (Hash, error) {
	var h Hash
	return h, parseHex(h[:], s, "digest")
}

// DeviceID is a device's ed25519 public key, which is also its libp2p identity.
type DeviceID [32]byte

var fingerprint = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String is the fingerprint by which a person knows the device: 52 base32 letters of the key.
func (d DeviceID) String() string { return fingerprint.EncodeToString(d[:]) }

// Short is the beginning of the fingerprint, for places where the whole does not fit.
func (d DeviceID) Short() string { return d.String()[:8] }

func (d DeviceID) IsZero() bool { return d == DeviceID{} }

// LogValue keeps log lines short.
func (d DeviceID) LogValue() slog.Value { return slog.StringValue(d.Short()) }

// ParseDeviceID reads a whole fingerprint.
func ParseDeviceID(s string) (DeviceID, error) {
	b, err := fingerprint.DecodeString(strings.ToLower(s))
	if err != nil || len(b) != len(DeviceID{}) || fingerprint.EncodeToString(b) != strings.ToLower(s) {
		return DeviceID{}, fmt.Errorf("%q is not a device fingerprint (52 letters a-z and digits 2-7)", clip(s))
	}
	return DeviceID(b), nil
}

// NotebookID is the hash of the notebook's first entry.
type NotebookID Hash

func (n NotebookID) String() string { return Hash(n).String() }

// ParseNotebookID reads the 64 hexadecimal digits that [NotebookID.String] writes.
func ParseNotebookID(s string) (NotebookID, error) {
	h, err := ParseHash(s)
	return NotebookID(h), err
}

// PageID names a page for good, whatever its title becomes.
type PageID [16]byte

func (p PageID) String() string { return hex.EncodeToString(p[:]) }
func (p PageID) IsZero() bool   { return p == PageID{} }

// ParsePageID reads the 32 hexadecimal digits that [PageID.String] writes.
func ParsePageID(s string) (PageID, error) {
	var p PageID
	return p, parseHex(p[:], s, "page id")
}

// Epoch is one opening of the store for writing: a random id. A device's log in
// one epoch is a plain chain; a restored backup or a cloned home writes in
// another epoch and so never contradicts it.
type Epoch [16]byte

func (e Epoch) String() string { return hex.EncodeToString(e[:]) }
func (e Epoch) IsZero() bool   { return e == Epoch{} }

// ActorID is the automerge actor of one author in one epoch; see [Author.Actor].
type ActorID [16]byte

func (a ActorID) String() string { return hex.EncodeToString(a[:]) }

// ElementID names one character of a page's body for good: the automerge
// operation that inserted it.
type ElementID struct {
	Counter uint64
	Actor   ActorID
}

// FenceID names a fence for as long as the first character of its opening
// delimiter lives: a hash of page and that character's element id.
type FenceID [16]byte

// NewFenceID returns the id of the fence of page whose opening delimiter starts with the element first.
func NewFenceID(page PageID, first ElementID) FenceID {
	var ctr [8]byte
	binary.BigEndian.PutUint64(ctr[:], first.Counter)
	h := Digest("noted/fence-id/v1", page[:], first.Actor[:], ctr[:])
	return FenceID(h[:16])
}

func (f FenceID) String() string { return hex.EncodeToString(f[:]) }
func (f FenceID) IsZero() bool   { return f == FenceID{} }

// Short is the form people type: the letter f and nine base32 letters (45 bits).
// Two fences of a page may share it by malice; then it is ambiguous and refused.
func (f FenceID) Short() string { return "f" + fingerprint.EncodeToString(f[:])[:9] }

// ParseFenceID reads the 32 hexadecimal digits that [FenceID.String] writes.
func ParseFenceID(s string) (FenceID, error) {
	var f FenceID
	return f, parseHex(f[:], s, "fence id")
}

func parseHex(dst []byte, s, what string) error {
	if len(s) == 2*len(dst) {
		if _, err := hex.Decode(dst, []byte(s)); err == nil {
			return nil
		}
	}
	clear(dst)
	return fmt.Errorf("%q is not a %s (%d hexadecimal digits)", clip(s), what, 2*len(dst))
}

// clip keeps hostile input out of error messages beyond a recognisable length.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
