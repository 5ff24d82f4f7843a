package trust

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

func atHost(ask *notebook.ProposalRequest) {
	ask.Rung, ask.Scope = notebook.Host, notebook.ScopeContent
}

// The person's own powers are for a shell fence that the owner approved for
// them, run by the owner, and for nothing else.
func TestHostTakesAnApproval(t *testing.T) {
	s := newScene(t)
	own, theirs := in(s.local(""), "sh", ""), in(s.foreign(""), "bash", "")
	for _, r := range []Request{own, theirs} {
		if g, _ := Decide(r); g.Rung() == notebook.Host {
			t.Fatal("host without approval")
		}
		view := propose(t, r, atHost).View()
		if notes := strings.Join(view.Notes, "\n"); !strings.HasPrefix(notes, "it runs with your own powers, outside of any jail") ||
			!strings.Contains(notes, "(I7)") || !strings.Contains(notes, "(I8)") || !strings.Contains(notes, "(I9)") {
			t.Errorf("a person is told %q", notes)
		}
		granted := propose(t, r, func(ask *notebook.ProposalRequest) {
			ask.Rung, ask.Capabilities, ask.Scope = notebook.Granted, []notebook.Capability{"clock"}, notebook.ScopeContent
		})
		if strings.Contains(strings.Join(granted.View().Notes, "\n"), "own powers") || granted.Digest() == view.Digest {
			t.Error("granted is shown as host")
		}
		a := give(t, r, atHost)
		g, no := Decide(r)
		if no != nil || g.Rung() != notebook.Host || g.Approval() != a.ID || g.Local() != (r.Own && len(r.Origin) == 1) {
			t.Fatalf("%v %v", g.Rung(), no)
		}
		for name, change := range map[string]func(*Request){
			"the browser":             func(r *Request) { r.By.Role = roleBrowser },
			"an agent":                func(r *Request) { r.By = Requester{Role: roleAgent, Name: "clerk"} },
			"an agent called owner":   func(r *Request) { r.By = Requester{Role: roleAgent, Name: "owner"} },
			"an owner with a name":    func(r *Request) { r.By.Name = "x" },
			"another code":            func(r *Request) { r.Closure[0].Code = "rm -r ." },
			"another info string":     func(r *Request) { r.Closure[0].Info += " " },
			"another language":        func(r *Request) { *r = in(*r, "lua", "") },
			"another engine":          func(r *Request) { r.Engine[0]++ },
			"one author more":         func(r *Request) { r.Origin = notebook.NewOrigin(append(r.Origin, s.typed(notebook.DeviceID{9}))...) },
			"with an argument":        func(r *Request) { r.Args = map[string]string{"x": "y"} },
			"policy refuses it":       func(r *Request) { r.Policy = policyOf(t, "[local]\nsh=\"refuse\"") },
			"other limits":            func(r *Request) { r.Policy = policyOf(t, "[limits]\ntime=\"6s\"") },
			"once it is revoked":      func(r *Request) { r.Approvals = NewApprovals() },
			"a trigger of the policy": func(r *Request) { r.By = AutoRule{Trigger: TriggerOpen}.Automatic() },
		} {
			q := r
			q.Closure = slices.Clone(r.Closure)
			change(&q)
			q.Shown = q.Closure.Hash()
			if g, _ := Decide(q); g.Rung() == notebook.Host {
				t.Errorf("%s: still host by %s", name, g.Rule())
			}
		}
	}
	agent := own
	agent.By = Requester{Role: roleAgent, Name: "clerk"}
	for name, r := range map[string]Request{
		"lua": s.local("lua"), "python": in(s.local(""), "python", ""), "js": in(s.local(""), "js", ""), "wasm": in(s.local(""), "wasm", ""),
		"query": in(s.local(""), "query", ""), "an agent": agent,
	} {
		ask := asked(r)
		atHost(&ask)
		if p, no := Propose(r, ask); no == nil || no.Hint == "" || !p.Digest().IsZero() {
			t.Errorf("%s can be approved for host: %v", name, no)
		}
	}
	for _, rung := range []notebook.Rung{notebook.Host + 1, 255} {
		ask := asked(own)
		ask.Rung = rung
		if _, no := Propose(own, ask); no == nil {
			t.Errorf("%v can be approved", rung)
		}
	}
}

// What a fence includes runs at host as the approval saw it, or not at all.
func TestHostPinsIncludes(t *testing.T) {
	s := newScene(t)
	r := in(s.local(""), "sh", `{include="#`+fenceID(1).Short()+`"}`)
	part := notebook.Part{Delimiter: "```", Language: "bash", Info: "bash", Code: "f() { :; }\n"}
	r.Included = []Included{{Page: r.Page, Fence: fenceID(1), Origin: r.Origin, Own: true, Closed: true}}
	r.Closure = notebook.Closure{part, r.Closure[0]}
	r.Shown = r.Closure.Hash()
	give(t, r, atHost)
	if g, no := Decide(r); no != nil || g.Rung() != notebook.Host {
		t.Fatalf("%v %v", g.Rung(), no)
	}
	for name, change := range map[string]func(*Request){
		"its code":   func(r *Request) { r.Closure[0].Code = "rm -r .\n" },
		"its author": func(r *Request) { r.Included[0].Origin = notebook.NewOrigin(s.typed(s.laptop)) },
		"its record": func(r *Request) { r.Included[0].Own = false },
	} {
		q := r
		q.Closure, q.Included = slices.Clone(r.Closure), slices.Clone(r.Included)
		change(&q)
		q.Shown = q.Closure.Hash()
		if g, _ := Decide(q); g.Rung() == notebook.Host {
			t.Errorf("%s changed, and it is still host", name)
		}
	}
}

// Whatever the request and the policy: host comes from an approval of rung host
// that a person gave for exactly this, by the owner's own run of a shell fence.
func TestHostProperty(t *testing.T) {
	s := newScene(t)
	hosts := 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, s)
		if rapid.IntRange(0, 3).Draw(t, "near") > 0 {
			r = in(s.foreign(""), rapid.SampledFrom([]string{"sh", "bash"}).Draw(t, "shell"), "")
			r.By.Role = rapid.SampledFrom([]string{"owner", "owner", "browser", "agent"}).Draw(t, "client")
		}
		given := map[uint64]notebook.Approval{}
		for range rapid.IntRange(0, 3).Draw(t, "approvals") {
			q := r
			if rapid.IntRange(0, 2).Draw(t, "of something else") == 0 {
				q.By = Requester{Role: roleOwner}
				q.Origin = notebook.NewOrigin(append(slices.Clone(q.Origin), drawAuthor(t, []notebook.DeviceID{s.self, s.laptop}))...)
			}
			ask := asked(q)
			ask.Rung = rapid.SampledFrom([]notebook.Rung{notebook.Strict, notebook.Granted, notebook.Host, notebook.Host}).Draw(t, "rung")
			ask.Scope = notebook.ScopeContent
			if p, no := Propose(q, ask); no == nil {
				a, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, r.Now)
				if err != nil {
					t.Fatal(err)
				}
				given[a.ID] = a
			}
		}
		g, _ := Decide(r)
		if g.Rung() != notebook.Host {
			return
		}
		hosts++
		a := given[g.Approval()]
		if a.Rung != notebook.Host || a.Closure != r.Shown || a.For != "owner" || r.By != (Requester{Role: roleOwner}) || r.language() != "sh" {
			t.Fatalf("host by %+v for %v in %s", a, r.By, r.language())
		}
	})
	if hosts == 0 {
		t.Error("none of them was at host: nothing was tried")
	}
}

// A directory, a program and a host are approved as what they are: whatever else
// takes their name is asked about, and the question says so.
func TestApprovalPinsWhatIsOutside(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct{ language, wants string }{
		{"lua", "dir:/a"},
		{"lua", "dir:/b:rw"},
		{"lua", "net:a.b:443"},
		{"sh", "program:/bin/ls"},
		{"sh", "dir:/a"},
		{"python", "dir:/a"},
		{"javascript", "dir:/b:rw"},
		{"wasm", "dir:/a"},
	} {
		for _, r := range []Request{
			s.handed(in(s.local(""), c.language, `{wants="clock `+c.wants+`"}`)),
			s.handed(in(s.foreign(""), c.language, `{wants="clock `+c.wants+`"}`)),
		} {
			if got := r.Reaches(nil); len(got) != 0 {
				t.Errorf("%s of %v: somebody looks at %v before anybody approved it", c.wants, r.Origin, got)
			}
			ask := asked(r)
			if got := r.Reaches(&ask); !slices.Equal(got, []notebook.Capability{notebook.Capability(c.wants)}) {
				t.Errorf("a proposal has to know of %v", got)
			}
			a := give(t, r, forContent)
			if got := r.Reaches(nil); !slices.Equal(got, []notebook.Capability{notebook.Capability(c.wants)}) {
				t.Errorf("with an approval, a decision has to know of %v", got)
			}
			g, no := Decide(r)
			if no != nil || g.Approval() != a.ID {
				t.Fatalf("%s: %v", c.wants, no)
			}
			i := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Capability == notebook.Capability(c.wants) })
			j := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Capability == notebook.CapClock })
			if in := g.Inputs()[slices.IndexFunc(g.Inputs(), func(in Input) bool { return in.Capability.Outside() })]; string(in.Value) != string(r.Inputs[i].Value) {
				t.Errorf("the grant hands in %q", in.Value)
			}
			with := func(change func(*Input)) Request {
				q := r
				q.Inputs = slices.Clone(r.Inputs)
				change(&q.Inputs[i])
				return q
			}
			if _, no := Decide(with(func(in *Input) { in.Value = []byte("another") })); no == nil || !no.Ask || !strings.Contains(no.Reason, c.wants+" is not what it was when it was approved") {
				t.Errorf("%s is another one: %v", c.wants, no)
			}
			for name, change := range map[string]func(*Input){
				"nothing known":   func(in *Input) { in.Value = nil },
				"another's value": func(in *Input) { in.Value = r.Inputs[j].Value },
				"gone":            func(in *Input) { in.Refusal = &Refusal{Code: notebook.CodeNotFound, Reason: "/a is not there"} },
				"another name":    func(in *Input) { in.Capability = "dir:/c" },
			} {
				if g, no := Decide(with(change)); no == nil {
					t.Errorf("%s, %s: %v by %s", c.wants, name, g.Rung(), g.Rule())
				}
			}
			// A clock has another value at each run, and that is what was approved.
			q := r
			q.Inputs = slices.Clone(r.Inputs)
			q.Inputs[j].Value = []byte("2")
			if _, no := Decide(q); no != nil {
				t.Errorf("a later time: %v", no)
			}
		}
	}
}

// What cannot be had is refused with the reason, also to who would approve it.
func TestWhatIsOutsideMayNotBeThere(t *testing.T) {
	s := newScene(t)
	r := s.handed(in(s.local(""), "lua", `{wants="dir:/a"}`))
	r.Policy = policyOf(t, "[local]\ncapabilities = [\"dir:/a\"]")
	if got := r.Reaches(nil); !slices.Equal(got, []notebook.Capability{"dir:/a"}) {
		t.Errorf("policy grants it, and a decision has to know of %v", got)
	}
	if _, no := Decide(r); no != nil {
		t.Fatal(no)
	}
	theirs := r
	theirs.Origin = notebook.NewOrigin(s.typed(s.laptop))
	if got := theirs.Reaches(nil); len(got) != 0 {
		t.Errorf("another's fence that names it makes somebody look at %v", got)
	}
	i := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Capability == "dir:/a" })
	gone := &Refusal{Code: notebook.CodeNotFound, Reason: "/a is not there", Hint: "make it"}
	r.Inputs[i].Refusal = gone
	_, no := Decide(r)
	if no == nil || no.Ask || no.Code != notebook.CodeNotFound || no.Reason != "the fence wants dir:/a, and /a is not there" || no.Hint != "make it" {
		t.Errorf("%+v", no)
	}
	if _, no = Propose(r, asked(r)); no == nil || !strings.Contains(no.Reason, "is not there") {
		t.Errorf("%v", no)
	}
	if gone.Reason != "/a is not there" {
		t.Error("the reason of the input changed")
	}
	agent := r
	agent.By = Requester{Role: roleAgent, Name: "clerk"}
	if got := agent.Reaches(nil); len(got) != 0 {
		t.Errorf("an agent's run makes somebody look at %v", got)
	}
}
