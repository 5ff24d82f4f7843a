//go:build !linux

package exec

import (
	"context"
	"iter"
	"log/slog"
	"runtime"
	"slices"

	"noted/notebook"
)

const compilerName = "noted-engine-compiler"

func compile() int { return exitNoJail }

// Engines has nothing to keep: outside of Linux there is no jail to run an
// engine in.
type Engines struct{}

// OpenEngines opens nothing.
func OpenEngines(_, _ string, _ []byte, _ *slog.Logger) (*Engines, error) { return &Engines{}, nil }

// Close closes nothing.
func (*Engines) Close() error { return nil }

// Add refuses every file.
func (*Engines) Add(context.Context, string) (notebook.EngineInfo, error) {
	return notebook.EngineInfo{}, refusal(noJail(runtime.GOOS))
}

// Prepare refuses every name.
func (*Engines) Prepare(context.Context, string) (notebook.EngineInfo, error) {
	return notebook.EngineInfo{}, refusal(noJail(runtime.GOOS))
}

// Check has nothing to find.
func (*Engines) Check() iter.Seq[error] { return func(func(error) bool) {} }

// List tells of every engine that noted knows.
func (*Engines) List() []notebook.EngineInfo {
	list := slices.Clone(pins)
	for i := range list {
		list[i].State = notebook.EngineAbsent
	}
	return list
}

// Remove has nothing to remove.
func (*Engines) Remove(_ context.Context, name string) error {
	return notebook.Errorf(notebook.CodeNotFound, "the engine %s is not on this device", notebook.EscapeLine(name)).With("noted engine list")
}
