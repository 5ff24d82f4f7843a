package exec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
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
	// sharedLeast is how much more it must be where an engine has memory of its own.
	sharedLeast = 16 << 20
)

// fillers are kept for good and never touched. One is enough, unless something
// else lies behind the last arena and looks like a part of it.
var fillers [][]byte

const maxFillers = 4

func endOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(len(b)) }

// limitMemory bounds the peak of the resident memory to most bytes. What an
// engine has beside Go's heap is a part of it.
func limitMemory(most int64, p *proc, e engine) error {
	data, space := uint64(heapSlack), uint64(heapSlack)
	if raceMemory > 0 {
		// The detector's shadow makes every block resident, a filler too.
		data, space = uint64(most)+raceMemory, uint64(most)+4*raceMemory
		if s, ok := e.(shared); ok {
			s.share(most)
		}
	} else if err := makeWindow(most, p, e); err != nil {
		return err
	}
	// A thread of the runtime's may be starting meanwhile, with a stack that is in one
	// look and not in another. So the limits are soft, and follow, until two looks in a
	// row see the same. What a thread of the C library would take beside its stack,
	// more than there is room for, it does not take here; see [workerEnv].
	var last uint64
	for looks := 0; ; looks++ {
		size, inUse, err := p.sizes()
		if err != nil {
			return err
		}
		settled := size == last
		last = size
		for _, l := range []struct {
			name     string
			resource int
			value    uint64
		}{{"RLIMIT_DATA", unix.RLIMIT_DATA, inUse + data}, {"RLIMIT_AS", unix.RLIMIT_AS, size + space}} {
			if err := lower(l.resource, l.value, settled); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
		if settled {
			return nil
		}
		if looks == 100 {
			return errors.New("the address space of the worker does not come to rest")
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 50_000}, nil)
	}
}

// tooLittle says that a limit leaves no room for a fence. Both are in bytes.
type tooLittle struct{ most, needs int64 }

func (t tooLittle) Error() string {
	return fmt.Sprintf("the memory limit of %d MiB is below the %d that a worker needs", t.most>>20, t.needs>>20+1)
}

// makeWindow reserves and blocks, see above.
func makeWindow(most int64, p *proc, e engine) error {
	now, err := p.peak()
	if err != nil {
		return err
	}
	window, least := most-now-heapTables, int64(heapLeast)
	s, isShared := e.(shared)
	if isShared {
		least += sharedLeast
	}
	if window < least {
		return tooLittle{most, now + heapTables + least}
	}
	if isShared {
		window = s.share(window)
	}
	if window > math.MaxInt32 {
		window = math.MaxInt32 // beyond two gibibytes RLIMIT_DATA has to do
	}
	debug.SetGCPercent(-1) // one collection, at the end, not one for each block
	block := make([]byte, window)
	fillers = nil
	for end := endOf(block); ; {
		rest, err := p.reservedAfter(end)
		if err != nil {
			return err
		}
		if rest == 0 {
			break
		}
		if len(fillers) == maxFillers {
			return errors.New("the heap cannot be closed: it goes on behind every block")
		}
		f := make([]byte, rest)
		fillers, end = append(fillers, f), endOf(f)
	}
	runtime.KeepAlive(block)
	block = nil
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// Collect before the window is full, rather than die of garbage.
	debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + window*7/8)
	debug.SetGCPercent(100)
	return nil
}

// reservedAfter is how much of the arena that holds addr is reserved and not yet
// part of the heap: the inaccessible mapping that follows the heap's own.
func (p *proc) reservedAfter(addr uintptr) (uint64, error) {
	maps, err := readAll(p.maps)
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

// proc are the files in which the kernel tells of this process, opened while
// there are files.
type proc struct{ status, statm, maps, refs *os.File }

func openProc() (*proc, error) {
	var p proc
	for _, f := range []struct {
		file **os.File
		name string
	}{{&p.status, "status"}, {&p.statm, "statm"}, {&p.maps, "maps"}} {
		var err error
		if *f.file, err = os.Open("/proc/self/" + f.name); err != nil {
			return nil, err
		}
	}
	p.refs, _ = os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0)
	return &p, nil
}

func (p *proc) close() {
	for _, f := range []*os.File{p.status, p.statm, p.maps, p.refs} {
		f.Close()
	}
}

// forgetPeak makes the peak of the resident memory what is resident now. Where
// the kernel cannot, it stays, and there is less room.
func (p *proc) forgetPeak() { _, _ = p.refs.WriteString("5") }

// peak is the peak of the resident memory, in bytes.
func (p *proc) peak() (int64, error) {
	b, err := readAll(p.status)
	if err != nil {
		return 0, err
	}
	v, err := statusValues(bytes.NewReader(b), "VmHWM")
	if err != nil {
		return 0, err
	}
	return int64(v[0]), nil
}

// readAll reads a file of /proc from its beginning.
func readAll(f *os.File) ([]byte, error) { return io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64)) }

// readSizes reads the address space and the data of this process, in bytes.
func readSizes() (size, data uint64, err error) {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	return (&proc{statm: f}).sizes()
}

// sizes are the address space and the data of this process, in bytes.
func (p *proc) sizes() (size, data uint64, err error) {
	b, err := readAll(p.statm)
	if err != nil {
		return 0, 0, err
	}
	pages := strings.Fields(string(b))
	if len(pages) < 6 {
		return 0, 0, errors.New("/proc/self/statm cannot be read")
	}
	size, err1 := strconv.ParseUint(pages[0], 10, 64)
	data, err2 := strconv.ParseUint(pages[5], 10, 64) // with the stack
	page := uint64(os.Getpagesize())
	return size * page, data * page, errors.Join(err1, err2)
}

// readStatus reads values of a /proc/PID/status, in bytes.
func readStatus(path string, keys ...string) ([]uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values, err := statusValues(f, keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

func statusValues(status io.Reader, keys ...string) ([]uint64, error) {
	values, found := make([]uint64, len(keys)), 0
	for s := bufio.NewScanner(status); s.Scan() && found < len(keys); {
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
		return nil, errors.New("it does not say how much memory is in use")
	}
	return values, nil
}
