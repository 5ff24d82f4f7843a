package notebook

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// EntryVersion is the version that this program writes and understands.
const EntryVersion = 1

// ErrNewer says that an entry has a version or a kind that this program does
// not know. It is no fault of the sender: the entry waits until noted is
// updated here.
var ErrNewer = errors.New("made by a newer noted: update noted here")

// MaxTime is the last millisecond of the year 9999, the latest that an entry
// may claim: what comes after it has no RFC 3339 form.
const MaxTime = 253402300799999

// Header is the signed part of an entry.
type Header struct {
	_        struct{} `cbor:",toarray"`
	Version  uint8
	Notebook NotebookID // zeros in the genesis entry, whose hash is the id
	Device   DeviceID
	Epoch    Epoch
	Seq      uint64 // from 1 in each epoch
	Prev     Head   // the entry before: in this epoch, or for seq 1 the head that the epoch continues; zero for a device's first entry
	Seen     []Head // what the author had merged of other chains since Prev, other epochs of its own included; see [CheckHeads]
	Time     int64  // Unix milliseconds, shown to people, never decides; 0 to [MaxTime]
	Kind     Kind
	Page     PageID // zero for roster entries
	Class    Class
	Label    string
	Source   []Source // one for moved text, none otherwise
	Body     Hash     // Digest("noted/body/v1", body)
	Size     uint32   // bytes of the body, at least 1
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

// EncodeHeader encodes h, whose fields must be as [DecodeHeader] demands.
func EncodeHeader(h *Header) ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("encode header: %w", err)
	}
	b, err := Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxHeader {
		return nil, fmt.Errorf("encode header: %d bytes where at most %d are allowed, with %d seen heads", len(b), MaxHeader, len(h.Seen))
	}
	return b, nil
}

// DecodeHeader reads the one encoding of a header and checks that its fields
// go together; whether they are true, only the signature and the log can say.
// The error is [ErrNewer] for an unknown version, of which only the first
// element is read, and for an unknown kind.
func DecodeHeader(b []byte) (*Header, error) {
	if len(b) > MaxHeader {
		return nil, fmt.Errorf("header of %d bytes where at most %d are allowed", len(b), MaxHeader)
	}
	v, err := headerVersion(b)
	if err != nil {
		return nil, err
	}
	if v > EntryVersion {
		return nil, fmt.Errorf("header of version %d: %w", v, ErrNewer)
	}
	h := new(Header)
	if err := Unmarshal(b, h, MaxHeader); err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// headerVersion reads the first element. That a header is an array which
// begins with its version holds for every version there will be.
func headerVersion(b []byte) (uint64, error) {
	const fields = 15
	if len(b) > 1 && b[0] == 0x80|fields && b[1] == EntryVersion {
		return EntryVersion, nil
	}
	var items []cbor.RawMessage
	if err := decoding(MaxHeader).Unmarshal(b, &items); err != nil {
		return 0, fmt.Errorf("header: %w", err)
	}
	if len(items) == 0 {
		return 0, errors.New("header: empty")
	}
	var v uint64
	if err := Unmarshal(items[0], &v, 9); err != nil {
		return 0, fmt.Errorf("header: version: %w", err)
	}
	return v, nil
}

func (h *Header) check() error {
	if h.Version != EntryVersion {
		return fmt.Errorf("unknown version %d", h.Version)
	}
	if err := h.checkChain(); err != nil {
		return err
	}
	if h.Time < 0 || h.Time > MaxTime {
		return fmt.Errorf("time %d is outside the years 1970 to 9999", h.Time)
	}
	switch h.Kind {
	case KindText, KindSet, KindResult, KindRoster:
	case 0:
		return errors.New("no kind")
	default:
		return fmt.Errorf("%v: %w", h.Kind, ErrNewer)
	}
	if h.Page.IsZero() != (h.Kind == KindRoster) {
		return fmt.Errorf("a %v entry with page %v: all but roster entries are of a page", h.Kind, h.Page)
	}
	if err := h.checkAuthor(); err != nil {
		return err
	}
	if h.Size == 0 || int64(h.Size) > int64(h.Kind.MaxBodySize()) {
		return fmt.Errorf("a %v body of %d bytes where 1 to %d are allowed", h.Kind, h.Size, h.Kind.MaxBodySize())
	}
	return nil
}

// checkChain is about where h stands and what it names before it.
func (h *Header) checkChain() error {
	if err := h.Position().check(); err != nil {
		return err
	}
	switch {
	case h.Prev.IsZero():
		if h.Seq != 1 {
			return fmt.Errorf("entry %d of a chain names no entry before it", h.Seq)
		}
	case h.Prev.Hash.IsZero():
		return errors.New("the entry before has no hash")
	case h.Seq > 1:
		if want := (Position{Device: h.Device, Epoch: h.Epoch, Seq: h.Seq - 1}); h.Prev.Position != want {
			return fmt.Errorf("the entry before %v is given as %v", h.Position(), h.Prev.Position)
		}
	default:
		if err := h.Prev.Position.check(); err != nil {
			return fmt.Errorf("the entry before: %w", err)
		}
		if h.Prev.Position.Device != h.Device || h.Prev.Position.Epoch == h.Epoch {
			return fmt.Errorf("an epoch's first entry continues %v, which is no other epoch of its device", h.Prev.Position)
		}
	}
	if err := CheckHeads(h.Seen); err != nil {
		return fmt.Errorf("seen: %w", err)
	}
	for _, s := range h.Seen {
		if s.Position.Device == h.Device && s.Position.Epoch == h.Epoch {
			return errors.New("seen names the entry's own chain")
		}
	}
	genesis := h.Notebook == NotebookID{}
	if genesis && (h.Kind != KindRoster || !h.Prev.IsZero() || len(h.Seen) > 0) {
		return errors.New("no notebook, and not the first entry of one")
	}
	return nil
}

// checkAuthor is about who h says wrote it.
func (h *Header) checkAuthor() error {
	switch len(h.Source) {
	case 0:
	case 1:
		if h.Source[0].IsZero() {
			return errors.New("an empty source")
		}
	default:
		return fmt.Errorf("%d sources where at most 1 is allowed", len(h.Source))
	}
	a := h.Author()
	if err := a.Check(); err != nil {
		return err
	}
	switch {
	case h.Kind == KindRoster && a.Class != Typed:
		return fmt.Errorf("a roster entry of class %v: only a person changes the roster", a.Class)
	case h.Kind == KindResult && a.Class == Moved:
		return errors.New("a result of class moved")
	}
	return nil
}
