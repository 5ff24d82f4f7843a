package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

// TestAPanicStopsTheDaemon: a step that panics half way, in a call whose server
// recovers, holds up nobody, and nothing is built on what it left.
func TestAPanicStopsTheDaemon(t *testing.T) {
	d, person, ended := serving(t, "laptop")
	if _, err := person.NewPage(context.Background(), "Before"); err != nil {
		t.Fatal(err)
	}
	recovered := make(chan any, 1)
	go func() {
		defer func() { recovered <- recover() }()
		_ = d.step(func(b *batch) error {
			if _, err := d.newPage(b, typed, "Half"); err != nil {
				t.Error(err)
			}
			panic("half way")
		})
	}()
	if r := <-recovered; r != "half way" {
		t.Fatalf("the caller recovers %v", r)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := person.NewPage(context.Background(), "After")
		answered <- err
	}()
	for what, c := range map[string]struct {
		from <-chan error
		why  string
	}{
		"the next step": {answered, "cannot go on"},
		"the daemon":    {ended, "a step panicked"},
	} {
		select {
		case err := <-c.from:
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s ends with %v", what, err)
			}
			if e, ok := errors.AsType[*notebook.Error](err); ok && (e.Code != notebook.CodeUnavailable || e.Hint == "") {
				t.Errorf("%s ends with %q, and the hint %q", what, e.Code, e.Hint)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s waits for ever", what)
		}
	}
	for err := range Check(d.home) {
		t.Errorf("check: %v", err)
	}
	again, err := Open(Config{Home: d.home, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := again.index.live(); n != 1 {
		t.Errorf("%d pages are kept, not the one from before", n)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}
