package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var errNo = errors.New("no")

func openTest(t testing.TB) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "noted.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for err := range db.Check() {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// together runs functions so that all of them are queued while the first one
// still runs, and returns their errors. The others run in any order.
func together(t testing.TB, db *DB, fns ...func(*Tx) error) []error {
	t.Helper()
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("panic: %v", r)
				}
			}()
			errs[i] = db.Update(func(tx *Tx) error {
				for i == 0 && db.queued.Load() < int64(len(fns)) {
					time.Sleep(time.Millisecond)
				}
				return fn(tx)
			})
		})
		for i == 0 && db.queued.Load() == 0 {
			runtime.Gosched()
		}
	}
	wg.Wait()
	return errs
}

func TestQueuedUpdatesShareACommit(t *testing.T) {
	db := openTest(t)
	ids := make([]int, 20)
	fns := make([]func(*Tx) error, len(ids))
	for i := range fns {
		fns[i] = func(tx *Tx) error {
			ids[i] = tx.bolt.ID()
			return tx.Put(Meta, []byte{byte(i + 1)}, nil)
		}
	}
	for i, err := range together(t, db, fns...) {
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
		if ids[i] != ids[0] {
			t.Errorf("update %d was in transaction %d, the first in %d", i, ids[i], ids[0])
		}
	}
	alone := 0
	if err := db.Update(func(tx *Tx) error { alone = tx.bolt.ID(); return nil }); err != nil || alone != ids[0]+1 {
		t.Errorf("the next update was in transaction %d after %d: %v", alone, ids[0], err)
	}
}

func TestAFailingUpdateTakesOnlyItselfBack(t *testing.T) {
	// The failing function meddles with everything that the others wrote.
	meddle := func(tx *Tx) error {
		for _, key := range []string{"first", "shared", "mine"} {
			if err := tx.Put(Meta, []byte(key), []byte("meddled")); err != nil {
				return err
			}
		}
		if err := tx.Delete(Meta, []byte("first")); err != nil {
			return err
		}
		if err := tx.Delete(Meta, []byte("before")); err != nil {
			return err
		}
		if err := tx.Put(Meta, []byte("before"), []byte("meddled")); err != nil {
			return err
		}
		_, err := tx.Append(Ledger, []byte("meddled"))
		return err
	}
	for name, end := range map[string]func() error{
		"error":  func() error { return errNo },
		"panic":  func() error { panic("no") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		for place := range 3 { // of the failing one in the group
			t.Run(fmt.Sprintf("%s %d", name, place), func(t *testing.T) {
				db := openTest(t)
				if err := db.Update(func(tx *Tx) error { return tx.Put(Meta, []byte("before"), []byte("kept")) }); err != nil {
					t.Fatal(err)
				}
				var ran []string
				good := func(own string) func(*Tx) error {
					return func(tx *Tx) error {
						ran = append(ran, own)
						_, err := tx.Append(Ledger, []byte(own))
						return errors.Join(err, tx.Put(Meta, []byte(own), []byte(own)), tx.Put(Meta, []byte("shared"), []byte(own)))
					}
				}
				fns := []func(*Tx) error{good("first"), good("second")}
				bad := func(tx *Tx) error { return errors.Join(meddle(tx), end()) }
				fns = append(fns[:place], append([]func(*Tx) error{bad}, fns[place:]...)...)
				errs := together(t, db, fns...)
				for i, err := range errs {
					if i != place && err != nil {
						t.Errorf("update %d: %v", i, err)
					}
					if i == place && name != "goexit" && err == nil {
						t.Error("the failing update succeeded")
					}
				}
				if len(ran) != 2 {
					t.Fatalf("the good functions ran %d times: %v", len(ran), ran)
				}
				got := map[string]string{}
				if err := db.View(func(tx *Tx) error {
					for r := range tx.All(Meta, nil) {
						got[string(r.Key)] = string(r.Value)
					}
					for r := range tx.All(Ledger, nil) {
						got[fmt.Sprint(r.Number())] = string(r.Value)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"before": "kept", "first": "first", "second": "second", "shared": ran[1], "1": ran[0], "2": ran[1]}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("\n got %v\nwant %v", got, want)
				}
			})
		}
	}
}

func TestAWriteThatFailedFailsTheUpdate(t *testing.T) {
	db := openTest(t)
	err := db.Update(func(tx *Tx) error {
		if err := tx.Put(Meta, []byte("good"), nil); err != nil {
			return err
		}
		_ = tx.Put(Meta, nil, nil) // refused, and fn does not mind
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "not a key") {
		t.Errorf("the update's error is %v", err)
	}
	if err := db.View(func(tx *Tx) error {
		if value, _ := tx.Get(Meta, []byte("good")); value != nil {
			t.Error("half of the update stands")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAnUpdateThatFailedWritesNothing(t *testing.T) {
	db := openTest(t)
	var before, after int
	id := func(n *int) func(*Tx) error { return func(tx *Tx) error { *n = tx.bolt.ID(); return nil } }
	if err := db.View(id(&before)); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *Tx) error { return errors.Join(tx.Put(Meta, []byte("k"), nil), errNo) }); !errors.Is(err, errNo) {
		t.Fatal(err)
	}
	if err := db.View(id(&after)); err != nil || after != before {
		t.Errorf("transaction %d became %d: %v", before, after, err)
	}
}

func TestCloseWaitsForTheQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "noted.db")
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	started, errs := make(chan bool), make(chan error, 2)
	go func() {
		errs <- db.Update(func(tx *Tx) error {
			close(started)
			for db.queued.Load() < 2 { // until Close waits
				time.Sleep(time.Millisecond)
			}
			return tx.Put(Meta, []byte("k"), []byte("v"))
		})
	}()
	<-started
	go func() { errs <- db.Close() }()
	for range 2 {
		select {
		case err := <-errs:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("they wait for each other")
		}
	}
	db, err = Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *Tx) error {
		if value, err := tx.Get(Meta, []byte("k")); string(value) != "v" || err != nil {
			t.Errorf("the update of the queue left %q, %v", value, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestALongQueueIsCommittedInPieces(t *testing.T) {
	db := openTest(t)
	fns := make([]func(*Tx) error, maxGroup+10)
	seen := map[int]int{}
	for i := range fns {
		fns[i] = func(tx *Tx) error { seen[tx.bolt.ID()]++; return nil }
	}
	for _, err := range together(t, db, fns...) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the sizes of the groups are %v", seen)
	}
}
