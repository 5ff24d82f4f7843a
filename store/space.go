package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// Space is one of the file's key spaces, each with its own shape of keys.
type Space uint8

const (
	Meta      Space = 1 + iota // short names: what the home is
	Chains                     // package trust's own records, by its keys
	Infos                      // page id → what a listing shows
	Shadows                    // page id → shadow
	Registers                  // page id → registers
	OwnFences                  // page id → own fences
	Results                    // fence id, device → newest result
	Outcomes                   // number of a run in the ledger → how it went
	Decisions                  // package trust's records of approvals and asks, by its keys
	Ledger                     // number → record of a run; only ever added to
	Clients                    // hash of a token → its client
	Peers                      // device → what is known of it
	Lost                       // page id → what this device is to write there again
	Foreign                    // number → digests of text that others had here, and of what was typed first; only ever added to
	Quotas                     // device → how much of its log is kept, and may be
	Notices                    // page id → what of it a person was told
	Kept                       // which runs are kept, and what they were handed: see package daemon
)

const (
	pageKey   = 16
	resultKey = 16 + 32
	hashKey   = 32
	numberKey = 8

	maxKey = 128 // bytes of a key whose length is free
)

// shape is what all keys of a space have in common.
type shape struct {
	name     string
	key      int  // bytes; 0: one to maxKey
	numbered bool // keys are the numbers that Append gave, gapless, and records stay as they are
}

var shapes = [...]shape{
	Meta:      {name: "meta"},
	Chains:    {name: "chains"},
	Infos:     {name: "infos", key: pageKey},
	Shadows:   {name: "shadows", key: pageKey},
	Registers: {name: "registers", key: pageKey},
	OwnFences: {name: "own fences", key: pageKey},
	Results:   {name: "results", key: resultKey},
	Outcomes:  {name: "outcomes", key: numberKey},
	Decisions: {name: "decisions"},
	Ledger:    {name: "ledger", key: numberKey, numbered: true},
	Clients:   {name: "clients", key: hashKey},
	Peers:     {name: "peers", key: hashKey},
	Lost:      {name: "lost", key: pageKey},
	Foreign:   {name: "foreign text", key: numberKey, numbered: true},
	Quotas:    {name: "quotas", key: hashKey},
	Notices:   {name: "notices", key: pageKey},
	Kept:      {name: "kept"},
}

// ownBucket holds what the file says of itself.
var (
	ownBucket = []byte("store")
	schemaKey = []byte("schema")
)

// buckets are the names of all buckets but ownBucket.
func buckets() [][]byte {
	names := [][]byte{logBucket, orderBucket, pagesBucket}
	for _, s := range shapes[1:] {
		names = append(names, []byte(s.name))
	}
	return names
}

func (s Space) String() string {
	if s == 0 || int(s) >= len(shapes) {
		return fmt.Sprintf("space %d", uint8(s))
	}
	return shapes[s].name
}

func (s Space) check(key []byte) error {
	if s == 0 || int(s) >= len(shapes) {
		return fmt.Errorf("there is no %v", s)
	}
	if want := shapes[s].key; len(key) == 0 || len(key) > maxKey || want != 0 && len(key) != want {
		return fmt.Errorf("%x is not a key of %v", clip(key), s)
	}
	return nil
}

func clip(key []byte) []byte { return key[:min(len(key), maxKey)] }

// Number is the key of the record with number n, in the spaces whose keys are numbers.
func Number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Record is a key and its value.
type Record struct{ Key, Value []byte }

// Number is the number that the key of a record stands for, where keys are numbers.
func (r Record) Number() uint64 {
	if len(r.Key) != numberKey {
		return 0
	}
	return binary.BigEndian.Uint64(r.Key)
}

// recordVersion is the first byte of every value in a space.
const recordVersion = 1

func seal(value []byte) []byte {
	return append(append(make([]byte, 0, 1+len(value)), recordVersion), value...)
}

// unseal is the value of a record, still bbolt's.
func (s Space) unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != recordVersion {
		return nil, fmt.Errorf("record %x of %v has a version that this program does not know; update noted", clip(key), s)
	}
	return sealed[1:], nil
}

// Get returns a copy of the value at key, nil if there is none. The error says
// that the key has not the shape of the space, or that a newer version wrote
// the record.
func (tx *Tx) Get(s Space, key []byte) ([]byte, error) {
	if err := s.check(key); err != nil {
		return nil, err
	}
	sealed := tx.bucket([]byte(s.String())).Get(key)
	if sealed == nil {
		return nil, nil
	}
	value, err := s.unseal(key, sealed)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), nil
}

// Put sets the value at key. Records of a numbered space are never replaced.
func (tx *Tx) Put(s Space, key, value []byte) error {
	b, err := tx.change(s, key)
	if err != nil {
		return err
	}
	return tx.put(b, bytes.Clone(key), seal(value))
}

// Delete removes the value at key, if there is one. Those of a numbered space stay.
func (tx *Tx) Delete(s Space, key []byte) error {
	b, err := tx.change(s, key)
	if err != nil {
		return err
	}
	return tx.delete(b, key)
}

func (tx *Tx) change(s Space, key []byte) (*bolt.Bucket, error) {
	if err := s.check(key); err != nil {
		return nil, tx.fail(err)
	}
	if shapes[s].numbered {
		return nil, tx.fail(fmt.Errorf("records of %v are only ever added", s))
	}
	return tx.bucket([]byte(s.String())), nil
}

// Append adds a record to the ledger or the foreign text under the number after
// its last, and returns that number. The first is 1. No other space is numbered.
func (tx *Tx) Append(s Space, value []byte) (uint64, error) {
	if err := s.check(make([]byte, numberKey)); err != nil || !shapes[s].numbered {
		return 0, tx.fail(fmt.Errorf("%v is not numbered", s))
	}
	b := tx.bucket([]byte(s.String()))
	n, err := tx.next(b)
	if err != nil {
		return 0, err
	}
	return n, tx.put(b, Number(n), seal(value))
}

// Last is the number that Append gave last, 0 if it gave none.
func (tx *Tx) Last(s Space) (uint64, error) {
	if s == 0 || int(s) >= len(shapes) || !shapes[s].numbered {
		return 0, fmt.Errorf("%v is not numbered", s)
	}
	return tx.bucket([]byte(s.String())).Sequence(), nil
}

// All yields copies of the records whose keys begin with prefix, in the order
// of the keys. The loop may change the space. It ends with the first error.
func (tx *Tx) All(s Space, prefix []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for key, sealed := range tx.walk(tx.bucket([]byte(s.String())), prefix) {
			if !bytes.HasPrefix(key, prefix) {
				return
			}
			value, err := s.unseal(key, sealed)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(Record{Key: bytes.Clone(key), Value: append([]byte{}, value...)}, nil) {
				return
			}
		}
	}
}
