package notebook

import (
	"bytes"
	"cmp"
	"fmt"
)

// Kind says what an entry's body is.
type Kind uint8

const (
	KindText   Kind = 1 + iota // one automerge change of one page
	KindSet                    // a new value of one of a page's registers
	KindResult                 // the outcome of a run
	KindRoster                 // a change of who is in the notebook
)

func (k Kind) String() string {
	switch k {
	case KindText:
		return "text"
	case KindSet:
		return "set"
	case KindResult:
		return "result"
	case KindRoster:
		return "roster"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// EntryVersion is the version that this program writes and understands.
const EntryVersion = 1

// Sizes, in bytes. They bound what is allocated before anything is verified:
// a header fits a few hundred seen positions, a text body the change of a
// one-mebibyte page, a result two kept outputs' worth of CBOR.
const (
	MaxHeader = 4 << 10
	MaxLabel  = 96
	MaxText   = 2 << 20
	MaxResult = 96 << 10
	MaxSmall  = 8 << 10 // bodies of the other kinds
	MaxBody   = 1 << 20 // a page's body, in bytes of UTF-8
	MaxTitle  = 512     // a page's title, in bytes of UTF-8
)

// MaxBodySize is the largest body that an entry of kind k may have.
func (k Kind) MaxBodySize() int {
	switch k {
	case KindText:
		return MaxText
	case KindResult:
		return MaxResult
	}
	return MaxSmall
}

// Position names one entry: a device, one of its epochs, and the place in that
// epoch's chain, counted from 1.
type Position struct {
	_      struct{} `cbor:",toarray"`
	Device DeviceID
	Epoch  Epoch
	Seq    uint64
}

// Compare orders positions by device, epoch and place; it says nothing of time.
func (p Position) Compare(q Position) int {
	return cmp.Or(bytes.Compare(p.Device[:], q.Device[:]), bytes.Compare(p.Epoch[:], q.Epoch[:]), cmp.Compare(p.Seq, q.Seq))
}

func (p Position) String() string {
	return fmt.Sprintf("%s/%x/%d", p.Device.Short(), p.Epoch[:4], p.Seq)
}

// Head is a position together with the hash of the header that stands there.
type Head struct {
	_        struct{} `cbor:",toarray"`
	Position Position
	Hash     Hash
}

// Header is the signed part of an entry.
type Header struct {
	_        struct{} `cbor:",toarray"`
	Version  uint8
	Notebook NotebookID // zeros in the genesis entry, whose hash is the id
	Device   DeviceID
	Epoch    Epoch
	Seq      uint64 // from 1 in each epoch
	Prev     Head   // the entry before: in this epoch, or for seq 1 the head that the epoch continues; zero for a device's first entry
	Seen     []Head // what the author had merged since Prev, of other devices; sorted, one per device and epoch
	Time     int64  // Unix milliseconds, shown to people, never decides
	Kind     Kind
	Page     PageID // zero for roster entries
	Class    Class
	Label    string
	Source   []Source // one for moved text, none otherwise
	Body     Hash     // Digest("noted/body/v1", body)
	Size     uint32   // bytes of the body
}

// Position is where h stands.
func (h *Header) Position() Position {
	return Position{Device: h.Device, Epoch: h.Epoch, Seq: h.Seq}
}

// Author is who h says wrote the body.
func (h *Header) Author() Author {
	a := Author{Device: h.Device, Class: h.Class, Label: h.Label}
	if len(h.Source) == 1 {
		a.Source = h.Source[0]
	}
	return a
}

// Entry is a signed record of a device's log, as it travels and as it is kept.
// It is nothing but bytes: only trust says whether they mean anything.
type Entry struct {
	Header []byte // as received; see [DecodeHeader]
	Sig    []byte // ed25519 over the signing input, 64 bytes
	Body   []byte // nil where the body was dropped
}

// Hash names the entry: the digest of its header.
func (e *Entry) Hash() Hash { return Digest("noted/header/v1", e.Header) }

// BodyDigest is what a header says of its body.
func BodyDigest(body []byte) Hash { return Digest("noted/body/v1", body) }

// Register is one of a page's single values, decided among concurrent writers
// by the rule of package crdt.
type Register uint8

const (
	RegisterTitle   Register = 1 + iota // Text is the title
	RegisterDeleted                     // Flag says whether the page is deleted
)

// Set is the body of a set entry.
type Set struct {
	_        struct{} `cbor:",toarray"`
	Register Register
	Text     string
	Flag     bool
}

// Role is what a member of the roster is for, for good.
type Role uint8

const (
	RoleMember Role = 1 + iota // a person's device
	RoleHub                    // stores and relays, writes nothing
)

// RosterAct is what a roster entry does.
type RosterAct uint8

const (
	RosterGenesis RosterAct = 1 + iota // founds the notebook with its first device
	RosterAdd                          // takes a device in; carries its own signature
	RosterRemove                       // shuts a device out
	RosterCut                          // says how far a removed device's logs had been taken
	RosterRename                       // a device's new name, by itself
)

// RosterChange is the body of a roster entry.
type RosterChange struct {
	_      struct{} `cbor:",toarray"`
	Act    RosterAct
	Device DeviceID // whom it is about
	Name   string   // genesis, add, rename
	Role   Role     // genesis, add
	Number uint32   // add: 1 for the first time, one more for each new pairing of the same key
	Joiner []byte   // add: the device's signature over its acceptance
	Keep   []DeviceID
	Cut    []Head
	Salt   [16]byte // genesis: makes two notebooks of one device two
}
