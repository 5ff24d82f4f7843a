package rpc

import (
	"errors"
	"net"
	"syscall"
)

// peer is the process at the other end of a Unix socket, as the kernel names it.
type peer struct {
	uid uint32
	pid int32
}

// peerOf asks the kernel who is at the other end of c.
func peerOf(c net.Conn) (peer, error) {
	unix, ok := c.(syscall.Conn)
	if _, local := c.LocalAddr().(*net.UnixAddr); !ok || !local {
		return peer{}, errors.New("not a Unix socket")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return peer{}, err
	}
	if failed != nil {
		return peer{}, failed
	}
	return peer{uid: cred.Uid, pid: cred.Pid}, nil
}
