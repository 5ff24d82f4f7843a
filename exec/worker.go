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

// workerName is argv[0] of a worker. Its other arguments are the [kind] that it
// is started for.
const workerName = "noted-fence-worker"

// The descriptors of a worker, and what it exits with when it ends by itself.
const (
	fdRequest = 0 // one request frame, then end of file
	fdOutput  = 1 // what the fence writes; 2 is /dev/null
	fdFrames  = 3 // the ready frame and the outcome, written by worker code only
	fdRoot    = 4 // an empty directory to lock itself in; closed before it is ready
	fdEngine  = 5 // and the two after it: the engine file, see engineFiles; closed where there is none
	fdGrants  = 8 // and those after it: what a granted run has, see profile

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
	switch os.Args[0] {
	case workerName:
	case compilerName:
		os.Exit(compile())
	default:
		if be, ok := roles[os.Args[0]]; ok {
			os.Exit(be(os.Args[1:]))
		}
		return
	}
	os.Clearenv()
	runtime.GOMAXPROCS(1) // getting ready is quicker alone; see also workerThreads
	os.Exit(work(os.Args[1:]))
}

func work(args []string) int {
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	kind, err := readKind(args)
	if err != nil {
		return exitProtocol
	}
	closeInherited(len(args) - kindArgs)
	granted, err := inherit(kind.limits, args[kindArgs:])
	if err != nil {
		return exitProtocol
	}
	language, known := languageOf(kind.language)
	if !known {
		return exitProtocol
	}
	granted.pipes = language.pipes
	requests, frames := os.NewFile(fdRequest, "request"), os.NewFile(fdFrames, "frames")
	// The timer also makes the runtime open its poller, which it may not do later.
	late := time.AfterFunc(time.Hour, func() { os.Exit(exitLate) })

	if language.warm != nil {
		language.warm()
	}
	engine, err := language.open(&workspace{out: os.NewFile(fdOutput, "output"), limits: kind.limits, dirs: granted.dirs, programs: granted.programs, net: granted.net})
	if err != nil {
		return exitProtocol
	}
	r := seal(kind.limits, granted, engine)
	runtime.GOMAXPROCS(workerThreads)
	if _, err := frames.Write(r.encode()); err != nil {
		return exitProtocol
	}
	if r.missing != "" {
		return exitNoJail
	}
	b, err := readFrame(requests, kind.maxRequest())
	if err != nil {
		return exitProtocol
	}
	late.Reset(2*kind.limits.Time + time.Second)
	req, err := decodeRequest(b)
	if err != nil {
		return exitProtocol
	}
	o := engine.run(&req)
	if o.exhausted {
		return exitExhausted
	}
	if _, err := frames.Write(o.encode()); err != nil {
		return exitProtocol
	}
	select {} // the parent ends every worker by SIGKILL
}

// source is the most that source and args may have together. That of a module is
// no text that a parser reads, and has a bound of its own.
func (k kind) source() int {
	if k.language == "wasm" {
		return max(k.limits.Source, notebook.MaxModuleText)
	}
	return k.limits.Source
}

// maxRequest is the most that a request frame may hold: the source and args, the
// inputs, and the lengths of all of them.
func (k kind) maxRequest() int { return k.source() + maxInputs + maxFields*32 }

// kindArgs is how many arguments of a worker are its [kind]; what it is granted follows.
const kindArgs = 5

// args are the arguments of a worker for k.
func (k kind) args() []string {
	l := k.limits
	return []string{
		k.language, strconv.FormatInt(int64(l.Time), 10), strconv.FormatInt(l.Memory, 10),
		strconv.Itoa(l.Output), strconv.Itoa(l.Source),
	}
}

// readKind reads what [kind.args] writes.
func readKind(args []string) (kind, error) {
	if len(args) < kindArgs {
		return kind{}, fmt.Errorf("%d arguments", len(args))
	}
	var n [kindArgs - 1]int64
	for i, a := range args[1:kindArgs] {
		v, err := strconv.ParseInt(a, 10, 64)
		if err != nil || v <= 0 {
			return kind{}, fmt.Errorf("argument %q", a)
		}
		n[i] = v
	}
	return kind{args[0], notebook.Limits{Time: time.Duration(n[0]), Memory: n[1], Output: int(n[2]), Source: int(n[3])}}, nil
}
