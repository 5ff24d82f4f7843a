package notebook

import "fmt"

// Register is one of a page's single values, decided among concurrent writers
// by the rule of package crdt.
type Register uint8

const (
	RegisterTitle   Register = 1 + iota // Text is the title
	RegisterDeleted                     // Flag says whether the page is deleted
	RegisterPurged                      // Flag is set: the page's text is gone for good
)

// Set is the body of a set entry.
type Set struct {
	_        struct{} `cbor:",toarray"`
	Register Register
	Text     string
	Flag     bool
}

// EncodeSet encodes s as a body of an entry of [KindSet].
func EncodeSet(s *Set) ([]byte, error) { return encodeBody(s, MaxSmall) }

// DecodeSet reads what [EncodeSet] writes, and nothing else.
func DecodeSet(b []byte) (*Set, error) { return decodeBody[Set](b, MaxSmall) }

func (s *Set) check() error {
	switch {
	case s.Register == RegisterTitle && !s.Flag:
		return CheckTitle(s.Text)
	case s.Register == RegisterDeleted && s.Text == "":
		return nil
	case s.Register == RegisterPurged && s.Text == "" && s.Flag:
		return nil
	case s.Register >= RegisterTitle && s.Register <= RegisterPurged:
		return fmt.Errorf("register %d with another register's value", s.Register)
	}
	return fmt.Errorf("unknown register %d", s.Register)
}
