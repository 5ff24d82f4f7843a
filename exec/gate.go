package exec

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"noted/notebook"
)

// gate lets so many runs in at once and so many wait. Of both a part is kept
// for runs of what this person typed here: one slot, and half of the queue, so
// that nothing from elsewhere can keep a person's own fences out.
type gate struct {
	mu      sync.Mutex
	slots   int // free
	foreign int // slots that foreign runs may still take
	queue   int // waiters there may be
	waiting []*waiter
}

type waiter struct {
	local bool
	in    chan struct{}
}

func newGate(slots, queue int) *gate {
	return &gate{slots: slots, foreign: max(1, slots-1), queue: queue}
}

// enter waits for a slot. It refuses at once if too many wait already.
func (g *gate) enter(ctx context.Context, local bool) error {
	g.mu.Lock()
	if g.takes(local) {
		g.take(local)
		g.mu.Unlock()
		return nil
	}
	most, waiting := g.queue, len(g.waiting)
	if !local {
		most = g.queue / 2
		waiting = 0
		for _, w := range g.waiting {
			if !w.local {
				waiting++
			}
		}
	}
	if waiting >= most || len(g.waiting) >= g.queue {
		g.mu.Unlock()
		wait := fmt.Sprintf("%d fences wait", waiting)
		if waiting == 1 {
			wait = "1 fence waits"
		}
		return notebook.Errorf(notebook.CodeExhausted, "%s to run already, no more are taken", wait).
			With("wait until some have ended, or cancel one")
	}
	w := &waiter{local: local, in: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else {
		g.give(local) // it was let in meanwhile
	}
	return stopped(ctx)
}

func stopped(ctx context.Context) error { return fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx)) }

func (g *gate) leave(local bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(local)
}

func (g *gate) takes(local bool) bool { return g.slots > 0 && (local || g.foreign > 0) }

func (g *gate) take(local bool) {
	g.slots--
	if !local {
		g.foreign--
	}
}

// give frees a slot and lets in whoever waits longest among those that may.
func (g *gate) give(local bool) {
	g.slots++
	if !local {
		g.foreign++
	}
	for i := 0; i < len(g.waiting); {
		w := g.waiting[i]
		if !g.takes(w.local) {
			i++
			continue
		}
		g.take(w.local)
		g.waiting = slices.Delete(g.waiting, i, i+1)
		close(w.in)
	}
}
