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
	"noted/trust"
)

// TestAClockThatWasAhead: approvals expire against the latest time that was ever
// seen. A person can make noted forget a time that was wrong, and what had
// expired by it stays so.
func TestAClockThatWasAhead(t *testing.T) {
	ctx := context.Background()
	w := daemontest.Loopback(t)
	d := w.Init("laptop", "1234")
	laptop := d.Owner()
	approve := func(title string, expires time.Time) *notebook.Approval {
		t.Helper()
		f := laptop.Fence(title, 1)
		p, err := laptop.Client.Propose(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Scope: notebook.ScopeContent, Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		a, err := laptop.TryApprove(p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	laptop.Pipes("Soon", wanting)
	laptop.Pipes("Late", wanting)
	approve("Soon", time.Now().Add(24*time.Hour))
	approve("Late", time.Now().Add(96*time.Hour))
	laptop.Runs("Soon", 1)
	laptop.Runs("Late", 1)
	d.Stops()

	reset := func(p notebook.Presence) error { _, _, err := daemon.ResetClock(d.Home, p); return err }
	daemontest.Refusal(t, reset(notebook.Presence{PIN: "1234"}), notebook.CodeInvalid, "not behind")
	damages(t, d, func(tx *store.Tx) error { // as if a fence had run while the clock was ahead
		approvals, err := trust.OpenApprovals(func(yield func([]byte, []byte) bool) {
			for _, prefix := range []byte{'a', 't'} {
				for r := range tx.All(store.Decisions, []byte{prefix}) {
					if !yield(r.Key, r.Value) {
						return
					}
				}
			}
		})
		if err != nil {
			return err
		}
		approvals.See(time.Now().Add(48 * time.Hour))
		for _, r := range approvals.Flush() {
			if err := tx.Put(store.Decisions, r.Key, r.Value); err != nil {
				return err
			}
		}
		return nil
	})
	d.Starts()
	laptop = d.Owner()
	laptop.Refused("Soon", 1, notebook.CodeRefused, "")
	laptop.Runs("Late", 1)
	if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "noted doctor --clock") {
		t.Errorf("status does not tell of the clock: %s", notes)
	}
	if err := reset(notebook.Presence{PIN: "1234"}); err == nil {
		t.Error("the clock was set back under a running daemon")
	}
	d.Stops()

	for _, p := range []notebook.Presence{{}, {PIN: "4321"}, {Typed: "yes, set the clock back"}} {
		daemontest.Refusal(t, reset(p), notebook.CodeRefused, "")
	}
	back, voided, err := daemon.ResetClock(d.Home, notebook.Presence{PIN: "1234"})
	if err != nil || back < 47*time.Hour || voided != 1 {
		t.Fatalf("back by %v, %d void, %v", back, voided, err)
	}
	d.Starts()
	laptop = d.Owner()
	laptop.Refused("Soon", 1, notebook.CodeRefused, "")
	laptop.Runs("Late", 1)
	approve("Soon", time.Now().Add(time.Hour)) // which would have expired already
	laptop.Runs("Soon", 1)
	if notes := strings.Join(laptop.Status().Notes, "\n"); strings.Contains(notes, "--clock") {
		t.Errorf("status still tells of the clock: %s", notes)
	}
}

// TestWrongTriesCountOffline: the PIN has five tries, whoever asks for it.
func TestWrongTriesCountOffline(t *testing.T) {
	w := daemontest.Loopback(t)
	d := w.Init("laptop", "1234")
	d.Stops()
	damages(t, d, func(tx *store.Tx) error {
		a := trust.NewApprovals()
		a.See(time.Now().Add(time.Hour))
		for _, r := range a.Flush() {
			if err := tx.Put(store.Decisions, r.Key, r.Value); err != nil {
				return err
			}
		}
		return nil
	})
	for range 5 {
		_, _, err := daemon.ResetClock(d.Home, notebook.Presence{PIN: "0000"})
		daemontest.Refusal(t, err, notebook.CodeRefused, "wrong")
	}
	_, _, err := daemon.ResetClock(d.Home, notebook.Presence{PIN: "1234"})
	daemontest.Refusal(t, err, notebook.CodeRefused, "locked")

	// A reset is the way out of that, and takes back all that the PIN had allowed.
	if _, err := daemon.ResetOwner(d.Home, "12"); daemontest.CodeOf(err) != notebook.CodeInvalid {
		t.Errorf("a PIN of two: %v", err)
	}
	if _, err := daemon.ResetOwner(d.Home, "5678"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := daemon.ResetClock(d.Home, notebook.Presence{PIN: "5678"}); err != nil {
		t.Error(err)
	}
}
