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

	landMakeSocket  = 1 << 9
	landMakePipe    = 1 << 10
	landMakeSymlink = 1 << 12
	landRefer       = 1 << 13 // since version 2

	// What a directory that is granted lets do. Nothing in it may be executed or
	// linked out of it, and no device, socket, pipe or symbolic link made in it.
	landToRead   = landReadFile | landReadDir
	landToWrite  = landToRead | landWriteFile | landRemoveDir | landRemove | landMakeDir | landMakeFile | landTruncate
	landTruncate = 1 << 14 // since version 3

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
// the C linker, /proc and /dev/null; and to what more says.
func restrictThread(more ...landRule) error {
	return restrict(append([]landRule{
		{"/proc/self/exe", landExecute | landReadFile},
		{"/lib", landExecute | landReadFile},
		{"/lib64", landExecute | landReadFile},
		{"/usr/lib", landExecute | landReadFile},
		{"/proc", landReadFile | landWriteFile | landReadDir}, // the maps of a user namespace are written there
		{"/dev/null", landReadFile | landWriteFile},
	}, more...))
}

// restrict confines the calling thread, and whatever it starts, to what rules
// allow, until it ends. Other threads of this process stay as they are, which is
// why this is three plain system calls and not a library that would confine the
// whole daemon.
func restrict(rules []landRule) error { return restrictScoped(rules, landScopeAbstract) }

// restrictProgram is [restrict] for a thread that is about to execute a program:
// that has no other threads of this process to signal.
func restrictProgram(rules []landRule) error {
	return restrictScoped(rules, landScopeAbstract|landScopeSignal)
}

// What a domain of landlock keeps within itself, since version 6.
const (
	landScopeAbstract = 1 << 0 // abstract sockets
	landScopeSignal   = 1 << 1
)

// signalsAreScoped reports whether landlock can keep signals within a domain.
func signalsAreScoped() bool {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1)
	return e == 0 && version >= 6
}

func restrictScoped(rules []landRule, scope uint64) error {
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
		// Signals are not for a thread of this program: on some kernels the runtime
		// could not preempt its other threads from it.
		set.scoped, size = scope, size+unsafe.Sizeof(set.scoped)
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), size, 0)
	if e != 0 {
		return fmt.Errorf("landlock: %w", e)
	}
	defer unix.Close(int(fd))
	for _, rule := range rules {
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
