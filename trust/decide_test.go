package trust

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"noted/notebook"
)

var noon = time.UnixMilli(1_800_000_000_000)

// scene is a device with a fence, whose requests a test changes one thing of.
type scene struct {
	self, laptop notebook.DeviceID
	roster       *Roster
}

func newScene(t tester) scene {
	self, laptop, _, roster := tableRoster(t)
	return scene{self, laptop, roster}
}

func (s scene) typed(d notebook.DeviceID) notebook.Author {
	return notebook.Author{Device: d, Class: notebook.Typed}
}

// local is a request by the owner to run a fence that this person typed here.
func (s scene) local(info string) Request {
	r := Request{
		Notebook: notebook.NotebookID{1}, Self: s.self, Roster: s.roster,
		Page: notebook.PageID{2}, Fence: notebook.FenceID{3},
		Closure: notebook.Closure{{Delimiter: "```", Language: "lua", Info: info, Code: "return 1\n"}},
		Origin:  notebook.NewOrigin(s.typed(s.self)), Own: true, Closed: true,
		Engine: notebook.Hash{4}, By: Requester{Role: roleOwner}, Approvals: NewApprovals(), Now: noon,
		Inputs: []Input{
			{Capability: notebook.CapPage, Value: []byte("text"), Authors: notebook.NewOrigin(s.typed(s.self))},
			{Capability: notebook.CapClock, Value: []byte("1")},
			{Capability: notebook.CapSeed, Value: []byte("2")},
		},
	}
	if info == "query" {
		r.Closure[0].Language, r.Closure[0].Code = info, "#project\n"
	}
	r.Shown = r.Closure.Hash()
	return r
}

// foreign is the same fence by another device.
func (s scene) foreign(info string) Request {
	r := s.local(info)
	r.Origin, r.Own = notebook.NewOrigin(s.typed(s.laptop)), false
	return r
}

func policyOf(t tester, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecide(t *testing.T) {
	s := newScene(t)
	const wants = `lua {wants="page"}`
	agent := Requester{Role: roleAgent, Name: "clerk"}
	for _, c := range []struct {
		name   string
		r      Request
		change func(*Request)
		rung   notebook.Rung
		caps   string
		code   notebook.Code // of a refusal
		ask    bool
		words  string // in reason, hint or rule
	}{
		{name: "typed here", r: s.local("lua"), rung: notebook.Granted, caps: "args clock page seed", words: `local.lua = "granted" (default)`},
		{name: "typed here, wants less", r: s.local(`lua {wants="clock seed"}`), rung: notebook.Granted, caps: "clock seed"},
		{name: "typed here, by the browser", r: s.local("lua"), change: func(r *Request) { r.By.Role = roleBrowser }, rung: notebook.Granted, caps: "args clock page seed"},
		{name: "typed here, policy strict", r: s.local("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[local]\nlua=\"strict\"") }, rung: notebook.Strict, words: "policy.toml:2"},
		{name: "typed here, policy strict, wants more", r: s.local(wants), change: func(r *Request) { r.Policy = policyOf(t, "[local]\nlua=\"strict\"") }, code: notebook.CodeRefused, ask: true, words: "strict only"},
		{name: "typed here, policy asks", r: s.local("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[local]\nlua=\"ask\"") }, code: notebook.CodeRefused, ask: true, words: "asks"},
		{name: "typed here, policy refuses", r: s.local("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[local]\nlua=\"refuse\"") }, code: notebook.CodeRefused, words: "refuses"},
		{name: "typed here, wants what policy does not grant", r: s.local(wants), change: func(r *Request) { r.Policy = policyOf(t, "[local]\ncapabilities=[\"clock\"]") }, code: notebook.CodeRefused, ask: true, words: "page"},
		{name: "typed here, policy grants one thing", r: s.local("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[local]\ncapabilities=[\"clock\"]") }, rung: notebook.Granted, caps: "clock"},
		{name: "typed here, wants what cannot be had", r: s.local(wants), change: func(r *Request) { r.Inputs = r.Inputs[1:] }, code: notebook.CodeUnavailable, words: "page"},
		{name: "typed here, page cannot be had", r: s.local("lua"), change: func(r *Request) { r.Inputs = r.Inputs[1:] }, rung: notebook.Granted, caps: "args clock seed"},
		{name: "typed here, the page holds text of others", r: s.local("lua"), change: func(r *Request) { r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop)) }, rung: notebook.Granted, caps: "args clock seed"},
		{name: "typed here, wants a page with text of others", r: s.local(wants), change: func(r *Request) {
			r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.self), s.typed(s.laptop))
		}, code: notebook.CodeRefused, ask: true, words: "holds text by device:laptop"},
		{name: "typed here, wants a page with text of one that policy refuses", r: s.local(wants), change: func(r *Request) {
			r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop))
			r.Policy = policyOf(t, "[device."+s.laptop.String()+"]\nlua=\"refuse\"")
		}, code: notebook.CodeRefused, words: "refuses"},

		{name: "by another device", r: s.foreign("lua"), rung: notebook.Strict, words: `foreign.lua = "strict" (default)`},
		{name: "by another device, wants more", r: s.foreign(wants), code: notebook.CodeRefused, ask: true, words: "noted fence approve"},
		{name: "by another device, policy asks", r: s.foreign("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"") }, code: notebook.CodeRefused, ask: true, words: "device:laptop"},
		{name: "by another device that policy refuses", r: s.foreign("lua"), change: func(r *Request) {
			r.Policy = policyOf(t, "[device."+s.laptop.String()+"]\nlua=\"refuse\"")
		}, code: notebook.CodeRefused, words: "refuses"},
		{name: "by a trusted and an unknown device: the least", r: s.foreign("lua"), change: func(r *Request) {
			r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"\n[device."+s.laptop.String()+"]\nlua=\"strict\"")
			r.Origin = notebook.NewOrigin(s.typed(s.laptop), s.typed(notebook.DeviceID{9}))
		}, code: notebook.CodeRefused, ask: true, words: "asks"},
		{name: "by the trusted device alone", r: s.foreign("lua"), change: func(r *Request) {
			r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"\n[device."+s.laptop.String()+"]\nlua=\"strict\"")
		}, rung: notebook.Strict},
		{name: "an agent's text does not count as the device's", r: s.foreign("lua"), change: func(r *Request) {
			r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"\n[device."+s.self.String()+"]\nlua=\"strict\"")
			r.Origin = notebook.NewOrigin(notebook.Author{Device: s.self, Class: notebook.Agent, Label: "x"})
		}, code: notebook.CodeRefused, ask: true},
		{name: "own text is held back more than that of others", r: s.foreign("lua"), change: func(r *Request) { r.Policy = policyOf(t, "[local]\nlua=\"ask\"") }, code: notebook.CodeRefused, ask: true, words: "policy.toml:2"},
		{name: "by a trusted device, with own text that is no own fence", r: s.foreign("lua"), change: func(r *Request) {
			r.Policy = policyOf(t, "[foreign]\nlua=\"ask\"\n[device."+s.laptop.String()+"]\nlua=\"strict\"")
			r.Origin = notebook.NewOrigin(s.typed(s.laptop), s.typed(s.self))
		}, code: notebook.CodeRefused, ask: true, words: "policy.toml:2"},
		{name: "not recorded as typed", r: s.local("lua"), change: func(r *Request) { r.Own = false }, rung: notebook.Strict},
		{name: "not closed", r: s.local("lua"), change: func(r *Request) { r.Closed = false }, rung: notebook.Strict},
		{name: "nobody's", r: s.local("lua"), change: func(r *Request) { r.Origin = nil }, rung: notebook.Strict},

		{name: "an agent runs what was typed here", r: s.local("lua"), change: func(r *Request) { r.By = agent }, rung: notebook.Strict},
		{name: "an agent runs what wants more", r: s.local(wants), change: func(r *Request) { r.By = agent }, code: notebook.CodeRefused, ask: true, words: "agent"},
		{name: "a viewer", r: s.local("lua"), change: func(r *Request) { r.By.Role = "viewer" }, code: notebook.CodeDenied},
		{name: "no role", r: s.local("lua"), change: func(r *Request) { r.By.Role = "" }, code: notebook.CodeDenied},
		{name: "a role that looks like the owner", r: s.local("lua"), change: func(r *Request) { r.By.Role = "Owner" }, code: notebook.CodeDenied},

		{name: "another hash was shown", r: s.local("lua"), change: func(r *Request) { r.Shown[0] ^= 1 }, code: notebook.CodeStale},
		{name: "no hash was shown", r: s.local("lua"), change: func(r *Request) { r.Shown = notebook.Hash{} }, code: notebook.CodeStale},
		{name: "no fence", r: s.local("lua"), change: func(r *Request) { r.Closure = nil; r.Shown = r.Closure.Hash() }, code: notebook.CodeNotFound},
		{name: "no page", r: s.local("lua"), change: func(r *Request) { r.Page = notebook.PageID{} }, code: notebook.CodeNotFound},
		{name: "malformed words", r: s.local("lua {wants="), code: notebook.CodeRefused, words: "wants"},
		{name: "unknown capability", r: s.local(`lua {wants="shell"}`), code: notebook.CodeRefused, words: "shell"},
		{name: "includes", r: s.local(`lua {include="x#1"}`), code: notebook.CodeRefused, words: "includes"},
		{name: "two parts", r: s.local("lua"), change: func(r *Request) {
			r.Closure = append(r.Closure, r.Closure[0])
			r.Shown = r.Closure.Hash()
		}, code: notebook.CodeRefused, words: "includes"},
		{name: "another language", r: s.local("zsh"), change: func(r *Request) {
			r.Closure[0].Language = "zsh"
			r.Shown = r.Closure.Hash()
		}, code: notebook.CodeRefused, words: `no runtime for "zsh"`},
		{name: "no language", r: s.local(""), change: func(r *Request) {
			r.Closure[0].Language = ""
			r.Shown = r.Closure.Hash()
		}, code: notebook.CodeRefused, words: "no runtime"},
		{name: "too large", r: s.local("lua"), change: func(r *Request) {
			r.Closure[0].Code = strings.Repeat("x", notebook.MaxClosureBytes)
			r.Shown = r.Closure.Hash()
		}, code: notebook.CodeExhausted},
		{name: "too large for a module", r: s.local("wasm"), change: func(r *Request) {
			r.Closure[0].Code = strings.Repeat("A", notebook.MaxModuleText)
			r.Shown = r.Closure.Hash()
		}, code: notebook.CodeExhausted},
		{name: "too many args", r: s.local("lua"), change: func(r *Request) {
			r.Args = map[string]string{"x": strings.Repeat("x", maxArgsBytes)}
		}, code: notebook.CodeExhausted},
		{name: "args that are no text", r: s.local("lua"), change: func(r *Request) { r.Args = map[string]string{"x": "\xff"} }, code: notebook.CodeInvalid},
		{name: "an arg without name", r: s.local("lua"), change: func(r *Request) { r.Args = map[string]string{"": "x"} }, code: notebook.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r
			if c.change != nil {
				c.change(&r)
			}
			g, no := Decide(r)
			if no != nil {
				if g.Valid() {
					t.Error("a refusal with a grant")
				}
				if no.Code != c.code || no.Ask != c.ask || c.rung != 0 {
					t.Errorf("refused: %s, ask %v: %v", no.Code, no.Ask, no)
				}
				if no.Reason == "" || no.Hint == "" {
					t.Errorf("refused without a way out: %+v", no)
				}
				if words := no.Error() + no.Rule; !strings.Contains(words, c.words) {
					t.Errorf("refused with %q, want %q in it", words, c.words)
				}
				var e *notebook.Error
				if !errors.As(no, &e) || e.Code != no.Code || e.Hint != no.Hint {
					t.Errorf("crosses as %v", e)
				}
				return
			}
			if !g.Valid() || c.code != "" {
				t.Fatalf("granted %v", g.Rung())
			}
			if got := strings.Join(names(g.Capabilities()), " "); g.Rung() != c.rung || got != c.caps {
				t.Errorf("granted %v with %q, want %v with %q", g.Rung(), got, c.rung, c.caps)
			}
			if !strings.Contains(g.Rule(), c.words) {
				t.Errorf("by rule %q, want %q in it", g.Rule(), c.words)
			}
			if g.Closure().Hash() != r.Shown || g.Page() != r.Page || g.Fence() != r.Fence || g.Limits() == (notebook.Limits{}) || g.Approval() != 0 {
				t.Errorf("the grant is not of the request: %+v", g)
			}
			for _, in := range g.Inputs() {
				if !slices.Contains(g.Capabilities(), in.Capability) {
					t.Errorf("hands in %s without the capability", in.Capability)
				}
			}
		})
	}
}

func TestZeroGrantIsNone(t *testing.T) {
	if (Grant{}).Valid() {
		t.Error("the zero grant is valid")
	}
}

func TestGrantIsOfItsOwnBytes(t *testing.T) {
	s := newScene(t)
	r := s.local("lua {args=a}")
	r.Args = map[string]string{"a": "b"}
	g, no := Decide(r)
	if no != nil {
		t.Fatal(no)
	}
	r.Closure[0].Code = "os.execute('rm -rf /')"
	r.Args["a"] = "c"
	if g.Closure()[0].Code != "return 1\n" || g.Args()["a"] != "b" {
		t.Error("the grant changed with the request")
	}
	g.Closure()[0].Code = "x"
	g.Args()["a"] = "x"
	g.Capabilities()[0] = "host"
	if g.Closure()[0].Code != "return 1\n" || g.Args()["a"] != "b" || g.Capabilities()[0] == "host" {
		t.Error("the grant can be changed")
	}
}

func wider(a, b Grant) bool {
	if b.Rung() > a.Rung() {
		return true
	}
	return slices.ContainsFunc(b.Capabilities(), func(c notebook.Capability) bool { return !slices.Contains(a.Capabilities(), c) })
}

// drawRequest is any request, most of them near to one that is granted.
func drawRequest(t *rapid.T, s scene) Request {
	devices := []notebook.DeviceID{s.self, s.self, s.laptop, {}, {9}}
	language := rapid.SampledFrom([]string{"lua", "lua", "sh", "bash", "python", "wasm", "query", "zsh"}).Draw(t, "language")
	info := rapid.SampledFrom([]string{
		"", "", `{wants="page"}`, `{wants="page clock args seed"}`, `{wants="query" query="x"}`, `{wants="clock dir:/a"}`, `{wants="dir:/b:rw"}`,
		`{wants="program:/bin/ls page"}`, `{wants="net:a.b:443"}`, `{wants="dir:a"}`, `{args="x="}`, `{args="x=" wants="args page"}`, `{args="y"}`, "{wants", `{include=x}`, `{x=y}`,
	}).Draw(t, "info")
	r := s.handed(in(s.local(""), language, info))
	if rapid.IntRange(0, 9).Draw(t, "odd language") == 0 {
		r.Closure[0].Language = rapid.String().Draw(t, "language")
	}
	if rapid.Bool().Draw(t, "foreign") {
		r.Origin = nil
		for range rapid.IntRange(0, 3).Draw(t, "authors") {
			r.Origin = append(r.Origin, drawAuthor(t, devices))
		}
		r.Origin = notebook.NewOrigin(r.Origin...)
	}
	r.Own, r.Closed = rapid.IntRange(0, 3).Draw(t, "own") > 0, rapid.IntRange(0, 3).Draw(t, "closed") > 0
	r.By = Requester{Role: rapid.SampledFrom([]string{"owner", "owner", "browser", "agent", "agent", "viewer", ""}).Draw(t, "role")}
	if r.By.Role == roleAgent {
		r.By.Name = rapid.SampledFrom([]string{"clerk", "", "owner"}).Draw(t, "name")
	}
	rules := rapid.SampledFrom([]string{"granted", "granted", "strict", "ask", "refuse"})
	foreign := rapid.SampledFrom([]string{"strict", "strict", "ask", "refuse"})
	caps := rapid.SampledFrom([]string{`"page", "clock", "args", "seed"`, `"page", "query", "dir:/a", "dir:/b:rw", "net:a.b:443"`, `"clock"`}).Draw(t, "capabilities")
	table := func(name string, values *rapid.Generator[string]) string {
		text := "[" + name + "]\n"
		for _, l := range Languages {
			text += l + "=\"" + values.Draw(t, name+" "+l) + "\"\n"
		}
		return text
	}
	r.Policy = policyOf(t, table("local", rules)+"capabilities=["+caps+"]\n"+table("foreign", foreign)+table("device."+s.laptop.String(), foreign))
	if rapid.IntRange(0, 5).Draw(t, "few inputs") == 0 {
		r.Inputs = r.Inputs[:rapid.IntRange(0, len(r.Inputs)).Draw(t, "inputs")]
	}
	if len(r.Inputs) > 0 && rapid.Bool().Draw(t, "tainted") {
		r.Inputs[rapid.IntRange(0, len(r.Inputs)-1).Draw(t, "which")].Authors = notebook.NewOrigin(drawAuthor(t, devices))
	}
	r.Shown = r.Closure.Hash()
	if rapid.IntRange(0, 19).Draw(t, "stale") == 0 {
		r.Shown = notebook.Hash{}
	}
	return r
}

func TestMoreForeignAuthorsNeverGrantMore(t *testing.T) {
	s := newScene(t)
	devices := []notebook.DeviceID{s.self, s.laptop, {}, {9}}
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, s)
		before, _ := Decide(r)
		more := r
		author := drawAuthor(t, devices)
		if rapid.Bool().Draw(t, "in the fence") || len(r.Inputs) == 0 {
			if len(r.Origin) == 0 {
				return // nobody's text becomes somebody's: not one author more
			}
			more.Origin = notebook.NewOrigin(append(slices.Clone(r.Origin), author)...)
		} else {
			more.Inputs = slices.Clone(r.Inputs)
			i := rapid.IntRange(0, len(r.Inputs)-1).Draw(t, "input")
			more.Inputs[i].Authors = notebook.NewOrigin(append(slices.Clone(r.Inputs[i].Authors), author)...)
		}
		if after, _ := Decide(more); wider(before, after) {
			t.Fatalf("with %v more, %v %v became %v %v", author, before.Rung(), before.Capabilities(), after.Rung(), after.Capabilities())
		}
	})
}

func TestNoGrantBeyondItsStanding(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, s)
		g, no := Decide(r)
		if g.Valid() == (no != nil) {
			t.Fatal("neither or both of a grant and a refusal")
		}
		if no != nil {
			if no.Reason == "" || no.Code == "" {
				t.Fatalf("no reason: %+v", no)
			}
			return
		}
		local := Stand(s.self, s.roster, r.Origin, r.Own, r.Closed).Local()
		switch {
		case g.Rung() > notebook.Strict && !local:
			t.Fatal("a foreign fence above strict without approval")
		case g.Rung() > notebook.Strict && r.By.Role == roleAgent:
			t.Fatal("an agent above strict")
		case g.Rung() > notebook.Granted:
			t.Fatal("host by policy alone")
		case g.Rung() == notebook.Strict && len(g.Capabilities())+len(g.Inputs()) > 0:
			t.Fatal("strict with something")
		case g.Local() != local:
			t.Fatal("the grant says it is local and the fence is not, or the other way round")
		case g.Approval() != 0:
			t.Fatal("an approval that nobody gave")
		}
		for _, c := range g.Capabilities() {
			if c.Kind() == notebook.CapProgram || c.Kind() == "" || !slices.Contains(doors[r.language()], c.Kind()) {
				t.Fatalf("%s with %s by policy", r.language(), c)
			}
		}
		for _, in := range g.Inputs() {
			if essence(r.language(), in.Capability) {
				continue
			}
			for _, a := range in.Authors {
				if a != s.typed(s.self) && (a.Class != notebook.Moved || a.Source != notebook.Source{Device: s.self, Class: notebook.Typed}) {
					t.Fatalf("%s by %v is handed in", in.Capability, a)
				}
			}
		}
	})
}

// Whatever the request, there is an answer.
func TestDecideIsTotal(t *testing.T) {
	s := newScene(t)
	if g, no := Decide(Request{}); g.Valid() || no == nil {
		t.Error("the empty request is granted")
	}
	if p, no := Propose(Request{}, notebook.ProposalRequest{}); !p.Digest().IsZero() || no == nil {
		t.Error("the empty request can be approved")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Request{
			Self: s.self, Page: notebook.PageID{byte(rapid.IntRange(0, 1).Draw(t, "page"))}, Fence: notebook.FenceID{1},
			By: Requester{Role: rapid.SampledFrom([]string{"owner", "agent", "x"}).Draw(t, "role"), Name: rapid.String().Draw(t, "name")},
		}
		for range rapid.IntRange(0, 2).Draw(t, "parts") {
			r.Closure = append(r.Closure, notebook.Part{
				Language: rapid.OneOf(rapid.Just("lua"), rapid.String()).Draw(t, "language"),
				Info:     "lua " + rapid.OneOf(rapid.String(), rapid.StringMatching(`\{[a-z]+="?[a-z ]*"?\}?`)).Draw(t, "info"), Code: rapid.String().Draw(t, "code"),
			})
		}
		r.Shown = r.Closure.Hash()
		if rapid.Bool().Draw(t, "roster") {
			r.Roster = s.roster
		}
		for range rapid.IntRange(0, 3).Draw(t, "inputs") {
			r.Inputs = append(r.Inputs, Input{Capability: notebook.Capability(rapid.SampledFrom([]string{"page", "clock", "host", ""}).Draw(t, "capability"))})
		}
		r.Args = rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "args")
		r.Origin = append(r.Origin, drawAuthor(t, []notebook.DeviceID{s.self, s.laptop, {}}))
		if g, no := Decide(r); g.Valid() == (no != nil) {
			t.Fatal("neither or both")
		}
		ask := notebook.ProposalRequest{
			FenceRef: notebook.FenceRef{Page: r.Page, Fence: r.Fence, Shown: r.Shown},
			Rung:     notebook.Rung(rapid.IntRange(0, 5).Draw(t, "rung")), Scope: notebook.Scope(rapid.SampledFrom([]string{"", "once", "content", "ever"}).Draw(t, "scope")),
			Args: r.Args, AnyArgs: rapid.Bool().Draw(t, "any"), Capabilities: []notebook.Capability{notebook.Capability(rapid.SampledFrom([]string{"page", "x"}).Draw(t, "wants"))},
		}
		if p, no := Propose(r, ask); p.Digest().IsZero() != (no != nil) {
			t.Fatal("neither or both")
		}
	})
}
