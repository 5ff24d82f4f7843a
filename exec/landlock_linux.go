package exec

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of landlock that are used here, and how many of each kind there are in
// each version of its interface.
const (
	landExecute   = 1 << 0
	landWriteFile = 1 << 1
	landReadFile  = 1 << 2
	landReadDir   = 1 << 3
	landRemoveDir = 1 << 4
	landRemove    = 1 << 5 // of a file
	landMakeDir   = 1 << 7
	landMakeFile  = 1 << 8
	landTruncate  = 1 << 14 // since version 3

	landPathBeneath = 1 // the kind of rule
)

type landRuleset struct{ files, net, scoped uint64 }

type landPath struct {
	access uint64
	fd     int32
}

// landRule allows access to what is at or under a path.
type landRule struct {
	path   string
	access uint64
}

// restrictThread confines the calling thread, and whatever it starts, to what a
// worker needs before it seals itself: its own program with the libraries of
// the C linker, /proc and /dev/null; and to what more says. Other threads of this
// process stay as they are, which is why this is three plain system calls and not
// a library that would confine the whole daemon. The thread stays confined until
// it ends.
func restrictThread(more ...landRule) error {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	if e != 0 {
		return fmt.Errorf("landlock: %w", e)
	}
	var set landRuleset
	size := unsafe.Sizeof(set.files)
	switch {
	case version >= 5:
		set.files = 1<<16 - 1
	case version >= 3:
		set.files = 1<<15 - 1
	case version >= 2:
		set.files = 1<<14 - 1
	default:
		set.files = 1<<13 - 1
	}
	if version >= 4 {
		set.net, size = 1<<2-1, size+unsafe.Sizeof(set.net)
	}
	if version >= 6 {
		// Abstract sockets only: to scope signals too would keep the runtime from
		// preempting its other threads from this one, on some kernels.
		set.scoped, size = 1<<0, size+unsafe.Sizeof(set.scoped)
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), size, 0)
	if e != 0 {
		return fmt.Errorf("landlock: %w", e)
	}
	defer unix.Close(int(fd))
	for _, rule := range append([]landRule{
		{"/proc/self/exe", landExecute | landReadFile},
		{"/lib", landExecute | landReadFile},
		{"/lib64", landExecute | landReadFile},
		{"/usr/lib", landExecute | landReadFile},
		{"/proc", landReadFile | landWriteFile | landReadDir}, // the maps of a user namespace are written there
		{"/dev/null", landReadFile | landWriteFile},
	}, more...) {
		if err := allowPath(int(fd), rule.path, rule.access&set.files); err != nil {
			return fmt.Errorf("landlock: %s: %w", rule.path, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("landlock: %w", e)
	}
	return nil
}

func allowPath(ruleset int, path string, access uint64) error {
	p, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(p)
	rule := landPath{access: access, fd: int32(p)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), landPathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
