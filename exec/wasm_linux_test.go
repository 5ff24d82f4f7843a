package exec

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"noted/notebook"
)

// times repeats a body so often.
func times(n int, body []byte) []byte {
	return slices.Concat([]byte{opLoop, noType}, body,
		local(opLocalGet, 1), constant(1), []byte{opI32Add}, local(opLocalTee, 1), constant(int64(n)), []byte{opI32LtU, opBrIf, 0, opEnd})
}

func wasi(name string, params int, wide ...int) moduleImport {
	return moduleImport{"wasi_snapshot_preview1", name, params, wide, true}
}

// growing is a memory that grows by so many pages, for ever or once.
func growing(pages int64) []byte {
	return slices.Concat(constant(pages), []byte{opMemoryGrow, 0})
}

// touching writes to each page of the memory that there is, from local 0 on.
func touching() []byte {
	return slices.Concat(local(opLocalGet, 0), constant(1), []byte{opI32Store8, 0, 0}, local(opLocalGet, 0), constant(4096), []byte{opI32Add}, local(opLocalSet, 0))
}

// wasmNames is a module that imports every function of WASI that there is, and
// whatever it lists is there: a module without one of them does not start.
func wasmNames() string {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	_, err := wasi_snapshot_preview1.Instantiate(ctx, r)
	if err != nil {
		panic(err)
	}
	functions := r.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	var text strings.Builder
	var imports []moduleImport
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		i := moduleImport{module: wasi_snapshot_preview1.ModuleName, name: name, params: len(f.ParamTypes()), result: len(f.ResultTypes()) > 0}
		for p, t := range f.ParamTypes() {
			if t == i64Type {
				i.wide = append(i.wide, p)
			}
		}
		if name != "fd_write" {
			imports = append(imports, i)
		}
		fmt.Fprintf(&text, "%s.%s%x\n", wasi_snapshot_preview1.ModuleName, name, f.ParamTypes())
	}
	return prints(text.String(), nil, imports...).fence()
}

var (
	works = shows(wasi("fd_fdstat_get", 2), constant(1), constant(64)).fence() // 00: there is a standard output

	wasmAnswers = answers{
		honest: prints("42\n", nil).fence(), shows: "42\n", limits: conformLimits, golden: "wasm.txt", names: wasmNames(),
		counts: moduleText{
			imports: []moduleImport{wasiWrite}, memory: onePage, data: strings.Repeat("x", 9999) + "\n500007\n", locals: 2,
			body: slices.Concat(times(50, writing(1, 1024, 10000)), writing(1, 1024+10000, 7)),
		}.fence(),
		to: map[string]map[string]answer{
			canReach: {
				"files":       {source: shows(wasi("path_open", 9, 5, 6), constant(3), constant(0), constant(16), constant(1), constant(0), constant64(0), constant64(0), constant(0), constant(64)).fence(), output: "08\n", control: probe{source: works, output: "00\n"}},
				"environment": {source: sizes("environ_sizes_get"), output: "00\n", control: probe{source: sizes("args_sizes_get"), output: "01\n"}},
				"descriptors": {source: shows(wasi("fd_fdstat_get", 2), constant(3), constant(64)).fence(), output: "08\n", control: probe{source: works, output: "00\n"}},
				"network":     {source: shows(wasi("sock_accept", 3), constant(3), constant(0), constant(64)).fence(), output: "08\n", control: probe{source: works, output: "00\n"}},
				"clock":       {source: seconds, output: "00\n", control: probe{source: seconds, inputs: []field{{"clock", "1796137982123"}}, output: "82\n"}},
				"random":      {source: randomByte, output: "83\n", control: probe{source: grantedLength("seed"), inputs: []field{{"seed", "seed"}}, output: "32\n"}},
				"processes":   {source: shows(wasi("proc_raise", 1), constant(9)).fence(), output: "52\n", control: probe{source: shows(wasi("sched_yield", 0)).fence(), output: "00\n"}},
			},
			doesStop: {
				"an endless loop": {source: prints("so far\n", looping(nil)).fence(), ends: []notebook.Verdict{notebook.Timeout}, output: "so far\n"},
				"an endless loop in its own handler of errors": {source: moduleText{start: true, body: looping(nil)}.fence(), ends: []notebook.Verdict{notebook.Timeout}},
				"one long call of the host":                    {source: prints("", looping(slices.Concat(constant(2048), constant(60000), calling(1), []byte{opDrop})), wasi("random_get", 2)).fence(), ends: []notebook.Verdict{notebook.Timeout}},
				"deep recursion":                               {source: moduleText{body: calling(0)}.fence(), ends: []notebook.Verdict{notebook.Failed}, err: "stack overflow"},
				"endless output":                               {source: prints("", looping(writing(1, 0, 60000))).fence(), ends: []notebook.Verdict{notebook.Output, notebook.Timeout}, anything: true},
			},
			canGrow: {
				"memory that doubles": {source: moduleText{memory: onePage, locals: 1, body: looping(slices.Concat(growing(16), constant(-1), []byte{opI32Eq, opIf, noType, opUnreachable, opEnd}))}.fence(), ends: []notebook.Verdict{notebook.Memory}},
				"one huge allocation": {source: moduleText{memory: []byte{0, 0x81, 0x20}}.fence(), ends: []notebook.Verdict{notebook.Failed}, err: "the module begins with more memory than the "},
				"a source that nests": {source: moduleText{body: slices.Concat(bytes.Repeat([]byte{opBlock, noType}, 60000), bytes.Repeat([]byte{opEnd}, 60000))}.fence(), anything: true, ends: []notebook.Verdict{notebook.OK, notebook.Failed, notebook.Memory}},
				"a flood of output":   {source: prints("", looping(writing(1, 0, 60000))).fence(), ends: []notebook.Verdict{notebook.Output}, anything: true},
			},
			canForge: {
				"a frame and a result":    {source: prints("\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\"}\n", []byte{opUnreachable}).fence(), ends: []notebook.Verdict{notebook.Failed}, output: "\x00\x00\x00\x02\x00\x00{\"verdict\":\"ok\"}\n", err: "unreachable"},
				"the host's own words":    {source: prints("module closed with context deadline exceeded\n", slices.Concat(constant(124), calling(1)), wasiExit).fence(), ends: []notebook.Verdict{notebook.Failed}, err: "the module ended itself with status 124"},
				"the worker's exit codes": {source: prints("", slices.Concat(constant(exitLate), calling(1)), wasiExit).fence(), ends: []notebook.Verdict{notebook.Failed}, err: "the module ended itself with status 72"},
				"every descriptor":        {source: prints("forged", slices.Concat(writing(0, 1024, 6), writing(3, 1024, 6), writing(4, 1024, 6), writing(5, 1024, 6), []byte{opUnreachable})).fence(), ends: []notebook.Verdict{notebook.Failed}, output: "forged", err: "unreachable"},
			},
		},
	}

	// randomByte shows the first random number, which is the same in every run.
	randomByte = moduleText{
		imports: []moduleImport{wasiWrite, wasi("random_get", 2)}, memory: onePage, locals: 2,
		body: slices.Concat(constant(64), constant(1), calling(1), []byte{opDrop}, constant(64), []byte{opI32Load8, 0, 0}, constant(100), []byte{opI32RemU}, printing(0)),
	}.fence()

	// seconds shows the last two digits of the time.
	seconds = moduleText{
		imports: []moduleImport{wasiWrite, wasi("clock_time_get", 3, 1)}, memory: onePage, locals: 2,
		body: slices.Concat(constant(0), constant64(1), constant(64), calling(1), []byte{opDrop},
			constant(64), []byte{opI64Load, 3, 0}, constant64(1e9), []byte{opI64DivU}, constant64(100), []byte{opI64RemU, opI32Wrap}, printing(0)),
	}.fence()
)

// sizes shows the first number that a call of two addresses leaves behind.
func sizes(name string) string {
	return moduleText{
		imports: []moduleImport{wasiWrite, wasi(name, 2)}, memory: onePage, locals: 2,
		body: slices.Concat(constant(64), constant(68), calling(1), []byte{opDrop}, constant(64), []byte{opI32Load, 2, 0}, printing(0)),
	}.fence()
}

// grantedLength shows the length of what was granted under a name.
func grantedLength(name string) string {
	return moduleText{
		imports: []moduleImport{wasiWrite, {"noted", "len", 2, nil, true}}, memory: onePage, locals: 2, data: name,
		body: slices.Concat(constant(1024), constant(int64(len(name))), calling(1), printing(0)),
	}.fence()
}

// TestModules are fences in base64, from outside.
func TestModules(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct {
		name, source string
		verdict      notebook.Verdict
		output, err  string
	}{
		{"one that writes", prints("hello\n", nil).fence(), notebook.OK, "hello\n", ""},
		{"with line ends and blanks", "  " + strings.Join(strings.SplitAfter(prints("hello\n", nil).fence(), "A"), "\n\t"), notebook.OK, "hello\n", ""},
		{"one whose start section writes", moduleText{imports: []moduleImport{wasiWrite}, memory: onePage, data: "begun\n", start: true, body: writing(1, 1024, 6)}.fence(), notebook.OK, "begun\n", ""},
		{"what it writes for errors is output too", prints("a\n", writing(2, 1024, 2)).fence(), notebook.OK, "a\na\n", ""},
		{"it ends itself well", prints("a\n", slices.Concat(constant(0), calling(1)), wasiExit).fence(), notebook.OK, "a\n", ""},
		{"no base64", "(module)", notebook.Failed, "", "the fence must hold a module in base64: illegal base64 data at input byte 0"},
		{"no module", base64.StdEncoding.EncodeToString([]byte("not one")), notebook.Failed, "", "the module is not one: invalid magic number"},
		{"nothing", "", notebook.Failed, "", "the module is not one: invalid magic number"},
		{"an import of another system", moduleText{imports: []moduleImport{{"env", "system", 1, nil, true}}}.fence(), notebook.Failed, "", `the module imports the function "system" of "env", which is not here`},
		{"an import that WASI has not", moduleText{imports: []moduleImport{wasi("path_rule_the_world", 1)}}.fence(), notebook.Failed, "", `the module imports the function "path_rule_the_world" of "wasi_snapshot_preview1", which is not here`},
		{"values, where none are granted", grantedLength("page"), notebook.Failed, "", `the module imports the function "len" of "noted", and this fence was granted nothing`},
		{"a trap", moduleText{body: []byte{opUnreachable}}.fence(), notebook.Failed, "", "unreachable"},
		{"too large", base64.StdEncoding.EncodeToString(make([]byte, maxModule+1)), notebook.Failed, "", "the module has 262145 bytes, and 262144 is the most"},
		{"large", moduleText{imports: []moduleImport{wasiWrite}, memory: []byte{0, 8}, data: strings.Repeat("x", maxModule-300), locals: 2, body: writing(1, 1024, 3)}.fence(), notebook.OK, "xxx", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := runIn(t, r, "wasm", c.source); res.Verdict != c.verdict || res.Output != c.output || res.Error != c.err {
				t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
			}
		})
	}
}

func TestWhatAModuleIsGiven(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	// read shows what was granted under a name, up to 1000 bytes.
	read := func(name string) string {
		return moduleText{
			imports: []moduleImport{wasiWrite, {"noted", "read", 5, nil, true}}, memory: onePage, locals: 2, data: name,
			body: slices.Concat(constant(1024), constant(int64(len(name))), constant(4096), constant(0), constant(1000), calling(1), local(opLocalSet, 0),
				constant(0), constant(4096), []byte{0x36, 2, 0}, constant(4), local(opLocalGet, 0), []byte{0x36, 2, 0},
				constant(1), constant(0), constant(1), constant(8), calling(0), []byte{opDrop}),
		}.fence()
	}
	for _, c := range []struct{ source, output string }{
		{read("page"), "# Title\n"},
		{read("clock"), "1796137982123"},
		{read("args"), `{"who":"me\" or you"}`},
		{grantedLength("seed"), "32\n"},
		{grantedLength("page"), "08\n"},
	} {
		j := strictJob(quick, c.source)
		j.language, j.rung = "wasm", notebook.Granted
		j.request.inputs = []field{{"page", "# Title\n"}, {"clock", "1796137982123"}, {"seed", "a seed"}}
		j.request.args = []field{{"who", `me" or you`}}
		if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != c.output {
			t.Errorf("%v %q %q, want %q", res.Verdict, res.Output, res.Error, c.output)
		}
	}
}

// hostileModules are for [TestHostileModules], with how they may end.
func hostileModules() map[string]struct {
	source string
	ends   []notebook.Verdict
} {
	type end = struct {
		source string
		ends   []notebook.Verdict
	}
	stops := []notebook.Verdict{notebook.Timeout}
	refuses := []notebook.Verdict{notebook.Failed}
	full := []notebook.Verdict{notebook.Memory, notebook.Failed, notebook.Timeout}
	nop := []byte{0x01}
	return map[string]end{
		"case 10: a loop in the start section":              {moduleText{start: true, body: looping(nil)}.fence(), stops},
		"case 33: 4097 pages of memory":                     {moduleText{memory: []byte{0, 0x81, 0x20}}.fence(), refuses},
		"65536 pages of memory":                             {moduleText{memory: []byte{0, 0x80, 0x80, 0x04}}.fence(), refuses},
		"more pages than there can be":                      {moduleText{memory: []byte{0, 0x81, 0x80, 0x04}}.fence(), refuses},
		"case 35: two memories":                             {moduleText{more: nil, memory: onePage, table: nil}.twoMemories(), refuses},
		"case 35: a huge table":                             {moduleText{table: []byte{0, 0x80, 0x80, 0x80, 0x40}}.fence(), full},
		"a table that grows":                                {moduleText{table: []byte{0, 1}, body: looping(slices.Concat([]byte{0xd0, 0x70}, constant(1<<20), []byte{0xfc, 15, 0, opDrop}))}.fence(), full},
		"a table that grows at once":                        {moduleText{table: []byte{0, 1}, body: slices.Concat([]byte{0xd0, 0x70}, constant(1<<30), []byte{0xfc, 15, 0, opDrop})}.fence(), append(full, notebook.OK)},
		"memory that grows and is written to":               {moduleText{memory: onePage, locals: 1, body: looping(slices.Concat(growing(1), []byte{opDrop}, touching()))}.fence(), full},
		"memory that asks for ever":                         {moduleText{memory: onePage, body: looping(slices.Concat(growing(1000), []byte{opDrop}))}.fence(), stops},
		"60000 blocks within each other":                    {moduleText{body: slices.Concat(bytes.Repeat([]byte{opBlock, noType}, 60000), looping(nil), bytes.Repeat([]byte{opEnd}, 60000))}.fence(), append(full, notebook.OK)},
		"200000 instructions that a compiler ponders about": {moduleText{locals: 1, body: slices.Concat(bytes.Repeat(slices.Concat(local(opLocalGet, 0), local(opLocalGet, 0), []byte{opI32Add}, local(opLocalSet, 0)), 27000), looping(nil))}.fence(), append(full, notebook.OK)},
		"50000 locals in a loop of calls":                   {moduleText{locals: 49999, body: calling(0)}.fence(), full},
		"two gibibytes of locals":                           {moduleText{locals: 1 << 30, body: nop}.fence(), full},
		"calls within calls":                                {moduleText{body: calling(0)}.fence(), append(refuses, notebook.Timeout)},
		"a sleep":                                           {prints("", looping(slices.Concat(constant(1024), constant(2048), constant(1), constant(4096), calling(1), []byte{opDrop})), wasi("poll_oneoff", 4)).fence(), stops},
		"random numbers for ever":                           {prints("", looping(slices.Concat(constant(2048), constant(60000), calling(1), []byte{opDrop})), wasi("random_get", 2)).fence(), stops},
		"output for ever":                                   {prints("", looping(writing(1, 0, 65000))).fence(), []notebook.Verdict{notebook.Output, notebook.Timeout}},
		"output from beyond its memory":                     {prints("", looping(writing(1, 65000, 1<<30))).fence(), stops},
		"sections that say more than there is":              {base64.StdEncoding.EncodeToString([]byte("\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\xff\x0f")), refuses},
		"a billion types":                                   {base64.StdEncoding.EncodeToString([]byte("\x00asm\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x03")), full},
		"a billion functions":                               {base64.StdEncoding.EncodeToString([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x05\xff\xff\xff\xff\x03")), full},
		"case 70: the status of a deadline":                 {prints("", slices.Concat(constant(-0x10000001), calling(1)), wasiExit).fence(), refuses},
		"case 70: the status of a cancel":                   {prints("", slices.Concat(constant(-1), calling(1)), wasiExit).fence(), refuses},
	}
}

// twoMemories is m with a memory more.
func (m moduleText) twoMemories() string {
	b := bytes.Replace(m.encode(), sectionOf(5, counted(m.memory)), sectionOf(5, counted(m.memory, m.memory)), 1)
	return base64.StdEncoding.EncodeToString(b)
}

// TestHostileModules runs modules by the rules of the corpora of other languages.
func TestHostileModules(t *testing.T) {
	r := newRunner(t, Config{Limits: attackLimits})
	var s summary
	modules := hostileModules()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		c := modules[name]
		_, res, slow := s.measure(t, r, attackLimits, script{"wasm", name, c.source})
		if !slices.Contains(c.ends, res.Verdict) {
			t.Errorf("%s: %v %q, want %v", name, res.Verdict, res.Error, c.ends)
		}
		if slow != "" && !crowded() && !raceDetector {
			t.Errorf("%s: %s", name, slow)
		}
	}
}
