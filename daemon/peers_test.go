package daemon_test

import (
	"bytes"
	"testing"

	"noted/notebook"
	"noted/store"
)

// TestWhatIsRememberedOfADeviceCanBeLearntAgain: a record of a peer that cannot
// be read is as good as none, and the next connection writes a new one.
func TestWhatIsRememberedOfADeviceCanBeLearntAgain(t *testing.T) {
	w, _, phone := paired(t, nil)
	d := w.Device("laptop")
	type kept struct {
		_         struct{} `cbor:",toarray"`
		Version   uint8
		Addresses []string
		Seen      int64
	}
	newer, err := notebook.Marshal(&kept{Version: 99})
	if err != nil {
		t.Fatal(err)
	}
	for name, record := range map[string][]byte{
		"noise":     {0x80},
		"too large": bytes.Repeat([]byte{1}, 64<<10),
		"newer":     newer,
	} {
		d.Stops()
		db, err := store.Open(d.Home.Database(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *store.Tx) error { return tx.Put(store.Peers, phone.ID[:], record) }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		d.Starts() // and lists its devices
		listed := func() (info notebook.DeviceInfo) {
			for _, info = range d.Owner().Devices() {
				if info.Name == "phone" {
					return info
				}
			}
			t.Fatalf("%s: the phone is not listed", name)
			return info
		}
		w.Eventually("the phone is found again after "+name, func() bool {
			info := listed()
			return info.Connected && !info.LastSeen.IsZero()
		})
		d.Owner().Types("After "+name, "text\n")
		w.As("phone").Sees("After "+name, "text\n")
		d.Stops()
		var now kept
		err = d.Reads(func(tx *store.Tx) error {
			b, err := tx.Get(store.Peers, phone.ID[:])
			if err == nil {
				err = notebook.Unmarshal(b, &now, 8<<10)
			}
			return err
		})
		if err != nil || now.Version != 1 || now.Seen == 0 {
			t.Errorf("%s was replaced by %+v %v", name, now, err)
		}
	}
	d.Starts()
	w.Settle()
	w.Same("laptop", "phone")
}
