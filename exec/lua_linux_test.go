package exec

import (
	"strings"
	"testing"

	"noted/notebook"
)

func TestWhatAFenceShows(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output string }{
		{"a returned value is shown", `return 6 * 7`, "42\n"},
		{"several of them on one line", `return 1, "two", nil, true`, "1\ttwo\tnil\ttrue\n"},
		{"but not after a print", `print("a", 1) print() return "b"`, "a\t1\n\n"},
		{"nothing returned, nothing shown", `local x = 1`, ""},
		{"returned through __tostring", `return setmetatable({}, {__tostring = function() return "me" end})`, "me\n"},
		{"tables and functions by number", `local t, u = {}, {} return t, u, t, print, coroutine.create(print)`, "table: 1\ttable: 2\ttable: 1\tfunction: 3\tthread: 4\n"},
		{"the same number from tostring and %s", `local t = {} return tostring(t), ("%s"):format(t)`, "table: 1\ttable: 1\n"},
		{"pairs in the order of insertion", `local t = {} for _, k in ipairs({"z", "a", "m"}) do t[k] = 1 end local s = "" for k in pairs(t) do s = s .. k end return s`, "zam\n"},
		{"no address in an engine message", `local ok, e = pcall(function() local x return x[{}] end) return e`, "fence:1: attempt to index a non-table object(nil) with key 'table'\n"},
		{"nor in a handler", `local _, e = xpcall(function() local x return x[print] end, function(m) return "H " .. m end) return e`, "H fence:1: attempt to index a non-table object(nil) with key 'function'\n"},
		{"nor from a coroutine", `local _, e = coroutine.resume(coroutine.create(function() local x return x[{}] end)) return e`, "fence:1: attempt to index a non-table object(nil) with key 'table'\n"},
		{"pcall gives what was returned", `return pcall(function(...) return ... end, 1, 2)`, "true\t1\t2\n"},
		{"pcall keeps false and a value", `return pcall(function() return false, "x" end)`, "true\tfalse\tx\n"},
		{"an error value passes unchanged", `local e = {} local _, f = pcall(error, e) return e == f`, "true\n"},
		{"coroutines", `local f = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return f(1), f(5)`, "2\t10\n"},
		{"methods of strings", `return ("abc"):upper():rep(2), #"abc"`, "ABCABC\t3\n"},
		{"deep recursion", `local function d(n) if n == 0 then return 0 end return 1 + d(n - 1) end return d(4000)`, "4000\n"},
		{"a long table joined", `local t = {} for i = 1, 1e5 do t[i] = "x" end return #table.concat(t, ",")`, "199999\n"},
		{"output that is no text", `print("a\255b")`, "a?b\n"},
		{"output that looks like a fence stays output", "print('```lua\\nprint(1)\\n```')", "```lua\nprint(1)\n```\n"},
	} {
		if res := runSource(t, r, quick, c.source); res.Verdict != notebook.OK || res.Output != c.output || res.Error != "" {
			t.Errorf("%s: %v %q %q, want %q", c.name, res.Verdict, res.Output, res.Error, c.output)
		}
	}
}

func TestHowAFenceFails(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output, err string }{
		{"its own line", "local a = 1\n\nerror('no')", "", "fence:3: no"},
		{"what it printed stays", "print('before')\nerror('no', 0)", "before\n", "no"},
		{"who called", "local function f() error('no') end\nlocal function g()\n  f()\n  return 1\nend\ng()", "", "fence:1: no\ncalled from line 3, 6"},
		{"a long way down is cut", "local function f(n) if n == 0 then error('no') end f(n - 1) return 1 end\nf(100)", "", "fence:1: no"},
		{"a table", "error({})", "", "table: 1"},
		{"a table with words", "error(setmetatable({}, {__tostring = function() return 'words' end}))", "", "words"},
		{"a table whose words fail", "error(setmetatable({}, {__tostring = function() error('x') end}))", "", "the error is a table"},
		{"syntax", "local a =\nreturn return", "", "fence:2: syntax error near \"return\""},
		{"syntax at the end", "for i = 1, 2 do", "", "fence: syntax error at the end of the fence"},
		{"a name that does not exist", "os.exit(1)", "", "fence:1: attempt to index a non-table object(nil) with key 'exit'"},
		{"a panic of the engine", "return ('x'):rep(1e18)", "", "the Lua engine gave up: runtime error: makeslice: len out of range"},
		{"a long message is cut", "error(('x'):rep(1e5), 0)", "", strings.Repeat("x", maxErrorText-4) + " …"},
		{"a message that is no text", `error("a\255b", 0)`, "", "a?b"},
		{"a forged deadline is an error", "error('context deadline exceeded', 0)", "", "context deadline exceeded"},
		{"a forged death is an error", "error('signal: killed', 0)", "", "signal: killed"},
		{"a forged exhaustion is an error", "error('fatal error: runtime: out of memory', 0)", "", "fatal error: runtime: out of memory"},
	} {
		res := runSource(t, r, quick, c.source)
		if res.Verdict != notebook.Failed || res.Output != c.output || res.Error != c.err {
			t.Errorf("%s: %v %q %.200q, want %q %.200q", c.name, res.Verdict, res.Output, res.Error, c.output, c.err)
		}
	}
}

func TestFormat(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	var source strings.Builder
	good := [][2]string{
		{`"%d %5d|%-5d|%05d|%+d", 1, 2, 3, 4, 5`, "1     2|3    |00004|+5"},
		{`"%i", -7.9`, "-7"},
		{`"%u", -1`, "18446744073709551615"},
		{`"%x %X %#x %o", 255, 255, 255, 8`, "ff FF 0xff 10"},
		{`"%x", -1`, "ffffffffffffffff"},
		{`"%.3f %8.2f|%-8.1f|%e", 1/3, 2.5, 2.5, 12345.678`, "0.333     2.50|2.5     |1.234568e+04"},
		{`"%g %g %g %g", 0.1, 1e20, 1e-5, 100000`, "0.1 1e+20 1e-05 100000"},
		{`"%g %f %5.1f", 1/0, -1/0, 0/0`, "inf -inf   nan"},
		{`"%s %s %s", nil, true, 1.5`, "nil true 1.5"},
		{`"%5s|%-5s|%.2s", "ab", "ab", "abc"`, "   ab|ab   |ab"},
		{`"%c%c", 72, 105`, "Hi"},
		{`"%q", 'a "b" \\ \n'`, "\"a \\\"b\\\" \\\\ \\\n\""},
		{`"100%%"`, "100%"},
		{`"%d", "12"`, "12"},
	}
	bad := []string{
		`"%1000000000d", 1`, `"%100d", 1`, `"%.100f", 1`, `"%v", 1`, `"%T", print`, `"%p", print`, `"%#v", print`,
		`"%[1]s", "x"`, `"%*d", 5, 1`, `"%", 1`, `"%d"`, `"%d", {}`, `"%d", 0/0`, `"%d", 1/0`, `"%d", 2^63`, `"%------d", 1`, `"%s"`, `"%w", 1`,
	}
	for _, c := range good {
		source.WriteString("print(string.format(" + c[0] + "))\n")
	}
	for _, c := range bad {
		source.WriteString("print(pcall(string.format, " + c + "))\n")
	}
	var want strings.Builder
	for _, c := range good {
		want.WriteString(c[1] + "\n")
	}
	res := runSource(t, r, quick, source.String())
	if !strings.HasPrefix(res.Output, want.String()) || res.Verdict != notebook.OK {
		t.Fatalf("%v %s\n%s\nwant\n%s", res.Verdict, res.Error, res.Output, want.String())
	}
	refused := strings.Split(strings.TrimSuffix(strings.TrimPrefix(res.Output, want.String()), "\n"), "\n")
	if len(refused) != len(bad) {
		t.Fatalf("%d answers for %d formats: %q", len(refused), len(bad), refused)
	}
	for i, line := range refused {
		if !strings.HasPrefix(line, "false\t") || strings.Contains(line, "0x") {
			t.Errorf("format(%s) gives %q", bad[i], line)
		}
	}
}

func TestGrantedValues(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	granted := func(source string) job {
		j := strictJob(quick, source)
		j.rung = notebook.Granted
		j.request.inputs = []field{{"page", "# Title\nlast"}, {"clock", "1796137982123"}, {"seed", "a seed"}}
		j.request.args = []field{{"name", "Ada"}}
		return j
	}
	for _, c := range []struct{ source, output string }{
		{`return #page.lines, page.lines[1], page.text`, "2\t# Title\t# Title\nlast\n"},
		{`return clock.iso, clock.date, clock.unix, clock.ms % 1000, clock.wday`, "2026-12-01T15:13:02Z\t2026-12-01\t1796137982\t123\t3\n"},
		{`return args.name, args.other`, "Ada\tnil\n"},
		{`local s = {} for i = 1, 5 do s[i] = math.random(10) end return table.concat(s, " ")`, "2 8 4 4 9\n"},
		{`return pcall(math.random, 0)`, "false\tfence:1: bad argument #1 to (anonymous) (interval is empty)\n"},
		{`local lo, hi = 9, 0 for i = 1, 1000 do local x = math.random(3, 5) lo, hi = math.min(lo, x), math.max(hi, x) end return lo, hi`, "3\t5\n"},
		{`for i = 1, 1000 do local x = math.random() assert(x >= 0 and x < 1) end return "in bounds"`, "in bounds\n"},
	} {
		for range 2 { // the same values give the same output
			if res := runJob(t, r, granted(c.source)); res.Verdict != notebook.OK || res.Output != c.output {
				t.Errorf("%s: %v %q %q, want %q", c.source, res.Verdict, res.Output, res.Error, c.output)
			}
		}
	}
	other := granted(`local s = {} for i = 1, 5 do s[i] = math.random(10) end return table.concat(s, " ")`)
	other.request.inputs[2].value = "another seed"
	if res := runJob(t, r, other); res.Output == "2 8 4 4 9\n" {
		t.Error("two seeds give the same numbers")
	}
	for _, name := range []string{"page", "clock", "args", "math.random"} {
		if res := runSource(t, r, quick, "return "+name); res.Output != "nil\n" {
			t.Errorf("%s at strict: %q", name, res.Output)
		}
	}
}
