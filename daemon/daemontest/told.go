package daemontest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"noted/notebook"
)

// Told is what a watcher has been told.
type Told struct {
	t    testing.TB
	w    *World
	name string

	mu     sync.Mutex // guards events
	events []notebook.Event
}

func (t *Told) add(e notebook.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
	return nil
}

// All are the events so far.
func (t *Told) All() []notebook.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]notebook.Event(nil), t.events...)
}

// Has waits until an event of the kind says text.
func (t *Told) Has(kind, text string) {
	t.t.Helper()
	if missing := t.w.waitFor(func() string {
		for _, e := range t.All() {
			if e.Kind == kind && strings.Contains(e.Text, text) {
				return ""
			}
		}
		return "nothing"
	}); missing != "" {
		var lines []string
		for _, e := range t.All() {
			lines = append(lines, e.Kind+": "+e.Text)
		}
		t.t.Errorf("%s was not told %s %q, but\n%s", t.name, kind, text, strings.Join(lines, "\n"))
	}
}

// CodeOf is the kind of a failure as a client sees it; empty for others.
func CodeOf(err error) notebook.Code {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e.Code
	}
	return ""
}
