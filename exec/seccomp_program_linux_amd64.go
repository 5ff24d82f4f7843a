package exec

import "golang.org/x/sys/unix"

// The older calls, which this architecture still has.
var programCallsHere = []uint32{
	unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR,
	unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_GETDENTS, unix.SYS_DUP2, unix.SYS_PIPE,
	unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_FORK,
	unix.SYS_VFORK, unix.SYS_ALARM, unix.SYS_PAUSE, unix.SYS_TIME, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	unix.SYS_GETPGRP, unix.SYS_ARCH_PRCTL,
}

var killedCallsHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_KEXEC_FILE_LOAD}

var refusedHere = []refusedIf{
	refusing(unix.SYS_CHMOD, 1, idBits),
	refusing(unix.SYS_CREAT, 1, idBits),
	refusing(unix.SYS_OPEN, 1, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 2, idBits),
}
