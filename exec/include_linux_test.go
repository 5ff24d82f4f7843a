package exec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

// TestPartsRunInOrder: what a fence includes runs before it, in one worker and
// one state, each as a chunk with names and lines of its own.
func TestPartsRunInOrder(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct {
		name           string
		before         []string
		source, output string
		err            string
	}{
		{"globals are shared", []string{"function double(x) return 2 * x end", "y = double(20)"}, "return double(1) + y", "42\n", ""},
		{"locals are not", []string{"local x = 1"}, "return x", "nil\n", ""},
		{"in order", []string{"print(1)", "print(2)"}, "print(3)", "1\n2\n3\n", ""},
		{"what the last returns is shown", []string{"return 'not this'", "return 'nor this'"}, "return 'this'", "this\n", ""},
		{"unless something was printed", []string{"print('p')"}, "return 'this'", "p\n", ""},
		{"a return ends its own part", []string{"do return end\nprint('unreachable')"}, "print('on')", "on\n", ""},
		{"an error ends all of it", []string{"print('a')", "error('no')"}, "print('b')", "a\n", "fbbbbbbbbb:1: no"},
		{"the part and its own line", []string{"x = 1", "\n\nx = x .. {}"}, "return x", "", "fbbbbbbbbb:3: cannot perform concat operation between number and table"},
		{"called from the fence", []string{"function f()\n  error('no')\nend"}, "\n\nf()", "", "faaaaaaaaa:2: no\ncalled from line 3"},
		{"called through both", []string{"function f() error('no') end", "function g()\n  f()\n  return 1\nend"}, "g()", "", "faaaaaaaaa:1: no\ncalled from line fbbbbbbbbb:2, 1"},
		{"what cannot be read is named, and nothing runs", []string{"print('never')", "for"}, "print('never')", "", "fbbbbbbbbb: syntax error at the end of the fence"},
		{"also in the fence itself", []string{"print('never')"}, "local a =\nreturn return", "", `fence:2: syntax error near "return"`},
		{"no part sees the bytes of another", []string{"return 1"}, "return debug, load, loadstring, require, package", "nil\tnil\tnil\tnil\tnil\n", ""},
		{"a part cannot take the place of the next", []string{"local _G = _G print = nil tostring = nil"}, "return 1", "1\n", ""},
		{"coroutines of one part", []string{"co = coroutine.wrap(function() coroutine.yield(1) error('no') end)"}, "co()\nco()", "", "faaaaaaaaa:1: no"},
	} {
		j := strictJob(quick, c.source)
		for i, source := range c.before {
			j.request.before = append(j.request.before, field{"f" + strings.Repeat(string(rune('a'+i)), 9), source})
		}
		want := notebook.OK
		if c.err != "" {
			want = notebook.Failed
		}
		if res := runJob(t, r, j); res.Verdict != want || res.Output != c.output || !strings.HasPrefix(res.Error, c.err) {
			t.Errorf("%s: %v %q %q, want %q %q", c.name, res.Verdict, res.Output, res.Error, c.output, c.err)
		}
	}
}

// TestLimitsAreOfAllPartsTogether: no part gets limits of its own.
func TestLimitsAreOfAllPartsTogether(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	short := quick
	short.Time = 300 * time.Millisecond
	for _, c := range []struct {
		name           string
		limits         notebook.Limits
		before, source string
		want           notebook.Verdict
	}{
		{"time", short, "while true do end", "return 1", notebook.Timeout},
		{"memory", quick, "x = {} for i = 1, 40 do x[i] = ('x'):rep(2^20) .. i end", "for i = 41, 200 do x[i] = ('x'):rep(2^20) .. i end", notebook.Memory},
		{"output", quick, "for i = 1, 1e4 do print('0123456789') end", "while true do print('0123456789') end", notebook.Output},
		{"the control", quick, "x = {} for i = 1, 10 do x[i] = ('x'):rep(2^20) .. i end", "print(#x)", notebook.OK},
	} {
		j := strictJob(c.limits, c.source)
		j.request.before = []field{{"faaaaaaaaa", c.before}}
		if res := runJob(t, r, j); res.Verdict != c.want {
			t.Errorf("%s: %v %.100q %q", c.name, res.Verdict, res.Output, res.Error)
		}
	}
	j := strictJob(quick, strings.Repeat("-", 50))
	j.limits.Source = 100
	j.request.before = []field{{"faaaaaaaaa", strings.Repeat("-", 40)}}
	if err := j.check(); err != nil {
		t.Errorf("all sources together fit: %v", err)
	}
	j.request.before[0].value += "-"
	if err := j.check(); err == nil || notebook.CodeExhausted != err.(*notebook.Error).Code {
		t.Errorf("all sources together are too long: %v", err)
	}
	j.limits.Source = 1000
	j.request.before = make([]field, notebook.MaxClosure)
	if err := j.check(); err == nil {
		t.Error("too many parts are taken")
	}
}

// TestAnIncludingFenceRuns: what a grant says is in it is what runs.
func TestAnIncludingFenceRuns(t *testing.T) {
	d := newDesk(t)
	r := newRunner(t, Config{})
	lib := notebook.Part{Delimiter: "```", Language: "lua", Info: "lua", Code: "function twice(x)\n  return x * 2\nend\n"}
	fence := notebook.FenceID{7}
	local := d.request("lua", `lua {include="#`+fence.Short()+`"}`, "return twice(21), page ~= nil")
	find := func(author notebook.Author) trust.Lookup {
		return func(page notebook.PageID, short string) (trust.Included, notebook.Part, *trust.Refusal) {
			if page != local.Page || short != fence.Short() {
				t.Fatalf("%v#%s is looked for", page, short)
			}
			return trust.Included{Page: page, Fence: fence, Origin: notebook.NewOrigin(author), Own: true, Closed: true}, lib, nil
		}
	}
	for author, want := range map[notebook.Author]string{
		local.Origin[0]: "42\ttrue\n",
		{Device: d.self, Class: notebook.Agent, Label: "helper"}: "42\tfalse\n",
	} {
		local.Include(find(author))
		local.Shown = local.Closure.Hash()
		g := decide(t, local)
		res, err := r.Run(t.Context(), g)
		if err != nil || res.Output != want || (res.Rung == notebook.Granted) != (author == local.Origin[0]) || res.Closure != local.Closure.Hash() || res.Fence != local.Fence {
			t.Errorf("by %v: %v %+v", author, err, res)
		}
	}
}

// TestAModuleThatIncludesIsRefused: before a worker is asked, and it says what to do.
func TestAModuleThatIncludesIsRefused(t *testing.T) {
	d := newDesk(t)
	lib := notebook.Part{Delimiter: "```", Language: "wasm", Info: "wasm", Code: wasmAnswers.honest}
	fence := notebook.FenceID{7}
	for info, refused := range map[string]bool{"wasm": false, `wasm {include="#` + fence.Short() + `"}`: true} {
		local := d.request("wasm", info, wasmAnswers.honest)
		local.Include(func(page notebook.PageID, _ string) (trust.Included, notebook.Part, *trust.Refusal) {
			return trust.Included{Page: page, Fence: fence, Origin: local.Origin, Own: true, Closed: true}, lib, nil
		})
		local.Shown = local.Closure.Hash()
		_, err := newJob(decide(t, local))
		var e *notebook.Error
		if refused && (!errors.As(err, &e) || e.Code != notebook.CodeRefused || !strings.Contains(e.Message, "includes nothing") || e.Hint == "") || !refused && err != nil {
			t.Errorf("%s: %v", info, err)
		}
	}
}
