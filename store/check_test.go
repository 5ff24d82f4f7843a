package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"noted/notebook"
	"noted/store"
)

// sample makes a store with something in every kind of bucket.
func sample(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := store.Open(path, store.Options{})
	must(t, err)
	must(t, db.Update(func(tx *store.Tx) error {
		for i := range uint64(3) {
			pos, e := entry(1, i+1, strings.Repeat("body ", 200))
			if _, err := tx.PutEntry(pos, notebook.PageID{5}, e, ""); err != nil {
				return err
			}
			if _, err := tx.Append(store.Ledger, []byte("run")); err != nil {
				return err
			}
			if err := tx.Put(store.Outcomes, store.Number(i+1), []byte("done")); err != nil {
				return err
			}
		}
		return errors.Join(
			tx.Put(store.Infos, page(1), []byte("info")),
			tx.Put(store.Meta, []byte("name"), []byte("laptop")),
			tx.Put(store.Decisions, []byte("ask"), []byte("waits")),
		)
	}))
	must(t, db.Close())
	return path
}

func findings(t *testing.T, path string) (all []string) {
	t.Helper()
	db, err := store.Open(path, store.Options{})
	must(t, err)
	defer db.Close()
	for err := range db.Check() {
		all = append(all, err.Error())
	}
	return all
}

func TestCheckFindsDamage(t *testing.T) {
	if all := findings(t, sample(t)); all != nil {
		t.Fatalf("an intact store: %q", all)
	}
	pos, _ := entry(1, 2, "")
	key := append(append(append([]byte{}, pos.Position.Device[:]...), pos.Position.Epoch[:]...), store.Number(pos.Position.Seq)...)
	at := func(n uint64) []byte { return append(bytes.Clone(page(5<<8)), store.Number(n)...) }

	first := func(bucket string, change func(value []byte) []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(bucket))
			k, v := b.Cursor().First()
			return b.Put(k, change(bytes.Clone(v)))
		}
	}
	putRaw := func(bucket string, key, value []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, value) }
	}
	remove := func(bucket string, key []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			if b := tx.Bucket([]byte(bucket)); b.Get(key) == nil {
				return errors.New("nothing to damage")
			}
			return tx.Bucket([]byte(bucket)).Delete(key)
		}
	}
	version := func(v []byte) []byte { v[0]++; return v }

	for _, c := range []struct {
		name   string
		damage func(*bolt.Tx) error
		want   string
	}{
		{"key of a page too short", putRaw("infos", []byte("short"), []byte{1}), "is not a key of infos"},
		{"record of a newer version", first("infos", version), "a version that this program does not know"},
		{"record without a version", putRaw("infos", page(2), nil), "a version that this program does not know"},
		{"name of the home of a newer version", first("meta", version), "a version that this program does not know"},
		{"decision of a newer version", first("decisions", version), "of decisions has a version that this program does not know"},
		{"decision under a key too long", putRaw("decisions", make([]byte, 129), []byte{1}), "is not a key of decisions"},
		{"outcome of a newer version", first("outcomes", version), "of outcomes has a version that this program does not know"},
		{"outcome under a key too short", putRaw("outcomes", []byte{1}, []byte{1}), "is not a key of outcomes"},
		{"run of a newer version", first("ledger", version), "of ledger has a version that this program does not know"},
		{"number never given", putRaw("ledger", store.Number(9), []byte{1}), "ledger has a record 9"},
		{"number zero", putRaw("ledger", store.Number(0), []byte{1}), "ledger has a record 0"},
		{"number never given in place of one that was", func(tx *bolt.Tx) error {
			return errors.Join(remove("ledger", store.Number(2))(tx), putRaw("ledger", store.Number(9), []byte{1})(tx))
		}, "ledger has a record 9"},
		{"hole in the ledger", remove("ledger", store.Number(2)), "ledger holds 2 records and has numbered 3"},
		{"end of the ledger cut off", remove("ledger", store.Number(3)), "ledger holds 2 records and has numbered 3"},
		{"entry gone", remove("log", key), "which is not there"},
		{"entry of a newer version", first("log", version), "a version that this program does not know"},
		{"entry cut short", first("log", func(v []byte) []byte { return v[:50] }), "is damaged"},
		{"entry with another ordinal", first("log", func(v []byte) []byte {
			binary.BigEndian.PutUint64(v[1:], 7)
			return v
		}), "is not in the order at 7"},
		{"entry with another page", first("log", func(v []byte) []byte { v[9]++; return v }), "is not among those of page"},
		{"entry with a body that is not there", first("log", func(v []byte) []byte { v[25] = 0; return v }), "is damaged"},
		{"entry under a short key", func(tx *bolt.Tx) error {
			_, v := tx.Bucket([]byte("log")).Cursor().First()
			return tx.Bucket([]byte("log")).Put([]byte("short"), bytes.Clone(v))
		}, "is damaged"},
		{"order without an entry", remove("order", store.Number(2)), "is not in the order at 2"},
		{"order that names nothing", first("order", func(v []byte) []byte { v[1]++; return v }), "which is not there"},
		{"order that names another", first("order", func(v []byte) []byte { v[56]++; return v }), "which says otherwise"},
		{"order of a newer version", first("order", version), "is not understood"},
		{"order that counts wrong", func(tx *bolt.Tx) error { return tx.Bucket([]byte("order")).SetSequence(9) }, "has numbered 9"},
		{"page without an entry", remove("pages", at(2)), "is not among those of page"},
		{"page with an entry of another", func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("pages"))
			other := at(2)
			other[0]++
			return b.Put(other, bytes.Clone(b.Get(at(2))))
		}, "which says otherwise"},
		{"unknown bucket", func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err }, "unknown bucket"},
		{"bucket in a bucket", func(tx *bolt.Tx) error {
			_, err := tx.Bucket([]byte("infos")).CreateBucket(page(9))
			return err
		}, "holds a bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := sample(t)
			edit(t, path, c.damage)
			all := findings(t, path)
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("found %q, not %q", all, c.want)
			}
		})
	}
}

// The pages of the file themselves: what bbolt's own check finds, and what
// would end the process there.
func TestCheckFindsDamagedPages(t *testing.T) {
	for name, c := range map[string]struct {
		offset int64 // of a branch or leaf page's header: id 8, flags 2, count 2, overflow 4
		bytes  []byte
	}{
		"unknown kind of page":        {8, []byte{0x40, 0}},
		"child far past the end":      {16 + 8, []byte{0, 0, 0, 0, 0, 1, 0, 0}},
		"endless number of keys":      {10, []byte{0xff, 0xff}},
		"key past the end of the map": {16 + 0, []byte{0xff, 0xff, 0xff, 0x60}},
		"key of two gibibytes":        {16 + 4, []byte{0xff, 0xff, 0xff, 0x7f}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "noted.db")
			db, err := store.Open(path, store.Options{})
			must(t, err)
			must(t, db.Update(func(tx *store.Tx) error {
				for i := range 500 {
					if err := tx.Put(store.Infos, page(i), bytes.Repeat([]byte("x"), 100)); err != nil {
						return err
					}
				}
				return nil
			}))
			must(t, db.Close())
			file, err := os.ReadFile(path)
			must(t, err)
			damaged := 0
			for at := int64(2 * 4096); at < int64(len(file)); at += 4096 {
				if id := binary.LittleEndian.Uint64(file[at:]); id == uint64(at/4096) && file[at+8] == 1 { // a branch page
					copy(file[at+c.offset:], c.bytes)
					damaged++
				}
			}
			if damaged == 0 {
				t.Fatal("there is nothing to damage")
			}
			must(t, os.WriteFile(path, file, 0o600))
			db, err = store.Open(path, store.Options{})
			if err != nil {
				t.Logf("found when it was opened: %v", err)
				return
			}
			defer db.Close()
			n := 0
			for err := range db.Check() {
				t.Log(err)
				n++
			}
			if n == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func TestCheckStopsWhenNobodyListens(t *testing.T) {
	path := sample(t)
	edit(t, path, func(tx *bolt.Tx) error {
		for i := range byte(20) {
			if err := tx.Bucket([]byte("infos")).Put([]byte{i}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	db, err := store.Open(path, store.Options{})
	must(t, err)
	for range db.Check() {
		break
	}
	must(t, db.Close()) // waits for the check's transaction
}
