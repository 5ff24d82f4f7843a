package trust

import (
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
)

// Included is a fence that another one includes: where it was read, and who
// wrote it.
type Included struct {
	Page   notebook.PageID
	Title  string // of its page, for a person to read; it decides nothing
	Fence  notebook.FenceID
	Origin notebook.Origin
	Own    bool
	Closed bool
}

// Lookup finds the fence of a page with a short id, as it reads now. It refuses
// what is not there or not one fence.
type Lookup func(page notebook.PageID, short string) (Included, notebook.Part, *Refusal)

// Include completes a request about a fence alone by what the fence includes, as
// find finds it: Closure becomes all of it in the order in which it runs. Where
// that cannot be, Closure stays the fence alone and Broken says why; such a
// request is refused whoever asks. At most 32 fences are found, each once.
func (r *Request) Include(find Lookup) {
	r.Closure = slices.Clone(r.Closure[len(r.Closure)-1:])
	r.Included, r.Broken = nil, nil
	w := traversal{find: find, main: r.Closure[0], size: r.Closure.Size(), state: map[address]visitState{}}
	if no := w.visit(address{r.Page, r.Fence}, r.Closure[0]); no != nil {
		r.Broken = no
		return
	}
	r.Closure, r.Included = append(w.parts, r.Closure[0]), w.included
}

// address is where a fence is.
type address struct {
	page  notebook.PageID
	fence notebook.FenceID
}

func (p address) String() string { return "=" + p.page.String()[:12] + "#" + p.fence.Short() }

type visitState uint8

const (
	visitOpen visitState = 1 + iota // its own includes are being looked at
	visitDone
)

// traversal goes through what a fence includes, depth first, in the order in which
// the fences are named.
type traversal struct {
	find     Lookup
	main     notebook.Part
	size     int
	state    map[address]visitState
	parts    notebook.Closure
	included []Included
}

func (w *traversal) visit(at address, part notebook.Part) *Refusal {
	includes, err := part.Includes()
	if err != nil {
		no := unreadable(err)
		if len(w.state) > 0 {
			no.Reason = fmt.Sprintf("of the included fence %v: %s", at, no.Reason)
		}
		return no
	}
	w.state[at] = visitOpen
	for _, i := range includes {
		if i.Page.IsZero() {
			i.Page = at.page
		}
		fence, next, no := w.find(i.Page, i.Fence)
		if no != nil {
			named := *no // the one that find gave may serve for others
			named.Reason = fmt.Sprintf("the fence includes %s, and %s", short(i), no.Reason)
			return &named
		}
		to := address{fence.Page, fence.Fence}
		switch w.state[to] {
		case visitDone:
			continue
		case visitOpen:
			return &Refusal{
				Code: notebook.CodeRefused, Reason: fmt.Sprintf("the fence %v includes %v, which includes it in turn", at, to),
				Hint: "take one of the includes out: noted fence include FENCE sets what a fence includes",
			}
		}
		if notebook.Canonical(next.Language) != notebook.Canonical(w.main.Language) {
			return &Refusal{
				Code: notebook.CodeRefused, Reason: fmt.Sprintf("the fence includes %v, which is %s and not %s", to, quote(next.Language), quote(w.main.Language)),
				Hint: "a fence includes fences of its own language: noted fence include FENCE sets what it includes",
			}
		}
		w.size += notebook.Closure{next}.Size()
		if len(w.state) >= notebook.MaxClosure || w.size > notebook.MaxClosureBytes {
			return &Refusal{
				Code: notebook.CodeExhausted, Reason: fmt.Sprintf("with %v the fence and what it includes are more than %d fences or %d bytes", to, notebook.MaxClosure, notebook.MaxClosureBytes),
				Hint: "include less: noted fence include FENCE sets what a fence includes",
			}
		}
		if no := w.visit(to, next); no != nil {
			return no
		}
		w.parts, w.included = append(w.parts, next), append(w.included, fence)
	}
	w.state[at] = visitDone
	return nil
}

// short is an include as a person reads it.
func short(i notebook.Include) string { return "=" + i.Page.String()[:12] + "#" + i.Fence }

// whole reports whether Closure is the fence and exactly what it includes, in
// order. Decide trusts nobody's word for it.
func (r *Request) whole() bool {
	n := len(r.Closure) - 1
	if n < 0 || len(r.Included) != n {
		return false
	}
	again := *r
	again.Include(func(page notebook.PageID, short string) (Included, notebook.Part, *Refusal) {
		if page == r.Page && short == r.Fence.Short() {
			return Included{Page: page, Fence: r.Fence}, r.Closure[n], nil
		}
		i := slices.IndexFunc(r.Included, func(in Included) bool { return in.Page == page && in.Fence.Short() == short })
		if i < 0 {
			return Included{}, notebook.Part{}, &Refusal{}
		}
		return r.Included[i], r.Closure[i], nil
	})
	return again.Broken == nil && slices.Equal(again.Closure, r.Closure) &&
		slices.EqualFunc(again.Included, r.Included, func(a, b Included) bool { return a.Page == b.Page && a.Fence == b.Fence })
}

// Standing is how the fence stands with all that it includes: local only if each
// of them does by itself, otherwise by all foreign authors of any of them.
func (r *Request) Standing() Standing {
	all := Stand(r.Self, r.Roster, r.Origin, r.Own, r.Closed)
	for _, in := range r.Included {
		s := Stand(r.Self, r.Roster, in.Origin, in.Own, in.Closed)
		if all.local && s.local {
			continue
		}
		var foreign []party
		for _, x := range []Standing{all, s} {
			if !x.local {
				foreign = append(foreign, x.parties()...)
			}
		}
		all = Standing{foreign: tidy(foreign), mixed: all.local || all.mixed || s.local || s.mixed}
	}
	return all
}

// Everyone is who wrote any of the closure.
func (r *Request) Everyone() notebook.Origin { return everyone(r.Origin, r.Included) }

func everyone(origin notebook.Origin, included []Included) notebook.Origin {
	all := slices.Clone(origin)
	for _, in := range included {
		all = append(all, in.Origin...)
	}
	return notebook.NewOrigin(all...)
}

// Parts are the included fences as a person is shown them, in order.
func (r *Request) Parts() []notebook.Included {
	var parts []notebook.Included
	for _, in := range r.Included {
		parts = append(parts, notebook.Included{
			Page: in.Page, Title: in.Title, Fence: in.Fence,
			Standing: Stand(r.Self, r.Roster, in.Origin, in.Own, in.Closed).String(),
		})
	}
	return parts
}

// subset refuses an included fence that wants what the fence itself does not
// ask for. Only the fence's own wants count: no edit of an included fence can
// make a run reach further, and none runs without what it needs.
func (r *Request) subset(wants []notebook.Capability) *Refusal {
	for i, in := range r.Included {
		needs, err := r.Closure[i].Wants()
		if err != nil {
			no := unreadable(err)
			no.Reason = fmt.Sprintf("of the included fence %v: %s", address{in.Page, in.Fence}, no.Reason)
			return no
		}
		for _, c := range needs {
			if !slices.Contains(wants, c) {
				return &Refusal{
					Code: notebook.CodeRefused, Reason: fmt.Sprintf("the included fence %v wants %s, which the fence itself does not ask for", address{in.Page, in.Fence}, c),
					Hint: "write it into the wants of the fence that includes it",
				}
			}
		}
	}
	return nil
}

// unreadable refuses a fence whose info string is malformed: it is shown, and
// nobody can make it run.
func unreadable(err error) *Refusal {
	no := &Refusal{Code: notebook.CodeRefused, Reason: err.Error()}
	var e *notebook.Error
	if errors.As(err, &e) {
		no.Reason, no.Hint = e.Message, e.Hint
	}
	return no
}
