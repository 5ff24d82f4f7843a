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
	texts   map[string]string
	asks    map[uint64]string
	numbers uint64
	entries []store.Stored
	at      map[notebook.Position]int
}

func (m *model) clone() *model {
	c := &model{texts: map[string]string{}, asks: map[uint64]string{}, numbers: m.numbers, at: map[notebook.Position]int{}}
	for k, v := range m.texts {
		c.texts[k] = v
	}
	for k, v := range m.asks {
		c.asks[k] = v
	}
	for k, v := range m.at {
		c.at[k] = v
	}
	c.entries = append(c.entries, m.entries...)
	return c
}

// step does one random thing to a transaction and to the model.
func (m *model) step(t *rapid.T, tx *store.Tx) error {
	value := rapid.StringN(0, 40, 300).Draw(t, "value")
	key := page(rapid.IntRange(0, 5).Draw(t, "page"))
	ask := rapid.Uint64Range(1, 6).Draw(t, "ask")
	pos, e := entry(byte(rapid.IntRange(1, 2).Draw(t, "device")), rapid.Uint64Range(1, 6).Draw(t, "seq"), value)
	_, there := m.at[pos]
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0, 1:
		m.texts[string(key)] = value
		return tx.Put(store.Texts, key, []byte(value))
	case 2:
		delete(m.texts, string(key))
		return tx.Delete(store.Texts, key)
	case 3:
		m.numbers++
		m.asks[m.numbers] = value
		n, err := tx.Append(store.Asks, []byte(value))
		if n != m.numbers {
			t.Fatalf("number %d, not %d", n, m.numbers)
		}
		return err
	case 4:
		delete(m.asks, ask)
		return tx.Delete(store.Asks, store.Number(ask))
	case 5:
		if !there {
			m.at[pos] = len(m.entries)
			m.entries = append(m.entries, store.Stored{
				Ordinal: uint64(len(m.entries) + 1), Position: pos, Page: notebook.PageID(key), Entry: e, Void: value[:0],
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

// same fails the test where the store is not what the model says.
func (m *model) same(t *rapid.T, db *store.DB) {
	texts, asks := map[string]string{}, map[uint64]string{}
	var entries []store.Stored
	paged := 0
	err := db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Texts, nil) {
			if err != nil {
				return err
			}
			texts[string(r.Key)] = string(r.Value)
		}
		for r, err := range tx.Newest(store.Asks) {
			if err != nil {
				return err
			}
			asks[r.Number()] = string(r.Value)
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
	if got, want := fmt.Sprint(texts, asks, entries, paged), fmt.Sprint(m.texts, m.asks, m.entries, len(m.entries)); got != want {
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
					return errNo
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
