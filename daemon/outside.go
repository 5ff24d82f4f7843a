package daemon

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"noted/exec"
	"noted/notebook"
	"noted/trust"
)

const (
	// lookOutside is how long the daemon waits for what is outside of it: a disk
	// that sleeps takes a second or so to answer, one across a network that is
	// gone never does.
	lookOutside = 2 * time.Second

	// lookAll is how long it waits for all that one look asks for.
	lookAll = 5 * time.Second

	// lookThings is how many directories, programs and hosts one look at a page
	// asks for: those of a few fences with as many as one may want.
	lookThings = 4 * notebook.MaxWants
)

// outside finds out what directories, programs and hosts are on this device. One
// question is asked at a time, and none while an answer is overdue: what hangs
// holds up once, and never under d.mu.
type outside struct {
	find func(c notebook.Capability, own []string) ([]byte, error) // exec.Resolve
	own  []string                                                  // directories that no fence is given
	busy chan struct{}                                             // holds a value while a question is open
	late atomic.Bool                                               // the question that is open, or was last, is overdue
}

func newOutside(h Home) *outside {
	return &outside{find: exec.Resolve, own: []string{h.Config, h.Data, h.State, h.Cache, h.Runtime}, busy: make(chan struct{}, 1)}
}

// input is what a capability stands for now, or why it cannot be had, or is not
// known in time.
func (o *outside) input(c notebook.Capability, most time.Duration) trust.Input {
	overdue := trust.Input{Capability: c, Refusal: &trust.Refusal{
		Code: notebook.CodeUnavailable, Reason: "what is outside of noted does not answer in time",
		Hint: "look at the disk that it is on, then try again",
	}}
	if most <= 0 {
		return overdue
	}
	wait := time.NewTimer(min(lookOutside, most))
	defer wait.Stop()
	if o.late.Load() {
		select {
		case o.busy <- struct{}{}:
		default:
			return overdue
		}
	} else {
		select {
		case o.busy <- struct{}{}:
		case <-wait.C:
			return overdue
		}
	}
	o.late.Store(false)
	answer := make(chan trust.Input, 1)
	go func() {
		in := o.ask(c)
		<-o.busy // first: who has the answer may ask the next at once
		answer <- in
	}()
	select {
	case in := <-answer:
		return in
	case <-wait.C:
		o.late.Store(true)
		return overdue
	}
}

func (o *outside) ask(c notebook.Capability) trust.Input {
	pin, err := o.find(c, o.own)
	if err == nil {
		return trust.Input{Capability: c, Value: pin, Words: exec.Describe(c, pin)}
	}
	no := &trust.Refusal{Code: notebook.CodeUnavailable, Reason: err.Error(), Hint: "take it out of its wants, or name another"}
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		no.Code, no.Reason = e.Code, e.Message
		if e.Hint != "" {
			no.Hint = e.Hint
		}
	}
	no.Reason = notebook.EscapeLine(no.Reason)
	return trust.Input{Capability: c, Refusal: no}
}

// sight is what one look knows of what is outside of the notebook.
type sight struct {
	// blind is for whoever may not know what is on this device: each thing is
	// taken as there, nobody looks, and nothing is said of it.
	blind   bool
	room    int                                 // how many things may be asked for
	things  map[notebook.Capability]trust.Input // as they were a moment ago
	unknown []notebook.Capability               // that were asked for, and are to be found out
}

// thing is what a capability stands for, as far as it is known.
func (s *sight) thing(c notebook.Capability) trust.Input {
	in, known := s.things[c]
	switch {
	case s.blind:
		return trust.Input{Capability: c}
	case known:
		return in
	case len(s.things)+len(s.unknown) >= s.room:
		return trust.Input{Capability: c, Refusal: tooMuch}
	}
	if !slices.Contains(s.unknown, c) {
		s.unknown = append(s.unknown, c)
	}
	return trust.Input{Capability: c, Refusal: &trust.Refusal{
		Code: notebook.CodeUnavailable, Reason: "the page changed while that was looked for", Hint: "try again",
	}}
}

// see calls look under d.mu, and again once what it asked for outside of the
// notebook was found out. That happens without d.mu: nothing on any disk can hold
// the daemon up. look changes nothing; what does so after it goes by the sight. It
// ends, since a sight has room for so many things only.
func (d *Daemon) see(look func(s *sight)) *sight {
	s := &sight{things: map[notebook.Capability]trust.Input{}}
	locked := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.room = lookThings
		look(s)
	}
	till := time.Now().Add(lookAll)
	for locked(); len(s.unknown) > 0; locked() {
		for _, c := range s.unknown {
			s.things[c] = d.outside.input(c, time.Until(till))
		}
		s.unknown = nil
	}
	return s
}

// reach completes a request by what is outside of the notebook, as far as the
// decision on it, or on ask, has to know.
func (l *closer) reach(r *trust.Request, ask *notebook.ProposalRequest) {
	for _, c := range r.Reaches(ask) {
		in := l.sight.thing(c)
		l.short = l.short || in.Refusal == tooMuch
		r.Inputs = append(r.Inputs[:len(r.Inputs):len(r.Inputs)], in)
	}
}
