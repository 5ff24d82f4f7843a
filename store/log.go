package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"

	"noted/notebook"
)

// The log is three buckets that say the same thing three ways, so that an entry
// is found by its position, in the order of arrival, and by its page:
//
//	log    device ‖ epoch ‖ seq ( ‖ fork) → the entry, with its ordinal and page
//	order  ordinal                        → the key in log
//	pages  page ‖ ordinal                 → the key in log
//
// The fork is there only for entries of a branch that came after another one.
var (
	logBucket   = []byte("log")
	orderBucket = []byte("order")
	pagesBucket = []byte("pages")
)

const (
	positionSize = 32 + 16 + 8
	forkSize     = 32
	sigSize      = 64
	maxVoid      = 512 // bytes of the reason that an entry is void
)

// Stored is an entry as it is kept.
type Stored struct {
	Ordinal uint64 // its place in the order of arrival, from 1
	notebook.Place
	Page  notebook.PageID // zero for entries of no page
	Entry notebook.Entry
	Void  string // why it is void; empty if it is not
}

// ErrTaken is the error for an entry at whose place another one is.
var ErrTaken = errors.New("another entry is at this place")

// PutEntry adds an entry and returns its ordinal: one more than that of the
// entry before it, whatever its page or device. An entry that is already there is
// left as it is; a different one at its place is [ErrTaken]. A nil body
// means that it was dropped.
func (tx *Tx) PutEntry(at notebook.Place, page notebook.PageID, e notebook.Entry, void string) (uint64, error) {
	s := Stored{Place: at, Page: page, Entry: e, Void: void}
	if err := s.check(); err != nil {
		return 0, tx.fail(err)
	}
	there, err := tx.Entry(at)
	if err != nil {
		return 0, tx.fail(err)
	}
	if there != nil {
		if !bytes.Equal(there.Entry.Header, e.Header) || there.Page != page {
			return 0, tx.fail(fmt.Errorf("%v: %w", at.Position, ErrTaken))
		}
		return there.Ordinal, nil
	}
	order := tx.bucket(orderBucket)
	if s.Ordinal, err = tx.next(order); err != nil {
		return 0, err
	}
	key := placeKey(at)
	return s.Ordinal, errors.Join(
		tx.put(order, Number(s.Ordinal), seal(key)),
		tx.put(tx.bucket(pagesBucket), pageOrdinal(page, s.Ordinal), seal(key)),
		tx.put(tx.bucket(logBucket), key, s.encode()),
	)
}

// DropBody forgets the body of an entry, and why that was void, and keeps the rest.
func (tx *Tx) DropBody(at notebook.Place) error {
	return tx.alter(at, func(s *Stored) { s.Entry.Body, s.Void = nil, "" })
}

// SetVoid says anew why an entry is void; empty that it is not.
func (tx *Tx) SetVoid(at notebook.Place, void string) error {
	return tx.alter(at, func(s *Stored) { s.Void = void })
}

// alter changes what is kept beside the header of an entry.
func (tx *Tx) alter(at notebook.Place, change func(*Stored)) error {
	s, err := tx.Entry(at)
	if err != nil {
		return err
	}
	if s == nil {
		return tx.fail(fmt.Errorf("there is no entry at %v", at.Position))
	}
	change(s)
	if err := s.check(); err != nil {
		return tx.fail(err)
	}
	return tx.put(tx.bucket(logBucket), placeKey(at), s.encode())
}

// Entry returns the entry at a place, nil if there is none.
func (tx *Tx) Entry(at notebook.Place) (*Stored, error) {
	key := placeKey(at)
	value := tx.bucket(logBucket).Get(key)
	if value == nil {
		return nil, nil
	}
	s, err := decodeStored(key, value)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// LastOrdinal is the ordinal of the newest entry: how many there are.
func (tx *Tx) LastOrdinal() uint64 { return tx.bucket(orderBucket).Sequence() }

// Entries yields the entries in the order in which they arrived, beginning with
// the ordinal from. Since an entry is stored after what it has seen, no entry
// precedes its past. It ends with the first error.
func (tx *Tx) Entries(from uint64) iter.Seq2[Stored, error] {
	return tx.entries(orderBucket, nil, Number(from))
}

// PageEntries yields the entries of one page in the order in which they
// arrived; of the zero page, those of no page.
func (tx *Tx) PageEntries(page notebook.PageID) iter.Seq2[Stored, error] {
	return tx.entries(pagesBucket, page[:], page[:])
}

// entries follows an index from one of its keys as long as they begin with prefix.
func (tx *Tx) entries(index, prefix, from []byte) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		log := tx.bucket(logBucket)
		for key, sealed := range tx.walk(tx.bucket(index), from) {
			if !bytes.HasPrefix(key, prefix) {
				return
			}
			s, err := follow(log, key, sealed)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// follow finds the entry that a record of an index names.
func follow(log *bolt.Bucket, key, sealed []byte) (Stored, error) {
	if len(sealed) != 1+positionSize && len(sealed) != 1+positionSize+forkSize || sealed[0] != recordVersion {
		return Stored{}, fmt.Errorf("index record %x is not understood", clip(key))
	}
	at := sealed[1:]
	value := log.Get(at)
	if value == nil {
		return Stored{}, fmt.Errorf("index record %x names %x, which is not there", clip(key), at)
	}
	return decodeStored(at, value)
}

func (s *Stored) check() error {
	e := &s.Entry
	switch {
	case s.Position.Seq == 0:
		return errors.New("entries are counted from 1")
	case len(e.Header) == 0 || len(e.Header) > notebook.MaxHeader:
		return fmt.Errorf("a header of %d bytes", len(e.Header))
	case len(e.Sig) != sigSize:
		return fmt.Errorf("a signature of %d bytes", len(e.Sig))
	case len(e.Body) > notebook.MaxText:
		return fmt.Errorf("a body of %d bytes", len(e.Body))
	case len(s.Void) > maxVoid:
		return fmt.Errorf("a reason of %d bytes", len(s.Void))
	}
	return nil
}

// encode writes the record: version, ordinal, page, whether the body is
// here, signature, header and reason each after its length, body.
func (s *Stored) encode() []byte {
	e := &s.Entry
	b := make([]byte, 0, 1+8+pageKey+1+sigSize+2+len(e.Header)+2+len(s.Void)+len(e.Body))
	b = append(b, recordVersion)
	b = binary.BigEndian.AppendUint64(b, s.Ordinal)
	b = append(b, s.Page[:]...)
	b = append(b, 0)
	if e.Body != nil {
		b[len(b)-1] = 1
	}
	b = append(b, e.Sig...)
	for _, part := range [][]byte{e.Header, []byte(s.Void)} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(part)))
		b = append(b, part...)
	}
	return append(b, e.Body...)
}

// decodeStored reads what encode wrote, into memory of its own.
func decodeStored(key, value []byte) (Stored, error) {
	at, ok := parsePlace(key)
	pos := at.Position
	s := Stored{Place: at}
	if len(value) > 0 && value[0] != recordVersion {
		return Stored{}, fmt.Errorf("entry %v has a version that this program does not know; update noted", pos)
	}
	r := bytes.Clone(value)
	cut := func(n int) (part []byte) {
		if n > len(r) {
			ok, n = false, len(r)
		}
		part, r = r[:n:n], r[n:]
		return part
	}
	number := func(n int) (x uint64) {
		for _, c := range cut(n) {
			x = x<<8 | uint64(c)
		}
		return x
	}
	cut(1)
	s.Ordinal = number(8)
	copy(s.Page[:], cut(pageKey))
	here := number(1)
	s.Entry.Sig = cut(sigSize)
	s.Entry.Header = cut(int(number(2)))
	s.Void = string(cut(int(number(2))))
	if here == 1 {
		s.Entry.Body = r
	}
	if !ok || here > 1 || here == 0 && len(r) > 0 || s.Ordinal == 0 {
		return Stored{}, fmt.Errorf("entry %v is damaged", pos)
	}
	if err := s.check(); err != nil {
		return Stored{}, fmt.Errorf("entry %v is damaged: %w", pos, err)
	}
	return s, nil
}

func placeKey(at notebook.Place) []byte {
	p := at.Position
	b := make([]byte, 0, positionSize+forkSize)
	b = append(b, p.Device[:]...)
	b = append(b, p.Epoch[:]...)
	b = binary.BigEndian.AppendUint64(b, p.Seq)
	if !at.Fork.IsZero() {
		b = append(b, at.Fork[:]...)
	}
	return b
}

func parsePlace(key []byte) (at notebook.Place, ok bool) {
	if len(key) != positionSize && len(key) != positionSize+forkSize {
		return at, false
	}
	p := &at.Position
	copy(p.Device[:], key)
	copy(p.Epoch[:], key[32:])
	p.Seq = binary.BigEndian.Uint64(key[32+16:])
	copy(at.Fork[:], key[positionSize:])
	return at, len(key) == positionSize || !at.Fork.IsZero()
}

func pageOrdinal(page notebook.PageID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(page[:], n)
}
