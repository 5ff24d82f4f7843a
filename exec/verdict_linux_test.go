package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// TestVerdicts: how a run ended is told by the parent's flags, the frame and the
// exit status.
func TestVerdicts(t *testing.T) {
	short := notebook.Limits{Time: 300 * time.Millisecond, Memory: 128 << 20, Output: 1 << 10, Source: 64 << 10}
	r := newRunner(t, Config{Limits: short})
	open := newRunner(t, Config{Limits: allLibraries(short)})
	for _, c := range []struct {
		name, source string
		all          bool
		verdict      notebook.Verdict
		output       string
	}{
		{"it returned", `return 1`, false, notebook.OK, "1\n"},
		{"it raised an error", `print(1) error(2)`, false, notebook.Failed, "1\n"},
		{"it went on for ever", `print("so far") while true do end`, false, notebook.Timeout, "so far\n"},
		{"inside one call of the engine", `return string.find(string.rep('a', 3000), '.-.-.-.-b')`, false, notebook.Timeout, ""},
		{"it caught everything", `while true do pcall(function() while true do end end) end return "escaped"`, false, notebook.Timeout, ""},
		{"it used up its memory", `return #string.rep('x', 2e9)`, false, notebook.Memory, ""},
		{"it used up its stack", `local function f() coroutine.wrap(f)() end f()`, false, notebook.Memory, ""},
		{"it wrote too much", `print("start") while true do print(string.rep("x", 100)) end`, false, notebook.Output, "start\n"},
		{"it made a forbidden call", `return probe.socket()`, true, notebook.Violation, ""},
		{"it ended the worker", `print("bye") os.exit(0)`, true, notebook.Crash, "bye\n"},
		{"with a status of its own", `os.exit(70)`, true, notebook.Crash, ""},
		{"it waits for itself", `channel.make():receive()`, true, notebook.Timeout, ""},
	} {
		run, limits := r, short
		if c.all {
			run, limits = open, allLibraries(short)
		}
		if c.name == "it used up its stack" {
			limits.Time = 20 * time.Second // growing a stack takes a while under load
		}
		res := runSource(t, run, limits, c.source)
		if res.Verdict != c.verdict || !strings.HasPrefix(res.Output, c.output) {
			t.Errorf("%s: %v %.80q %q, want %v %q", c.name, res.Verdict, res.Output, res.Error, c.verdict, c.output)
		}
		if (res.Verdict == notebook.Failed) != (res.Error != "") {
			t.Errorf("%s: %v with the error %q", c.name, res.Verdict, res.Error)
		}
	}
}

// TestTheFirstVerdictStands: an outcome that arrives after the deadline is late,
// and a deadline that passes after the outcome is nothing.
func TestTheFirstVerdictStands(t *testing.T) {
	for _, order := range [][]notebook.Verdict{
		{notebook.Timeout, notebook.OK, notebook.Output},
		{notebook.OK, notebook.Timeout},
		{notebook.Cancelled, notebook.Timeout, notebook.Failed},
	} {
		var d decision
		for i, v := range order {
			if d.set(v) != (i == 0) || d.get() != order[0] {
				t.Errorf("%v: after %v it is %v", order, v, d.get())
			}
		}
	}
}

func TestAResultSaysHowItCameAbout(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	before := time.Now()
	j := strictJob(quick, `local s = string.rep("x", 20e6) print("done")`)
	j.fence, j.closure = notebook.FenceID{1}, notebook.Hash{2}
	res := runJob(t, r, j)
	if res.Fence != j.fence || res.Closure != j.closure || res.Rung != notebook.Strict || res.Limits != quick {
		t.Errorf("what ran: %+v", res)
	}
	if res.Verdict != notebook.OK || res.Output != "done\n" || res.Head != 5 || res.Dropped != 0 {
		t.Errorf("what came out: %+v", res)
	}
	if at := time.UnixMilli(res.Started); at.Before(before.Add(-time.Second)) || at.After(time.Now()) {
		t.Errorf("started at %v", at)
	}
	if took := time.Duration(res.Took) * time.Microsecond; took <= 0 || took > time.Since(before) {
		t.Errorf("took %v", took)
	}
	if res.Peak < 20<<20 || !raceDetector && res.Peak > 64<<20 {
		t.Errorf("peak %d MiB with a string of 20 MB", res.Peak>>20)
	}
	if !slices.Equal(res.Layers, r.Layers()) || !slices.Contains(res.Layers, layerSeccomp) || !slices.Contains(res.Layers, layerLimits) {
		t.Errorf("layers %v, of the runner %v", res.Layers, r.Layers())
	}
	same, other := j, j
	same.request.args = nil
	other.request.args = []field{{"a", "b"}}
	if runJob(t, r, same).Inputs != res.Inputs || runJob(t, r, other).Inputs == res.Inputs {
		t.Error("the digest of the inputs does not follow the inputs")
	}
}

func TestHeadAndTailOfAFlood(t *testing.T) {
	l := quick
	l.Output = 100
	r := newRunner(t, Config{Limits: l})
	res := runSource(t, r, l, `print("the beginning") for i = 1, 50 do print("line", i) end print("the end")`)
	if res.Verdict != notebook.OK || !strings.HasPrefix(res.Output, "the beginning\n") || !strings.HasSuffix(res.Output, "the end\n") ||
		res.Dropped != int64(len("the beginning\n")+9*7+41*8+len("the end\n")-100) || res.Head != 50 || len(res.Output) != 100 {
		t.Errorf("%+v", res)
	}
	res = runSource(t, r, l, `while true do print("again") end`)
	if res.Verdict != notebook.Output || len(res.Output) != 100 || res.Dropped < floodFactor*100-100 || res.Dropped > floodFactor*100+64<<10 {
		t.Errorf("%+v", res)
	}
}

// TestAFenceCannotWriteTheFrame: whatever it prints is output.
func TestAFenceCannotWriteTheFrame(t *testing.T) {
	forged := (&outcome{text: "forged"}).encode()
	quoted := fmt.Sprintf("%q", forged)
	quoted = strings.NewReplacer(`\x00`, `\0`, `\x06`, `\6`, `\a`, `\7`, `\b`, `\8`).Replace(quoted)
	r := newRunner(t, Config{Limits: quick})
	res := runSource(t, r, quick, "print("+quoted+") error('mine')")
	if res.Verdict != notebook.Failed || !strings.HasSuffix(res.Error, "mine") || res.Output != string(forged)+"\n" {
		t.Errorf("%v %q %q, printed %q", res.Verdict, res.Output, res.Error, quoted)
	}
	all := allLibraries(quick)
	open := newRunner(t, Config{Limits: all})
	for _, way := range []string{
		`local f = io.open("/proc/self/fd/3", "w") f:write(%s) f:close()`,
		`local f = io.open("/dev/fd/3", "w") f:write(%s) f:close()`,
		`io.stdout:write(%s) io.stderr:write(%[1]s) error("mine")`,
	} {
		res := runSource(t, open, all, fmt.Sprintf(way, quoted))
		if res.Verdict != notebook.Failed || strings.Contains(res.Error, "forged") {
			t.Errorf("%s: %v %q %q", way, res.Verdict, res.Output, res.Error)
		}
	}
}

// fakeWorker is a process of ours that plays the part of a worker which has
// been taken over: the script has the frame pipe as descriptor 3.
func fakeWorker(t *testing.T, script string, limits notebook.Limits) *worker {
	t.Helper()
	return fake(t, limits, "/bin/sh", "sh", "-c", script)
}

// fake is a program that has the descriptors of a worker.
func fake(t *testing.T, limits notebook.Limits, program string, args ...string) *worker {
	t.Helper()
	var pipes [3][2]*os.File
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pipes[i] = [2]*os.File{r, w}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(program, args, &os.ProcAttr{
		Files: []*os.File{pipes[0][0], pipes[1][1], null, pipes[2][1]},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{pipes[0][0], pipes[1][1], null, pipes[2][1]} {
		f.Close()
	}
	return &worker{process: p, limits: limits, request: pipes[0][1], output: pipes[1][0], frames: pipes[2][0]}
}

// TestAWorkerThatWasTakenOver: the worst that it can do is to fail.
func TestAWorkerThatWasTakenOver(t *testing.T) {
	limits := notebook.Limits{Time: 300 * time.Millisecond, Memory: 1 << 30, Output: 1 << 10, Source: 1 << 10}
	for _, c := range []struct {
		name, script string
		verdict      notebook.Verdict
	}{
		{"a good frame", `printf '\000\000\000\002\000\000' >&3; exec sleep 60`, notebook.OK},
		{"a good frame, and a child that keeps the output open", `sleep 3 & printf '\000\000\000\002\000\000' >&3; exec sleep 60`, notebook.OK},
		{"a good frame and death", `read -r x; printf '\000\000\000\002\000\000' >&3`, notebook.OK},
		{"a frame that comes late", `sleep 0.6; printf '\000\000\000\002\000\000' >&3; exec sleep 60`, notebook.Timeout},
		{"half a frame, then silence", `printf '\000\000\000\002\000' >&3; exec sleep 60`, notebook.Timeout},
		{"half a frame, then death", `printf '\000\000\000\002\000' >&3`, notebook.Crash},
		{"a frame of four gibibytes", `printf '\377\377\377\377' >&3; exec sleep 60`, notebook.Crash},
		{"a malformed frame", `printf '\000\000\000\002\000\001' >&3; exec sleep 60`, notebook.Crash},
		{"a frame on the output", `printf '\000\000\000\002\000\000'`, notebook.Crash},
		{"an exit with 0", `exit 0`, notebook.Crash},
		{"the runtime's exit", fmt.Sprintf("exit %d", exitExhausted), notebook.Memory},
		{"a closed frame pipe", `exec 3>&-; exec sleep 60`, notebook.Crash},
		{"a flood", `exec yes`, notebook.Output},
		{"a signal", `kill -SEGV $$`, notebook.Crash},
	} {
		w := fakeWorker(t, c.script, limits)
		done := make(chan ran, 1)
		start := time.Now()
		go func() { done <- w.run(context.Background(), &request{source: "x"}) }()
		select {
		case r := <-done:
			if r.verdict != c.verdict {
				t.Errorf("%s: %v, want %v", c.name, r.verdict, c.verdict)
			}
			if err := syscall.Kill(r.pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s: alive when the answer is there: %v", c.name, err)
			}
			if took := time.Since(start); took > 2500*time.Millisecond {
				t.Errorf("%s: answered after %v", c.name, took)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no answer", c.name)
		}
	}
}

func TestCancelling(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	ctx, cancel := context.WithCancel(t.Context())
	type answer struct {
		res notebook.Result
		pid int
		err error
	}
	done := make(chan answer, 1)
	go func() {
		res, pid, err := r.run(ctx, strictJob(quick, `print("started") while true do end`))
		done <- answer{res, pid, err}
	}()
	runningWorker(t)
	cancel()
	start := time.Now()
	a := <-done
	if a.err != nil || a.res.Verdict != notebook.Cancelled || a.res.Output != "started\n" {
		t.Errorf("%v %q %v", a.res.Verdict, a.res.Output, a.err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("cancelling took %v", took)
	}
	if err := syscall.Kill(a.pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("alive: %v", err)
	}
	// What finished before it was cancelled is finished.
	ctx, cancel = context.WithCancel(t.Context())
	res, _, err := r.run(ctx, strictJob(quick, `return 1`))
	cancel()
	if err != nil || res.Verdict != notebook.OK {
		t.Errorf("%v %v", res.Verdict, err)
	}
}

func TestWhatDoesNotStart(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	var e *notebook.Error
	if _, err := r.Run(t.Context(), trust.Grant{}); !errors.As(err, &e) || e.Code != notebook.CodeRefused {
		t.Errorf("the zero grant: %v", err)
	}
	for name, change := range map[string]func(*job){
		"no time":              func(j *job) { j.limits.Time = 0 },
		"negative memory":      func(j *job) { j.limits.Memory = -1 },
		"no output":            func(j *job) { j.limits.Output = 0 },
		"no source":            func(j *job) { j.limits.Source = 0 },
		"time without end":     func(j *job) { j.limits.Time = 1 << 62 },
		"memory without end":   func(j *job) { j.limits.Memory = 1 << 60 },
		"output of a mebibyte": func(j *job) { j.limits.Output = 1 << 20 },
		"a source too long":    func(j *job) { j.limits.Source = 100; j.request.source = strings.Repeat("-", 101) },
		"inputs too long":      func(j *job) { j.request.inputs = []field{{"page", strings.Repeat("-", maxInputs)}} },
		"args too long":        func(j *job) { j.limits.Source = 100; j.request.args = []field{{"a", strings.Repeat("-", 100)}} },
		"too many args":        func(j *job) { j.request.args = make([]field, maxFields+1) },
	} {
		j := strictJob(quick, "return 1")
		if err := j.check(); err != nil {
			t.Fatalf("the job before it is changed: %v", err)
		}
		change(&j)
		if err := j.check(); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l := quick
	l.Memory = 8 << 20
	if _, _, err := r.run(t.Context(), strictJob(l, "return 1")); !raceDetector && (!errors.As(err, &e) || !strings.Contains(err.Error(), "memory limit")) {
		t.Errorf("a memory limit that no worker fits in: %v", err)
	}
	if res := runSource(t, r, quick, "return 1"); res.Verdict != notebook.OK {
		t.Errorf("afterwards: %v", res.Verdict)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := r.run(t.Context(), strictJob(quick, "return 1")); !errors.As(err, &e) || e.Code != notebook.CodeUnavailable {
		t.Errorf("after Close: %v", err)
	}
}

func TestNewNeedsWorkerToHaveBeenCalled(t *testing.T) {
	dispatched.Store(false)
	_, err := New(Config{})
	dispatched.Store(true)
	if !errors.Is(err, errUncalled) {
		t.Errorf("New in a process that would run itself again as a worker: %v", err)
	}
}

// TestHonestWork: limits hit nobody who keeps them.
func TestHonestWork(t *testing.T) {
	quick := quick
	quick.Time = time.Minute
	r := newRunner(t, Config{Limits: quick})
	for name, source := range map[string]string{
		"two and a half seconds": `local n, t = 0, {} for i = 1, 4e6 do t[i % 100] = {i} n = n + i end for i = 1, 5e6 do n = n + i end return n`,
		"a string of 66 MB":      `return #string.rep("x", 66e6)`,
		"a table of a million":   `local t = {} for i = 1, 1e6 do t[i] = i end return #t`,
		"much garbage":           `for i = 1, 2000 do local s = string.rep("x", 1e5) .. i end return 1`,
	} {
		if res := runSource(t, r, quick, source); res.Verdict != notebook.OK {
			t.Errorf("%s: %v %q after %v", name, res.Verdict, res.Error, time.Duration(res.Took)*time.Microsecond)
		}
	}
	// Longer than the Go runtime's look at the cgroup's limits, which the jail forbids.
	l := notebook.Limits{Time: 2500 * time.Millisecond, Memory: 128 << 20, Output: 1 << 10, Source: 1 << 10}
	if res := runSource(t, r, l, "while true do local t = {} end"); res.Verdict != notebook.Timeout {
		t.Errorf("2.5 s of work: %v", res.Verdict)
	}
}

// TestMemoryLimits: the peak stays where it was set, at every size.
func TestMemoryLimits(t *testing.T) {
	for _, mib := range []int64{48, 64, 128, 200, 512} {
		l := notebook.Limits{Time: 400 * time.Millisecond, Memory: mib << 20, Output: 1 << 10, Source: 1 << 10}
		r := newRunner(t, Config{Limits: l})
		for _, source := range []string{
			fmt.Sprintf(`local t = {} for i = 1, 1000 do t[i] = string.rep("x", %d) end`, mib<<20/8),
			`local t = {} while true do t[#t + 1] = {} end`,
			`local s = "x" while true do s = s .. s end`,
			`local t = {} while true do t[#t + 1] = string.rep("x", 1e5) .. #t end`,
		} {
			res := runSource(t, r, l, source)
			if res.Verdict != notebook.Memory && res.Verdict != notebook.Timeout {
				t.Errorf("%d MiB: %s: %v %q", mib, source, res.Verdict, res.Error)
			}
			if !raceDetector && res.Peak > l.Memory+attackMemory {
				t.Errorf("%d MiB: %s: %d MiB resident", mib, source, res.Peak>>20)
			}
		}
		// Half of what is left when the worker is ready can be used in one piece.
		if res := runSource(t, r, notebook.Limits{Time: 5 * time.Second, Memory: l.Memory, Output: 1 << 10, Source: 1 << 10},
			fmt.Sprintf(`return #string.rep("x", %d)`, (mib-30)<<20/2)); res.Verdict != notebook.OK {
			t.Errorf("%d MiB: an honest string: %v %q", mib, res.Verdict, res.Error)
		}
	}
}
