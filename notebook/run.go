package notebook

import (
	"fmt"
	"time"
)

// Rung is how much a run may reach.
type Rung uint8

const (
	NoRung  Rung = iota // nothing runs
	Strict              // nothing granted: a pure function of source, args and inputs
	Granted             // the capabilities in the grant and nothing else
	Host                // the person's own powers
)

func (r Rung) String() string {
	switch r {
	case NoRung:
		return "none"
	case Strict:
		return "strict"
	case Granted:
		return "granted"
	case Host:
		return "host"
	}
	return fmt.Sprintf("rung %d", uint8(r))
}

// Limits bound one run. Zero fields are not unlimited: a grant with one is refused.
type Limits struct {
	_      struct{}      `cbor:",toarray"`
	Time   time.Duration // from the request to SIGKILL
	Memory int64         // bytes of the peak resident memory of the worker, what it needs itself included
	Output int           // bytes kept of the output, head and tail
	Source int           // bytes of source and args; a page that is handed in has its own bound
}

// DefaultLimits are the limits of a run where policy says nothing else.
var DefaultLimits = Limits{Time: 5 * time.Second, Memory: 128 << 20, Output: 64 << 10, Source: 64 << 10}

// Verdict is how a run ended, decided by the parent from its own flags, the
// result frame and the exit status, never from text.
type Verdict uint8

const (
	NoVerdict Verdict = iota
	OK                // the fence returned
	Failed            // the fence raised an error
	Timeout           // killed at its deadline
	Memory            // out of its memory
	Output            // killed for writing too much
	Violation         // the jail stopped a forbidden system call
	Crash             // the worker died in another way
	Cancelled         // a person or a departed client stopped it
)

var verdicts = [...]string{"none", "ok", "error", "timeout", "memory", "output", "violation", "crash", "cancelled"}

func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}
