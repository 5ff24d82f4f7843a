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
	return cmp.Or(p.compareChain(q), cmp.Compare(p.Seq, q.Seq))
}

// compareChain orders positions by device and epoch; those of one chain are equal.
func (p Position) compareChain(q Position) int {
	return cmp.Or(bytes.Compare(p.Device[:], q.Device[:]), bytes.Compare(p.Epoch[:], q.Epoch[:]))
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

// IsZero reports whether h is the zero value, which names no entry.
func (h Head) IsZero() bool { return h == Head{} }

// CheckHeads says why heads are not a list of heads as entries and peers give
// them: each names an entry, and they are sorted with one per device and epoch.
func CheckHeads(heads []Head) error {
	for i, h := range heads {
		if err := h.Position.check(); err != nil {
			return fmt.Errorf("head %d: %w", i+1, err)
		}
		if h.Hash.IsZero() {
			return fmt.Errorf("head %d: no hash", i+1)
		}
		if i > 0 && heads[i-1].Position.compareChain(h.Position) >= 0 {
			return fmt.Errorf("head %d: not sorted with one per device and epoch", i+1)
		}
	}
	return nil
}
