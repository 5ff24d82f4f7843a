package exec

import (
	"strings"
	"testing"

	"noted/notebook"
)

// javascriptNames walks everything that a JavaScript fence can reach: from the
// global object and from a value of each kind that has no name there, by every
// property and every prototype. It calls no getter; it walks to the function.
const javascriptNames = `
const seen = new Map(), queue = [];
const visit = (path, v) => {
  if (v === null || typeof v !== 'object' && typeof v !== 'function') return typeof v === 'symbol' ? String(v) : typeof v === 'string' ? JSON.stringify(v) : String(v);
  if (seen.has(v)) return '= ' + seen.get(v);
  seen.set(v, path);
  queue.push([path, v]);
  return typeof v;
};
visit('globalThis', globalThis);
const kinds = {
  'function': function () {}, 'arrow': () => 1, 'generator function': function* () {}, 'async function': async function () {},
  'async generator function': async function* () {}, 'class': class {}, 'method': { m() {} }.m, 'generator': (function* () {})(),
  'async generator': (async function* () {})(), 'array iterator': [][Symbol.iterator](), 'string iterator': ''[Symbol.iterator](),
  'map iterator': new Map().entries(), 'set iterator': new Set().values(), 'match iterator': ''.matchAll(/x/g), 'promise': Promise.resolve(),
  'arguments': (function () { return arguments })(), 'strict arguments': (function () { 'use strict'; return arguments })(),
  'bound': function () {}.bind(), 'template': (x => x)` + "``" + `, 'number': Object(1), 'bigint': Object(1n), 'symbol': Object(Symbol.iterator), 'regexp': /x/, 'date': new Date(),
};
for (const name in kinds) visit('<' + name + '>', kinds[name]);
const usual = Reflect.getPrototypeOf(visit); // of functions
visit('<usual prototype>', usual);
const mine = new Set(['seen', 'queue', 'visit', 'kinds', 'mine']);
while (queue.length) {
  const [path, v] = queue.shift();
  for (const k of Reflect.ownKeys(v)) {
    if (path === 'globalThis' && mine.has(k)) continue;
    if (typeof v === 'function' && (k === 'length' || k === 'name')) continue; // a number and a text
    const d = Reflect.getOwnPropertyDescriptor(v, k), name = path + (typeof k === 'symbol' ? '[' + String(k) + ']' : '.' + k);
    if ('value' in d) print(name, visit(name, d.value));
    if (d.get) print('get ' + name, visit('get ' + name, d.get));
    if (d.set) print('set ' + name, visit('set ' + name, d.set));
  }
  const prototype = Reflect.getPrototypeOf(v);
  if (prototype !== usual) print(path + '<prototype>', visit(path + '<prototype>', prototype));
}
`

var javascriptAnswers = answers{
	honest: "6 * 7", shows: "42\n", limits: conformLimits, names: javascriptNames, golden: "javascript.txt",
	counts: `let n = 7; const say = (s) => { print(s); n += s.length + 1 };
		say("begin"); for (let i = 1; i <= 5000; i++) say("line " + i); while (n < 500000) say("x".repeat(9999)); print(n)`,
	to: map[string]map[string]answer{
		canReach: {
			"files":       {source: "typeof std + typeof require + typeof __loadScript + typeof Deno", output: "undefinedundefinedundefinedundefined\n", control: probe{source: "typeof JSON", output: "object\n"}},
			"environment": {source: "typeof process + typeof env + typeof args", output: "undefinedundefinedundefined\n", control: probe{source: "typeof args + args.a", args: []field{{"a", "b"}}, output: "objectb\n"}},
			"descriptors": {source: "typeof std + typeof os", output: "undefinedundefined\n", control: probe{source: "typeof print", output: "function\n"}},
			"network":     {source: "typeof fetch + typeof XMLHttpRequest + typeof WebSocket", output: "undefinedundefinedundefined\n", control: probe{source: "typeof Promise", output: "function\n"}},
			"clock":       {source: "print(typeof clock, Date.now(), new Date().toISOString(), typeof performance)", output: "undefined 0 1970-01-01T00:00:00.000Z undefined\n", control: probe{source: "print(clock.date, Date.now(), new Date().toISOString())", inputs: []field{{"clock", "1796137982123"}}, output: "2026-12-01 1796137982123 2026-12-01T15:13:02.123Z\n"}},
			"random":      {source: "print(typeof Math.random, typeof crypto)", output: "undefined undefined\n", control: probe{source: "typeof Math.random()", inputs: []field{{"seed", "seed"}}, output: "number\n"}},
			"processes":   {source: "typeof process + typeof exit + typeof Worker + typeof setTimeout", output: "undefinedundefinedundefinedundefined\n", control: probe{source: "typeof Proxy", output: "function\n"}},
		},
		doesStop: {
			"an endless loop": {source: `print("so far"); while (true) {} print("escaped")`, ends: []notebook.Verdict{notebook.Timeout}, output: "so far\n"},
			"an endless loop in its own handler of errors": {source: `for (;;) try { throw 1 } catch (e) { try { for (;;) {} } finally { continue } } print("escaped")`, ends: []notebook.Verdict{notebook.Timeout}},
			"one long call of the host":                    {source: `/(a+)+$/.exec("a".repeat(40) + "b"); print("escaped")`, ends: []notebook.Verdict{notebook.Timeout}},
			"deep recursion":                               {source: `function f() { return 1 + f() } print(f())`, ends: []notebook.Verdict{notebook.Failed, notebook.Memory}, err: "the engine gave up: "},
			"endless output":                               {source: `for (;;) print("again")`, ends: []notebook.Verdict{notebook.Output, notebook.Timeout}, anything: true},
		},
		canGrow: {
			"memory that doubles": {source: `let s = "x"; for (;;) s += s`, ends: []notebook.Verdict{notebook.Memory}},
			"one huge allocation": {source: `print(new Uint8Array(2e9).length)`, ends: []notebook.Verdict{notebook.Memory}},
			"a source that nests": {source: strings.Repeat("(", 200_000), ends: []notebook.Verdict{notebook.Failed, notebook.Memory}, err: "the engine gave up: "},
			"a flood of output":   {source: `const s = "x".repeat(1e6); for (;;) print(s)`, ends: []notebook.Verdict{notebook.Output}, anything: true},
		},
		canForge: {
			"a frame and a result":    {source: `print('\0\0\0\x02\0\0{"verdict":"ok","rung":"host","denied":true}'); throw new Error("mine")`, ends: []notebook.Verdict{notebook.Failed}, output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n", err: "mine"},
			"the host's own words":    {source: `throw new Error("` + word + `")`, ends: []notebook.Verdict{notebook.Failed}, err: word},
			"the worker's exit codes": {source: `exit(` + code + `)`, ends: []notebook.Verdict{notebook.Failed}, err: "'exit' is not defined"},
			"every descriptor":        {source: `for (let fd = 0; fd < 9; fd++) std.fdopen(fd, "w").puts("forged")`, ends: []notebook.Verdict{notebook.Failed}, err: "'std' is not defined"},
		},
	},
}

func TestWhatAJavaScriptFenceShows(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output string }{
		{"the last value", "const x = 6\nx * 7", "42\n"},
		{"not if something was printed", "console.log('a')\n42", "a\n"},
		{"not undefined", "let x = 1\nundefined", ""},
		{"values as they would be written", `console.log("a", {b: [1, "x", null], "c d": -0}, new Map([[1, {}]]), new Set("ab"), 5n, Symbol("s"), undefined, () => 1, new Date(0), new RangeError("no"))`, "a { b: [1, \"x\", null], \"c d\": -0 } Map [[1, {}]] Set [\"a\", \"b\"] 5n Symbol(s) undefined [function] 1970-01-01T00:00:00.000Z RangeError: no\n"},
		{"no getter is called", `const o = { get x() { throw 1 } }; o.self = o; o`, "{ x: [getter], self: [circular] }\n"},
		{"what is far down is left out", `[[[[[[[1]]]]]]]`, "[[[[[[…]]]]]]\n"},
		{"what a promise comes to", `(async () => { const x = await 6; return x * await Promise.resolve(7) })()`, "42\n"},
		{"the language", `class A { #x = 1; get x() { return this.#x } static of() { return new A() } }
const [a, ...rest] = [1, 2, 3], { b = 5 } = {};
console.log(A.of()?.x ?? 0, rest, b, 2n ** 64n, [..."ab"].map((c, i) => c + i), "x".padStart(3, "ab"), Object.entries({ k: 1 }), JSON.stringify({ a: [1] }), [3, 1, 2].sort(), /(?<y>\d{4})/.exec("in 2026").groups.y)`, "1 [2, 3] 5 18446744073709551616n [\"a0\", \"b1\"] abx [[\"k\", 1]] {\"a\":[1]} [1, 2, 3] 2026\n"},
		{"a word that is no import", `const reimport = (x) => x; ({ import: 1 }).import + reimport(1)`, "2\n"},
		{"deep recursion", "const f = (n) => n ? 1 + f(n - 1) : 0; f(1000)", "1000\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := runIn(t, r, "javascript", c.source); res.Verdict != notebook.OK || res.Output != c.output {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

func TestHowAJavaScriptFenceFails(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output, err string }{
		{"where", "console.log('so far')\nnull.x", "so far\n", "fence:2: TypeError: cannot read property 'x' of null"},
		{"in its first line", "null.x", "", "fence:1: TypeError: cannot read property 'x' of null"},
		{"who called", "function a() {\n  b()\n}\nfunction b() {\n  throw new TypeError('no')\n}\na()", "", "fence:5: TypeError: no\ncalled from line 2, 7"},
		{"it cannot be read", "print('never')\nif x", "", "fence:2: SyntaxError: expecting '('"},
		{"something that is no error", "throw { a: 1 }", "", "uncaught { a: 1 }"},
		{"an error whose words fail", "throw Object.defineProperty(new Error(), 'message', { get() { throw 1 } })", "", "fence:1: the error cannot be shown"},
		{"a promise that is rejected", "(async () => { await null; throw new RangeError('late') })()", "", "fence: RangeError: late"},
		{"it imports", "print('never')\nimport('std').then((std) => print(std))", "", "fence:2: SyntaxError: there is nothing to import here, so import must not be followed by ( or a comment"},
		{"it imports in a module's way", "import * as std from 'std'", "", "fence:1: SyntaxError: expecting '('"},
		{"it asks for random numbers", "Math.random()", "", "fence:1: TypeError: not a function"},
		{"it compiles", "eval('1')", "", "fence:1: ReferenceError: 'eval' is not defined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := runIn(t, r, "javascript", c.source); res.Verdict != notebook.Failed || res.Output != c.output || res.Error != c.err {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

func TestWhatAJavaScriptFenceIsGiven(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	given := func(source string) job {
		j := strictJob(quick, source)
		j.language, j.rung = "javascript", notebook.Granted
		j.request.before = []field{{"f2ab3cd4ef", "function twice(x) {\n  return 2 * x\n}\nfunction fails() {\n  null.x\n}\n"}}
		j.request.inputs = []field{{"page", "# Title\n\nText \u00fc'\"\\\n"}, {"clock", "1796137982123"}, {"seed", "a seed"}, {"query", grantedRows}}
		j.request.args = []field{{"who", `me"); exit(1) //`}}
		return j
	}
	for _, c := range []struct{ source, output, err string }{
		{"print(page.lines, page.text.length, Object.isFrozen(page.lines))", "[\"# Title\", \"\", \"Text \u00fc'\\\"\\\\\"] 19 true\n", ""},
		{"print(clock.date, clock.iso, clock.ms, clock.unix, clock.year, clock.wday)", "2026-12-01 2026-12-01T15:13:02Z 1796137982123 1796137982 2026 3\n", ""},
		{"args", "{ who: \"me\\\"); exit(1) //\" }\n", ""},
		{"print(query.found, query.unread, query.rows.map((row) => row.title), Object.isFrozen(query.rows[0]))", "7 3 [\"A page\"] true\n", ""},
		{"twice(21)", "42\n", ""},
		{"\nfails()", "", "f2ab3cd4ef:5: TypeError: cannot read property 'x' of null\ncalled from line 2"},
		{"[Math.random(), Math.random()]", "", ""},
	} {
		j := given(c.source)
		warmed(t, r, j)
		res := runJob(t, r, j)
		if c.output == "" && c.err == "" { // the same in every run, another with another seed
			again := runJob(t, r, given(c.source))
			j := given(c.source)
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
