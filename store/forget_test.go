package store_test

import (
	"errors"
	"testing"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

func TestForgetKeepsTheHomeAndTheLedger(t *testing.T) {
	db := storetest.Open(t)
	client := make([]byte, 32)
	add := func(seq uint64) (n uint64) {
		t.Helper()
		pos, e := entry(1, seq, "body")
		must(t, db.Update(func(tx *store.Tx) (err error) {
			n, err = tx.PutEntry(pos, notebook.PageID{1}, e, "")
			return err
		}))
		return n
	}
	for seq := range uint64(300) {
		add(seq + 1)
	}
	must(t, db.Update(func(tx *store.Tx) error {
		_, err := tx.Append(store.Ledger, []byte("run"))
		_, err2 := tx.Append(store.Approvals, []byte("yes"))
		return errors.Join(err, err2, tx.Put(store.Meta, []byte("name"), []byte("laptop")),
			tx.Put(store.Clients, client, []byte("owner")), tx.Put(store.Texts, page(1), []byte("text")))
	}))
	count := func() (entries, paged int, text, name, owner, run, approval []byte) {
		t.Helper()
		must(t, db.View(func(tx *store.Tx) error {
			for range tx.Entries(1) {
				entries++
			}
			for range tx.PageEntries(notebook.PageID{1}) {
				paged++
			}
			return nil
		}))
		return entries, paged, get(t, db, store.Texts, page(1)), get(t, db, store.Meta, []byte("name")),
			get(t, db, store.Clients, client), get(t, db, store.Ledger, store.Number(1)), get(t, db, store.Approvals, store.Number(1))
	}

	// Taken back, nothing is missing.
	if err := db.Update(func(tx *store.Tx) error { return errors.Join(tx.Forget(), errNo) }); !errors.Is(err, errNo) {
		t.Fatal(err)
	}
	storetest.Check(t, db)
	if entries, paged, text, _, _, _, approval := count(); entries != 300 || paged != 300 || text == nil || approval == nil {
		t.Errorf("after an update that failed: %d entries, %d of the page, text %q", entries, paged, text)
	}

	must(t, db.Update((*store.Tx).Forget))
	storetest.Check(t, db)
	entries, paged, text, name, owner, run, approval := count()
	if entries != 0 || paged != 0 || text != nil || approval != nil {
		t.Errorf("left are %d entries, %d of the page, text %q, approval %q", entries, paged, text, approval)
	}
	if name == nil || owner == nil || run == nil {
		t.Errorf("the home lost its name %q, client %q or ledger %q", name, owner, run)
	}
	if n := add(1); n != 1 {
		t.Errorf("the first entry afterwards has the ordinal %d", n)
	}
}
