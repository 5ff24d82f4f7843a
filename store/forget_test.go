package store_test

import (
	"errors"
	"slices"
	"testing"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

func TestForgetKeepsTheHomeAndTheLedger(t *testing.T) {
	db := storetest.Open(t)
	keys := map[store.Space][]byte{ // one in every space but those that Append numbers
		store.Meta: []byte("name"), store.Chains: []byte("chain"), store.Infos: page(1), store.Shadows: page(1),
		store.Registers: page(1), store.OwnFences: page(1), store.Results: make([]byte, 48), store.Outcomes: store.Number(1),
		store.Decisions: []byte("decision"), store.Clients: make([]byte, 32), store.Peers: make([]byte, 32), store.Lost: page(1), store.Quotas: make([]byte, 32), store.Notices: page(1),
	}
	kept := []store.Space{store.Meta, store.Ledger, store.Clients, store.Peers, store.Lost, store.Foreign}
	var all []store.Space
	for s := store.Meta; s <= store.Notices; s++ {
		all = append(all, s)
	}
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
		for s, key := range keys {
			if err := tx.Put(s, key, []byte("value")); err != nil {
				return err
			}
		}
		if _, err := tx.Append(store.Foreign, []byte("text")); err != nil {
			return err
		}
		_, err := tx.Append(store.Ledger, []byte("run"))
		return err
	}))
	holds := func() (entries, paged int, spaces []store.Space) {
		t.Helper()
		must(t, db.View(func(tx *store.Tx) error {
			for range tx.Entries(1) {
				entries++
			}
			for range tx.PageEntries(notebook.PageID{1}) {
				paged++
			}
			for _, s := range all {
				for _, err := range tx.All(s, nil) {
					if err != nil {
						return err
					}
					spaces = append(spaces, s)
				}
			}
			return nil
		}))
		return entries, paged, spaces
	}

	// Taken back, nothing is missing.
	if err := db.Update(func(tx *store.Tx) error { return errors.Join(tx.Forget(), errNo) }); !errors.Is(err, errNo) {
		t.Fatal(err)
	}
	storetest.Check(t, db)
	if entries, paged, spaces := holds(); entries != 300 || paged != 300 || !slices.Equal(spaces, all) {
		t.Errorf("after an update that failed: %d entries, %d of the page, records in %v", entries, paged, spaces)
	}

	must(t, db.Update((*store.Tx).Forget))
	storetest.Check(t, db)
	if entries, paged, spaces := holds(); entries != 0 || paged != 0 || !slices.Equal(spaces, kept) {
		t.Errorf("left are %d entries, %d of the page, records in %v", entries, paged, spaces)
	}
	if n := add(1); n != 1 {
		t.Errorf("the first entry afterwards has the ordinal %d", n)
	}
}
