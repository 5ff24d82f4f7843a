package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"noted/notebook"
)

// belongings are what a process could leak.
type belongings struct{ goroutines, threads, files, children int }

func count() belongings {
	fds, _ := os.ReadDir("/proc/self/fd")
	threads, _ := os.ReadDir("/proc/self/task")
	return belongings{runtime.NumGoroutine(), len(threads), len(fds), len(children(os.Getpid()))}
}

// sparesOf is how many workers wait ready, or are being started.
func sparesOf(r *Runner) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.spares)
}

// moreThreads is how many more a Go program may have come to keep: its runtime
// ends none of those that it started for calls that blocked.
const moreThreads = 2

// settle waits until no more is held than before.
func settle(t *testing.T, when string, before belongings) {
	t.Helper()
	var now belongings
	for range 200 {
		now = count()
		if now.goroutines <= before.goroutines && now.files <= before.files && now.children <= before.children && now.threads <= before.threads+moreThreads {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%s: %+v, before %+v\n%s", when, now, before, stacks[:runtime.Stack(stacks, true)])
}

// endless is a fence of a language that never ends.
func endless(name string) string { return conformance[name].to[doesStop]["an endless loop"].source }

// TestCases26And27NothingIsLeftOver: after twenty deadlines in a row, after two
// hundred fences at once of which most are refused, and after a stop in the middle
// of it everything is as before; in every language.
func TestCases26And27NothingIsLeftOver(t *testing.T) {
	for _, l := range programs() {
		t.Run(l.name, func(t *testing.T) { nothingIsLeftOver(t, l.name) })
	}
}

func nothingIsLeftOver(t *testing.T, language string) {
	honest := strictJob(conformance[language].limits, conformance[language].honest)
	honest.language, honest.limits.Time = language, quick.Time
	first := newRunner(t, Config{Limits: quick}) // what is opened once is open then
	runJob(t, first, honest)
	first.Close()
	before := count()
	l := conformance[language].limits
	l.Time, l.Output = 100*time.Millisecond, 1<<10
	const slots = 4
	rows, queue := 20, 20
	if language != luaLanguage.name { // whose workers are ready sooner than any other's
		rows, queue = 5, 4
	}
	if isFile(language) {
		rows, queue = 3, 2
	}
	r := newRunner(t, Config{Limits: l, Slots: slots, Queue: queue})
	spin := func(l notebook.Limits, local bool) error {
		j := strictJob(l, endless(language))
		j.local, j.language = local, language
		res, _, err := r.run(context.Background(), j)
		if err == nil && res.Verdict != notebook.Timeout {
			err = fmt.Errorf("an endless fence ends as %v %q", res.Verdict, res.Error)
		}
		return err
	}
	at := func(l notebook.Limits, n int) (answers chan error) {
		answers = make(chan error, n)
		for i := range n {
			go func() { answers <- spin(l, i%2 == 0) }()
		}
		return answers
	}
	for answers := at(l, slots+4); len(answers) < cap(answers); {
		time.Sleep(time.Millisecond) // as many threads as it ever takes
	}
	r.refillAll() // the spare of an engine comes when nothing runs
	r.rested()
	settled := count()
	settled.goroutines += 2 // the spares may just be starting
	settled.children = before.children + sparesOf(r)

	for range rows {
		if err := spin(l, true); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, fmt.Sprintf("after %d timeouts in a row", rows), settled)

	settled.threads += 6 // of some hundred that a leak would come to

	// How many workers there are while 200 want to run.
	var most atomic.Int64
	watching, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-watching:
				return
			case <-time.After(5 * time.Millisecond):
				most.Store(max(most.Load(), int64(len(children(os.Getpid()))-before.children)))
			}
		}
	}()
	var ran, refused int
	all := at(l, 200)
	for range cap(all) {
		err := <-all
		var e *notebook.Error
		switch {
		case err == nil:
			ran++
		case errors.As(err, &e) && e.Code == notebook.CodeExhausted && e.Hint != "":
			refused++
		default:
			t.Error(err)
		}
	}
	close(watching)
	<-watched
	if ran < slots+queue/2 || ran > slots+queue+60 || refused == 0 || ran+refused != cap(all) {
		t.Errorf("of 200 at once %d ran and %d were refused", ran, refused)
	}
	// Each that runs, and the spares, of which one may be on its way to each.
	if n := int(most.Load()); n > slots+2*sparesOf(r) || n < 2 {
		t.Errorf("%d workers were there at once, for %d slots and %d spares", n, slots, sparesOf(r))
	}
	settle(t, "after 200 at once", settled)
	if res := runJob(t, r, honest); res.Verdict != notebook.OK {
		t.Errorf("afterwards: %v %q", res.Verdict, res.Error)
	}

	// Close with something running and something waiting.
	l.Time = time.Minute
	last := at(l, 10)
	runningWorker(t)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for range cap(last) {
		<-last
	}
	before.threads = settled.threads
	settle(t, "after Close", before)
	if n := len(children(os.Getpid())); n != before.children {
		t.Errorf("%d children after Close", n)
	}
}

// TestCase50AThousandAtOnce: however many want to run, no more than the slots do;
// the rest wait in a queue that is bounded, or are refused.
func TestCase50AThousandAtOnce(t *testing.T) {
	const slots, queue = 3, 16
	g := newGate(slots, queue)
	var in, most, ran, refused atomic.Int64
	done := make(chan struct{})
	hold := make(chan struct{})
	const all = 1000
	for i := range all {
		go func() {
			defer func() { done <- struct{}{} }()
			if err := g.enter(t.Context(), i%3 == 0); err != nil {
				if e := (*notebook.Error)(nil); errors.As(err, &e) && e.Code == notebook.CodeExhausted {
					refused.Add(1)
				}
				return
			}
			defer g.leave(i%3 == 0)
			n := in.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-hold
			in.Add(-1)
			ran.Add(1)
		}()
	}
	for range all - slots - queue {
		<-done // refused at once, while those that are in stay in
	}
	if n := refused.Load(); n < all-slots-queue || in.Load() > slots {
		t.Errorf("%d are refused and %d are in", n, in.Load())
	}
	close(hold)
	for range slots + queue {
		<-done
	}
	if most.Load() != slots || ran.Load()+refused.Load() != all {
		t.Errorf("%d were in at once of %d slots; %d ran and %d were refused", most.Load(), slots, ran.Load(), refused.Load())
	}
	if err := g.enter(t.Context(), false); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCase27TheSlotComesBack: while every slot has a runaway and the queue is full
// the next fence is refused with what to do; when one is dead the next one runs.
func TestCase27TheSlotComesBack(t *testing.T) {
	l := quick
	r := newRunner(t, Config{Limits: l, Slots: 4, Queue: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan notebook.Verdict, 4)
	for range cap(ended) {
		go func() {
			res, _, _ := r.run(ctx, strictJob(l, "while true do end"))
			ended <- res.Verdict
		}()
	}
	for free := -1; free != 0; time.Sleep(time.Millisecond) {
		r.gate.mu.Lock()
		free = r.gate.slots
		r.gate.mu.Unlock()
	}
	foreign := strictJob(l, "return 1")
	foreign.local = false
	waits := make(chan error, 1)
	go func() { _, _, err := r.run(t.Context(), foreign); waits <- err }()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		r.gate.mu.Lock()
		waiting = len(r.gate.waiting)
		r.gate.mu.Unlock()
	}
	_, _, err := r.run(t.Context(), foreign)
	if e := (*notebook.Error)(nil); !errors.As(err, &e) || e.Code != notebook.CodeExhausted || e.Hint == "" {
		t.Errorf("one more: %v", err)
	}
	cancel()
	var verdicts []notebook.Verdict
	for range cap(ended) {
		verdicts = append(verdicts, <-ended)
	}
	if slices.ContainsFunc(verdicts, func(v notebook.Verdict) bool { return v != notebook.Cancelled }) {
		t.Errorf("the runaways ended as %v", verdicts)
	}
	select {
	case err := <-waits:
		if err != nil {
			t.Errorf("the one that waited: %v", err)
		}
	case <-time.After(casePatience):
		t.Error("the slot does not come back")
	}
	if res := runJob(t, r, foreign); res.Verdict != notebook.OK {
		t.Errorf("afterwards: %v", res.Verdict)
	}
}
