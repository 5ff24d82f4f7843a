package daemon

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"noted/exec"
	"noted/notebook"
)

// liveRoom is how many bytes of a run's output wait to be told before further
// ones are counted only.
const liveRoom = outputBacklog

// live tells the output of one run as it comes, where anybody watches. The fence
// never waits for it: what cannot be told at once waits, bounded, and what there
// is no room for is counted.
//
// Output that is not the person's own text is put into the record of foreign
// text before anybody sees it, so that it is known again wherever it is pasted.
// Of such a run no more is told than it may keep, which bounds the record too.
type live struct {
	d    *Daemon
	run  *notebook.RunInfo // without a result
	by   notebook.Source   // whose text the output is
	most int               // bytes that may be told

	text exec.Text // of the goroutine that calls tell, then of whoever ends it

	mu      sync.Mutex // guards the rest
	waiting strings.Builder
	dropped int64 // bytes before what waits
	after   int64 // bytes after it, for which there was no room
	told    int   // bytes, and those that wait
	busy    bool  // a goroutine tells what waits
	over    bool  // the run has ended; what waits is told by whoever ends it

	work sync.WaitGroup // the goroutine that tells
	line string         // what the last line that was told has so far; the goroutine's, then that of whoever ends it
}

func (d *Daemon) newLive(rec *runRecord, by notebook.Source) (*live, error) {
	info, err := rec.info()
	if err != nil {
		return nil, err
	}
	l := &live{d: d, run: info, by: by, most: math.MaxInt}
	if !by.IsZero() {
		l.most = rec.Limits.Output
	}
	return l, nil
}

// tell takes a piece of the output. It does not block.
func (l *live) tell(p []byte) {
	if !l.d.events.heard() {
		l.text = exec.Text{}
		return
	}
	l.put(l.text.Add(p))
}

func (l *live) put(text string) {
	if text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.after > 0 || l.waiting.Len()+len(text) > liveRoom || l.told > l.most-len(text) {
		l.after += int64(len(text))
	} else {
		l.waiting.WriteString(text)
		l.told += len(text)
	}
	if !l.busy && !l.over && l.waiting.Len() > 0 {
		l.busy = true
		l.work.Go(l.tellOn)
	}
}

// tellOn tells what waits, until nothing does.
func (l *live) tellOn() {
	for {
		l.mu.Lock()
		if l.over || l.waiting.Len() == 0 {
			l.busy = false
			l.mu.Unlock()
			return
		}
		e := l.event()
		l.mu.Unlock()
		if !l.by.IsZero() {
			err := l.d.step(func(b *batch) error {
				l.learn(b, &e)
				return nil
			})
			if err != nil {
				return // the daemon is broken: nobody may see what is not in the record
			}
		}
		l.d.events.tell(e)
	}
}

// event takes what waits. It is called under l.mu.
func (l *live) event() notebook.Event {
	e := notebook.Event{
		Kind: eventOutput, Page: l.run.Page, Title: l.run.Title, Fence: l.run.Fence, Run: l.run,
		Output: l.waiting.String(), Dropped: l.dropped,
	}
	l.waiting.Reset()
	l.dropped, l.after = l.after, 0
	return e
}

// learn puts what is about to be told into the record of foreign text, with the
// beginning of its first line.
func (l *live) learn(b *batch, e *notebook.Event) {
	if l.by.IsZero() || e.Output == "" {
		return
	}
	text := e.Output
	if e.Dropped == 0 {
		text = l.line + text
	}
	l.d.learnText(b, l.by, l.d.signer.Device(), text)
	l.line = text[strings.LastIndexByte(text, '\n')+1:]
}

// end takes what is left to tell once the run is over. The caller has it learned
// with the outcome, and tells it then.
func (l *live) end() (rest []notebook.Event) {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.work.Wait()
	l.put(l.text.End())
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waiting.Len() > 0 || l.dropped > 0 || l.after > 0 {
		rest = append(rest, l.event())
	}
	return rest
}

// runLive runs a fence and gives each what it writes, as it comes.
func (d *Daemon) runLive(ctx context.Context, c caller, req notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error) {
	var number atomic.Uint64 // 0 until the run begins, and no run's
	w := d.events.join(c.label(), func(e *notebook.Event) bool {
		return e.Run != nil && e.Run.State == stateRunning && e.Run.Number == number.Load()
	})
	defer d.events.leave(w)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type answer struct {
		run *notebook.RunInfo
		err error
	}
	ended := make(chan answer, 1)
	go func() {
		run, err := d.run(ctx, c, order{RunRequest: req, number: &number})
		ended <- answer{run, err}
	}()
	var broken error // of each, which then hears nothing more
	hear := func() {
		for e, found := d.events.next(w); found; e, found = d.events.next(w) {
			if broken == nil {
				if broken = each(notebook.RunOutput{Number: number.Load(), Text: e.Output, Dropped: e.Dropped}); broken != nil {
					cancel(errClientGone)
				}
			}
		}
	}
	for {
		select {
		case <-w.ready:
			hear()
		case a := <-ended:
			hear()
			if broken != nil {
				return nil, broken
			}
			return a.run, a.err
		}
	}
}
