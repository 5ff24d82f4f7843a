package daemon_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// TestABrokenStepWritesNothing: what a peer sends for a page that cannot be read
// here stops the daemon before anything of it is kept. Once the record is whole
// again, the peer's entries come as if they never had.
func TestABrokenStepWritesNothing(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Before": sums, "Plan": sums})
	id := laptop.Page("Plan").ID
	d := w.Device("laptop")
	d.Stops()
	var whole []byte
	damages(t, d, func(tx *store.Tx) error {
		record, err := tx.Get(store.Shadows, id[:])
		if err != nil {
			return err
		}
		whole = append(whole, record...)
		return tx.Put(store.Shadows, id[:], whole[:len(whole)/2])
	})

	// One exchange: before, in and after the page that is damaged.
	phone.Types("Before", "changed\n")
	phone.Types("Plan", sums+"more\n")
	phone.Types("After", "new\n")
	damaged, err := daemon.Open(daemon.Config{Home: d.Home, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Exec: d.Exec})
	if err != nil {
		t.Fatal(err)
	}
	var entries []notebook.Entry
	for e, err := range phone.Daemon.Missing(damaged.Heads()) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	ended := make(chan error, 1)
	go func() { ended <- damaged.Serve(context.Background()) }()
	accepted := make(chan error, 1)
	go func() { accepted <- damaged.Accept(context.Background(), phone.ID, entries) }()
	for what, from := range map[string]<-chan error{"the exchange": accepted, "the daemon": ended} {
		select {
		case err := <-from:
			if err == nil || !strings.Contains(err.Error(), "the page "+id.String()+" cannot be opened") {
				t.Errorf("%s ends with %v", what, err)
			}
		case <-time.After(daemontest.Patience):
			t.Fatalf("%s does not end", what)
		}
	}

	damages(t, d, func(tx *store.Tx) error { return tx.Put(store.Shadows, id[:], whole) })
	for err := range daemon.Check(d.Home) {
		t.Errorf("check: %v", err)
	}
	d.Starts()
	laptop = d.Owner()
	laptop.Sees("Before", "changed\n")
	laptop.Sees("Plan", sums+"more\n")
	laptop.Sees("After", "new\n")
	w.Settle()
	w.Same("laptop", "phone")
}
