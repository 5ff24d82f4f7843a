package trust

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// A fence is given the arguments that it declares: no other, none less, and its
// own values for what may be left out.
func TestDeclaredArgs(t *testing.T) {
	s := newScene(t)
	some := map[string]string{"name": "Ada", "age": "36"}
	for _, c := range []struct {
		info  string
		given map[string]string
		want  map[string]string // nil: refused
		words string
	}{
		{"", nil, map[string]string{}, ""},
		{`{args="name age=30"}`, map[string]string{"name": "Ada"}, map[string]string{"name": "Ada", "age": "30"}, ""},
		{`{args="name age=30"}`, some, some, ""},
		{`{args="name age=30"}`, map[string]string{"name": ""}, map[string]string{"name": "", "age": "30"}, ""},
		{`{args="a=x%20y"}`, nil, map[string]string{"a": "x y"}, ""},
		{`{args="a="}`, map[string]string{"a": "return os.exit()"}, map[string]string{"a": "return os.exit()"}, ""},

		{"", map[string]string{"name": "Ada"}, nil, `takes no argument "name" (it takes none; a fence that does says so`},
		{`{wants="args"}`, map[string]string{"name": "Ada"}, nil, "takes no argument"},
		{`{args="name age=30"}`, nil, nil, `needs the argument name (it takes name, age ("30" where left out): --arg NAME=VALUE)`},
		{`{args="name age=30"}`, map[string]string{"age": "1"}, nil, "needs the argument name"},
		{`{args="name age=30"}`, map[string]string{"name": "Ada", "agee": "1"}, nil, `takes no argument "agee" (it takes name, age`},
		{`{args="name"}`, map[string]string{"Name": "Ada"}, nil, `takes no argument "Name"`},
		{`{args="name"}`, map[string]string{"name ": "Ada"}, nil, "takes no argument"},
		{`{args="name name"}`, map[string]string{"name": "Ada"}, nil, "there twice"},
		{`{args="Name"}`, map[string]string{"Name": "Ada"}, nil, "not a name"},
		{`{args="a=` + strings.Repeat("x", maxArgsBytes) + `"}`, nil, nil, "more than"},
	} {
		for _, r := range []Request{s.local("lua " + c.info), s.foreign("lua " + c.info)} {
			if strings.Contains(c.info, "wants") && !r.Own {
				continue
			}
			r.Args = c.given
			g, no := Decide(r)
			switch {
			case c.want == nil && (no == nil || no.Ask || !strings.Contains(no.Error(), c.words)):
				t.Errorf("%s with %v: %v, %v", c.info, c.given, g.Args(), no)
			case c.want != nil && (no != nil || !maps.Equal(g.Args(), c.want)):
				t.Errorf("%s with %v: %v, %v; want %v", c.info, c.given, g.Args(), no, c.want)
			}
			if c.want == nil {
				ask := asked(r)
				ask.Rung = notebook.Granted
				if _, no := Propose(r, ask); no == nil {
					t.Errorf("%s with %v can be approved", c.info, c.given)
				}
			}
		}
	}
	if _, no := Decide(in(s.local(""), "query", `{args="x=1"}`)); no == nil || !strings.Contains(no.Reason, "no way to be given any") {
		t.Errorf("a query with arguments: %v", no)
	}
}

// An approval pins also the values that nobody said, and "any" is any value of
// what the fence declares.
func TestApprovalOfDeclaredArgs(t *testing.T) {
	s := newScene(t)
	r := s.foreign(`lua {wants="page" args="name age=30"}`)
	r.Args = map[string]string{"name": "Ada"}
	p := propose(t, r, forContent)
	if v := p.View(); v.Args["age"] != "30" || v.Args["name"] != "Ada" {
		t.Errorf("a person is shown %v", v.Args)
	}
	give(t, r, forContent)
	runs := func(want bool, args map[string]string) {
		t.Helper()
		r.Args = args
		if g, no := Decide(r); (no == nil) != want {
			t.Errorf("with %v: %v, %v", args, g.Args(), no)
		}
	}
	runs(true, map[string]string{"name": "Ada"})
	runs(true, map[string]string{"name": "Ada", "age": "30"})
	runs(false, map[string]string{"name": "Ada", "age": "31"})
	runs(false, map[string]string{"name": "Eve"})
	runs(false, nil)
	r.Args = nil
	give(t, r, func(ask *notebook.ProposalRequest) { ask.Scope, ask.AnyArgs = notebook.ScopeContent, true })
	runs(true, map[string]string{"name": "Eve"})
	runs(true, map[string]string{"name": "Eve", "age": "31"})
	runs(false, nil)
	runs(false, map[string]string{"name": "Eve", "x": "y"})
	r.Args = nil
	if r.Suppose(); r.Args["name"] != "" || len(r.Args) != 1 {
		t.Errorf("supposed %v", r.Args)
	}
	if _, no := Decide(r); no != nil {
		t.Errorf("once somebody says it: %v", no)
	}
}

// What an included fence takes the fence itself declares: it alone is called.
func TestIncludedArgs(t *testing.T) {
	s := newScene(t)
	for outer, want := range map[string]string{
		"":                    "takes the argument name, which the fence itself does not declare",
		` args="other="`:      "takes the argument name, which the fence itself does not declare",
		` args="name other="`: "",
	} {
		r := s.local(`lua {include="#` + fenceID(1).Short() + `"` + outer + `}`)
		r.Included = []Included{{Page: r.Page, Fence: fenceID(1), Origin: r.Origin, Own: true, Closed: true}}
		r.Closure = notebook.Closure{{Delimiter: "```", Language: "lua", Info: `lua {args="name=x"}`, Code: "x = 1\n"}, r.Closure[0]}
		r.Shown = r.Closure.Hash()
		r.Args = map[string]string{"name": "Ada"}
		g, no := Decide(r)
		if want == "" && (no != nil || g.Args()["name"] != "Ada") || want != "" && (no == nil || !strings.Contains(no.Reason, want)) {
			t.Errorf("%s: %v, %v", outer, g.Args(), no)
		}
	}
}

// Whatever is declared and given, a run gets exactly what is declared.
func TestArgsProperty(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		var words []string
		needed, declared := map[string]bool{}, map[string]bool{}
		for _, n := range names {
			switch rapid.IntRange(0, 2).Draw(t, n) {
			case 0:
				words, needed[n], declared[n] = append(words, n), true, true
			case 1:
				words, declared[n] = append(words, n+"=default"), true
			}
		}
		r := s.local(`lua {args="` + strings.Join(words, " ") + `"}`)
		r.Args = rapid.MapOf(rapid.SampledFrom(append(names, "d")), rapid.StringMatching(`[ -~]{0,8}`)).Draw(t, "args")
		fits := true
		for n := range r.Args {
			fits = fits && declared[n]
		}
		for n := range needed {
			_, given := r.Args[n]
			fits = fits && given
		}
		g, no := Decide(r)
		if (no == nil) != fits {
			t.Fatalf("%v with %v: %v", words, r.Args, no)
		}
		if !fits {
			return
		}
		if args := g.Args(); len(args) != len(declared) {
			t.Fatalf("%v with %v: %v", words, r.Args, args)
		}
		for n, v := range r.Args {
			if g.Args()[n] != v {
				t.Fatalf("%s is %q, not %q", n, g.Args()[n], v)
			}
		}
	})
}
