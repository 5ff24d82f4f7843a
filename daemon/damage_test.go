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

// TestARunWhoseRecordIsDamaged: the daemon starts, runs and shows the others beside
// it, and says of that one that it is damaged. A purge takes it: nobody can tell
// whose text it has.
func TestARunWhoseRecordIsDamaged(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, d, ctx := w.As("laptop"), w.Device("laptop"), context.Background()
	laptop.Types("Sums", "```lua {wants=\"page\"}\nreturn #page.text\n```\n")
	laptop.Types("Other", lua("return 'other'"))
	laptop.Types("Gone", "text\n")
	laptop.Types("Whole", "```lua {wants=\"page\"}\nreturn page.text\n```\n")
	handed, torn, other := laptop.Runs("Whole", 1), laptop.Runs("Sums", 1), laptop.Runs("Other", 1)
	d.Stops()
	damages(t, d, func(tx *store.Tx) error {
		for _, space := range []store.Space{store.Outcomes, store.Results, store.Kept} {
			for r, err := range tx.All(space, nil) {
				if err != nil {
					return err
				}
				of := space == store.Outcomes && r.Number() == torn.Number ||
					space == store.Results && strings.HasPrefix(string(r.Key), string(torn.Fence[:])) ||
					space == store.Kept && (string(r.Key) == "np"+string(store.Number(torn.Number)) || string(r.Key) == "np"+string(store.Number(handed.Number)))
				if !of {
					continue
				}
				if err := tx.Put(space, r.Key, []byte(strings.Repeat("\x80", len(r.Value)))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	d.Starts()
	laptop = d.Owner()
	runs, err := laptop.Client.Runs(ctx, 10)
	if err != nil || len(runs) != 3 || runs[0].Number != other.Number || runs[0].Result.Output != "other\n" || runs[2].Number != handed.Number ||
		runs[1].Number != torn.Number || !strings.Contains(runs[1].Reason, "damaged: noted doctor") {
		t.Errorf("%+v %v", runs, err)
	}
	if of, err := d.Agent("scribe").Client.Runs(ctx, 10); err != nil || len(of) > 0 {
		t.Errorf("an agent is shown %+v %v", of, err)
	}
	_, err = laptop.Client.RunInfo(ctx, torn.Number)
	daemontest.Refusal(t, err, notebook.CodeFailed, "is damaged")
	_, err = laptop.Client.Replay(ctx, torn.Number)
	daemontest.Refusal(t, err, notebook.CodeFailed, "is damaged")
	if _, err := laptop.Client.Replay(ctx, handed.Number); err == nil || !strings.Contains(err.Error(), "what a run was handed") {
		t.Errorf("a run whose values are damaged is replayed: %v", err)
	}
	if last := laptop.Fence("Sums", 1).Last; last == nil || !strings.Contains(last.Reason, "damaged: noted doctor") {
		t.Errorf("the fence's last run is %+v", last)
	}
	laptop.Runs("Sums", 1)
	if last := laptop.Fence("Sums", 1).Last; last == nil || last.Result.Verdict != notebook.OK {
		t.Errorf("after another run it is %+v", last)
	}
	d.Stops()
	found := false
	for err := range daemon.Check(d.Home) {
		found = found || strings.Contains(err.Error(), "run:")
	}
	if !found {
		t.Error("the check does not find it")
	}
	d.Starts()
	laptop = d.Owner()
	if err := laptop.Client.Delete(ctx, laptop.Page("Gone").ID); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Purge(ctx, "Gone", laptop.Presence("purge Gone")); err != nil {
		t.Fatal(err)
	}
	if runs, err := laptop.Client.Runs(ctx, 10); err != nil || len(runs) != 3 || runs[1].Number != other.Number || runs[2].Number != handed.Number {
		t.Errorf("after a purge: %+v %v", runs, err)
	}
	if again := replays(t, laptop, other.Number); len(again.Differs) > 0 { // the control
		t.Errorf("%q", again.Differs)
	}
}
