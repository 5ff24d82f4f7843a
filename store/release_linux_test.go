package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/notebook"
	"noted/store"
)

// mapped is what this process holds of files, in KiB.
func mapped(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	_, err = fmt.Sscan(rest, &kib)
	must(t, err)
	return kib
}

// TestReleaseGivesBackTheFile reads everything, gives it back, and reads it
// again, also in a transaction during which it was given back.
func TestReleaseGivesBackTheFile(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "noted.db"), store.Options{})
	must(t, err)
	defer db.Close()
	const records, size = 400, 64 << 10
	value := bytes.Repeat([]byte("noted"), size/5)
	must(t, db.Update(func(tx *store.Tx) error {
		for n := range records {
			id := notebook.PageID{byte(n >> 8), byte(n)}
			if err := tx.Put(store.Shadows, id[:], value); err != nil {
				return err
			}
		}
		return nil
	}))
	read := func(tx *store.Tx) error {
		n := 0
		for r, err := range tx.All(store.Shadows, nil) {
			if err != nil || !bytes.Equal(r.Value, value) {
				return fmt.Errorf("record %x: %v", r.Key, err)
			}
			n++
		}
		if n != records {
			return fmt.Errorf("%d records", n)
		}
		return nil
	}
	const most = records * size >> 10
	must(t, db.Release())
	before := mapped(t)
	must(t, db.View(read))
	if grown := mapped(t) - before; grown < most*3/4 {
		t.Fatalf("reading %d KiB took %d of memory: nothing is tested", most, grown)
	}
	must(t, db.View(func(tx *store.Tx) error {
		if err := db.Release(); err != nil {
			return err
		}
		if grown := mapped(t) - before; grown > most/8 {
			t.Errorf("%d KiB are still held", grown)
		}
		return read(tx)
	}))
}
