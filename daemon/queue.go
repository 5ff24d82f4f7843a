package daemon

import (
	"context"
	"sync"

	"noted/notebook"
)

// queue hands sealed batches to the one goroutine that writes them. It has no
// bound of its own: each batch has a waiter, and who waits is bounded.
type queue struct {
	mu      sync.Mutex // guards pending and over
	pending []*sealed
	over    bool          // nobody writes any more
	ready   chan struct{} // holds a value while pending is not empty
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) put(s *sealed) {
	q.mu.Lock()
	if q.over {
		q.mu.Unlock()
		s.err = errStopped
		close(s.done)
		return
	}
	q.pending = append(q.pending, s)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// errStopped is the error of a step that came too late.
var errStopped = notebook.Errorf(notebook.CodeUnavailable, "the daemon has stopped").With("noted daemon run starts it again")

func (q *queue) take(last bool) []*sealed {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = last
	all := q.pending
	q.pending = nil
	return all
}

// serve writes what is queued until ctx ends, and then what is left.
func (q *queue) serve(ctx context.Context, write func([]*sealed)) {
	for {
		select {
		case <-q.ready:
		case <-ctx.Done():
			if rest := q.take(true); len(rest) > 0 {
				write(rest)
			}
			return
		}
		if group := q.take(false); len(group) > 0 {
			write(group)
		}
	}
}

// feed tells the sync exchange that there may be more to send. Each receiver's
// channel holds one value at most: it looks again, however often it was told.
type feed struct {
	mu        sync.Mutex // guards receivers
	receivers map[chan struct{}]struct{}
}

func newFeed() *feed { return &feed{receivers: map[chan struct{}]struct{}{}} }

func (f *feed) signal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.receivers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// subscribe returns a channel that is signalled until ctx ends.
func (f *feed) subscribe(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	f.receivers[c] = struct{}{}
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		delete(f.receivers, c)
		f.mu.Unlock()
	})
	return c
}
