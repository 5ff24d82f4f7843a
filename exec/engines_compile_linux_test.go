package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// bomb is a valid module of about size bytes that wazero's compiler takes minutes
// and gigabytes for.
func bomb(size int) string {
	const locals = 2000
	uleb := func(n int) string {
		var b []byte
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return string(append(b, byte(n)))
	}
	var body strings.Builder
	body.WriteString("\x01" + uleb(locals) + "\x7f")
	for i := 0; body.Len() < size; i++ {
		l := uleb(i % locals)
		body.WriteString("\x20\x00\x04\x40\x20" + l + "\x41\x01\x6a\x21" + l + "\x0b") // if (l0) { li = li + 1 }
	}
	body.WriteString("\x0b")
	code := body.String()
	return emptyModule + section(1, "\x01\x60\x00\x00") + section(3, "\x01\x00") + section(10, "\x01"+uleb(len(code))+code)
}

// compileOne compiles a module that no pin has to know, off the test's goroutine.
func compileOne(t *testing.T, ctx context.Context, jail compileJail, module string) error {
	t.Helper()
	s := newShelf(t)
	check(t, s.ready())
	s.jail = jail
	ended := make(chan error, 1)
	go func() { ended <- s.compileText(ctx, module) }()
	select {
	case err := <-ended:
		if left, _ := os.ReadDir(s.cache); len(left) > 0 {
			t.Errorf("the compiler leaves %v", left)
		}
		return err
	case <-time.After(time.Minute):
		t.Fatal("the compiler does not end")
		return nil
	}
}

func (e *Engines) compileText(ctx context.Context, module string) error {
	wasm, err := sealed("module", strings.NewReader(module))
	if err != nil {
		return err
	}
	defer wasm.Close()
	code, _, err := e.compile(ctx, notebook.EngineInfo{Name: "module"}, wasm)
	if err == nil {
		err = code.Close()
	}
	return err
}

// TestACompilerThatDoesNotEnd: a module of 260 KiB keeps the compiler for minutes,
// and makes it take gigabytes. It ends at its bound, whichever is first, and
// nothing of it is left; its daemon goes on.
func TestACompilerThatDoesNotEnd(t *testing.T) {
	hostile := bomb(260 << 10)
	newRunner(t, Config{Limits: quick}).Close()
	before := count()
	for name, c := range map[string]struct {
		jail compileJail
		says string
	}{
		"in time":                        {compileJail{time.Second, 3 << 29}, "longer than 1s"},
		"in time, while it does nothing": {compileJail{time.Second, 3<<29 | 8}, "longer than 1s"},
		"in memory":                      {compileJail{20 * time.Second, 96 << 20}, "more memory than 96 MiB"},
	} {
		err := compileOne(t, t.Context(), c.jail, hostile)
		// The race detector takes so long that its memory may not be the first to end.
		late := raceDetector && strings.Contains(fmt.Sprint(err), "longer than")
		if codeOf(err) != notebook.CodeUnavailable || !late && !strings.Contains(err.Error(), c.says) {
			t.Errorf("bounded %s: %v", name, err)
		}
		if err := compileOne(t, t.Context(), compileJail{20 * time.Second, c.jail.memory &^ 8}, small); err != nil {
			t.Errorf("bounded %s, a small module: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errClosed) })
	if err := compileOne(t, ctx, compileJail{20 * time.Minute, compileTight.memory | 8}, small); !strings.Contains(fmt.Sprint(err), errClosed.Message) {
		t.Errorf("given up: %v", err)
	}
	settle(t, "after all of them", before)
}

func TestWhatTheCompilerRefusesIsTold(t *testing.T) {
	for name, c := range map[string]struct{ module, says string }{
		"no module":        {"a text", "invalid magic number"},
		"a body that ends": {emptyModule + section(1, "\x01\x60\x00\x00") + section(3, "\x01\x00"), "function and code section"},
	} {
		if err := compileOne(t, t.Context(), compileTight, c.module); codeOf(err) != notebook.CodeUnavailable || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := compileOne(t, t.Context(), compileJail{20 * time.Second, 3<<29 | 9}, small)
	if codeOf(err) != notebook.CodeUnavailable || !strings.Contains(err.Error(), "all is well") || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("a report that draws on the terminal: %q", err)
	}
}

// parentAtStart is read before the jail closes. In a pid namespace it is 0.
var parentAtStart = os.Getppid()

// insideTheCompiler are attempts from within the compiler's jail, by the lowest
// bits of its memory limit, which a test sets. Those that are survived return what
// was reached; the others must kill the process.
var insideTheCompiler = map[int64]struct {
	name string
	try  func() error
	dies bool
}{
	1: {"files outside of its directory", func() error {
		paths := []string{"/etc/passwd", "../../../../../../etc/passwd", "/proc/self/fd/3/../../../../etc/passwd", fmt.Sprintf("/proc/%d/environ", parentAtStart), "/sys/kernel/notes"}
		_, err := os.Stat("/etc")
		if locked := err != nil; locked {
			paths = append(paths, "/proc/self/status", "/proc/cpuinfo")
		}
		for _, path := range paths {
			if f, err := os.Open(path); err == nil {
				defer f.Close()
				if _, err := f.Read(make([]byte, 1)); err == nil {
					return fmt.Errorf("it reads %s", path)
				}
			}
		}
		paths = []string{"/tmp/noted-escape", "/dev/shm/noted-escape", "/proc/self/fd/3/../noted-escape"}
		if err == nil { // otherwise that is its own directory
			paths = append(paths, "../noted-escape", "../../noted-escape")
		}
		for _, path := range paths {
			if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				f.Close()
				return fmt.Errorf("it writes %s", path)
			}
		}
		return nil
	}, false},
	2: {"a socket", func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return reached(err) }, true},
	3: {"a program", func() error { return reached(unix.Exec("/bin/sh", []string{"sh"}, nil)) }, true},
	4: {"a signal to its parent", func() error { return reached(unix.Kill(parentAtStart, 0)) }, true},
	5: {"memory that can be written and run", func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return reached(err)
	}, true},
	6: {"a link", func() error { return reached(unix.Symlinkat("/etc/passwd", unix.AT_FDCWD, "link")) }, true},
	9: {"the terminal of who reads its report", func() error { return errors.New("\x1b[31mall is well\x1b[0m\nready") }, false},
	8: {"nothing, for an hour", func() error { time.Sleep(time.Hour); return nil }, true},
	7: {"the limits raised", func() error {
		return reached(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: maxCode, Max: maxCode}))
	}, true},
}

func reached(err error) error { return fmt.Errorf("it got through, with %v", err) }

func tryInsideCompiler(memory int64) error {
	if a, is := insideTheCompiler[memory&15]; is {
		return a.try()
	}
	return nil
}

// TestWhatACompilerReaches: with every layer, and without one that this machine may
// not have.
func TestWhatACompilerReaches(t *testing.T) {
	for _, layers := range []struct{ landlock, namespaces bool }{{true, true}, {false, true}, {true, false}} {
		for n := int64(0); n < 8; n++ {
			if n > 1 && layers.landlock != layers.namespaces {
				continue // is up to seccomp alone
			}
			wasm, err := sealed("module", strings.NewReader(small))
			check(t, err)
			err = compileJail{20 * time.Second, 3<<29 | n}.compile(t.Context(), wasm, t.TempDir(), layers.landlock, layers.namespaces)
			wasm.Close()
			a := insideTheCompiler[n]
			if dies := strings.Contains(fmt.Sprint(err), "bad system call"); err != nil && !dies || dies != a.dies {
				t.Errorf("%+v: %s: %v", layers, a.name, err)
			}
		}
	}
}

// faultyCompiler is the role of this test binary that compiles on a machine that
// lacks something.
const faultyCompiler = "noted-test-faulty-compiler"

// attempt is how a faulty compiler's parent fared with an honest module, and with
// what the compiler can reach outside.
type attempt struct{ Honest, Reaches string }

func beFaultyCompiler() int {
	if err := install(faults[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	e, err := openEngines(os.Args[2], os.Args[3], testKey, nil, tested)
	if err == nil {
		err = e.ready()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var a attempt
	if err := e.compileText(context.Background(), small); err != nil {
		a.Honest = err.Error()
	}
	e.jail.memory |= 1
	if err := e.compileText(context.Background(), small); err != nil {
		a.Reaches = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		return 1
	}
	return 0
}

// TestACompilerWithoutALayer: without a mandatory one nothing is compiled and it
// is named; without another one the rest keeps it in its directory.
func TestACompilerWithoutALayer(t *testing.T) {
	ofTheWorker(t)
	for missing, want := range map[string]string{
		"none": "", "landlock": "", "namespaces": "", "chroot": "",
		"seccomp": layerSeccomp, "address": layerLimits, "data": layerLimits, "processor": layerLimits,
	} {
		out, err := role(t, faultyCompiler, missing, t.TempDir()+"/engines", t.TempDir()+"/code").Output()
		check(t, err)
		var a attempt
		check(t, json.Unmarshal(out, &a))
		for _, said := range []string{a.Honest, a.Reaches} {
			if want == "" && said != "" || !strings.Contains(said, want) {
				t.Errorf("without %s: %+v", missing, a)
			}
		}
	}
}
