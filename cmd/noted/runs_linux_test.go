package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// theRun is the newest run as run list has it.
func (r *real) theRun() (run struct {
	Number uint64
	State  string
	Reason string
	Result struct{ Verdict, Output string }
},
) {
	r.t.Helper()
	out := r.must("", "run", "list", "--most", "1", "--json")
	var list struct{ Data []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		r.t.Fatal(err)
	}
	if len(list.Data) > 0 {
		if err := json.Unmarshal(list.Data[0], &run); err != nil {
			r.t.Fatal(err)
		}
	}
	return run
}

// TestCase25_ClientGoneStopsTheRun: the command that asked for a run is killed,
// with a signal that it can answer and with one that it cannot. The run is dead
// soon, and says why. A run whose command lives on goes on.
func TestCase25_ClientGoneStopsTheRun(t *testing.T) {
	r := newReal(t)
	r.types("Long", "```lua\nwhile true do end\n```")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, how := range [][]string{{"fence", "run", "Long#1"}, {"fence", "run", "Long#1", "--json"}} {
			before := r.theRun().Number
			cmd := r.command(how...)
			cmd.Stdout, cmd.Stderr = nil, nil
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for start := time.Now(); r.theRun().Number == before; time.Sleep(time.Millisecond) {
				if time.Since(start) > patience {
					t.Fatal("the run does not begin")
				}
			}
			time.Sleep(200 * time.Millisecond)
			if run := r.theRun(); run.State != "running" { // the control
				t.Fatalf("while its command waits the run is %+v", run)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			gone := time.Now()
			_ = cmd.Wait()
			for run := r.theRun(); run.State == "running"; run = r.theRun() {
				if time.Since(gone) > 2*time.Second {
					t.Fatalf("%v: the run goes on: %+v", sig, run)
				}
			}
			if run := r.theRun(); run.Result.Verdict != "cancelled" || !strings.Contains(run.Reason, "the client that asked for it went away") {
				t.Errorf("%v: the run ended as %+v", sig, run)
			}
			if n := r.busyWorkers(); n > 0 {
				t.Errorf("%v: %d workers are busy", sig, n)
			}
		}
	}
}

// busyWorkers counts the daemon's children that have used more processor time
// than one that only waits: an endless fence has.
func (r *real) busyWorkers() (n int) {
	r.t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range all {
		b, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) < 13 || f[1] != strconv.Itoa(r.daemon.Process.Pid) || f[0] != "R" {
			continue
		}
		if ticks, err := strconv.Atoi(f[11]); err == nil && ticks > 10 {
			n++
		}
	}
	return n
}

// TestOutputIsReadableEverywhere: binary noise, escape sequences and one line
// without end come out of fence run, run show, fence show and the JSON as text
// that no terminal obeys, with what was left out counted to the byte.
func TestOutputIsReadableEverywhere(t *testing.T) {
	r := newReal(t)
	r.types("Noise", "```lua\nlocal t = {} for i = 0, 255 do t[#t+1] = string.char(i) end\nprint(table.concat(t) .. '\\27[2J\\27]0;owned\\7')\n```\n\n"+
		"```lua\nfor i = 1, 700 do print(('x'):rep(1023)) end\n```\n\n```lua\nprint(('y'):rep(1e7))\n```")
	for n, c := range map[int]struct {
		verdict string
		total   int64 // 0: whatever was written before it was killed
	}{1: {"ok", 256 + 4 + 1 + 10}, 2: {"ok", 700 * 1024}, 3: {"output", 0}} {
		fence := "Noise#" + strconv.Itoa(n)
		plain, _ := r.does("", "fence", "run", fence)
		asJSON, _ := r.does("", "fence", "run", fence, "--json")
		number := strconv.FormatUint(r.theRun().Number, 10)
		for where, out := range map[string]string{
			"fence run": plain, "its JSON": asJSON, "run show": r.must("", "run", "show", number), "fence show": r.must("", "fence", "show", fence),
			"run list": r.must("", "run", "list"),
		} {
			if strings.ContainsFunc(out, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == '\u007f' || c == '\ufffd' }) {
				t.Errorf("%s of %s has what a terminal obeys: %.300q", where, fence, out)
			}
		}
		var shown struct {
			Data struct {
				Result struct {
					Verdict, Output string
					Dropped         int64 `json:"dropped_bytes"`
				}
			}
		}
		first, _, _ := strings.Cut(asJSON, "\n")
		if err := json.Unmarshal([]byte(first), &shown); err != nil {
			t.Fatalf("%v in %.200q", err, asJSON)
		}
		res := shown.Data.Result
		total := int64(len(res.Output)) + res.Dropped
		if res.Verdict != c.verdict || len(res.Output) > 64<<10 || total == 0 || c.total > 0 && total != c.total {
			t.Errorf("%s: %s, %d bytes and %d dropped, want %s and %d in all", fence, res.Verdict, len(res.Output), res.Dropped, c.verdict, c.total)
		}
	}
	if out := r.must("", "status"); out == "" {
		t.Error("the daemon is gone")
	}
}
