package notebook

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
)

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

// IsZero reports whether p is the zero value, which names no entry.
func (p Position) IsZero() bool { return p == Position{} }

// check says why no entry can stand at p. The upper bound of the place lets
// everybody count one further without a thought.
func (p Position) check() error {
	switch {
	case p.Device.IsZero():
		return errors.New("position without a device")
	case p.Epoch.IsZero():
		return errors.New("position without an epoch")
	case p.Seq == 0 || p.Seq > math.MaxInt64:
		return fmt.Errorf("place %d in a chain that counts from 1", p.Seq)
	}
	return nil
}

// Head is a position together with the hash of the header that stands there.
type Head struct {
	_        struct{} `cbor:",toarray"`
	Position Position
	Hash     Hash
}

// Compare orders heads by position and then hash.
func (h Head) Compare(g Head) int {
	return cmp.Or(h.Position.Compare(g.Position), bytes.Compare(h.Hash[:], g.Hash[:]))
}

// IsZero reports whether h is the zero value, which names no entry.
func (h Head) IsZero() bool { return h == Head{} }

// Place names one entry as it is kept on one device: its position, and for an
// entry of a branch that came when another one was here already, the hash of
// that branch's first entry. Which of them came first differs from device to
// device, so a place never leaves it; a [Head] says the same to everybody.
type Place struct {
	_        struct{} `cbor:",toarray"`
	Position Position
	Fork     Hash // zero for the branch that came first
}

// Compare orders places by position and then branch.
func (p Place) Compare(q Place) int {
	return cmp.Or(p.Position.Compare(q.Position), bytes.Compare(p.Fork[:], q.Fork[:]))
}

// CheckHeads says why heads are not a list of heads as entries and peers give
// them: each names an entry, and they are sorted by position and then hash. Of
// one epoch there may be several, where its device signed several histories.
func CheckHeads(heads []Head) error {
	for i, h := range heads {
		if err := h.Position.check(); err != nil {
			return fmt.Errorf("head %d: %w", i+1, err)
		}
		if h.Hash.IsZero() {
			return fmt.Errorf("head %d: no hash", i+1)
		}
		if i > 0 && heads[i-1].Compare(h) >= 0 {
			return fmt.Errorf("head %d: not sorted by position and hash", i+1)
		}
	}
	return nil
}
