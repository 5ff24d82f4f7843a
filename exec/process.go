package exec

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"noted/notebook"
)

// What stands in the place of a layer when none is missing.
const (
	layerEngine = "engine" // the engine did not come up
	layerMemory = "memory" // the limit is below what a worker of this language takes
)

// missingLayer says why nothing can run at strict here.
type missingLayer struct {
	layer, reason string
	way           string // what a person can do; empty for what is usual
}

func (m *missingLayer) Error() string { return fmt.Sprintf("%s: %s", m.layer, m.reason) }

// noJail is what is missing on a system for which there is no jail: all of it,
// and without one nothing runs.
func noJail(system string) *missingLayer {
	return &missingLayer{
		layer:  layerSeccomp,
		reason: "noted has no jail for " + system + " yet",
		way:    "run the fence on a Linux device of the notebook",
	}
}

// worker is the parent's side of a worker process: it has told which layers
// hold, and waits for its one request.
type worker struct {
	process   *os.Process
	limits    notebook.Limits
	layers    []string
	tree      bool // what it has started does not end with it
	request   *os.File
	output    *os.File
	frames    *os.File
	status    *os.File       // of the kernel's, for the peak of its memory
	namespace *os.File       // see [worker.release]; nil where it has none of its own
	inherited int64          // the parent's peak memory when it started: below it, the worker's rusage tells nothing
	tell      func(p []byte) // takes the output as it comes, see [Runner.Follow]; may be nil
}

func (w *worker) closeFiles() {
	for _, f := range []*os.File{w.request, w.output, w.frames, w.status} {
		if f != nil {
			f.Close()
		}
	}
}

// release lets go of the mount namespace of a dead worker. That takes the kernel
// some tenths of a millisecond, since it waits for every processor, and with
// the last holder: held from here it is nothing that an answer waits for.
func (w *worker) release() {
	if w.namespace != nil {
		w.namespace.Close()
	}
}

// discard ends a worker that is not going to run anything.
func (w *worker) discard() {
	_ = w.process.Kill()
	_, _ = w.process.Wait()
	w.closeFiles()
	w.release()
}

// end is what the exit status of a dead worker says.
type end struct {
	code      int   // exit status; -1 if a signal ended it
	forbidden bool  // the kernel killed it for a system call
	spent     bool  // the kernel killed it at its processor time
	peak      int64 // of its rusage, which starts at the parent's
}

// drainWithin is how long the output of a dead worker is read, if somebody else
// has the other end of the pipe.
const drainWithin = 100 * time.Millisecond

// ran is what one run of a worker came to.
type ran struct {
	verdict notebook.Verdict
	outcome outcome
	output  *output
	peak    int64
	pid     int
	layers  []string
}

// decision is a verdict that is set once: what comes later is too late.
type decision struct{ verdict atomic.Uint32 }

// set reports whether v is the verdict.
func (d *decision) set(v notebook.Verdict) bool {
	return d.verdict.CompareAndSwap(uint32(notebook.NoVerdict), uint32(v))
}

func (d *decision) get() notebook.Verdict { return notebook.Verdict(d.verdict.Load()) }

// run has the worker run one request, and returns when the worker is dead. The
// deadline starts here. Whoever first has a verdict sets it: the timer, the
// person who cancels, the reader of the output, or this function when a whole
// outcome has arrived; everything later is dropped.
func (w *worker) run(ctx context.Context, r *request) ran {
	var verdict decision
	var sampled atomic.Int64
	kill := func() {
		if p := w.peak(); p > 0 {
			sampled.Store(p)
		}
		if w.tree {
			endTree(w.process.Pid)
		}
		_ = w.process.Kill()
		_ = w.frames.SetReadDeadline(time.Now()) // whoever else has its other end says nothing that counts
	}
	stop := func(v notebook.Verdict) {
		if verdict.set(v) {
			kill()
		}
	}
	deadline := time.AfterFunc(w.limits.Time, func() { stop(notebook.Timeout) })
	defer deadline.Stop()
	uncancel := context.AfterFunc(ctx, func() { stop(notebook.Cancelled) })
	defer uncancel()

	out := newOutput(w.limits.Output)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		b := make([]byte, 32<<10)
		for {
			n, err := w.output.Read(b)
			if n > 0 && !out.write(b[:n]) {
				stop(notebook.Output)
			}
			if n > 0 && w.tell != nil {
				w.tell(b[:n])
			}
			if err != nil {
				return
			}
		}
	}()

	var o outcome
	_, err := w.request.Write(r.encode())
	_ = w.request.Close()
	if err == nil {
		o, err = w.outcome()
	}
	if err == nil {
		own := notebook.OK
		if o.failed {
			own = notebook.Failed
		}
		stop(own)
	} else {
		// No outcome: it is dead, or dying, or has stopped talking.
		kill()
	}
	state, waitErr := w.process.Wait()
	// All that it wrote is in the pipe. The end of file may be late while a new
	// worker is between its fork and its exec; the answer does not depend on it.
	_ = w.output.SetReadDeadline(time.Now().Add(drainWithin))
	<-drained
	w.closeFiles()

	res := ran{verdict: verdict.get(), outcome: o, output: out, pid: w.process.Pid, layers: w.layers, peak: sampled.Load()}
	if waitErr != nil {
		// Only possible if somebody else waited for it; then it is dead all the same.
		res.verdict = notebook.Crash
		return res
	}
	e := ending(state, w.limits)
	if e.peak > w.inherited {
		res.peak = max(res.peak, e.peak)
	}
	if res.verdict == notebook.NoVerdict {
		res.verdict = e.verdict()
	}
	return res
}

// exitRuntime is the status of the Go runtime when it cannot get memory or stack.
const exitRuntime = 2

// verdict is how a worker ended that neither finished nor was killed by us.
func (e end) verdict() notebook.Verdict {
	switch {
	case e.forbidden:
		return notebook.Violation
	case e.spent, e.code == exitLate:
		return notebook.Timeout
	case e.code == exitExhausted, e.code == exitRuntime:
		return notebook.Memory // the engine's panics are caught, so only the Go runtime exits so
	}
	return notebook.Crash
}

func (w *worker) outcome() (outcome, error) {
	b, err := readFrame(w.frames, maxOutcomeFrame)
	if err != nil {
		return outcome{}, err
	}
	return decodeOutcome(b)
}
