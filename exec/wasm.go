package exec

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"noted/notebook"
)

// wasmLanguage is a module of the person's own, in base64. It is interpreted:
// a compiler takes minutes over what a hostile module can ask of it, and its
// code would need memory that can be executed.
var wasmLanguage = language{
	name:    "wasm",
	version: "github.com/tetratelabs/wazero " + wazeroVersion,
	open: func(w *workspace) (engine, error) {
		memory, err := reserve(w.limits.Memory)
		if err != nil {
			return nil, err
		}
		return &wasmEngine{out: written{w: w.out}, memory: memory, dirs: guestDirs{dirs: w.dirs}}, nil
	},
	warm: warmWasm,
}

const (
	maxWasmHeap  = 64 << 20 // the most that Go's heap gets: code, tables and stacks of a module
	moduleHeader = "\x00asm\x01\x00\x00\x00"
)

// wasmEngine is one module, for one fence.
type wasmEngine struct {
	out    written
	memory *linear
	dirs   guestDirs
}

// written remembers whether anything was.
type written struct {
	w   io.Writer
	any bool
}

func (w *written) Write(p []byte) (int, error) {
	w.any = w.any || len(p) > 0
	return w.w.Write(p)
}

// warmWasm touches what a module is going to touch, with one that is thrown away.
func warmWasm() {
	const answers = moduleHeader + "\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
		"\x07\x07\x01\x03run\x00\x00" + "\x0a\x06\x01\x04\x00\x41\x2a\x0b"
	e := wasmEngine{out: written{w: io.Discard}, memory: &linear{area: make([]byte, wasmPage), most: wasmPage}}
	e.run(&request{source: base64.StdEncoding.EncodeToString([]byte(answers))})
}

// share halves the memory that may become resident from now on: a module's own
// is not in Go's heap, all else that it makes the engine allocate is.
func (e *wasmEngine) share(free int64) (heap int64) {
	heap = min(free/2, maxWasmHeap)
	e.memory.allow(free - heap)
	return heap
}

func (e *wasmEngine) run(r *request) (o outcome) {
	defer func() { o = e.dirs.explain(o) }()
	defer func() {
		if v := recover(); v != nil {
			if e.memory.refused && e.memory.size == 0 {
				o = failed("the module begins with more memory than the %d MiB that there are", e.memory.most>>20)
				return
			}
			o = failed("the engine gave up on the module: %s", notebook.EscapeLine(fmt.Sprint(v)))
		}
	}()
	if len(r.before) > 0 {
		return failed("a wasm fence is one module and includes nothing")
	}
	module, err := decodeModule(r.source)
	if err != nil {
		return failed("%v", err)
	}
	given, err := newGiven(r)
	if err != nil {
		return failed("%v", err)
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return e.memory }))
	runtime := wazero.NewRuntimeWithConfig(ctx, wasmConfig())
	imports, err := instantiateHost(ctx, runtime, given)
	if err != nil {
		return failed("%v", err)
	}
	if err := checkModuleImports(module, imports); err != nil {
		return failed("%v", err)
	}
	compiled, err := runtime.CompileModule(ctx, module)
	if err != nil {
		return failed("the module cannot be loaded: %s", firstLine(err))
	}
	entry, err := entryOf(compiled)
	if err != nil {
		return failed("%v", err)
	}
	config := given.config(&e.out).WithStartFunctions(entry.before...)
	if files := e.dirs.mount(nil); files != nil {
		config = config.WithFSConfig(files)
	}
	instance, err := runtime.InstantiateModule(ctx, compiled, config)
	if err != nil || entry.name == "" {
		return e.ending(err)
	}
	results, err := instance.ExportedFunction(entry.name).Call(ctx)
	if o := e.ending(err); o.failed || err != nil || e.out.any || len(results) == 0 {
		return o
	}
	if _, err := io.WriteString(&e.out, showResults(entry.results, results)); err != nil {
		return failed("nobody reads on")
	}
	return outcome{}
}

// wasmConfig is how modules are run. What is proposed for WebAssembly and not a
// part of its version 2 is off. There are no debugging tables to be read, and no
// check of a context: the deadline is a signal from outside. How much memory there
// is only [linear] says, which remembers what it refused.
func wasmConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
}

// decodeModule is the module that a fence's text says.
func decodeModule(text string) ([]byte, error) {
	text = strings.Join(strings.Fields(text), "")
	if most := base64.StdEncoding.EncodedLen(notebook.MaxModule); len(text) > most {
		return nil, fmt.Errorf("the module is %d bytes in base64, the limit is %d", len(text), most)
	}
	module, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return nil, errors.New("the fence's text is not base64 of a module: letters, digits, + and /, with = at the end, and white space")
	case len(module) > notebook.MaxModule:
		return nil, fmt.Errorf("the module is %d bytes, the limit is %d", len(module), notebook.MaxModule)
	case !strings.HasPrefix(string(module), moduleHeader):
		return nil, errors.New("the fence's text is base64, but not of a core WebAssembly module of version 1")
	}
	return module, nil
}

// checkModuleImports refuses a module that wants anything but the functions that there
// are, before anything else in it is read.
func checkModuleImports(module []byte, imports map[string][]string) error {
	cut := errors.New("the module cannot be loaded: it is cut off in its imports")
	s := scan{b: module[len(moduleHeader):]}
	for len(s.b) > 0 {
		id, rest := s.b[0], scan{b: s.b[1:]}
		body := scan{b: []byte(rest.padded())}
		if s = rest; s.bad {
			return cut
		}
		if id != 2 { // the imports; they are one section, but that is for the engine to say
			continue
		}
		for range body.leb() {
			from, name := body.padded(), body.padded()
			if body.bad || len(body.b) == 0 {
				return cut
			}
			kind := body.b[0]
			body.b = body.b[1:]
			switch allowed, known := imports[from]; {
			case !known:
				return fmt.Errorf("the module imports %.60q from %.60q, which is not here: there is %s", name, from, strings.Join(slices.Sorted(maps.Keys(imports)), " and "))
			case kind != 0 || !slices.Contains(allowed, name):
				return fmt.Errorf("the module imports %.60q from %.60q, where there is no such function", name, from)
			}
			body.leb() // its type
		}
		if body.bad {
			return cut
		}
	}
	return nil
}

// leb reads a number of 32 bits as WebAssembly writes them: up to five bytes, in
// which nothing has to be short.
func (s *scan) leb() (n uint32) {
	for i := range 5 {
		if i >= len(s.b) {
			break
		}
		b := s.b[i]
		if n |= uint32(b&0x7f) << (7 * i); b < 0x80 {
			s.b = s.b[i+1:]
			return n
		}
	}
	s.b, s.bad = nil, true
	return 0
}

// padded reads bytes behind their number.
func (s *scan) padded() string {
	n := s.leb()
	if uint64(n) > uint64(len(s.b)) {
		s.b, s.bad = nil, true
		return ""
	}
	t := string(s.b[:n])
	s.b = s.b[n:]
	return t
}

// entry is where a module begins.
type entry struct {
	before  []string // runs first
	name    string   // then this; empty where all was said
	results []api.ValueType
}

// entryOf finds the entry of a module: that of a command, or run.
func entryOf(m wazero.CompiledModule) (entry, error) {
	functions := m.ExportedFunctions()
	if f, found := functions["_start"]; found {
		if len(f.ParamTypes())+len(f.ResultTypes()) > 0 {
			return entry{}, errors.New("the module's _start takes or returns values, and cannot")
		}
		return entry{before: []string{"_start"}}, nil
	}
	f, found := functions["run"]
	switch {
	case !found:
		return entry{}, errors.New("the module exports neither a function _start nor one that is called run, so there is nothing to begin with")
	case len(f.ParamTypes()) > 0:
		return entry{}, errors.New("the module's run takes values, and there are none: it reads what it was given by input_read")
	}
	e := entry{name: "run", results: f.ResultTypes()}
	if f, found := functions["_initialize"]; found {
		if len(f.ParamTypes())+len(f.ResultTypes()) > 0 {
			return entry{}, errors.New("the module's _initialize takes or returns values, and cannot")
		}
		e.before = []string{"_initialize"}
	}
	return e, nil
}

// ending is what a module came to. An exit status is its own word, whatever the
// number: none of them says that it was stopped. A program that is out of memory
// ends as unreachable.
func (e *wasmEngine) ending(err error) outcome {
	var exit *sys.ExitError
	switch {
	case err == nil:
		return outcome{}
	case errors.As(err, &exit) && exit.ExitCode() == 0:
		return outcome{}
	case errors.As(err, &exit):
		return failed("exit status %d", exit.ExitCode())
	}
	text := firstLine(err)
	if _, reason, found := strings.Cut(text, "wasm error: "); found {
		if e.memory.refused && reason == "unreachable" {
			return outcome{failed: true, exhausted: true}
		}
		return failed("%s", reason)
	}
	if strings.Contains(text, "recovered by wazero") {
		return failed("a function of the host was handed memory that the module does not have")
	}
	return failed("the module cannot be started: %s", text)
}

// firstLine is an error of the engine without its stack trace. It may name what is
// in the module.
func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return notebook.EscapeLine(first)
}

// showResults is what run returned, a line for each value.
func showResults(types []api.ValueType, values []uint64) string {
	var b strings.Builder
	for i, t := range types {
		switch v := values[i]; t {
		case api.ValueTypeI32:
			b.WriteString(strconv.FormatInt(int64(int32(v)), 10))
		case api.ValueTypeI64:
			b.WriteString(strconv.FormatInt(int64(v), 10))
		case api.ValueTypeF32:
			b.WriteString(strconv.FormatFloat(float64(api.DecodeF32(v)), 'g', -1, 32))
		case api.ValueTypeF64:
			b.WriteString(strconv.FormatFloat(api.DecodeF64(v), 'g', -1, 64))
		default:
			return "" // a vector, or a reference, which is an address
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// given are the values that a module was granted, by the names under which it
// reads them.
type given struct {
	values map[string]string
	clock  int64 // milliseconds
	random io.Reader
}

// newGiven takes the values of a request: page as text, seed as 64 hexadecimal
// digits, clock and query as JSON, each argument as arg:NAME.
func newGiven(r *request) (*given, error) {
	d, clock, err := newValues(r)
	if err != nil {
		return nil, err
	}
	g := &given{values: map[string]string{}, clock: clock, random: rand.NewChaCha8([32]byte{})}
	if d.Page != nil {
		g.values["page"] = *d.Page
	}
	if d.Clock != nil {
		b, err := json.Marshal(d.Clock)
		if err != nil {
			return nil, err
		}
		g.values["clock"] = string(b)
	}
	if d.Seed != "" {
		g.values["seed"] = d.Seed
		g.random = rand.NewChaCha8(notebook.Digest("noted/wasm-random/v1", []byte(d.Seed)))
	}
	if d.Query != nil {
		g.values["query"] = string(d.Query)
	}
	for name, value := range d.Args {
		g.values["arg:"+name] = value
	}
	return g, nil
}

// config is what the system interface has for a module: two places to write to,
// a clock that stands, and numbers that are the same each time.
func (g *given) config(out *written) wazero.ModuleConfig {
	return wazero.NewModuleConfig().WithName("").WithStdout(out).WithStderr(out).WithRandSource(g.random).
		WithWalltime(func() (int64, int32) { return g.clock / 1000, int32(g.clock % 1000 * 1e6) }, sys.ClockResolution(1e6))
}

// notedModule is the name of the module that has the values.
const notedModule = "noted"

// What input_size and input_read answer instead of a number of bytes.
const (
	inputUnknown = -1 // there is no value of that name: it was not granted
	inputOutside = -2 // the name, or the place for the value, is not in the memory
)

// instantiateHost makes the two modules that there are to import from, and
// returns the names of what is in them.
func instantiateHost(ctx context.Context, r wazero.Runtime, g *given) (map[string][]string, error) {
	imports := map[string][]string{}
	wasi := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	i32 := api.ValueTypeI32
	noted := r.NewHostModuleBuilder(notedModule)
	noted.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(g.size), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export("input_size")
	noted.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(g.read), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).Export("input_read")
	for name, b := range map[string]wazero.HostModuleBuilder{wasi_snapshot_preview1.ModuleName: wasi, notedModule: noted} {
		compiled, err := b.Compile(ctx)
		if err != nil {
			return nil, err
		}
		imports[name] = slices.Sorted(maps.Keys(compiled.ExportedFunctions()))
		if _, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name)); err != nil {
			return nil, err
		}
	}
	return imports, nil
}

// size is input_size(name, len): how many bytes a value has.
func (g *given) size(_ context.Context, m api.Module, stack []uint64) {
	value, problem := g.named(m, stack)
	if problem == 0 {
		problem = int32(len(value))
	}
	stack[0] = api.EncodeI32(problem)
}

// read is input_read(name, len, to, most): it copies the beginning of a value, as
// much as fits, and returns how many bytes that were.
func (g *given) read(_ context.Context, m api.Module, stack []uint64) {
	value, problem := g.named(m, stack)
	if problem == 0 {
		to, most := api.DecodeU32(stack[2]), api.DecodeU32(stack[3])
		if place, ok := m.Memory().Read(to, most); ok {
			problem = int32(copy(place, value))
		} else {
			problem = inputOutside
		}
	}
	stack[0] = api.EncodeI32(problem)
}

// named finds the value whose name the first two operands are.
func (g *given) named(m api.Module, stack []uint64) (value string, problem int32) {
	name, ok := m.Memory().Read(api.DecodeU32(stack[0]), api.DecodeU32(stack[1]))
	if !ok {
		return "", inputOutside
	}
	value, granted := g.values[string(name)]
	if !granted {
		return "", inputUnknown
	}
	return value, 0
}
