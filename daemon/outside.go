package daemon

import (
	"errors"
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

	// lookThings is how many directories, programs and hosts one look at a page
	// asks for: those of a few fences with as many as one may want.
	lookThings = 4 * notebook.MaxWants
)

// outside finds out what directories, programs and hosts are on this device. One
// question is asked at a time, and none while an answer is overdue: what hangs
// holds the daemon up once.
type outside struct {
	find func(c notebook.Capability, own []string) ([]byte, error) // exec.Resolve
	own  []string                                                  // directories that no fence is given
	busy chan struct{}                                             // holds a value while a question is open
}

func newOutside(h Home) *outside {
	return &outside{find: exec.Resolve, own: []string{h.Config, h.Data, h.State, h.Cache, h.Runtime}, busy: make(chan struct{}, 1)}
}

// input is what a capability stands for now, or why it cannot be had.
func (o *outside) input(c notebook.Capability) trust.Input {
	overdue := trust.Input{Capability: c, Refusal: &trust.Refusal{
		Code: notebook.CodeUnavailable, Reason: "what is outside of noted does not answer in time",
		Hint: "look at the disk that it is on, then try again",
	}}
	select {
	case o.busy <- struct{}{}:
	default:
		return overdue
	}
	answer := make(chan trust.Input, 1)
	go func() {
		in := o.ask(c)
		<-o.busy // first: who has the answer may ask the next at once
		answer <- in
	}()
	wait := time.NewTimer(lookOutside)
	defer wait.Stop()
	select {
	case in := <-answer:
		return in
	case <-wait.C:
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

// reach completes a request by what is outside of the notebook, as far as the
// decision on it, or on ask, has to know.
func (l *closer) reach(r *trust.Request, ask *notebook.ProposalRequest) {
	for _, c := range r.Reaches(ask) {
		in, known := l.things[c]
		switch {
		case known:
		case len(l.things) >= lookThings:
			l.short = true
			in = trust.Input{Capability: c, Refusal: tooMuch}
		default:
			in = l.d.outside.input(c)
			l.things[c] = in
		}
		r.Inputs = append(r.Inputs[:len(r.Inputs):len(r.Inputs)], in)
	}
}
