package daemon_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestStatusWhileThePINIsChecked: a check takes a while, and whoever asks for
// the status in it neither waits for ever nor makes the check wait.
func TestStatusWhileThePINIsChecked(t *testing.T) {
	w := daemontest.Loopback(t)
	laptop := w.Init("laptop", "1234").Owner()
	ctx := context.Background()
	checked := make(chan struct{})
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			for range 3 {
				_, err := laptop.Client.Approve(ctx, notebook.ProposalRequest{}, notebook.Hash{}, notebook.Presence{PIN: "1234"})
				daemontest.Refusal(t, err, notebook.CodeNotFound, "")
			}
		})
	}
	go func() {
		defer close(checked)
		busy.Wait()
	}()
	var looked sync.WaitGroup
	for range 3 {
		looked.Go(func() {
			for {
				if s, err := laptop.Client.Status(ctx); err != nil || s.NoPIN {
					t.Errorf("%+v %v", s, err)
				}
				select {
				case <-checked:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		looked.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(daemontest.Patience):
		t.Fatal("the daemon hangs")
	}
}
