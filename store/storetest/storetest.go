// Package storetest opens stores for tests, and checks them when the test ends.
package storetest

import (
	"path/filepath"
	"testing"

	"noted/store"
)

// Open opens a new store that lives as long as the test. At its end the store
// is checked and closed.
func Open(t testing.TB) *store.DB {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "noted.db"))
}

// OpenAt is [Open] for the file at path.
func OpenAt(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Check(t, db)
		if err := db.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return db
}

// Check fails the test for everything that the store finds wrong with itself.
func Check(t testing.TB, db *store.DB) {
	t.Helper()
	for err := range db.Check() {
		t.Errorf("the store is damaged: %v", err)
	}
}
