package pairing

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"noted/notebook"
)

const (
	// Lifetime is how long an invitation may be answered.
	Lifetime = 2 * time.Minute

	// MaxAddresses and MaxAddress bound what an invitation carries, and MaxURI,
	// in bytes, keeps its QR code at version 13 or below with the least error
	// correction (425 bytes): 69 modules and a quiet zone of four on each side
	// are 77 columns.
	MaxAddresses = 4
	MaxAddress   = 64
	MaxURI       = 425

	scheme = "noted:1?"
)

// Secret is what an invitation proves: 128 random bits, used once. It does not
// print itself.
type Secret [16]byte

func (Secret) String() string       { return "(secret)" }
func (Secret) GoString() string     { return "(secret)" }
func (Secret) LogValue() slog.Value { return slog.StringValue("(secret)") }

// Invitation is what one device shows and another scans.
type Invitation struct {
	Notebook  notebook.NotebookID
	Inviter   notebook.DeviceID
	Addresses []string // where the inviter may be reached, best first
	Secret    Secret
	Expires   time.Time // whole seconds
}

// NewInvitation makes an invitation with a fresh secret that expires
// [Lifetime] after now. Of the addresses it takes, in order, those that are
// well formed and fit.
func NewInvitation(nb notebook.NotebookID, inviter notebook.DeviceID, addresses []string, now time.Time) Invitation {
	inv := Invitation{Notebook: nb, Inviter: inviter, Expires: now.Add(Lifetime).Truncate(time.Second)}
	rand.Read(inv.Secret[:]) // never fails
	for _, a := range addresses {
		if checkAddress(a) != nil {
			continue
		}
		more := inv
		more.Addresses = append(inv.Addresses[:len(inv.Addresses):len(inv.Addresses)], a)
		if more.check() == nil {
			inv = more
		}
	}
	return inv
}

// URI is the invitation as a QR code and a person's clipboard carry it, by
// [ParseInvitation].
func (i Invitation) URI() string {
	var b strings.Builder
	b.WriteString(scheme)
	b.WriteString("n=" + base64.RawURLEncoding.EncodeToString(i.Notebook[:]))
	b.WriteString("&d=" + base64.RawURLEncoding.EncodeToString(i.Inviter[:]))
	b.WriteString("&s=" + base64.RawURLEncoding.EncodeToString(i.Secret[:]))
	b.WriteString("&e=" + strconv.FormatInt(i.Expires.Unix(), 10))
	for _, a := range i.Addresses {
		b.WriteString("&a=" + a)
	}
	return b.String()
}

// ParseInvitation reads what [Invitation.URI] writes and nothing else: an
// unknown, missing, repeated or misplaced key is an error, and so is an
// invitation of another version, which the error names.
func ParseInvitation(s string) (Invitation, error) {
	s = strings.TrimSpace(s)
	if len(s) > MaxURI {
		return Invitation{}, malformed("it has %d bytes where at most %d are allowed", len(s), MaxURI)
	}
	query, ok := strings.CutPrefix(s, scheme)
	if !ok {
		if v, isNoted := strings.CutPrefix(s, "noted:"); isNoted {
			v, _, _ = strings.Cut(v, "?")
			return Invitation{}, notebook.Errorf(notebook.CodeInvalid, "the invitation is of version %.10q and this noted reads version 1", v).
				With("update noted on both devices")
		}
		return Invitation{}, malformed("it does not begin with %q", scheme)
	}
	var inv Invitation
	for k, part := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		want := "a"
		if k < 4 {
			want = "ndse"[k : k+1]
		}
		if key != want {
			return Invitation{}, malformed("it has %.20q where %q belongs", key, want)
		}
		var err error
		switch key {
		case "n":
			err = decode(inv.Notebook[:], value)
		case "d":
			err = decode(inv.Inviter[:], value)
		case "s":
			err = decode(inv.Secret[:], value)
		case "e":
			var unix int64
			unix, err = strconv.ParseInt(value, 10, 64)
			inv.Expires = time.Unix(unix, 0)
		case "a":
			inv.Addresses = append(inv.Addresses, value)
		}
		if err != nil {
			return Invitation{}, malformed("the value of %q cannot be read", key)
		}
	}
	if err := inv.check(); err != nil {
		return Invitation{}, malformed("%v", err)
	}
	if inv.URI() != s { // padding bits, a leading zero, a part that is missing
		return Invitation{}, malformed("it is not written as noted writes it")
	}
	return inv, nil
}

func (i Invitation) check() error {
	if len(i.Addresses) > MaxAddresses {
		return fmt.Errorf("it has more than %d addresses", MaxAddresses)
	}
	for _, a := range i.Addresses {
		if err := checkAddress(a); err != nil {
			return err
		}
	}
	if i.Notebook == (notebook.NotebookID{}) || i.Inviter.IsZero() || i.Secret == (Secret{}) {
		return errors.New("a part of it is missing")
	}
	if n := len(i.URI()); n > MaxURI {
		return fmt.Errorf("it has %d bytes where at most %d are allowed", n, MaxURI)
	}
	return nil
}

// checkAddress admits what multiaddresses of IP addresses are made of, which
// means nothing in a query and needs no escape in it.
func checkAddress(a string) error {
	if len(a) == 0 || len(a) > MaxAddress || a[0] != '/' {
		return fmt.Errorf("an address has %d bytes or does not begin with a slash", len(a))
	}
	for _, r := range a {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("/.:-", r) {
			return fmt.Errorf("an address has the character %q", r)
		}
	}
	return nil
}

func decode(dst []byte, s string) error {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(dst) {
		return errors.New("wrong length or character")
	}
	copy(dst, b)
	return nil
}

func malformed(format string, args ...any) *notebook.Error {
	return notebook.Errorf(notebook.CodeInvalid, "this is not an invitation: "+format, args...).
		With("copy the whole line that begins with noted: from the other device")
}
