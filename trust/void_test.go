package trust

import (
	"slices"
	"testing"
	"time"

	"noted/notebook"
)

// An approval is of bytes until they change: when they come back it asks again.
func TestApprovalEndsWhenTheFenceChanges(t *testing.T) {
	s := newScene(t)
	here := func(r Request, part notebook.Hash) []uint64 {
		return r.Approvals.VoidChanged(r.Page, func(f notebook.FenceID) notebook.Hash {
			if f == r.Fence {
				return part
			}
			return notebook.Hash{}
		})
	}
	for name, end := range map[string]func(Request) []uint64{
		"changed": func(r Request) []uint64 { return here(r, notebook.Hash{1}) },
		"gone":    func(r Request) []uint64 { return here(r, notebook.Hash{}) },
	} {
		r := s.foreign(wantsPage)
		a := give(t, r, forContent)
		spent := give(t, r, nil)
		if err := r.Approvals.Spend(spent.ID); err != nil {
			t.Fatal(err)
		}
		// Nothing changed: nothing is void.
		if voided := here(r, r.Closure.Hash()); len(voided) != 0 {
			t.Errorf("%s: voided %v for nothing", name, voided)
		}
		if voided := r.Approvals.VoidChanged(notebook.PageID{9}, func(notebook.FenceID) notebook.Hash { return notebook.Hash{} }); len(voided) != 0 {
			t.Errorf("%s: voided %v of another page", name, voided)
		}
		if g, no := Decide(r); no != nil || g.Approval() != a.ID {
			t.Fatal(no)
		}
		if voided := end(r); !slices.Equal(voided, []uint64{a.ID}) {
			t.Errorf("%s: voided %v", name, voided)
		}
		if _, no := Decide(r); no == nil {
			t.Errorf("%s: the same bytes again, and the old yes counts", name)
		}
		if voided := end(r); len(voided) != 0 {
			t.Errorf("%s: voided twice: %v", name, voided)
		}
	}
}

func TestApprovalsExpireInTheirOrder(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	until := func(d time.Duration) uint64 {
		return give(t, r, func(a *notebook.ProposalRequest) { a.Scope, a.Expires = notebook.ScopeContent, noon.Add(d) }).ID
	}
	if !r.Approvals.Next().IsZero() {
		t.Error("something expires of nothing")
	}
	give(t, r, forContent)
	late, soon := until(2*time.Hour), until(time.Hour)
	if next := r.Approvals.Next(); !next.Equal(noon.Add(time.Hour)) {
		t.Errorf("next at %v", next)
	}
	r.Approvals.See(noon.Add(59 * time.Minute))
	if voided := r.Approvals.Expire(); len(voided) != 0 {
		t.Errorf("too early: %v", voided)
	}
	r.Approvals.See(noon.Add(time.Hour))
	r.Approvals.See(noon) // a clock turned back
	if voided := r.Approvals.Expire(); !slices.Equal(voided, []uint64{soon}) {
		t.Errorf("expired: %v", voided)
	}
	if next := r.Approvals.Next(); !next.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("next at %v", next)
	}
	r.Approvals.See(noon.Add(3 * time.Hour))
	if voided := r.Approvals.Expire(); !slices.Equal(voided, []uint64{late}) || !r.Approvals.Next().IsZero() {
		t.Errorf("expired: %v", voided)
	}
}

// Several approvals are given in one act, or none is.
func TestApprovalsAreGivenTogether(t *testing.T) {
	s := newScene(t)
	approvals := NewApprovals()
	var all []Proposal
	var shown []notebook.Hash
	for n := range byte(3) {
		r := s.foreign(wantsPage)
		r.Approvals, r.Fence = approvals, notebook.FenceID{n + 1}
		p := propose(t, r, forContent)
		all, shown = append(all, p), append(shown, p.Digest())
	}
	there := Present{valid: true}
	for name, c := range map[string]struct {
		all     []Proposal
		shown   []notebook.Hash
		present Present
	}{
		"nobody there":       {all, shown, Present{}},
		"one not shown":      {all, shown[:2], there},
		"one shown too many": {all[:2], shown, there},
		"in another order":   {all, []notebook.Hash{shown[1], shown[0], shown[2]}, there},
		"one was changed":    {all, []notebook.Hash{shown[0], shown[1], {1}}, there},
		"none":               {nil, nil, there},
	} {
		if got, err := approvals.Give(c.all, c.shown, c.present, noon); err == nil || len(got) != 0 || len(approvals.List(noon)) != 0 {
			t.Errorf("%s: %v %v, of %d", name, got, err, len(approvals.List(noon)))
		}
	}
	got, err := approvals.Give(all, shown, there, noon)
	if err != nil || len(got) != 3 || len(approvals.List(noon)) != 3 {
		t.Fatalf("%v %v", got, err)
	}
	for range maxApprovals - 1 - len(got) {
		if _, err := approvals.Give(all[:1], shown[:1], there, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := approvals.Revoke(1); err != nil { // room for two of three
		t.Fatal(err)
	}
	if _, err := approvals.Give(all, shown, there, noon); code(err) != notebook.CodeExhausted || len(approvals.List(noon)) != maxApprovals-1 {
		t.Errorf("%v, of %d", err, len(approvals.List(noon)))
	}
	if _, err := approvals.Give(all[:2], shown[:2], there, noon); err != nil || len(approvals.List(noon)) != maxApprovals {
		t.Errorf("%v, of %d", err, len(approvals.List(noon)))
	}
}

// The view says by which way each author's text came here, and that what
// another device says of it is its word.
func TestProposalNamesTheChain(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	r.Origin = notebook.NewOrigin(
		s.typed(s.self), s.typed(s.laptop),
		notebook.Author{Device: s.self, Class: notebook.Agent, Label: "scribe"},
		notebook.Author{Device: s.self, Class: notebook.Import, Label: "old notes"},
		notebook.Author{Device: s.laptop, Class: notebook.Agent, Label: "bot \u202e"},
		notebook.Author{Device: s.self, Class: notebook.Moved, Source: notebook.Source{Device: s.laptop, Class: notebook.Typed}},
		notebook.Author{Device: s.laptop, Class: notebook.Moved, Source: notebook.Source{Device: s.self, Class: notebook.Typed}},
	)
	r.Closed = false
	want := []string{
		"agent:scribe", "device:laptop", `device:laptop, as it says by agent:"bot \\u{202e}"`,
		"device:laptop, as it says moved from typed here", "device:laptop, moved here", `import:"old notes"`, "typed here", "structure",
	}
	if got := propose(t, r, nil).View().Origin; !slices.Equal(got, want) {
		t.Errorf("%q\nnot\n%q", got, want)
	}
}
