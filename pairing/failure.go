package pairing

import (
	"context"
	"errors"
	"fmt"

	"noted/notebook"
)

// Reason is why a pairing ended without a new device. Both screens get it.
type Reason uint8

const (
	Expired     Reason = 1 + iota // the invitation was answered too late
	Used                          // the invitation was answered before
	WrongSecret                   // the other device does not know the secret
	TooMany                       // this key has had its three tries
	Busy                          // too many strangers at once
	Declined                      // a person said no
	Version                       // the two speak different versions
	Notebook                      // the invitation is of another notebook
	HasPages                      // the joining home has pages
	Timeout                       // an answer did not come in time
	Lost                          // the connection broke
	Garbled                       // what came was not the protocol
	Cancelled                     // a person or a shutdown ended it
	Refused                       // what was sent was judged and not accepted
)

// Step is what a side was doing or waiting for when a pairing ended.
type Step uint8

const (
	Greeting        Step = 1 + iota // both say what they want
	Proof                           // both prove the secret
	Confirmation                    // both people compare the code
	Acceptance                      // the joiner signs that it wants to join
	Welcome                         // the inviter adds it and sends the beginning of the log
	FirstEntry                      // the joiner writes its first entry
	Acknowledgement                 // the inviter has taken it
)

func (s Step) String() string {
	switch s {
	case Greeting:
		return "the greeting"
	case Proof:
		return "the proof of the secret"
	case Confirmation:
		return "the confirmation of the code"
	case Acceptance:
		return "the joining device's signature"
	case Welcome:
		return "the notebook's beginning"
	case FirstEntry:
		return "the joining device's first entry"
	case Acknowledgement:
		return "the acknowledgement of the first entry"
	}
	return fmt.Sprintf("step %d", uint8(s))
}

// Failure is why a pairing ended, as a person reads it. A callback may return
// one to choose the reason that the other screen shows.
type Failure struct {
	Reason Reason
	Step   Step
	There  bool   // the other device found it; otherwise this one did
	Theirs uint16 // of [Version]: the version that the other device speaks
	Err    error  // what a callback or the connection said here; may be nil
}

func (f *Failure) Unwrap() error { return f.Err }

// Error is what happened and, in brackets, what to do next.
func (f *Failure) Error() string {
	return f.Person().Error()
}

// Person is f as the local surfaces carry it.
func (f *Failure) Person() *notebook.Error {
	code, message, hint := f.describe()
	return &notebook.Error{Code: code, Message: message, Hint: hint}
}

func (f *Failure) describe() (code notebook.Code, message, hint string) {
	const again = "make a new invitation on the device that is in the notebook"
	here, there := "this device", "the other device"
	if f.There {
		here, there = there, here
	}
	switch f.Reason {
	case Expired:
		return notebook.CodeTimeout, fmt.Sprintf("the invitation has expired: it is good for %v", Lifetime), again
	case Used:
		return notebook.CodeRefused, "the invitation has been used", "if you did not use it, look at `noted device list`; otherwise " + again
	case WrongSecret:
		return notebook.CodeRefused, there + " does not know the invitation's secret", again + " and copy the whole of it"
	case TooMany:
		return notebook.CodeRefused, "the same device has tried this invitation too often", again
	case Busy:
		return notebook.CodeExhausted, here + " is answering too many strangers", "wait some seconds and try again"
	case Declined:
		return notebook.CodeRefused, "the pairing was declined on " + here, "if the codes were different, someone may be between the two: pair on another network"
	case Version:
		return notebook.CodeFailed, fmt.Sprintf("the other device speaks pairing version %d, this one %d", f.Theirs, ProtocolVersion), "update noted on the older one"
	case Notebook:
		return notebook.CodeRefused, "the invitation is of another notebook than " + here + " has", again
	case HasPages:
		return notebook.CodeRefused, "the joining device has pages of its own", "join with an empty home: `noted --home DIR init`, then `noted device join` there"
	case Timeout:
		return notebook.CodeTimeout, fmt.Sprintf("%s waited in vain for %v", here, f.Step), f.unfinished(again)
	case Lost:
		return notebook.CodeUnavailable, fmt.Sprintf("the connection broke during %v", f.Step), f.unfinished(again)
	case Garbled:
		return notebook.CodeFailed, fmt.Sprintf("%s got something that is not noted's pairing during %v", here, f.Step), again
	case Cancelled:
		return notebook.CodeFailed, fmt.Sprintf("the pairing was cancelled on %s during %v", here, f.Step), f.unfinished(again)
	case Refused:
		message = fmt.Sprintf("%s did not accept %v", here, f.Step)
		if f.Err != nil {
			message += ": " + f.Err.Error()
		}
		return notebook.CodeRefused, message, f.unfinished(again)
	}
	return notebook.CodeFailed, fmt.Sprintf("the pairing ended on %s for reason %d", here, f.Reason), "update noted on both devices"
}

// unfinished is the way out of a pairing that may have come half way: from the
// acceptance on, the inviter may have added the device.
func (f *Failure) unfinished(again string) string {
	if f.Step < Acceptance {
		return again
	}
	return "look at `noted device list` on both; if only one shows the other, remove it there and " + again
}

// because makes the failure that err stands for at a step, where err came from
// a callback or a cancelled context.
func because(step Step, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		g := *f
		if g.Step == 0 {
			g.Step = step
		}
		return &g
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Reason: Timeout, Step: step, Err: err}
	case errors.Is(err, context.Canceled):
		return &Failure{Reason: Cancelled, Step: step, Err: err}
	}
	return &Failure{Reason: Refused, Step: step, Err: err}
}
