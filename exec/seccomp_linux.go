package exec

import (
	"os"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// syncOrFail makes the kernel report a thread that could not be put under the
// filter as an error. Without it the thread's id is returned, which reads as success.
const syncOrFail = seccomp.FilterFlag(1 << 4) // SECCOMP_FILTER_FLAG_TSYNC_ESRCH

// allowed are the system calls of a Go program that computes, reads and writes
// what it has open, and ends.
var allowed = []string{
	"read", "write", "close", "exit", "exit_group",
	"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "sched_yield", "sched_getaffinity", "restart_syscall",
	"munmap", "madvise", "mincore", "mremap", "brk",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
	"getpid", "gettid", "getrandom",
	"epoll_pwait",
	"set_robust_list", "rseq", // of the threads of a cgo program
}

// denied are calls that the Go runtime and the C library make lazily and can do
// without: they fail instead of killing.
var denied = []string{"open", "openat", "newfstatat", "fstat", "readlinkat", "getcwd", "uname"}

// filter puts every thread of this process under the allow-list. Any other call
// kills the process.
func filter() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	only := func(argument uint32, op seccomp.Operation, value uint64) seccomp.ArgumentConditions {
		return seccomp.ArgumentConditions{{Argument: argument, Operation: op, Value: value}}
	}
	noExec := only(2, seccomp.BitsNotSet, unix.PROT_EXEC)
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync | syncOrFail,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionKillProcess,
			Syscalls: []seccomp.SyscallGroup{
				{
					Action: seccomp.ActionAllow,
					Names:  known(info, allowed),
					NamesWithCondtions: []seccomp.NameWithConditions{
						{Name: "mmap", Conditions: noExec},
						{Name: "mprotect", Conditions: noExec},
						{Name: "clone", Conditions: only(0, seccomp.BitsSet, unix.CLONE_THREAD)},
						{Name: "tgkill", Conditions: only(0, seccomp.Equal, uint64(os.Getpid()))},
						{Name: "prctl", Conditions: only(0, seccomp.Equal, unix.PR_SET_VMA)},
						{Name: "fcntl", Conditions: only(1, seccomp.Equal, unix.F_GETFL)},
					},
				},
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: known(info, []string{"clone3"})},
				{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: known(info, denied)},
			},
		},
	})
}

// known leaves out names that this processor's kernel does not have.
func known(info *arch.Info, names []string) []string {
	var k []string
	for _, n := range names {
		if _, ok := info.SyscallNames[n]; ok {
			k = append(k, n)
		}
	}
	return k
}
