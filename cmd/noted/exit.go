package main

import (
	"context"
	"errors"
	"slices"

	"noted/notebook"
)

// exit is one row of the table of exit codes.
type exit struct {
	code    int
	meaning string
	codes   []notebook.Code
}

// exits is the one place where a failure becomes an exit code. An error of no
// known code is a plain failure.
func exits() []exit {
	return []exit{
		{0, "done; for `fence run`: the verdict is ok", nil},
		{1, "it failed", []notebook.Code{notebook.CodeFailed, notebook.CodeExhausted, notebook.CodeUnavailable}},
		{2, "the command line or what was given to it is wrong", []notebook.Code{notebook.CodeInvalid}},
		{3, "not found, or the reference names several", []notebook.Code{notebook.CodeNotFound, notebook.CodeAmbiguous}},
		{4, "refused: by trust, policy, presence or role, or what was shown no longer holds", []notebook.Code{notebook.CodeRefused, notebook.CodeDenied, notebook.CodeStale}},
		{5, "it did not happen in time", []notebook.Code{notebook.CodeTimeout}},
		{exitUnreachable, "the daemon is not reachable, or there is no notebook yet", nil},
	}
}

const exitUnreachable = 6

// unreachableError says that there is no daemon to ask, unlike an error of code
// unavailable that a daemon answered about something else.
type unreachableError struct{ err *notebook.Error }

func (e unreachableError) Error() string { return e.err.Error() }
func (e unreachableError) Unwrap() error { return e.err }

// outcome is an error that comes with data, such as a run that ended badly.
type outcome struct {
	data any
	err  error
}

func (o *outcome) Error() string { return o.err.Error() }
func (o *outcome) Unwrap() error { return o.err }

// failure is err in the form that people and scripts get.
func failure(err error) *notebook.Error {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return notebook.Errorf(notebook.CodeFailed, "stopped before it was done")
	case errors.Is(err, context.DeadlineExceeded):
		return notebook.Errorf(notebook.CodeTimeout, "it took too long")
	}
	return notebook.Errorf(notebook.CodeFailed, "%s", err.Error())
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[unreachableError](err); ok {
		return exitUnreachable
	}
	code := failure(err).Code
	for _, e := range exits() {
		if slices.Contains(e.codes, code) {
			return e.code
		}
	}
	return 1
}

// finish tells what went wrong, if anything, and answers the exit code.
func (a *app) finish(err error) int {
	if err == nil {
		return 0
	}
	f := failure(err)
	if a.json {
		var data any
		if o, ok := errors.AsType[*outcome](err); ok {
			data = o.data
		}
		if werr := a.envelope(envelope{Data: data, Error: &errorJSON{Code: string(f.Code), Message: f.Message, Hint: f.Hint}}); werr != nil {
			a.say("noted: %v", werr)
		}
		return exitCode(err)
	}
	a.say("noted: %s", f.Message)
	if f.Hint != "" {
		a.say("next: %s", f.Hint)
	}
	return exitCode(err)
}
