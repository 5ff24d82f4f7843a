package exec

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
)

func shellJob(l notebook.Limits, source string) job {
	j := strictJob(l, source)
	j.language = shellLanguage.name
	return j
}

// shellCase is a fence and how it must end.
type shellCase struct {
	name, source string
	verdict      notebook.Verdict
	output       string // all of it
	err          string // the beginning of it
}

// runShells runs cases in jailed workers, each off the test's goroutine.
func runShells(t *testing.T, limits notebook.Limits, cases []shellCase) {
	t.Helper()
	r := newRunner(t, Config{Limits: limits})
	for _, c := range cases {
		res, pid := watched(t, r, shellJob(limits, c.source))
		if res.Verdict != c.verdict || res.Output != c.output || !strings.HasPrefix(res.Error, c.err) || (res.Error == "") != (c.err == "") {
			t.Errorf("%s: %.100q: %v %.200q %.300q, want %v %q %q", c.name, c.source, res.Verdict, res.Output, res.Error, c.verdict, c.output, c.err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: its worker is still there: %v", c.name, err)
		}
	}
}

func okShell(name, source, output string) shellCase {
	return shellCase{name, source, notebook.OK, output, ""}
}

func failedShell(name, source, output, err string) shellCase {
	return shellCase{name, source, notebook.Failed, output, err}
}

// TestShell is the honest language.
func TestShell(t *testing.T) {
	runShells(t, quick, []shellCase{
		okShell("nothing", "", ""),
		okShell("variables", "x=5; y='a b'; echo \"$x $y\" ${#y} ${y%b} ${y/a/c} ${y^^}", "5 a b 3 a c b A B\n"),
		okShell("arithmetic", "i=3; echo $((i * (2 + 4) % 5)) $((i++)) $i; ((i > 3)) && let j=i*4 && echo $j", "3 3 4\n16\n"),
		okShell("loops", "for i in {1..3}; do printf '%02d ' $i; done; for ((i = 0; i < 2; i++)); do echo $i; done; i=2; until [ $i -eq 0 ]; do i=$((i - 1)); done; echo $i", "01 02 03 0\n1\n0\n"),
		okShell("conditions", "if [[ abc == a*c && ! x > y ]]; then echo yes; fi; case file.md in *.txt) echo text;; *.md|*.mdx) echo page;; esac", "yes\npage\n"),
		okShell("a regular expression", "[[ 2026-12-01 =~ ([0-9]+)-([0-9]+) ]] && echo ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}", "2026 12\n"),
		okShell("functions", "greet() { local who=$1; echo \"hello $who\"; return 3; }; greet you || echo $?", "hello you\n3\n"),
		okShell("arrays", "a=(x 'y z'); a+=(w); echo ${#a[@]} \"${a[1]}\" ${a[-1]}; for e in \"${a[@]}\"; do echo \"<$e>\"; done; unset 'a[0]'; echo ${!a[@]}", "3 y z w\n<x>\n<y z>\n<w>\n1 2\n"),
		okShell("arrays with keys", "declare -A m=([b]=2 [a]=1); m[c]=3; echo ${m[a]} ${!m[@]} ${m[@]}", "1 a b c 1 2 3\n"),
		okShell("pipes", "printf 'b\\na\\n' | while read -r l; do echo \"[$l]\"; done | { read -r first; echo $first; }", "[b]\n"),
		okShell("here-documents", "x=1; while read -r l; do echo \"$l\"; done <<EOF\n~ $x\nEOF\nread -r y <<< 'a  b'; echo \"$y\"", "~ 1\na  b\n"),
		okShell("substitutions", "x=$(echo a; echo b); echo \"$x\" `echo c`", "a\nb c\n"),
		okShell("both outputs", "echo out; echo err >&2; echo gone > /dev/null 2>&1; { echo a; echo b >&2; } 2>/dev/null", "out\nerr\na\n"),
		okShell("options", "set -u; set -- a b c; shift; echo $# $1 \"$*\"; set -f; echo *; shopt -s extglob; [[ aaa == +(a) ]] && echo all", "2 b b c\n*\nall\n"),
		okShell("a question", "echo Is this so? 2 * 3 [x]", "Is this so? 2 * 3 [x]\n"),
		okShell("where it is", "pwd; cd; cd /; pwd -L; echo $0 $LINENO\necho $LINENO $((LINENO + 1))", "/\n/\nfence 1\n2 3\n"),
		okShell("end in the middle", "echo a; exit 0; echo b", "a\n"),
		failedShell("the last status", "echo a; false", "a\n", "exit status 1"),
		failedShell("a status of its own", "echo a; exit 42", "a\n", "exit status 42"),
		failedShell("on the first error", "set -e; echo a; false; echo b", "a\n", "exit status 1"),
		failedShell("unset", "set -u; echo $nothing; echo b", "nothing: unbound variable\n", "exit status 1"),
		failedShell("syntax", "echo a\nif true; then\n  echo b", "", "fence:2: "),
		failedShell("a word at a wrong place", "echo a\n\n)", "", "fence:3: "),
	})
}

// TestShellConditions are test and [, which are ours.
func TestShellConditions(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // true, false, or an error
	}{
		{"", "false"},
		{"|", "false"},
		{"x", "true"},
		{"-n", "true"},
		{"-f", "true"},
		{"!", "true"},
		{"!|x", "false"},
		{"!|", "true"},
		{"-n|x", "true"},
		{"-z|x", "false"},
		{"-z|", "true"},
		{"a|=|a", "true"},
		{"a|==|b", "false"},
		{"a|!=|b", "true"},
		{"-n|=|-n", "true"},
		{"-f|=|-f", "true"},
		{"(|=|(", "true"},
		{"!|=|!", "true"},
		{"!|=|x", "false"},
		{"~root|=|~root", "true"},
		{"1|-lt|2", "true"},
		{"-1|-lt| 0 ", "true"},
		{"3|-ge|4", "false"},
		{"1|-eq|01", "true"},
		{"1|-eq|x", "-eq compares whole numbers"},
		{"!|1|-eq|2", "true"},
		{"(|x|)", "true"},
		{"(|-z|x|)", "false"},
		{"a|-a|", "false"},
		{"a|-o|", "true"},
		{"a|<|b", "true"},
		{"1|-eq|1|-a|2|-eq|2", "true"},
		{"1|-eq|2|-o|2|-eq|2", "true"},
		{"x|-o|y|-a||-o|", "true"},
		{"-v|HOME", "true"},
		{"-v|nothing", "false"},
		{"-v|", "-v takes"},
		{"-v|PPID", "-v takes"},
		{"-R|x", "these words"},
		{"-t|0", "false"},
		{"-O|/", "these words"},
		{"-c|in|==|-e", "these words"},
		{"a|b|c", "these words"},
		{"-a|-a|-a|-a|-a", "these words"},
		{"x|-nt|y", "\"x\": it lies in no directory that was granted"},
		{"-e|/etc/passwd", "\"/etc/passwd\": it lies in no directory that was granted"},
		{"-e|/nowhere", "\"/nowhere\": it lies in no directory that was granted"},
		{"-e|", "false"},
		{"-d|/", "true"},
		{"-w|/", "false"},
		{"-x|/", "true"},
	} {
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		if c.args == "|" {
			args = []string{""}
		}
		e, err := newShell(&strings.Builder{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		test := shellTest{env: e.names, dir: "/", files: e.files}
		for _, form := range []string{"test", "["} {
			a := args
			if form == "[" {
				a = append(append([]string{}, args...), "]")
			}
			holds, err := test.eval(form, a)
			if got := fmt.Sprint(holds); err != nil && !strings.HasPrefix(err.Error(), c.want) || err == nil && got != c.want {
				t.Errorf("%s %q: %v %v, want %s", form, a, holds, err, c.want)
			}
		}
		if _, err := test.eval("[", args); err == nil {
			t.Errorf("[ %q without its end is a test", args)
		}
	}
}

func TestShellIncludes(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	before := []field{{"faaaaaaaaa", "greet() {\n  echo \"hello $1 $LINENO\"\n}\nfail() { \n\n  ls; }"}, {"fbbbbbbbbb", "name=you"}}
	for _, c := range []shellCase{
		okShell("a function and a variable", "greet $name $LINENO", "hello you 2\n"),
		okShell("a status within a part is no failure", "x=1; [ $x = 1 ]", ""),
		failedShell("a denial in a part is at its own line", "echo a\nfail", "a\n", `faaaaaaaaa:6: there is no command "ls" here`),
		failedShell("and in the fence at its own", "echo a\n\nls", "a\n", `fence:3: there is no command "ls" here`),
		failedShell("syntax", "echo a\nif", "", "fence:2: "),
	} {
		j := shellJob(quick, c.source)
		j.request.before = before
		if res := runJob(t, r, j); res.Verdict != c.verdict || res.Output != c.output || !strings.HasPrefix(res.Error, c.err) {
			t.Errorf("%s: %v %q %q", c.name, res.Verdict, res.Output, res.Error)
		}
	}
	j := shellJob(quick, "echo never")
	j.request.before = []field{{"faaaaaaaaa", "echo first; exit 7"}}
	if res := runJob(t, r, j); res.Verdict != notebook.Failed || res.Output != "first\n" || res.Error != "faaaaaaaaa: exit status 7" {
		t.Errorf("a part that fails: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	j.request.before = []field{{"faaaaaaaaa", "echo first\n)"}, {"fbbbbbbbbb", "echo second"}}
	if res := runJob(t, r, j); res.Verdict != notebook.Failed || res.Output != "" || !strings.HasPrefix(res.Error, "faaaaaaaaa:2: ") {
		t.Errorf("a part that cannot be read: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

// TestShellValues: what is granted is in variables, and is text whatever it says.
func TestShellValues(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	rows := string(notebook.EncodeRows(&notebook.Rows{Found: 7, Unread: 3, List: []notebook.Row{
		{Title: "A page", Line: 3, Text: "call $(ls)", Tags: []string{"home", "work"}, Task: notebook.Todo, Date: "2026-12-01"}, {Title: "Another"},
	}}))
	evil := "'; ls; $(ls) `ls` ${x[$(ls)]} \"\n~root * $RANDOM"
	granted := func(source string) job {
		j := shellJob(quick, source)
		j.rung = notebook.Granted
		j.request.inputs = []field{{"page", "# Title\n" + evil}, {"clock", "1796137982123"}, {"seed", "a seed"}, {"query", rows}}
		j.request.args = []field{{"evil", evil}, {"two words", "2"}, {"zero", "a\x00b"}, {"number", "a[$(ls)]"}}
		return j
	}
	for _, c := range []struct{ source, output string }{
		{`printf '%s\n' "${args[evil]}" "${args["two words"]}" "${args[none]}" "${args[zero]}"`, evil + "\n2\n\nab\n"},
		{`echo $((args[number])) $((${args["two words"]} + 1))`, "0 3\n"},
		{`printf '%s\n' "$page"; echo ${#page_lines[@]} "${page_lines[0]}"`, "# Title\n" + evil + "\n3 # Title\n"},
		{`while read -r l; do echo "$l"; break; done <<< "$page"`, "# Title\n"},
		{`echo $clock $clock_unix $clock_date $clock_iso $((clock / 1000))`, "1796137982123 1796137982 2026-12-01 2026-12-01T15:13:02Z 1796137982\n"},
		{`echo $RANDOM $((RANDOM % 6 + 1)) $(echo $RANDOM); roll() { echo $((RANDOM % 6)); }; a=$(roll) b=$(roll) c=$(roll); echo $a $b $c; echo "${RANDOM}" | { read -r x; echo $((x < 32768)); }`, "9938 6 19542\n0 5 1\n1\n"},
		{`a=(); a[RANDOM % 2]=x; echo ${#a[@]}; ((i = RANDOM)); echo $((i >= 0)); for ((i = RANDOM; i < 0; i++)); do :; done; let i=RANDOM; echo $((i < 32768))`, "1\n1\n1\n"},
		{`for i in ${!query[@]}; do echo "$i|${query_title[i]}|${query_line[i]}|${query[i]}|${query_tags[i]}|${query_task[i]}|${query_date[i]}|${#query_page[i]}"; done; echo $query_found $query_unread`, "0|A page|3|call $(ls)|home work|todo|2026-12-01|32\n1|Another|0|||||32\n7 3\n"},
		{`echo ${!args[@]}`, "evil number two words zero\n"},
	} {
		for range 2 { // the same values give the same output
			if res := runJob(t, r, granted(c.source)); res.Verdict != notebook.OK || res.Output != c.output {
				t.Errorf("%s: %v %q %q, want %q", c.source, res.Verdict, res.Output, res.Error, c.output)
			}
		}
	}
	other := granted(`echo $RANDOM`)
	other.request.inputs[2].value = "another seed"
	if res := runJob(t, r, other); res.Verdict != notebook.OK || res.Output == "9938\n" {
		t.Errorf("another seed: %v %q", res.Verdict, res.Output)
	}
	for _, name := range []string{"page", "page_lines", "clock", "clock_unix", "clock_date", "clock_iso", "args", "query", "query_title", "query_found", "query_unread"} {
		if res := runJob(t, r, shellJob(quick, "[[ -v "+name+" ]] && echo there; echo \"$"+name+"\"")); res.Verdict != notebook.OK || res.Output != "\n" {
			t.Errorf("%s at strict: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestShellIsDeterministic: what would differ from run to run is fixed, or
// refused with what to write instead.
func TestShellIsDeterministic(t *testing.T) {
	runShells(t, quick, []shellCase{
		failedShell("$RANDOM", "echo a\necho $RANDOM", "", "fence:2: $RANDOM needs the capability seed"),
		failedShell("RANDOM in arithmetic", "echo $((RANDOM))", "", "fence:1: $RANDOM needs the capability seed"),
		failedShell("$SRANDOM", "echo $SRANDOM", "", "fence:1: $SRANDOM is not here"),
		failedShell("a part of it", "echo ${RANDOM:0:1}", "", "fence:1: $RANDOM can only be written as such"),
		failedShell("to be assigned to", "RANDOM=5", "", "fence:1: nothing can be assigned to RANDOM"),
		failedShell("in a loop", "for PPID in 1; do :; done", "", "fence:1: nothing can be assigned to PPID"),
		failedShell("in arithmetic", "((RANDOM = 5))", "", "fence:1: nothing can be assigned to RANDOM"),
		failedShell("a computed name", "x=SRANDOM; echo ${!x}", "", "fence:1: a name is written, not computed"),
		failedShell("a reference", "declare -n x=SRANDOM; echo $x", "", "fence:1: declare takes plain names"),
		failedShell("a function, of which the names of commands have changed", "f() { x=$(< /dev/null); }; declare -f f", "", "fence:1: declare takes plain names"),
		failedShell("the time that it takes", "time echo", "", "fence:1: there is no clock to take the time with"),
		failedShell("the time that it took", "times", "", "fence:1: the command times is not here"),
		failedShell("keys", `declare -A m=([a]=1 [b]=2); for k in "${!m[@]}"; do echo $k; done`, "", "fence:1: the keys come in no order here"),
		failedShell("all of an array with keys", "declare -A m=([a]=1 [b]=2)\ndeclare -p m", "", "fence:2: the keys of m come in no order here"),
		okShell("ids of the process", "echo $$ $PPID $((PPID)) $UID $EUID $GID \"$!\" $BASHPID$SECONDS$EPOCHSECONDS$EPOCHREALTIME$HOSTNAME$OSTYPE$MACHTYPE$BASH_VERSION", "1 0 0 65534 65534 65534 \n"),
		okShell("ids by a computed name", "x=PPID; echo $((x))", "-1\n"),
	})
}

// short is a deadline for fences that do not end, patience is that of [watched].
var short = notebook.Limits{Time: 500 * time.Millisecond, Memory: 128 << 20, Output: 64 << 10, Source: 1 << 20}

func timedOut(name, source, output string) shellCase {
	return shellCase{name, source, notebook.Timeout, output, ""}
}

func TestCase11ShellLoop(t *testing.T) {
	runShells(t, short, []shellCase{
		timedOut("an endless loop", `echo "so far"; while true; do :; done; echo escaped`, "so far\n"),
		okShell("one that ends", "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i", "3\n"),
	})
}

func TestCase12ShellLoopsOfOtherForms(t *testing.T) {
	runShells(t, short, []shellCase{
		timedOut("for", "for ((;;)); do :; done; echo escaped", ""),
		timedOut("until", "until false; do :; done; echo escaped", ""),
		timedOut("a function", "f() { while :; do :; done; }; f || echo escaped", ""),
		timedOut("a subshell", "(while :; do :; done); echo escaped", ""),
		timedOut("a substitution", "x=$(while :; do :; done); echo escaped", ""),
		okShell("that end", "for ((i = 0; i < 3; i++)); do :; done; until [ $i = 0 ]; do i=$((i - 1)); done; echo $i", "0\n"),
	})
}

func TestCase13TrapLoopNeverSucceeds(t *testing.T) {
	runShells(t, short, []shellCase{
		failedShell("at the exit", `trap 'while :; do :; done' EXIT; echo hi`, "", "fence:1: the command trap is not here"),
		failedShell("at an error", `trap 'while :; do :; done' ERR; false`, "", "fence:1: the command trap is not here"),
		failedShell("by another spelling", `t=trap; echo a; "$t" 'while :; do :; done' EXIT`, "a\n", "fence:1: the command trap is not here"),
		okShell("without it", "echo hi", "hi\n"),
	})
}

func TestCase14ProcessSubstitutionIsRefused(t *testing.T) {
	const pipes = "/sh-interp-*"
	before, _ := filepath.Glob(os.TempDir() + pipes)
	runShells(t, short, []shellCase{
		failedShell("to read", "echo never; : <(echo); wait", "", "fence:1: there is no process to read from"),
		failedShell("to write", "echo x > >(read a)", "", "fence:1: there is no process to read from"),
		failedShell("to wait", "wait", "", "fence:1: the command wait is not here"),
		okShell("a pipe instead", "echo x | { read -r a; echo $a; }", "x\n"),
	})
	if after, _ := filepath.Glob(os.TempDir() + pipes); len(after) > len(before) {
		t.Errorf("named pipes were left: %q", after)
	}
}

func TestCase15NothingGoesOnInTheBackground(t *testing.T) {
	runShells(t, short, []shellCase{
		failedShell("a loop", "while :; do :; done & echo hi", "", "fence:1: nothing can go on in the background"),
		failedShell("within a function that is not called", "echo a\nf() {\n  : &\n}", "", "fence:3: nothing can go on in the background"),
		failedShell("a coprocess", "coproc while :; do :; done", "", "fence:1: nothing can go on beside the shell"),
		okShell("in the foreground", "{ :; }; echo hi", "hi\n"),
	})
}

func TestCase16APipeThatNobodyReads(t *testing.T) {
	runShells(t, short, []shellCase{
		timedOut("", "while :; do echo x; done | read a; echo escaped", ""),
		okShell("one that ends", "for i in 1 2 3; do echo $i; done | { read -r a; echo $a; }", "1\n"),
	})
}

func TestCase32ADoublingShell(t *testing.T) {
	l := short
	l.Time = growTime
	runShells(t, l, []shellCase{
		{"doubling", "x=aa; while :; do x=$x$x; done", notebook.Memory, "", ""},
		okShell("up to a megabyte", "x=a; while [ ${#x} -lt 1000000 ]; do x=$x$x; done; echo ${#x}", "1048576\n"),
	})
}

func TestCase43NestedSource(t *testing.T) {
	l := quick
	long := strings.Repeat("echo a b c\n", 5000) // under the bound
	cases := []shellCase{
		okShell("a long one that is honest", long, strings.Repeat("a b c\n", 5000)),
		failedShell("too long", strings.Repeat("#", maxShell+1), "", "65537 bytes of shell where 65536 can be read"),
	}
	for _, open := range []string{"(", "$(", "[[[", "$((", "{ ", "${a:-", "<("} {
		cases = append(cases,
			failedShell("200 000 of "+open, strings.Repeat(open, 200_000), "", fmt.Sprintf("%d bytes of shell where", len(open)*200_000)),
			failedShell("65 000 bytes of "+open, strings.Repeat(open, 65_000/len(open)), "", "fence:"))
	}
	runShells(t, l, cases)
	r := newRunner(t, Config{Limits: l})
	for _, open := range []string{"if ", "while ", "! ", "a=$[", "case x in x) "} { // words nest too: the stack is what ends them
		res, _ := watched(t, r, shellJob(l, strings.Repeat(open, 60_000/len(open))))
		if res.Verdict != notebook.Failed && res.Verdict != notebook.Memory {
			t.Errorf("%q: %v %q", open, res.Verdict, res.Error)
		}
	}
	if res := runJob(t, r, shellJob(l, "echo fine")); res.Output != "fine\n" {
		t.Errorf("afterwards: %v %q", res.Verdict, res.Error)
	}
}

func TestCase44CodeThatIsMadeAtRunTime(t *testing.T) {
	runShells(t, short, []shellCase{
		failedShell("eval of itself", `x='eval "$x"'; eval "$x"`, "", "fence:1: the command eval is not here"),
		failedShell("by another spelling", "e=ev\n${e}al 'echo x'", "", "fence:2: the command eval is not here"),
		failedShell("by command", "command eval 'echo x'", "", "fence:1: the command command is not here"),
		failedShell("by builtin", "builtin eval 'echo x'", "", "fence:1: the command builtin is not here"),
		failedShell("source", "source /dev/stdin <<< 'echo x'", "", "fence:1: the command source is not here"),
		failedShell("a dot", ". /dev/stdin <<< 'echo x'", "", "fence:1: the command . is not here"),
		failedShell("an alias", "shopt -s expand_aliases; alias x='echo y'", "", "fence:1: the command alias is not here"),
		failedShell("as a function's name", "eval() { :; }; unset -f eval; eval 'echo x'", "", "fence:1: a function cannot be called eval"),
		failedShell("computed declarations", `d='a=$(ls)'; declare $d`, "", "fence:1: declare takes plain names"),
		failedShell("in the place of a list", `a=(1 2); unset 'a[$(while :; do echo z >&2; done & echo 1)]'`, "", "fence:1: unset: the place in a is written as a number"),
		failedShell("a name in the place of a list", `i=1; a=(1 2); unset 'a[i]'`, "", "fence:1: unset: the place in a is written as a number"),
		failedShell("in the place of what was a list with keys", "declare -A a=([x]=1); unset a; unset 'a[$(echo x >&2)]'", "", "fence:1: unset: the place in a is written as a number"),
		okShell("a place, and a key", `a=(1 2 3); i=1; unset "a[$i]" 'a[-1]'; declare -A m=([x]=1 ['$(ls)']=2); unset 'm[$(ls)]'; echo ${a[@]} ${m[@]}; unset 'a[@]'; echo ${#a[@]}`, "1 1\n0\n"),
		okShell("a function instead", `x='say hello'; say() { echo "$@"; }; $x`, "hello\n"),
	})
}

func TestCase45ForkBomb(t *testing.T) {
	runShells(t, short, []shellCase{
		failedShell("the usual one", ":() { :|:& };:", "", "fence:1: "),
		failedShell("by another name", "f() { f|f& };f", "", "fence:1: nothing can go on in the background"),
		failedShell("of pipes", "f() { f | f; }; f", "", "pipe2: too many open files"),
		okShell("a few of them", "f() { read -r x; echo \"$x$1\"; }; echo a | f b | f c | f d", "abcd\n"),
	})
}

func TestCase46BracesAndIndexes(t *testing.T) {
	l := short
	l.Time = growTime
	runShells(t, l, []shellCase{
		okShell("braces", "echo {1..99999999}; echo {1..3}", "brace expansion would exceed 16384 elements\n1 2 3\n"),
		okShell("a sparse array", "a[2000000000]=x; echo ${#a[@]} ${!a[@]}", "1 2000000000\n"),
		okShell("what is no number", "a[2e9]=x; echo ${!a[@]}", "0\n"),
		okShell("an index below", "a[-1]=x; echo $?", "a: bad array subscript\n1\n"),
	})
}

func TestCase55NoFile(t *testing.T) {
	const no = "it lies in no directory that was granted"
	runShells(t, short, []shellCase{
		failedShell("to read", "read -r x < /etc/passwd; echo $x", "", `fence:1: "/etc/passwd": `+no),
		failedShell("the short way", "echo a\necho $(</etc/passwd)", "a\n", `fence:2: "/etc/passwd": `+no),
		failedShell("by a computed name", "f=/etc/passwd\necho a\n\nread -r x < $f", "a\n", `fence:4: "/etc/passwd": `+no),
		failedShell("by a pattern", "echo a\necho /etc/*", "a\n", `fence:2: "/etc": `+no),
		failedShell("to test", "[ -e /etc/passwd ]", "", `fence:1: [: "/etc/passwd": `+no),
		failedShell("to test otherwise", "echo a\ntest -r /etc/passwd && echo yes || echo no", "a\n", `fence:2: test: "/etc/passwd": `+no),
		failedShell("to test by the language", "echo a\n[[ -e /etc/passwd ]] || echo no", "", "fence:2: [[ -e ]] asks for a file"),
		failedShell("to write", "echo x > /tmp/noted-case-55", "", `fence:1: "/tmp/noted-case-55": `+no),
		failedShell("to add to", "echo x >> /tmp/noted-case-55", "", `fence:1: "/tmp/noted-case-55": `+no),
		failedShell("both outputs", "echo x &> noted-case-55", "", `fence:1: "noted-case-55": `+no),
		failedShell("both ways", "echo x <> /tmp/noted-case-55", "", "fence:1: the redirection <> is not here"),
		failedShell("to go there", "cd /etc; echo here", "", `fence:1: "/etc": `+no),
		okShell("nothing to read, and to write", "read -r x < /dev/null; echo $?; echo x > /dev/null", "1\n"),
	})
	if _, err := os.Lstat("/tmp/noted-case-55"); err == nil {
		t.Error("a file was written")
	}
}

func TestCase56NamedPipesOfTheEngine(t *testing.T) {
	cases := []shellCase{okShell("TMPDIR", `echo "<$TMPDIR>"`, "<>\n")}
	for _, dir := range []string{"/tmp", os.TempDir(), "$TMPDIR", "/dev/null/none", "${TMPDIR:-/dev/null/none}", "$(printf '/dev/null/none\\0')"} {
		cases = append(cases,
			failedShell("to write", "echo PWNED > "+dir+"/sh-interp-case56", "", "fence:1: "),
			failedShell("to read", "read -r x < "+dir+"/sh-interp-case56", "", "fence:1: "))
	}
	runShells(t, short, cases)
	if found, _ := filepath.Glob(os.TempDir() + "/sh-interp-case56"); len(found) > 0 {
		t.Errorf("%q was written", found)
	}
}

// TestCase57NothingTellsWhatIsThere: what is asked for is answered alike
// whether or not it exists.
func TestCase57NothingTellsWhatIsThere(t *testing.T) {
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Fatal("the control is not there: ", err)
	}
	r := newRunner(t, Config{Limits: short})
	for _, form := range []string{
		"type PATH", "type ls", "command -v PATH", "hash PATH", "[ -e PATH ]", "[ -d PATH ] || echo no", "test PATH -nt PATH", "[[ -e PATH ]]", "[[ PATH -ef PATH ]]",
		"cd PATH", "echo PATH/*", "echo PATH*", "read x < PATH", "echo x > PATH", ". PATH", "PATH", "PWD=PATH; pwd -P", "PWD=PATH; echo *", "x=PATH; [[ -r $x ]]", "pushd PATH",
	} {
		there := runJob(t, r, shellJob(short, strings.ReplaceAll(form, "PATH", "/etc/passwd")))
		gone := runJob(t, r, shellJob(short, strings.ReplaceAll(form, "PATH", "/etc/passwx")))
		if there.Verdict != notebook.Failed || there.Verdict != gone.Verdict || there.Output != gone.Output || strings.ReplaceAll(there.Error, "passwd", "passwx") != gone.Error {
			t.Errorf("%s: %v %q %q, and of what is not there %v %q %q", form, there.Verdict, there.Output, there.Error, gone.Verdict, gone.Output, gone.Error)
		}
	}
	runShells(t, short, []shellCase{
		failedShell("a link of the system", "PWD=/proc/self/exe; pwd -P", "", "fence:1: pwd tells where the shell is"),
		failedShell("a person", "echo ~root", "", "fence:1: there are no people here"),
		failedShell("oneself", "echo ~", "", "fence:1: there are no people here"),
		failedShell("between braces", "echo {,x}~root {~root,y}", "", "fence:1: a \"~\" beside braces"),
		failedShell("as a default", "echo ${x:-~root}", "", "fence:1: there are no people here"),
		failedShell("as a pattern", "case /root in ~root) echo yes;; esac", "", "fence:1: there are no people here"),
		failedShell("in a name", "read x < ~root/.profile", "", "fence:1: there are no people here"),
		okShell("in quotes", `x='~root'; echo "~root" $x \~root a~ "${x}"; [ $x = "~root" ] && echo same`, "~root ~root ~root a~ ~root\nsame\n"),
	})
}

func TestCase63NoSocketByName(t *testing.T) {
	address, connections := listenAndCount(t)
	port := address[strings.LastIndexByte(address, ':')+1:]
	runShells(t, short, []shellCase{
		failedShell("to write", "echo x > /dev/tcp/127.0.0.1/"+port, "", `fence:1: "/dev/tcp/127.0.0.1/`+port),
		failedShell("to read", "read x < /dev/tcp/127.0.0.1/"+port, "", `fence:1: "/dev/tcp/127.0.0.1/`+port),
		failedShell("both", "exec 5<>/dev/tcp/127.0.0.1/"+port, "", "fence:1: "),
		failedShell("datagrams", "echo x > /dev/udp/127.0.0.1/"+port, "", `fence:1: "/dev/udp/127.0.0.1/`+port),
	})
	if n := connections(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(5 * time.Second); connections() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := connections(); n != 1 {
		t.Errorf("%d connections are seen where there is one", n)
	}
}

// listenAndCount listens on the loopback, and counts who connects.
func listenAndCount(t *testing.T) (address string, connections func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() int { return int(count.Load()) }
}

func TestCase65NothingToRead(t *testing.T) {
	runShells(t, short, []shellCase{
		okShell("a line", `read -r x; echo "$? <$x>"`, "1 <>\n"),
		okShell("all lines", "while read -r x; do echo $x; done; echo end", "end\n"),
		okShell("closed", "read -r x <&-; echo $?", "1\n"),
		okShell("something", "echo a | { read -r x; echo $x; }", "a\n"),
	})
}

func TestCase67WhoAndWhereItIs(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTED_CASE_67", "secret")
	r := newRunner(t, Config{Limits: short})
	res := runJob(t, r, shellJob(short, `echo $$ $PPID $UID $HOME "$USER$HOSTNAME$NOTED_CASE_67$SHELL$LANG" $PWD "$OLDPWD" "${!N@}"`))
	if res.Verdict != notebook.OK || res.Output != "1 0 65534 /  /  \n" || strings.Contains(res.Output, host) {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
}

func TestCase69AForgedTimeout(t *testing.T) {
	cases := []shellCase{}
	for _, words := range append(hostWords, "timed out", `{"verdict":"timeout","denied":true}`) {
		cases = append(cases, failedShell("words", "echo '"+words+"' >&2; exit 124", words+"\n", "exit status 124"))
	}
	runShells(t, short, append(cases, timedOut("a real one", "while :; do :; done", "")))
}

// TestCase75AProgramThatEndsLikeADenial: 126, 127 and 124 are statuses.
func TestCase75AProgramThatEndsLikeADenial(t *testing.T) {
	for _, status := range []string{"124", "126", "127"} {
		runShells(t, short, []shellCase{
			failedShell("at the end", "exit "+status, "", "exit status "+status),
			okShell("caught", "f() { return "+status+"; }; f || echo $?", status+"\n"),
		})
	}
	runShells(t, short, []shellCase{failedShell("a denial", "ls || echo caught", "", `fence:1: there is no command "ls" here`)})
}

// wraps are where a denial could be swallowed: each runs WHAT and then goes on.
var wraps = []string{
	"WHAT", "WHAT; exit 0", "WHAT || :", "WHAT || echo on", "! WHAT", "WHAT && :", "(WHAT)", "(WHAT); echo on", "(WHAT) || echo on", "x=$(WHAT)", "x=$(WHAT) || :", `echo "$(WHAT)"`, "x=`WHAT`",
	"{ WHAT; } || :", "if WHAT; then :; else echo on; fi", "while WHAT; do :; done; echo on", "until WHAT; do break; done", "for i in $(WHAT); do :; done; echo on",
	"for i in 1 2 3 4 5; do WHAT; done", "case $(WHAT) in *) echo on;; esac", "a=($(WHAT)); echo on", "a=([0]=$(WHAT)); echo on", "a[$(WHAT)0]=1; echo on", "declare x=$(WHAT); echo on",
	"export x=$(WHAT); echo on", "readonly x=$(WHAT); echo on", "f() { local x=$(WHAT); echo on; }; f", "[[ -n $(WHAT) ]]; echo on", `[ "$(WHAT)" ]; echo on`, "((x = $(WHAT) + 1)); echo on",
	"echo $(($(WHAT) + 1))", "let x=$(WHAT)1; echo on", "echo ${x:-$(WHAT)}", "echo ${x:=$(WHAT)}", "x=a; echo ${x/a/$(WHAT)}", "x=a; echo ${x:$(WHAT)0:1}", "WHAT | :", ": | WHAT", "WHAT | WHAT; echo on",
	"f() { WHAT; }; f; echo on", "f() { WHAT; }; (f) | :; echo on", "read x <<< $(WHAT); echo on", "while read x; do :; done <<EOF\n$(WHAT)\nEOF\necho on", "set +e; WHAT; true", "echo on > /dev/null $(WHAT)",
	"x=(1); ((x[$(WHAT)0] ? 1 : 0)); echo on", "for ((i = $(WHAT)0; i < 1; i++)); do :; done; echo on", "(($(WHAT)1)) || :; echo on", "x=$( (x=$(WHAT)) ); echo on",
}

// TestCase86ADenialIsNeverSwallowed: whatever it is wrapped in, a denial is the
// end of the run, and never a success.
func TestCase86ADenialIsNeverSwallowed(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	denied := []struct{ what, err string }{
		{"ls", `there is no command "ls" here`},
		{"eval :", "the command eval is not here"},
		{": < /etc/passwd", `"/etc/passwd": it lies in no directory that was granted`},
	}
	for i, wrap := range wraps {
		d := denied[i%len(denied)]
		res := runJob(t, r, shellJob(quick, strings.ReplaceAll(wrap, "WHAT", d.what)))
		if res.Verdict != notebook.Failed || !strings.HasPrefix(res.Error, "fence:") || !strings.Contains(res.Error, d.err) || strings.Contains(res.Output, "on") {
			t.Errorf("%s with %s: %v %q %q", wrap, d.what, res.Verdict, res.Output, res.Error)
		}
		// Where nothing is denied each of them comes to its end.
		if strings.HasPrefix(wrap, "while WHAT") {
			continue // for ever
		}
		if _, o := shellIn(t, strings.ReplaceAll(wrap, "WHAT", ":"), func(*shellEngine) {}); strings.Contains(o.text, ":") {
			t.Errorf("%s with nothing: %q", wrap, o.text)
		}
	}
}

// TestCase87ADenialBeforeTheDeadline is told, although the fence goes on for ever.
func TestCase87ADenialBeforeTheDeadline(t *testing.T) {
	runShells(t, short, []shellCase{
		failedShell("in a subshell", "echo a; (ls); while :; do :; done", "a\n", `fence:1: there is no command "ls" here`),
		failedShell("in a substitution", "x=$(ls); while :; do x=$(ls); done", "", `fence:1: there is no command "ls" here`),
		failedShell("in a pipe", "ls | while :; do :; done", "", `fence:1: there is no command "ls" here`),
		failedShell("beside a loop", "while :; do :; done | ls", "", `fence:1: there is no command "ls" here`),
		timedOut("without one", "while :; do :; done", ""),
	})
}

// TestCase89PanicsOfTheEngine: no input that makes the interpreter panic does.
func TestCase89PanicsOfTheEngine(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, source := range []string{
		`unset ''`, `test -v ''`, `[[ -v "" ]]`, `x=; [[ -v $x ]]`, `test -R ''`, `[[ -R "" ]]`, `shift -1`, `n=-1; shift $n`, `getopts ab x -ab; getopts ab x -a`, `test -c in == -e`, `[ -c in == -e ]`,
		`declare -n r=$no; echo $r`, `declare -n r=$noarr; r+=(x y); echo ${r[@]}`, `echo ${a@Q$a;}`, `[ -O f ]`, `[[ -G f ]]`, `mapfile -t x`, `declare -A a; echo ${a[1+1]}`, `declare -A a=(x y)`,
		`((a[0] = 1))`, `((a[0]++))`, `local -n x=y`, `nameref x=y`, `typeset -n x=y`, `break -1`, `for i in 1; do continue -1; done`,
	} {
		for _, form := range []string{source, "echo on | { " + source + "; }", "x=$(" + source + ")", source + " &"} {
			if _, o := shellIn(t, form, func(*shellEngine) {}); !o.failed || !strings.HasPrefix(o.text, "fence:1: ") {
				t.Errorf("%s: %q", form, o.text)
			}
		}
		// Left of a pipe a panic could not be caught: that is for a worker.
		if res := runJob(t, r, shellJob(quick, "{ "+source+"; } | :")); res.Verdict != notebook.Failed || !strings.HasPrefix(res.Error, "fence:1: ") {
			t.Errorf("%s left of a pipe: %v %q %q", source, res.Verdict, res.Output, res.Error)
		}
	}
	if res := runJob(t, r, shellJob(quick, `a=(1 2); unset 'a[0]'; set -- x y; shift 1; [ $1 = y ] && [[ -v a ]] && echo ${a[@]@Q}`)); res.Output != "2\n" {
		t.Errorf("what is alike and honest: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	// One that is not known yet ends the run where the jail is all there is.
	open := newRunner(t, Config{Limits: allLibraries(quick)})
	for source, want := range map[string][]notebook.Verdict{
		`unset ''`:        {notebook.Failed},
		`unset '' | :`:    {notebook.Memory, notebook.Crash}, // the detector of races has a status of its own
		`unset '' & wait`: {notebook.Memory, notebook.Crash},
	} {
		if res := runJob(t, open, shellJob(allLibraries(quick), source)); !slices.Contains(want, res.Verdict) {
			t.Errorf("%s, unchecked: %v %q", source, res.Verdict, res.Error)
		}
	}
}
