package exec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"
)

// No limit of the kernel bounds what a Go program can make resident.
// RLIMIT_DATA charges a mapping that replaces another only for the difference,
// and that is how Go's heap grows into the 64 MiB arenas that it reserves;
// RLIMIT_AS counts what is reserved, so it is as coarse as an arena. So the
// worker first reserves all the address space that its heap may ever use (the
// window), blocks what the last arena has beyond it with one block that is never
// touched (the filler), and then lets the address space grow by less than an
// arena: a heap that is full cannot get another one, and what is resident stays
// within what was resident before plus the window.
const (
	// heapSlack is how far the address space may still grow, for threads and
	// the runtime's own tables; it must stay below one arena.
	heapSlack = 56 << 20
	// heapTables is what those tables may come to next to a full window.
	heapTables = 6 << 20
	// heapLeast is the smallest window that is worth starting a fence in.
	heapLeast = 8 << 20
)

var filler []byte // kept for good, never touched

// boundHeap makes the window so that the peak of the resident memory stays
// within most bytes, and returns the values for RLIMIT_DATA and RLIMIT_AS.
func boundHeap(most int64) (data, space uint64, err error) {
	now, err := readStatus("/proc/self/status", "VmHWM", "VmSize", "VmData")
	if err != nil {
		return 0, 0, err
	}
	if raceMemory > 0 {
		// The detector's shadow makes every block resident, a filler too.
		return now[2] + uint64(most) + raceMemory, now[1] + uint64(most) + 4*raceMemory, nil
	}
	window := most - int64(now[0]) - heapTables
	if window < heapLeast {
		return 0, 0, fmt.Errorf("%w: %d MiB where it takes %d", errSmall, most>>20, (int64(now[0])+heapTables+heapLeast)>>20+1)
	}
	if window > math.MaxInt32 {
		window = math.MaxInt32 // beyond two gibibytes RLIMIT_DATA has to do
	}
	block := make([]byte, window)
	rest, err := reservedAfter(uintptr(unsafe.Pointer(&block[0])) + uintptr(window))
	if err != nil {
		return 0, 0, err
	}
	if rest > 0 {
		filler = make([]byte, rest)
	}
	runtime.KeepAlive(block)
	block = nil
	debug.FreeOSMemory()
	if now, err = readStatus("/proc/self/status", "VmHWM", "VmSize", "VmData"); err != nil {
		return 0, 0, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// Collect before the window is full, rather than die of garbage.
	debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + window*7/8)
	return now[2] + heapSlack, now[1] + heapSlack, nil
}

// reservedAfter is how much of the arena that holds addr is reserved and not yet
// part of the heap: the inaccessible mapping that follows the heap's own.
func reservedAfter(addr uintptr) (uint64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	var end uint64
	for l := range bytes.Lines(maps) {
		fields := bytes.Fields(l)
		if len(fields) < 2 {
			return 0, errors.New("/proc/self/maps cannot be read")
		}
		start, stop, _ := strings.Cut(string(fields[0]), "-")
		from, err1 := strconv.ParseUint(start, 16, 64)
		to, err2 := strconv.ParseUint(stop, 16, 64)
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		switch {
		case end != 0 && from == end && bytes.HasPrefix(fields[1], []byte("---")):
			return to - from, nil
		case end != 0 && from == end:
			end = to
		case end != 0:
			return 0, nil
		case from < uint64(addr) && uint64(addr) <= to:
			end = to
		}
	}
	return 0, nil
}

// readStatus reads values of a /proc/PID/status, in bytes.
func readStatus(path string, keys ...string) ([]uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values, found := make([]uint64, len(keys)), 0
	for s := bufio.NewScanner(f); s.Scan() && found < len(keys); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		for i, k := range keys {
			if k != name {
				continue
			}
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return nil, err
			}
			values[i] = kib << 10
			found++
		}
	}
	if found < len(keys) {
		return nil, errors.New(path + " does not say how much memory is in use")
	}
	return values, nil
}
