package store

import (
	"bytes"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// Tx is a transaction. It belongs to the function that got it and ends with it.
type Tx struct {
	bolt     *bolt.Tx
	writable bool
	failed   error // the first write that failed
	writes   int   // counts, so that a walk knows when to find its place again
	old      []change
}

// change is what one write replaced.
type change struct {
	bucket *bolt.Bucket
	key    []byte // nil: the bucket's sequence
	value  []byte // nil: there was none
	seq    uint64
}

func (tx *Tx) end() { tx.bolt = nil }

func (tx *Tx) bucket(name []byte) *bolt.Bucket {
	if tx.bolt == nil {
		panic("store: the transaction is over")
	}
	return tx.bolt.Bucket(name)
}

// put writes one value. The transaction keeps key and value; bbolt's old value
// stays readable until the transaction is committed.
func (tx *Tx) put(b *bolt.Bucket, key, value []byte) error {
	old := b.Get(key)
	if err := b.Put(key, value); err != nil {
		return tx.fail(err)
	}
	tx.note(change{bucket: b, key: key, value: old})
	return nil
}

func (tx *Tx) delete(b *bolt.Bucket, key []byte) error {
	old := b.Get(key)
	if err := b.Delete(key); err != nil {
		return tx.fail(err)
	}
	if old != nil {
		tx.note(change{bucket: b, key: bytes.Clone(key), value: old})
	}
	return nil
}

// next is the number after the highest that b ever had.
func (tx *Tx) next(b *bolt.Bucket) (uint64, error) {
	old := b.Sequence()
	n, err := b.NextSequence()
	if err != nil {
		return 0, tx.fail(err)
	}
	tx.note(change{bucket: b, seq: old})
	return n, nil
}

func (tx *Tx) note(c change) {
	tx.old = append(tx.old, c)
	tx.writes++
}

func (tx *Tx) fail(err error) error {
	if tx.failed == nil {
		tx.failed = fmt.Errorf("cannot write to the store: %w", err)
	}
	return err
}

// undo takes back every write, the last one first.
func (tx *Tx) undo() error {
	for len(tx.old) > 0 {
		c := tx.old[len(tx.old)-1]
		tx.old = tx.old[:len(tx.old)-1]
		var err error
		switch {
		case c.key == nil:
			err = c.bucket.SetSequence(c.seq)
		case c.value == nil:
			err = c.bucket.Delete(c.key)
		default:
			err = c.bucket.Put(c.key, c.value)
		}
		if err != nil {
			return fmt.Errorf("cannot take an update back: %w", err)
		}
	}
	return nil
}

// walk yields the keys of b from the first that is not below from, as bbolt
// owns them. The function that it is ranged over in may write to b.
func (tx *Tx) walk(b *bolt.Bucket, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		c := b.Cursor()
		key, value := c.Seek(from)
		for key != nil {
			last, writes := key, tx.writes
			if tx.writable {
				last = bytes.Clone(key)
			}
			if !yield(key, value) {
				return
			}
			if tx.writes == writes {
				key, value = c.Next()
			} else if key, value = c.Seek(last); bytes.Equal(key, last) {
				key, value = c.Next()
			}
		}
	}
}
