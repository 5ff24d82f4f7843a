package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
	"noted/store"
)

// model is what a store should hold, as plain maps.
type model struct {
	infos   map[string]string
	runs    []string // of the ledger, from number 1
	entries []store.Stored
	at      map[notebook.Place]int
}

func (m *model) clone() *model {
	c := &model{infos: map[string]string{}, at: map[notebook.Place]int{}}
	for k, v := range m.infos {
		c.infos[k] = v
	}
	for k, v := range m.at {
		c.at[k] = v
	}
	c.runs = append(c.runs, m.runs...)
	c.entries = append(c.entries, m.entries...)
	return c
}

// step does one random thing to a transaction and to the model.
func (m *model) step(t *rapid.T, tx *store.Tx) error {
	value := rapid.StringN(0, 40, 300).Draw(t, "value")
	key := page(rapid.IntRange(0, 5).Draw(t, "page"))
	pos, e := entry(byte(rapid.IntRange(1, 2).Draw(t, "device")), rapid.Uint64Range(1, 6).Draw(t, "seq"), value)
	_, there := m.at[pos]
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0, 1:
		m.infos[string(key)] = value
		return tx.Put(store.Infos, key, []byte(value))
	case 2:
		delete(m.infos, string(key))
		return tx.Delete(store.Infos, key)
	case 3:
		m.runs = append(m.runs, value)
		n, err := tx.Append(store.Ledger, []byte(value))
		if n != uint64(len(m.runs)) {
			t.Fatalf("number %d, not %d", n, len(m.runs))
		}
		return err
	case 4:
		if !there {
			m.at[pos] = len(m.entries)
			m.entries = append(m.entries, store.Stored{
				Ordinal: uint64(len(m.entries) + 1), Place: pos, Page: notebook.PageID(key), Entry: e, Void: value[:0],
			})
		}
		n, err := tx.PutEntry(pos, m.entries[m.at[pos]].Page, e, "")
		if want := uint64(m.at[pos] + 1); n != want {
			t.Fatalf("ordinal %d, not %d", n, want)
		}
		return err
	default:
		if !there {
			return nil
		}
		m.entries[m.at[pos]].Entry.Body = nil
		return tx.DropBody(pos)
	}
}

// spoil is something that no update gets away with, whatever it did before and
// whether or not it minds the error.
func spoil(t *rapid.T, tx *store.Tx) error {
	run := store.Number(rapid.Uint64Range(1, 6).Draw(t, "run"))
	switch rapid.IntRange(0, 2).Draw(t, "spoil") {
	case 0:
		return errNo
	case 1:
		_ = tx.Put(store.Ledger, run, []byte("another run"))
	default:
		_ = tx.Delete(store.Ledger, run)
	}
	return nil
}

// same fails the test where the store is not what the model says.
func (m *model) same(t *rapid.T, db *store.DB) {
	infos := map[string]string{}
	var runs []string
	var entries []store.Stored
	paged := 0
	err := db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Infos, nil) {
			if err != nil {
				return err
			}
			infos[string(r.Key)] = string(r.Value)
		}
		for r, err := range tx.All(store.Ledger, nil) {
			if err != nil {
				return err
			}
			if runs = append(runs, string(r.Value)); r.Number() != uint64(len(runs)) {
				t.Fatalf("record %d of the ledger has number %d", len(runs), r.Number())
			}
		}
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			entries = append(entries, s)
		}
		for n := range 6 {
			for s, err := range tx.PageEntries(notebook.PageID(page(n))) {
				if err != nil {
					return err
				}
				if s.Page != notebook.PageID(page(n)) {
					t.Fatalf("page %d has an entry of %v", n, s.Page)
				}
				paged++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%q %q %v %d", infos, runs, entries, paged), fmt.Sprintf("%q %q %v %d", m.infos, m.runs, m.entries, len(m.entries)); got != want {
		t.Fatalf("the store holds\n%s\nand should hold\n%s", got, want)
	}
	for err := range db.Check() {
		t.Fatal(err)
	}
}

func TestAStoreIsWhatItsUpdatesMadeIt(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "noted.db")
		_ = os.Remove(path)
		db, err := store.Open(path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		m := (&model{}).clone()
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			next := m.clone()
			fails := rapid.IntRange(0, 3).Draw(t, "fails") == 0
			err := db.Update(func(tx *store.Tx) error {
				for range rapid.IntRange(1, 6).Draw(t, "steps") {
					if err := next.step(t, tx); err != nil {
						return err
					}
				}
				if fails {
					return spoil(t, tx)
				}
				return nil
			})
			if fails != (err != nil) {
				t.Fatal(err)
			}
			if !fails {
				m = next
			}
			if rapid.IntRange(0, 5).Draw(t, "reopen") == 0 {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if db, err = store.Open(path, store.Options{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.same(t, db)
	})
}
