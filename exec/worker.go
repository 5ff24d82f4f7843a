package exec

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"noted/notebook"
)

// workerName is argv[0] of a worker. Its other arguments are the limits for
// which its jail is made.
const workerName = "noted-fence-worker"

// The descriptors of a worker, and what it exits with when it ends by itself.
const (
	fdRequest = 0 // one request frame, then end of file
	fdOutput  = 1 // what the fence writes; 2 is /dev/null
	fdFrames  = 3 // the ready frame and the outcome, written by worker code only
	fdRoot    = 4 // an empty directory to lock itself in; closed before it is ready

	exitNoJail   = 70 // a mandatory layer is missing; the ready frame says which
	exitProtocol = 71 // the parent is gone or talks nonsense
	exitLate     = 72 // still running at twice its deadline: the parent is stalled
)

// workerThreads bounds the processors of a running fence. Setting such a bound
// at all, first of everything, also keeps the Go runtime from reading the
// cgroup's limits again and again, which the jail answers with death.
const workerThreads = 2

// maxStack bounds the Go stack of a worker, in bytes: deep recursion in the
// engine ends here instead of eating the whole memory limit.
const maxStack = 64 << 20

var dispatched atomic.Bool

// Worker turns this process into a fence worker if that is what it was started
// as, and then never returns. It must be the first statement of main and of
// TestMain: without it a worker would run the whole program again, and
// [New] refuses in a process that did not call it.
func Worker() {
	dispatched.Store(true)
	if os.Args[0] != workerName {
		return
	}
	runtime.GOMAXPROCS(1) // getting ready is quicker alone; see also workerThreads
	os.Exit(work(os.Args[1:]))
}

func work(args []string) int {
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	limits, err := readLimits(args)
	if err != nil {
		return exitProtocol
	}
	closeInherited()
	requests, frames := os.NewFile(fdRequest, "request"), os.NewFile(fdFrames, "frames")
	// The timer also makes the runtime open its poller, which it may not do later.
	late := time.AfterFunc(time.Hour, func() { os.Exit(exitLate) })

	warm()
	engine := newLua(os.NewFile(fdOutput, "output"))
	r := seal(limits)
	runtime.GOMAXPROCS(workerThreads)
	if _, err := frames.Write(r.encode()); err != nil {
		return exitProtocol
	}
	if r.missing != "" {
		return exitNoJail
	}
	b, err := readFrame(requests, maxRequest(limits))
	if err != nil {
		return exitProtocol
	}
	late.Reset(2*limits.Time + time.Second)
	req, err := decodeRequest(b)
	if err != nil {
		return exitProtocol
	}
	o := engine.run(&req)
	if _, err := frames.Write(o.encode()); err != nil {
		return exitProtocol
	}
	select {} // the parent ends every worker by SIGKILL
}

// warm touches what a fence is going to touch, in a state that is thrown away,
// so that the pages of the program are there when a fence comes.
func warm() {
	e := newLua(discard{})
	e.run(&request{source: "local t = {} for i = 1, 3 do t[i] = ('%d'):format(i) end return pcall(error, table.concat(t, ','))"})
	e.state.Close()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// maxRequest is the most that a request frame may hold: the source and args of
// the limits, the inputs, and the lengths of all of them.
func maxRequest(l notebook.Limits) int { return l.Source + maxInputs + maxFields*32 }

func writeLimits(l notebook.Limits) []string {
	return []string{
		strconv.FormatInt(int64(l.Time), 10), strconv.FormatInt(l.Memory, 10),
		strconv.Itoa(l.Output), strconv.Itoa(l.Source),
	}
}

func readLimits(args []string) (notebook.Limits, error) {
	if len(args) != 4 {
		return notebook.Limits{}, fmt.Errorf("%d arguments", len(args))
	}
	var n [4]int64
	for i, a := range args {
		v, err := strconv.ParseInt(a, 10, 64)
		if err != nil || v <= 0 {
			return notebook.Limits{}, fmt.Errorf("argument %q", a)
		}
		n[i] = v
	}
	return notebook.Limits{Time: time.Duration(n[0]), Memory: n[1], Output: int(n[2]), Source: int(n[3])}, nil
}
