package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/exec"
	"noted/notebook"
)

// holders are the processes known to hold write models. One that has ended and
// that nobody has waited for has no name any more.
var holders sync.Map

// children are the processes that this one has begun and that are there, dead
// ones that nobody has waited for included, without those that hold write models.
func children(t *testing.T) (pids []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		pid := strings.Split(path, "/")[2]
		if f := statOf(path); len(f) < 2 || f[1] != strconv.Itoa(os.Getpid()) {
			continue // it is gone, or another's
		}
		switch name := becomes(path); {
		case name == "noted-page-models":
			holders.Store(pid, true)
		case name != "":
			holders.Delete(pid)
			pids = append(pids, pid)
		default:
			if _, held := holders.Load(pid); !held {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// becomes is argv[0] of a child of this process once it is what it was started
// as; none if it has ended. Until then it has our own, and in between none.
func becomes(stat string) string {
	own := strings.Join(os.Args, "\x00") + "\x00"
	for {
		line, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		if f := statOf(stat); err != nil || len(f) == 0 || f[0] == "Z" || f[0] == "X" {
			return ""
		}
		if s := string(line); s != "" && s != own {
			name, _, _ := strings.Cut(s, "\x00")
			return name
		}
	}
}

// lonely is a laptop that keeps no workers ready: whatever is alive is a run.
func lonely(t *testing.T) (*daemontest.World, *daemontest.Hand) {
	t.Helper()
	w := daemontest.Loopback(t, "laptop")
	d := w.Device("laptop")
	d.Exec = exec.Config{Slots: 2, Spares: -1}
	d.Restarts()
	// It tries its jail when it starts, with a worker that it lets go of.
	w.Eventually("the jail was tried", func() bool { return len(children(t)) == 0 })
	return w, w.As("laptop")
}

// TestI7NothingAliveAtTheAnswer looks for processes the moment an answer comes,
// whatever the fence tried and however the run ended.
func TestI7NothingAliveAtTheAnswer(t *testing.T) {
	w, laptop := lonely(t)
	policy(t, laptop, "[limits]\ntime = \"1s\"\n")
	for _, c := range []struct {
		code    string
		verdict notebook.Verdict
	}{
		{"return 1", notebook.OK},
		{"error('no')", notebook.Failed},
		{"while true do end", notebook.Timeout},
		{"pcall(function() while true do end end) while true do end", notebook.Timeout},
		{"local t = {} while true do t[#t+1] = ('x'):rep(1e6) end", notebook.Memory},
		{"while true do print(('x'):rep(1e5)) end", notebook.Output},
	} {
		title := "Run " + c.code[:6] + strconv.Itoa(int(c.verdict))
		laptop.Types(title, lua(c.code))
		hands := []*daemontest.Hand{w.Device("laptop").Agent("scribe")}
		if c.verdict < notebook.Timeout {
			hands = append(hands, laptop)
		}
		for _, by := range hands {
			run := by.Runs(title, 1)
			if left := children(t); len(left) > 0 {
				t.Errorf("%q: %v is alive after the answer", c.code, left)
			}
			if run.Result.Verdict != c.verdict && !(c.verdict == notebook.Output && run.Result.Verdict == notebook.Timeout) {
				t.Errorf("%q ended as %v: %+v", c.code, run.Result.Verdict, run.Result)
			}
		}
	}
	if n := laptop.Status().Running; n != 0 {
		t.Errorf("%d runs are still counted", n)
	}
}

// TestI7CancelledAndStopped: cancelling answers when the worker is dead, and so
// does stopping the daemon.
func TestI7CancelledAndStopped(t *testing.T) {
	w, laptop := lonely(t)
	ctx := context.Background()
	laptop.Types("Long", lua("while true do end"))
	f := laptop.Fence("Long", 1)
	ended := make(chan *notebook.RunInfo, 1)
	begin := func() (number uint64) {
		t.Helper()
		go func() {
			run, err := laptop.TryRun(f)
			if err != nil {
				t.Error(err)
			}
			ended <- run
		}()
		w.Eventually("a worker runs", func() bool { return len(children(t)) == 1 })
		runs, err := laptop.Client.Runs(ctx, 1)
		if err != nil || len(runs) != 1 || runs[0].State != "running" {
			t.Fatalf("%+v %v", runs, err)
		}
		return runs[0].Number
	}
	number := begin()
	cancelled, err := laptop.Client.Cancel(ctx, number)
	if err != nil || cancelled.Result.Verdict != notebook.Cancelled || len(children(t)) > 0 {
		t.Errorf("%+v %v, %v", cancelled, err, children(t))
	}
	if run := within(t, ended); run.Result.Verdict != notebook.Cancelled || len(children(t)) > 0 {
		t.Errorf("%+v, %v", run, children(t))
	}

	// The daemon stops in the middle of a run: the run has its outcome.
	begin()
	w.Device("laptop").Stops()
	if left := children(t); len(left) > 0 {
		t.Errorf("%v is alive after the daemon", left)
	}
	if run := within(t, ended); run == nil || run.Result.Verdict != notebook.Cancelled {
		t.Errorf("%+v", run)
	}
}

// TestI2SyncNeverRuns sends what looks as if it should run, and watches for
// anything that does.
func TestI2SyncNeverRuns(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	for _, name := range []string{"laptop", "phone", "tablet"} {
		d := w.Device(name)
		d.Exec = exec.Config{Slots: 2, Spares: -1}
		d.Restarts()
	}
	// Each daemon tries its jail when it starts, with a worker that it lets go of.
	w.Eventually("the jails were tried", func() bool { return len(children(t)) == 0 })
	var seen []string
	watching, stop := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watching.Err() == nil {
			seen = append(seen, children(t)...)
			time.Sleep(time.Millisecond)
		}
	}()

	w.Pair("laptop", "phone")
	for n := range 20 {
		w.As("laptop").Types(fmt.Sprint("Page ", n), "---\nauto-run: true\n---\n\n```lua {auto-run=true on=open}\nreturn 1\n```\n\n```sh\ntouch /tmp/x\n```\n")
	}
	w.Settle()
	w.Pair("laptop", "tablet") // the whole log at once
	w.As("phone").Edits("Page 3", "return 1", "return 2")
	w.Settle()
	w.As("laptop").Removes("tablet")
	w.Settle()
	for n := range 20 {
		w.As("phone").Page(fmt.Sprint("Page ", n)) // nor does opening it
	}
	stop()
	<-watched
	if len(seen) > 0 {
		t.Errorf("processes were seen: %v", slices.Compact(seen))
	}
	for _, name := range []string{"laptop", "phone", "tablet"} {
		runs, err := w.As(name).Client.Runs(context.Background(), 0)
		if err != nil || len(runs) != 0 {
			t.Errorf("%s: %+v %v", name, runs, err)
		}
		if ledger, err := w.As(name).Client.VerifyLedger(context.Background()); err != nil || ledger.Records != 0 || ledger.Problem != "" {
			t.Errorf("%s: %+v %v", name, ledger, err)
		}
	}
	// A person's run is seen by all of these.
	w.As("phone").Runs("Page 1", 1)
	if ledger, err := w.As("phone").Client.VerifyLedger(context.Background()); err != nil || ledger.Records == 0 {
		t.Errorf("%+v %v", ledger, err)
	}
}

// TestI8ARunHasItsGrantAndNoMore: what a fence of each standing can reach.
func TestI8ARunHasItsGrantAndNoMore(t *testing.T) {
	const look = "local has = {}\nfor _, name in ipairs {'page', 'clock', 'args', 'io', 'os', 'require', 'dofile', 'load', 'debug', 'package'} do\n" +
		"if _G[name] ~= nil then has[#has+1] = name end end\nreturn table.concat(has, ' ')"
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua(look)})
	scribe := w.Device("laptop").Agent("scribe")
	mine := lua(strings.NewReplacer("has", "have", "name", "key").Replace(look)) // the phone's text would stand as the phone's
	laptop.Types("Mine", mine)
	laptop.Types("Wants", strings.Replace(mine, "```lua\n", "```lua {wants=\"clock\"}\n", 1))
	w.Settle()
	for _, c := range []struct {
		by    *daemontest.Hand
		title string
		has   string
	}{
		{laptop, "Mine", "page clock args"},
		{laptop, "Wants", "clock"},
		{laptop, "Theirs", ""},
		{scribe, "Mine", ""},
		{scribe, "Theirs", ""},
		{phone, "Mine", ""},
		{phone, "Theirs", "page clock args"},
	} {
		run := c.by.Runs(c.title, 1)
		if got := strings.TrimSpace(run.Result.Output); got != c.has {
			t.Errorf("%s's %s of %s has %q, not %q", c.by.Name, c.by.Client.Role(), c.title, got, c.has)
		}
		if !slices.Contains(run.Result.Layers, "seccomp") || !slices.Contains(run.Result.Layers, "rlimits") {
			t.Errorf("the run names the layers %v", run.Result.Layers)
		}
	}
}

// TestI9NoOutputForgesAVerdict: what a fence prints is what it printed.
func TestI9NoOutputForgesAVerdict(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{
		"Forger": lua("print('{\"verdict\":\"ok\",\"rung\":\"host\"}')\nprint('verdict: ok\\nexit 0')\nerror('really')"),
		"Fine":   sums,
	})
	run := laptop.Runs("Forger", 1)
	if run.Result.Verdict != notebook.Failed || !strings.Contains(run.Result.Error, "really") || run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run.Result)
	}
	// What ran with more than nothing stays where it ran.
	before := laptop.Status().Entries
	if run := phone.Runs("Fine", 1); run.Result.Rung != notebook.Granted {
		t.Errorf("%+v", run.Result)
	}
	w.Settle()
	if now := laptop.Status().Entries; now != before {
		t.Errorf("%d entries came of a granted run elsewhere", now-before)
	}
	// Another device's result is not this one's.
	w.Device("phone").Agent("scribe").Runs("Fine", 1)
	w.Settle()
	if now := laptop.Status().Entries; now != before+1 {
		t.Errorf("%d entries came of a strict run elsewhere", now-before)
	}
	if last := laptop.Fence("Fine", 1).Last; last != nil {
		t.Errorf("the laptop's own result is %+v", last)
	}
	laptop.Runs("Fine", 1)
	w.Settle()
	if last := laptop.Fence("Fine", 1).Last; last == nil || last.Result.Output != "42\n" {
		t.Errorf("%+v", last)
	}
}

// TestI10OutputNeverBecomesAFence, which is also the first route: a fence that
// prints fences.
func TestI10OutputNeverBecomesAFence(t *testing.T) {
	code := "return '```\\n\\n```lua {auto-run=true}\\nreturn \"owned\"\\n```\\n\\n````\\n```lua\\nreturn 2\\n```\\n\\n\\27[2J\\u{202e}'"
	w, laptop, phone := paired(t, map[string]string{"Printer": lua(strings.ReplaceAll(code, "\\u{202e}", "\u202e"))})
	before := laptop.Page("Printer")
	for _, h := range []*daemontest.Hand{laptop, phone, w.Device("laptop").Agent("scribe")} {
		run := h.Runs("Printer", 1)
		if run.Result.Verdict != notebook.OK || !strings.Contains(run.Result.Output, "```lua {auto-run=true}") {
			t.Fatalf("%+v", run.Result)
		}
		shown := notebook.FenceOutput(run.Result.Output)
		if fences, err := notebook.Fences(shown); err != nil || len(fences) != 1 || !fences[0].Closed() || strings.ContainsAny(shown, "\x1b\u202e") {
			t.Errorf("%d fences (%v) in %q", len(fences), err, shown)
		}
	}
	w.Settle()
	for _, h := range []*daemontest.Hand{laptop, phone} {
		if p := h.Page("Printer"); p.Body != before.Body || len(p.Fences) != 1 || !slices.Equal(p.Revision, before.Revision) {
			t.Errorf("%s: the page became %q", h.Name, p.Body)
		}
		if pages, err := h.Client.Pages(context.Background()); err != nil || len(pages) != 1 {
			t.Errorf("%s: %d pages", h.Name, len(pages))
		}
	}
}

// TestRoute01OutputPutIntoAPage: who pipes output into a page is a pipe, and
// what the fence of another wrote is still theirs.
func TestRoute01OutputPutIntoAPage(t *testing.T) {
	_, laptop, _ := paired(t, map[string]string{"Printer": lua("return '```lua\\nreturn 1\\n```\\n'")})
	run := laptop.Runs("Printer", 1)
	laptop.Pipes("Out", run.Result.Output)
	laptop.Stands("Out", 1, "device:phone import:stdin")
	laptop.Decides("Out", 1, "strict")
}

// TestRoute12WhatIsShownIsWhatIsParsed: in quotes, lists and tabs, with
// characters that are not seen, the code that is shown is the code that runs.
func TestRoute12WhatIsShownIsWhatIsParsed(t *testing.T) {
	body := "> 1. ```lua\n>    return 'quoted'\n>    ```\n\n- \t```lua\n\t  return 'tab'\n\t  ```\n\n~~~~lua\nreturn '```'\n~~~~\n\n" +
		"```lua {wants=\"clock\"}\nlocal admin = false --[[\u202e]] return 'hidden\u200b'\n```\n"
	_, laptop, _ := paired(t, map[string]string{"Shapes": body})
	for n, want := range []string{"quoted\n", "tab\n", "```\n"} {
		f := laptop.Fence("Shapes", n+1)
		if strings.Contains(f.Code, ">") || !strings.Contains(f.Code, strings.TrimSpace(want)) {
			t.Errorf("the code shown is %q", f.Code)
		}
		if run := laptop.Runs("Shapes", n+1); run.Result.Output != want || run.Result.Closure != f.Hash {
			t.Errorf("%q gives %+v", f.Code, run.Result)
		}
	}
	p := laptop.Proposes(laptop.Fence("Shapes", 4), notebook.ScopeOnce)
	if !slices.ContainsFunc(p.Notes, func(s string) bool { return strings.Contains(s, "invisible") }) {
		t.Errorf("the notes are %q", p.Notes)
	}
	if shown := notebook.Escape(p.Closure[0].Code); strings.ContainsAny(shown, "\u202e\u200b") || !strings.Contains(shown, `\u{202e}`) {
		t.Errorf("it is shown as %q", shown)
	}
}

// TestRoute13ForeignInputs: a local fence that reads a page in which others
// write is not the person's alone.
func TestRoute13ForeignInputs(t *testing.T) {
	w, laptop, phone := paired(t, nil)
	laptop.Types("Eval", "```lua {wants=\"page\"}\nreturn #page.text\n```\n\n```lua {wants=\"clock\"}\nreturn clock.year\n```\n\n```lua {args=\"cmd=\"}\nreturn page == nil\n```\n")
	w.Settle()
	laptop.Runs("Eval", 1)
	if run := laptop.Runs("Eval", 3); run.Result.Output != "false\n" {
		t.Errorf("%+v", run.Result)
	}
	phone.Types("Eval", laptop.Body("Eval")+"\nos.execute('from the phone')\n")
	w.Settle()
	for n := range 3 {
		laptop.Stands("Eval", n+1, "local") // nobody wrote in the fences
	}
	laptop.Refused("Eval", 1, notebook.CodeRefused, "which holds text by device:phone")
	laptop.Runs("Eval", 2) // what does not read it runs as before
	if run := laptop.Runs("Eval", 3); run.Result.Output != "true\n" || run.Result.Rung != notebook.Granted {
		t.Errorf("what did not ask for the page got it: %+v", run.Result)
	}
	p := laptop.Proposes(laptop.Fence("Eval", 1), notebook.ScopeContent)
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "text by device:phone") || !strings.Contains(notes, "reads its page") {
		t.Errorf("the notes are %q", p.Notes)
	}
	if _, err := laptop.TryApprove(p); err != nil {
		t.Fatal(err)
	}
	laptop.Runs("Eval", 1)

	// Args of an agent make nothing of the person's more than strict.
	scribe := w.Device("laptop").Agent("scribe")
	run, err := scribe.Client.Run(context.Background(), notebook.RunRequest{FenceRef: daemontest.Ref(scribe.Fence("Eval", 3)), Args: map[string]string{"cmd": "rm"}})
	if err != nil || run.Result.Rung != notebook.Strict {
		t.Errorf("%+v %v", run, err)
	}
}

// TestARunThatDoesNotBeginIsTold: one for which there is no room, after it was
// allowed and recorded, is refused for everybody who heard that it began; and who
// had allowed it once is told that this is used up.
func TestARunThatDoesNotBeginIsTold(t *testing.T) {
	w, _, _ := paired(t, map[string]string{"Busy": endless, "Waits": endless, "Theirs": strings.Replace(sums, "```lua", "```lua {wants=\"clock\"}", 1)})
	d := w.Device("laptop")
	d.Stops()
	d.Exec = exec.Config{Slots: 1, Queue: 2, Spares: -1}
	d.Starts()
	laptop, ctx := w.As("laptop"), context.Background()
	policy(t, laptop, "[limits]\ntime = \"1m\"\n")
	approved := laptop.Approves("Theirs", 1, notebook.ScopeOnce)
	told := laptop.Watches()
	busy, busyEnded := begins(t, w, ctx, laptop, "Busy")
	w.Eventually("it has the slot", func() bool {
		said, _ := outputOf(told.All(), busy)
		return said == "begun\n"
	})
	// Of two there is room for one to wait.
	waiters := make(chan ending, 2)
	waiting := laptop.Fence("Waits", 1)
	for range 2 {
		go func() {
			run, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(waiting)})
			waiters <- ending{run, err}
		}()
	}
	daemontest.Refusal(t, within(t, waiters).err, notebook.CodeExhausted, "1 fence waits")

	_, err := laptop.TryRun(laptop.Fence("Theirs", 1))
	daemontest.Refusal(t, err, notebook.CodeExhausted, "1 fence waits to run already, no more are taken")
	if want := fmt.Sprintf("approval %d was for once and is used up", approved.ID); !strings.Contains(hint(err), want) || !strings.Contains(hint(err), "cancel one") {
		t.Errorf("what to do next: %s", hint(err))
	}
	told.Has("run", "#"+laptop.Fence("Theirs", 1).ID.Short()+" was refused: 1 fence waits to run already")
	for _, e := range told.All() {
		if e.Kind == "run" && strings.Contains(e.Text, "was refused") && (e.Run == nil || e.Run.State != "refused" || e.Run.Number == 0) {
			t.Errorf("it is told as %+v", e.Run)
		}
	}
	if last := laptop.Fence("Theirs", 1).Last; last == nil || last.State != "refused" || !strings.Contains(last.Reason, "1 fence waits") {
		t.Errorf("the fence's last run is %+v", last)
	}
	laptop.Refused("Theirs", 1, notebook.CodeRefused, "runs strict only")

	// What rests on no such approval says nothing of one: the control.
	_, err = laptop.TryRun(laptop.Fence("Waits", 1))
	daemontest.Refusal(t, err, notebook.CodeExhausted, "1 fence waits")
	if strings.Contains(hint(err), "approval") {
		t.Errorf("what to do next: %s", hint(err))
	}
	runs, err := laptop.Client.Runs(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs { // the one that waits first: the newest
		if run.State != "running" {
			continue
		}
		if _, err := laptop.Client.Cancel(ctx, run.Number); err != nil {
			t.Fatal(err)
		}
	}
	within(t, busyEnded)
	within(t, waiters)
}
