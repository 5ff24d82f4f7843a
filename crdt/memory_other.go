//go:build !linux || !cgo

package crdt

import "runtime"

// Collect gives back the memory of writers that were dropped, as far as Go's
// collector can.
func Collect() {
	runtime.GC()
	runtime.GC()
}
