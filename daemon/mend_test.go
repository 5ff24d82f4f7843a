package daemon_test

import (
	"errors"
	"testing"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// TestMendingADamagedHome: whatever is damaged of what follows from the log, it
// is told, named, and made anew; what does not follow from it never becomes more.
func TestMendingADamagedHome(t *testing.T) {
	w := daemontest.Loopback(t)
	d := w.Init("laptop", "1234")
	laptop := d.Owner()
	laptop.Types("Sums", sums)
	laptop.Types("Plan", "a plan\n")
	laptop.Stands("Sums", 1, "local")
	sumsID, planID := laptop.Page("Sums").ID, laptop.Page("Plan").ID
	put := func(space store.Space, b []byte) func(tx *store.Tx) error {
		return func(tx *store.Tx) error { return tx.Put(space, sumsID[:], b) }
	}
	for name, c := range map[string]struct {
		damage func(tx *store.Tx) error
		stands string
	}{
		"a shadow that cannot be read":       {put(store.Shadows, []byte{0x80}), "local"},
		"no shadow":                          {func(tx *store.Tx) error { return tx.Delete(store.Shadows, sumsID[:]) }, "local"},
		"registers that cannot be read":      {put(store.Registers, []byte{0x80}), "local"},
		"a card that cannot be read":         {put(store.Infos, []byte{0x80}), "local"},
		"own fences that cannot be read":     {put(store.OwnFences, []byte{0x80}), "structure"},
		"no own fences, which is no damage":  {func(tx *store.Tx) error { return tx.Delete(store.OwnFences, sumsID[:]) }, "structure"},
		"the card of another page, readable": {func(tx *store.Tx) error { return copyCard(tx, planID, sumsID) }, "local"},
	} {
		d.Stops()
		var before [3][]byte
		spaces := []store.Space{store.Shadows, store.Registers, store.OwnFences}
		damages(t, d, func(tx *store.Tx) (err error) {
			for i, s := range spaces {
				if before[i], err = tx.Get(s, sumsID[:]); err != nil {
					return err
				}
			}
			return c.damage(tx)
		})
		var damaged []notebook.PageID
		for err := range daemon.Check(d.Home) {
			page, ok := errors.AsType[*daemon.Damage](err)
			if !ok || page.Page != sumsID {
				t.Errorf("%s: found %v", name, err)
				continue
			}
			damaged = []notebook.PageID{page.Page}
		}
		if _, err := daemon.Mend(daemon.Config{Home: d.Home, Exec: d.Exec}, damaged); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for err := range daemon.Check(d.Home) {
			t.Errorf("%s: still wrong: %v", name, err)
		}
		d.Starts()
		laptop = d.Owner()
		laptop.Sees("Sums", sums)
		laptop.Stands("Sums", 1, c.stands)
		d.Stops()
		damages(t, d, func(tx *store.Tx) error { return tx.Put(store.OwnFences, sumsID[:], before[2]) })
		d.Starts()
		laptop = d.Owner()
	}
	laptop.Stands("Sums", 1, "local")
}

func copyCard(tx *store.Tx, from, to notebook.PageID) error {
	b, err := tx.Get(store.Infos, from[:])
	if err != nil {
		return err
	}
	return tx.Put(store.Infos, to[:], b)
}
