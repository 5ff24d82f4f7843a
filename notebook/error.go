package notebook

import "fmt"

// Code is why a request failed, in the few kinds that a client acts on.
type Code string

const (
	CodeInvalid     Code = "invalid"     // the request itself is wrong
	CodeNotFound    Code = "not_found"   // no such page, fence, device, run
	CodeAmbiguous   Code = "ambiguous"   // the reference names several; Candidates of the message name them
	CodeStale       Code = "stale"       // what the client saw is no longer so; look again
	CodeRefused     Code = "refused"     // trust, policy or presence says no
	CodeDenied      Code = "denied"      // this client's role may not do this
	CodeExhausted   Code = "exhausted"   // a bound is reached; try later or make room
	CodeTimeout     Code = "timeout"     // it did not happen in time
	CodeUnavailable Code = "unavailable" // the daemon, the peer or the part is not there
	CodeFailed      Code = "failed"      // everything else
)

// Error is a failure as a person meets it: what happened and what to do next.
// It crosses the local RPC unchanged.
type Error struct {
	Code    Code
	Message string // one sentence: what and why
	Hint    string // the next step, often a command; may be empty
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Hint)
}

// Errorf makes an [Error] without a hint; see [Error.With].
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of e with the next step.
func (e *Error) With(format string, args ...any) *Error {
	f := *e
	f.Hint = fmt.Sprintf(format, args...)
	return &f
}
