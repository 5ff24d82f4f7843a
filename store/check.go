package store

import (
	"bytes"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// Check yields everything that is wrong with the file as of now: keys and
// versions that have no business there, indexes that disagree with the log,
// and the structure of the pages. An intact store yields nothing. It reads the
// whole file.
func (db *DB) Check() iter.Seq[error] {
	return func(yield func(error) bool) {
		err := db.bolt.View(func(tx *bolt.Tx) error {
			c := &checker{tx: tx, yield: yield}
			c.run()
			return nil
		})
		if err != nil {
			yield(err)
		}
	}
}

type checker struct {
	tx    *bolt.Tx
	yield func(error) bool
	over  bool // nobody listens any more
}

func (c *checker) report(format string, args ...any) {
	if !c.over && !c.yield(fmt.Errorf(format, args...)) {
		c.over = true
	}
}

func (c *checker) run() {
	// What cannot be read is found here, before bbolt's own check reads it in a
	// goroutine where a fault would end the process.
	if !c.readable() {
		return
	}
	for s := range shapes {
		if s > 0 {
			c.space(Space(s))
		}
	}
	c.log()
	c.index(orderBucket, numberKey, func(key []byte, e Stored) bool {
		return bytes.Equal(key, Number(e.Ordinal))
	})
	c.index(pagesBucket, pageKey+numberKey, func(key []byte, e Stored) bool {
		return bytes.Equal(key, pageOrdinal(e.Page, e.Ordinal))
	})
	if n, last := count(c.tx.Bucket(orderBucket)), c.tx.Bucket(orderBucket).Sequence(); n != last {
		c.report("the order holds %d entries and has numbered %d", n, last)
	}
	for err := range c.tx.Check() { // to its end, which its goroutine waits for
		c.report("structure: %w", err)
	}
}

// readable looks up everything once, and looks for buckets: a missing one, or
// one that is not known.
func (c *checker) readable() bool {
	wrong, missing, err := survey(c.tx)
	if err != nil {
		c.report("the file cannot be read: %w", err)
		return false
	}
	for _, text := range wrong {
		c.report("%s", text)
	}
	for name := range missing {
		c.report("bucket %q is missing", name)
	}
	return len(missing) == 0
}

func survey(tx *bolt.Tx) (wrong []string, missing map[string]bool, err error) {
	defer rescue(tx.DB().Path(), &err)()
	missing = map[string]bool{string(ownBucket): true}
	for _, name := range buckets() {
		missing[string(name)] = true
	}
	err = tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		if b == nil || !missing[string(name)] {
			wrong = append(wrong, fmt.Sprintf("unknown bucket %q", clip(name)))
		}
		if b == nil {
			return nil
		}
		delete(missing, string(name))
		find := b.Cursor()
		return b.ForEach(func(key, value []byte) error {
			if found, _ := find.Seek(key); !bytes.Equal(found, key) {
				wrong = append(wrong, fmt.Sprintf("bucket %q holds %x, which is not found there", clip(name), clip(key)))
			}
			if value == nil {
				wrong = append(wrong, fmt.Sprintf("bucket %q holds a bucket %x", clip(name), clip(key)))
			}
			return nil
		})
	})
	return wrong, missing, err
}

// space checks the keys and versions of one space.
func (c *checker) space(s Space) {
	b := c.tx.Bucket([]byte(s.String()))
	n := uint64(0)
	_ = b.ForEach(func(key, value []byte) error {
		n++
		if err := s.check(key); err != nil {
			c.report("%w", err)
		} else if number := (Record{Key: key}).Number(); shapes[s].numbered && (number == 0 || number > b.Sequence()) {
			c.report("%v has a record %d and has numbered %d", s, number, b.Sequence())
		}
		if _, err := s.unseal(key, value); err != nil {
			c.report("%w", err)
		}
		return nil
	})
	if shapes[s].numbered && n != b.Sequence() {
		c.report("%v holds %d records and has numbered %d", s, n, b.Sequence())
	}
}

// log checks that every entry is well formed and in both indexes.
func (c *checker) log() {
	order, pages := c.tx.Bucket(orderBucket), c.tx.Bucket(pagesBucket)
	_ = c.tx.Bucket(logBucket).ForEach(func(key, value []byte) error {
		e, err := decodeStored(key, value)
		if err != nil {
			c.report("%w", err)
			return nil
		}
		want := seal(key)
		if !bytes.Equal(order.Get(Number(e.Ordinal)), want) {
			c.report("entry %v is not in the order at %d", e.Position, e.Ordinal)
		}
		if !bytes.Equal(pages.Get(pageOrdinal(e.Page, e.Ordinal)), want) {
			c.report("entry %v is not among those of page %v", e.Position, e.Page)
		}
		return nil
	})
}

// index checks that every record of an index names an entry that belongs there.
func (c *checker) index(name []byte, size int, belongs func(key []byte, e Stored) bool) {
	log := c.tx.Bucket(logBucket)
	_ = c.tx.Bucket(name).ForEach(func(key, value []byte) error {
		e, err := follow(log, key, value)
		switch {
		case err != nil:
			c.report("%s: %w", name, err)
		case len(key) != size || !belongs(key, e):
			c.report("%s: record %x names entry %v, which says otherwise", name, clip(key), e.Position)
		}
		return nil
	})
}

func count(b *bolt.Bucket) (n uint64) {
	_ = b.ForEach(func([]byte, []byte) error { n++; return nil })
	return n
}
