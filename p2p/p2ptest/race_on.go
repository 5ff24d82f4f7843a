//go:build race

package p2ptest

import (
	"runtime"
	"testing"
)

// oneProcessor keeps two processors from receiving from timers of one bubble at
// once until the test ends. The race detector has one context for all timers of a
// bubble, which they would use together (Go 1.26: runtime.unlockAndRun takes
// bubble.timers.raceCtx without a lock), and it dies of that. It sees the same
// races with one processor: it goes by what happens before what.
func oneProcessor(t testing.TB) {
	n := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(n) })
}
