package daemon_test

import (
	"context"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// damages opens the file of a device that is stopped and changes it.
func damages(t *testing.T, d *daemontest.Device, do func(tx *store.Tx) error) {
	t.Helper()
	db, err := store.Open(d.Home.Database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(do); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestABrokenLedgerIsSealed: a ledger that somebody changed is told as broken
// until a person seals it; what is recorded before and after goes on, and
// the break stays in sight.
func TestABrokenLedgerIsSealed(t *testing.T) {
	for name, damage := range map[string]func(tx *store.Tx) error{
		"a record that is none": func(tx *store.Tx) error {
			_, err := tx.Append(store.Ledger, []byte{0x80})
			return err
		},
		"the end taken away": func(tx *store.Tx) error { return tx.Delete(store.Meta, []byte("ledger")) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w := daemontest.Loopback(t)
			d := w.Init("laptop", "1234")
			laptop := d.Owner()
			laptop.Types("Sums", sums)
			laptop.Runs("Sums", 1)
			seal := func(p notebook.Presence) (*notebook.LedgerReport, error) { return laptop.Client.SealLedger(ctx, p) }
			verify := func() *notebook.LedgerReport {
				t.Helper()
				report, err := laptop.Client.VerifyLedger(ctx)
				if err != nil {
					t.Fatal(err)
				}
				return report
			}
			if _, err := seal(notebook.Presence{PIN: "1234"}); daemontest.CodeOf(err) != notebook.CodeInvalid {
				t.Errorf("sealing what holds: %v", err)
			}
			d.Stops()
			damages(t, d, damage)
			d.Starts()
			laptop = d.Owner()
			laptop.Runs("Sums", 1)
			broken := verify()
			if broken.Problem == "" || broken.Records > 2 {
				t.Fatalf("%+v", broken)
			}
			for _, p := range []notebook.Presence{{}, {PIN: "4321"}, {Typed: "yes, seal the broken ledger"}} {
				if _, err := seal(p); daemontest.CodeOf(err) != notebook.CodeRefused {
					t.Errorf("sealed with %+v: %v", p, err)
				}
			}
			if now := verify(); now.Problem != broken.Problem {
				t.Errorf("%+v, want %+v", now, broken)
			}
			sealed, err := seal(notebook.Presence{PIN: "1234"})
			if err != nil || sealed.Problem != "" || len(sealed.Seals) != 1 || sealed.Seals[0].Reason != broken.Problem {
				t.Fatalf("%+v, %v", sealed, err)
			}
			laptop.Runs("Sums", 1)
			d.Restarts()
			laptop = d.Owner()
			laptop.Runs("Sums", 1)
			if now := verify(); now.Problem != "" || len(now.Seals) != 1 || now.Records <= sealed.Records {
				t.Errorf("%+v", now)
			}
			agent := d.Agent("scribe")
			if _, err := agent.Client.SealLedger(ctx, notebook.Presence{PIN: "1234"}); err == nil || !strings.Contains(err.Error(), "seal the ledger") {
				t.Errorf("an agent seals: %v", err)
			}
		})
	}
}
