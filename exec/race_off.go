//go:build !race

package exec

// The race detector's own needs; see race_on.go.
const (
	raceMemory    = 0
	exitExhausted = 2 // of the Go runtime when it cannot get memory or stack
	raceDetector  = false
)

var workerEnv = []string{}
