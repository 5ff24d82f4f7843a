package daemon

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// TestWatchersAddUp: whatever is told and however slowly it is taken, each byte
// of output is had or counted, and what waits is bounded.
func TestWatchersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHub()
		w := h.join("owner", func(*notebook.Event) bool { return true })
		runs := []*notebook.RunInfo{{Number: 1}, {Number: 2}}
		var told, had int64
		take := func() bool {
			e, found := h.next(w)
			had += int64(len(e.Output)) + e.Dropped
			return found
		}
		for range rapid.IntRange(0, 8).Draw(t, "bursts") {
			n := rapid.IntRange(1, 300).Draw(t, "told")
			run := rapid.SampledFrom(runs).Draw(t, "run")
			size := rapid.SampledFrom([]int{1, 100, 20_000}).Draw(t, "size")
			switches := rapid.Bool().Draw(t, "switches")
			for i := range n {
				if switches {
					run = runs[i%2]
				}
				e := notebook.Event{Kind: eventOutput, Run: run, Output: string(make([]byte, size)), Dropped: int64(i % 3)}
				if i%10 == 9 {
					e = notebook.Event{Kind: "page"}
				}
				told += int64(len(e.Output)) + e.Dropped
				h.tell(e)
			}
			if len(w.waiting) > eventBacklog || w.output > outputBacklog {
				t.Fatalf("%d events and %d bytes wait", len(w.waiting), w.output)
			}
			for range rapid.IntRange(0, 50).Draw(t, "taken") {
				take()
			}
		}
		for take() {
		}
		if had != told || w.output != 0 || w.missed != 0 || w.lost != 0 {
			t.Fatalf("%d bytes told and %d had; left: %d bytes, %d missed, %d lost", told, had, w.output, w.missed, w.lost)
		}
	})
}

// TestI1WatcherHoldsNoOutputThatIsCounted: who does not read holds on to the bytes
// that it is still told, and not to those that are only counted, whosever they are.
func TestI1WatcherHoldsNoOutputThatIsCounted(t *testing.T) {
	h := newHub()
	w := h.join("owner", func(*notebook.Event) bool { return true })
	sent := 0
	for i := range 4 * eventBacklog {
		run := &notebook.RunInfo{Number: uint64(1 + i%2)} // in turn, so that nothing is put together
		text := strings.Repeat("x", 1000)
		sent += len(text)
		h.tell(notebook.Event{Kind: eventOutput, Run: run, Output: text})
	}
	held := 0
	for _, e := range w.waiting {
		held += len(e.Output) + len(e.output)
	}
	if held > outputBacklog || len(w.waiting) > eventBacklog {
		t.Errorf("it holds %d bytes in %d events", held, len(w.waiting))
	}
	told, lost := 0, 0
	for e, found := h.next(w); found; e, found = h.next(w) {
		told += len(e.Output)
		lost += int(e.Dropped)
	}
	if told+lost != sent || told == 0 || lost == 0 {
		t.Errorf("%d bytes are told and %d counted, of %d", told, lost, sent)
	}
}
