package rpc

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"noted/notebook"
)

// deadSocket leaves a socket at path that nobody listens on.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListen(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		build func(t *testing.T, dir, path string)
		code  notebook.Code // empty: it listens
		says  string
	}{
		{"no directory yet", func(*testing.T, string, string) {}, "", ""},
		{"a directory of one's own", func(t *testing.T, dir, _ string) { must(t, os.Mkdir(dir, 0o700)) }, "", ""},
		{"a stricter directory", func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o700|fs.ModeSticky))
		}, "", ""},
		{"the socket of a dead daemon", func(t *testing.T, dir, path string) {
			must(t, os.Mkdir(dir, 0o700))
			deadSocket(t, path)
		}, "", ""},
		{"a directory that others can read", func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o750))
		}, notebook.CodeRefused, "mode 0750"},
		{"a directory that others can enter", func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o701))
		}, notebook.CodeRefused, "mode 0701"},
		{"a link to a directory", func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir+"2", 0o700))
			must(t, os.Symlink(dir+"2", dir))
		}, notebook.CodeRefused, "not a directory"},
		{"a file in the socket's place", func(t *testing.T, dir, path string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(path, []byte("precious"), 0o600))
		}, notebook.CodeRefused, "is no socket"},
		{"a link in the socket's place", func(t *testing.T, dir, path string) {
			must(t, os.Mkdir(dir, 0o700))
			deadSocket(t, path+"2")
			must(t, os.Symlink(path+"2", path))
		}, notebook.CodeRefused, "is no socket"},
		{"a daemon that runs", func(t *testing.T, dir, path string) {
			must(t, os.Mkdir(dir, 0o700))
			l, err := net.Listen("unix", path)
			must(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}, notebook.CodeUnavailable, "already running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := privateDir(t)
			path := filepath.Join(dir, "daemon.sock")
			c.build(t, dir, path)
			before, _ := os.Lstat(path)
			l, err := Listen(path)
			if c.code != "" {
				e := wantCode(t, err, c.code)
				if !strings.Contains(e.Message, c.says) || e.Hint == "" {
					t.Errorf("the error is %v", e)
				}
				if after, _ := os.Lstat(path); before != nil && (after == nil || !os.SameFile(before, after)) {
					t.Error("what was there is gone")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			must(t, err)
			if info.Mode() != fs.ModeSocket|0o600 {
				t.Errorf("the socket has mode %v", info.Mode())
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory has mode %v, %v", info.Mode(), err)
			}
			must(t, l.Close())
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a closed listener leaves %v", err)
			}
		})
	}
}

func TestALongSocketPathIsNamed(t *testing.T) {
	long := "/tmp/" + strings.Repeat("n", maxSocketPath+1-len("/tmp/"))
	_, err := Listen(long)
	if e := wantCode(t, err, notebook.CodeInvalid); !strings.Contains(e.Message, "has 108 bytes and may have 107") || e.Hint == "" {
		t.Errorf("listening: %v", e)
	}
	_, err = Dial(long, ownerToken).Status(within10(t))
	wantCode(t, err, notebook.CodeInvalid)

	// The longest that is allowed works.
	dir := privateDir(t)
	path := filepath.Join(dir, strings.Repeat("n", maxSocketPath-len(dir)-1))
	l, err := Listen(path)
	if err != nil {
		t.Fatalf("a path of %d bytes: %v", len(path), err)
	}
	_ = l.Close()
}

// Of daemons that start at once over a dead one's socket, one listens and the
// others learn that it does.
func TestDaemonsThatStartAtOnce(t *testing.T) {
	for range 20 {
		dir := privateDir(t)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "daemon.sock")
		deadSocket(t, path)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var open []net.Listener
		for range 4 {
			wg.Go(func() {
				l, err := Listen(path)
				mu.Lock()
				defer mu.Unlock()
				var e *notebook.Error
				if err == nil {
					open = append(open, l)
				} else if !errors.As(err, &e) || e.Code != notebook.CodeUnavailable {
					t.Errorf("one that comes second: %v", err)
				}
			})
		}
		wg.Wait()
		if len(open) != 1 {
			t.Errorf("%d of four listen", len(open))
		}
		for _, l := range open {
			_ = l.Close()
		}
	}
}

// Without a daemon a call says how to get one.
func TestNoDaemon(t *testing.T) {
	path := filepath.Join(privateDir(t), "daemon.sock")
	c := Dial(path, ownerToken)
	_, err := c.Status(within10(t))
	if e := wantCode(t, err, notebook.CodeUnavailable); e.Hint != "noted daemon run" || !strings.Contains(e.Message, path) {
		t.Errorf("no socket: %v", e)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	deadSocket(t, path)
	err = c.Watch(within10(t), func(notebook.Event) error { return nil })
	if e := wantCode(t, err, notebook.CodeUnavailable); e.Hint != "noted daemon run" {
		t.Errorf("a dead socket: %v", e)
	}
}

// A client shows its token to a daemon of its own user alone.
func TestTheTokenGoesToNoOtherUsersDaemon(t *testing.T) {
	h := newHouse(t)
	c := dial(h.path, ownerToken, uint32(os.Geteuid())+1)
	_, err := c.Status(within10(t))
	if e := wantCode(t, err, notebook.CodeDenied); !strings.Contains(e.Message, "another user") {
		t.Errorf("the error is %v", e)
	}
	if h.count() != 0 {
		t.Error("the call was made")
	}

	dir := privateDir(t)
	l, err := Listen(filepath.Join(dir, "x.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 1024)
		n, _ := conn.Read(b)
		heard <- string(b[:n])
	}()
	_, err = dial(filepath.Join(dir, "x.sock"), ownerToken, uint32(os.Geteuid())+1).Status(within10(t))
	wantCode(t, err, notebook.CodeDenied)
	if got := receive(t, "the end of the connection", heard); got != "" {
		t.Errorf("the daemon of another user heard %q", got)
	}
}

// TestUnknownOwner is what is said on a system where nobody can say whose the
// socket's directory is: nothing is served from it.
func TestUnknownOwner(t *testing.T) {
	var e *notebook.Error
	err := unknownOwner("windows", "/some/dir")
	if !errors.As(err, &e) || e.Code != notebook.CodeRefused || !strings.Contains(e.Message, "on windows") || !strings.Contains(e.Message, "/some/dir") || e.Hint == "" {
		t.Errorf("%v", err)
	}
	if own, err := ownedByUser(t.TempDir(), mustStat(t, t.TempDir())); !own || err != nil {
		t.Errorf("an own directory: %v, %v", own, err)
	}
	if os.Getuid() == 0 {
		dir := t.TempDir()
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if own, _ := ownedByUser(dir, mustStat(t, dir)); own {
			t.Error("another user's directory passes for one's own")
		}
	}
}

func mustStat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
