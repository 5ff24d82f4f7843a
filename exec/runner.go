package exec

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"noted/notebook"
	"noted/trust"
)

// Config says how much a [Runner] keeps ready. Its zero value is usable.
type Config struct {
	// Slots is how many fences run at once: one of them is kept for local
	// fences. 0 means one per processor, and at least two.
	Slots int
	// Queue is how many runs may wait for a slot, half of them foreign. 0 means 64.
	Queue int
	// Spares is how many workers wait ready, of about 4 MiB each. 0 means one,
	// a negative number none.
	Spares int
	// Limits are those that the first spares, for Lua, are made for; later ones are
	// made for those of the last run. The zero value means [notebook.DefaultLimits].
	Limits notebook.Limits
	// Engines are the engine files of this device; nil means none. The Runner
	// uses them until it is closed.
	Engines *Engines
	// Network is how hosts are reached that a run was granted.
	Network Network
}

// refillAfter is how long a run may last before its spare is replaced while it
// is still running: starting a worker takes the same processors.
const refillAfter = 20 * time.Millisecond

// refillPause is how long after a run its spare is replaced: starting a worker
// takes the processors for some 15 ms, and whoever waits for the answer waits for
// the disk and the socket, which takes twice as long beside a start.
const refillPause = 5 * time.Millisecond

// refillEngineAfter is how long nothing must have run before the spare of an engine
// that is a file is replaced: whoever waits for an answer, or for the next one, comes first.
const refillEngineAfter = 300 * time.Millisecond

// idleEngine is how long a spare of an engine that is a file waits: it holds tens
// of megabytes, and a cold start takes a fraction of a second.
const idleEngine = 2 * time.Minute

// Runner runs grants. Its methods may be called from any goroutine.
type Runner struct {
	gate    *gate
	spawner *spawner // nil where there is no jail
	network Network
	layers  []string
	strict  error // why nothing runs here; nil if it does
	number  int   // of spares of each kind
	engines *Engines
	idle    time.Duration // how long a spare with an engine file waits to be used
	calm    *time.Timer   // see refillEngineAfter

	ctx   context.Context // ends with Close
	close context.CancelCauseFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	wanted map[string]notebook.Limits // by language, those of its last run
	spares []*spare
}

// spare is a worker that is ready, or about to be.
type spare struct {
	kind   kind
	done   chan struct{} // closed when worker and err are set
	worker *worker
	err    error
}

var (
	errUncalled = errors.New("exec.Worker was not called in this process: it must be the first statement of main and of TestMain")
	// ErrStopped is of a run that was stopped before it began.
	ErrStopped = errors.New("the run was stopped while it waited for its turn")

	errClosed = notebook.Errorf(notebook.CodeUnavailable, "the daemon is stopping, nothing is run any more")
)

// New opens the jail and starts the first spare. Where the jail cannot be had
// it succeeds and every run is refused, see [Runner.Strict]. It fails if
// [Worker] was not called in this process.
func New(c Config) (*Runner, error) { return openRunner(c, openJail) }

func openRunner(c Config, open func(kind) (*spawner, *worker, error)) (*Runner, error) {
	if !dispatched.Load() {
		return nil, errUncalled
	}
	if c.Slots <= 0 {
		c.Slots = max(2, runtime.NumCPU())
	}
	if c.Queue <= 0 {
		c.Queue = 64
	}
	if c.Spares == 0 {
		c.Spares = 1
	}
	if c.Limits == (notebook.Limits{}) {
		c.Limits = notebook.DefaultLimits
	}
	r := &Runner{gate: newGate(c.Slots, c.Queue), number: max(0, c.Spares), network: c.Network, engines: c.Engines, idle: idleEngine}
	r.ctx, r.close = context.WithCancelCause(context.Background())
	r.calm = time.AfterFunc(time.Hour, r.refillAll)
	r.calm.Stop()
	first := kind{luaLanguage.name, c.Limits}
	r.wanted = map[string]notebook.Limits{first.language: first.limits}
	s, w, err := open(first)
	if err != nil {
		r.strict = refusal(err)
		return r, nil
	}
	r.spawner, r.layers = s, w.layers
	ready := &spare{kind: first, done: make(chan struct{}), worker: w}
	close(ready.done)
	r.spares = append(r.spares, ready)
	r.refill()
	return r, nil
}

// refusal says which layer is missing.
func refusal(err error) error {
	var known *notebook.Error
	if errors.As(err, &known) {
		return err
	}
	var m *missingLayer
	if !errors.As(err, &m) {
		return notebook.Errorf(notebook.CodeUnavailable, "no fence can run here: a jailed worker cannot be started: %v", err).
			With("what is missing must be allowed by this machine; nothing runs without a jail")
	}
	switch m.layer {
	case layerEngine:
		return notebook.Errorf(notebook.CodeUnavailable, "the engine of this language does not start: %s", m.reason).
			With("noted engine list tells what is here")
	case layerMemory:
		return notebook.Errorf(notebook.CodeUnavailable, "no fence of this language can run within its limits: %s", m.reason).
			With("raise limits.memory in policy.toml")
	}
	way := cmp.Or(m.way, "strict needs rlimits and seccomp of the kernel; a container may forbid them")
	return notebook.Errorf(notebook.CodeUnavailable, "no fence can run here: the jail's layer %s is missing: %s", m.layer, m.reason).With("%s", way)
}

// Layers names the layers of the jail that hold here, sorted.
func (r *Runner) Layers() []string { return slices.Clone(r.layers) }

// Strict is nil if fences can run here, and otherwise names the missing layer.
func (r *Runner) Strict() error { return r.strict }

// Run runs g once, and returns when the worker that ran it is dead. The error
// is for runs that did not start: g is not a grant, nothing can run here, too
// much is running already, ctx ended while it waited. A run that started always
// has a result; if ctx ends then, the run is killed and its verdict is cancelled.
func (r *Runner) Run(ctx context.Context, g trust.Grant) (notebook.Result, error) {
	return r.Follow(ctx, g, nil)
}

// Follow is [Runner.Run] that also tells the output as it comes: all of it, also
// what the result does not keep, up to the flood for which a run is killed. [Text]
// makes text of it. Tell is called by one goroutine at a time, not any more once
// Follow has returned, and does not keep what it is given. It must not block: what
// it waits for, the fence's output waits for.
func (r *Runner) Follow(ctx context.Context, g trust.Grant, tell func(p []byte)) (notebook.Result, error) {
	j, err := newJob(g)
	if err != nil {
		return notebook.Result{}, err
	}
	j.tell = tell
	res, _, err := r.run(ctx, j)
	return res, err
}

// run is [Runner.Run] of what a grant says; it also tells the worker's pid.
func (r *Runner) run(ctx context.Context, j job) (notebook.Result, int, error) {
	if err := r.begin(); err != nil {
		return notebook.Result{}, 0, err
	}
	defer r.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(errClosed) })()

	if err := r.gate.enter(ctx, j.local); err != nil {
		return notebook.Result{}, 0, err
	}
	defer r.gate.leave(j.local)
	start := time.Now()
	w, done, err := r.open(ctx, &j)
	if err != nil && ctx.Err() != nil { // an engine may take long to compile
		return notebook.Result{}, 0, stopped(ctx)
	}
	if err != nil {
		return notebook.Result{}, 0, err
	}
	done = sync.OnceFunc(done)
	defer done()
	r.calm.Stop()
	later := time.AfterFunc(refillAfter, r.refill)
	w.tell = j.tell
	out := w.run(ctx, &j.request)
	took := time.Since(start)
	r.work.Go(w.release)
	if later.Stop() {
		later.Reset(refillPause)
	}
	r.calm.Reset(refillEngineAfter)
	done()

	text, head, dropped := out.output.text()
	res := notebook.Result{
		Fence: j.fence, Closure: j.closure, Inputs: j.request.digest(j.grants.pins...), Rung: j.rung,
		Verdict: out.verdict, Output: text, Head: head, Dropped: dropped,
		Started: start.UnixMilli(), Took: took.Microseconds(), Peak: out.peak,
		Limits: j.limits, Layers: slices.Clone(out.layers),
		Sent: j.grants.sent, Received: j.grants.received,
	}
	if out.verdict == notebook.Failed {
		res.Error = out.outcome.text
	}
	return res, out.pid, nil
}

// open returns a worker for a job. done is called when it is dead.
func (r *Runner) open(ctx context.Context, j *job) (w *worker, done func(), err error) {
	if j.rung == notebook.Host {
		return r.openHost(ctx, j.kind())
	}
	if !j.grants.empty() {
		if err := j.grants.beside(j.language); err != nil {
			return nil, nil, err
		}
		return r.openGranted(ctx, j.kind(), &j.grants)
	}
	if w, err = r.take(ctx, j.kind()); err != nil {
		return nil, nil, refusal(err)
	}
	return w, func() {}, nil
}

// begin counts a run, so that Close waits for it.
func (r *Runner) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if r.strict != nil {
		return r.strict
	}
	r.work.Add(1)
	return nil
}

// take returns a worker of a kind that is ready: a spare, or else a new one. A
// spare of an engine that is not here any more is none.
func (r *Runner) take(ctx context.Context, k kind) (*worker, error) {
	if _, err := r.engineFiles(ctx, k); err != nil {
		return nil, err
	}
	for {
		r.mu.Lock()
		r.wanted[k.language] = k.limits
		i := slices.IndexFunc(r.spares, func(s *spare) bool { return s.kind == k })
		if i < 0 {
			r.mu.Unlock()
			return r.start(ctx, k)
		}
		s := r.spares[i]
		r.spares = slices.Delete(r.spares, i, i+1)
		r.mu.Unlock()
		<-s.done
		if s.err == nil && s.worker.alive() {
			return s.worker, nil
		}
		s.discard()
	}
}

// start starts a worker of a kind.
func (r *Runner) start(ctx context.Context, k kind) (*worker, error) {
	files, err := r.engineFiles(ctx, k)
	if err != nil {
		return nil, err
	}
	return r.spawner.worker(k, files)
}

// engineFiles are the files that a worker of a kind needs; nil if none.
func (r *Runner) engineFiles(ctx context.Context, k kind) (*engineFiles, error) {
	l, _ := languageOf(k.language)
	if l.file == "" {
		return nil, nil
	}
	if r.engines == nil {
		return nil, notebook.Errorf(notebook.CodeUnavailable, "this process has no engine files, and %s needs one", k.language)
	}
	return r.engines.files(ctx, l.file)
}

// refill starts spares for the languages that have run here, for the limits of
// their last run, and ends those that were made for others. Those whose engine is
// a file it leaves to [Runner.refillAll].
func (r *Runner) refill() { r.fill(false) }

// refillAll is refill for every language.
func (r *Runner) refillAll() { r.fill(true) }

func (r *Runner) fill(files bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	have := map[string]int{}
	keep := r.spares[:0]
	for _, s := range r.spares {
		if s.kind.limits == r.wanted[s.kind.language] && have[s.kind.language] < r.spareNumber(s.kind.language) {
			have[s.kind.language]++
			keep = append(keep, s)
			continue
		}
		r.work.Go(func() { <-s.done; s.discard() })
	}
	clear(r.spares[len(keep):])
	r.spares = keep
	for name, limits := range r.wanted {
		if isFile(name) && !files {
			continue
		}
		for range r.spareNumber(name) - have[name] {
			s := &spare{kind: kind{name, limits}, done: make(chan struct{})}
			r.spares = append(r.spares, s)
			r.work.Go(func() {
				s.worker, s.err = r.start(r.ctx, s.kind)
				close(s.done)
				if isFile(name) {
					time.AfterFunc(r.idle, func() { r.retire(s) })
				}
			})
		}
	}
}

// isFile reports whether the engine of a language is a file of its own: then a
// worker is expensive to start, and to keep.
func isFile(language string) bool {
	l, _ := languageOf(language)
	return l.file != ""
}

// spareNumber is how many spares a language has once it has run.
func (r *Runner) spareNumber(language string) int {
	if isFile(language) {
		return min(r.number, 1)
	}
	return r.number
}

// retire ends a spare that nobody has used for long, and forgets that its
// language has ever run.
func (r *Runner) retire(s *spare) {
	r.mu.Lock()
	i := slices.Index(r.spares, s)
	if i < 0 || r.closed {
		r.mu.Unlock()
		return
	}
	r.spares = slices.Delete(r.spares, i, i+1)
	delete(r.wanted, s.kind.language)
	r.work.Add(1)
	r.mu.Unlock()
	defer r.work.Done()
	s.discard()
}

func (s *spare) discard() {
	if s.worker != nil {
		s.worker.discard()
	}
}

// Close kills what is running, which ends as cancelled, and returns when every
// worker is dead.
func (r *Runner) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	spares := r.spares
	r.spares = nil
	r.mu.Unlock()
	r.close(errClosed)
	for _, s := range spares {
		<-s.done
		s.discard()
	}
	r.work.Wait()
	if r.spawner != nil {
		r.spawner.close()
	}
	return nil
}
