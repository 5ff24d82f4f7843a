package trust

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// Text that another hands in as an argument has a hand in the fence, as text in
// its page has.
func TestArgsOfAnAgentAreForeign(t *testing.T) {
	s := newScene(t)
	const wantsArgs = `lua {wants="args" args="cmd="}`
	scribe := Requester{Role: roleAgent, Name: "scribe", Client: "1"}
	args := map[string]string{"cmd": "rm"}

	// The person's own are not.
	r := s.local(wantsArgs)
	r.Args = args
	if g, no := Decide(r); no != nil || g.Rung() != notebook.Granted || g.Args()["cmd"] != "rm" {
		t.Fatalf("%v %v", g.Rung(), no)
	}
	// An agent's are, for what wants them; what does not runs strict, as ever.
	r.By = scribe
	if _, no := Decide(r); no == nil || !no.Ask || !strings.Contains(no.Reason, "wants args, which holds text by agent:scribe") {
		t.Errorf("%v", no)
	}
	r.Policy = policyOf(t, "[foreign]\nlua = \"refuse\"\n")
	if _, no := Decide(r); no == nil || no.Ask || !strings.Contains(no.Reason, "policy refuses lua by agent:scribe") {
		t.Errorf("%v", no)
	}
	r.Args = nil
	if _, no := Decide(r); no == nil || !no.Ask {
		t.Errorf("without any: %v", no)
	}
	r = s.local("lua {args=cmd}")
	r.By, r.Args = scribe, args
	if g, no := Decide(r); no != nil || g.Rung() != notebook.Strict || len(g.Capabilities()) > 0 {
		t.Errorf("%v %v", g.Rung(), no)
	}

	// A person is told, and what they approve is these args, or any.
	ask := func(change func(*notebook.ProposalRequest)) notebook.Proposal {
		t.Helper()
		return propose(t, r, func(ask *notebook.ProposalRequest) { ask.Rung = notebook.Strict; change(ask) }).View()
	}
	r.Policy = policyOf(t, "[local]\nlua = \"ask\"\n")
	if notes := strings.Join(ask(func(a *notebook.ProposalRequest) { a.AnyArgs, a.Args = true, nil }).Notes, "\n"); !strings.Contains(notes, "any arguments") {
		t.Errorf("%q", notes)
	}
	give(t, r, func(a *notebook.ProposalRequest) {
		a.Rung, a.Scope, a.Args = notebook.Strict, notebook.ScopeContent, args
	})
	if g, no := Decide(r); no != nil || g.Approval() == 0 {
		t.Errorf("these args: %v", no)
	}
	r.Args = map[string]string{"cmd": "rm -r"}
	if _, no := Decide(r); no == nil {
		t.Error("other args than were approved")
	}
	give(t, r, func(a *notebook.ProposalRequest) {
		a.Rung, a.Scope, a.AnyArgs, a.Args = notebook.Strict, notebook.ScopeContent, true, nil
	})
	if _, no := Decide(r); no != nil {
		t.Errorf("any args: %v", no)
	}
	r.By = Requester{Role: roleAgent, Name: "other", Client: "2"}
	if _, no := Decide(r); no == nil {
		t.Error("another agent's args")
	}
}

// An approval for more than policy grants counts for that, and one for less
// takes nothing away.
func TestApprovalBeyondPolicy(t *testing.T) {
	s := newScene(t)
	r := s.local("lua")
	r.Policy = policyOf(t, "[local]\ncapabilities = [\"clock\"]\n")
	reach := func(caps ...notebook.Capability) func(*notebook.ProposalRequest) {
		return func(a *notebook.ProposalRequest) {
			a.Rung, a.Scope, a.Capabilities = notebook.Granted, notebook.ScopeContent, caps
		}
	}
	reaches := func(want string, approval uint64) {
		t.Helper()
		g, no := Decide(r)
		if got := strings.Join(names(g.Capabilities()), " "); no != nil || got != want || g.Approval() != approval {
			t.Errorf("reaches %q by approval %d (%v), want %q by %d", got, g.Approval(), no, want, approval)
		}
	}
	reaches("clock", 0)
	give(t, r, reach(notebook.CapClock))
	reaches("clock", 0)
	a := give(t, r, reach(notebook.CapClock, notebook.CapPage))
	reaches("clock page", a.ID)
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop)) // it was accepted from anyone
	reaches("clock page", a.ID)
	r.Closure[0].Code = "return 2\n"
	r.Shown = r.Closure.Hash()
	reaches("clock", 0)
}

// Whatever is approved, more text of others in what a fence is handed never
// makes it reach further.
func TestForeignInputsNeverGrantMore(t *testing.T) {
	s := newScene(t)
	devices := []notebook.DeviceID{s.self, s.laptop, {}, {9}}
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, s)
		for range rapid.IntRange(0, 3).Draw(t, "approvals") {
			ask := notebook.ProposalRequest{FenceRef: notebook.FenceRef{Page: r.Page, Fence: r.Fence, Shown: r.Shown}, Scope: notebook.ScopeContent}
			ask.Rung = rapid.SampledFrom([]notebook.Rung{notebook.Strict, notebook.Granted, notebook.Granted, notebook.Host}).Draw(t, "rung")
			for _, c := range every {
				if ask.Rung > notebook.Strict && rapid.IntRange(0, 3).Draw(t, string(c)) == 0 {
					ask.Capabilities = append(ask.Capabilities, c)
				}
			}
			if p, no := Propose(r, ask); no == nil {
				if _, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, r.Now); err != nil {
					t.Fatal(err)
				}
			}
		}
		before, _ := Decide(r)
		more := r
		switch {
		case len(r.Inputs) > 0 && rapid.Bool().Draw(t, "page"):
			more.Inputs = slices.Clone(r.Inputs)
			i := rapid.IntRange(0, len(r.Inputs)-1).Draw(t, "input")
			more.Inputs[i].Authors = notebook.NewOrigin(append(slices.Clone(r.Inputs[i].Authors), drawAuthor(t, devices))...)
		case !r.By.person():
			return
		default:
			// The same, asked by an agent with words of its own.
			more.By = Requester{Role: roleAgent, Name: "clerk"}
			more.Args = map[string]string{"x": rapid.String().Draw(t, "arg")}
		}
		after, _ := Decide(more)
		if wider(before, after) {
			t.Fatalf("%v %v by approval %d became %v %v by %d", before.Rung(), before.Capabilities(), before.Approval(), after.Rung(), after.Capabilities(), after.Approval())
		}
	})
}
