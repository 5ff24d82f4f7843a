package exec

import (
	"math"

	"golang.org/x/sys/unix"
)

// programCalls are what an ordinary program does: with its memory, its threads
// and children, its descriptors, and the files that it can see.
var programCalls = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREADV,
	unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_FSTAT, callStat,
	unix.SYS_STATX, unix.SYS_LSEEK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MADVISE,
	unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MLOCK, unix.SYS_MUNLOCK, unix.SYS_BRK, unix.SYS_RT_SIGACTION,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_SIGALTSTACK, unix.SYS_IOCTL, unix.SYS_OPENAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_UTIMENSAT, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FLOCK,
	unix.SYS_FCNTL, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
	unix.SYS_SIGNALFD4, unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
	unix.SYS_TIMES, unix.SYS_GETRUSAGE, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY,
	unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_GETCPU, unix.SYS_SYSINFO, unix.SYS_UNAME, unix.SYS_GETPID,
	unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_GETGROUPS, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_SETPGID,
	unix.SYS_SETSID, unix.SYS_UMASK, unix.SYS_PRLIMIT64, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_GETPRIORITY,
	unix.SYS_SETPRIORITY, unix.SYS_GETRANDOM, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4, unix.SYS_WAITID,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_RESTART_SYSCALL, unix.SYS_PRCTL, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_SOCKETPAIR, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SHUTDOWN,
	unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_SPLICE, unix.SYS_TEE,
	unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE, unix.SYS_MEMBARRIER, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN, unix.SYS_TIMER_DELETE,
	unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FADVISE64, unix.SYS_READAHEAD, unix.SYS_CAPGET,
}, programCallsHere...)

// signalCalls reach other processes. They are for programs where landlock keeps
// signals within the program.
var signalCalls = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL}

// killedCalls have no use but to get out, or to rule the machine.
var killedCalls = append([]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
	unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_SYSLOG, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
}, killedCallsHere...)

// newNamespaces are the flags of clone that would make one.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// datagrams is the bit that a socket of single messages has in its type, and no
// other one: it could send them to any socket that a directory holds.
const datagrams = unix.SOCK_DGRAM

// idBits let a file be executed with the rights of whose it is.
const idBits = unix.S_ISUID | unix.S_ISGID

// refusedIf refuses a call where its arguments have a bit of each mask.
type refusedIf struct {
	call  uint32
	masks []struct {
		argument int
		mask     uint32
	}
}

func refusing(call uint32, argumentsAndMasks ...uint32) refusedIf {
	r := refusedIf{call: call}
	for i := 0; i < len(argumentsAndMasks); i += 2 {
		r.masks = append(r.masks, struct {
			argument int
			mask     uint32
		}{int(argumentsAndMasks[i]), argumentsAndMasks[i+1]})
	}
	return r
}

// programFilter is the filter of a program. It kills for what no program does,
// fails what it does not know, a socket above all, and never lets a file get the
// bits with which others would execute it as the person.
func programFilter(signals bool) []unix.SockFilter {
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
	no := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	load(offArch)
	skip(unix.BPF_JEQ, auditArch, 1, 0)
	ret(unix.SECCOMP_RET_KILL_PROCESS)
	load(offCall)
	answer(killedCalls, unix.SECCOMP_RET_KILL_PROCESS)
	for _, r := range append([]refusedIf{
		refusing(unix.SYS_CLONE, 0, newNamespaces),
		refusing(unix.SYS_PRLIMIT64, 0, math.MaxUint32), // of another process: the worker is one of the same user
		refusing(unix.SYS_SOCKETPAIR, 1, datagrams),
		refusing(unix.SYS_FCHMOD, 1, idBits),
		refusing(unix.SYS_FCHMODAT, 2, idBits),
		refusing(unix.SYS_OPENAT, 2, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 3, idBits),
		refusing(unix.SYS_MKDIRAT, 2, idBits),
	}, refusedHere...) {
		// Every one ends in an answer: what it loaded is not the call any more.
		skip(unix.BPF_JEQ, r.call, 0, uint8(2*len(r.masks)+2))
		for i, m := range r.masks {
			load(offArgs + 8*uint32(m.argument))
			skip(unix.BPF_JSET, m.mask, 0, uint8(2*(len(r.masks)-1-i)+1))
		}
		ret(no)
		ret(unix.SECCOMP_RET_ALLOW)
	}
	answer([]uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)) // then the older ones are used
	answer(programCalls, unix.SECCOMP_RET_ALLOW)
	if signals {
		answer(signalCalls, unix.SECCOMP_RET_ALLOW)
	}
	ret(no)
	return p
}
