package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	bbolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/store"
)

func TestMain(m *testing.M) {
	daemon.Child() // this binary is also what the daemons in the scripts start
	testscript.Main(m, map[string]func(){"noted": main, asker: askMain})
}

// TestScripts plays testdata/script against real daemons. $PYTHON and $QUICKJS
// are engine files. Beside testscript's
// own commands a script has:
//
//	exits CODE COMMAND…      run it and compare its exit code
//	until COMMAND…           run it again until it succeeds
//	json STREAM PATH VAR     put a value of a JSON envelope into a variable
//	forge FILE SPACE         change a byte of a space's newest record
//	tear FILE SPACE          leave half of it
//	future FILE              say in a store that a newer noted wrote it
//	contradict HOME LIAR     give a stopped device a second history of another one
//	person FILE CODE COMMAND…  run it on a terminal with a person who waits for
//	                         the text of each ? line, types each > line, and
//	                         does each | line in a shell that reads the screen
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Short, because the path of a socket has to fit into 107 bytes.
			home, err := os.MkdirTemp("", "n")
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(home) })
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			for _, name := range []string{"A", "B", "C"} {
				e.Setenv(name, filepath.Join(home, strings.ToLower(name)))
			}
			port, err := freePort()
			if err != nil {
				return err
			}
			e.Setenv("PORT", port)
			for _, name := range []string{"python", "quickjs"} {
				found, _ := filepath.Glob(filepath.Join(daemontest.EngineDir(t), name+"-*.wasm"))
				found = append(found, "make-engines-has-to-fetch-"+name+".wasm") // for scripts that need it
				e.Setenv(strings.ToUpper(name), found[0])
			}
			e.Setenv("NOTED_HOME", filepath.Join(home, "a"))
			e.Setenv("NOTED_LISTEN", "/ip4/127.0.0.1/udp/0/quic-v1,/ip4/127.0.0.1/tcp/0")
			e.Setenv("XDG_RUNTIME_DIR", "/nonexistent")
			e.Setenv("TERM", "dumb")
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=10") // not a second for each of some hundred commands
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  scriptExits,
			"until":  scriptUntil,
			"json":   scriptJSON,
			"person": scriptPerson,
			"future": scriptFuture,
			"forge":  scriptForge,
			"tear":   scriptTear,

			"contradict": scriptContradict,
		},
	})
}

// freePort is a TCP port of loopback that nobody has now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func scriptFuture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: future FILE")
	}
	db, err := bbolt.Open(ts.MkAbs(args[0]), 0o600, &bbolt.Options{Timeout: patience})
	ts.Check(err)
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("store")).Put([]byte("schema"), []byte{store.Schema + 1})
	})
	ts.Check(errors.Join(err, db.Close()))
}

// scriptForge changes a space's newest record in the file of a home that is not
// served, as somebody would who has something to hide.
func scriptForge(ts *testscript.TestScript, neg bool, args []string) {
	scriptChange(ts, neg, args, func(value []byte) []byte {
		value[len(value)/2] ^= 1
		return value
	})
}

// scriptTear leaves half of a space's newest record, as a disk that fails may.
func scriptTear(ts *testscript.TestScript, neg bool, args []string) {
	scriptChange(ts, neg, args, func(value []byte) []byte { return value[:len(value)/2] })
}

func scriptChange(ts *testscript.TestScript, neg bool, args []string, change func(value []byte) []byte) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forge FILE SPACE, or tear FILE SPACE")
	}
	db, err := bbolt.Open(ts.MkAbs(args[0]), 0o600, &bbolt.Options{Timeout: patience})
	ts.Check(err)
	err = db.Update(func(tx *bbolt.Tx) error {
		space := tx.Bucket([]byte(args[1]))
		key, value := space.Cursor().Last()
		return space.Put(bytes.Clone(key), change(bytes.Clone(value)))
	})
	ts.Check(errors.Join(err, db.Close()))
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	checkExit(ts, want, ts.Exec(args[1], args[2:]...))
}

func checkExit(ts *testscript.TestScript, want int, err error) {
	got := 0
	if e, ok := errors.AsType[*osexec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// patience is how long a script waits for what another process does.
const patience = 20 * time.Second

func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: until COMMAND…")
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Since(start) > patience {
			ts.Fatalf("still not after %s: %v", patience, err)
		}
	}
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VARIABLE")
	}
	// A stream has one envelope a line: the last that has the path counts.
	var found any
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var v any
		ts.Check(json.Unmarshal([]byte(line), &v))
		for part := range strings.SplitSeq(args[1], ".") {
			switch w := v.(type) {
			case map[string]any:
				v = w[part]
			case []any:
				i, err := strconv.Atoi(part)
				ts.Check(err)
				if i >= len(w) {
					ts.Fatalf("%s has no element %d", args[1], i)
				}
				v = w[i]
			default:
				v = nil
			}
		}
		if v != nil {
			found = v
		}
	}
	if found == nil {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	if s, ok := found.(string); ok {
		ts.Setenv(args[2], s)
		return
	}
	b, err := json.Marshal(found)
	ts.Check(err)
	ts.Setenv(args[2], string(b))
}

// scriptPerson runs a command as a person does: on a terminal that is its
// stdin, stdout and stderr, typing only once the question is there.
func scriptPerson(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: person FILE CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := args[2]
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		if _, err := os.Stat(filepath.Join(dir, args[2])); err == nil {
			path = filepath.Join(dir, args[2])
			break
		}
	}
	cmd := osexec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"HOME", "PATH", "TMPDIR", "NOTED_HOME", "NOTED_LISTEN", "XDG_RUNTIME_DIR", "TERM", "TZ", "EDITOR", "GORACE", "A", "B", "C",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	screen, err := converse(cmd, ts.ReadFile(args[0]))
	ts.Logf("[terminal]\n%s", screen)
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen), 0o600))
	if _, exited := errors.AsType[*osexec.ExitError](err); err != nil && !exited {
		ts.Fatalf("%v", err)
	}
	checkExit(ts, want, err)
}

// converse starts cmd on a terminal of its own and plays the person of dialog.
func converse(cmd *osexec.Cmd, dialog string) (screen string, err error) {
	master, slave, err := openTerminal()
	if err != nil {
		return "", err
	}
	defer master.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return "", errors.Join(err, slave.Close())
	}
	_ = slave.Close()

	var mu sync.Mutex // guards seen
	var seen bytes.Buffer
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			mu.Unlock()
			if err != nil { // EIO once nobody has the other end
				return
			}
		}
	}()
	look := func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen.String()
	}
	play := func() error {
		from := 0
		for line := range strings.Lines(dialog) {
			what, text := line[:1], strings.TrimSuffix(strings.TrimPrefix(line[1:], " "), "\n")
			switch what {
			case "|": // what the person does meanwhile, with the screen before them
				other := osexec.Command("sh", "-c", text)
				other.Dir, other.Env, other.Stdin = cmd.Dir, cmd.Env, strings.NewReader(look())
				if out, err := other.CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w\n%s", text, err, out)
				}
			case "^": // as in ^C
				if _, err := master.Write([]byte{text[0] & 0x1f}); err != nil {
					return err
				}
			case ">":
				// The question stands on the screen a moment before the line is read.
				time.Sleep(20 * time.Millisecond)
				if _, err := io.WriteString(master, text+"\n"); err != nil {
					return err
				}
			case "?":
				for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
					if i := strings.Index(look()[from:], text); i >= 0 {
						from += i + len(text)
						break
					}
					if time.Since(start) > patience {
						return fmt.Errorf("waited for %q in vain", text)
					}
				}
			}
		}
		return nil
	}
	perr := play()
	if perr != nil {
		_ = cmd.Process.Kill()
	}
	overdue := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	werr := cmd.Wait()
	overdue.Stop()
	<-gone
	screen = strings.ReplaceAll(look(), "\r\n", "\n")
	if perr != nil {
		return screen, perr
	}
	return screen, werr
}

// openTerminal makes a pseudo-terminal.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}
