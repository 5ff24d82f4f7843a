package exec

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	callStat  = unix.SYS_FSTATAT
)

var deniedHere = []uint32{unix.SYS_FSTATAT}
