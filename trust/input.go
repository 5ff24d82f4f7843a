package trust

import (
	"fmt"
	"slices"

	"noted/notebook"
)

// Input is what a run can be handed for one capability. Of page, clock, seed and
// query it is a value that is sent with the source. Of a directory, a program or
// a host it is what the capability stands for on this device, as the runtime
// found it; an approval is of that and of nothing else under the same name.
type Input struct {
	Capability notebook.Capability
	Value      []byte
	Authors    notebook.Origin // nil for values that nobody wrote, such as a clock
	Words      string          // what Value is, for a person to read; empty where its name says it
	Refusal    *Refusal        // why there is no Value; nil where there is one
}

// input finds what could be handed in for a capability. Args come with the
// request and need no value of their own.
func (r *Request) input(c notebook.Capability) (Input, bool) {
	i := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Capability == c })
	if i < 0 {
		return Input{}, false
	}
	return r.Inputs[i], r.Inputs[i].Refusal == nil
}

func (r *Request) available(c notebook.Capability) bool {
	_, found := r.input(c)
	return found || c == notebook.CapArgs
}

// unavailable refuses what cannot be handed in.
func (r *Request) unavailable(c notebook.Capability) *Refusal {
	if in, _ := r.input(c); in.Refusal != nil {
		no := *in.Refusal // the one of the input may serve for others
		no.Reason = fmt.Sprintf("the fence wants %s, and %s", c, no.Reason)
		return &no
	}
	return &Refusal{
		Code: notebook.CodeUnavailable, Reason: fmt.Sprintf("the fence wants %s, which cannot be had here", c),
		Hint: "take it out of its wants",
	}
}

// foreign are the foreign authors of what would be handed in for a capability.
// Args are by who asks for the run.
func (r *Request) foreign(c notebook.Capability) []party {
	in, _ := r.input(c)
	foreign, _ := parties(r.Self, r.Roster, in.Authors)
	if c == notebook.CapArgs && len(r.Args) > 0 && !r.By.person() {
		foreign = append(foreign, party{kind: "agent", name: r.By.Name})
	}
	return foreign
}

// identities are what the capabilities that are outside of the notebook stand
// for, in their order.
func (r *Request) identities(all []notebook.Capability) [][]byte {
	ids := make([][]byte, len(all))
	for i, c := range all {
		if in, _ := r.input(c); c.Outside() {
			ids[i] = in.Value
		}
	}
	return ids
}

// Reaches are the capabilities outside of the notebook of which a decision on r
// has to know what they stand for: those that policy would grant to what this
// person typed here, those of approvals, and for a proposal what it would allow.
// Others' fences make nobody look anywhere before a person wants to approve them.
func (r *Request) Reaches(ask *notebook.ProposalRequest) []notebook.Capability {
	if len(r.Closure) == 0 || ask == nil && !r.By.person() {
		return nil
	}
	var all []notebook.Capability
	wants, err := r.wanted()
	switch {
	case err != nil:
		return nil
	case ask != nil:
		all = append(slices.Clone(wants), ask.Capabilities...)
	case r.Standing().local:
		for _, c := range wants {
			if r.policy().grants(c) {
				all = append(all, c)
			}
		}
	}
	for _, a := range r.Approvals.of(r.Page, r.Fence) {
		if !a.dead() {
			all = append(all, a.Capabilities...)
		}
	}
	all = slices.DeleteFunc(all, func(c notebook.Capability) bool { return !c.Outside() })
	slices.Sort(all)
	return slices.Compact(all)
}

// replaced says why an approval counts no more that was given for something
// outside of the notebook, which is gone or another by now; empty where that is
// not the reason.
func (r *Request) replaced() string {
	for _, a := range r.Approvals.of(r.Page, r.Fence) {
		if a.dead() || r.Approvals.expired(a, r.Approvals.clock(r.Now)) || len(a.Identities) != len(a.Capabilities) {
			continue
		}
		then := r.pins(a)
		then.identities = a.Identities
		if then.digest() != a.Digest {
			continue
		}
		for i, c := range a.Capabilities {
			in, found := r.input(c)
			switch {
			case !c.Outside() || string(in.Value) == string(a.Identities[i]):
			case in.Refusal != nil:
				return fmt.Sprintf("; it was approved for %s, and %s", c, in.Refusal.Reason)
			case found:
				return fmt.Sprintf("; %s is not what it was when it was approved", c)
			}
		}
	}
	return ""
}
