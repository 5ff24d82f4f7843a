package trust

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

// store keeps what was flushed.
type store map[string][]byte

func (s store) keep(records []Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(s, string(r.Key))
		} else {
			s[string(r.Key)] = r.Value
		}
	}
}

func (s store) all() iter.Seq2[[]byte, []byte] { return sorted(s) }

func asked(r Request) notebook.ProposalRequest {
	return notebook.ProposalRequest{FenceRef: notebook.FenceRef{Page: r.Page, Fence: r.Fence, Shown: r.Shown}, Args: r.Args}
}

func propose(t tester, r Request, edit func(*notebook.ProposalRequest)) Proposal {
	t.Helper()
	ask := asked(r)
	if edit != nil {
		edit(&ask)
	}
	p, no := Propose(r, ask)
	if no != nil {
		t.Fatalf("propose: %v", no)
	}
	return p
}

func give(t tester, r Request, edit func(*notebook.ProposalRequest)) notebook.Approval {
	t.Helper()
	p := propose(t, r, edit)
	a, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, r.Now)
	if err != nil {
		t.Fatalf("give: %v", err)
	}
	return a
}

func giveOne(a *Approvals, p Proposal, shown notebook.Hash, present Present, now time.Time) (notebook.Approval, error) {
	all, err := a.Give([]Proposal{p}, []notebook.Hash{shown}, present, now)
	if err != nil {
		return notebook.Approval{}, err
	}
	return all[0], nil
}

func forContent(ask *notebook.ProposalRequest) { ask.Scope = notebook.ScopeContent }

const wantsPage = `lua {wants="page"}`

func TestApprovalOfAForeignFence(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	if _, no := Decide(r); no == nil || !no.Ask {
		t.Fatal("runs without approval")
	}
	a := give(t, r, nil)
	g, no := Decide(r)
	if no != nil || g.Rung() != notebook.Granted || g.Approval() != a.ID || len(g.Inputs()) != 1 || g.Local() {
		t.Fatalf("%+v, %v", g, no)
	}
	if err := r.Approvals.Spend(a.ID); err != nil {
		t.Fatal(err)
	}
	if _, no := Decide(r); no == nil {
		t.Error("once was twice")
	}
	if err := r.Approvals.Spend(a.ID); err == nil {
		t.Error("spent twice")
	}
	// The page's text is accepted from anyone, as the approval names it.
	b := give(t, r, forContent)
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop), s.typed(notebook.DeviceID{7}))
	r.Inputs[0].Value = []byte("another text")
	for range 2 {
		if g, no := Decide(r); no != nil || g.Approval() != b.ID {
			t.Fatal(no)
		}
		if err := r.Approvals.Spend(b.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// Everything that an approval pins, changed one at a time: it counts no more.
func TestApprovalPins(t *testing.T) {
	s := newScene(t)
	base := func() Request {
		r := s.foreign(`lua {wants="page" args="a=0 b=0"}`)
		r.Args = map[string]string{"a": "1"}
		return r
	}
	for name, change := range map[string]func(*Request){
		"notebook":            func(r *Request) { r.Notebook[0] ^= 1 },
		"page":                func(r *Request) { r.Page[0] ^= 1 },
		"fence":               func(r *Request) { r.Fence[0] ^= 1 },
		"code":                func(r *Request) { r.Closure[0].Code += " " },
		"code, one bit":       func(r *Request) { r.Closure[0].Code = "return 0\n" },
		"info string":         func(r *Request) { r.Closure[0].Info += " " },
		"delimiter":           func(r *Request) { r.Closure[0].Delimiter = "~~~" },
		"engine":              func(r *Request) { r.Engine[0] ^= 1 },
		"argument":            func(r *Request) { r.Args = map[string]string{"a": "2"} },
		"one argument more":   func(r *Request) { r.Args = map[string]string{"a": "1", "b": ""} },
		"no arguments":        func(r *Request) { r.Args = nil },
		"limit of time":       func(r *Request) { r.Policy = policyOf(t, "[limits]\ntime=\"6s\"") },
		"limit of memory":     func(r *Request) { r.Policy = policyOf(t, "[limits]\nmemory=\"129 MiB\"") },
		"limit of output":     func(r *Request) { r.Policy = policyOf(t, "[limits]\noutput=\"63 KiB\"") },
		"limit of source":     func(r *Request) { r.Policy = policyOf(t, "[limits]\nsource=\"63 KiB\"") },
		"one author more":     func(r *Request) { r.Origin = notebook.NewOrigin(s.typed(s.laptop), s.typed(s.self)) },
		"another author":      func(r *Request) { r.Origin = notebook.NewOrigin(s.typed(notebook.DeviceID{8})) },
		"author's class":      func(r *Request) { r.Origin[0].Class, r.Origin[0].Label = notebook.Import, "x" },
		"not closed any more": func(r *Request) { r.Closed = false },
		"recorded as own":     func(r *Request) { r.Own = true },
		"another requester":   func(r *Request) { r.By = Requester{Role: roleAgent, Name: "clerk"} },
		"author's label":      func(r *Request) { r.Origin[0].Class, r.Origin[0].Label = notebook.Agent, "y" },
		"moved now": func(r *Request) {
			r.Origin[0] = notebook.Author{Device: s.self, Class: notebook.Moved, Source: notebook.Source{Device: s.laptop, Class: notebook.Typed}}
		},
		"the page cannot be had": func(r *Request) { r.Inputs = r.Inputs[1:] },
		"policy refuses now":     func(r *Request) { r.Policy = policyOf(t, "[foreign]\nlua=\"refuse\"") },
		"another set of approvals": func(r *Request) {
			r.Approvals = NewApprovals()
		},
	} {
		r := base()
		a := give(t, r, forContent)
		if g, no := Decide(r); no != nil || g.Approval() != a.ID {
			t.Fatalf("%s: before the change: %v", name, no)
		}
		change(&r)
		r.Shown = r.Closure.Hash()
		if g, no := Decide(r); no == nil {
			t.Errorf("%s: still runs %v by %s", name, g.Rung(), g.Rule())
		}
	}
	r := base()
	give(t, r, forContent)
	r.Policy = policyOf(t, "# another file, the same limits\n")
	if _, no := Decide(r); no != nil {
		t.Errorf("what an approval does not pin changed: %v", no)
	}
}

// Every field of the pins changes the digest, also those that no request can change alone.
func TestDigestCoversEveryPin(t *testing.T) {
	base := func() *pins {
		return &pins{
			closure: notebook.Closure{{Delimiter: "```", Language: "lua", Info: "lua", Code: "1"}, {Code: "2"}},
			rung:    notebook.Granted, capabilities: []notebook.Capability{"clock", "page"}, identities: [][]byte{[]byte("a"), []byte("b")},
			args: map[string]string{"a": "b", "c": "d"}, limits: notebook.DefaultLimits, requester: "owner",
			origin:   notebook.Origin{{Device: notebook.DeviceID{1}, Class: notebook.Moved, Source: notebook.Source{Device: notebook.DeviceID{2}, Class: notebook.Agent, Label: "x"}}},
			included: []Included{{Page: notebook.PageID{7}, Fence: notebook.FenceID{8}, Origin: notebook.NewOrigin(notebook.Author{Device: notebook.DeviceID{1}, Class: notebook.Typed})}},
			scope:    notebook.ScopeOnce, expires: 5,
		}
	}
	changes := map[string]func(*pins){
		"notebook":              func(p *pins) { p.notebook[31] = 1 },
		"page":                  func(p *pins) { p.page[15] = 1 },
		"fence":                 func(p *pins) { p.fence[15] = 1 },
		"first part":            func(p *pins) { p.closure[0].Code = "x" },
		"second part":           func(p *pins) { p.closure[1].Code = "x" },
		"language":              func(p *pins) { p.closure[0].Language = "sh" },
		"info string":           func(p *pins) { p.closure[0].Info = "lua " },
		"delimiter":             func(p *pins) { p.closure[0].Delimiter = "````" },
		"order of parts":        func(p *pins) { slices.Reverse(p.closure) },
		"one part less":         func(p *pins) { p.closure = p.closure[:1] },
		"engine":                func(p *pins) { p.engine[0] = 1 },
		"rung":                  func(p *pins) { p.rung = notebook.Host },
		"capabilities":          func(p *pins) { p.capabilities = p.capabilities[:1] },
		"an identity":           func(p *pins) { p.identities[1] = []byte("x") },
		"identities run over":   func(p *pins) { p.identities = [][]byte{[]byte("ab"), nil} },
		"one identity less":     func(p *pins) { p.identities = p.identities[:1] },
		"capabilities run over": func(p *pins) { p.capabilities = []notebook.Capability{"clockpage"} },
		"an argument":           func(p *pins) { p.args["a"] = "x" },
		"arguments run over":    func(p *pins) { p.args = map[string]string{"a": "bcd"} },
		"any arguments":         func(p *pins) { p.anyArgs, p.args = true, nil },
		"time":                  func(p *pins) { p.limits.Time++ },
		"memory":                func(p *pins) { p.limits.Memory++ },
		"output":                func(p *pins) { p.limits.Output++ },
		"source":                func(p *pins) { p.limits.Source++ },
		"requester":             func(p *pins) { p.requester = "agent:owner" },
		"requester's token":     func(p *pins) { p.client = "another" },
		"author":                func(p *pins) { p.origin[0].Device[0] = 9 },
		"class":                 func(p *pins) { p.origin[0].Class = notebook.Typed },
		"label":                 func(p *pins) { p.origin[0].Label = "y" },
		"source device":         func(p *pins) { p.origin[0].Source.Device[0] = 9 },
		"source class":          func(p *pins) { p.origin[0].Source.Class = notebook.Import },
		"source label":          func(p *pins) { p.origin[0].Source.Label = "y" },
		"one author more":       func(p *pins) { p.origin = append(p.origin, notebook.Author{}) },
		"own":                   func(p *pins) { p.own = true },
		"closed":                func(p *pins) { p.closed = true },
		"an included page":      func(p *pins) { p.included[0].Page[0]++ },
		"an included fence":     func(p *pins) { p.included[0].Fence[0]++ },
		"an included author":    func(p *pins) { p.included[0].Origin[0].Label = "x" },
		"an included own":       func(p *pins) { p.included[0].Own = true },
		"an included closed":    func(p *pins) { p.included[0].Closed = true },
		"one included less":     func(p *pins) { p.included = nil },
		"one included more":     func(p *pins) { p.included = append(p.included, Included{}) },
		"authors change places": func(p *pins) { p.origin, p.included[0].Origin = p.included[0].Origin, p.origin },
		"scope":                 func(p *pins) { p.scope = notebook.ScopeContent },
		"expiry":                func(p *pins) { p.expires = 0 },
	}
	seen := map[notebook.Hash]string{base().digest(): "nothing"}
	for name, change := range changes {
		p := base()
		change(p)
		d := p.digest()
		if other, twice := seen[d]; twice {
			t.Errorf("changing %s gives the same digest as changing %s", name, other)
		}
		seen[d] = name
	}
	fields := reflect.TypeFor[pins]().NumField()
	if fields != 19 {
		t.Errorf("pins have %d fields: has each a change above?", fields)
	}
}

func TestApprovalNeedsWhatWasShownAndAPerson(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	p := propose(t, r, nil)
	other := p.Digest()
	other[0] ^= 1
	for _, c := range []struct {
		name    string
		p       Proposal
		shown   notebook.Hash
		present Present
		want    notebook.Code
	}{
		{"nobody there", p, p.Digest(), Present{}, notebook.CodeRefused},
		{"something else shown", p, other, Present{valid: true}, notebook.CodeStale},
		{"nothing shown", p, notebook.Hash{}, Present{valid: true}, notebook.CodeStale},
		{"no proposal", Proposal{}, notebook.Hash{}, Present{valid: true}, notebook.CodeInvalid},
	} {
		if _, err := giveOne(r.Approvals, c.p, c.shown, c.present, noon); code(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, no := Decide(r); no == nil {
		t.Error("one of them counted")
	}
	if _, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, noon); err != nil {
		t.Error(err)
	}
}

func TestApprovalExpires(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	a := give(t, r, func(ask *notebook.ProposalRequest) {
		ask.Scope, ask.Expires = notebook.ScopeContent, noon.Add(time.Hour)
	})
	r.Now = noon.Add(59 * time.Minute)
	if g, no := Decide(r); no != nil || g.Approval() != a.ID {
		t.Fatal(no)
	}
	r.Now = noon.Add(time.Hour)
	if _, no := Decide(r); no == nil {
		t.Error("counts when it has expired")
	}
	if got := r.Approvals.Of(r.Page, r.Fence, r.Now); len(got) != 1 || got[0].Void != "expired" {
		t.Errorf("%+v", got)
	}
	// A clock that is turned back revives nothing, also after a restart.
	r.Approvals.See(noon.Add(2 * time.Hour))
	kept := store{}
	kept.keep(r.Approvals.Flush())
	r.Approvals = must(OpenApprovals(kept.all()))
	r.Now = noon
	if _, no := Decide(r); no == nil {
		t.Error("revived by a clock turned back")
	}
	ask := asked(r)
	ask.Expires = noon.Add(time.Hour)
	if _, no := Propose(r, ask); no == nil || no.Code != notebook.CodeInvalid {
		t.Errorf("proposed what has expired: %v", no)
	}
}

func TestApprovalsEnd(t *testing.T) {
	s := newScene(t)
	for name, end := range map[string]func(*Approvals, uint64){
		"revoked":         func(a *Approvals, id uint64) { must(0, a.Revoke(id)) },
		"device":          func(a *Approvals, id uint64) { a.VoidDevice(s.laptop, "quarantined") },
		"owner reset":     func(a *Approvals, id uint64) { a.VoidAll("the PIN was lost") },
		"after a restart": func(a *Approvals, id uint64) { must(0, a.Revoke(id)); *a = *reopened(a) },
	} {
		r := s.foreign(wantsPage)
		a := give(t, r, forContent)
		if _, no := Decide(r); no != nil {
			t.Fatal(no)
		}
		end(r.Approvals, a.ID)
		if _, no := Decide(r); no == nil {
			t.Errorf("%s: still counts", name)
		}
		if got := r.Approvals.Of(r.Page, r.Fence, noon); len(got) != 1 || got[0].Void == "" {
			t.Errorf("%s: listed as %+v", name, got)
		}
		if err := r.Approvals.Spend(a.ID); err == nil {
			t.Errorf("%s: spent", name)
		}
	}
	r := s.foreign(wantsPage)
	give(t, r, forContent)
	if ids := r.Approvals.VoidDevice(notebook.DeviceID{0x77}, "x"); len(ids) != 0 {
		t.Error("voided for a device that it does not rest on")
	}
	if _, no := Decide(r); no != nil {
		t.Error(no)
	}
	// Moved text rests on where it came from.
	r = s.local(wantsPage)
	r.Origin = notebook.NewOrigin(notebook.Author{Device: s.self, Class: notebook.Moved, Source: notebook.Source{Device: s.laptop, Class: notebook.Typed}})
	give(t, r, forContent)
	if ids := r.Approvals.VoidDevice(s.laptop, "x"); len(ids) != 1 {
		t.Error("moved text hides its device")
	}
	if err := r.Approvals.Revoke(99); code(err) != notebook.CodeNotFound {
		t.Error(err)
	}
	if err := r.Approvals.Spend(99); code(err) != notebook.CodeNotFound {
		t.Error(err)
	}
}

func reopened(a *Approvals) *Approvals {
	for id := range a.byID {
		a.changed[id] = true
	}
	a.moved = true
	kept := store{}
	kept.keep(a.Flush())
	return must(OpenApprovals(kept.all()))
}

func TestApprovalsAreKept(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	kept := store{}
	first := give(t, r, nil)
	second := give(t, r, forContent)
	kept.keep(r.Approvals.Flush())
	if err := r.Approvals.Spend(first.ID); err != nil {
		t.Fatal(err)
	}
	kept.keep(r.Approvals.Flush())
	if n := len(r.Approvals.Flush()); n != 0 {
		t.Errorf("flushed %d records of nothing", n)
	}
	again := must(OpenApprovals(kept.all()))
	if !reflect.DeepEqual(again.Of(r.Page, r.Fence, noon), r.Approvals.Of(r.Page, r.Fence, noon)) {
		t.Errorf("%+v", again.Of(r.Page, r.Fence, noon))
	}
	r.Approvals = again
	if g, no := Decide(r); no != nil || g.Approval() != second.ID {
		t.Errorf("after reopening: %v", no)
	}
	if third := give(t, r, nil); third.ID != second.ID+1 {
		t.Errorf("number %d is given again", third.ID)
	}
	for name, bad := range map[string]store{
		"unknown key": {"zz": {1}}, "broken": {"a12345678": {1, 2}}, "newer": {"t": {9}}, "empty": {"t": {}},
	} {
		if _, err := OpenApprovals(bad.all()); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestApprovalsAreBounded(t *testing.T) {
	s := newScene(t)
	r := s.foreign(wantsPage)
	for range maxApprovals {
		give(t, r, forContent)
	}
	p := propose(t, r, nil)
	if _, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, noon); code(err) != notebook.CodeExhausted {
		t.Fatalf("one more than there may be: %v", err)
	}
	if err := r.Approvals.Revoke(7); err != nil {
		t.Fatal(err)
	}
	if _, err := giveOne(r.Approvals, p, p.Digest(), Present{valid: true}, noon); err != nil {
		t.Fatal(err)
	}
	if r.Approvals.byID[7] != nil || len(r.Approvals.byID) != maxApprovals {
		t.Error("made no room")
	}
}

// An agent asks, the owner approves: the owner runs what was approved, the
// agent no more than strict, another agent nothing.
func TestApprovalForAnAgent(t *testing.T) {
	s := newScene(t)
	clerk, other := Requester{Role: roleAgent, Name: "clerk"}, Requester{Role: roleAgent, Name: "other"}
	again := Requester{Role: roleAgent, Name: "clerk", Client: "of a newer token"}
	by := func(r Request, who Requester) Request { r.By = who; return r }

	r := s.foreign(wantsPage)
	give(t, by(r, clerk), forContent)
	if _, no := Decide(by(r, clerk)); no == nil {
		t.Error("the agent runs above strict")
	}
	if g, no := Decide(r); no != nil || g.Rung() != notebook.Granted {
		t.Errorf("the owner does not run it: %v", no)
	}

	r = s.foreign("lua")
	r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"")
	give(t, by(r, clerk), forContent)
	if g, no := Decide(by(r, clerk)); no != nil || g.Rung() != notebook.Strict {
		t.Errorf("the agent does not run what was approved for it: %v", no)
	}
	if _, no := Decide(by(r, other)); no == nil {
		t.Error("another agent runs it")
	}
	if _, no := Decide(by(r, again)); no == nil {
		t.Error("a new agent of the old one's name runs what was approved for that")
	}
	if voided := r.Approvals.VoidRequester(again, "token gone"); len(voided) != 0 {
		t.Errorf("voided %v of another's", voided)
	}
	if voided := r.Approvals.VoidRequester(clerk, "token gone"); len(voided) != 1 {
		t.Errorf("voided %v", voided)
	}
	if _, no := Decide(by(r, clerk)); no == nil {
		t.Error("an agent without a token runs on")
	}
	r = s.foreign("lua")
	r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"")
	give(t, r, forContent)
	if _, no := Decide(by(r, clerk)); no == nil {
		t.Error("an agent runs what was approved for the owner")
	}
}

func TestProposals(t *testing.T) {
	s := newScene(t)
	ask := func(f func(*notebook.ProposalRequest)) func(*notebook.ProposalRequest) { return f }
	for _, c := range []struct {
		name   string
		r      Request
		change func(*Request)
		edit   func(*notebook.ProposalRequest)
		want   notebook.Code
		words  string
	}{
		{"another page", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Page[0] ^= 1 }), notebook.CodeInvalid, "another fence"},
		{"another fence", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Fence[0] ^= 1 }), notebook.CodeInvalid, "another fence"},
		{"another hash", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Shown[0] ^= 1 }), notebook.CodeStale, "shown"},
		{"policy refuses", s.foreign(wantsPage), func(r *Request) { r.Policy = policyOf(t, "[foreign]\nlua=\"refuse\"") }, nil, notebook.CodeRefused, "refuses"},
		{"malformed", s.foreign("lua {"), nil, nil, notebook.CodeRefused, "brace"},
		{"includes", s.foreign("lua {include=x}"), nil, nil, notebook.CodeRefused, "includes"},
		{"host", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Rung = notebook.Host }), notebook.CodeInvalid, "own powers"},
		{"unknown rung", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Rung = 9 }), notebook.CodeInvalid, "rung 9"},
		{"unknown scope", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Scope = "ever" }), notebook.CodeInvalid, "scope"},
		{"unknown capability", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Capabilities = []notebook.Capability{"page", "shell"} }), notebook.CodeInvalid, "shell"},
		{"less than it wants", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Capabilities = []notebook.Capability{"clock"} }), notebook.CodeInvalid, "wants page"},
		{"strict for what wants more", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) { a.Rung = notebook.Strict }), notebook.CodeInvalid, "wants page"},
		{"strict with something", s.foreign("lua"), nil, ask(func(a *notebook.ProposalRequest) {
			a.Rung, a.Capabilities = notebook.Strict, []notebook.Capability{"clock"}
		}), notebook.CodeInvalid, "strict"},
		{"nothing to approve", s.foreign("lua"), nil, nil, notebook.CodeInvalid, "without approval"},
		{"these and any args", s.foreign(wantsPage), nil, ask(func(a *notebook.ProposalRequest) {
			a.AnyArgs, a.Args = true, map[string]string{"a": "b"}
		}), notebook.CodeInvalid, "args"},
		{"cannot be had", s.foreign(wantsPage), func(r *Request) { r.Inputs = nil }, nil, notebook.CodeUnavailable, "page"},
	} {
		r := c.r
		if c.change != nil {
			c.change(&r)
		}
		a := asked(r)
		if c.edit != nil {
			c.edit(&a)
		}
		if p, no := Propose(r, a); no == nil || no.Code != c.want || !strings.Contains(no.Error(), c.words) || !p.Digest().IsZero() {
			t.Errorf("%s: %v", c.name, no)
		}
	}

	r := s.foreign(wantsPage)
	r.Closure[0].Code = "return 1 -- \u202e\n"
	r.Shown = r.Closure.Hash()
	r.Closed = false
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop))
	p := propose(t, r, func(a *notebook.ProposalRequest) { a.Scope, a.AnyArgs = notebook.ScopeContent, true })
	view := p.View()
	notes := strings.Join(view.Notes, "; ")
	for _, want := range []string{"invisible", "closing line", "whoever wrote", "page holds text by device:laptop", "any arguments", "until the fence changes"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
	if view.Rung != notebook.Granted || !slices.Equal(view.Capabilities, []notebook.Capability{"page"}) || view.Standing != "device:laptop structure" ||
		!slices.Equal(view.Origin, []string{"device:laptop", "structure"}) || view.Previous != "" {
		t.Errorf("%+v", view)
	}
	if q := propose(t, s.foreign("lua"), func(a *notebook.ProposalRequest) { a.Rung = notebook.Granted }); q.View().Scope != notebook.ScopeOnce {
		t.Error("the default scope is not once")
	}
	// The next proposal shows what was approved before.
	give(t, r, nil)
	r.Closure[0].Code = "return 2\n"
	r.Shown = r.Closure.Hash()
	if got := propose(t, r, nil).View().Previous; got != "```"+wantsPage+"\nreturn 1 -- \u202e\n```\n" {
		t.Errorf("previous %q", got)
	}
}

func TestAnyArgs(t *testing.T) {
	s := newScene(t)
	r := s.foreign(`lua {wants="page" args="a= b="}`)
	give(t, r, func(a *notebook.ProposalRequest) { a.Scope, a.AnyArgs = notebook.ScopeContent, true })
	for _, args := range []map[string]string{nil, {"a": "1"}, {"b": "2"}} {
		r.Args = args
		if g, no := Decide(r); no != nil || len(g.Args()) != 2 {
			t.Errorf("%v: %v", args, no)
		}
	}
}
