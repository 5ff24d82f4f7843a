package rpc

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"noted/notebook"
)

// maxSocketPath is what fits a Unix socket's address in bytes, without the
// final zero: 107 on Linux, 103 on the BSDs.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// dialTimeout bounds how long the other end of a socket of this machine may
// take to accept.
const dialTimeout = 5 * time.Second

// Listen makes the daemon's socket at path, for this user alone. It makes the
// socket's directory if there is none, and refuses one that others can enter. A
// socket that a dead daemon left behind is replaced, but only after nobody
// answered there; one that answers is an error of code unavailable.
func Listen(path string) (net.Listener, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, notebook.Errorf(notebook.CodeFailed, "the socket's directory cannot be made: %v", err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	// Two daemons that start at once would each find the old socket dead, and
	// the second would remove what the first has just made. One after the other.
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeFailed, "the socket cannot be made: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(notebook.Errorf(notebook.CodeFailed, "the socket cannot be closed to others: %v", err), l.Close())
	}
	return l, nil
}

func checkSocketPath(path string) error {
	if len(path) <= maxSocketPath {
		return nil
	}
	return notebook.Errorf(notebook.CodeInvalid, "the socket's path has %d bytes and may have %d: %s", len(path), maxSocketPath, path).
		With("choose a shorter directory, with --home or XDG_RUNTIME_DIR")
}

// checkDir refuses a directory that is not this user's own or that others can
// enter: with it, whoever can name the socket is this user.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return notebook.Errorf(notebook.CodeFailed, "the socket's directory cannot be read: %v", err)
	}
	if !info.IsDir() {
		return notebook.Errorf(notebook.CodeRefused, "%s is not a directory, as the socket's has to be", dir).
			With("a symbolic link is not followed here: name the directory itself")
	}
	if own, err := ownedByUser(dir, info); err != nil {
		return err
	} else if !own {
		return notebook.Errorf(notebook.CodeRefused, "%s belongs to another user", dir).
			With("choose a directory of your own, with --home or XDG_RUNTIME_DIR")
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return notebook.Errorf(notebook.CodeRefused, "%s has mode %04o: others could reach the daemon", dir, perm).
			With("chmod 700 %s", dir)
	}
	return nil
}

// unknownOwner refuses a directory on a system where nobody can say whose it is.
func unknownOwner(system, dir string) error {
	return notebook.Errorf(notebook.CodeRefused, "on %s noted cannot tell who owns %s, so it serves no clients there", system, dir).
		With("run the daemon on a Linux device of the notebook")
}

// removeStale removes the socket that a dead daemon left at path.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return notebook.Errorf(notebook.CodeFailed, "the old socket cannot be read: %v", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return notebook.Errorf(notebook.CodeRefused, "%s is in the socket's place and is no socket", path).
			With("move it away")
	}
	c, err := net.DialTimeout("unix", path, dialTimeout)
	switch {
	case err == nil:
		_ = c.Close()
		return notebook.Errorf(notebook.CodeUnavailable, "a daemon is already running on %s", path).
			With("noted daemon status, or noted daemon stop")
	case errors.Is(err, syscall.ECONNREFUSED): // nobody holds it open
	default:
		return notebook.Errorf(notebook.CodeUnavailable, "%s may belong to a daemon that runs: %v", path, err).
			With("noted daemon status; if none runs, remove that file")
	}
	if err := os.Remove(path); err != nil {
		return notebook.Errorf(notebook.CodeFailed, "the old socket cannot be removed: %v", err)
	}
	return nil
}
