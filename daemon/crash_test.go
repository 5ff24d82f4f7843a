package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/exec"
	"noted/notebook"
	"noted/trust"
)

// victimVariable names the home that this program serves as another process, to be killed.
const victimVariable = "NOTED_TEST_VICTIM"

// beVictim serves a home, types into it as fast as it can and says on stdout
// what was acknowledged. In the middle it runs a fence that never ends.
func beVictim(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{}, Exec: exec.Config{Slots: 2}})
	must(err)
	go func() { must(d.Serve(context.Background())) }()
	token, err := daemon.ReadToken(home.OwnerToken())
	must(err)
	c, err := d.Open(token)
	must(err)
	ctx := context.Background()

	go func() {
		p, err := c.Page(ctx, "Long")
		if err != nil {
			return
		}
		for _, f := range p.Fences {
			if _, err := c.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(f)}); err != nil {
				fmt.Println("run", err)
			}
		}
	}()
	pages, err := c.Pages(ctx)
	must(err)
	for n := len(pages); ; n++ {
		title := fmt.Sprint("Page ", n)
		p, err := c.NewPage(ctx, title)
		must(err)
		for line := range 4 {
			p, err = c.Append(ctx, p.ID, fmt.Sprintf("line %d of %s", line, title), "")
			must(err)
			fmt.Println("typed", n, line)
		}
		s, err := c.Status(ctx)
		must(err)
		if s.Running > 0 {
			fmt.Println("running")
		}
	}
}

// TestI12AcknowledgedSurvivesKill kills a daemon that is writing and running,
// again and again, and looks for everything that it had acknowledged.
func TestI12AcknowledgedSurvivesKill(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Pipes("Long", strings.Replace(wanting, "return", "while true do end return", 1))
	approved := laptop.Approves("Long", 1, notebook.ScopeOnce)
	w.Device("laptop").Stops()
	acknowledged := map[string]int{} // lines by title
	for round := range 6 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := osexec.Command(self)
		cmd.Env = append(os.Environ(), victimVariable+"="+laptop.Home.Data)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		wait := 10 + 7*round // acknowledged lines before the kill
		for lines.Scan() {
			var n, line int
			if _, err := fmt.Sscanf(lines.Text(), "typed %d %d", &n, &line); err == nil {
				acknowledged[fmt.Sprint("Page ", n)] = line + 1
				wait--
			} else if strings.HasPrefix(lines.Text(), "error") {
				t.Errorf("round %d: %s", round, lines.Text())
			}
			// The first time in the middle of the approved run.
			if wait <= 0 && (round > 0 || lines.Text() == "running") {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what was said before it died counts as well
			var n, line int
			if _, err := fmt.Sscanf(lines.Text(), "typed %d %d", &n, &line); err == nil {
				acknowledged[fmt.Sprint("Page ", n)] = line + 1
			}
		}
		err = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatalf("round %d: it was not killed: %v", round, err)
		}

		d := w.Device("laptop")
		d.Starts()
		laptop = d.Owner()
		for title, n := range acknowledged {
			want := ""
			for line := range n {
				want += fmt.Sprintf("line %d of %s\n", line, title)
			}
			if body := laptop.Body(title); !strings.HasPrefix(body, want) {
				t.Errorf("round %d: of %s %d lines were acknowledged, and there is %q", round, title, n, body)
			}
		}
		if a := laptop.Fence("Long", 1).Approved; len(a) != 1 || a[0].ID != approved.ID || !a[0].Spent {
			t.Errorf("round %d: the approval that was spent is %+v", round, a)
		}
		laptop.Refused("Long", 1, notebook.CodeRefused, "runs strict only")
		if ledger, err := laptop.Client.VerifyLedger(context.Background()); err != nil || ledger.Problem != "" {
			t.Errorf("round %d: %+v %v", round, ledger, err)
		}
		d.Stops()
		for err := range daemon.Check(d.Home) {
			t.Errorf("round %d: %v", round, err)
		}
		if t.Failed() {
			return
		}
	}
	if len(acknowledged) < 10 {
		t.Errorf("only %d pages were acknowledged: nothing was tested", len(acknowledged))
	}
	d := w.Device("laptop")
	d.Starts()
	runs, err := d.Owner().Client.Runs(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if first := runs[len(runs)-1]; first.State != "done" || first.Result.Verdict != notebook.Crash || !strings.Contains(first.Reason, "the daemon died while it ran") {
		t.Errorf("the run that the kill cut off is %+v", first)
	}
}

// TestOneDaemonPerHome: the second one is told who holds it.
func TestOneDaemonPerHome(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	d := w.Device("laptop")
	_, err := daemon.Open(daemon.Config{Home: d.Home, Listen: []string{}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second daemon on the same home: %v", err)
	}
	if err := daemon.Init(d.Home, daemon.InitOptions{Name: "again"}); daemontest.CodeOf(err) != notebook.CodeRefused {
		t.Errorf("a second init: %v", err)
	}
	d.Owner().Types("Page", "goes on\n")
}

// TestStepsAfterTheEnd: who still holds a client of a daemon that has stopped
// gets an answer, and soon.
func TestStepsAfterTheEnd(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Page", sums)
	f := laptop.Fence("Page", 1)
	w.Device("laptop").Stops()
	answered := make(chan error, 3)
	go func() { _, err := laptop.Client.NewPage(context.Background(), "Late"); answered <- err }()
	go func() { _, err := laptop.TryRun(f); answered <- err }()
	go func() {
		_, err := laptop.Client.AddAgent(context.Background(), "late", notebook.Presence{Typed: trust.Sentence("let late in")})
		answered <- err
	}()
	for range 3 {
		select {
		case err := <-answered:
			if err == nil {
				t.Error("something was written after the end")
			}
		case <-time.After(daemontest.Patience):
			t.Fatal("no answer")
		}
	}
}
