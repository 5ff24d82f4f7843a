package daemontest

import (
	"fmt"
	"strings"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
)

// Same stops the devices, fails the test unless their homes hold the same
// entries, with the same verdict on each, and the same pages, byte for byte,
// and starts them again.
func (w *World) Same(names ...string) {
	w.t.Helper()
	var first map[string]string
	for i, name := range names {
		d := w.Device(name)
		d.Stops()
		kept, err := d.shared()
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		if i == 0 {
			first = kept
			continue
		}
		for key := range first {
			if first[key] != kept[key] {
				w.t.Errorf("%s and %s differ in %s:\n%q\n%q", names[0], name, key, first[key], kept[key])
			}
		}
		if len(kept) != len(first) {
			w.t.Errorf("%s keeps %d records and %s %d", names[0], len(first), name, len(kept))
		}
	}
	for _, name := range names {
		w.Device(name).Starts()
	}
}

// Reads runs look on the home's store. The device is stopped.
func (d *Device) Reads(look func(tx *store.Tx) error) error {
	db, err := store.Open(d.Home.Database(), store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(look)
}

// shared is all of a home that is the same on every device.
func (d *Device) shared() (map[string]string, error) {
	kept := map[string]string{}
	err := d.Reads(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			kept[fmt.Sprintf("entry %v %v", s.Position, s.Entry.Hash())] = s.Void
		}
		for _, space := range []store.Space{store.Infos, store.Shadows, store.Registers} {
			for r, err := range tx.All(space, nil) {
				if err != nil {
					return err
				}
				key, value := fmt.Sprintf("%v %v", space, notebook.PageID(r.Key)), string(r.Value)
				if space == store.Shadows {
					if value, err = meaning(notebook.PageID(r.Key), r.Value); err != nil {
						return err
					}
				}
				kept[key] = value
			}
		}
		return nil
	})
	return kept, err
}

// meaning is all that a shadow says. Its record numbers actors and changes in
// the order in which they came, and so differs from device to device.
func meaning(id notebook.PageID, record []byte) (string, error) {
	p, err := crdt.OpenPage(id, record)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	fmt.Fprintf(&said, "%q at %v, %d of %d by %v", p.Text(), p.Revision(), p.Len(), p.Elements(), p.Authors())
	fences, err := p.Fences()
	if err != nil {
		return said.String() + " whose fences cannot be read", nil
	}
	for i := range fences {
		fmt.Fprintf(&said, "\n%v by %v: %v", fences[i].ID, fences[i].Origin, p.Ranges(&fences[i]))
	}
	return said.String(), nil
}
