package daemon_test

import (
	"context"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// resolves decides about a device as its person's proof says.
func resolves(h *daemontest.Hand, d *daemontest.Device, as notebook.Resolution) (*notebook.Contradiction, error) {
	act := map[notebook.Resolution]string{notebook.ResolveKeep: "keep ", notebook.ResolveClone: "go on after a clone of "}[as]
	return h.Client.Resolve(context.Background(), d.ID, as, h.Presence(act+d.Name))
}

// TestResolveKeep: a device that signed two histories is shown with the proof
// and with what does not stand of it. Once a person at one device has let it go
// on, what it writes in a new epoch reaches everybody.
func TestResolveKeep(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop, tablet := w.As("laptop"), w.Device("tablet")
	_, err := laptop.Client.Contradiction(context.Background(), thief.ID)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "signed one history")
	_, err = resolves(laptop, tablet, notebook.ResolveKeep)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "does not wait for a decision")

	one, two := twoFaced(thief, plan, true, sums+"one\n", sums+"two\n")
	if err := thief.Gives(w.Device("laptop"), one, two); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	c, err := laptop.Client.Contradiction(context.Background(), thief.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Open || c.Stands.Hash != one.Hash() || c.Other.Hash != two.Hash() || c.Count != 1 || len(c.Lost) != 1 || c.Lost[0].Title != "Plan" || !strings.Contains(c.Lost[0].Text, "two") {
		t.Errorf("what is shown is %+v", c)
	}
	// Both are signed: it is a proof to anybody.
	for _, s := range []notebook.SignedHeader{c.Stands, c.Other} {
		e := notebook.Entry{Header: s.Header, Sig: s.Sig}
		if h, err := notebook.DecodeHeader(s.Header); err != nil || e.Hash() != s.Hash || h.Device != thief.ID || h.Seq != c.Seq || h.Epoch != c.Epoch {
			t.Errorf("the proof is %+v, %v", s, err)
		}
	}
	if s := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(s, "noted device resolve") {
		t.Errorf("status says %q", s)
	}

	// Nothing is decided without the person, or by a word that is none.
	_, err = laptop.Client.Resolve(context.Background(), thief.ID, notebook.ResolveKeep, notebook.Presence{})
	daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
	_, err = laptop.Client.Resolve(context.Background(), thief.ID, notebook.ResolveKeep, laptop.Presence("keep phone"))
	daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
	_, err = laptop.Client.Resolve(context.Background(), thief.ID, "forgive", laptop.Presence("keep tablet"))
	daemontest.Refusal(t, err, notebook.CodeInvalid, "kept, removed, or said to have been cloned")

	thief.Keeps(one)
	thief.Epoch = notebook.Epoch{0xbe}
	later := thief.Types(plan, sums+"one\nand later\n")
	if err := thief.Gives(w.Device("laptop"), later); err != nil || laptop.Body("Plan") != sums+"one\n" {
		t.Errorf("before the decision: %v, the page reads %q", err, laptop.Body("Plan"))
	}
	if c, err = resolves(laptop, tablet, notebook.ResolveKeep); err != nil || c.Open {
		t.Fatalf("%v, still open %v", err, c != nil && c.Open)
	}
	frozen(t, laptop, thief.ID, false)
	frozen(t, w.As("phone"), thief.ID, true)
	if err := thief.Gives(w.Device("laptop"), later); err != nil {
		t.Fatal(err)
	}
	laptop.Sees("Plan", sums+"one\nand later\n")
	w.As("phone").Sees("Plan", sums+"one\nand later\n") // through the laptop; its own person has not decided
	w.Device("laptop").Restarts()
	frozen(t, w.As("laptop"), thief.ID, false)
	goesOn(t, w)
	w.Same("laptop", "phone")
}

// TestResolveRemove: the other way out is to remove it; the proof stays.
func TestResolveRemove(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop := w.As("laptop")
	one, two := twoFaced(thief, plan, false, "one\n", "two\n")
	if err := thief.Gives(w.Device("laptop"), one, two); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	laptop.Removes("tablet")
	goesOn(t, w)
	if c, err := laptop.Client.Contradiction(context.Background(), thief.ID); err != nil || c.Other.Hash != one.Hash() {
		t.Errorf("the proof is %+v, %v", c, err)
	}
	w.Same("laptop", "phone")
}

// TestResolveClone: two programs write with the laptop's key in one epoch. The
// laptop stops writing until its person decides, and goes on in a new epoch. As
// kept, it writes again what it had on the side that does not stand; if the
// person says that it was a copy, that is shown and not written.
func TestResolveClone(t *testing.T) {
	for _, as := range []notebook.Resolution{notebook.ResolveKeep, notebook.ResolveClone} {
		t.Run(string(as), func(t *testing.T) {
			w := daemontest.Loopback(t, "laptop", "phone")
			w.Pair("laptop", "phone")
			laptop := w.As("laptop")
			laptop.Types("Plan", "plan\n")
			w.Settle()
			plan := laptop.Page("Plan").ID
			clone := w.Device("laptop").Stolen()
			w.Device("laptop").Starts()
			w.As("laptop").Types("Plan", "plan\nhere\n")
			w.Device("laptop").Stops()
			mine := newestOf(t, w.Device("laptop"), plan)
			w.Device("laptop").Starts()
			laptop = w.As("laptop")
			h, err := notebook.DecodeHeader(mine.Header)
			if err != nil {
				t.Fatal(err)
			}
			clone.Epoch = h.Epoch
			var other notebook.Entry
			for other = mine; !lower(other, mine); h.Time++ {
				other = clone.Seals(h, clone.Change(plan, clone.Self(), "plan\nthere\n"))
			}
			if err := w.Device("laptop").Daemon.Accept(context.Background(), w.Device("phone").ID, []notebook.Entry{other}); err != nil {
				t.Fatal(err)
			}
			laptop.Sees("Plan", "plan\nthere\n")
			frozen(t, laptop, clone.ID, true)
			_, err = laptop.Client.NewPage(context.Background(), "Stopped")
			daemontest.Refusal(t, err, notebook.CodeRefused, "until you decide")
			c, err := resolves(laptop, w.Device("laptop"), as)
			if err != nil || c.Count != 1 || !strings.Contains(c.Lost[0].Text, "here") {
				t.Fatalf("%v: lost is %+v", err, c)
			}
			want := map[notebook.Resolution]string{notebook.ResolveKeep: "plan\nhere\nthere\n", notebook.ResolveClone: "plan\nthere\n"}[as]
			laptop.Sees("Plan", want)
			// The phone has a person of its own, who decides there.
			phone := w.As("phone")
			w.Eventually("the phone knows", func() bool { return strings.Contains(strings.Join(phone.Status().Notes, "\n"), "two histories") })
			if _, err := resolves(phone, w.Device("laptop"), notebook.ResolveKeep); err != nil {
				t.Fatal(err)
			}
			phone.Sees("Plan", want)
			goesOn(t, w)
			w.Same("laptop", "phone")
		})
	}
}

// newestOf is the newest entry of a page that a device keeps, while it is stopped.
func newestOf(t *testing.T, d *daemontest.Device, page notebook.PageID) (e notebook.Entry) {
	t.Helper()
	err := d.Reads(func(tx *store.Tx) error {
		for s, err := range tx.PageEntries(page) {
			if err != nil {
				return err
			}
			e = s.Entry
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
