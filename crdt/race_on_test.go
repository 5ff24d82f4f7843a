//go:build race

package crdt

// raceDetector says that the tests run under the race detector, which reserves
// more address space than any limit.
const raceDetector = true
