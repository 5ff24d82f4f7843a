package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/notebook"
)

// A worker runs the code that its parent has verified, or nothing: it never
// compiles by itself, and says what is wrong.
func TestAWorkerWhoseEngineIsNotWhole(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	whole, err := testEngines(t).files(t.Context(), "python")
	if err != nil {
		t.Fatal(err)
	}
	junk := func(text string) *os.File {
		f, err := sealed("junk", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	empty := t.TempDir()
	if err := os.MkdirAll(filepath.Join(empty, wazeroDir()), 0o700); err != nil {
		t.Fatal(err)
	}
	none, err := os.Open(empty)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	k := kind{"python", quick}
	for _, c := range []struct {
		name   string
		change func(*engineFiles)
	}{
		{"no code of its key", func(f *engineFiles) { f.links = none }},
		{"code that is none", func(f *engineFiles) { f.code = junk("WAZEVO") }},
		{"code of another compiler", func(f *engineFiles) { f.code = junk("WAZEVO\x06v0.0.1" + strings.Repeat("\x00", 100)) }},
		{"no code", func(f *engineFiles) { f.code = nil }},
		{"no links", func(f *engineFiles) { f.links = nil }},
		{"a module that is none", func(f *engineFiles) { f.wasm = junk("not a module") }},
		{"no module", func(f *engineFiles) { f.wasm = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := *whole
			c.change(&files)
			w, err := r.spawner.worker(k, &files)
			if err == nil {
				w.discard()
				t.Fatal("it is ready")
			}
			if text := refusal(err).Error(); !strings.HasPrefix(text, "the engine of this language does not start: ") {
				t.Error(text)
			}
		})
	}
	w, err := r.spawner.worker(k, whole) // and with all of it, it comes up
	if err != nil {
		t.Fatal(err)
	}
	w.discard()
}

// probing is an engine that, while it is loaded or started, does what a worker
// must not do. It says what came of that, if it is still there.
type probing struct {
	w                   *workspace
	loads, starts, runs func() error
	came                error
}

func (p *probing) load() error { p.came = p.loads(); return nil }

func (p *probing) boot() error { p.came = errors.Join(p.came, p.starts()); return nil }

func (p *probing) run(*request) outcome {
	fmt.Fprint(p.w.out, errors.Join(p.came, p.runs()))
	return outcome{}
}

// probingLanguages are one for each system call and stage, of this test binary's
// workers only.
func probingLanguages() (all []language) {
	nothing := func() error { return nil }
	add := func(name string, loads, starts, runs func() error) {
		all = append(all, language{name: name, open: func(w *workspace) (engine, error) {
			return &probing{w: w, loads: loads, starts: starts, runs: runs}, nil
		}})
	}
	add("nothing", nothing, nothing, nothing)
	for name, call := range systemCalls {
		add("loading "+name, call, nothing, nothing)
		add("starting "+name, nothing, call, nothing)
		add("running "+name, nothing, nothing, call)
	}
	for name, probe := range dirProbes {
		call := func() error { return probe(grantedDir()) }
		add("starting in it: "+name, nothing, call, nothing)
		add("running in it: "+name, nothing, nothing, call)
	}
	return all
}

// TestAnEngineStartsInAJail: before the first instruction of an engine nothing is
// open any more but what puts the last limits in place; and while it is loaded,
// which runs nothing of it, no file but its own, no program and no socket.
func TestAnEngineStartsInAJail(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	said := func(language string) string {
		w, err := r.spawner.worker(kind{language, quick}, nil)
		if errors.Is(err, io.EOF) {
			return "killed"
		}
		if err != nil {
			return err.Error()
		}
		res := w.run(t.Context(), &request{source: "x"})
		text, _, _ := res.output.text()
		return text
	}
	if got := said("nothing"); got != "<nil>" {
		t.Fatalf("an engine that does nothing: %s", got)
	}
	starting := map[string]string{"prctl": "<nil>", "rlimit": "<nil>"} // for the last limits and the last filter
	for _, call := range []string{"open", "create", "stat"} {
		starting[call] = "operation not permitted"
	}
	loading := map[string]string{"open": "permission denied", "create": "permission denied", "code": "<nil>"}
	for _, call := range []string{"exec", "socket", "fork", "kill", "memfd", "mount", "ptrace"} {
		loading[call] = "killed"
	}
	for call := range systemCalls {
		want, known := starting[call]
		if !known {
			want = "killed"
		}
		if got := said("starting " + call); got != want {
			t.Errorf("%s while an engine starts: %s, want %s", call, got, want)
		}
		if want, known := loading[call]; known {
			if got := said("loading " + call); got != want {
				t.Errorf("%s while an engine is loaded: %s, want %s", call, got, want)
			}
		}
	}
}

// pythonAlone is Python's engine in a place of its own.
func pythonAlone(t *testing.T) *Engines {
	t.Helper()
	shared, place := testEngines(t), t.TempDir()
	if _, err := shared.files(t.Context(), "python"); err != nil {
		t.Fatal(err)
	}
	e, err := OpenEngines(filepath.Join(place, "engines"), filepath.Join(place, "code"), shared.secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	check(t, e.ready())
	p, err := e.pin("python")
	check(t, err)
	for to, from := range map[string]string{e.path(p): shared.path(p), e.codePath(p): shared.codePath(p)} {
		b, err := os.ReadFile(from)
		check(t, err)
		check(t, os.WriteFile(to, b, 0o600))
	}
	return e
}

// An engine that was removed runs nothing any more, not once: not by a worker that
// was ready before either.
func TestASpareOfAnEngineThatWasRemoved(t *testing.T) {
	e := pythonAlone(t)
	r := newRunner(t, Config{Limits: quick, Engines: e})
	j := strictJob(quick, "6 * 7")
	j.language = "python"
	warmed(t, r, j)
	if res := runJob(t, r, j); res.Output != "42\n" {
		t.Fatalf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	warmed(t, r, j)
	check(t, e.Remove(t.Context(), "python"))
	res, _, err := r.run(t.Context(), j)
	if codeOf(err) != notebook.CodeUnavailable || !strings.Contains(fmt.Sprint(err), "not on this device") {
		t.Errorf("%v %q, %v", res.Verdict, res.Output, err)
	}
	if res := runSource(t, r, quick, "return 1"); res.Output != "1\n" {
		t.Errorf("and Lua: %v %q", res.Verdict, res.Error)
	}
}

// A person who calls a run off while its engine is got ready has stopped it.
func TestARunThatIsStoppedBeforeItsEngineIsReady(t *testing.T) {
	e := pythonAlone(t)
	r := newRunner(t, Config{Limits: quick, Engines: e})
	p, err := e.pin("python")
	check(t, err)
	open, err := e.turn(t.Context(), p) // somebody compiles
	check(t, err)
	j := strictJob(quick, "1")
	j.language = "python"
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		_, _, err := r.run(ctx, j)
		stopped <- err
	}()
	cancel()
	if err := <-stopped; !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	e.turns[p.Digest] <- open
	if res := runJob(t, r, j); res.Output != "1\n" {
		t.Errorf("afterwards: %v %q", res.Verdict, res.Error)
	}
}

// What cannot be had is said in the words of what a person can do about it.
func TestAnEngineWithoutWhatItNeeds(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	little := quick
	little.Memory = 64 << 20
	j := strictJob(little, "1")
	j.language = "python"
	_, _, err := r.run(t.Context(), j)
	// Under the race detector a worker has half a gigabyte more.
	if e, ok := errors.AsType[*notebook.Error](err); !raceDetector && (!ok || !strings.Contains(e.Error(), "the memory limit of 64 MiB is below the") || e.Hint != "raise limits.memory in policy.toml") {
		t.Errorf("with little memory: %v", err)
	}
}

// TestAnEngineInAWeakerJail: where a machine has no namespaces or no landlock,
// engines come up all the same, as everything that runs there.
func TestAnEngineInAWeakerJail(t *testing.T) {
	files, err := testEngines(t).files(t.Context(), "python")
	check(t, err)
	for _, c := range []struct{ landlock, namespaces bool }{{false, true}, {true, false}, {false, false}} {
		s, err := newSpawner(c.landlock, c.namespaces, &profile{})
		check(t, err)
		w, err := s.worker(kind{"python", quick}, files)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		res := w.run(t.Context(), &request{source: "try: open('/etc/passwd')\nexcept OSError: print(6 * 7)"})
		if text, _, _ := res.output.text(); res.verdict != notebook.OK || text != "42\n" {
			t.Errorf("%+v: %v %q %q", c, res.verdict, text, res.outcome.text)
		}
		w.release()
		s.close()
	}
}
