//go:build cgo

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/crdt"
	"noted/notebook"
)

// lethal is in a text that ends the process that is to make a change of it: the
// write models of this test program see to it.
const lethal = "☠"

func init() {
	emptyModel = func() crdt.Model { return mortal{crdt.Automerge()} }
}

type mortal struct{ crdt.Model }

func (m mortal) Splice(actor notebook.ActorID, at int64, s []notebook.Splice) ([]byte, error) {
	for _, x := range s {
		if strings.Contains(x.Insert, lethal) {
			os.Exit(3)
		}
	}
	return m.Model.Splice(actor, at, s)
}

// writing is a daemon with a page, and the process that has written it.
func writing(t *testing.T) (*Daemon, Client, *notebook.PageInfo) {
	t.Helper()
	d, person, ended := serving(t, "laptop")
	t.Cleanup(func() {
		d.Stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		for err := range Check(d.home) {
			t.Errorf("check: %v", err)
		}
	})
	p := named(t, person, "Page")
	p = types(t, person, p, "begun\n")
	return d, person, p
}

func named(t *testing.T, person Client, title string) *notebook.PageInfo {
	t.Helper()
	p, err := person.NewPage(context.Background(), title)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// types adds a line, which has to be kept.
func types(t *testing.T, person Client, p *notebook.PageInfo, line string) *notebook.PageInfo {
	t.Helper()
	p, err := person.Append(context.Background(), p.ID, line, "")
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return p
}

func body(t *testing.T, person Client, title string) string {
	t.Helper()
	p, err := person.Page(context.Background(), title)
	if err != nil {
		t.Fatal(err)
	}
	return p.Body
}

// modelPID is the process that holds the write models, 0 for none.
func (d *Daemon) modelPID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.models.process == nil {
		return 0
	}
	return d.models.process.process.Pid
}

// TestKilledWhileItWrites kills the process again and again in a burst of edits:
// all of them are kept, in their order, and nobody sees an error.
func TestKilledWhileItWrites(t *testing.T) {
	d, person, p := writing(t)
	stop, killed := make(chan struct{}), make(chan map[int]bool)
	go func() {
		pids := map[int]bool{}
		for {
			select {
			case <-stop:
				killed <- pids
				return
			case <-time.After(60 * time.Millisecond):
				if pid := d.modelPID(); pid != 0 && !pids[pid] {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					pids[pid] = true
				}
			}
		}
	}()
	want := "begun\n"
	for n := 0; n < 400; n++ {
		line := fmt.Sprintf("line %d\n", n)
		p = types(t, person, p, line)
		want += line
	}
	close(stop)
	if n := len(<-killed); n < 3 {
		t.Errorf("it was killed %d times: nothing was tested", n)
	}
	types(t, person, p, "after\n")
	if got := body(t, person, "Page"); got != want+"after\n" {
		t.Errorf("the page reads %q", got)
	}
}

// TestAModelProcessThatHangs is replaced when its answer is late.
func TestAModelProcessThatHangs(t *testing.T) {
	d, person, p := writing(t)
	d.mu.Lock()
	d.models.process.patience = 200 * time.Millisecond // the next one has the daemon's
	d.mu.Unlock()
	pid := d.modelPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := person.Append(context.Background(), p.ID, "in spite of it", "")
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the edit waits for ever")
	}
	if got := body(t, person, "Page"); got != "begun\nin spite of it\n" {
		t.Errorf("the page reads %q", got)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process that hung is still there: %v", err)
	}
}

// TestAPageThatKillsItsProcess is quarantined alone: it stays readable, and all
// others are written.
func TestAPageThatKillsItsProcess(t *testing.T) {
	d, person, p := writing(t)
	other := named(t, person, "Other")
	started := d.models.started
	for range 2 {
		_, err := person.Append(context.Background(), p.ID, "poison "+lethal, "")
		var e *notebook.Error
		if !errors.As(err, &e) || e.Code != notebook.CodeFailed || !strings.Contains(e.Message, "died of it again and again") || e.Hint == "" {
			t.Fatalf("%v", err)
		}
	}
	if n := d.models.started - started; n != modelStrikes {
		t.Errorf("%d processes were started for it", n)
	}
	if _, err := person.Append(context.Background(), p.ID, "harmless", ""); err == nil {
		t.Error("a quarantined page was written")
	}
	if got := body(t, person, "Page"); got != "begun\n" {
		t.Errorf("the page reads %q", got)
	}
	types(t, person, other, "goes on\n")
	if got := body(t, person, "Other"); got != "goes on\n" {
		t.Errorf("the other page reads %q", got)
	}
}

// TestReplacedWithinAStep: what was written in a step that is not on the disk
// yet is there for the next process, and so is what came from elsewhere.
func TestReplacedWithinAStep(t *testing.T) {
	d, person, p := writing(t)
	err := d.step(func(b *batch) error {
		page, err := d.livePage(p.ID)
		if err != nil {
			return err
		}
		for _, word := range []string{"one ", "two ", "three "} {
			if err := d.edit(b, typed, page, page.shadow.Revision(), []notebook.Splice{{At: page.shadow.Len(), Insert: word}}); err != nil {
				return err
			}
			d.endModels()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	types(t, person, p, "four\n")
	if got := body(t, person, "Page"); got != "begun\none two three \nfour\n" {
		t.Errorf("the page reads %q", got)
	}
}

// open counts the descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestNothingIsLeftOfReplacedProcesses replaces the process a hundred times.
func TestNothingIsLeftOfReplacedProcesses(t *testing.T) {
	d, person, p := writing(t)
	descriptors, pids := func() int { return descriptors(t) }, map[int]bool{}
	before := descriptors()
	for n := range 100 {
		pids[d.modelPID()] = true
		d.mu.Lock()
		d.endModels()
		d.mu.Unlock()
		p = types(t, person, p, fmt.Sprint(n))
	}
	if after := descriptors(); after > before+2 { // the store's and the network's own come and go
		t.Errorf("%d descriptors became %d", before, after)
	}
	if len(pids) != 100 {
		t.Errorf("%d processes were used", len(pids))
	}
	for pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the process %d is still there: %v", pid, err)
		}
	}
}

// TestModelsAreReplacedWhenTheyHoldTooMuch writes more pages than one process may hold.
func TestModelsAreReplacedWhenTheyHoldTooMuch(t *testing.T) {
	d, person, first := writing(t)
	started := d.models.started
	text := strings.Repeat("a line of text that is not short\n", 62*8)
	for n := range 20 {
		types(t, person, named(t, person, fmt.Sprint("Page ", n)), text)
		d.mu.Lock()
		if now := d.models.process.resident(); now > 2*modelEnough {
			t.Errorf("the process holds %d MiB", now>>20)
		}
		d.mu.Unlock()
	}
	if n := d.models.started - started; n < 1 || n > 10 {
		t.Errorf("it was replaced %d times", n)
	}
	types(t, person, first, "still written\n")
}

// TestOnePageThatIsLarge does not make the process be replaced at every edit.
func TestOnePageThatIsLarge(t *testing.T) {
	d, person, p := writing(t)
	p = types(t, person, p, strings.Repeat("a line of text that is not short\n", 200_000/33))
	p = types(t, person, p, "the next edit")
	d.mu.Lock()
	if now := d.models.process.resident(); now < modelEnough {
		t.Errorf("the process holds %d MiB: nothing is tested", now>>20)
	}
	started := d.models.started
	d.mu.Unlock()
	for range 3 * modelLook {
		p = types(t, person, p, "x")
	}
	if n := d.models.started - started; n > 1 {
		t.Errorf("it was replaced %d times", n)
	}
}

// TestIdleModelsEnd: a process that nobody needs does not stay.
func TestIdleModelsEnd(t *testing.T) {
	d, person, p := writing(t)
	pid := d.modelPID()
	d.endIdleModels()
	if d.modelPID() != pid {
		t.Fatal("a process was ended that was used just now")
	}
	d.mu.Lock()
	d.models.used = d.models.used.Add(-modelIdle)
	d.mu.Unlock()
	d.endIdleModels()
	if d.modelPID() != 0 {
		t.Fatal("the process is still there")
	}
	types(t, person, p, "again\n")
}
