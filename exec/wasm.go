package exec

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"noted/notebook"
)

// wasmLanguage runs a module that is in the fence, in base64. It is interpreted:
// nothing is compiled, so no memory of its worker is ever executable, and a
// module that takes a compiler half a minute is read in a tenth of a second.
var wasmLanguage = language{
	name:    "wasm",
	version: "github.com/tetratelabs/wazero " + wazeroVersion,
	open: func(w *workspace) (engine, error) {
		memory, err := reserve(w.limits.Memory)
		if err != nil {
			return nil, err
		}
		return &moduleEngine{out: w.out, memory: memory}, nil
	},
}

// maxModule is the most bytes of a module. The fence's source, in which it is four
// thirds of that, has a limit of its own.
const maxModule = 256 << 10

// moduleHeap is what Go's heap may take beside the memory of a module: for the
// module itself in the interpreter's form, its tables and its stack.
const moduleHeap = 40 << 20

// grantedModule is the name of the module from which granted values are imported.
const grantedModule = "noted"

// moduleEngine runs one module.
type moduleEngine struct {
	out    io.Writer
	memory *linear
}

func (e *moduleEngine) share(free int64) (heap int64) {
	heap = min(moduleHeap, free/2)
	e.memory.allow(free - heap)
	return heap
}

func (e *moduleEngine) run(r *request) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			if e.memory.size == 0 && e.memory.refused {
				o = failed("the module begins with more memory than the %d MiB that there are", e.memory.most>>20)
				return
			}
			o = failed("the interpreter gave up: %v", v)
		}
	}()
	if len(r.before) > 0 {
		return failed("a module includes no other fence")
	}
	code, err := decodeModule(r.source)
	if err != nil {
		return failed("%v", err)
	}
	values, clock, err := moduleValues(r)
	if err != nil {
		return failed("%v", err)
	}
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithDebugInfoEnabled(false))
	module, err := runtime.CompileModule(ctx, code)
	if err != nil {
		return failed("the module is not one: %s", firstLine(err))
	}
	if err := hostModules(ctx, runtime, module, values); err != nil {
		return failed("%v", err)
	}
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return e.memory }))
	out := plainWriter{e.out}
	_, err = runtime.InstantiateModule(ctx, module, wazero.NewModuleConfig().WithName("").WithArgs("fence").
		WithStdin(strings.NewReader("")).WithStdout(out).WithStderr(out).
		WithWalltime(func() (int64, int32) { return clock / 1000, int32(clock % 1000 * 1e6) }, sys.ClockResolution(1e6)))
	var exit *sys.ExitError
	switch {
	case err == nil:
		return outcome{}
	case errors.As(err, &exit) && exit.ExitCode() == 0:
		return outcome{}
	case errors.As(err, &exit):
		return failed("the module ended itself with status %d", exit.ExitCode())
	case e.memory.refused && strings.Contains(err.Error(), "wasm error: unreachable"):
		return outcome{failed: true, exhausted: true} // what was refused it ended for
	}
	return failed("%s", trap(err))
}

// decodeModule takes the module out of a fence. Blanks and line ends mean nothing.
func decodeModule(source string) ([]byte, error) {
	text := strings.Join(strings.Fields(source), "")
	if n := base64.StdEncoding.DecodedLen(len(text)); n > maxModule+2 {
		return nil, fmt.Errorf("the module has %d bytes, and %d is the most", n, maxModule)
	}
	code, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the fence must hold a module in base64: %w", err)
	}
	if len(code) > maxModule {
		return nil, fmt.Errorf("the module has %d bytes, and %d is the most", len(code), maxModule)
	}
	return code, nil
}

// moduleValues are what was granted, by name, as bytes, and the time in milliseconds.
func moduleValues(r *request) (map[string][]byte, int64, error) {
	_, clock, err := newDocument(r)
	if err != nil {
		return nil, 0, err
	}
	values := map[string][]byte{}
	for _, in := range r.inputs {
		values[in.name] = []byte(in.value)
		if notebook.Capability(in.name) == notebook.CapSeed {
			h := notebook.Digest("noted/seed/v1", []byte(in.value))
			values[in.name] = h[:]
		}
	}
	if r.args != nil {
		args := map[string]string{}
		for _, f := range r.args {
			args[f.name] = f.value
		}
		if values["args"], err = json.Marshal(args); err != nil {
			return nil, 0, err
		}
	}
	return values, clock, nil
}

// hostModules makes what the module may import, and refuses by name what else it
// wants: of WASI everything, behind which nothing was granted, and two functions
// for the values of the run, if there are any.
func hostModules(ctx context.Context, runtime wazero.Runtime, module wazero.CompiledModule, values map[string][]byte) error {
	wasi := runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	system, err := wasi.Instantiate(ctx)
	if err != nil {
		return err
	}
	known := map[string]map[string]api.FunctionDefinition{wasi_snapshot_preview1.ModuleName: system.ExportedFunctionDefinitions()}
	if len(values) > 0 {
		granted := runtime.NewHostModuleBuilder(grantedModule)
		granted.NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, name, length uint32) int32 {
			v, found := valueOf(m, values, name, length)
			if !found {
				return -1
			}
			return int32(len(v))
		}).Export("len")
		granted.NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, name, length, to, offset, n uint32) int32 {
			v, found := valueOf(m, values, name, length)
			if !found {
				return -1
			}
			v = v[min(int(offset), len(v)):]
			v = v[:min(int(n), len(v))]
			if !m.Memory().Write(to, v) {
				return -1
			}
			return int32(len(v))
		}).Export("read")
		host, err := granted.Instantiate(ctx)
		if err != nil {
			return err
		}
		known[grantedModule] = host.ExportedFunctionDefinitions()
	}
	for _, f := range module.ImportedFunctions() {
		from, name, _ := f.Import()
		if _, found := known[from][name]; found {
			continue
		}
		if from == grantedModule && len(values) == 0 {
			return fmt.Errorf("the module imports the function %q of %q, and this fence was granted nothing", notebook.EscapeLine(name), from)
		}
		return fmt.Errorf("the module imports the function %q of %q, which is not here", notebook.EscapeLine(name), notebook.EscapeLine(from))
	}
	return nil
}

// valueOf is the value whose name is in the memory of m.
func valueOf(m api.Module, values map[string][]byte, name, length uint32) ([]byte, bool) {
	if m.Memory() == nil {
		return nil, false
	}
	b, ok := m.Memory().Read(name, length)
	if !ok {
		return nil, false
	}
	v, found := values[string(b)]
	return v, found
}

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
