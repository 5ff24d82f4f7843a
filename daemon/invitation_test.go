package daemon_test

import (
	"context"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestNobodySaysYesToACodeUnseen: a yes that comes before the code would be
// taken for the answer to whatever code there is. It is refused, so is another
// invitation beside the open one, and the pairing goes on.
func TestNobodySaysYesToACodeUnseen(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	laptop, phone := w.As("laptop"), w.As("phone")
	ctx, cancel := context.WithTimeout(context.Background(), daemontest.Patience)
	defer cancel()
	yes := func(h *daemontest.Hand, e notebook.PairEvent) error {
		return h.Client.Confirm(ctx, e.Session, true, h.Presence("the codes are the same"))
	}
	waiting, invited := make(chan notebook.PairEvent, 1), make(chan error, 1)
	compared := false
	go func() {
		invited <- laptop.Client.Pair(ctx, func(e notebook.PairEvent) error {
			switch e.State {
			case notebook.PairWaiting:
				waiting <- e
			case notebook.PairCompare:
				compared = true
				return yes(laptop, e)
			}
			return nil
		})
	}()
	open := within(t, waiting)
	err := yes(laptop, open)
	daemontest.Refusal(t, err, notebook.CodeInvalid, "no code to compare yet")
	if hint(err) == "" {
		t.Error("what to do next is not said")
	}
	second := make(chan error, 1)
	go func() { second <- laptop.Client.Pair(ctx, func(notebook.PairEvent) error { return nil }) }()
	err = within(t, second)
	daemontest.Refusal(t, err, notebook.CodeRefused, "an invitation is open already")
	if hint(err) == "" {
		t.Error("what to do next is not said")
	}

	err = phone.Join(ctx, open.Invitation, func(e notebook.PairEvent) error {
		if e.State == notebook.PairCompare {
			return yes(phone, e)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := within(t, invited); err != nil || !compared {
		t.Errorf("the laptop compared: %v; it ends with %v", compared, err)
	}
	w.Settle()
	if n := len(laptop.Devices()); n != 2 {
		t.Errorf("%d devices", n)
	}
	w.Pair("laptop", "tablet") // the first invitation is closed
}
