//go:build !linux

package rpc

import (
	"errors"
	"net"
)

// peer is the process at the other end of a Unix socket, as the kernel names it.
type peer struct {
	uid uint32
	pid int32
}

// peerOf fails: how this system names the other end is not known here, and a
// door that cannot see who knocks stays shut.
func peerOf(net.Conn) (peer, error) {
	return peer{}, errors.New("this system's way to name the other end of a socket is not supported")
}
