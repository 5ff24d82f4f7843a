package store_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

// bloated makes a store of which most is free.
func bloated(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := store.Open(path, store.Options{})
	must(t, err)
	must(t, db.Update(func(tx *store.Tx) error {
		for i := range uint64(10) {
			pos, e := entry(1, i+1, strings.Repeat("x", 1<<20))
			if _, err := tx.PutEntry(pos, notebook.PageID{1}, e, ""); err != nil {
				return err
			}
		}
		_, err := tx.Append(store.Ledger, []byte("run"))
		return err
	}))
	must(t, db.Update(func(tx *store.Tx) error {
		for i := range uint64(9) {
			pos, _ := entry(1, i+1, "")
			if err := tx.DropBody(pos); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, db.Close())
	return path
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %o", info.Mode().Perm())
	}
	return info.Size()
}

func TestOpenCompactsAMostlyFreeFile(t *testing.T) {
	path := bloated(t)
	must(t, os.WriteFile(path+".compact", []byte("from a crash"), 0o600))
	before := size(t, path)
	var log bytes.Buffer
	db, err := store.Open(path, store.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	if after := size(t, path); after > before/2 {
		t.Errorf("%d bytes became %d", before, after)
	}
	if !strings.Contains(log.String(), "compacted") {
		t.Errorf("the log says %q", log.String())
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("left are %v", files)
	}
	if _, err := store.Open(path, store.Options{Timeout: 1}); err == nil {
		t.Error("the new file is not locked")
	}
	must(t, db.Update(func(tx *store.Tx) error {
		n, err := tx.Append(store.Ledger, nil)
		if n != 2 {
			t.Errorf("the number after 1 is %d", n)
		}
		return err
	}))
	must(t, db.Update(put(store.Infos, page(1), "after")))
	storetest.Check(t, db)
	must(t, db.Close())

	db = storetest.OpenAt(t, path)
	if got := get(t, db, store.Infos, page(1)); string(got) != "after" {
		t.Errorf("what was written after the compaction reads %q", got)
	}
	must(t, db.View(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if want := map[bool]int{true: 1 << 20, false: 0}[s.Ordinal == 10]; err != nil || len(s.Entry.Body) != want {
				t.Errorf("entry %d has %d bytes, %v", s.Ordinal, len(s.Entry.Body), err)
			}
		}
		return nil
	}))
}

func TestOpenLeavesAFullFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := store.Open(path, store.Options{})
	must(t, err)
	must(t, db.Update(func(tx *store.Tx) error {
		for n := range 100 {
			if err := tx.Put(store.Infos, page(n), bytes.Repeat([]byte("x"), 150<<10)); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, db.Update(func(tx *store.Tx) error {
		for n := range 40 { // more than is worth a compaction, less than half
			if err := tx.Delete(store.Infos, page(n)); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, db.Close())
	before, err := os.Stat(path)
	must(t, err)
	storetest.OpenAt(t, path)
	after, err := os.Stat(path)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("it was compacted")
	}
}

func TestACompactionThatFailsKeepsTheFile(t *testing.T) {
	path := bloated(t)
	before := size(t, path)
	must(t, os.MkdirAll(filepath.Join(path+".compact", "in the way"), 0o700))
	var log bytes.Buffer
	db, err := store.Open(path, store.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	defer db.Close()
	if !strings.Contains(log.String(), "not compacted") {
		t.Errorf("the log says %q", log.String())
	}
	if after := size(t, path); after != before {
		t.Errorf("%d bytes became %d", before, after)
	}
	must(t, db.Update(put(store.Infos, page(1), "after")))
	storetest.Check(t, db)
	must(t, db.View(func(tx *store.Tx) error {
		if n := tx.LastOrdinal(); n != 10 {
			t.Errorf("%d entries are left", n)
		}
		return nil
	}))
}
