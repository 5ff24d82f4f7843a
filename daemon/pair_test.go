package daemon_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// pairingEnd is how a pairing ended on one side.
type pairingEnd struct {
	err  error
	last notebook.PairEvent
}

// pairing goes through a pairing with answers of its own on each side: first
// the inviter's.
func pairing(t *testing.T, inviter, joiner *daemontest.Hand, answer func(h *daemontest.Hand, session string) error) [2]pairingEnd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), daemontest.Patience)
	defer cancel()
	invitation := make(chan string, 1)
	side := func(h *daemontest.Hand, e *pairingEnd) func(notebook.PairEvent) error {
		return func(event notebook.PairEvent) error {
			e.last = event
			switch event.State {
			case notebook.PairWaiting:
				invitation <- event.Invitation
			case notebook.PairCompare:
				return answer(h, event.Session)
			}
			return nil
		}
	}
	invited := make(chan pairingEnd, 1)
	go func() {
		var e pairingEnd
		e.err = inviter.Client.Pair(ctx, side(inviter, &e))
		invited <- e
	}()
	var joined pairingEnd
	joined.err = joiner.Join(ctx, within(t, invitation), side(joiner, &joined))
	if joined.err != nil {
		// The inviter may wait on, for somebody who knows the secret.
		time.AfterFunc(300*time.Millisecond, cancel)
	}
	return [2]pairingEnd{<-invited, joined}
}

// TestPairingTakesBothPersons: one no, or a yes without a person, and nobody is
// taken in, as both are told.
func TestPairingTakesBothPersons(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")
	laptop.Types("Page", sums)
	ctx := context.Background()
	good := laptop.Presence("the codes are the same")
	for _, c := range []struct {
		name   string
		answer func(h *daemontest.Hand, session string) error
	}{
		{"the inviter says no", func(h *daemontest.Hand, session string) error {
			return h.Client.Confirm(ctx, session, h != laptop, good)
		}},
		{"the joiner says no", func(h *daemontest.Hand, session string) error {
			return h.Client.Confirm(ctx, session, h == laptop, good)
		}},
		{"the inviter is not there", func(h *daemontest.Hand, session string) error {
			err := h.Client.Confirm(ctx, session, true, notebook.Presence{})
			if h == laptop {
				daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
			}
			return err
		}},
		{"an agent says yes", func(h *daemontest.Hand, session string) error {
			err := h.Agent("scribe").Client.Confirm(ctx, session, true, good)
			daemontest.Refusal(t, err, notebook.CodeDenied, "may not confirm")
			return err
		}},
	} {
		w.Add(c.name)
		stranger := w.As(c.name)
		began := time.Now()
		ended := pairing(t, laptop, stranger, c.answer)
		if took := time.Since(began); took > daemontest.Patience/2 {
			t.Errorf("%s: it took %v to tell both", c.name, took)
		}
		if ended[0].err == nil || ended[1].err == nil {
			t.Errorf("%s: %+v", c.name, ended)
		}
		if n := len(laptop.Devices()); n != 1 {
			t.Errorf("%s: the laptop has %d devices", c.name, n)
		}
		if stranger.Status().Notebook == laptop.Status().Notebook || stranger.Body("Page") != "" {
			t.Errorf("%s: it is in", c.name)
		}
	}
	ended := pairing(t, laptop, phone, func(h *daemontest.Hand, session string) error {
		return h.Client.Confirm(ctx, session, true, good)
	})
	for _, e := range ended {
		if e.err != nil || e.last.State != notebook.PairDone || e.last.Reason != "" {
			t.Fatalf("%+v", ended)
		}
	}
	phone.Sees("Page", sums)
	phone.Stands("Page", 1, "device:laptop") // pairing decides what syncs and nothing else
	if a := phone.Fence("Page", 1).Approved; len(a) > 0 {
		t.Errorf("%+v", a)
	}
	w.Settle()
}

// TestWhoSharesANotebookStaysInIt, also when there is nothing in it yet.
func TestWhoSharesANotebookStaysInIt(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	w.Pair("laptop", "phone")
	ended := pairing(t, w.As("tablet"), w.As("phone"), func(*daemontest.Hand, string) error { return nil })
	daemontest.Refusal(t, ended[1].err, notebook.CodeRefused, "shares a notebook with 1 other device already")
	if w.As("phone").Status().Notebook != w.As("laptop").Status().Notebook {
		t.Error("the phone joined another notebook")
	}
}

// TestAnInvitationIsGoodOnce: for one device, while its window is open.
func TestAnInvitationIsGoodOnce(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	laptop := w.As("laptop")
	ctx, cancel := context.WithTimeout(context.Background(), daemontest.Patience)
	defer cancel()
	invitation, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- laptop.Client.Pair(ctx, func(e notebook.PairEvent) error {
			if e.State == notebook.PairWaiting {
				invitation <- e.Invitation
			}
			if e.State == notebook.PairCompare {
				return laptop.Client.Confirm(ctx, e.Session, true, laptop.Presence("the codes are the same"))
			}
			return nil
		})
	}()
	uri := within(t, invitation)
	join := func(name, uri string) error {
		h := w.As(name)
		return h.Join(ctx, uri, func(e notebook.PairEvent) error {
			if e.State == notebook.PairCompare {
				return h.Client.Confirm(ctx, e.Session, true, h.Presence(""))
			}
			return nil
		})
	}
	// Another secret: the window stays open for who has the right one.
	wrong := []byte(uri)
	if i := strings.Index(uri, "s="); i > 0 && i+3 < len(wrong) {
		wrong[i+2] ^= 1
	}
	if err := join("tablet", string(wrong)); err == nil {
		t.Error("a wrong secret was good enough")
	}
	if err := join("phone", uri); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := join("tablet", uri); err == nil {
		t.Error("an invitation was good twice")
	}
	if n := len(laptop.Devices()); n != 2 {
		t.Errorf("%d devices", n)
	}
	w.Pair("laptop", "tablet")
}
