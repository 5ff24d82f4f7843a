package trust

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"noted/notebook"
)

// autoPolicy lets the fence of a scene run by itself.
func autoPolicy(t tester, r Request, trigger, more string) *Policy {
	t.Helper()
	return policyOf(t, fmt.Sprintf("[auto]\n\"=%s#%s\" = %q\n%s", r.Page, r.Fence.Short(), trigger, more))
}

func TestAutoRules(t *testing.T) {
	const fence = `"=000102030405060708090a0b0c0d0e0f#fabcdefghi"`
	for trigger, period := range map[string]time.Duration{"open": 0, "daily": 24 * time.Hour, "every 15 minutes": 15 * time.Minute, "every 1440 minutes": 24 * time.Hour} {
		p := policyOf(t, "# a line\n[auto]\n"+fence+" = \""+trigger+"\"\n")
		rules := p.Auto()
		if len(rules) != 1 || rules[0].Trigger != trigger || rules[0].Period != period || rules[0].Fence != "fabcdefghi" {
			t.Errorf("%s: %+v", trigger, rules)
		}
		lines := p.Lines()
		if last := lines[len(lines)-1]; last.Source != "policy.toml:3" || last.Value != trigger || !strings.HasPrefix(last.Rule, "auto.=0001") {
			t.Errorf("shown as %+v", last)
		}
	}
	if len(DefaultPolicy().Auto()) != 0 {
		t.Error("something runs by itself by default")
	}
	var many strings.Builder
	for n := range maxAuto + 1 {
		fmt.Fprintf(&many, "\"=%032x#fabcdefghi\" = \"open\"\n", n)
	}
	for text, line := range map[string]string{
		fence + ` = "edit"`:             "line 2",
		fence + ` = "every 14 minutes"`: "line 2", fence + ` = "every 1441 minutes"`: "line 2", fence + ` = "every 015 minutes"`: "line 2",
		fence + ` = "every -15 minutes"`: "line 2", fence + ` = "every 15 minutes "`: "line 2", fence + ` = "hourly"`: "line 2",
		fence + ` = 15`: "line 2", fence + ` = ["open"]`: "line 2", fence + ` = "Open"`: "line 2",
		`"Title#1" = "open"`: "line 2", `"=0001#fabcdefghi" = "open"`: "line 2", `"=000102030405060708090a0b0c0d0e0f#1" = "open"`: "line 2",
		`"=000102030405060708090a0b0c0d0e0f" = "open"`: "line 2", `"000102030405060708090a0b0c0d0e0f#fabcdefghi" = "open"`: "line 2",
		`all = "open"`: "line 2", fence + " = \"open\"\n" + fence + " = \"daily\"": "line", many.String(): fmt.Sprint("line ", maxAuto+2),
	} {
		if _, err := ParsePolicy([]byte("[auto]\n" + text + "\n")); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%s: %v", clipped(text), err)
		}
	}
}

func clipped(s string) string { return s[:min(len(s), 100)] }

// What runs by itself is named by the policy for this trigger, typed here, and
// takes nothing that holds text of others; no approval widens it.
func TestAutoDecides(t *testing.T) {
	s := newScene(t)
	base := func(info string) Request {
		r := s.local(info)
		r.Policy = autoPolicy(t, r, "daily", "")
		r.By = Requester{Role: roleAuto, Name: "daily"}
		return r
	}
	if g, no := Decide(base("lua")); no != nil || g.Rung() != notebook.Granted || g.Approval() != 0 {
		t.Fatal(no)
	}
	strict := base("lua")
	strict.Policy = autoPolicy(t, strict, "daily", "[local]\nlua=\"strict\"\n")
	if g, no := Decide(strict); no != nil || g.Rung() != notebook.Strict {
		t.Fatal(no)
	}
	for name, change := range map[string]func(*Request){
		"no rule":             func(r *Request) { r.Policy = DefaultPolicy() },
		"another trigger":     func(r *Request) { r.By.Name = "open" },
		"no trigger":          func(r *Request) { r.By.Name = "" },
		"another fence":       func(r *Request) { r.Fence[0] ^= 1 },
		"another page":        func(r *Request) { r.Page[0] ^= 1 },
		"by another device":   func(r *Request) { r.Origin, r.Own = notebook.NewOrigin(s.typed(s.laptop)), false },
		"touched by a device": func(r *Request) { r.Origin = r.Origin.Union(notebook.NewOrigin(s.typed(s.laptop))) },
		"by an agent here": func(r *Request) {
			r.Origin = notebook.NewOrigin(notebook.Author{Device: s.self, Class: notebook.Agent, Label: "x"})
		},
		"imported": func(r *Request) {
			r.Origin = notebook.NewOrigin(notebook.Author{Device: s.self, Class: notebook.Import, Label: "x"})
		},
		"not recorded as typed": func(r *Request) { r.Own = false },
		"not closed":            func(r *Request) { r.Closed = false },
		"changed":               func(r *Request) { r.Closure[0].Code = "return 2\n" },
		"with arguments":        func(r *Request) { r.Args = map[string]string{"a": "b"} },
		"policy asks":           func(r *Request) { r.Policy = autoPolicy(t, *r, "daily", "[local]\nlua=\"ask\"\n") },
		"policy refuses":        func(r *Request) { r.Policy = autoPolicy(t, *r, "daily", "[local]\nlua=\"refuse\"\n") },
		"wants what policy does not grant": func(r *Request) {
			*r = base(wantsPage)
			r.Policy = autoPolicy(t, *r, "daily", "[local]\ncapabilities=[\"clock\"]\n")
		},
		"wants a page with text of others": func(r *Request) {
			*r = base(wantsPage)
			r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.self), s.typed(s.laptop))
		},
		"a query that finds text of others": func(r *Request) {
			*r = base("query")
			r.Inputs = append(r.Inputs, Input{Capability: notebook.CapQuery, Authors: notebook.NewOrigin(s.typed(s.self), s.typed(s.laptop))})
		},
		"approved, by the person for the person": func(r *Request) {
			*r = base(wantsPage)
			r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop))
			mine := *r
			mine.By = Requester{Role: roleOwner}
			give(t, mine, forContent)
			if _, no := Decide(mine); no != nil {
				t.Fatal(no)
			}
		},
	} {
		r := base("lua")
		change(&r)
		if g, no := Decide(r); no == nil {
			t.Errorf("%s: runs by itself, %v", name, g.Rung())
		} else if no.Reason == "" || no.Hint == "" {
			t.Errorf("%s: %+v", name, no)
		}
	}
	// A query that finds only what was typed here runs.
	q := base("query")
	q.Inputs = append(q.Inputs, Input{Capability: notebook.CapQuery, Authors: notebook.NewOrigin(s.typed(s.self))})
	if g, no := Decide(q); no != nil || len(g.Inputs()) != 1 {
		t.Errorf("%+v %v", g.Inputs(), no)
	}
	// Without wants, a page with text of others is not handed in.
	r := base("lua")
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop))
	if g, no := Decide(r); no != nil || len(g.Inputs()) != 2 {
		t.Errorf("%+v %v", g.Inputs(), no)
	}
}

// Never at host, never foreign, whatever the request.
func TestAutoProperty(t *testing.T) {
	s := newScene(t)
	rapid.Check(t, func(t *rapid.T) {
		r := s.local(rapid.SampledFrom([]string{"lua", wantsPage, `lua {wants="clock"}`, "query"}).Draw(t, "info"))
		r.Policy = autoPolicy(t, r, "open", "")
		r.By = Requester{Role: roleAuto, Name: rapid.SampledFrom([]string{"open", "daily"}).Draw(t, "trigger")}
		r.Own, r.Closed = rapid.Bool().Draw(t, "own"), rapid.Bool().Draw(t, "closed")
		var origin []notebook.Author
		for range rapid.IntRange(0, 3).Draw(t, "authors") {
			origin = append(origin, rapid.SampledFrom([]notebook.Author{s.typed(s.self), s.typed(s.laptop), {Device: s.self, Class: notebook.Agent, Label: "x"}}).Draw(t, "author"))
		}
		r.Origin = notebook.NewOrigin(origin...)
		if rapid.Bool().Draw(t, "foreign page") {
			r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.laptop))
		}
		rows := notebook.NewOrigin(s.typed(s.self))
		if rapid.Bool().Draw(t, "foreign rows") {
			rows = notebook.NewOrigin(s.typed(s.laptop))
		}
		r.Inputs = append(r.Inputs, Input{Capability: notebook.CapQuery, Authors: rows})
		g, no := Decide(r)
		if no != nil {
			return
		}
		if !g.Local() || g.Rung() > notebook.Granted || r.By.Name != "open" || g.Approval() != 0 {
			t.Fatalf("%+v", g)
		}
		for _, in := range g.Inputs() {
			if foreign, _ := parties(r.Self, r.Roster, in.Authors); len(foreign) > 0 {
				t.Fatalf("is handed text by %v", foreign)
			}
		}
	})
}

func TestFiredIsKept(t *testing.T) {
	p := policyOf(t, "[auto]\n\"=000102030405060708090a0b0c0d0e0f#fabcdefghi\" = \"every 15 minutes\"\n")
	rule := p.Auto()[0]
	at := time.Unix(1_800_000_000, 0)
	if next := rule.Next(at); next.Sub(at) <= 0 || next.Sub(at) > 15*time.Minute || rule.Slot(next) != rule.Slot(at)+1 {
		t.Errorf("after %v comes %v", at, next)
	}
	kept := store{}
	f := must(OpenFired(kept.all()))
	if _, known := f.At(rule); known {
		t.Error("used before it was")
	}
	f.Use(rule, 7, notebook.Hash{1})
	kept.keep(f.Flush())
	f = must(OpenFired(kept.all()))
	if got, known := f.At(rule); !known || got.Slot != 7 || got.Closure != (notebook.Hash{1}) {
		t.Errorf("%+v %v", got, known)
	}
	other := rule
	other.Trigger = "daily"
	if _, known := f.At(other); known {
		t.Error("one trigger's use is another's")
	}
	f.Keep(p)
	if _, known := f.At(rule); !known {
		t.Error("forgot a rule that is there")
	}
	f.Keep(DefaultPolicy())
	kept.keep(f.Flush())
	if _, known := f.At(rule); known || len(kept) != 0 {
		t.Error("remembers a rule that is gone")
	}
}

// A query of this person's shows whoever's text to who asks. By itself it runs
// only where it finds nothing but their own.
func TestAQueryRunsByItselfOnOwnTextOnly(t *testing.T) {
	s := newScene(t)
	r := s.handed(in(s.local(""), "query", ""))
	r.Policy = autoPolicy(t, r, "open", "")
	i := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Capability == notebook.CapQuery })
	asked := r.By
	for name, authors := range map[string]notebook.Origin{
		"own text":                        notebook.NewOrigin(s.typed(s.self)),
		"text of another device":          notebook.NewOrigin(s.typed(s.self), s.typed(s.laptop)),
		"text of an agent of this device": notebook.NewOrigin(notebook.Author{Device: s.self, Class: notebook.Agent, Label: "x"}),
	} {
		r.Inputs[i].Authors = authors
		r.By = asked
		if _, no := Decide(r); no != nil {
			t.Errorf("asked for, with %s: %v", name, no)
		}
		r.By = Requester{Role: roleAuto, Name: "open"}
		_, no := Decide(r)
		if foreign := name != "own text"; foreign != (no != nil) || foreign && !strings.Contains(no.Reason, "holds text by") {
			t.Errorf("by itself, with %s: %v", name, no)
		}
	}
}
