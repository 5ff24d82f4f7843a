package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"noted/exec"
	"noted/trust"
)

// real is a home with a daemon of its own, as processes of this program.
type real struct {
	t      *testing.T
	home   string
	daemon *osexec.Cmd
}

// theWorker is argv[0] of a process that runs a fence.
const theWorker = "noted-fence-worker"

func newReal(t *testing.T) *real {
	t.Helper()
	home, err := os.MkdirTemp("", "n") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	r := &real{t: t, home: home}
	if out, code := r.does("", "init", "--name", "laptop", "--pin-fd", "3"); code != 0 {
		t.Fatalf("init: %d %s", code, out)
	}
	r.starts()
	t.Cleanup(r.stops)
	return r
}

func (r *real) command(args ...string) *osexec.Cmd {
	cmd := osexec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "noted"
	cmd.Env = append(os.Environ(), "NOTED_HOME="+r.home, "NOTED_LISTEN=/ip4/127.0.0.1/tcp/0", "XDG_RUNTIME_DIR=/nonexistent", "TERM=dumb", "GORACE=atexit_sleep_ms=10")
	return cmd
}

// does runs a command with a person's PIN on descriptor 3, and returns what it
// wrote and its exit code.
func (r *real) does(stdin string, args ...string) (string, int) {
	r.t.Helper()
	cmd := r.command(args...)
	pin, err := os.CreateTemp(r.t.TempDir(), "pin")
	if err != nil {
		r.t.Fatal(err)
	}
	defer pin.Close()
	if _, err := pin.WriteString("271828\n"); err != nil {
		r.t.Fatal(err)
	}
	if _, err := pin.Seek(0, io.SeekStart); err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdin, cmd.ExtraFiles = strings.NewReader(stdin), []*os.File{pin}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	if e := (*osexec.ExitError)(nil); err != nil && !errors.As(err, &e) {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is does for what succeeds.
func (r *real) must(stdin string, args ...string) string {
	r.t.Helper()
	out, code := r.does(stdin, args...)
	if code != 0 {
		r.t.Fatalf("noted %q: %d\n%s", args, code, out)
	}
	return out
}

func (r *real) starts() {
	r.t.Helper()
	r.daemon = r.command("daemon", "run")
	ready, err := r.daemon.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.daemon.Stderr = os.Stderr
	if err := r.daemon.Start(); err != nil {
		r.t.Fatal(err)
	}
	said := make(chan error, 1)
	go func() { _, err := bufio.NewReader(ready).ReadString('\n'); said <- err }()
	select {
	case err := <-said:
		if err != nil {
			r.t.Fatalf("the daemon did not come up: %v", err)
		}
	case <-time.After(patience):
		r.t.Fatal("the daemon does not come up")
	}
}

func (r *real) stops() {
	if r.daemon == nil {
		return
	}
	_ = r.daemon.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { _ = r.daemon.Process.Kill() })
	defer late.Stop()
	_ = r.daemon.Wait()
	r.daemon = nil
}

// types makes a page of what the person typed.
func (r *real) types(title, body string) {
	r.t.Helper()
	r.must("", "page", "new", title)
	r.must(body, "page", "put", title, "--as", "typed", "--pin-fd", "3")
}

// childrenOf are the pids of a process's children, with what they are called and
// their first argument: that of a worker is its language.
func childrenOf(parent int) map[int]string {
	found := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) < 2 || f[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		args := strings.SplitN(string(line), "\x00", 3)
		found[pid] = strings.Join(args[:min(2, len(args))], " ")
	}
	return found
}

// gone reports whether a process is dead; one that nobody has waited for is.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err != nil || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// runs are the runs of the ledger by how they stand, newest first.
func (r *real) runs() (states []string) {
	r.t.Helper()
	var said struct {
		Data []struct{ State string }
	}
	if err := json.Unmarshal([]byte(r.must("", "run", "list", "--json")), &said); err != nil {
		r.t.Fatal(err)
	}
	for _, run := range said.Data {
		states = append(states, run.State)
	}
	return states
}

// inEveryLanguage are fences that never end, and ones that put out more than is kept.
var inEveryLanguage = map[string]struct{ endless, flood string }{
	"lua": {"while true do end", `while true do print(("\27[2J"):rep(1e4)) end`},
	"sh":  {"while :; do :; done", `x=$(printf '%10000s'); while :; do printf '\033[2J%s\n' "$x"; done`},
	// Their engines take too long to compile here, and what exec has is the same
	// for any module: TestCase24NoWorkerOutlivesItsParent has these languages.
	"python":     {},
	"javascript": {},
	"wasm":       {},
}

// languagesHere are those that have a runtime in this program.
func languagesHere(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range trust.Languages {
		if exec.Engine(name) == exec.Engine("no such language") || name == "query" { // which is no program
			continue
		}
		fences, known := inEveryLanguage[name]
		if !known {
			t.Errorf("%s runs here, and has no fence that never ends", name)
		}
		if fences.endless != "" {
			names = append(names, name)
		}
	}
	return names
}

// TestCase24KilledWithTheDaemon kills a daemon with runs of every language under
// way: a second later none of the processes that it had started is there, and the
// next daemon goes on.
func TestCase24KilledWithTheDaemon(t *testing.T) {
	r := newReal(t)
	names := languagesHere(t)
	for _, name := range names {
		r.types("Endless "+name, "```"+name+"\n"+inEveryLanguage[name].endless+"\n```\n")
	}
	r.types("Honest", "```lua\nreturn 6 * 7\n```\n")
	for some := range slices.Chunk(names, 2) { // as many as there are slots at least
		var asked []*osexec.Cmd
		for _, name := range some {
			cmd := r.command("fence", "run", "Endless "+name+"#1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, cmd)
		}
		begun := time.Now()
		for running, workers := 0, 0; running < len(some) || workers < len(some); {
			running, workers = 0, 0
			for _, state := range r.runs() {
				if state == "running" {
					running++
				}
			}
			there := slices.Collect(maps.Values(childrenOf(r.daemon.Process.Pid)))
			for _, name := range some {
				if slices.Contains(there, theWorker+" "+name) {
					workers++
				}
			}
			if time.Since(begun) > patience {
				t.Fatalf("%v: %d are running, with the processes %v", some, running, there)
			}
		}
		// Stopped, so that it starts nothing more while its children are counted.
		if err := r.daemon.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		left := childrenOf(r.daemon.Process.Pid)
		if len(left) < len(some) {
			t.Errorf("%v: the daemon has the children %v", some, left)
		}
		if err := r.daemon.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = r.daemon.Wait()
		for killed := time.Now(); len(left) > 0 && time.Since(killed) < time.Second; time.Sleep(time.Millisecond) {
			for pid := range left {
				if gone(pid) {
					delete(left, pid)
				}
			}
		}
		if len(left) > 0 {
			t.Errorf("%v: a second later there are still %v", some, left)
		}
		for _, cmd := range asked {
			late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() < 0 {
				t.Errorf("%q ended with %v", cmd.Args, cmd.ProcessState)
			}
			late.Stop()
		}
		r.starts()
		if states := r.runs(); slices.Contains(states, "running") || len(states) == 0 {
			t.Errorf("after the kill the runs are %v", states)
		}
		if out := r.must("", "fence", "run", "Honest#1"); !strings.Contains(out, "42") {
			t.Errorf("after the kill a fence says %q", out)
		}
		r.must("", "run", "verify")
	}
}

// TestCase36FloodsLeaveTheDaemonAsItWas: floods cost a daemon no memory that it
// keeps, and what is kept of them can be read wherever it is shown.
func TestCase36FloodsLeaveTheDaemonAsItWas(t *testing.T) {
	r := newReal(t)
	names := languagesHere(t)
	for _, name := range names {
		r.types("Flood "+name, "```"+name+"\n"+inEveryLanguage[name].flood+"\n```\n")
		if _, code := r.does("", "fence", "run", "Flood "+name+"#1"); code == 0 {
			t.Errorf("%s: the flood ends well", name)
		}
	}
	peak := func() int64 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.daemon.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "VmHWM:")
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatal(err)
		}
		return kib << 10
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.daemon.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before := peak()
	for range 4 {
		for _, name := range names {
			r.does("", "fence", "run", "Flood "+name+"#1")
		}
	}
	if grown := peak() - before; grown > 8<<20 {
		t.Errorf("the daemon grew by %d MiB to %d", grown>>20, peak()>>20)
	}
	for _, name := range names {
		fence := "Flood " + name + "#1"
		var shown struct {
			Data struct {
				Number uint64
				Result struct {
					Verdict, Output string
					Dropped         int64 `json:"dropped_bytes"`
				}
			}
		}
		out, _ := r.does("", "fence", "run", fence, "--json")
		first, _, _ := strings.Cut(out, "\n")
		if err := json.Unmarshal([]byte(first), &shown); err != nil {
			t.Fatalf("%s: %v in %.200q", name, err, out)
		}
		res := shown.Data.Result
		if res.Verdict != "output" || res.Dropped == 0 || len(res.Output) < 1<<10 || !utf8.ValidString(res.Output) {
			t.Errorf("%s: %s, %d kept, %d dropped", name, res.Verdict, len(res.Output), res.Dropped)
		}
		for _, look := range [][]string{
			{"run", "show", fmt.Sprint(shown.Data.Number)},
			{"run", "show", fmt.Sprint(shown.Data.Number), "--json"},
			{"run", "list"},
			{"fence", "show", fence},
			{"fence", "why", fence},
			{"page", "show", "Flood " + name},
			{"page", "show", "Flood " + name, "--json"},
			{"status"},
		} {
			out := r.must("", look...)
			if !utf8.ValidString(out) || strings.ContainsAny(out, "\x1b\x00\x07") {
				t.Errorf("noted %q shows what a terminal obeys", look)
			}
			if strings.Contains(strings.Join(look, " "), "--json") && !json.Valid(bytes.TrimSpace([]byte(out))) {
				t.Errorf("noted %q is no JSON", look)
			}
		}
	}
}
