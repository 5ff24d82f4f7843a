package rpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"noted/notebook"
)

// A process of another user is refused on the kernel's word alone, here on a
// socket that anybody can reach, which Listen would not have made.
func TestAProcessOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return // to become another user takes root; the test with another uid of the daemon's has no such need
	}
	foreignDir := privateDir(t)
	if err := errors.Join(os.Mkdir(foreignDir, 0o700), os.Chown(foreignDir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	_, err := Listen(filepath.Join(foreignDir, "daemon.sock"))
	if e := wantCode(t, err, notebook.CodeRefused); !strings.Contains(e.Message, "another user") {
		t.Errorf("a directory of another user: %v", e)
	}

	h := newHouse(t)
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "open.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	h.serve(t, l)
	if got := post(t, plainClient(t, path), statusRoute, ownerToken, "{}"); got.status != http.StatusOK {
		t.Fatalf("the daemon's own user: %s", got.body)
	}
	const nobody = 65534
	foreign := &http.Client{Transport: &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return dialAs(nobody, path) },
		DisableKeepAlives: true,
	}}
	got := post(t, foreign, statusRoute, ownerToken, "{}")
	if got.Code != "permission_denied" || !strings.Contains(got.Message, "another user") {
		t.Errorf("a process of uid %d: %s", nobody, got.body)
	}
	if h.count() != 1 {
		t.Errorf("%d calls reached the daemon, want the first alone", h.count())
	}
}

// dialAs connects as another user: a thread of this process takes that uid for
// itself alone, connects, and ends.
func dialAs(uid uintptr, path string) (net.Conn, error) {
	type dialled struct {
		c   net.Conn
		err error
	}
	done := make(chan dialled)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uid, uid, uid); errno != 0 {
			done <- dialled{nil, errno}
			return
		}
		c, err := net.Dial("unix", path)
		done <- dialled{c, err}
	}()
	d := <-done
	return d.c, d.err
}
