package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/exec"
	"noted/notebook"
)

// endless are a page's body and what it would write if it could go on.
var endless = lua("print('begun') while true do end print('went on')")

// ending is how a run ended for whoever asked for it.
type ending struct {
	run *notebook.RunInfo
	err error
}

// begins runs the first fence of a page and waits until the run is recorded.
func begins(t *testing.T, w *daemontest.World, ctx context.Context, h *daemontest.Hand, title string) (number uint64, ended <-chan ending) {
	t.Helper()
	over := make(chan ending, 1)
	f := h.Fence(title, 1)
	go func() {
		run, err := h.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(f)})
		over <- ending{run, err}
	}()
	w.Eventually("the run has begun", func() bool {
		runs, err := h.Client.Runs(context.Background(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 0 || runs[0].State != "running" || runs[0].Fence != f.ID {
			return false
		}
		number = runs[0].Number
		return true
	})
	return number, over
}

// cancelledBecause fails the test unless the run is kept as cancelled for the
// reason, in the list, by its number and as the fence's last one.
func cancelledBecause(t *testing.T, h *daemontest.Hand, number uint64, why string) {
	t.Helper()
	run, err := h.Client.RunInfo(context.Background(), number)
	if err != nil {
		t.Fatal(err)
	}
	if run.State != "done" || run.Result.Verdict != notebook.Cancelled || !strings.Contains(run.Reason, why) || strings.Contains(run.Result.Output, "went on") {
		t.Errorf("run %d is kept as %+v, not as cancelled because %q", number, run, why)
	}
	if last := h.Fence(run.Title, 1).Last; last == nil || last.Number != number || last.Reason != run.Reason {
		t.Errorf("the fence's last run is %+v", last)
	}
	if n := h.Status().Running; n != 0 {
		t.Errorf("%d runs are still counted", n)
	}
}

// TestCase22_CancelledBeforeItBegan: a run that waits for its turn is cancelled
// without a worker, and kept as cancelled. The one before it goes on.
func TestCase22_CancelledBeforeItBegan(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	d := w.Device("laptop")
	d.Exec = exec.Config{Slots: 1, Spares: -1}
	d.Restarts()
	w.Eventually("the jail was tried", func() bool { return len(children(t)) == 0 })
	laptop, ctx := w.As("laptop"), context.Background()
	laptop.Types("Busy", endless)
	laptop.Types("Waits", lua("print('went on')"))
	busy, busyEnded := begins(t, w, ctx, laptop, "Busy")
	w.Eventually("it has the slot", func() bool { return len(children(t)) == 1 })
	waits, waitsEnded := begins(t, w, ctx, laptop, "Waits")

	run, err := laptop.Client.Cancel(ctx, waits)
	if err != nil || run.Number != waits || run.Result.Verdict != notebook.Cancelled {
		t.Fatalf("%+v %v", run, err)
	}
	if e := within(t, waitsEnded); e.err != nil || e.run.Result.Verdict != notebook.Cancelled || e.run.Result.Output != "" || len(e.run.Result.Layers) > 0 {
		t.Errorf("who asked was told %+v %v", e.run, e.err)
	}
	if n := len(children(t)); n != 1 {
		t.Errorf("%d workers", n)
	}
	if _, err := laptop.Client.Cancel(ctx, busy); err != nil {
		t.Fatal(err)
	}
	if e := within(t, busyEnded); e.err != nil || e.run.Result.Verdict != notebook.Cancelled {
		t.Errorf("%+v %v", e.run, e.err)
	}
	cancelledBecause(t, laptop, waits, "cancelled by owner, before its turn came")
	cancelledBecause(t, laptop, busy, "cancelled by owner")

	// The control: what is not cancelled has its turn.
	if run := laptop.Runs("Waits", 1); run.Result.Output != "went on\n" {
		t.Errorf("%+v", run.Result)
	}
}

// TestCase23_CancelledWhileItRuns by those who may: its own client, another
// person's client, an agent its own. Each is answered when the worker is dead.
func TestCase23_CancelledWhileItRuns(t *testing.T) {
	w, laptop := lonely(t)
	scribe, ctx := w.Device("laptop").Agent("scribe"), context.Background()
	laptop.Types("Long", endless)
	for _, c := range []struct {
		runs, cancels *daemontest.Hand
		by            string
	}{
		{laptop, laptop, "owner"},
		{scribe, scribe, "agent:scribe"},
		{scribe, laptop, "owner"},
	} {
		number, ended := begins(t, w, ctx, c.runs, "Long")
		run, err := c.cancels.Client.Cancel(ctx, number)
		if left := children(t); err != nil || run.Number != number || run.Result.Verdict != notebook.Cancelled || len(left) > 0 {
			t.Errorf("%+v %v, alive: %v", run, err, left)
		}
		if e := within(t, ended); e.err != nil || e.run.Result.Verdict != notebook.Cancelled {
			t.Errorf("who asked was told %+v %v", e.run, e.err)
		}
		cancelledBecause(t, laptop, number, "cancelled by "+c.by)

		// Once more, and of a run that is over.
		_, err = c.cancels.Client.Cancel(ctx, number)
		daemontest.Refusal(t, err, notebook.CodeNotFound, "is not running any more: it ended with cancelled")
	}

	// Who may not.
	number, ended := begins(t, w, ctx, laptop, "Long")
	_, err := scribe.Client.Cancel(ctx, number)
	daemontest.Refusal(t, err, notebook.CodeDenied, "cancel another's run")
	_, err = laptop.Client.Cancel(ctx, number+100)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "is not running")
	w.Eventually("it has its worker", func() bool { return len(children(t)) == 1 })
	if n := len(children(t)); n != 1 {
		t.Errorf("%d workers: the run that nobody might cancel is gone", n)
	}
	// Two at once: both are answered, with the same.
	answers := make(chan ending, 2)
	for range 2 {
		go func() {
			run, err := laptop.Client.Cancel(ctx, number)
			answers <- ending{run, err}
		}()
	}
	for range 2 {
		if e := within(t, answers); e.err != nil && daemontest.CodeOf(e.err) != notebook.CodeNotFound || e.err == nil && e.run.Result.Verdict != notebook.Cancelled {
			t.Errorf("%+v %v", e.run, e.err)
		}
	}
	within(t, ended)
	laptop.Types("Short", sums)
	done := laptop.Runs("Short", 1)
	_, err = laptop.Client.Cancel(ctx, done.Number)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "it ended with ok")
	_, err = scribe.Client.Cancel(ctx, done.Number)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "is not running")
	if strings.Contains(err.Error(), "ended") {
		t.Errorf("an agent learns how another's run ended: %v", err)
	}
}

// TestCase28_TakenBackWhileItRuns: what allowed a run is taken away while it
// runs. The run is dead when that is answered, and says why. What rests on
// something else runs on.
func TestCase28_TakenBackWhileItRuns(t *testing.T) {
	for _, c := range []struct {
		name, why string
		takes     func(t *testing.T, w *daemontest.World, laptop *daemontest.Hand, approval uint64)
	}{
		{"an approval is revoked", "approval 1 was revoked", func(t *testing.T, _ *daemontest.World, laptop *daemontest.Hand, approval uint64) {
			if err := laptop.Client.Revoke(context.Background(), approval); err != nil {
				t.Fatal(err)
			}
		}},
		{"its device is quarantined", "phone, whose text it runs, was put into quarantine", func(t *testing.T, w *daemontest.World, laptop *daemontest.Hand, _ uint64) {
			report, err := laptop.Client.Quarantine(context.Background(), w.Device("phone").ID)
			if err != nil || len(report.Stopped) != 1 {
				t.Fatalf("%+v %v", report, err)
			}
		}},
		{"its device is removed", "phone, whose text it runs, was removed from the notebook", func(_ *testing.T, _ *daemontest.World, laptop *daemontest.Hand, _ uint64) {
			laptop.Removes("phone")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _, _ := paired(t, map[string]string{"Theirs": strings.Replace(endless, "```lua", "```lua {wants=\"clock\"}", 1)})
			d := w.Device("laptop")
			d.Stops()
			d.Exec = exec.Config{Slots: 3, Spares: -1}
			d.Starts()
			laptop := w.As("laptop")
			policy(t, laptop, "[limits]\ntime = \"1m\"\n")
			laptop.Types("Mine", lua("for i = 1, 1e12 do end"))
			approved := laptop.Approves("Theirs", 1, notebook.ScopeOnce)
			ctx := context.Background()
			mine, mineEnded := begins(t, w, ctx, laptop, "Mine")
			theirs, theirsEnded := begins(t, w, ctx, laptop, "Theirs")
			c.takes(t, w, laptop, approved.ID)
			if e := within(t, theirsEnded); e.err != nil || e.run.Result.Verdict != notebook.Cancelled || !strings.Contains(e.run.Reason, c.why) {
				t.Errorf("who asked was told %+v %v", e.run, e.err)
			}
			if s := laptop.Status(); s.Running != 1 {
				t.Errorf("%d run on, not the person's own alone", s.Running)
			}
			if _, err := laptop.Client.Cancel(ctx, mine); err != nil { // the control
				t.Errorf("the person's own run was stopped too: %v", err)
			}
			within(t, mineEnded)
			cancelledBecause(t, laptop, theirs, c.why)
		})
	}
}

// TestCase28_RemovedByAnother: a device that hears of a removal stops the runs of
// the removed one's text too.
func TestCase28_RemovedByAnother(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	d := w.Device("laptop")
	d.Exec = exec.Config{Slots: 3, Spares: -1}
	d.Restarts()
	w.Pair("laptop", "phone", "tablet")
	w.As("phone").Types("Theirs", endless)
	w.As("tablet").Types("Others", lua("for i = 1, 1e12 do end"))
	w.Settle()
	laptop, ctx := w.As("laptop"), context.Background()
	policy(t, laptop, "[limits]\ntime = \"1m\"\n")
	others, othersEnded := begins(t, w, ctx, laptop, "Others")
	theirs, theirsEnded := begins(t, w, ctx, laptop, "Theirs")
	w.As("tablet").Removes("phone")
	if e := within(t, theirsEnded); e.err != nil || e.run.Result.Verdict != notebook.Cancelled {
		t.Errorf("%+v %v", e.run, e.err)
	}
	if _, err := laptop.Client.Cancel(ctx, others); err != nil { // the control
		t.Errorf("the run of the other's text was stopped too: %v", err)
	}
	within(t, othersEnded)
	cancelledBecause(t, laptop, theirs, "phone, whose text it runs, was removed from the notebook")
}

// survivorVariable names the home that this program serves as another process, to be killed in the middle of runs.
const survivorVariable = "NOTED_TEST_SURVIVOR"

// beSurvivor serves a home in which two endless fences run and a third one waits.
func beSurvivor(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{}, Exec: exec.Config{Slots: 2, Spares: 1}})
	must(err)
	go func() { must(d.Serve(context.Background())) }()
	token, err := daemon.ReadToken(home.OwnerToken())
	must(err)
	c, err := d.Open(token)
	must(err)
	ctx := context.Background()
	for n, title := range []string{"One", "Two", "Three"} {
		p, err := c.Page(ctx, title)
		must(err)
		began := make(chan struct{})
		go func() {
			_, err := c.RunLive(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(p.Fences[0])}, func(o notebook.RunOutput) error {
				if strings.Contains(o.Text, "begun") {
					close(began)
				}
				return nil
			})
			fmt.Println("error", err)
		}()
		if n < 2 {
			<-began
		}
	}
	for {
		s, err := c.Status(ctx)
		must(err)
		if s.Running == 3 {
			break
		}
	}
	_, err = c.NewPage(ctx, "Mark") // on the disk, and so is what was written before it
	must(err)
	fmt.Println("running")
	select {}
}

// TestCase24_DaemonKilledWhileRunsGoOn: the workers die with the daemon. The next
// one finds their runs ended with crash, everywhere, and nothing runs for ever.
func TestCase24_DaemonKilledWhileRunsGoOn(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, d := w.As("laptop"), w.Device("laptop")
	policy(t, laptop, "[limits]\ntime = \"5m\"\n")
	for _, title := range []string{"One", "Two", "Three"} {
		laptop.Types(title, endless)
	}
	laptop.Types("Whole", sums)
	whole := laptop.Runs("Whole", 1)
	d.Stops()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), survivorVariable+"="+laptop.Home.Data)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "running" {
		_ = cmd.Process.Kill()
		t.Fatalf("it said %q", lines.Text())
	}
	workers := childrenOf(t, cmd.Process.Pid)
	if len(workers) < 2 {
		t.Errorf("only %v are its children: nothing was tested", workers)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = cmd.Wait()
	for _, pid := range workers {
		for alive(pid) {
			if time.Since(killed) > time.Second {
				t.Fatalf("%s is alive a second after its daemon was killed", pid)
			}
			time.Sleep(time.Millisecond)
		}
	}

	d.Starts()
	laptop = d.Owner()
	ctx := context.Background()
	runs, err := laptop.Client.Runs(ctx, 10)
	if err != nil || len(runs) != 4 {
		t.Fatalf("%+v %v", runs, err)
	}
	for _, run := range runs {
		if run.Number == whole.Number { // the control
			if run.Result.Verdict != notebook.OK || run.Reason != "" {
				t.Errorf("the run that was over is %+v", run)
			}
			continue
		}
		shown, err := laptop.Client.RunInfo(ctx, run.Number)
		if err != nil {
			t.Fatal(err)
		}
		for where, r := range map[string]*notebook.RunInfo{"the list": &run, "its number": shown, "the fence": laptop.Fence(run.Title, 1).Last} {
			if r == nil || r.State != "done" || r.Result.Verdict != notebook.Crash || !strings.Contains(r.Reason, "the daemon died while it ran") || r.Result.Rung != notebook.Granted {
				t.Errorf("%s has %+v", where, r)
			}
		}
		_, err = laptop.Client.Replay(ctx, run.Number)
		daemontest.Refusal(t, err, notebook.CodeUnavailable, "came to no end of its own: crash")
	}
	if s := laptop.Status(); s.Running != 0 {
		t.Errorf("%d still run", s.Running)
	}
	if ledger, err := laptop.Client.VerifyLedger(ctx); err != nil || ledger.Problem != "" {
		t.Errorf("%+v %v", ledger, err)
	}
	d.Restarts() // and not a second time
	if again, err := d.Owner().Client.Runs(ctx, 10); err != nil || len(again) != 4 {
		t.Errorf("%+v %v", again, err)
	}
}

// childrenOf are the processes that another one has begun.
func childrenOf(t *testing.T, parent int) (pids []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		if f := statOf(path); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

// statOf is what follows the name in a process's stat: its state, its parent.
func statOf(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid string) bool {
	f := statOf("/proc/" + pid + "/stat")
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}
