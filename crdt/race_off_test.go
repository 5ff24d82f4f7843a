//go:build !race

package crdt

const raceDetector = false
