//go:build !race

package exec

// The race detector's own needs; see race_on.go.
const (
	raceMemory    = 0
	exitExhausted = exitRuntime
	raceDetector  = false
)

// workerEnv is for the Go runtime of a worker, which forgets it at once, and
// tells nothing. The memory profile that nobody reads and a second processor
// while the program starts would take a megabyte that is the worker's own. Of the
// C library's allocator every thread would have an area of its own, for which it
// takes 64 MiB of address space as it starts: more than a worker may still grow
// by, see [heapSlack].
var workerEnv = []string{"GODEBUG=memprofilerate=0", "GOMAXPROCS=1", "MALLOC_ARENA_MAX=1"}
