package exec

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"noted/notebook"
)

// pythonNames lists what a Python fence can name: what is there without an
// import, the modules that are a part of the interpreter and what is in those
// that could reach a system, and the modules of the library.
const pythonNames = `
import builtins, os, posix, sys, zipimport
for name in sorted(globals()): print("global", name)
for name in dir(builtins): print("builtin", name)
for name in sorted(sys.builtin_module_names): print("module", name)
for module in posix, os, sys:
    for name in dir(module): print(module.__name__, name)
library = zipimport.zipimporter(sys.path[0])
for name in sorted({name.split("/")[0] for name in library._files}): print("library", name)
for path in sys.path: print("path", path)
`

var pythonAnswers = answers{
	honest: "6 * 7", shows: "42\n", limits: conformLimits, names: pythonNames, golden: "python.txt",
	counts: `n = 7
def out(s):
    global n
    print(s)
    n += len(s) + 1
out("begin")
for i in range(1, 5001): out(f"line {i}")
while n < 500000: out("x" * 9999)
print(n)`,
	to: map[string]map[string]answer{
		canReach: {
			"files": {
				source: "try: print(len(open('/etc/passwd').read()))\nexcept OSError as e: print(type(e).__name__)", output: "FileNotFoundError\n",
				control: probe{source: "print(open('/usr/local/lib/python3.12/os.py').read(1) is not None)", output: "True\n"},
			},
			"environment": {
				source: "import os\nprint(dict(os.environ))", output: "{}\n",
				control: probe{source: "import os\nos.environ['A'] = 'b'\nprint(dict(os.environ))", output: "{'A': 'b'}\n"},
			},
			"descriptors": { // 3 is the library, which is in the engine file
				source: "import os\nfds = []\nfor fd in range(64):\n    try: fds.append(os.fstat(fd) and fd)\n    except OSError: pass\nfds", output: "[0, 1, 2, 3]\n",
				control: probe{source: "import os\nos.fstat(1).st_size", output: "0\n"},
			},
			"network": {
				source: "import socket\ntry: socket.socket()\nexcept OSError as e: print(e)", output: "[Errno 58] Not supported\n",
				control: probe{source: "import socket\nsocket.socket.__name__", output: "socket\n"},
			},
			"clock": {
				source: "import time, datetime\ntry: clock\nexcept NameError: print(time.time(), datetime.date.today())", output: "0.0 1970-01-01\n",
				control: probe{source: "import time, datetime\nprint(clock.date, int(time.time()), datetime.date.today())", inputs: []field{{"clock", "1796137982123"}}, output: "2026-12-01 1796137982 2026-12-01\n"},
			},
			"random": {
				source: "import os, random\nfor f in random.random, random.Random, os.urandom, random.SystemRandom().random:\n    try: print(f())\n    except (NotImplementedError, TypeError) as e: print('no')", output: "no\nno\nno\nno\n",
				control: probe{source: "import random\n0 <= random.random() < 1", inputs: []field{{"seed", "seed"}}, output: "True\n"},
			},
			"processes": {
				source: "import os\nprint(hasattr(os, 'fork'), hasattr(os, 'system'), hasattr(os, 'execv'), hasattr(os, 'posix_spawn'))", output: "False False False False\n",
				control: probe{source: "import os\nprint(hasattr(os, '_exit'))", output: "True\n"},
			},
		},
		doesStop: {
			"an endless loop": {source: "print('so far')\nwhile True: pass\nprint('escaped')", ends: []notebook.Verdict{notebook.Timeout}, output: "so far\n"},
			"an endless loop in its own handler of errors": {
				source: "while True:\n    try:\n        while True: pass\n    except BaseException: pass\nprint('escaped')", ends: []notebook.Verdict{notebook.Timeout},
			},
			"one long call of the host": {source: "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')\nprint('escaped')", ends: []notebook.Verdict{notebook.Timeout}},
			"deep recursion":            {source: "def f(): return 1 + f()\nprint(f())", ends: []notebook.Verdict{notebook.Failed}, err: "RecursionError"},
			"endless output":            {source: "while True: print('again')", ends: []notebook.Verdict{notebook.Output, notebook.Timeout}, anything: true},
		},
		canGrow: {
			"memory that doubles": {source: "s = 'x'\nwhile True: s += s", ends: []notebook.Verdict{notebook.Memory}},
			"one huge allocation": {source: "print(len('x' * 2_000_000_000))", ends: []notebook.Verdict{notebook.Memory}},
			"a source that nests": {source: strings.Repeat("(", 200_000), ends: []notebook.Verdict{notebook.Failed, notebook.Memory}, err: "MemoryError"},
			"a flood of output":   {source: "s = 'x' * 1000000\nwhile True: print(s)", ends: []notebook.Verdict{notebook.Output}, anything: true},
		},
		canForge: {
			"a frame and a result":    {source: "import os\nos.write(1, b'\\0\\0\\0\\2\\0\\0')\nprint('{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}')\nraise Exception('mine')", ends: []notebook.Verdict{notebook.Failed}, output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n", err: "mine"},
			"the host's own words":    {source: "raise TimeoutError('" + word + "')", ends: []notebook.Verdict{notebook.Failed}, err: word},
			"the worker's exit codes": {source: "import os\nos._exit(" + code + " if " + code + " < 1 << 31 else " + code + " - (1 << 32))", ends: []notebook.Verdict{notebook.OK, notebook.Failed}, err: "the fence ended itself with status " + code},
			"every descriptor":        {source: "import os\nfor fd in range(64):\n    try: os.write(fd, b'forged\\0\\0\\0\\2\\0\\0')\n    except OSError: pass\nraise Exception('mine')", ends: []notebook.Verdict{notebook.Failed}, err: "mine"},
		},
	},
}

// runIn runs source in a language, as a person's own strict fence.
func runIn(t *testing.T, r *Runner, language, source string) notebook.Result {
	t.Helper()
	j := strictJob(quick, source)
	j.language = language
	warmed(t, r, j)
	return runJob(t, r, j)
}

func TestWhatAPythonFenceShows(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output string }{
		{"the last value", "x = 6\nx * 7", "42\n"},
		{"not if something was printed", "print('a')\n42", "a\n"},
		{"not if something was written on the error stream", "import sys\nprint('a', file=sys.stderr)\n42", "a\n"},
		{"not None, and not what is assigned", "x = 1\nNone", ""},
		{"text as it is", "'a\\nb\u00fc'", "a\nb\u00fc\n"},
		{"its own module", "import sys\nprint(__name__, sys.modules['__main__'].__dict__ is globals())", "__main__ True\n"},
		{"text that is none", "print('a\\0b\\udc80')", "a\x00b\\udc80\n"},
		{"the library", `
import json, re, csv, io, statistics, datetime, itertools, math, collections, decimal, fractions, hashlib, dataclasses, textwrap, string
print(json.dumps({"b": [1, None, 2.5], "a": "\u00fc"}, sort_keys=True, ensure_ascii=False), json.loads('{"x": [1]}')["x"])
print(re.findall(r"(\w+)=(\d+)", "a=1, b=22"))
print(list(csv.DictReader(io.StringIO("a,b\n1,2")))[0])
print(statistics.mean([1, 2, 4]), statistics.median([3, 1, 2]), round(statistics.stdev([1, 2, 4]), 3))
print(datetime.date(2026, 12, 1).strftime("%A %d %B"), datetime.timedelta(days=1) * 3)
print(list(itertools.pairwise("abc")), list(itertools.accumulate([1, 2, 3])))
print(round(math.pi, 5), math.gcd(12, 18), math.comb(5, 2))
print(collections.Counter("aab").most_common(1), decimal.Decimal("0.1") + decimal.Decimal("0.2"), fractions.Fraction(1, 3) + 1)
print(hashlib.sha256(b"x").hexdigest()[:16])
@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
print(Point(1))
`, `{"a": "ü", "b": [1, null, 2.5]} [1]
[('a', '1'), ('b', '22')]
{'a': '1', 'b': '2'}
2.3333333333333335 2 1.528
Tuesday 01 December 3 days, 0:00:00
[('a', 'b'), ('b', 'c')] [1, 3, 6]
3.14159 6 10
[('a', 2)] 0.3 4/3
2d711642b726b044
Point(x=1, y=2)
`},
		{"numbers of a seed of its own", "import random\na = random.Random(1).random()\nrandom.seed(1)\na == random.random()", "True\n"},
		{"a stream of its own", "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('a')\n42", "a\n"},
		{"what it does at its exit", "import atexit\natexit.register(print, 'bye')\nprint('a')", "a\nbye\n"},
		{"who ends itself well", "import sys\nprint('a')\nsys.exit()", "a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := runIn(t, r, "python", c.source); res.Verdict != notebook.OK || res.Output != c.output {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

func TestHowAPythonFenceFails(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output, err string }{
		{"where", "print('so far')\n1 / 0", "so far\n", "fence:2: ZeroDivisionError: division by zero"},
		{"who called", "def a():\n    b()\ndef b():\n    raise ValueError('no')\na()", "", "fence:4: ValueError: no\ncalled from line 2, 5"},
		{"in the library", "import json\njson.loads('x')", "", "fence:2: JSONDecodeError: Expecting value: line 1 column 1 (char 0)"},
		{"a long way down is cut", "def f(n):\n    if n: f(n - 1)\n    else: 1 / 0\nf(9)", "", "fence:3: ZeroDivisionError: division by zero\ncalled from line 2, 4"},
		{"it cannot be read", "print('never')\nif x\n  y", "", "fence:2: SyntaxError: expected ':'"},
		{"an error without words", "raise KeyError", "", "fence:1: KeyError"},
		{"an error whose words fail", "class E(Exception):\n    def __str__(self): 1 / 0\nraise E", "", "fence:3: E: its text cannot be shown"},
		{"what it does at its exit", "import atexit\natexit.register(print, 'bye')\n1 / 0", "bye\n", "fence:3: ZeroDivisionError: division by zero"},
		{"it waits", "import time\ntime.sleep(1)", "", "fence:2: NotImplementedError: a fence cannot wait: its clock stands"},
		{"it ends itself", "import sys\nsys.exit(3)", "", "the fence ended itself with status 3"},
		{"with words", "import sys\nsys.exit('bye')", "", "bye"},
		{"it asks for a file", "open('/etc/hostname')", "", "fence:1: FileNotFoundError: [Errno 44] No such file or directory: '/etc/hostname'"},
		{"it asks the person", "input()", "", "fence:1: EOFError: EOF when reading a line"},
		{"it asks for random numbers", "import random\nrandom.choice([1, 2])", "", "fence:2: NotImplementedError: random numbers need a seed: give one, or ask for it with wants=\"seed\""},
		{"it asks for secrets", "import secrets\nsecrets.token_hex()", "", "fence:2: NotImplementedError: a fence has no source of secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := runIn(t, r, "python", c.source); res.Verdict != notebook.Failed || res.Output != c.output || res.Error != c.err {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

// grantedRows are what a query found.
var grantedRows = string(notebook.EncodeRows(&notebook.Rows{Found: 7, Unread: 3, List: []notebook.Row{{Title: "A page", Line: 3, Text: "- [ ] x"}}}))

func TestWhatAPythonFenceIsGiven(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	given := func(source string) job {
		j := strictJob(quick, source)
		j.language, j.rung = "python", notebook.Granted
		j.request.before = []field{{"f2ab3cd4ef", "def twice(x):\n    return 2 * x\ndef fails():\n    1 / 0\n"}}
		j.request.inputs = []field{{"page", "# Title\n\nText \u00fc'\"\\\n"}, {"clock", "1796137982123"}, {"seed", "a seed"}, {"query", grantedRows}}
		j.request.args = []field{{"who", `me"; import os #`}}
		return j
	}
	for _, c := range []struct{ source, output, err string }{
		{"page.lines, page.text.count('\\n')", "(['# Title', '', 'Text \u00fc\\'\"\\\\'], 3)\n", ""},
		{"clock.date, clock.iso, clock.ms, clock.unix, clock.year, clock.wday", "('2026-12-01', '2026-12-01T15:13:02Z', 1796137982123, 1796137982, 2026, 3)\n", ""},
		{"args", "{'who': 'me\"; import os #'}\n", ""},
		{"query.found, query.unread, [row['title'] for row in query.rows]", "(7, 3, ['A page'])\n", ""},
		{"twice(21)", "42\n", ""},
		{"\nfails()", "", "f2ab3cd4ef:4: ZeroDivisionError: division by zero\ncalled from line 2"},
		{"import random\nrandom.randint(1, 10**9)", "", ""},
	} {
		j := given(c.source)
		warmed(t, r, j)
		res := runJob(t, r, j)
		if c.output == "" && c.err == "" { // the same in every run, another with another seed
			j := given(c.source)
			again := runJob(t, r, j)
			j.request.inputs = []field{{"seed", "another"}}
			if other := runJob(t, r, j); res.Output == "" || again.Output != res.Output || other.Output == res.Output {
				t.Errorf("%q %q %q", res.Output, again.Output, other.Output)
			}
			continue
		}
		if (res.Verdict == notebook.OK) != (c.err == "") || res.Output != c.output || res.Error != c.err {
			t.Errorf("%q: %v %q %q", c.source, res.Verdict, res.Output, res.Error)
		}
	}
}

// A page may be as large as any, of whatever text, and there is room to work with
// it; and so there is with all the rows that a query may find beside it.
func TestPythonTakesTheLargestPage(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	rows := &notebook.Rows{Found: 5000}
	for range 110 {
		rows.List = append(rows.List, notebook.Row{Title: "Title", Line: 1, Text: strings.Repeat("\u4e2d<&>", 300), Tags: []string{"a"}, Task: notebook.Todo})
	}
	query := string(notebook.EncodeRows(rows))
	for name, text := range map[string]string{
		"markup": "<a href='x'>&amp;</a>\n", "short lines": "ab\n", "empty lines": "\n", "long characters": "\U0001F600\u4e2d\n", "one line": "x",
	} {
		n := notebook.MaxBody / len(text)
		j := strictJob(quick, "print(len(page.text), len(page.lines), query.found, len(query.rows), query.rows[-1]['task'], query.rows[0]['date'])")
		j.language, j.rung = "python", notebook.Granted
		j.request.inputs = []field{{"page", strings.Repeat(text, n)}, {"query", query}}
		lines := max(1, n*strings.Count(text, "\n"))
		if res := runJob(t, r, j); res.Output != fmt.Sprintf("%d %d 5000 110 todo None\n", n*utf8.RuneCountInString(text), lines) {
			t.Errorf("%s: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestGuestsAreTheSameInEveryRun: what differs from run to run elsewhere does not.
func TestGuestsAreTheSameInEveryRun(t *testing.T) {
	const source = `import gc, sys, time, select, tempfile
print(id(object()), hash("a"), hash(object()), object(), {str(i) for i in range(50)}, len(gc.get_objects()))
print([f() for f in (time.time, time.monotonic, time.perf_counter, time.process_time) for _ in range(3)], select.poll().poll(1000))`
	r := newRunner(t, Config{Limits: quick})
	inJavaScript := `const n = {}; for (let i = 0; i < 50; i++) n["k" + i * 7 % 50] = i
console.log(Date.now(), new Date().toString(), Object.keys(n), [..."zyxw"].sort(() => 0), Symbol("a").toString(), new WeakMap())
console.log(Object.getOwnPropertyNames(globalThis))`
	for language, source := range map[string]string{"python": source, "javascript": inJavaScript} {
		first := runIn(t, r, language, source)
		if second := runIn(t, r, language, source); first.Verdict != notebook.OK || second.Output != first.Output {
			t.Errorf("%s: %v %q %q, then %q", language, first.Verdict, first.Error, first.Output, second.Output)
		}
	}
}

// TestMemoryOfPython: a fence may take what the engine leaves of the limit, which
// is a third of what is usual, and never more, whatever else it makes the worker take.
func TestMemoryOfPython(t *testing.T) {
	ofTheWorker(t)
	const fill = `taken = []
try:
    while True: taken.append(bytearray(64 << 10))
except MemoryError: mib = len(taken) >> 4
`
	r := newRunner(t, Config{Limits: quick})
	for _, mib := range []int64{128, 256} {
		l := quick
		l.Memory = mib << 20
		for name, source := range map[string]string{
			"a list":                    fill + "print(mib)",
			"and calls of the engine's": fill + "del taken[-8:]\nx = []\nfor i in range(150): x = [x]\nrepr(x)\nprint(mib)",
			"and output":                fill + "import os\nfor b in taken[:10]: os.write(1, b)\nprint(mib)",
		} {
			j := strictJob(l, source)
			j.language, j.rung = "python", notebook.Granted
			j.request.inputs = []field{{"page", strings.Repeat("a line\n", notebook.MaxBody/7)}}
			res := runJob(t, r, j)
			var took int64
			_, err := fmt.Sscan(strings.Trim(res.Output[max(0, len(res.Output)-4):], "\x00"), &took)
			if res.Verdict != notebook.OK || err != nil || took < mib-100 {
				t.Errorf("%d MiB, %s: %v %q, %d MiB of it", mib, name, res.Verdict, res.Error, took)
			}
			if !raceDetector && res.Peak > l.Memory+attackMemory {
				t.Errorf("%d MiB, %s: %d MiB resident", mib, name, res.Peak>>20)
			}
		}
	}
}
