package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// interpreter is an engine that is a WebAssembly module, and how a language
// makes use of it. It is started before there is a request, with a script of
// ours that reads one document from its standard input, runs what is in it, and
// ends with one of the statuses below. Whoever waits for that document is ready.
type interpreter struct {
	args  []string
	heap  int64              // what Go's heap may take beside it: for the document and for the native stack
	files func(*guest) fs.FS // what it can open, for reading; nil for nothing
	check func(*request) error
}

// What a guest ends with, if our script ends it. What it writes to descriptor 2
// by then is the error of the fence. A fence that ends the guest itself can only
// choose among these: all of them say that it ended by itself, and none that it
// was stopped.
const (
	guestOK        = 0
	guestFailed    = 1
	guestExhausted = 2 // believed only of a guest that has been refused memory
)

// guest is an interpreter in a worker: it can compute, write to the output, read its
// document, and see a clock that stands. It has no file but those of its program
// and what was granted, no environment and no arguments but ours, and every random
// number is the same in every run.
type guest struct {
	program interpreter
	out     io.Writer
	dirs    guestDirs
	runtime wazero.Runtime
	module  wazero.CompiledModule
	memory  *linear
	stdin   stdin
	errors  head
	clock   atomic.Int64 // milliseconds
	request *request     // set before the document is fed
	file    []byte       // the mapped module
	ended   chan error
}

func newGuest(w *workspace, p interpreter) (*guest, error) {
	memory, err := reserve(w.limits.Memory)
	if err != nil {
		return nil, err
	}
	return &guest{
		program: p, out: w.out, memory: memory, dirs: guestDirs{dirs: w.dirs},
		stdin:  stdin{waits: make(chan struct{}), document: make(chan []byte)},
		errors: head{most: 2 * maxErrorText},
		ended:  make(chan error, 1),
	}, nil
}

// prepare prepares module, and all that it may import. Nothing of it runs.
func (g *guest) prepare(ctx context.Context, config wazero.RuntimeConfig, module []byte) error {
	g.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	var err error
	if g.module, err = g.runtime.CompileModule(ctx, module); err != nil {
		return err
	}
	host := g.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(host)
	for _, f := range g.module.ImportedFunctions() {
		if module, name, _ := f.Import(); module == wasi_snapshot_preview1.ModuleName && strings.HasPrefix(name, "sock_") {
			host.NewFunctionBuilder().WithGoFunction(noSockets, f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	_, err = host.Instantiate(ctx)
	return err
}

// noSockets answers every call that is about sockets: function not supported.
var noSockets = api.GoFunc(func(_ context.Context, stack []uint64) {
	const enosys = 52
	stack[0] = enosys
})

// boot runs the program until it waits for its document.
func (g *guest) boot() error {
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return g.memory }))
	config := wazero.NewModuleConfig().WithName("").WithArgs(g.program.args...).
		WithStdin(&g.stdin).WithStdout(plainWriter{g.out}).WithStderr(&g.errors).
		WithWalltime(func() (int64, int32) {
			ms := g.clock.Load()
			return ms / 1000, int32(ms % 1000 * 1e6)
		}, sys.ClockResolution(1e6))
	var files wazero.FSConfig
	if g.program.files != nil {
		files = wazero.NewFSConfig().WithFSMount(g.program.files(g), "/")
	}
	if files = g.dirs.mount(files); files != nil {
		config = config.WithFSConfig(files)
	}
	go func() {
		_, err := g.runtime.InstantiateModule(ctx, g.module, config)
		g.ended <- err
	}()
	select {
	case <-g.stdin.waits:
		g.settle()
		return nil
	case err := <-g.ended:
		return fmt.Errorf("it ended before it could be asked anything: %w: %s", err, g.errors.text())
	}
}

// share keeps all but a part of the memory that may become resident from now on
// for the program's own.
func (g *guest) share(free int64) (heap int64) {
	g.memory.allow(free - g.program.heap)
	return g.program.heap
}

func (g *guest) run(r *request) outcome {
	if g.program.check != nil {
		if err := g.program.check(r); err != nil {
			return failed("%v", err)
		}
	}
	document, clock, err := newDocument(r, g.dirs.paths())
	if err != nil {
		return failed("%v", err)
	}
	g.clock.Store(clock)
	g.request = r
	g.stdin.document <- document
	return g.dirs.explain(g.ending(<-g.ended))
}

// ending is what a guest came to.
func (g *guest) ending(err error) outcome {
	var exit *sys.ExitError
	status := uint32(guestOK)
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		if g.memory.refused {
			return outcome{failed: true, exhausted: true}
		}
		return failed("the engine gave up: %s", trap(err))
	}
	switch {
	case status == guestOK:
		return outcome{}
	case status == guestExhausted && g.memory.refused:
		return outcome{failed: true, exhausted: true}
	case len(g.errors.b) == 0:
		return failed("the fence ended itself with status %d", status)
	}
	return outcome{failed: true, text: clipError(g.errors.text())}
}

// trap is the reason in the message of a trap, without its stack trace.
func trap(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if _, reason, found := strings.Cut(first, "wasm error: "); found {
		if reason == "out of bounds memory access" {
			reason += ", which is what calls within calls come to that are too deep"
		}
		return reason
	}
	return first
}

// stdin is the standard input of a guest: one document, which the guest waits
// for, and then its end.
type stdin struct {
	waits    chan struct{} // closed when the guest waits
	document chan []byte
	asked    bool
	rest     []byte
}

func (s *stdin) Read(p []byte) (int, error) {
	if !s.asked {
		s.asked = true
		close(s.waits)
		s.rest = <-s.document
	}
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// head keeps the first bytes of what is written to it.
type head struct {
	most int
	b    []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.most-len(h.b))]...)
	return len(p), nil
}

func (h *head) text() string { return strings.TrimRight(string(h.b), "\n") }

// linear is the memory of a guest: an area that is reserved once and never
// moves, of which as much can be used as was allowed.
type linear struct {
	area    []byte
	size    uint64
	most    uint64
	refused bool // the guest wanted more
}

const wasmPage = 64 << 10

// allow bounds what the memory may grow by from now on.
func (m *linear) allow(more int64) {
	m.most = min(uint64(len(m.area)), m.size+uint64(max(0, more))) &^ (wasmPage - 1)
}

// Reallocate implements [experimental.LinearMemory].
func (m *linear) Reallocate(size uint64) []byte {
	if size > m.most {
		m.refused = true
		return nil
	}
	m.size = size
	return m.area[:size:size]
}

// Free implements [experimental.LinearMemory]. A worker ends with its guest.
func (m *linear) Free() {}

// plainWriter hides that a writer is a file, which wazero would look into.
type plainWriter struct{ io.Writer }
