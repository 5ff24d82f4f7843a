//go:build !race

package p2ptest

import "testing"

// oneProcessor is for the race detector alone.
func oneProcessor(testing.TB) {}
