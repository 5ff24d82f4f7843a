package trust

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// in is the request for the same fence in another language.
func in(r Request, language, info string) Request {
	r.Closure = slices.Clone(r.Closure)
	r.Closure[0].Language, r.Closure[0].Info = language, strings.TrimSpace(language+" "+info)
	r.Shown = r.Closure.Hash()
	return r
}

// each kind of capability, once.
var every = []notebook.Capability{"args", "clock", "dir:/a", "dir:/b:rw", "net:a.b:443", "page", "program:/bin/ls", "query", "seed"}

// with everything that can be handed in at hand.
func (s scene) handed(r Request) Request {
	r.Inputs = nil
	for _, c := range every {
		if c != notebook.CapArgs {
			r.Inputs = append(r.Inputs, Input{Capability: c, Value: []byte("what " + c + " is"), Authors: notebook.NewOrigin(s.typed(s.self))})
		}
	}
	return r
}

// A language is given what it has a door for, whatever policy and approvals say.
func TestDoors(t *testing.T) {
	s := newScene(t)
	for language, open := range map[string]string{
		"lua":        "args clock dir:/a dir:/b:rw net:a.b:443 page query seed",
		"python":     "args clock dir:/a dir:/b:rw page query seed",
		"py":         "args clock dir:/a dir:/b:rw page query seed",
		"javascript": "args clock dir:/a dir:/b:rw page query seed",
		"js":         "args clock dir:/a dir:/b:rw page query seed",
		"sh":         "args clock dir:/a dir:/b:rw page program:/bin/ls query seed",
		"bash":       "args clock dir:/a dir:/b:rw page program:/bin/ls query seed",
		"wasm":       "args clock dir:/a dir:/b:rw page query seed",
		"query":      "query",
	} {
		for _, c := range every {
			r := s.handed(in(s.local(""), language, `{wants="`+string(c)+`" query="x"}`))
			r.Policy = policyOf(t, `[local]
capabilities = ["args", "clock", "dir:/a", "dir:/b:rw", "net:a.b:443", "page", "query", "seed"]`)
			g, no := Decide(r)
			ask := asked(r)
			ask.Rung, ask.Capabilities = notebook.Granted, []notebook.Capability{c}
			_, never := Propose(r, ask)
			if !slices.Contains(strings.Fields(open), string(c)) {
				if no == nil || no.Code != notebook.CodeRefused || no.Ask || !strings.Contains(no.Reason, "has no way") || !strings.Contains(no.Hint, notebook.Canonical(language)+" can be given ") {
					t.Errorf("%s wants %s: %v, %v", language, c, g.Capabilities(), no)
				}
				if never == nil || !strings.Contains(never.Reason, "has no way") {
					t.Errorf("%s can be approved for %s: %v", language, c, never)
				}
				r = in(r, language, "")
				ask = asked(r)
				ask.Rung, ask.Capabilities = notebook.Granted, []notebook.Capability{c}
				if language == "query" {
					ask.Capabilities = append(ask.Capabilities, notebook.CapQuery)
				}
				if _, never := Propose(r, ask); never == nil || !strings.Contains(never.Reason, "has no way") {
					t.Errorf("%s can be approved for %s without asking for it: %v", language, c, never)
				}
				continue
			}
			if never != nil {
				t.Errorf("%s cannot be approved for %s: %v", language, c, never)
			}
			if c.Kind() == notebook.CapProgram {
				if no == nil || !no.Ask || !strings.Contains(no.Reason, "does not grant") {
					t.Errorf("%s gets %s by policy: %v", language, c, no)
				}
				continue
			}
			if no != nil || !slices.Contains(g.Capabilities(), c) {
				t.Errorf("%s wants %s: %v, %v", language, c, g.Capabilities(), no)
			}
		}
	}
	if len(doors) != len(Languages) {
		t.Errorf("%d languages have doors, and there are %d", len(doors), len(Languages))
	}
	for _, language := range Languages {
		if notebook.Canonical(language) != language {
			t.Errorf("%s is another's alias", language)
		}
		if len(kinds(language)) == 0 {
			t.Errorf("%s has no door", language)
		}
	}
}

// What reaches further than its own run is for the fences that ask for it,
// whatever policy grants.
func TestNothingThatReachesIsHandedInUnasked(t *testing.T) {
	s := newScene(t)
	for language, want := range map[string]string{
		"lua": "args clock page seed", "python": "args clock page seed", "sh": "args clock page seed", "wasm": "args clock page seed", "query": "query",
	} {
		r := s.handed(in(s.local(""), language, ""))
		r.Policy = policyOf(t, `[local]
capabilities = ["args", "clock", "dir:/a", "dir:/b:rw", "net:a.b:443", "page", "query", "seed"]`)
		if g, no := Decide(r); no != nil || strings.Join(names(g.Capabilities()), " ") != want {
			t.Errorf("%s is handed %v, %v; want %s", language, g.Capabilities(), no, want)
		}
	}
}

// A query is nothing without what it finds: it has that where it runs, and
// whoever wrote it, for that is all that it shows. Others' queries are asked about.
func TestQueriesOfOthersAsk(t *testing.T) {
	s := newScene(t)
	own := s.handed(in(s.local(""), "query", ""))
	i := slices.IndexFunc(own.Inputs, func(in Input) bool { return in.Capability == notebook.CapQuery })
	own.Inputs[i].Authors = notebook.NewOrigin(s.typed(s.laptop))
	if g, no := Decide(own); no != nil || g.Rung() != notebook.Granted || len(g.Inputs()) != 1 {
		t.Errorf("%v %v", g.Capabilities(), no)
	}
	for name, change := range map[string]func(*Request){
		"by another device": func(r *Request) { r.Origin, r.Own = notebook.NewOrigin(s.typed(s.laptop)), false },
		"and policy says strict": func(r *Request) {
			r.Origin, r.Policy = notebook.NewOrigin(s.typed(s.laptop)), policyOf(t, "[foreign]\nquery = \"strict\"")
		},
		"by an agent":              func(r *Request) { r.By = Requester{Role: roleAgent, Name: "clerk"} },
		"where policy says strict": func(r *Request) { r.Policy = policyOf(t, "[local]\nquery = \"strict\"") },
		"what computes with it": func(r *Request) {
			*r = in(*r, "lua", `{wants="query" query="x"}`)
			r.Policy = policyOf(t, "[local]\ncapabilities = [\"query\"]")
		},
		"what policy does not name": func(r *Request) { *r = in(*r, "lua", `{wants="query" query="x"}`); r.Inputs[i].Authors = nil },
	} {
		r := own
		r.Inputs = slices.Clone(own.Inputs)
		change(&r)
		if g, no := Decide(r); no == nil || !no.Ask {
			t.Errorf("%s: %v with %v, %v", name, g.Rung(), g.Capabilities(), no)
		}
	}
	none := own
	none.Inputs = nil
	if _, no := Decide(none); no == nil || no.Code != notebook.CodeUnavailable {
		t.Errorf("without anything to find: %v", no)
	}
}

// One language by two names is one language: for policy, for what it includes,
// and for what it can be given.
func TestAliasesDecideAlike(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, s)
		alias := rapid.SampledFrom([]string{"py", "js", "shell", "bash"}).Draw(t, "alias")
		info := rapid.SampledFrom([]string{"", `{wants="page"}`, `{wants="dir:/a"}`, `{wants="program:/bin/ls"}`, `{wants="net:a.b:1"}`}).Draw(t, "wants")
		g, no := Decide(in(r, alias, info))
		h, not := Decide(in(r, notebook.Canonical(alias), info))
		if g.Rung() != h.Rung() || !slices.Equal(g.Capabilities(), h.Capabilities()) || g.Rule() != h.Rule() || !reflect.DeepEqual(no, not) {
			t.Fatalf("%s is %v %v by %q, %v; its other name is %v %v by %q, %v", alias, g.Rung(), g.Capabilities(), g.Rule(), no, h.Rung(), h.Capabilities(), h.Rule(), not)
		}
	})
	// Bytes are kept: a fence of the other name is another fence.
	r, q := in(s.local(""), "py", ""), in(s.local(""), "python", "")
	if r.Shown == q.Shown {
		t.Error("two info strings have one hash")
	}
	r.Shown = q.Shown
	if _, no := Decide(r); no == nil || no.Code != notebook.CodeStale {
		t.Errorf("%v", no)
	}
}
