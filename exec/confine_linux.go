package exec

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Confine takes from this process, for good, what a program that only computes
// on its standard input and output does not need: every other descriptor, the
// right to open a file, to reach the network or to start a program, and more
// memory than most bytes beside what it has now. Where memory runs short in the
// whole machine it is the first to go. It is a jail for this program's own code,
// of which some is not memory-safe; a fence's is [Runner]'s. What this kernel
// does not let it take stays, and the error names the first such layer.
func Confine(most int64) error {
	// Set at all, it keeps the Go runtime from reading the cgroup's limits.
	runtime.GOMAXPROCS(1)
	closeAbove(2)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var first error
	_, data, err := readSizes()
	if err != nil {
		data, first = 0, fmt.Errorf("%s: %w", layerLimits, err)
	}
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, data + uint64(most)},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, 3},
	} {
		if err := lower(l.resource, l.value, true); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", layerLimits, err)
		}
	}
	if err := filter(); err != nil && first == nil {
		first = fmt.Errorf("%s: %w", layerSeccomp, err)
	}
	return first
}
