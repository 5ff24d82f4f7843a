package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
	"noted/trust"
)

// caseLimits are those of the numbered cases.
var caseLimits = notebook.Limits{Time: 300 * time.Millisecond, Memory: 128 << 20, Output: 64 << 10, Source: 64 << 10}

// casePatience is how long a numbered case waits for what has to come.
const casePatience = 5 * time.Second

// TestCases are the numbered things that must not happen, of docs/security.md,
// as far as they are about a Lua fence or about the worker itself.
func TestCases(t *testing.T) {
	r := newRunner(t, Config{Limits: caseLimits})
	open := newRunner(t, Config{Limits: allLibraries(caseLimits)})
	// ends runs a fence that does not end well, and looks that it is over. What
	// ends at another limit has time to.
	ends := func(t *testing.T, source string, verdict notebook.Verdict) notebook.Result {
		t.Helper()
		limits := caseLimits
		if verdict != notebook.Timeout {
			limits.Time = casePatience
		}
		start := time.Now()
		res, pid := watched(t, r, strictJob(limits, source))
		if took := time.Since(start); took > casePatience && !raceDetector {
			t.Errorf("it took %v", took)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the worker %d is still there: %v", pid, err)
		}
		if res.Verdict != verdict {
			t.Errorf("%.80q ended as %v with %.100q %q", source, res.Verdict, res.Output, res.Error)
		}
		if strings.Contains(res.Output, "escaped") {
			t.Errorf("it put out %q", res.Output)
		}
		return res
	}
	// works is the positive control: what runs, and what it puts out.
	works := func(t *testing.T, r *Runner, limits notebook.Limits, source, output string) {
		t.Helper()
		if res := runSource(t, r, limits, source); res.Verdict != notebook.OK || res.Output != output {
			t.Errorf("the control %.80q: %v %q %q", source, res.Verdict, res.Output, res.Error)
		}
	}

	t.Run("01 a loop without end", func(t *testing.T) {
		ends(t, `while true do end`, notebook.Timeout)
		works(t, r, caseLimits, `local n = 0 while n < 1e5 do n = n + 1 end print(n)`, "100000\n")
	})
	t.Run("02 a loop in a coroutine", func(t *testing.T) {
		ends(t, `coroutine.wrap(function() while true do end end)()`, notebook.Timeout)
		works(t, r, caseLimits, `coroutine.wrap(function() print("in it") end)()`, "in it\n")
	})
	t.Run("03 a loop that catches its own end", func(t *testing.T) {
		ends(t, `pcall(function() while true do end end) print("escaped")`, notebook.Timeout)
		ends(t, `return pcall(function() while true do end end), "escaped"`, notebook.Timeout)
		works(t, r, caseLimits, `pcall(function() error("x") end) print("escaped")`, "escaped\n")
	})
	t.Run("04 one call of the engine that does not come back", func(t *testing.T) {
		ends(t, `string.find(("a"):rep(2000), ".-.-.-.-b")`, notebook.Timeout)
		works(t, r, caseLimits, `print(string.find(("a"):rep(20) .. "b", ".-.-.-.-b"))`, "1\t21\n")
	})
	t.Run("29 a worker that never says that it is ready", func(t *testing.T) {
		for name, script := range map[string]string{
			"silent": `exec sleep 60`, "half a frame": `printf '\000\000\000\003\001' >&3; exec sleep 60`, "dead": `exit 0`,
			"nonsense": `printf '\000\000\000\001x' >&3; exec sleep 60`, "four gibibytes": `printf '\377\377\377\377' >&3; exec sleep 60`,
		} {
			w := fakeWorker(t, script, caseLimits)
			answered := make(chan error, 1)
			go func() { answered <- w.becomesReady(300 * time.Millisecond) }()
			select {
			case err := <-answered:
				if err == nil || w.layers != nil {
					t.Errorf("%s: it counts as ready, with the layers %v", name, w.layers)
				}
			case <-time.After(casePatience):
				t.Errorf("%s: nobody stops waiting", name)
			}
			if err := syscall.Kill(w.process.Pid, 0); !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("%s: it is still there: %v", name, err)
			}
		}
		w := fakeWorker(t, `printf '\000\000\000\005\001\001x\000\000' >&3; exec sleep 60`, caseLimits)
		if err := w.becomesReady(casePatience); err != nil || !slices.Equal(w.layers, []string{"x"}) {
			t.Errorf("one that says so: %v %v", w.layers, err)
		}
		w.discard()
	})
	t.Run("30 a descendant that holds the output", func(t *testing.T) {
		for _, c := range []struct {
			script  string
			verdict notebook.Verdict
		}{
			{`sleep 4 & printf 'kept\n'; printf '\000\000\000\002\000\000' >&3; exec sleep 60`, notebook.OK},
			// As long as it may still say something; it is there until it was asked.
			{`sleep 4 & printf 'kept\n'; cat >/dev/null; exit 1`, notebook.Timeout},
			{`sleep 4 3>&- & printf 'kept\n'; exit 1`, notebook.Crash},
			{`sleep 4 & printf 'kept\n'; exec sleep 60`, notebook.Timeout},
		} {
			w := fakeWorker(t, c.script, caseLimits)
			start := time.Now()
			got := w.run(t.Context(), &request{source: "x"})
			if text, _, _ := got.output.text(); got.verdict != c.verdict || text != "kept\n" || time.Since(start) > 3*time.Second {
				t.Errorf("%s: %v %q after %v", c.script, got.verdict, text, time.Since(start))
			}
		}
	})
	t.Run("31 one allocation of two gigabytes", func(t *testing.T) {
		before := resident(t)
		ends(t, `return #("x"):rep(2e9)`, notebook.Memory)
		if grown := resident(t) - before; grown > attackMemory && !raceDetector {
			t.Errorf("it cost this process %d MiB", grown>>20)
		}
		works(t, r, caseLimits, `return #("x"):rep(2e7)`, "20000000\n")
	})
	t.Run("32 memory that doubles", func(t *testing.T) {
		res := ends(t, `print("so far") local s = "x" while true do s = s .. s end`, notebook.Memory)
		if res.Output != "so far\n" {
			t.Errorf("it keeps %q", res.Output)
		}
	})
	t.Run("37 a flood where errors go", func(t *testing.T) {
		all := allLibraries(caseLimits)
		res := runSource(t, open, all, `io.stderr:write("x") while true do io.stderr:write(("x"):rep(1e5)) end`)
		if res.Verdict != notebook.Timeout || res.Output != "" || res.Dropped != 0 {
			t.Errorf("%v %q, %d dropped", res.Verdict, res.Output, res.Dropped)
		}
		works(t, open, all, `io.stderr:write("unseen") io.stdout:write("seen\n")`, "seen\n")
	})
	t.Run("38 who floods is stopped and not only cut", func(t *testing.T) {
		long := caseLimits
		long.Time = time.Minute
		start := time.Now()
		if res := runSource(t, r, long, `while true do print("again and again") end`); res.Verdict != notebook.Output || time.Since(start) > long.Time/2 {
			t.Errorf("%v after %v", res.Verdict, time.Since(start))
		}
	})
	t.Run("40 a frame that says two gibibytes", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, head := range []string{"\x80\x00\x00\x00", "\xff\xff\xff\xff", "\x00\x00\x20\x01"} {
			if _, err := readFrame(io.MultiReader(strings.NewReader(head), zeros{}), maxOutcomeFrame); err == nil {
				t.Errorf("%q is read", head)
			}
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%d bytes were allocated for it", grown)
		}
		if _, err := readFrame(io.MultiReader(strings.NewReader("\x00\x00\x20\x00"), zeros{}), maxOutcomeFrame); err != nil {
			t.Errorf("one of the largest size: %v", err)
		}
	})
	t.Run("41 a limit of nothing and one without end", func(t *testing.T) {
		for _, n := range []int{0, -1, math.MinInt, math.MaxInt, maxOutput + 1} {
			j := strictJob(caseLimits, "return 1")
			j.limits.Output = n
			if err := j.check(); err == nil {
				t.Errorf("an output of %d is allowed", n)
			}
		}
		j := strictJob(caseLimits, "return 1")
		j.limits.Output = maxOutput
		if err := j.check(); err != nil {
			t.Errorf("the largest one: %v", err)
		}
		if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Limits.Output != maxOutput {
			t.Errorf("the largest one: %v, it was %d", res.Verdict, res.Limits.Output)
		}
	})
	t.Run("42 a source one byte too long", func(t *testing.T) {
		source := `print("whole") --`
		source += strings.Repeat("x", caseLimits.Source-len(source))
		j := strictJob(caseLimits, source)
		if err := j.check(); err != nil {
			t.Errorf("one that is as long as it may be: %v", err)
		}
		works(t, r, caseLimits, source, "whole\n")
		j.request.source += "x"
		if e := (*notebook.Error)(nil); !errors.As(j.check(), &e) || e.Code != notebook.CodeExhausted {
			t.Errorf("one byte more: %v", j.check())
		}
	})
	t.Run("43 a source that nests", func(t *testing.T) {
		for _, nest := range []string{"(", "{", "[[[", "not ", "do ", "function() return "} {
			long := caseLimits
			long.Source = 4 << 20
			res, pid := watched(t, r, strictJob(long, "return "+strings.Repeat(nest, 200_000)))
			if res.Verdict == notebook.OK || syscall.Kill(pid, 0) == nil {
				t.Errorf("%q: %v %q", nest, res.Verdict, res.Output)
			}
		}
		works(t, r, caseLimits, "return "+strings.Repeat("(", 150)+"1"+strings.Repeat(")", 150), "1\n")
	})
	t.Run("46 an index out of all proportion", func(t *testing.T) {
		for _, source := range []string{
			`local t = {} t[2e9] = 1 t[67108862] = 1 print("ended")`, `local t = {} for i = 1, 40 do t[i] = {} t[i][67108862] = 1 end`,
			`print(pcall(unpack, {}, 1, 1e9)) print("ended")`, `for i = 1, 99999999 do end print("ended")`,
		} {
			res, pid := watched(t, r, strictJob(caseLimits, source))
			if res.Verdict == notebook.NoVerdict || !raceDetector && res.Peak > caseLimits.Memory+attackMemory || syscall.Kill(pid, 0) == nil {
				t.Errorf("%q: %v, %d MiB", source, res.Verdict, res.Peak>>20)
			}
			if (res.Verdict == notebook.OK) != strings.HasSuffix(res.Output, "ended\n") {
				t.Errorf("%q: %v with %q", source, res.Verdict, res.Output)
			}
		}
	})
	t.Run("49 no core is written", func(t *testing.T) { noCore(t, open) })
	t.Run("58 a secret in the environment of the daemon", func(t *testing.T) {
		const secret = "the-secret-of-the-daemon"
		t.Setenv("NOTED_TEST_SECRET", secret)
		if out, err := exec.Command("/usr/bin/env").Output(); err != nil || !bytes.Contains(out, []byte(secret)) {
			t.Fatalf("the control: a program of the daemon's own has %q %v", out, err)
		}
		all := allLibraries(caseLimits)
		fresh := newRunner(t, Config{Limits: all})
		res := runSource(t, fresh, all, `local ok, f = pcall(io.open, "/proc/self/environ") print(os.getenv("NOTED_TEST_SECRET"), os.getenv("PATH"), ok and f and f:read("*a"))`)
		if res.Verdict != notebook.OK || res.Output != "nil\tnil\tnil\n" {
			t.Errorf("with every library it has %q (%v %q)", res.Output, res.Verdict, res.Error)
		}
		works(t, r, caseLimits, `return os, io`, "nil\tnil\n")
	})
	t.Run("64 two runs at once, and two in a row", func(t *testing.T) {
		quick := quick
		both := make(chan notebook.Result, 2)
		for _, name := range []string{"one", "other"} {
			go func() {
				res, _ := watched(t, r, strictJob(quick, fmt.Sprintf(`print(mark, string.mark) mark, string.mark = %q, %[1]q for i = 1, 3e6 do end print(mark, ("").mark)`, name)))
				both <- res
			}()
		}
		said := []string{(<-both).Output, (<-both).Output}
		slices.Sort(said)
		if !slices.Equal(said, []string{"nil\tnil\none\tone\n", "nil\tnil\nother\tother\n"}) {
			t.Errorf("they said %q", said)
		}
		works(t, r, quick, `return mark, string.mark`, "nil\tnil\n")
	})
	t.Run("65 standard input", func(t *testing.T) {
		works(t, open, allLibraries(caseLimits), `print(io.read("*a") == "", io.read())`, "true\tnil\n")
	})
	t.Run("66 other processes", func(t *testing.T) {
		all := allLibraries(quick)
		for _, c := range []struct {
			source  string
			verdict notebook.Verdict
		}{
			{`return io.open("/proc/1/status"), io.open("/proc/self/status")`, notebook.OK},
			{`return os.execute("ps")`, notebook.Violation},
			{`return probe.kill()`, notebook.Violation},
			{`return probe.tgkill()`, notebook.Violation},
			{`return probe.ptrace()`, notebook.Violation},
			{`return probe.process()`, notebook.Violation},
		} {
			if res := runSource(t, open, all, c.source); res.Verdict != c.verdict || res.Output != "" && !strings.HasPrefix(res.Output, "nil\t") {
				t.Errorf("%s: %v %q %q", c.source, res.Verdict, res.Output, res.Error)
			}
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/status", os.Getpid())); err != nil {
			t.Errorf("the control: %v", err)
		}
	})
	t.Run("69 the host's own words", func(t *testing.T) {
		for _, w := range hostWords {
			res := runSource(t, r, caseLimits, fmt.Sprintf(`print(%q) error(%[1]q, 0)`, w))
			if res.Verdict != notebook.Failed || res.Error != w || res.Output != w+"\n" {
				t.Errorf("%q: %v %q %q", w, res.Verdict, res.Error, res.Output)
			}
		}
	})
	t.Run("72 a frame and a result that are printed", func(t *testing.T) {
		forged := string((&outcome{}).encode())
		const claim = `{"verdict":"ok","rung":"host","denied":true,"layers":["seccomp"]}`
		res := runSource(t, r, caseLimits, `print("\0\0\0\2\0\0" .. '`+claim+`') error("really", 0)`)
		if res.Verdict != notebook.Failed || res.Error != "really" || res.Output != forged+claim+"\n" || res.Rung != notebook.Strict {
			t.Errorf("%v %q %q at %v", res.Verdict, res.Error, res.Output, res.Rung)
		}
	})
	t.Run("73 frames that are no protocol", func(t *testing.T) { noProtocol(t) })
	t.Run("74 a worker that dies without a word", func(t *testing.T) {
		for _, script := range []string{`exit 0`, `kill -9 $$`, `printf partly; exit 1`, `exec 3>&-; exit 0`} {
			w := fakeWorker(t, script, caseLimits)
			if got := w.run(t.Context(), &request{source: "x"}); got.verdict != notebook.Crash || got.outcome.failed {
				t.Errorf("%s: %v", script, got.verdict)
			}
		}
		// What was decided once is not replaced by what comes to light later.
		var d decision
		for _, v := range []notebook.Verdict{notebook.Failed, notebook.Crash, notebook.OK, notebook.Timeout} {
			if d.set(v) != (v == notebook.Failed) || d.get() != notebook.Failed {
				t.Errorf("after %v it is %v", v, d.get())
			}
		}
	})
	t.Run("77 a worker that somebody starts by hand", func(t *testing.T) { startedByHand(t) })
	t.Run("83 no grant, and one for something else", func(t *testing.T) {
		if _, err := r.Run(t.Context(), trust.Grant{}); err == nil {
			t.Error("the zero grant runs")
		}
		j := strictJob(caseLimits, "return 1")
		j.request.inputs = []field{{"everything", "please"}}
		if res := runJob(t, r, j); res.Verdict != notebook.Failed || !strings.Contains(res.Error, "everything") {
			t.Errorf("an input of no capability: %v %q %q", res.Verdict, res.Output, res.Error)
		}
		works(t, r, caseLimits, "return 1", "1\n")
	})
	t.Run("87 what was put out before the deadline", func(t *testing.T) {
		if res := ends(t, `print("before") while true do end`, notebook.Timeout); res.Output != "before\n" {
			t.Errorf("it keeps %q", res.Output)
		}
	})
}

// zeros is an endless file of them.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// resident is what this process holds now.
func resident(t *testing.T) int64 {
	t.Helper()
	v, err := readStatus("/proc/self/status", "VmRSS")
	if err != nil {
		t.Fatal(err)
	}
	return int64(v[0])
}

// noProtocol has workers that were taken over talk on the frame pipe in every
// wrong way. None of it is an outcome, and none of it outlives the answer.
func noProtocol(t *testing.T) {
	good := `\000\000\000\002\000\000`
	for _, c := range []struct {
		name, script string
		verdict      notebook.Verdict
	}{
		{"cut in its length", `printf '\000\000' >&3`, notebook.Crash},
		{"cut in its body", `printf '\000\000\000\002\000' >&3`, notebook.Crash},
		{"an empty one", `printf '\000\000\000\000' >&3; exec sleep 60`, notebook.Crash},
		{"of another kind", `printf '\000\000\000\005\001\001x\000\000' >&3; exec sleep 60`, notebook.Crash},
		{"with something left over", `printf '\000\000\000\003\000\000\000' >&3; exec sleep 60`, notebook.Crash},
		{"with a flag that is no bit", `printf '\000\000\000\002\002\000' >&3; exec sleep 60`, notebook.Crash},
		{"longer than any", `printf '\177\377\377\377' >&3; exec sleep 60`, notebook.Crash},
		{"on the output instead", `printf '` + good + `'`, notebook.Crash},
		{"after the deadline", `sleep 0.6; printf '` + good + `' >&3; exec sleep 60`, notebook.Timeout},
		{"after a flood", `yes | head -c 2000000; printf '` + good + `' >&3; exec sleep 60`, notebook.Output},
	} {
		w := fakeWorker(t, c.script, caseLimits)
		answered := make(chan ran, 1)
		go func() { answered <- w.run(context.Background(), &request{source: "x"}) }()
		select {
		case r := <-answered:
			if r.verdict != c.verdict || r.outcome.failed {
				t.Errorf("%s: %v %+v, want %v", c.name, r.verdict, r.outcome, c.verdict)
			}
			if err := syscall.Kill(r.pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s: alive: %v", c.name, err)
			}
		case <-time.After(casePatience):
			t.Fatalf("%s: no answer", c.name)
		}
	}
	// Of two outcomes the first is the one, and what follows is nobody's: the
	// worker is dead before the answer.
	w := fakeWorker(t, `printf '\000\000\000\006\001\004mine`+good+`' >&3; exec sleep 60`, caseLimits)
	if r := w.run(t.Context(), &request{source: "x"}); r.verdict != notebook.Failed || r.outcome.text != "mine" {
		t.Errorf("two outcomes: %v %+v", r.verdict, r.outcome)
	}
}

// coreVictim is a process that the kernel kills for a system call, as it kills a
// worker, with no limit on cores.
const coreVictim = "noted-test-core"

func beCoreVictim() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return 1
	}
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return 1
	}
	if err := os.Chdir(os.Args[1]); err != nil {
		return 1
	}
	if err := filter(); err != nil {
		return 1
	}
	_ = systemCalls["socket"]()
	return 0
}

// noCore has the kernel kill a worker in the way that writes a core.
func noCore(t *testing.T, r *Runner) {
	t.Helper()
	dir := t.TempDir()
	c := role(t, coreVictim, dir)
	_ = c.Run()
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGSYS {
		t.Fatalf("the control ended with %v", c.ProcessState)
	}
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &most); err != nil {
		t.Fatal(err)
	}
	if !status.CoreDump() && most.Max > 0 {
		t.Errorf("the control was killed and left no core")
	}
	w, err := r.take(t.Context(), kind{"lua", allLibraries(caseLimits)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.closeFiles()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", w.process.Pid))
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), "Max core file size 0 0") {
		t.Errorf("a worker may write a core: %v\n%s", err, limits)
	}
	if _, err := w.request.Write((&request{source: "probe.socket()"}).encode()); err != nil {
		t.Fatal(err)
	}
	_ = w.request.Close()
	state, err := w.process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGSYS || status.CoreDump() {
		t.Errorf("the worker ended with %v, a core: %v", state, status.CoreDump())
	}
}

// startedByHand starts a worker as anybody can: it has no more power than who
// starts it, closes its jail all the same, and wants its own protocol.
func startedByHand(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	for _, args := range [][]string{
		nil,
		{"lua"},
		{"lua", "0", "0", "0", "0"},
		{"cobol", "1000000000", "134217728", "65536", "65536"},
		{"lua", "1000000000", "134217728", "65536", "65536", "--jail=none"},
		{"lua", "-1", "134217728", "65536", "65536"},
		{"lua", "1000000000", "134217728", "65536", "65536"}, // right, and with nothing on its descriptors
	} {
		c := role(t, workerName, args...)
		c.Stdin = strings.NewReader(`io.open("` + marker + `", "w"):write("x")`)
		answered := make(chan []byte, 1)
		go func() { out, _ := c.Output(); answered <- out }()
		select {
		case out := <-answered:
			if c.ProcessState.ExitCode() == 0 || len(out) > 0 {
				t.Errorf("%q: %v, it says %q", args, c.ProcessState, out)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%q: it waits", args)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it wrote the marker")
	}
	// With its descriptors right it runs, in the jail.
	in, out, frames := pipe(t), pipe(t), pipe(t)
	root, err := emptyRoot()
	if err != nil {
		t.Fatal(err)
	}
	c := role(t, workerName, kind{"lua", allLibraries(quick)}.args()...)
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = in[0], out[1], nil, []*os.File{frames[1], root}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{in[0], out[1], frames[1], root} {
		f.Close()
	}
	for _, f := range []*os.File{in[1], out[0], frames[0]} {
		defer f.Close()
	}
	late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer late.Stop()
	b, err := readFrame(frames[0], maxReadyFrame)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := decodeReady(b)
	if err != nil || !slices.Contains(ready.layers, layerSeccomp) || !slices.Contains(ready.layers, layerLimits) {
		t.Errorf("it is ready with %+v %v", ready, err)
	}
	if _, err := in[1].Write((&request{source: fmt.Sprintf(`print(io.open(%q, "w"))`, marker)}).encode()); err != nil {
		t.Fatal(err)
	}
	in[1].Close()
	if b, err = readFrame(frames[0], maxOutcomeFrame); err != nil {
		t.Fatal(err)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	said, _ := io.ReadAll(out[0])
	if o, err := decodeOutcome(b); err != nil || o.failed || !strings.HasPrefix(string(said), "nil\t") {
		t.Errorf("it says %q %+v %v", said, o, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it wrote the marker")
	}
}

func pipe(t *testing.T) [2]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return [2]*os.File{r, w}
}
