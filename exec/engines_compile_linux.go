package exec

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"noted/notebook"
)

// compileJail are the bounds of compiling one engine.
type compileJail struct {
	time   time.Duration // then it is killed
	memory int64         // bytes that it may map beside what it has at its start
}

// compileTight has room for several times what CPython takes: 5 s on one of two
// busy cores, and half a gibibyte.
var compileTight = compileJail{time: 2 * time.Minute, memory: 3 << 29}

// maxReport is the most that a compiler says when it fails.
const maxReport = 4 << 10

// compile has a process of its own compile an engine file, which nobody has
// looked into: how long a compiler takes and how much memory depends on what it
// is given, and wazero's cannot be called off. The process can read the module,
// which is open, and write into one fresh directory; it is dead when compile
// returns. What it made is returned sealed, with wazero's key of it.
func (e *Engines) compile(ctx context.Context, p notebook.EngineInfo, wasm *os.File) (code *os.File, key string, err error) {
	refuse := func(err error) (*os.File, string, error) {
		return nil, "", notebook.Errorf(notebook.CodeUnavailable, "the engine %s cannot be compiled: %v", p.Name, err)
	}
	dir, err := os.MkdirTemp(e.cache, partial+"*") // 0700
	if err != nil {
		return refuse(err)
	}
	defer os.RemoveAll(dir)
	// Strongest first; one of the two must keep the process in its directory.
	for _, try := range []struct{ landlock, namespaces bool }{{true, true}, {false, true}, {true, false}} {
		next := e.jail.compile(ctx, wasm, dir, try.landlock, try.namespaces)
		if err == nil || !refused(next) {
			err = next // of those that this machine refuses the first is told
		}
		if !refused(next) {
			break
		}
	}
	if err != nil {
		return refuse(err)
	}
	// Only a directory with one file in it, and that one wazero's.
	place := filepath.Join(dir, wazeroDir())
	entries, err := os.ReadDir(place)
	if err != nil {
		return refuse(err)
	}
	if len(entries) != 1 {
		return refuse(fmt.Errorf("the compiler left %d files instead of one", len(entries)))
	}
	key = entries[0].Name()
	if b, err := hex.DecodeString(key); err != nil || len(b) != 32 || hex.EncodeToString(b) != key {
		return refuse(fmt.Errorf("the compiler left a file %q", key))
	}
	f, size, err := openRegular(filepath.Join(place, key), maxCode)
	if err != nil {
		return refuse(fmt.Errorf("what the compiler left: %w", err))
	}
	defer f.Close()
	if code, err = sealed(p.Name+"-code", io.LimitReader(f, size)); err != nil {
		return refuse(err)
	}
	return code, key, nil
}

// compile runs one compiler process.
func (j compileJail) compile(ctx context.Context, wasm *os.File, dir string, landlock, namespaces bool) error {
	place, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer place.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	report, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	process, ended := make(chan error, 1), make(chan struct{})
	defer close(ended)
	var started *os.Process
	// As with every worker: the thread confines itself, what it starts is born
	// confined, and is killed by the kernel when the thread ends.
	go func() {
		runtime.LockOSThread()
		if landlock {
			access := uint64(landReadFile | landWriteFile | landReadDir | landRemove | landMakeDir | landMakeFile)
			if err := restrictThread(landRule{dir, access}); err != nil {
				process <- err
				return
			}
		}
		var err error
		started, err = os.StartProcess("/proc/self/exe", []string{compilerName, strconv.FormatBool(landlock), strconv.FormatInt(j.memory, 10), strconv.FormatInt(int64(j.time), 10)}, &os.ProcAttr{
			Dir:   "/",
			Env:   workerEnv,
			Files: []*os.File{fdModule: wasm, fdReport: end, 2: null, fdPlace: place},
			Sys:   (&spawner{namespaces: namespaces}).attributes(),
		})
		process <- err
		<-ended
	}()
	err = <-process
	end.Close()
	if err != nil {
		return err
	}
	var late, off atomic.Bool
	deadline := time.AfterFunc(j.time, func() { late.Store(true); _ = started.Kill() })
	defer deadline.Stop()
	defer context.AfterFunc(ctx, func() { off.Store(true); _ = started.Kill() })()
	said, _ := io.ReadAll(io.LimitReader(report, maxReport))
	_ = report.Close() // who says more than that gets a signal
	state, err := started.Wait()
	switch {
	case err != nil:
		return err
	case off.Load():
		return context.Cause(ctx)
	case late.Load():
		return fmt.Errorf("it took longer than %v", j.time)
	case state.ExitCode() == 0 && len(said) == 0:
		return nil
	case state.ExitCode() == exitNoJail:
		return &missingLayer{layer: string(said), reason: "the compiler cannot be jailed"}
	case state.ExitCode() == 1 && len(said) > 0:
		return errors.New(notebook.EscapeLine(string(said)))
	case state.ExitCode() == exitExhausted:
		return fmt.Errorf("it took more memory than %d MiB", j.memory>>20)
	}
	return fmt.Errorf("the compiler died: %v", state)
}
