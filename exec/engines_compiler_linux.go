package exec

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// compilerName is argv[0] of a compiler of engine files. Its other arguments
// say whether landlock holds, how many bytes of memory and how much time it has.
const compilerName = "noted-engine-compiler"

// The descriptors of a compiler.
const (
	fdModule = 0 // the engine file, sealed
	fdReport = 1 // what is wrong; 2 is /dev/null
	fdPlace  = 3 // the one directory that it may write to
)

// compilerCalls are what a compiler needs beside a worker: the files of one
// directory, and to make what it compiled executable, which wazero does before
// it writes it to a file. It is not run here.
var compilerCalls = []uint32{
	unix.SYS_OPENAT, unix.SYS_FSTAT, unix.SYS_MKDIRAT, unix.SYS_FSYNC, unix.SYS_FCNTL, unix.SYS_PREAD64,
	unix.SYS_RENAMEAT, unix.SYS_UNLINKAT, unix.SYS_EPOLL_CTL, unix.SYS_MPROTECT, callStat,
}

// insideCompiler, where a test sets it, tries what cannot be done in the jail.
var insideCompiler func(memory int64) error

// compile compiles the module on fdModule and never runs any of it.
func compile() int {
	runtime.GOMAXPROCS(workerThreads) // first; see there
	debug.SetTraceback("none")
	fail := func(code int, err error) int {
		fmt.Fprintf(os.NewFile(fdReport, "report"), "%.1000s", err.Error())
		return code
	}
	if len(os.Args) != 4 {
		return exitProtocol
	}
	memory, err1 := strconv.ParseInt(os.Args[2], 10, 64)
	span, err2 := strconv.ParseInt(os.Args[3], 10, 64)
	if err1 != nil || err2 != nil {
		return exitProtocol
	}
	closeAbove(fdPlace)
	time.AfterFunc(2*time.Duration(span), func() { os.Exit(exitLate) })
	if err := limitCompiler(memory, time.Duration(span)); err != nil {
		return fail(exitNoJail, fmt.Errorf("%s: %w", layerLimits, err))
	}
	err := unix.Fchdir(fdPlace)
	if err == nil {
		err = unix.Chroot(".")
	}
	place := "/"
	if err != nil {
		if os.Args[1] != "true" {
			return fail(exitNoJail, fmt.Errorf("%s: %w", layerRoot, err))
		}
		place = "/proc/self/fd/3"
	} else if err := unix.Chdir("/"); err != nil {
		return fail(exitNoJail, fmt.Errorf("%s: %w", layerRoot, err))
	}
	if err := filter(compilerCalls...); err != nil {
		return fail(exitNoJail, fmt.Errorf("%s: %w", layerSeccomp, err))
	}

	if insideCompiler != nil {
		if err := insideCompiler(memory); err != nil {
			return fail(1, err)
		}
	}
	module, err := io.ReadAll(io.NewSectionReader(os.NewFile(fdModule, "module"), 0, maxEngine))
	if err != nil {
		return fail(1, err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(place)
	if err != nil {
		return fail(1, err)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), workerThreads)
	r := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(cache))
	if _, err := r.CompileModule(ctx, module); err != nil {
		return fail(1, err)
	}
	return 0
}

// limitCompiler bounds a compiler. Its memory is bounded more coarsely than a
// worker's, by what it maps: compiled code lies outside of Go's heap.
func limitCompiler(memory int64, span time.Duration) error {
	size, data, err := readSizes()
	if err != nil {
		return err
	}
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, data + uint64(memory) + raceMemory},
		{"RLIMIT_AS", unix.RLIMIT_AS, size + uint64(memory) + 4*raceMemory},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, cpuSeconds(span)},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, maxCode},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, 16},
	} {
		if err := lower(l.resource, l.value, true); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}
