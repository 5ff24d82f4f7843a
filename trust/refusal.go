package trust

import "noted/notebook"

// Refusal is the decision that a fence may not run as requested.
type Refusal struct {
	Code   notebook.Code
	Reason string // one sentence
	Hint   string // the next step
	Ask    bool   // a person's approval could allow it
	Rule   string // the line of the policy that decided, with where it stands; empty if no policy could allow it
}

func (r *Refusal) Error() string { return r.Unwrap().Error() }

// Unwrap is the refusal as it crosses to a client.
func (r *Refusal) Unwrap() error {
	return &notebook.Error{Code: r.Code, Message: r.Reason, Hint: r.Hint}
}
