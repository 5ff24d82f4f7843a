package exec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"noted/notebook"
)

// again is a loop around words that never ends.
func again(words string) string { return "loop " + words + " br 0 end " }

// hexOf are bytes as the assembler takes them.
func hexOf(b ...[]byte) (s string) {
	for _, p := range b {
		s += hex.EncodeToString(p)
	}
	return s
}

// importing is the section of one import, whose kind and type are given in hex.
func importing(from, name, kind string) string {
	return "section 2 01" + hexOf(vector([]byte(from)), vector([]byte(name))) + kind + " "
}

// eachImport is a module that imports all that there is, and answers.
func eachImport() string {
	var s strings.Builder
	s.WriteString("memory 1 - func never ")
	for name, d := range hostFunctions() {
		s.WriteString("unreachable call " + name + " ")
		for range d.ResultTypes() {
			s.WriteString("drop ")
		}
	}
	return s.String() + " func run -> i32 i32.const 42"
}

// hour is a subscription of poll_oneoff to a clock, in an hour, and another to
// standard input, at 0.
const hour = `data 0 "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xa0\xb8\x30\x46\x03\x00\x00"
	data 56 "\x01\x00\x00\x00\x00\x00\x00\x00" `

const poll = "i32.const 0 i32.const 512 i32.const 2 i32.const 1024 call poll_oneoff "

// wasmAttacks are the modules of testdata/attacks/wasm.txtar.
var wasmAttacks = []struct{ name, text string }{
	{"loop", "func run " + again("")},
	{"start-loop", "func start " + again("") + " func run"},
	{"initialize-loop", "func _initialize " + again("") + " func run"},
	{"command-loop", "func _start " + again("nop")},
	{"print-loop", "memory 1 - func run " + again(`print 1 "again"`)},
	{"stderr-loop-in-start", "memory 1 - func start " + again(`print 2 "again\n"`) + " func run"},
	{"write-a-page-loop", `memory 32 - data 0 "\x10\x00\x00\x00\x00\x00\x10\x00" func run ` + again("i32.const 1 i32.const 0 i32.const 1 i32.const 8 call fd_write drop")},
	{"write-without-end", `memory 1 - func run i32.const 1 i32.const 0 i32.const -1 i32.const 8 call fd_write drop i32.const 1 i32.const 0 i32.const 8192 i32.const 8 call fd_write drop ` + again("")},
	{"sleep-loop", "memory 1 - " + hour + " func run " + again(poll+"drop")},
	{"read-loop", `memory 1 - data 0 "\x10\x00\x00\x00\x00\x10\x00\x00" func run ` + again("i32.const 0 i32.const 0 i32.const 1 i32.const 8 call fd_read drop")},
	{"random-loop", "memory 600 - func run " + again("i32.const 0 i32.const 39000000 call random_get drop")},
	{"fill-loop", "memory 600 - func run " + again("i32.const 0 i32.const 1 i32.const 39000000 memory.fill")},
	{"copy-loop", "memory 600 - func run " + again("i32.const 1 i32.const 0 i32.const 39000000 memory.copy")},
	{"grow-loop", "memory 1 - func run " + again("i32.const 1 memory.grow drop i32.const 0 i32.const 1 memory.size i32.const 65536 i32.mul memory.fill")},
	{"grow-by-everything", "memory 0 65536 func run " + again("i32.const 65536 memory.grow drop i32.const -1 memory.grow drop i32.const 0x7fffffff memory.grow drop")},
	{"memory-of-four-gibibytes", "memory 65536 - func run"},
	{"two-memories", "section 5 0200010001 func run"},
	{"ten-thousand-memories", "section 5 " + hexOf(unsigned(10000), []byte(strings.Repeat("\x00\x01", 10000))) + " func run"},
	{"table-of-a-gibibyte", "section 4 017000" + hexOf(unsigned(1<<27-1)) + " func run " + again("")},
	{"thousand-tables", "section 4 " + hexOf(unsigned(1000), []byte(strings.Repeat("\x70\x00"+string(unsigned(1<<20)), 1000))) + " func run " + again("")},
	{"table-grow-loop", "section 4 01700001 func run " + again("ref.null i32.const 1000000 table.grow drop")},
	{"table-grow-at-once", "section 4 01700001 func run ref.null i32.const 0x7fffffff table.grow drop ref.null i32.const -1 table.grow drop " + again("")},
	{"nested-blocks", "func run " + strings.Repeat("block ", 15000) + strings.Repeat("end ", 15000) + again("")},
	{"nested-ifs", "func run " + strings.Repeat("i32.const 1 if ", 8000) + strings.Repeat("end ", 8000) + again("")},
	{"never-closed", "func run " + strings.Repeat("loop ", 20000)},
	{"recursion", "func run call run"},
	{"recursion-loop", "func deep call deep func run " + again("call deep")},
	{"locals-of-four-gibibytes", "func run section 10 01" + hexOf(vector(append(append([]byte{1}, unsigned(1<<32-1)...), 0x7f, 0x0b)))},
	{"recursion-with-locals", "func run section 10 01" + hexOf(vector(append(append([]byte{1}, unsigned(100_000)...), 0x7f, 0x10, 0, 0x0b)))},
	{"four-billion-types", "func run section 1 ffffffff0f600000"},
	{"four-billion-imports", "func run section 2 ffffffff0f"},
	{"four-billion-functions", "func run section 3 ffffffff0f00"},
	{"four-billion-globals", "func run section 6 ffffffff0f7f0041000b"},
	{"four-billion-exports", "func run section 7 ffffffff0f0372756e0000"},
	{"four-billion-elements", "func run section 4 01700001 section 9 ffffffff0f0041000b0100"},
	{"four-billion-bodies", "func run section 10 ffffffff0f02000b"},
	{"four-billion-data", "memory 1 - func run section 11 ffffffff0f0041000b0161"},
	{"branch-table-of-four-billion", "func run section 10 01" + hexOf(vector([]byte("\x00\x41\x00\x0e\xff\xff\xff\xff\x0f\x00\x0b")))},
	{"branch-tables", "func run section 10 01" + hexOf(vector([]byte("\x00"+strings.Repeat("\x02\x40", 4000)+strings.Repeat("\x41\x00\x0e\x80\x20"+strings.Repeat("\x01", 4096)+"\x00\x0b", 8)+strings.Repeat("\x0b", 3992)+"\x0b")))},
	{"eight-thousand-functions", "func run section 3 " + hexOf(unsigned(8000), make([]byte, 8000)) + " section 10 " + hexOf(unsigned(8000), []byte(strings.Repeat("\x04\x00\x10\x00\x0b", 8000)))},
	{"names-of-functions", "func run section 0 046e616d65" + strings.Repeat("01fffffff7", 4000)},
	{"pointers-outside", "memory 1 - func run " + again(`i32.const 1 i32.const -8 i32.const 1 i32.const -4 call fd_write drop i32.const -1 i32.const -1 call random_get drop
		i32.const -1 i32.const -1 call input_size drop i32.const 0 i32.const 0 i32.const -1 i32.const -1 call input_read drop i32.const -16 i32.const -16 i32.const -1 i32.const -1 call poll_oneoff drop
		i32.const -4 i32.const -4 call args_get drop i32.const -4 i32.const -4 call environ_get drop`)},
	{"no-memory-to-point-into", "func run i32.const 0 i32.const 0 call input_size drop " + again("")},
	{"closes-its-output", "memory 1 - func run i32.const 1 call fd_close drop i32.const 2 i32.const 1 call fd_renumber drop i32.const 0 call fd_close drop " + again(`print 1 "x" print 2 "y"`)},
	{"exit-forged", "func run i32.const 0xefffffff call proc_exit"},
	{"exit-in-start", "func start i32.const -1 call proc_exit func run " + again("")},
	{"memory-of-another", importing("env", "memory", "020001") + "func run"},
	{"function-of-another", importing("env", "wait", "0000") + "func run"},
	{"table-through-nothing", "section 4 01700001 func run " + again("i32.const 0 call_indirect 0")},
	{"sections-of-nothing", "section 13 00 section 200 ffff func run"},
}

// TestWasmAttacksAreTheseModules holds the file of hostile modules, which nobody
// can read, to their texts.
func TestWasmAttacksAreTheseModules(t *testing.T) {
	b, err := os.ReadFile("testdata/attacks/wasm.txtar")
	if err != nil && !*update {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "\n-- ")
	var s strings.Builder
	s.WriteString(head + "\n")
	for _, a := range wasmAttacks {
		fmt.Fprintf(&s, "-- %s.wasm --\n%s", a.name, module(a.text))
	}
	golden(t, "testdata/attacks/wasm.txtar", s.String())
}

// wasmAnswers are assembled in the process of the tests, and not in each worker,
// which would start ten times as slowly.
var wasmAnswers answers

func assembleAnswers() answers {
	return answers{
		honest: module("func run -> i32 i32.const 6 i32.const 7 i32.mul"), shows: "42\n", limits: conformLimits,
		names: module(eachImport()), golden: "wasm.txt", lists: hostNames,
		counts: module(`memory 1 - func run loop print 1 "` + strings.Repeat("x", 999) + `\n" local.get 0 i32.const 1 i32.add local.tee 0 i32.const 200 i32.lt_u br_if 0 end print 1 "200007\n"`),
		to: map[string]map[string]answer{
			canReach: {
				"files": {
					source: module(`memory 1 - data 0 "etc/passwd" func run -> i32 i32.const 3 i32.const 1 i32.const 0 i32.const 10 i32.const 0 i64.const 2 i64.const 2 i32.const 0 i32.const 64 call path_open`), output: "8\n",
					control: probe{source: module(`memory 1 - func run -> i32 i32.const 1 i32.const 64 call fd_fdstat_get`), output: "0\n"},
				},
				"environment": {
					source: module(`memory 1 - data 64 "arg:who" func run -> i32 -> i32 -> i32 i32.const 0 i32.const 4 call environ_sizes_get drop i32.const 8 i32.const 4 call args_sizes_get drop i32.const 0 i32.load i32.const 8 i32.load i32.const 64 i32.const 7 call input_size`), output: "0\n0\n-1\n",
					control: probe{args: []field{{"who", "me"}}, output: "0\n0\n2\n"},
				},
				"descriptors": {
					source: module(`memory 1 - func run -> i32 loop local.get 1 local.get 0 i32.const 64 call fd_fdstat_get i32.eqz i32.add local.set 1 local.get 0 i32.const 1 i32.add local.tee 0 i32.const 64 i32.lt_u br_if 0 end local.get 1`), output: "3\n",
					control: probe{source: module(`memory 1 - func run -> i32 i32.const 2 i32.const 64 call fd_fdstat_get`), output: "0\n"},
				},
				"network": {
					source: module(`memory 1 - func run -> i32 -> i32 i32.const 3 i32.const 0 i32.const 64 call sock_accept i32.const 1 i32.const 0 i32.const 0 i32.const 0 i32.const 64 call sock_send`), output: "8\n8\n",
					control: probe{source: module(`memory 1 - func run -> i32 i32.const 1 i32.const 64 call fd_fdstat_get`), output: "0\n"},
				},
				"clock": {
					source: module(`memory 1 - func run -> i64 i32.const 0 i64.const 0 i32.const 64 call clock_time_get drop i32.const 64 i64.load`), output: "0\n",
					control: probe{inputs: []field{{"clock", "1796137982123"}}, output: "1796137982123000000\n"},
				},
				"random": {
					source: module(`memory 1 - func run -> i32 -> i64 i32.const 64 i32.const 8 call random_get i32.const 64 i64.load`), output: "0\n-6013934507156142119\n",
					control: probe{inputs: []field{{"seed", "seed"}}, output: "0\n-5529632151842679252\n"},
				},
				"processes": {
					source: module(`func run -> i32 i32.const 9 call proc_raise`), output: "52\n",
					control: probe{source: module(`func run -> i32 call sched_yield`), output: "0\n"},
				},
			},
			doesStop: {
				"an endless loop": {source: module(`memory 1 - func run print 1 "so far\n" ` + again("") + `print 1 "escaped"`), ends: []notebook.Verdict{notebook.Timeout}, output: "so far\n"},
				"an endless loop in its own handler of errors": {source: module(`memory 1 - func start ` + again("") + `func run print 1 "escaped"`), ends: []notebook.Verdict{notebook.Timeout}},
				"one long call of the host":                    {source: module(`memory 600 - func run ` + again("i32.const 0 i32.const 39000000 call random_get drop") + `print 1 "escaped"`), ends: []notebook.Verdict{notebook.Timeout}},
				"deep recursion":                               {source: module(`func run call run`), ends: []notebook.Verdict{notebook.Failed}, err: "stack overflow"},
				"endless output":                               {source: module(`memory 1 - func run ` + again(`print 1 "again\n"`)), ends: []notebook.Verdict{notebook.Output, notebook.Timeout}, anything: true},
			},
			canGrow: {
				"memory that doubles": {source: module(`section 4 01700001 func run ` + again("ref.null table.size table.grow drop")), ends: []notebook.Verdict{notebook.Memory}},
				"one huge allocation": {source: module(`memory 1 - func run -> i32 i32.const 40000 memory.grow`), output: "-1\n"},
				"a source that nests": {source: module("func run " + strings.Repeat("block ", 60000)), ends: []notebook.Verdict{notebook.Failed}, err: "cannot be loaded"},
				"a flood of output":   {source: module(`memory 32 - data 0 "\x10\x00\x00\x00\x00\x00\x10\x00" func run ` + again("i32.const 1 i32.const 0 i32.const 1 i32.const 8 call fd_write drop")), ends: []notebook.Verdict{notebook.Output}, anything: true},
			},
			canForge: {
				"a frame and a result": {
					source: module(`memory 1 - func run print 1 "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n" i32.const 7 call proc_exit`), ends: []notebook.Verdict{notebook.Failed},
					output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\",\"rung\":\"host\",\"denied\":true}\n", err: "exit status 7",
				},
				"the host's own words":    {source: `memory 1 - func run print 2 "` + word + `" i32.const 124 call proc_exit`, encode: module, ends: []notebook.Verdict{notebook.Failed}, output: word, err: "exit status 124"},
				"the worker's exit codes": {source: `func _start i32.const ` + code + ` call proc_exit`, encode: module, ends: []notebook.Verdict{notebook.OK, notebook.Failed}, err: "exit status " + code},
				"every descriptor": {
					source: module(`memory 1 - data 0 "\x10\x00\x00\x00\x0c\x00\x00\x00" data 16 "forged\x00\x00\x00\x02\x00\x00" func run loop local.get 0 i32.const 0 i32.const 1 i32.const 8 call fd_write drop local.get 0 i32.const 1 i32.add local.tee 0 i32.const 64 i32.lt_u br_if 0 end i32.const 7 call proc_exit`),
					ends:   []notebook.Verdict{notebook.Failed}, err: "exit status 7",
				},
			},
		},
	}
}

// wasmJob is a strict run of a module.
func wasmJob(l notebook.Limits, source string) job {
	j := strictJob(l, source)
	j.language = wasmLanguage.name
	return j
}

// wasmRun runs a module and looks that nothing of it is left.
func wasmRun(t *testing.T, r *Runner, l notebook.Limits, text string) notebook.Result {
	t.Helper()
	res, pid := watched(t, r, wasmJob(l, module(text)))
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the worker %d is still there: %v", pid, err)
	}
	if !raceDetector && res.Peak > l.Memory+attackMemory {
		t.Errorf("%d MiB resident where %d are allowed", res.Peak>>20, l.Memory>>20)
	}
	return res
}

// TestWasmCases are the numbered cases of modules.
func TestWasmCases(t *testing.T) {
	r := newRunner(t, Config{Limits: caseLimits})
	long := caseLimits
	long.Time = growTime
	ends := func(t *testing.T, l notebook.Limits, text string, verdict notebook.Verdict, output, err string) {
		t.Helper()
		if res := wasmRun(t, r, l, text); res.Verdict != verdict || res.Output != output || !strings.Contains(res.Error, err) || err == "" && res.Error != "" {
			t.Errorf("%.200s: %v %.200q %q, want %v %q %q", text, res.Verdict, res.Output, res.Error, verdict, output, err)
		}
	}
	t.Run("09 a wait of the host's", func(t *testing.T) {
		ends(t, caseLimits, "memory 1 - "+hour+"func run "+again(poll+"drop"), notebook.Timeout, "", "")
		// One of an hour is over at once: nobody waits.
		ends(t, long, "memory 1 - "+hour+"func run -> i32 "+poll, notebook.OK, "0\n", "")
		ends(t, long, `memory 1 - data 0 "\x10\x00\x00\x00\x00\x10\x00\x00" func run -> i32 -> i32 i32.const 0 i32.const 0 i32.const 1 i32.const 8 call fd_read i32.const 8 i32.load`, notebook.OK, "0\n0\n", "")
	})
	t.Run("10 a loop in the start section", func(t *testing.T) {
		ends(t, caseLimits, `memory 1 - func start print 1 "so far\n" `+again("")+`func run print 1 "escaped"`, notebook.Timeout, "so far\n", "")
		ends(t, caseLimits, `memory 1 - func _initialize `+again("")+`func run print 1 "escaped"`, notebook.Timeout, "", "")
		ends(t, long, `memory 1 - func start print 1 "first\n" func run print 1 "then\n"`, notebook.OK, "first\nthen\n", "")
	})
	t.Run("33 a memory that begins above the limit", func(t *testing.T) {
		for _, pages := range []int{1500, 4097, 65536} {
			ends(t, long, fmt.Sprintf(`memory %d - func start print 1 "escaped" func run`, pages), notebook.Failed, "", "the module begins with more memory than the ")
		}
		ends(t, long, "memory 65537 - func run", notebook.Failed, "", "over limit of")
		ends(t, long, "memory 512 65536 func run -> i32 memory.size", notebook.OK, "512\n", "")
	})
	t.Run("34 a memory that grows past the limit", func(t *testing.T) {
		ends(t, long, `memory 1 - func run -> i32 -> i32 -> i32 i32.const 4096 memory.grow i32.const 100 memory.grow memory.size print 1 ""`, notebook.OK, "-1\n1\n101\n", "")
		// What it may have, it can fill: the limit is of what is resident.
		ends(t, long, `memory 1 - func run -> i32 loop i32.const 1 memory.grow i32.const -1 i32.ne br_if 0 end
			i32.const 0 i32.const 1 memory.size i32.const 65536 i32.mul memory.fill memory.size i32.const 512 i32.lt_u`, notebook.OK, "0\n", "")
	})
	t.Run("34 out of memory is what noted refused", func(t *testing.T) {
		const traps = `memory.grow i32.const -1 i32.eq if unreachable end print 1 "fits\n"`
		ends(t, long, "memory 1 - func run i32.const 4096 "+traps, notebook.Memory, "", "")
		ends(t, long, "memory 1 - func run i32.const 100 "+traps, notebook.OK, "fits\n", "")
		ends(t, long, "memory 1 - func run i32.const 100 memory.grow drop unreachable", notebook.Failed, "", "unreachable")
		ends(t, long, "memory 1 - func run i32.const 4096 memory.grow drop i32.const 1 call proc_exit", notebook.Failed, "", "exit status 1")
	})
	t.Run("35 many memories and a huge table", func(t *testing.T) {
		ends(t, long, "section 5 0200010001 func run", notebook.Failed, "", "at most one memory")
		ends(t, long, "section 4 017000"+hexOf(unsigned(1<<28))+" func run", notebook.Failed, "", "table min must be at most")
		ends(t, long, "section 4 017000"+hexOf(unsigned(1<<27-1))+" func run", notebook.Memory, "", "")
		ends(t, long, "section 4 01700001 func run "+again("ref.null i32.const 1000000 table.grow drop"), notebook.Memory, "", "")
		ends(t, long, "section 4 01700001 func run -> i32 ref.null i32.const 1000 table.grow drop table.size", notebook.OK, "1001\n", "")
	})
	t.Run("70 an exit code of the engine's", func(t *testing.T) {
		for _, status := range []string{"4026531839", "4294967295", "1", "124", "137"} {
			ends(t, long, `func _start i32.const `+status+` call proc_exit`, notebook.Failed, "", "exit status "+status)
			ends(t, long, `func run i32.const `+status+` call proc_exit`, notebook.Failed, "", "exit status "+status)
			ends(t, long, `func start i32.const `+status+` call proc_exit func run`, notebook.Failed, "", "exit status "+status)
		}
		ends(t, long, `memory 1 - func run print 1 "well\n" i32.const 0 call proc_exit`, notebook.OK, "well\n", "")
	})
	t.Run("71 a trap near the deadline", func(t *testing.T) {
		// It traps at the end of a loop: whichever comes first is what is told.
		ends(t, long, "func run "+`loop local.get 0 i32.const 1 i32.add local.tee 0 i32.const 3000000 i32.lt_u br_if 0 end unreachable`, notebook.Failed, "", "unreachable")
		ends(t, caseLimits, "func run "+again("")+" unreachable", notebook.Timeout, "", "")
	})
}

func TestWhatAModuleShows(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, text, output string }{
		{"what run returns", "func run -> i32 -> i64 -> f64 i32.const -1 i64.const 0x7fffffffffffffff i32.const 1 f64.convert_i32_s i32.const 4 f64.convert_i32_s f64.div", "-1\n9223372036854775807\n0.25\n"},
		{"not if something was written", `memory 1 - func run -> i32 print 1 "a\n" i32.const 1`, "a\n"},
		{"not if something was written where errors go", `memory 1 - func run -> i32 print 2 "a\n" i32.const 1`, "a\n"},
		{"not a reference", "func run -> externref section 10 010400d06f0b", ""},
		{"a command", `memory 1 - func _start print 1 "command\n" func run print 1 "no\n"`, "command\n"},
		{"what makes a reactor ready", `memory 1 - func _initialize print 1 "ready " func run print 1 "run\n"`, "ready run\n"},
		{"nothing", "func run", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := wasmRun(t, r, quick, c.text); res.Verdict != notebook.OK || res.Output != c.output {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

func TestHowAModuleFails(t *testing.T) {
	quick := quick
	quick.Source = notebook.DefaultLimits.Source // which is not what bounds a module
	r := newRunner(t, Config{Limits: quick})
	honest := assemble("func run -> i32 i32.const 1")
	for _, c := range []struct{ name, source, err string }{
		{"no base64", "run!", "is not base64"},
		{"base64 of the web", "-_-_", "is not base64"},
		{"base64 with bits left over", "AGFzbR==", "is not base64"},
		{"base64 that goes on", "AGE=AGE=", "is not base64"},
		{"nothing", "", "not of a core WebAssembly module"},
		{"text", lines([]byte("print(1)")), "not of a core WebAssembly module"},
		{"a component", lines([]byte("\x00asm\x0d\x00\x01\x00")), "not of a core WebAssembly module"},
		{"too large", lines(append(honest, make([]byte, notebook.MaxModule)...)), "the limit is"},
		{"one byte too large", lines(largest(notebook.MaxModule + 1)), "the limit is 262144"},
		{"cut off", lines(honest[:len(honest)-2]), "it is cut off"},
		{"no entry", module("func other"), "neither a function _start nor one that is called run"},
		{"nothing at all", lines([]byte(moduleHeader)), "neither a function _start"},
		{"a command that returns", module("func _start -> i32 i32.const 1"), "_start takes or returns values"},
		{"a beginning that returns", module("func _initialize -> i32 i32.const 1 func run"), "_initialize takes or returns values"},
		{"an entry that takes", lines([]byte(moduleHeader + "\x01\x05\x01\x60\x01\x7f\x00\x03\x02\x01\x00\x07\x07\x01\x03run\x00\x00\x0a\x04\x01\x02\x00\x0b")), "run takes values"},
		{"a function of another module", module(importing("env", "wait", "0000") + "func run"), `imports "wait" from "env", which is not here: there is noted and wasi_snapshot_preview1`},
		{"an older system interface", module(importing("wasi_unstable", "fd_write", "0000") + "func run"), `from "wasi_unstable", which is not here`},
		{"a function that is not there", module(importing("noted", "exec", "0000") + "func run"), `imports "exec" from "noted", where there is no such function`},
		{"a memory by the name of a function", module(importing("noted", "input_size", "020001") + "func run"), `imports "input_size" from "noted", where there is no such function`},
		{"a function of another type", module(importing("noted", "input_size", "0000") + "func run"), "signature mismatch"},
		{"a name with signs for terminals", module(importing("\x1b[m", "a", "0000") + "func run"), `from "\x1b[m", which is not here`},
		{"a trap", module("func run unreachable"), "unreachable"},
		{"a trap at the start", module("func start unreachable func run"), "unreachable"},
		{"a division", module("func run -> i32 i32.const 1 i32.const 0 i32.div_s"), "integer divide by zero"},
		{"outside of its memory", module("memory 1 - func run -> i32 i32.const -4 i32.load"), "out of bounds memory access"},
		{"a pointer of one that has no memory", module("func run -> i32 i32.const 0 i32.const 0 call input_size"), "handed memory that the module does not have"},
		{"what is proposed", module("func run section 10 010400" + "12000b"), "cannot be loaded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := runJob(t, r, wasmJob(quick, c.source))
			if res.Verdict != notebook.Failed || res.Output != "" || !strings.Contains(res.Error, c.err) {
				t.Errorf("%v %q %q, want %q", res.Verdict, res.Output, res.Error, c.err)
			}
			for _, internal := range []string{".go:", "goroutine", "wazero", "runtime error", "\n", "0xc0"} {
				if strings.Contains(res.Error, internal) {
					t.Errorf("the error shows the engine: %q", res.Error)
				}
			}
		})
	}
	for name, source := range map[string]string{
		"the largest": lines(largest(notebook.MaxModule)), "with white space": "\n\t" + strings.Join(strings.Split(lines(honest), ""), " \r\n"),
	} {
		if res := runJob(t, r, wasmJob(quick, source)); res.Verdict != notebook.OK || res.Output != "1\n" {
			t.Errorf("%s: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
	for _, c := range []struct{ name, language, source, hint string }{
		{"more than any module", "wasm", strings.Repeat("A", notebook.MaxModuleText+1), "make the module smaller"},
		{"as much of another language", "lua", lines(largest(notebook.MaxModule)), "raise limits.source"},
	} {
		j := strictJob(quick, c.source)
		j.language = c.language
		var e *notebook.Error
		if err := j.check(); !errors.As(err, &e) || e.Code != notebook.CodeExhausted || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// largest is an honest module of n bytes: a section of the author's own fills it.
func largest(n int) []byte {
	m := assemble("func run -> i32 i32.const 1")
	rest := n - len(m) - 1 - 3 // a number of three bytes
	return append(append(append(m, 0), unsigned(uint64(rest))...), append([]byte{1, 'x'}, make([]byte, rest-2)...)...)
}

func TestWhatAModuleIsGiven(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	ask := func(name string) string { // prints a value and returns its size, and how much fits in four bytes
		return fmt.Sprintf(`memory 1 - data 512 %q data 256 "\x00\x04\x00\x00" func run i32.const 260 i32.const 512 i32.const %[2]d i32.const 1024 i32.const 2000 call input_read local.tee 0 i32.store
			local.get 0 i32.const 512 i32.const %[2]d call input_size i32.ne if unreachable end
			i32.const 1 i32.const 256 i32.const 1 i32.const 248 call fd_write drop`, name, len(name))
	}
	given := func(text string) job {
		j := wasmJob(quick, module(text))
		j.rung = notebook.Granted
		j.request.inputs = []field{{"page", "# Title\n\nüber\n"}, {"clock", "1796137982123"}, {"seed", "a seed"}, {"query", `{"rows":[]}`}}
		j.request.args = []field{{"empty", ""}, {"two words", "a b"}, {"who", "me"}}
		return j
	}
	for name, want := range map[string]string{
		"page": "# Title\n\nüber\n", "arg:who": "me", "arg:two words": "a b", "arg:empty": "", "query": `{"rows":[]}`,
		"clock": `{"date":"2026-12-01","day":1,"hour":15,"iso":"2026-12-01T15:13:02Z","min":13,"month":12,"ms":1796137982123,"sec":2,"unix":1796137982,"wday":3,"yday":335,"year":2026}`,
	} {
		if res := runJob(t, r, given(ask(name))); res.Verdict != notebook.OK || res.Output != want {
			t.Errorf("%s: %v %q %q, want %q", name, res.Verdict, res.Output, res.Error, want)
		}
	}
	seed := runJob(t, r, given(ask("seed"))).Output
	other := given(ask("seed"))
	other.request.inputs[2].value = "another"
	if res := runJob(t, r, other); len(seed) != 64 || len(res.Output) != 64 || res.Output == seed {
		t.Errorf("seeds: %q and %q", seed, res.Output)
	}
	// Names that were not granted, and places that are not there.
	const outside = `i32.const -1 i32.const 4 call input_size i32.const 512 i32.const -1 call input_size
		i32.const 512 i32.const 4 i32.const 65535 i32.const 2 call input_read i32.const 512 i32.const 4 i32.const -1 i32.const -1 call input_read
		i32.const 512 i32.const 4 i32.const 65533 i32.const 3 call input_read i32.const 512 i32.const 4 i32.const 65536 i32.const 0 call input_read`
	results := strings.Repeat("-> i32 ", 6)
	text := `memory 1 - data 512 "page" func run ` + results + outside
	if res := runJob(t, r, given(text)); res.Verdict != notebook.OK || res.Output != "-2\n-2\n-2\n-2\n3\n0\n" {
		t.Errorf("outside: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	for _, name := range []string{"page", "clock", "seed", "query", "arg:who", "arg:", "", "who", "page\x00", "PAGE", "args", "source"} {
		text := fmt.Sprintf(`memory 1 - data 512 %q func run -> i32 -> i32 i32.const 512 i32.const %[2]d call input_size i32.const 512 i32.const %[2]d i32.const 0 i32.const 9 call input_read`, name, len(name))
		if res := runJob(t, r, wasmJob(quick, module(text))); res.Verdict != notebook.OK || res.Output != "-1\n-1\n" {
			t.Errorf("%q at strict: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestAModuleIncludesNothing: parts of other fences are refused by the worker
// too, whatever came before it.
func TestAModuleIncludesNothing(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	j := wasmJob(quick, wasmAnswers.honest)
	j.request.before = []field{{"f2ab3cd4ef", wasmAnswers.honest}}
	if res := runJob(t, r, j); res.Verdict != notebook.Failed || !strings.Contains(res.Error, "includes nothing") {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	j.request.before = nil
	if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != "42\n" {
		t.Errorf("without it: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}
