package daemon

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"noted/notebook"
)

const (
	// eventBacklog is how many events a watcher may be behind before it loses
	// some: a few seconds of a busy sync.
	eventBacklog = 256

	// outputBacklog is how many bytes of output a watcher may be behind before
	// it loses some: as much as a run keeps by default.
	outputBacklog = 64 << 10
)

const (
	eventRun    = "run"
	eventOutput = "output"
)

// hub tells watchers what happened. A watcher that does not keep up loses
// events, and output, and is told how much; it never holds anybody up.
type hub struct {
	mu       sync.Mutex // guards watchers, and what they have waiting
	watchers map[*watcher]struct{}
	number   atomic.Int64 // of watchers
}

// watcher is who is told, and what it was not told yet. Output waits as part of
// the events, so that it comes in its place.
type watcher struct {
	label string // whose it is
	sees  func(*notebook.Event) bool
	ready chan struct{} // holds a value when something waits
	gone  chan struct{} // closed when its client's token is taken away

	// Guarded by the hub's mutex.
	waiting []told
	output  int   // bytes of output that wait
	missed  int   // events that were lost since the last note of it
	lost    int64 // bytes of output that no waiting event counts
}

// told is an event that waits. The output of one run is put together.
type told struct {
	notebook.Event
	output []byte
}

func newHub() *hub { return &hub{watchers: map[*watcher]struct{}{}} }

// heard reports whether anybody watches, so that what nobody hears costs nothing.
func (h *hub) heard() bool { return h.number.Load() > 0 }

func (h *hub) tell(events ...notebook.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for i := range events {
		e := &events[i]
		if e.Time.IsZero() {
			e.Time = now
		}
		for w := range h.watchers {
			if w.sees(e) {
				w.put(e)
			}
		}
	}
}

// put makes an event wait, as far as there is room.
func (w *watcher) put(e *notebook.Event) {
	w.owe(e.Time)
	switch {
	case e.Kind == eventOutput:
		w.putOutput(e)
	case len(w.waiting) < eventBacklog:
		w.waiting = append(w.waiting, told{Event: *e})
	default:
		w.missed++
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *watcher) putOutput(e *notebook.Event) {
	last := (*told)(nil)
	if n := len(w.waiting); n > 0 && w.waiting[n-1].Kind == eventOutput && w.waiting[n-1].Run.Number == e.Run.Number {
		last = &w.waiting[n-1]
	}
	room := w.output+len(e.Output) <= outputBacklog
	switch {
	case last != nil && room && e.Dropped == 0:
		last.output = append(last.output, e.Output...)
	case last != nil && !room && len(last.output) == 0:
		last.Dropped += e.Dropped + int64(len(e.Output))
	case len(w.waiting) >= eventBacklog:
		w.lost += e.Dropped + int64(len(e.Output))
		return
	case room:
		w.waiting = append(w.waiting, told{Event: withoutOutput(e), output: []byte(e.Output)})
	default:
		t := told{Event: withoutOutput(e)}
		t.Dropped += int64(len(e.Output))
		w.waiting = append(w.waiting, t)
	}
	if room {
		w.output += len(e.Output)
	}
}

// withoutOutput is an event that does not hold on to its output while it waits.
func withoutOutput(e *notebook.Event) notebook.Event {
	c := *e
	c.Output = ""
	return c
}

// owe makes a note of what was lost wait, once there is room for it.
func (w *watcher) owe(now time.Time) {
	if w.missed == 0 && w.lost == 0 || len(w.waiting) >= eventBacklog {
		return
	}
	text := "some events were missed: look again"
	switch {
	case w.missed == 0:
		text = fmt.Sprintf("%d bytes of output were missed: noted run show has what is kept of it", w.lost)
	case w.lost > 0:
		text = fmt.Sprintf("some events and %d bytes of output were missed: look again", w.lost)
	}
	w.waiting = append(w.waiting, told{Event: notebook.Event{Time: now, Kind: "note", Text: text, Dropped: w.lost}})
	w.missed, w.lost = 0, 0
}

// next takes what has waited longest.
func (h *hub) next(w *watcher) (e notebook.Event, found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.owe(time.Now())
	if len(w.waiting) == 0 {
		return e, false
	}
	t := w.waiting[0]
	w.waiting[0] = told{}
	w.waiting = w.waiting[1:]
	w.output -= len(t.output)
	e = t.Event
	e.Output = string(t.output)
	return e, true
}

// join begins a watch of the events that sees lets through, for the client that
// label names.
func (h *hub) join(label string, sees func(*notebook.Event) bool) *watcher {
	w := &watcher{label: label, sees: sees, ready: make(chan struct{}, 1), gone: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[w] = struct{}{}
	h.number.Store(int64(len(h.watchers)))
	return w
}

func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	h.number.Store(int64(len(h.watchers)))
}

// drop ends the watches of a client whose token was taken away.
func (h *hub) drop(label string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if w.label == label {
			close(w.gone)
			delete(h.watchers, w)
		}
	}
	h.number.Store(int64(len(h.watchers)))
}

// watch calls each for every event that the watcher is told, until it fails, ctx
// ends, or the client has no token any more.
func (h *hub) watch(ctx context.Context, w *watcher, each func(notebook.Event) error) error {
	defer h.leave(w)
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-w.gone:
			return errToken
		default:
		}
		if e, found := h.next(w); found {
			if err := each(e); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.gone:
		case <-w.ready:
		}
	}
}
