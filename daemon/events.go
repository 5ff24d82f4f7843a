package daemon

import (
	"context"
	"sync"
	"time"

	"noted/notebook"
)

// eventBacklog is how many events a watcher may be behind before it loses
// some: a few seconds of a busy sync.
const eventBacklog = 256

// hub tells watchers what happened. A watcher that does not keep up loses
// events and is told so; it never holds anybody up.
type hub struct {
	mu       sync.Mutex // guards watchers
	watchers map[*watcher]struct{}
}

type watcher struct {
	events chan notebook.Event
	label  string        // whose it is
	gone   chan struct{} // closed when its client's token is taken away
	missed int           // guarded by the hub's mutex
}

func newHub() *hub { return &hub{watchers: map[*watcher]struct{}{}} }

func (h *hub) tell(events ...notebook.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		if e.Time.IsZero() {
			e.Time = now
		}
		for w := range h.watchers {
			if w.missed > 0 {
				select {
				case w.events <- notebook.Event{Time: now, Kind: "note", Text: "some events were missed: look again"}:
					w.missed = 0
				default:
				}
			}
			select {
			case w.events <- e:
			default:
				w.missed++
			}
		}
	}
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
}

// watch calls each for every event from now on, until it fails, ctx ends, or
// the client that label names has no token any more.
func (h *hub) watch(ctx context.Context, label string, each func(notebook.Event) error) error {
	w := &watcher{label: label, events: make(chan notebook.Event, eventBacklog), gone: make(chan struct{})}
	h.mu.Lock()
	h.watchers[w] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.watchers, w)
		h.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.gone:
			return errToken
		case e := <-w.events:
			if err := each(e); err != nil {
				return err
			}
		}
	}
}
