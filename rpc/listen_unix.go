//go:build unix

package rpc

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"noted/notebook"
)

// ownedByUser reports whether the directory belongs to this user.
func ownedByUser(_ string, info fs.FileInfo) (bool, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid()), nil
}

// lockDir holds dir against another daemon that starts. The lock goes with the
// process, so no dead daemon leaves one behind.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeFailed, "the socket's directory cannot be opened: %v", err)
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Since(start) > dialTimeout {
			_ = d.Close()
			return nil, notebook.Errorf(notebook.CodeUnavailable, "another program holds %s: %v", dir, err).
				With("noted daemon status")
		}
	}
}
