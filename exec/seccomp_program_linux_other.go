//go:build linux && !amd64

package exec

var (
	programCallsHere []uint32
	killedCallsHere  []uint32
	refusedHere      []refusedIf
)
