package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/daemon"
	"noted/notebook"
	"noted/store"
)

// TestCheckFindsDamage changes one record of a home at a time.
func TestCheckFindsDamage(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Sums": sums, "Wants": wanting})
	laptop.Types("Mine", sums)
	laptop.Approves("Wants", 1, notebook.ScopeOnce)
	laptop.Runs("Wants", 1)
	laptop.Runs("Sums", 1)
	phone.Runs("Sums", 1)
	w.Settle()
	page := laptop.Page("Sums").ID
	mine := laptop.Page("Mine").ID
	d := w.Device("laptop")
	d.Stops()
	intact, err := os.ReadFile(d.Home.Database())
	if err != nil {
		t.Fatal(err)
	}
	last := func(tx *store.Tx, space store.Space) (r store.Record) {
		t.Helper()
		for x, err := range tx.All(space, nil) {
			if err != nil {
				t.Fatal(err)
			}
			r = x
		}
		return r
	}
	copyRecord := func(space store.Space, from, to notebook.PageID) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			b, err := tx.Get(space, from[:])
			if err != nil {
				return err
			}
			return tx.Put(space, to[:], b)
		}
	}
	for name, c := range map[string]struct {
		damage func(tx *store.Tx) error
		why    string
	}{
		"nothing":                 {func(*store.Tx) error { return nil }, ""},
		"a shadow of another":     {copyRecord(store.Shadows, mine, page), "the record in shadows"},
		"registers of another":    {copyRecord(store.Registers, mine, page), page.String()},
		"a card of another":       {copyRecord(store.Infos, mine, page), "the record in infos"},
		"own fences of noise":     {func(tx *store.Tx) error { return tx.Put(store.OwnFences, page[:], []byte{0x80}) }, page.String()},
		"own fences of another":   {copyRecord(store.OwnFences, mine, page), ""}, // names fences that are not here, and so says nothing
		"a page of nobody":        {copyRecord(store.Infos, mine, notebook.PageID{7}), "of which the log knows nothing"},
		"no shadow":               {func(tx *store.Tx) error { return tx.Delete(store.Shadows, page[:]) }, "the record in shadows"},
		"a result of nobody":      {func(tx *store.Tx) error { return tx.Put(store.Results, bytes.Repeat([]byte{1}, 48), []byte{0x80}) }, "is not the newest that it sent"},
		"no presence":             {func(tx *store.Tx) error { return tx.Delete(store.Meta, []byte("presence")) }, "presence"},
		"a count of void entries": {func(tx *store.Tx) error { return tx.Put(store.Meta, []byte("void"), store.Number(3)) }, "0 entries are void"},
		"a policy of noise":       {func(tx *store.Tx) error { return tx.Put(store.Meta, []byte("policy"), []byte("x = ")) }, "policy"},
		"the ledger's end":        {func(tx *store.Tx) error { return tx.Delete(store.Meta, []byte("ledger")) }, "ledger"},
		"one more ledger record":  {func(tx *store.Tx) error { _, err := tx.Append(store.Ledger, []byte{0x80}); return err }, "ledger"},
		"an outcome taken away": {func(tx *store.Tx) error {
			r := last(tx, store.Outcomes)
			return tx.Put(store.Outcomes, r.Key, r.Value[:len(r.Value)-1])
		}, "run"},
		"an approval unspent": {func(tx *store.Tx) error {
			for r, err := range tx.All(store.Decisions, []byte{'a'}) {
				if err != nil {
					return err
				}
				// The record ends with whether it is spent and why it is void.
				if i := bytes.LastIndexByte(r.Value, 0xf5); i >= 0 {
					r.Value[i] = 0xf4
					if err := tx.Put(store.Decisions, r.Key, r.Value); err != nil {
						return err
					}
				}
			}
			return nil
		}, "was spent by run"},
		"a head moved back": {func(tx *store.Tx) error {
			return tx.Delete(store.Chains, last(tx, store.Chains).Key)
		}, ""},
		"a client of noise": {func(tx *store.Tx) error { return tx.Put(store.Clients, make([]byte, 32), []byte{0x80}) }, "client"},
	} {
		t.Run(name, func(t *testing.T) {
			home := d.Home
			home.Data = t.TempDir()
			key, err := os.ReadFile(d.Home.KeyFile())
			if err != nil {
				t.Fatal(err)
			}
			for path, b := range map[string][]byte{home.Database(): intact, home.KeyFile(): key} {
				if err := os.WriteFile(filepath.Join(home.Data, filepath.Base(path)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			db, err := store.Open(home.Database(), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Update(c.damage); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			var found []string
			for err := range daemon.Check(home) {
				found = append(found, err.Error())
			}
			all := strings.Join(found, "\n")
			harmless := c.why == "" && name != "a head moved back"
			if harmless != (len(found) == 0) || !strings.Contains(all, c.why) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestCheckStops: who has seen enough is left alone.
func TestCheckStops(t *testing.T) {
	home := daemon.Home{Data: t.TempDir()}
	n := 0
	for err := range daemon.Check(home) {
		n++
		if !strings.Contains(fmt.Sprint(err), "device.key") {
			t.Errorf("%v", err)
		}
		break
	}
	if n != 1 {
		t.Errorf("an empty home has %d problems", n)
	}
}
