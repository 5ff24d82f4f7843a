package exec

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"noted/notebook"
)

func TestMain(m *testing.M) {
	if os.Args[0] == workerName && openedByLimits() {
		openEverything = func(L *lua.LState) {
			L.OpenLibs()
			probes := L.NewTable()
			calls := maps.Clone(systemCalls)
			maps.Copy(calls, socketCalls)
			for name, p := range calls {
				probes.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
					L.Push(lua.LString(fmt.Sprint(p())))
					return 1
				}))
			}
			L.SetGlobal("probe", probes)
			L.SetGlobal("dirprobe", L.NewFunction(func(L *lua.LState) int {
				L.Push(lua.LString(fmt.Sprint(dirProbes[L.CheckString(1)](grantedDir()))))
				return 1
			}))
		}
		openShell = true
	}
	if os.Args[0] == compilerName {
		insideCompiler = tryInsideCompiler
	}
	if os.Args[0] == workerName {
		languages = append(append(languages, starterLanguage), probingLanguages()...)
	}
	if len(os.Args) == 3 && os.Args[1] == probeRole {
		os.Exit(beProbe(os.Args[2]))
	}
	Worker()
	wasmAnswers = assembleAnswers()
	conformance["wasm"] = wasmAnswers
	switch os.Args[0] {
	case faultyParent:
		os.Exit(beFaulty())
	case confinedProgram:
		os.Exit(beConfined())
	case doomedParent:
		os.Exit(beDoomed())
	case doomedRuns:
		os.Exit(beDoomedRuns())
	case hostAsked:
		os.Exit(beHostAsked())
	case flooder:
		os.Exit(beFlooder())
	case faultyCompiler:
		os.Exit(beFaultyCompiler())
	case threadStarter:
		os.Exit(beThreadStarter())
	case coreVictim:
		os.Exit(beCoreVictim())
	}
	os.Exit(m.Run())
}

// ofTheWorker is for a test of what a worker does inside itself or is kept from,
// and of nothing that happens in this process. The race detector is here for this
// process; a worker that it watches is ten times as slow, and make test asks the
// same of one that it does not watch.
func ofTheWorker(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("of the worker alone")
	}
}

// openable are the languages of which such a worker opens every library.
var openable = []string{"lua", "sh"}

// allLibraries marks limits so that a worker of this test binary, and of no
// other program, opens every library: the mark is an odd number of bytes of memory.
func allLibraries(l notebook.Limits) notebook.Limits {
	l.Memory |= 1
	return l
}

func openedByLimits() bool {
	k, err := readKind(os.Args[1:])
	return err == nil && k.limits.Memory&1 == 1
}

// strictJob is what a grant at strict comes to.
func strictJob(l notebook.Limits, source string) job {
	return job{language: "lua", rung: notebook.Strict, limits: l, local: true, request: request{source: source}}
}

// quick are limits for tests whose fences are not meant to reach them.
var quick = notebook.Limits{Time: 10 * time.Second, Memory: 128 << 20, Output: 64 << 10, Source: 1 << 20}

// testEngines are the engine files that make engines brought, opened once for
// all tests of this package.
func testEngines(t testing.TB) *Engines {
	t.Helper()
	e, err := openedEngines()
	if err != nil {
		t.Fatalf("%v: make engines", err)
	}
	return e
}

var openedEngines = sync.OnceValues(func() (*Engines, error) {
	dir := filepath.Join("..", "engines")
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		return nil, err
	}
	return OpenEngines(dir, filepath.Join(dir, "compiled"), secret, nil)
})

func newRunner(t testing.TB, c Config) *Runner {
	t.Helper()
	if c.Engines == nil {
		c.Engines = testEngines(t)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Strict(); err != nil {
		t.Fatal(err)
	}
	return r
}

// runSource runs source with limits off the test's goroutine, and fails the
// test where no answer comes.
func runSource(t testing.TB, r *Runner, l notebook.Limits, source string) notebook.Result {
	t.Helper()
	return runJob(t, r, strictJob(l, source))
}

func runJob(t testing.TB, r *Runner, j job) notebook.Result {
	t.Helper()
	type answer struct {
		res notebook.Result
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		res, _, err := r.run(context.Background(), j)
		answered <- answer{res, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a.res
	case <-time.After(j.limits.Time + 30*time.Second):
		t.Fatalf("no answer for %.100q", j.request.source)
	}
	return notebook.Result{}
}

// processState is the state letter of a process, or "" if it is gone.
func processState(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}
