package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

var errNo = errors.New("no")

// page is the key of the nth page.
func page(n int) []byte {
	id := notebook.PageID{byte(n >> 8), byte(n)}
	return id[:]
}

func put(s store.Space, key []byte, value string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Put(s, key, []byte(value)) }
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, db *store.DB, s store.Space, key []byte) (value []byte) {
	t.Helper()
	must(t, db.View(func(tx *store.Tx) (err error) {
		value, err = tx.Get(s, key)
		return err
	}))
	return value
}

// entry makes the seq-th entry of device d; its bytes are arbitrary to the store.
func entry(d byte, seq uint64, body string) (notebook.Place, notebook.Entry) {
	pos := notebook.Place{Position: notebook.Position{Device: notebook.DeviceID{d}, Epoch: notebook.Epoch{d, 1}, Seq: seq}}
	return pos, notebook.Entry{
		Header: fmt.Appendf(nil, "header of %v", pos),
		Sig:    bytes.Repeat([]byte{d}, 64),
		Body:   []byte(body),
	}
}

func TestRecordsSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := store.Open(path, store.Options{})
	must(t, err)
	must(t, db.Update(func(tx *store.Tx) error {
		return errors.Join(
			tx.Put(store.Infos, page(1), []byte("one")),
			tx.Put(store.Infos, page(2), nil),
			tx.Put(store.Meta, []byte("name"), []byte("laptop")),
		)
	}))
	must(t, db.Close())

	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %o", info.Mode().Perm())
	}
	db = storetest.OpenAt(t, path)
	if got := get(t, db, store.Infos, page(1)); string(got) != "one" {
		t.Errorf("page 1 holds %q", got)
	}
	if got := get(t, db, store.Infos, page(2)); got == nil || len(got) != 0 {
		t.Errorf("an empty value came back as %v", got)
	}
	if got := get(t, db, store.Infos, page(3)); got != nil {
		t.Errorf("a record that is not there came back as %q", got)
	}
}

func TestKeysHaveTheShapeOfTheirSpace(t *testing.T) {
	db := storetest.Open(t)
	for _, c := range []struct {
		space store.Space
		key   []byte
		ok    bool
	}{
		{store.Infos, page(1), true},
		{store.Infos, page(1)[:15], false},
		{store.Infos, append(page(1), 0), false},
		{store.Infos, nil, false},
		{store.Meta, []byte("name"), true},
		{store.Meta, []byte{}, false},
		{store.Meta, bytes.Repeat([]byte("k"), 128), true},
		{store.Meta, bytes.Repeat([]byte("k"), 129), false},
		{store.Results, make([]byte, 48), true},
		{store.Results, make([]byte, 16), false},
		{store.Clients, make([]byte, 32), true},
		{store.Clients, make([]byte, 31), false},
		{store.Outcomes, store.Number(1), true},
		{store.Outcomes, store.Number(1)[1:], false},
		{store.Outcomes, append(store.Number(1), 0), false},
		{store.Decisions, []byte("a"), true},
		{store.Decisions, nil, false},
		{store.Decisions, bytes.Repeat([]byte("k"), 129), false},
		{store.Ledger, store.Number(1), false}, // only Append adds there
		{store.Space(0), []byte("k"), false},
		{store.Space(99), []byte("k"), false},
	} {
		err := db.Update(put(c.space, c.key, "v"))
		if (err == nil) != c.ok {
			t.Errorf("%v, key %x: %v", c.space, c.key, err)
		}
		if c.ok && string(get(t, db, c.space, c.key)) != "v" {
			t.Errorf("%v, key %x: not there", c.space, c.key)
		}
	}
}

func TestWhatWasReadIsACopy(t *testing.T) {
	db := storetest.Open(t)
	value := []byte("value")
	must(t, db.Update(func(tx *store.Tx) error {
		if err := tx.Put(store.Infos, page(1), value); err != nil {
			return err
		}
		value[0] = 'X' // the caller's buffer is the caller's again
		got, err := tx.Get(store.Infos, page(1))
		got[1] = 'X' // and so is what was read
		return err
	}))
	var records []store.Record
	must(t, db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Infos, nil) {
			if err != nil {
				return err
			}
			records = append(records, r)
		}
		return nil
	}))
	must(t, db.Update(put(store.Infos, page(1), "other")))
	if string(records[0].Value) != "value" {
		t.Errorf("the record reads %q", records[0].Value)
	}
	records[0].Value[0], records[0].Key[0] = 'Y', 'Y' // would fault if it were bbolt's memory
}

func TestAllFollowsAPrefixAndMayBeChangedInTheLoop(t *testing.T) {
	db := storetest.Open(t)
	fence := func(f, d byte) []byte { return slices.Concat(bytes.Repeat([]byte{f}, 16), bytes.Repeat([]byte{d}, 32)) }
	fill := func(tx *store.Tx) error {
		for f := range byte(3) {
			for d := range byte(40) {
				if err := tx.Put(store.Results, fence(f, d), bytes.Repeat([]byte{d}, 500)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	must(t, db.Update(fill))
	seen := 0
	must(t, db.Update(func(tx *store.Tx) error {
		if err := fill(tx); err != nil { // what this transaction wrote is walked as well as what is on disk
			return err
		}
		for r, err := range tx.All(store.Results, bytes.Repeat([]byte{1}, 16)) {
			if err != nil {
				return err
			}
			if r.Key[0] != 1 || r.Key[16] != byte(seen) {
				t.Errorf("record %d has key %x", seen, r.Key)
			}
			seen++
			if err := tx.Delete(store.Results, r.Key); err != nil {
				return err
			}
		}
		return nil
	}))
	if seen != 40 {
		t.Errorf("the loop saw %d of 40 records", seen)
	}
	left := map[byte]int{}
	must(t, db.View(func(tx *store.Tx) error {
		for r := range tx.All(store.Results, nil) {
			left[r.Key[0]]++
		}
		return nil
	}))
	if want := map[byte]int{0: 40, 2: 40}; !maps.Equal(left, want) {
		t.Errorf("left are %v, not %v", left, want)
	}
}

func TestTheLedgerIsNumberedWithoutGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := store.Open(path, store.Options{})
	must(t, err)
	add := func() (n uint64) {
		t.Helper()
		must(t, db.Update(func(tx *store.Tx) (err error) {
			n, err = tx.Append(store.Ledger, []byte("run"))
			return err
		}))
		return n
	}
	if a, b := add(), add(); a != 1 || b != 2 {
		t.Fatalf("the first two numbers are %d and %d", a, b)
	}
	var undone uint64
	err = db.Update(func(tx *store.Tx) error {
		undone, _ = tx.Append(store.Ledger, nil)
		return errNo
	})
	if n := add(); !errors.Is(err, errNo) || undone != 3 || n != 3 {
		t.Errorf("after an update that failed (%v) with number %d the next is %d", err, undone, n)
	}
	must(t, db.Close())
	db = storetest.OpenAt(t, path)
	if n := add(); n != 4 {
		t.Errorf("after opening again the next number is %d", n)
	}
	must(t, db.Update((*store.Tx).Forget))
	if n := add(); n != 5 {
		t.Errorf("after forgetting a notebook the next number is %d", n)
	}
	var numbers []uint64
	must(t, db.View(func(tx *store.Tx) error {
		for r, err := range tx.All(store.Ledger, nil) {
			if err != nil {
				return err
			}
			numbers = append(numbers, r.Number())
		}
		return nil
	}))
	if want := []uint64{1, 2, 3, 4, 5}; !slices.Equal(numbers, want) {
		t.Errorf("the ledger has the records %v, not %v", numbers, want)
	}
}

func TestOnlyTheLedgerAndForeignTextAreNumbered(t *testing.T) {
	db := storetest.Open(t)
	for s := range store.Notices + 2 {
		err := db.Update(func(tx *store.Tx) error { _, err := tx.Append(s, nil); return err })
		if (err == nil) != (s == store.Ledger || s == store.Foreign) {
			t.Errorf("appending to %v: %v", s, err)
		}
	}
}

func TestTheLedgerOnlyGrows(t *testing.T) {
	db := storetest.Open(t)
	must(t, db.Update(func(tx *store.Tx) error { _, err := tx.Append(store.Ledger, []byte("run")); return err }))
	must(t, db.Update(func(tx *store.Tx) error { _, err := tx.Append(store.Foreign, []byte("text")); return err }))
	for name, fn := range map[string]func(*store.Tx) error{
		"of foreign text, and replaced": put(store.Foreign, store.Number(1), "other"),
		"of foreign text, and deleted":  func(tx *store.Tx) error { return tx.Delete(store.Foreign, store.Number(1)) },
		"replaced":                      put(store.Ledger, store.Number(1), "other"),
		"put ahead":                     put(store.Ledger, store.Number(2), "other"),
		"deleted":                       func(tx *store.Tx) error { return tx.Delete(store.Ledger, store.Number(1)) },
		"deleted and forgotten":         func(tx *store.Tx) error { _ = tx.Delete(store.Ledger, store.Number(1)); return nil },
	} {
		if err := db.Update(fn); err == nil {
			t.Errorf("a numbered record was %s", name)
		}
	}
	if got := get(t, db, store.Ledger, store.Number(1)); string(got) != "run" {
		t.Errorf("the record reads %q", got)
	}
	if got := get(t, db, store.Ledger, store.Number(2)); got != nil {
		t.Errorf("a record that nobody appended reads %q", got)
	}
	// An outcome has the run's number and is the caller's to replace and to delete.
	must(t, db.Update(put(store.Outcomes, store.Number(1), "done")))
	must(t, db.Update(put(store.Outcomes, store.Number(1), "killed")))
	must(t, db.Update(func(tx *store.Tx) error { return tx.Delete(store.Outcomes, store.Number(1)) }))
	if got := get(t, db, store.Outcomes, store.Number(1)); got != nil {
		t.Errorf("a deleted outcome reads %q", got)
	}
}

func TestAViewSeesOneStateAndCannotWrite(t *testing.T) {
	db := storetest.Open(t)
	must(t, db.Update(put(store.Infos, page(1), "before")))
	must(t, db.View(func(tx *store.Tx) error {
		done := make(chan error)
		go func() { done <- db.Update(put(store.Infos, page(1), "after")) }()
		if err := <-done; err != nil {
			return err
		}
		got, err := tx.Get(store.Infos, page(1))
		if string(got) != "before" {
			t.Errorf("the view reads %q", got)
		}
		return err
	}))
	pos, e := entry(1, 1, "x")
	for name, fn := range map[string]func(*store.Tx) error{
		"put":    put(store.Infos, page(1), "by a view"),
		"delete": func(tx *store.Tx) error { return tx.Delete(store.Infos, page(1)) },
		"append": func(tx *store.Tx) error { _, err := tx.Append(store.Ledger, nil); return err },
		"entry":  func(tx *store.Tx) error { _, err := tx.PutEntry(pos, notebook.PageID{}, e, ""); return err },
	} {
		if err := db.View(fn); err == nil {
			t.Errorf("a view could %s", name)
		}
	}
	if got := get(t, db, store.Infos, page(1)); string(got) != "after" {
		t.Errorf("the page's record reads %q", got)
	}
}

func TestEntriesAreFoundThreeWays(t *testing.T) {
	db := storetest.Open(t)
	one, two := notebook.PageID{1}, notebook.PageID{2}
	var want []store.Stored
	add := func(d byte, seq uint64, page notebook.PageID, body, void string) {
		t.Helper()
		pos, e := entry(d, seq, body)
		s := store.Stored{Place: pos, Page: page, Entry: e, Void: void}
		must(t, db.Update(func(tx *store.Tx) (err error) {
			s.Ordinal, err = tx.PutEntry(pos, page, e, void)
			return err
		}))
		want = append(want, s)
	}
	add(9, 1, notebook.PageID{}, "genesis", "")
	add(9, 2, one, "a", "")
	add(3, 1, two, "b", "")
	add(3, 2, one, "", "") // an empty body is a body
	add(9, 3, one, "c", "its dependency is not in its seen")

	read := func(what string, pick func(*store.Tx) func(func(store.Stored, error) bool), want ...store.Stored) {
		t.Helper()
		must(t, db.View(func(tx *store.Tx) error {
			var got []store.Stored
			for s, err := range pick(tx) {
				if err != nil {
					return err
				}
				got = append(got, s)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s:\n got %v\nwant %v", what, got, want)
			}
			return nil
		}))
	}
	from := func(n uint64) func(*store.Tx) func(func(store.Stored, error) bool) {
		return func(tx *store.Tx) func(func(store.Stored, error) bool) { return tx.Entries(n) }
	}
	of := func(p notebook.PageID) func(*store.Tx) func(func(store.Stored, error) bool) {
		return func(tx *store.Tx) func(func(store.Stored, error) bool) { return tx.PageEntries(p) }
	}
	read("all", from(0), want...)
	read("from the third", from(3), want[2:]...)
	read("past the end", from(6))
	read("page one", of(one), want[1], want[3], want[4])
	read("page two", of(two), want[2])
	read("no page", of(notebook.PageID{}), want[0])
	read("unknown page", of(notebook.PageID{7}))

	must(t, db.View(func(tx *store.Tx) error {
		if n := tx.LastOrdinal(); n != 5 {
			t.Errorf("the last ordinal is %d", n)
		}
		s, err := tx.Entry(want[3].Place)
		if s == nil || s.Entry.Body == nil {
			t.Errorf("the entry with an empty body came back as %v", s)
		}
		if unknown, err := tx.Entry(notebook.Place{Position: notebook.Position{Seq: 1}}); unknown != nil || err != nil {
			t.Errorf("an entry that is not there: %v, %v", unknown, err)
		}
		return err
	}))

	must(t, db.Update(func(tx *store.Tx) error { return tx.DropBody(want[1].Place) }))
	want[1].Entry.Body = nil
	read("page one with a dropped body", of(one), want[1], want[3], want[4])
	must(t, db.View(func(tx *store.Tx) error {
		s, err := tx.Entry(want[1].Place)
		if s.Entry.Body != nil {
			t.Error("a dropped body is not nil")
		}
		return err
	}))
}

func TestAPositionIsTakenOnce(t *testing.T) {
	db := storetest.Open(t)
	pos, e := entry(1, 1, "x")
	putEntry := func(e notebook.Entry) (n uint64, err error) {
		err = db.Update(func(tx *store.Tx) (err error) {
			n, err = tx.PutEntry(pos, notebook.PageID{1}, e, "")
			return err
		})
		return n, err
	}
	first, err := putEntry(e)
	must(t, err)
	if again, err := putEntry(e); again != first || err != nil {
		t.Errorf("the same entry again: ordinal %d, %v", again, err)
	}
	other := e
	other.Header = []byte("another header")
	if _, err := putEntry(other); !errors.Is(err, store.ErrTaken) {
		t.Errorf("another entry at the same place: %v", err)
	}
	// Of another history of its device it has a place of its own.
	at := pos
	pos.Fork = other.Hash()
	second, err := putEntry(other)
	if must(t, err); second != first+1 {
		t.Errorf("the other history's entry has ordinal %d after %d", second, first)
	}
	must(t, db.Update(func(tx *store.Tx) error { return tx.SetVoid(pos, "it lost") }))
	must(t, db.View(func(tx *store.Tx) error {
		one, err := tx.Entry(at)
		must(t, err)
		two, err := tx.Entry(pos)
		must(t, err)
		if string(one.Entry.Header) != string(e.Header) || one.Void != "" || string(two.Entry.Header) != "another header" || two.Void != "it lost" || two.Place != pos {
			t.Errorf("kept are %+v and %+v", one, two)
		}
		return nil
	}))
	for err := range db.Check() {
		t.Error(err)
	}
	if err := db.Update(func(tx *store.Tx) error { return tx.SetVoid(pos, strings.Repeat("x", 513)) }); err == nil {
		t.Error("a reason over its bound was kept")
	}
}

func TestEntriesOverTheirBoundsAreRefused(t *testing.T) {
	db := storetest.Open(t)
	for _, c := range []struct {
		name   string
		change func(p *notebook.Place, e *notebook.Entry, void *string)
		ok     bool
	}{
		{"as it should be", func(*notebook.Place, *notebook.Entry, *string) {}, true},
		{"largest header", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Header = make([]byte, 4<<10) }, true},
		{"header too large", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Header = make([]byte, 4<<10+1) }, false},
		{"no header", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Header = nil }, false},
		{"short signature", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Sig = e.Sig[1:] }, false},
		{"no body", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Body = nil }, true},
		{"largest body", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Body = make([]byte, 2<<20) }, true},
		{"body too large", func(_ *notebook.Place, e *notebook.Entry, _ *string) { e.Body = make([]byte, 2<<20+1) }, false},
		{"place zero", func(p *notebook.Place, _ *notebook.Entry, _ *string) { p.Position.Seq = 0 }, false},
		{"long reason", func(_ *notebook.Place, _ *notebook.Entry, void *string) { *void = strings.Repeat("x", 513) }, false},
	} {
		pos, e := entry(byte(len(c.name)), uint64(len(c.name)), "body")
		void := ""
		c.change(&pos, &e, &void)
		err := db.Update(func(tx *store.Tx) error { _, err := tx.PutEntry(pos, notebook.PageID{1}, e, void); return err })
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestConcurrentUpdatesAndViews(t *testing.T) {
	db := storetest.Open(t)
	const writers, each = 8, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				pos, e := entry(byte(w), uint64(i+1), "body")
				err := db.Update(func(tx *store.Tx) error {
					if _, err := tx.PutEntry(pos, notebook.PageID{byte(w)}, e, ""); err != nil {
						return err
					}
					if i%10 == 9 {
						return errNo
					}
					return nil
				})
				if (i%10 == 9) != errors.Is(err, errNo) {
					t.Errorf("writer %d, entry %d: %v", w, i, err)
				}
			}
		})
		wg.Go(func() {
			for range each {
				err := db.View(func(tx *store.Tx) error {
					n := uint64(0)
					for s, err := range tx.Entries(1) {
						if n++; err != nil || s.Ordinal != n {
							return fmt.Errorf("entry %d has ordinal %d: %w", n, s.Ordinal, err)
						}
					}
					if last := tx.LastOrdinal(); n != last {
						return fmt.Errorf("%d entries, last ordinal %d", n, last)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, db.View(func(tx *store.Tx) error {
		if n := tx.LastOrdinal(); n != writers*each*9/10 {
			t.Errorf("%d entries stand", n)
		}
		return nil
	}))
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   string
	}{
		{"a store from the future", func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error {
				return tx.Bucket([]byte("store")).Put([]byte("schema"), []byte{store.Schema + 1})
			})
		}, "store from the future"},
		{"a store without a version", func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("store")).Delete([]byte("schema")) })
		}, "damaged"},
		{"a bbolt file of something else", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
		}, "not a store of noted"},
		{"text", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, bytes.Repeat([]byte("# a page\n"), 2000), 0o600))
		}, "damaged"},
		{"a file that is cut short", func(t *testing.T, path string) { must(t, os.Truncate(path, 5*4096)) }, "cut short"},
		{"a file of one page", func(t *testing.T, path string) { must(t, os.Truncate(path, 4096)) }, "damaged"},
		{"both meta pages overwritten", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(make([]byte, 2*4096), 0)
			must(t, errors.Join(err, f.Close()))
		}, "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "noted.db")
			db, err := store.Open(path, store.Options{})
			must(t, err)
			must(t, db.Update(put(store.Infos, page(1), strings.Repeat("info ", 5000))))
			must(t, db.Close())
			db, err = store.Open(path, store.Options{}) // as long as it is intact
			must(t, err)
			must(t, db.Close())

			c.damage(t, path)
			before, err := os.ReadFile(path)
			must(t, err)
			stat, err := os.Stat(path)
			must(t, err)
			db, err = store.Open(path, store.Options{})
			if db != nil {
				t.Fatal("it was opened")
			}
			var e *notebook.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, c.want) {
				t.Errorf("the error is %v", err)
			}
			after, err := os.ReadFile(path)
			must(t, err)
			now, err := os.Stat(path)
			must(t, err)
			if !bytes.Equal(before, after) || !now.ModTime().Equal(stat.ModTime()) {
				t.Error("the file was touched")
			}
			if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
				t.Errorf("left are %v", files)
			}
		})
	}
}

// edit changes a store behind its back.
func edit(t testing.TB, path string, fn func(*bolt.Tx) error) {
	t.Helper()
	b, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, errors.Join(b.Update(fn), b.Close()))
}

func TestClosedMeansClosed(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "noted.db"), store.Options{})
	must(t, err)
	must(t, db.Update(put(store.Infos, page(1), "x")))
	must(t, db.Close())
	if err := db.Update(put(store.Infos, page(1), "y")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("an update: %v", err)
	}
	if err := db.View(func(*store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a view: %v", err)
	}
	must(t, db.Close())
}

func TestATransactionEndsWithItsFunction(t *testing.T) {
	db := storetest.Open(t)
	var kept *store.Tx
	must(t, db.View(func(tx *store.Tx) error { kept = tx; return nil }))
	defer func() {
		if recover() == nil {
			t.Error("a transaction was used after its end")
		}
	}()
	_, _ = kept.Get(store.Infos, page(1))
}
