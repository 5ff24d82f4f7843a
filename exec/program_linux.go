package exec

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programName is argv[0] of what becomes a program of a granted run: it limits
// itself and executes it. Its arguments are those of a worker, how many of them
// say what is granted, the program's real path, and then its own arguments.
const programName = "noted-fence-program"

// Bounds of one program. All memory that it maps counts, and all of its kind
// together are watched by the launcher.
const (
	programFiles = 256 // descriptors
	programTasks = 256 // processes and threads of the run, where the kernel counts them for it
)

// programRules are what every program may reach. Its own /tmp is not noted's to
// be careful with, but it is not there if a directory in it was granted: what
// landlock allows in one, it allows in the other.
func programRules(all []granted) []landRule {
	rules := []landRule{{os.DevNull, landReadFile | landWriteFile}, {"/dev/zero", landReadFile}, {"/dev/urandom", landReadFile}}
	if !slices.ContainsFunc(all, func(g granted) bool { return g.kind != argProgram && within("/tmp", g.real) }) {
		rules = append(rules, landRule{"/tmp", landToWrite | landMakeSymlink | landMakePipe | landMakeSocket | landRefer})
	}
	return rules
}

// beProgram limits this process and executes the program. It returns only where
// that fails; the shell's words for that are 126 and 127.
func beProgram(args []string) int {
	runtime.LockOSThread() // landlock and the filter are of the thread that calls execve
	debug.SetGCPercent(-1)
	const cannot = 126
	fail := func(err error) int {
		fmt.Fprintf(os.Stderr, "noted: the program cannot be started: %v\n", err)
		return cannot
	}
	k, err := readKind(args)
	if err != nil {
		return fail(err)
	}
	args = args[kindArgs:]
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || n+3 > len(args) {
		return fail(errFrame)
	}
	all, err := readGranted(args[1 : 1+n])
	if err != nil {
		return fail(err)
	}
	path, argv := args[1+n], args[2+n:]
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(err)
	}
	rules := programRules(all)
	for _, l := range libraries { // of which the stage lets only the linkers be executed
		rules = append(rules, landRule{l, landExecute | landReadFile | landReadDir})
	}
	for _, g := range all {
		switch g.kind {
		case argProgram:
			rules = append(rules, landRule{g.real, landExecute | landReadFile})
		case argRead:
			rules = append(rules, landRule{g.real, landToRead})
		case argWrite:
			rules = append(rules, landRule{g.real, landToWrite})
		}
	}
	if err := restrictProgram(rules); err != nil {
		return fail(err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fail(err)
	}
	f := programFilter(signalsAreScoped())
	filter := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return fail(err)
	}
	list := make([]*byte, 0, len(argv)+1)
	for _, a := range argv {
		p, err := unix.BytePtrFromString(a)
		if err != nil {
			return fail(err)
		}
		list = append(list, p)
	}
	list = append(list, nil)
	environment := []*byte{nil}
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_CPU, cpuSeconds(k.limits.Time)},
		{unix.RLIMIT_FSIZE, maxFile},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_NOFILE, programFiles},
		{unix.RLIMIT_NPROC, programTasks},
		{unix.RLIMIT_DATA, uint64(k.limits.Memory)},
		{unix.RLIMIT_AS, uint64(k.limits.Memory)}, // last: with it nothing more can be mapped here
	} {
		if err := lower(l.resource, l.value, true); err != nil {
			return fail(err)
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter))); e != 0 {
		return cannot
	}
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&environment[0])))
	if e == unix.ENOENT {
		return 127
	}
	return cannot
}
