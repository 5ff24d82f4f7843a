package exec

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowed are the system calls of a Go program that computes, reads and writes
// what it has open, and ends.
var allowed = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_RESTART_SYSCALL, unix.SYS_EPOLL_PWAIT,
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_MREMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, // of the threads of a cgo program
}

// denied are calls that the Go runtime and the C library make lazily and can do
// without: they fail instead of killing.
var denied = append([]uint32{unix.SYS_OPENAT, unix.SYS_FSTAT, unix.SYS_READLINKAT, unix.SYS_GETCWD, unix.SYS_UNAME, unix.SYS_GETPPID}, deniedHere...)

// startingCalls are let through while an engine starts, beside those of a worker:
// what puts the last limits and the last filter in place.
var startingCalls = []uint32{unix.SYS_PREAD64, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_PRLIMIT64, unix.SYS_PRCTL, unix.SYS_SECCOMP}

// loadingCalls are let through before, while an engine file is mapped. Nothing of
// the engine runs then.
var loadingCalls = []uint32{
	unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_OPENAT, unix.SYS_FSTAT, callStat, unix.SYS_FCNTL, unix.SYS_EPOLL_CTL,
	unix.SYS_CHROOT, unix.SYS_FCHDIR, unix.SYS_CHDIR,
}

// condition allows a call for some values of one argument: it must have all
// bits of set and none of unset, or be exactly equal.
type condition struct {
	call     uint32
	argument int
	test     uint16 // unix.BPF_JEQ or BPF_JSET
	value    uint32
	want     bool // the test's outcome for which the call is allowed
}

func conditions() []condition {
	return []condition{
		{unix.SYS_MMAP, 2, unix.BPF_JSET, unix.PROT_EXEC, false},
		{unix.SYS_MPROTECT, 2, unix.BPF_JSET, unix.PROT_EXEC, false},
		{unix.SYS_CLONE, 0, unix.BPF_JSET, unix.CLONE_THREAD, true},
		{unix.SYS_TGKILL, 0, unix.BPF_JEQ, uint32(os.Getpid()), true},
		{unix.SYS_PRCTL, 0, unix.BPF_JEQ, unix.PR_SET_VMA, true},
	}
}

// Offsets in the kernel's struct seccomp_data: the call, the architecture, the
// arguments of eight bytes each.
const (
	offCall = 0
	offArch = 4
	offArgs = 16
)

// program is the filter as the kernel runs it; the calls in also are allowed
// too, whatever their arguments. What it does not know kills the process, as does
// a call through another architecture's table.
func program(also ...uint32) []unix.SockFilter {
	var p []unix.SockFilter
	load := func(off uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off})
	}
	skip := func(test uint16, k uint32, yes, no uint8) {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k})
	}
	ret := func(action uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
	}
	answer := func(calls []uint32, action uint32) {
		for _, c := range calls {
			skip(unix.BPF_JEQ, c, 0, 1)
			ret(action)
		}
	}
	load(offArch)
	skip(unix.BPF_JEQ, auditArch, 1, 0)
	ret(unix.SECCOMP_RET_KILL_PROCESS)
	load(offCall)
	answer(also, unix.SECCOMP_RET_ALLOW) // first: it may overrule what follows
	answer(allowed, unix.SECCOMP_RET_ALLOW)
	answer([]uint32{unix.SYS_CLONE3}, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)) // then clone is used
	answer(denied, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))
	for _, c := range conditions() {
		// Every condition ends in an answer: what it loaded is not the call any more.
		skip(unix.BPF_JEQ, c.call, 0, 6)
		load(offArgs + 8*uint32(c.argument) + 4) // the upper half, on a little-endian processor
		skip(unix.BPF_JEQ, 0, 0, 3)
		load(offArgs + 8*uint32(c.argument))
		if c.want {
			skip(c.test, c.value, 0, 1)
		} else {
			skip(c.test, c.value, 1, 0)
		}
		ret(unix.SECCOMP_RET_ALLOW)
		ret(unix.SECCOMP_RET_KILL_PROCESS)
	}
	ret(unix.SECCOMP_RET_KILL_PROCESS)
	return p
}

// filter puts every thread of this process under the program, for good.
func filter(also ...uint32) error {
	if auditArch == 0 {
		return fmt.Errorf("noted has no filter of system calls for %s yet", runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	p := program(also...)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	// Without ESRCH a thread that could not be put under the filter is returned
	// as a number, which reads as success.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("the filter of system calls: %w", e)
	}
	return nil
}
