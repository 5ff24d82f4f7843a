package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
)

// running is a run whose worker may be alive.
type running struct {
	cancel   context.CancelCauseFunc
	by       string              // the client's label
	approval uint64              // that it rests on; 0: none
	devices  []notebook.DeviceID // whose text it is
	over     chan struct{}       // closed when its worker is dead and its outcome is kept
}

// stopped is why a run was stopped, for a person to read.
type stopped string

func (s stopped) Error() string { return string(s) }

const errClientGone stopped = "the client that asked for it went away"

// whyStopped is why the run of ctx was stopped. It is called under d.mu.
func (d *Daemon) whyStopped(ctx context.Context) string {
	if why, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		return string(why)
	}
	if ctx.Err() == nil || d.closing || d.alive.Err() != nil {
		return "the daemon was stopped"
	}
	return string(errClientGone)
}

// isRunning finds a run that goes on.
func (d *Daemon) isRunning(number uint64) (*running, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, found := d.running[number]
	return r, found
}

// ended forgets a run that is over.
func (d *Daemon) ended(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.running[number].over)
	delete(d.running, number)
	d.work.Done()
}

// stopping are runs that were told to stop.
type stopping struct {
	numbers []uint64 // ascending
	runs    []*running
}

// stopRuns stops the runs that it concerns. It is called under d.mu; whoever
// answers that they are stopped waits for them without it.
func (d *Daemon) stopRuns(why stopped, concerns func(*running) bool) (s stopping) {
	for number, r := range d.running {
		if concerns(r) {
			r.cancel(why)
			s.numbers = append(s.numbers, number)
			s.runs = append(s.runs, r)
		}
	}
	slices.Sort(s.numbers)
	return s
}

// wait returns when the runs are dead: the runner kills and waits within its own bound.
func (s stopping) wait() {
	for _, r := range s.runs {
		<-r.over
	}
}

// cancelRun stops a run, and answers when it is dead, with how it ended: it may
// have come to its own end first. An agent ends its own only.
func (d *Daemon) cancelRun(ctx context.Context, c caller, number uint64) (*notebook.RunInfo, error) {
	r, found := d.isRunning(number)
	switch {
	case !found:
		return nil, d.notRunning(c, number)
	case c.role == roleAgent && r.by != c.label():
		return nil, denied{c}.no("cancel another's run")
	}
	r.cancel(stopped("cancelled by " + c.label()))
	select {
	case <-r.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return d.runInfo(c, number)
}

// notRunning says of a run that there is nothing to cancel, and why as far as c
// may know.
func (d *Daemon) notRunning(c caller, number uint64) error {
	r, err := d.runInfo(c, number)
	if err != nil {
		return notebook.Errorf(notebook.CodeNotFound, "run %d is not running", number).With("noted run list shows what is")
	}
	how := "it was refused"
	if r.State == stateDone {
		how = "it ended with " + r.Result.Verdict.String()
	}
	return notebook.Errorf(notebook.CodeNotFound, "run %d is not running any more: %s", number, how).With("%s", fmt.Sprintf("noted run show %d", number))
}
