//go:build race

package exec

// Under the race detector a worker needs memory for the detector's shadow, and
// mostly dies of exhaustion with the detector's exit status. The environment keeps it
// from sleeping a second at exit.
const (
	raceMemory    = 512 << 20
	exitExhausted = 66
	raceDetector  = true
)

var workerEnv = []string{"GORACE=atexit_sleep_ms=0", "MALLOC_ARENA_MAX=1"}
