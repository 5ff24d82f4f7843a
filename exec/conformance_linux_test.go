package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
)

// The four questions that every language answers, and what each of them asks.
// A language of the table without an answer fails [TestEveryLanguageAnswers].
const (
	canReach = "what can it reach"
	doesStop = "does it stop"
	canGrow  = "can it grow"
	canForge = "can it forge"
)

var questions = map[string][]string{
	canReach: {"files", "environment", "descriptors", "network", "clock", "random", "processes"},
	doesStop: {"an endless loop", "an endless loop in its own handler of errors", "one long call of the host", "deep recursion", "endless output"},
	canGrow:  {"memory that doubles", "one huge allocation", "a source that nests", "a flood of output"},
	canForge: {"a frame and a result", "the host's own words", "the worker's exit codes", "every descriptor"},
}

// What the templates of an answer stand for: the suite puts in each in turn.
const (
	word = "WORD" // one of hostWords
	code = "CODE" // one of exitCodes
)

// hostWords are what noted itself says of a run that it has ended.
var hostWords = []string{
	"context deadline exceeded", "deadline exceeded", "timeout", "memory", "violation", "cancelled", "signal: killed",
	"fatal error: runtime: out of memory", "module closed with context deadline exceeded",
}

// exitCodes mean something when a worker itself ends with them.
var exitCodes = []string{"2", fmt.Sprint(exitLate), "0", "1", "66", fmt.Sprint(exitNoJail), fmt.Sprint(exitProtocol), "124", "126", "137", "159", "4294967295", "4026531839"}

// answer is one language's answer to one thing that a question asks.
type answer struct {
	source   string
	ends     []notebook.Verdict  // how it may end; ok where none is named
	output   string              // what it has put out then, all of it; for canForge a part of it
	err      string              // a part of the error of one that failed
	anything bool                // the output is not the point
	encode   func(string) string // makes the source of a text, once what stands for something is put in

	// The positive control of something that is absent: the same look, where
	// there is something to see.
	control probe
}

// probe is a run that sees something.
type probe struct {
	source string // empty: the answer's own
	all    bool   // in a worker of this test that opens every library
	inputs []field
	args   []field
	output string
}

// answers are one language's.
type answers struct {
	honest, shows string // a program, and what it puts out
	limits        notebook.Limits
	counts        string        // a program that writes some hundred KiB, the last line of which says how many bytes it wrote
	names         string        // a program that lists what a program can name
	golden        string        // what it lists, in testdata/golden
	lists         func() string // the list, where a program can ask for a name and not for all of them: it asks for each
	to            map[string]map[string]answer
}

// conformLimits are those of the suite, where a language needs no other.
var conformLimits = notebook.Limits{Time: 300 * time.Millisecond, Memory: 128 << 20, Output: 64 << 10, Source: 1 << 20}

// growTime is the deadline of what is to end at another limit before it.
const growTime = 20 * time.Second

var conformance = map[string]answers{
	"python":     pythonAnswers,
	"javascript": javascriptAnswers,
	"lua": {
		honest: "return 6 * 7", shows: "42\n", limits: conformLimits, names: walk, golden: "globals-strict.txt",
		counts: `local n = 7 local function out(s) print(s) n = n + #s + 1 end
			out("begin") for i = 1, 5000 do out("line " .. i) end while n < 500000 do out(("x"):rep(9999)) end print(n)`,
		to: map[string]map[string]answer{
			canReach: {
				"files":       {source: "return io, dofile, loadfile, require, package", output: "nil\tnil\tnil\tnil\tnil\n", control: probe{source: "return type(io), type(dofile)", all: true, output: "table\tfunction\n"}},
				"environment": {source: "return os, getfenv", output: "nil\tnil\n", control: probe{source: "return type(os.getenv)", all: true, output: "function\n"}},
				"descriptors": {source: "return io, channel", output: "nil\tnil\n", control: probe{source: "return io.type(io.stdout)", all: true, output: "file\n"}},
				"network":     {source: "return socket, net, http, require", output: "nil\tnil\tnil\tnil\n", control: probe{source: "return type(require), type(probe.socket)", all: true, output: "function\tfunction\n"}},
				"clock":       {source: "return clock, os", output: "nil\tnil\n", control: probe{source: "return clock.date", inputs: []field{{"clock", "1796137982123"}}, output: "2026-12-01\n"}},
				"random":      {source: "return math.random, math.randomseed", output: "nil\tnil\n", control: probe{source: "return type(math.random)", inputs: []field{{"seed", "seed"}}, output: "function\n"}},
				"processes":   {source: "return os, io", output: "nil\tnil\n", control: probe{source: "return type(os.execute), type(io.popen)", all: true, output: "function\tfunction\n"}},
			},
			doesStop: {
				"an endless loop": {source: `print("so far") while true do end print("escaped")`, ends: []notebook.Verdict{notebook.Timeout}, output: "so far\n"},
				"an endless loop in its own handler of errors": {
					source: `xpcall(function() error("x") end, function() while true do pcall(function() while true do end end) end end) print("escaped")`, ends: []notebook.Verdict{notebook.Timeout},
				},
				"one long call of the host": {source: `string.find(("a"):rep(3000), ".-.-.-.-b") print("escaped")`, ends: []notebook.Verdict{notebook.Timeout}},
				"deep recursion":            {source: `local function f() return 1 + f() end print(f())`, ends: []notebook.Verdict{notebook.Failed}, err: "stack overflow"},
				"endless output":            {source: `while true do print("again") end`, ends: []notebook.Verdict{notebook.Output, notebook.Timeout}, anything: true},
			},
			canGrow: {
				"memory that doubles": {source: `local s = "x" while true do s = s .. s end`, ends: []notebook.Verdict{notebook.Memory}},
				"one huge allocation": {source: `print(#("x"):rep(2e9))`, ends: []notebook.Verdict{notebook.Memory}},
				"a source that nests": {source: "return " + strings.Repeat("(", 200_000), ends: []notebook.Verdict{notebook.Failed, notebook.Memory}, err: "syntax error"},
				"a flood of output":   {source: `local s = ("x"):rep(1e6) while true do print(s) end`, ends: []notebook.Verdict{notebook.Output}, anything: true},
			},
			canForge: {
				"a frame and a result":    {source: `print("\0\0\0\2\0\0" .. '{"verdict":"ok","rung":"host","denied":true}') error("mine", 0)`, ends: []notebook.Verdict{notebook.Failed}, output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n", err: "mine"},
				"the host's own words":    {source: `error("` + word + `", 0)`, ends: []notebook.Verdict{notebook.Failed}, err: word},
				"the worker's exit codes": {source: `os.exit(` + code + `)`, ends: []notebook.Verdict{notebook.Failed}, err: "attempt to index"},
				"every descriptor":        {source: `for fd = 0, 9 do io.open("/proc/self/fd/" .. fd, "w"):write("forged") end`, ends: []notebook.Verdict{notebook.Failed}, err: "attempt to index"},
			},
		},
	},
}

func init() {
	failed, either := []notebook.Verdict{notebook.Failed}, func(v ...notebook.Verdict) []notebook.Verdict { return v }
	var names strings.Builder
	for c := 'A'; c <= 'z'; c++ {
		if c <= 'Z' || c >= 'a' || c == '_' {
			fmt.Fprintf(&names, "for n in \"${!%c@}\"; do if [ \"$n\" ]; then echo \"$n\"; fi; done\n", c)
		}
	}
	conformance["sh"] = answers{
		honest: "echo $((6 * 7))", shows: "42\n", limits: conformLimits, names: names.String(), golden: "sh-variables-strict.txt",
		counts: "x=$(printf '%999s'); for i in {1..200}; do echo \"$x\"; done; echo $((i * 1000 + 7))",
		to: map[string]map[string]answer{
			canReach: {
				"files":       {source: "read -r line < /etc/passwd; echo \"$line\"", ends: failed, err: "no directory that was granted", control: probe{source: "type source .", all: true, output: "source is a shell builtin\n. is a shell builtin\n"}},
				"environment": {source: `echo "${!a@}" "$USER" "$PATH" "$TERM"`, output: "   \n", control: probe{args: []field{{"who", "me"}}, output: "args   \n"}},
				"descriptors": {source: "{ echo seen >&3; } 2>/dev/null || echo none", output: "none\n", control: probe{source: "{ echo seen >&2; } || echo none", output: "seen\n"}},
				"network":     {source: "echo > /dev/tcp/127.0.0.1/80", ends: failed, err: "no directory that was granted", control: probe{source: "echo > /dev/null && echo opened", output: "opened\n"}},
				"clock":       {source: `echo "$clock$clock_date$SECONDS$EPOCHSECONDS"`, output: "\n", control: probe{inputs: []field{{"clock", "1796137982123"}}, output: "17961379821232026-12-01\n"}},
				"random":      {source: `echo $((RANDOM >= 0)) $SRANDOM`, ends: failed, err: "needs the capability seed", control: probe{source: `echo $((RANDOM >= 0)) $RANDOM`, inputs: []field{{"seed", "seed"}}, output: "1 12503\n"}},
				"processes":   {source: `echo $$ $PPID "$!"; ls`, ends: failed, output: "1 0 \n", err: "no command \"ls\"", control: probe{source: "ls() { echo listed; }; ls", output: "listed\n"}},
			},
			doesStop: {
				"an endless loop": {source: `echo "so far"; while :; do :; done; echo escaped`, ends: either(notebook.Timeout), output: "so far\n"},
				"an endless loop in its own handler of errors": {source: `trap 'while :; do :; done; echo escaped' EXIT ERR; false; echo escaped`, ends: failed, err: "the command trap is not here"},
				"one long call of the host":                    {source: `x=$(printf '%1000000s'); while [[ $x != *a*b*c*d*e*f*g ]]; do :; done; echo escaped`, ends: either(notebook.Timeout)},
				"deep recursion":                               {source: `f() { f; }; f; echo escaped`, ends: either(notebook.Memory, notebook.Timeout)},
				"endless output":                               {source: `while :; do echo again; done`, ends: either(notebook.Output, notebook.Timeout), anything: true},
			},
			canGrow: {
				"memory that doubles": {source: `x=aa; while :; do x=$x$x; done`, ends: either(notebook.Memory)},
				"one huge allocation": {source: `x=$(printf '%1000000s'); y=${x// /$x}; echo ${#y}`, ends: either(notebook.Memory)},
				"a source that nests": {source: strings.Repeat("$(", 200_000), ends: failed, err: "bytes of shell where"},
				"a flood of output":   {source: `x=$(printf '%1000000s'); while :; do echo "$x"; done`, ends: either(notebook.Output), anything: true},
			},
			canForge: {
				"a frame and a result":    {source: `printf '\000\000\000\002\000\000{"verdict":"ok","rung":"host","denied":true}\n'; exit 7`, ends: failed, output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n", err: "exit status 7"},
				"the host's own words":    {source: `echo "` + word + `" >&2; exit 124`, ends: failed, output: word, err: "exit status 124"},
				"the worker's exit codes": {source: `exit ` + code, ends: either(notebook.OK, notebook.Failed), err: "exit status "},
				"every descriptor":        {source: `for fd in 0 1 2 3 4 5 6 7 8 9; do echo forged > /proc/self/fd/$fd; done`, ends: failed, err: "no directory that was granted"},
			},
		},
	}
}

// unanswered names what languages leave open in a table of answers, and what the
// table has of no language.
func unanswered(languages []string, table map[string]answers) (open []string) {
	for _, name := range languages {
		a, found := table[name]
		if !found {
			open = append(open, name+" answers nothing")
			continue
		}
		if a.honest == "" || a.shows == "" || a.counts == "" || a.names == "" || a.golden == "" || a.limits == (notebook.Limits{}) {
			open = append(open, name+" has no honest program, none that counts, no limits or no list of names")
		}
		for question, things := range questions {
			for _, thing := range things {
				if a.to[question][thing].source == "" {
					open = append(open, fmt.Sprintf("%s does not say: %s: %s", name, question, thing))
				}
			}
			if question == canReach {
				for thing, answered := range a.to[question] {
					if answered.control.output == "" || answered.control.output == answered.output {
						open = append(open, fmt.Sprintf("%s has no control of %s", name, thing))
					}
				}
			}
			for thing := range a.to[question] {
				if !slices.Contains(things, thing) {
					open = append(open, fmt.Sprintf("%s answers what is not asked: %s: %s", name, question, thing))
				}
			}
		}
	}
	for name := range table {
		if !slices.Contains(languages, name) {
			open = append(open, name+" answers and does not run here")
		}
	}
	return open
}

// programs are the languages in which somebody can say what is to be done. A
// query says what is looked for, before it runs and elsewhere: its code is never
// read by a worker, see [TestAQueryIsNoProgram].
func programs() []language {
	return slices.DeleteFunc(slices.Clone(languages), func(l language) bool { return l.name == queryLanguage.name })
}

func languageNames() (names []string) {
	for _, l := range programs() {
		names = append(names, l.name)
	}
	return names
}

// TestEveryLanguageAnswers: a new language cannot be added without answering.
func TestEveryLanguageAnswers(t *testing.T) {
	if open := unanswered(languageNames(), conformance); len(open) > 0 {
		t.Errorf("not answered:\n%s", strings.Join(open, "\n"))
	}
	silent := answers{honest: "x", shows: "x", counts: "x", names: "x", golden: "x", limits: conformLimits}
	for name, c := range map[string]struct {
		languages []string
		table     map[string]answers
		open      int
	}{
		"a language without answers":    {append(languageNames(), "cobol"), conformance, 1},
		"answers without a language":    {languageNames()[1:], conformance, 1},
		"a language that says nothing":  {[]string{"cobol"}, map[string]answers{"cobol": {}}, 21},
		"one that answers no question":  {[]string{"cobol"}, map[string]answers{"cobol": silent}, 20},
		"an absence without its proof":  {[]string{"cobol"}, map[string]answers{"cobol": {honest: "x", shows: "x", counts: "x", names: "x", golden: "x", limits: conformLimits, to: map[string]map[string]answer{canReach: {"files": {source: "x"}}}}}, 20},
		"what nobody asked":             {[]string{"cobol"}, map[string]answers{"cobol": {honest: "x", shows: "x", counts: "x", names: "x", golden: "x", limits: conformLimits, to: map[string]map[string]answer{canGrow: {"hair": {source: "x"}}}}}, 21},
		"a list of names that is empty": {[]string{"cobol"}, map[string]answers{"cobol": {honest: "x", shows: "x", limits: conformLimits}}, 21},
	} {
		if open := unanswered(c.languages, c.table); len(open) != c.open {
			t.Errorf("%s: %d are open, not %d: %q", name, len(open), c.open, open)
		}
	}
}

// TestConformance asks every language that runs here every question.
func TestConformance(t *testing.T) {
	for _, l := range programs() {
		t.Run(l.name, func(t *testing.T) {
			if isFile(l.name) {
				ofTheWorker(t) // half a minute of a guest that the race detector slows down
			}
			c := &conforming{t: t, name: l.name, answers: conformance[l.name]}
			c.strict = newRunner(t, Config{Limits: c.limits})
			c.all = newRunner(t, Config{Limits: allLibraries(c.limits), Spares: -1})
			for _, question := range slices.Sorted(maps.Keys(questions)) {
				for _, thing := range questions[question] {
					c.asked(question, thing, c.to[question][thing])
				}
				if res := c.run(c.job(c.honest)); res.Verdict != notebook.OK || res.Output != c.shows {
					t.Errorf("%s: an honest fence after it: %v %q %q", question, res.Verdict, res.Output, res.Error)
				}
			}
		})
	}
}

// conforming is one language that is being asked.
type conforming struct {
	answers
	t           *testing.T
	name        string
	strict, all *Runner
}

func (c *conforming) job(source string) job {
	j := strictJob(c.limits, source)
	j.language = c.name
	return j
}

// run runs a job from outside, with a watchdog of its own, and looks that the
// worker is dead and was never larger than it may be.
func (c *conforming) run(j job) notebook.Result {
	c.t.Helper()
	r := c.strict
	if j.limits == allLibraries(j.limits) {
		r = c.all
	}
	res, pid := watched(c.t, r, j)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		c.t.Errorf("%.80q: the worker %d is there when the answer is: %v", j.request.source, pid, err)
	}
	if !raceDetector && res.Peak > j.limits.Memory+attackMemory {
		c.t.Errorf("%.80q: %d MiB resident where %d are allowed", j.request.source, res.Peak>>20, j.limits.Memory>>20)
	}
	if claim := falseClaim(res, j.limits == allLibraries(j.limits)); claim != "" {
		c.t.Errorf("%.80q: %s: %.200q", j.request.source, claim, res.Output)
	}
	return res
}

// watched runs a job off the test's goroutine, and fails the test where no
// answer comes.
func watched(t testing.TB, r *Runner, j job) (notebook.Result, int) {
	t.Helper()
	type answer struct {
		res notebook.Result
		pid int
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		res, pid, err := r.run(context.Background(), j)
		answered <- answer{res, pid, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			t.Fatalf("%.100q: %v", j.request.source, a.err)
		}
		return a.res, a.pid
	case <-time.After(j.limits.Time + 30*time.Second):
		t.Fatalf("no answer for %.100q", j.request.source)
	}
	return notebook.Result{}, 0
}

// conformFills is how many words and exit codes a language is asked with, unless
// it is asked with all.
var conformFills = map[bool]int{false: 2, true: 1}[raceDetector]

func (c *conforming) asked(question, thing string, a answer) {
	c.t.Helper()
	fills := []string{""}
	switch {
	case strings.Contains(a.source, word):
		fills = hostWords
	case strings.Contains(a.source, code):
		fills = exitCodes
	}
	if !*everyAttack { // make attacks takes all of them
		fills = fills[:min(conformFills, len(fills))]
	}
	for _, fill := range fills {
		filled := strings.NewReplacer(word, fill, code, fill)
		source := filled.Replace(a.source)
		if a.encode != nil {
			source = a.encode(source)
		}
		j := c.job(source)
		if question == canGrow {
			j.limits.Time = growTime
		}
		res := c.run(j)
		ends := a.ends
		if ends == nil {
			ends = []notebook.Verdict{notebook.OK}
		}
		late := raceDetector && res.Verdict == notebook.Timeout // ten times as slow, it may not come to its own end
		wrong := !late && !slices.Contains(ends, res.Verdict) || strings.Contains(res.Output, "escaped")
		wrong = wrong || res.Verdict == notebook.Failed && !strings.Contains(res.Error, filled.Replace(a.err))
		if question == canForge {
			wrong = wrong || !strings.Contains(res.Output, filled.Replace(a.output))
		} else if !a.anything {
			wrong = wrong || res.Output != filled.Replace(a.output)
		}
		if wrong {
			c.t.Errorf("%s: %s: %.120q: %v %.200q %.200q, want %v %q %q", question, thing, filled.Replace(a.source), res.Verdict, res.Output, res.Error, ends, filled.Replace(a.output), filled.Replace(a.err))
		}
	}
	if question != canReach {
		return
	}
	j := c.job(a.control.source)
	if a.control.source == "" {
		j.request.source = a.source
	}
	if a.control.all {
		j.limits = allLibraries(j.limits)
	}
	j.request.inputs, j.request.args = a.control.inputs, a.control.args
	if len(j.request.inputs) > 0 || j.request.args != nil {
		j.rung = notebook.Granted
	}
	if res := c.run(j); res.Verdict != notebook.OK || res.Output != a.control.output {
		c.t.Errorf("%s: %s: its control %.80q sees nothing: %v %q %q", question, thing, j.request.source, res.Verdict, res.Output, res.Error)
	}
}

// TestCase52ReachableNames fails when an engine, or we, give a strict fence of some
// language one name more or less than its golden file says. It is found by
// walking there from inside.
func TestCase52ReachableNames(t *testing.T) {
	for _, l := range programs() {
		c := &conforming{t: t, name: l.name, answers: conformance[l.name]}
		c.limits.Time = 20 * time.Second
		c.strict = newRunner(t, Config{Limits: c.limits})
		res := c.run(c.job(c.names))
		if res.Verdict != notebook.OK || res.Dropped > 0 || res.Output == "" {
			t.Fatalf("%s: %v %s", l.name, res.Verdict, res.Error)
		}
		if c.lists != nil {
			if res.Output != c.shows {
				t.Errorf("%s: a program that asks for each name puts out %q", l.name, res.Output)
			}
			res.Output = c.lists()
		}
		golden(t, filepath.Join("testdata/golden", c.golden), res.Output)
	}
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is not what %s says:\n%s", file, got)
	}
}

// TestCases58And59SeenFromOutside reads in /proc what a running worker of each
// language has: no environment, and no descriptor that the daemon inherited.
func TestCases58And59SeenFromOutside(t *testing.T) {
	for _, l := range programs() {
		// Each has its own runner to itself: a spare of another's, which starts
		// meanwhile, is a worker too.
		t.Run(l.name, func(t *testing.T) {
			a := conformance[l.name]
			limits := a.limits
			limits.Time = 30 * time.Second
			r := newRunner(t, Config{Limits: limits})
			j := strictJob(limits, a.to[doesStop]["an endless loop"].source)
			j.language = l.name
			seenFromOutside(t, r, j)
		})
	}
}
