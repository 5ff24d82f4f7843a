package exec

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"noted/notebook"
)

func TestOneSlotIsKeptForLocalFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(3, 8)
		let := make(chan string, 10)
		enter := func(name string, local bool) {
			go func() {
				if g.enter(t.Context(), local) == nil {
					let <- name
				}
			}()
			synctest.Wait()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if len(let) != len(want) {
				t.Fatalf("%d were let in, want %v", len(let), want)
			}
			for _, w := range want {
				if got := <-let; got != w {
					t.Fatalf("%s was let in, want %s", got, w)
				}
			}
		}
		enter("foreign 1", false)
		enter("foreign 2", false)
		enter("foreign 3", false)
		expect("foreign 1", "foreign 2")
		enter("local 1", true)
		expect("local 1")
		enter("local 2", true)
		expect()
		g.leave(false) // it waited longer
		expect("foreign 3")
		g.leave(true)
		expect("local 2")
		g.leave(false)
		g.leave(false)
		g.leave(true)
		if g.slots != 3 || g.foreign != 2 || len(g.waiting) != 0 {
			t.Fatalf("not empty again: %+v", g)
		}
	})
}

func TestHalfOfTheQueueIsKeptForLocalFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGate(2, 4)
		results := make(chan error, 10)
		enter := func(local bool) {
			go func() { results <- g.enter(ctx, local) }()
			synctest.Wait()
		}
		enter(true)
		enter(false)
		for range 2 { // half of the queue
			enter(false)
		}
		if len(results) != 2 {
			t.Fatalf("%d answers", len(results))
		}
		enter(false)
		if len(results) != 3 {
			t.Fatal("a third foreign run waits")
		}
		<-results
		<-results
		var e *notebook.Error
		if err := <-results; !errors.As(err, &e) || e.Code != notebook.CodeExhausted {
			t.Fatalf("refused with %v", err)
		}
		enter(true)
		enter(true)
		if len(results) != 0 {
			t.Fatal("a local run was refused with room in the queue")
		}
		enter(true)
		if err := <-results; !errors.As(err, &e) || e.Code != notebook.CodeExhausted {
			t.Fatalf("a run beyond the queue: %v", err)
		}
		cancel()
		synctest.Wait()
		for range 4 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled in the queue: %v", err)
			}
		}
		g.leave(true)
		g.leave(false)
		if g.slots != 2 || g.foreign != 1 || len(g.waiting) != 0 {
			t.Fatalf("not empty again: %+v", g)
		}
	})
}
