package exec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// fetchedEngines are the engine files that make engines brought, compiled once
// for all tests.
func fetchedEngines(t testing.TB) *Engines {
	t.Helper()
	dir := filepath.Join("..", "engines")
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatalf("%v: make engines", err)
	}
	e, err := OpenEngines(dir, filepath.Join(dir, "compiled"), secret, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestFetchedEnginesAreHere(t *testing.T) {
	for _, p := range fetchedEngines(t).List() {
		if p.State != notebook.EngineAdded && p.State != notebook.EngineCompiled {
			t.Errorf("%s is %s: make engines", p.Name, p.State)
		}
	}
}

// answerModule exports a function f that returns n.
func answerModule(n byte) string {
	return emptyModule + section(1, "\x01\x60\x00\x01\x7f") + section(3, "\x01\x00") + section(7, "\x01\x01f\x00\x00") +
		section(10, "\x01\x04\x00\x41"+string(n)+"\x0b")
}

func pinOf(name, module string) notebook.EngineInfo {
	return notebook.EngineInfo{Name: name, Version: "a module of a test", Digest: sha256.Sum256([]byte(module)), Bytes: int64(len(module)), Source: "a test"}
}

var (
	small   = answerModule(42)
	other   = answerModule(7)
	tested  = []notebook.EngineInfo{pinOf("small", small), pinOf("other", other)}
	testKey = []byte("a key of a test with 32 bytes...")
)

// shelf is a place for engines, with what they said in the log.
type shelf struct {
	*Engines
	t   testing.TB
	log *strings.Builder
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	top := t.TempDir()
	return openShelf(t, filepath.Join(top, "engines"), filepath.Join(top, "code"), testKey)
}

func openShelf(t testing.TB, dir, cache string, key []byte) *shelf {
	t.Helper()
	s := &shelf{t: t, log: &strings.Builder{}}
	var err error
	if s.Engines, err = openEngines(dir, cache, key, slog.New(slog.NewTextHandler(s.log, nil)), tested); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// again is the same place, opened anew.
func (s *shelf) again() *shelf { return openShelf(s.t, s.dir, s.cache, s.secret) }

// adds adds a module, which must be taken.
func (s *shelf) adds(module string) notebook.EngineInfo {
	s.t.Helper()
	p, err := s.Add(s.t.Context(), s.file("offered.wasm", module))
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *shelf) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// code is what is handed out for an engine.
func (s *shelf) code(name string) []byte {
	s.t.Helper()
	f, err := s.files(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return content(s.t, f.code)
}

func content(t testing.TB, f *os.File) []byte {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *shelf) compiled() int { return strings.Count(s.log.String(), "compiled an engine") }

func codeOf(err error) notebook.Code {
	e, ok := errors.AsType[*notebook.Error](err)
	if !ok {
		return ""
	}
	return e.Code
}

func TestAnEngineIsAddedOnceAndCompiledOnce(t *testing.T) {
	s := newShelf(t)
	if _, err := s.files(t.Context(), "small"); codeOf(err) != notebook.CodeUnavailable || !strings.Contains(err.Error(), "noted engine add FILE, with a test") {
		t.Errorf("without a file: %v", err)
	}
	if p := s.adds(small + section(0, "\x04name")); p.Name != "small" || p.State != notebook.EngineAdded {
		t.Errorf("added: %+v", p)
	}
	f, err := s.files(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, f.wasm); string(got) != small {
		t.Errorf("the module is %q", got)
	}
	first := s.code("small")
	if len(first) == 0 || s.compiled() != 1 {
		t.Errorf("%d bytes of code, compiled %d times", len(first), s.compiled())
	}
	for _, p := range s.List() {
		if want := map[string]notebook.EngineState{"small": notebook.EngineCompiled, "other": notebook.EngineAbsent}[p.Name]; p.State != want {
			t.Errorf("%s is %s, want %s", p.Name, p.State, want)
		}
	}
	next := s.again()
	if got := next.code("small"); !bytes.Equal(got, first) || next.compiled() != 0 {
		t.Errorf("opened anew it was compiled %d times, to the same: %v", next.compiled(), bytes.Equal(got, first))
	}
	if err := next.Remove(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	if _, err := next.files(t.Context(), "small"); codeOf(err) != notebook.CodeUnavailable {
		t.Errorf("after it was removed: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.cache, "*.code")); len(left) > 0 {
		t.Errorf("after it was removed there is %v", left)
	}
}

// TestWhatIsHandedOutCannotBeChanged: what was verified is what is mapped, because
// nobody who has it can write to it, in no way.
func TestWhatIsHandedOutCannotBeChanged(t *testing.T) {
	s := newShelf(t)
	s.adds(small)
	files, err := s.files(t.Context(), "small")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*os.File{"wasm": files.wasm, "code": files.code} {
		before := content(t, f)
		fd := int(f.Fd())
		const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
		if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || seals&all != all {
			t.Errorf("%s has the seals %#x, %v", name, seals, err)
		}
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0)
		if err != nil {
			continue // nor can it be opened for writing
		}
		for what, do := range map[string]func(int) error{
			"a write":        func(fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err },
			"a longer file":  func(fd int) error { return unix.Ftruncate(fd, int64(len(before))+1) },
			"a shorter file": func(fd int) error { return unix.Ftruncate(fd, 1) },
			"a hole": func(fd int) error {
				return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
			},
			"a mapping": func(fd int) error {
				b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
				if err == nil {
					b[0] ^= 1
				}
				return err
			},
		} {
			for _, fd := range []int{fd, int(again.Fd())} {
				if do(fd) == nil {
					t.Errorf("%s: %s succeeds", name, what)
				}
			}
		}
		again.Close()
		if !bytes.Equal(content(t, f), before) {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestAnEngineFileThatWasChanged is refused, whatever stands in its place, and
// taken when it is itself again.
func TestAnEngineFileThatWasChanged(t *testing.T) {
	flip := func(i int) func(*testing.T, string) {
		return func(t *testing.T, path string) { flipByte(t, path, i) }
	}
	put := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) { overwrite(t, path, content) }
	}
	for name, change := range map[string]func(*testing.T, string){
		"the first byte": flip(0), "a byte of the code": flip(len(small) - 2), "the last byte": flip(len(small) - 1),
		"a byte less": put(small[:len(small)-1]), "a byte more": put(small + "\x00"), "nothing": put(""),
		"a custom section more": put(small + section(0, "")), "the other engine": put(other),
		"a link to the file itself": func(t *testing.T, path string) {
			check(t, os.Rename(path, path+".real"))
			check(t, os.Symlink(path+".real", path))
		},
		"a pipe":      func(t *testing.T, path string) { check(t, os.Remove(path)); check(t, unix.Mkfifo(path, 0o600)) },
		"a directory": func(t *testing.T, path string) { check(t, os.Remove(path)); check(t, os.Mkdir(path, 0o700)) },
	} {
		s := newShelf(t)
		path := s.path(s.adds(small))
		s.code("small")
		change(t, path)
		next := s.again()
		if _, err := next.files(t.Context(), "small"); codeOf(err) != notebook.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		if p := next.List()[0]; p.State != notebook.EngineDamaged {
			t.Errorf("%s: it is %s", name, p.State)
		}
		if found := slices.Collect(next.Check()); len(found) != 1 {
			t.Errorf("%s: the check finds %v", name, found)
		}
		check(t, os.RemoveAll(path))
		next.adds(small)
		if next.code("small"); next.compiled() != 0 {
			t.Errorf("%s: with the file as it was it is compiled anew", name)
		}
	}
}

// TestCompiledCodeThatWasChanged is never handed out: it is told, thrown away
// and made anew.
func TestCompiledCodeThatWasChanged(t *testing.T) {
	s := newShelf(t)
	p := s.adds(small)
	want := s.code("small")
	path := s.codePath(p)
	good, err := os.ReadFile(path)
	check(t, err)
	put := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { overwrite(t, path, string(b)) }
	}
	changes := map[string]func(*testing.T, string){
		"nothing": put(nil), "a byte less": put(good[:len(good)-1]), "a byte more": put(append(slices.Clone(good), 0)),
		"only the header": put(good[:codeHeader]), "half of the header": put(good[:codeHeader/2]),
		"the code of another engine": func(t *testing.T, path string) {
			o := s.adds(other)
			s.code("other")
			b, err := os.ReadFile(s.codePath(o))
			check(t, err)
			overwrite(t, path, string(b))
		},
		"a link to the file itself": func(t *testing.T, path string) {
			check(t, os.Rename(path, path+".real"))
			check(t, os.Symlink(path+".real", path))
		},
		"a pipe":      func(t *testing.T, path string) { check(t, os.Remove(path)); check(t, unix.Mkfifo(path, 0o600)) },
		"a directory": func(t *testing.T, path string) { check(t, os.Remove(path)); check(t, os.Mkdir(path, 0o700)) },
		"a huge file": func(t *testing.T, path string) { check(t, os.Truncate(path, int64(codeHeader)+maxCode+1)) },
	}
	regions := []int{0, len(codeMagic) - 1, len(codeMagic), len(codeMagic) + sha256.Size - 1, len(codeMagic) + sha256.Size, codeHeader - 9, codeHeader - 8, codeHeader - 1, codeHeader}
	for _, at := range append(regions, codeHeader+len(want)/2, len(good)-1) {
		changes[fmt.Sprintf("the byte at %d", at)] = func(t *testing.T, path string) { flipByte(t, path, at) }
	}
	// What another device, compiler, build or processor signed, under this name.
	signed := func(key []byte, change func(*codeContext)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			f, err := s.files(t.Context(), "small")
			check(t, err)
			c := contextOf(p)
			change(&c)
			check(t, (&Engines{secret: key}).storeCode(c, path, f.key, f.code))
		}
	}
	changes["the code of another device"] = signed([]byte(strings.Repeat("k", 32)), func(*codeContext) {})
	changes["the code of another version of wazero"] = signed(testKey, func(c *codeContext) { c.wazero = "v1.11.0" })
	changes["the code of another build"] = signed(testKey, func(c *codeContext) { c.build += "x" })
	changes["the code of another processor"] = signed(testKey, func(c *codeContext) { c.processor += "x" })
	changes["code that is signed as another engine's"] = signed(testKey, func(c *codeContext) { c.engine[0] ^= 1 })
	for name, change := range changes {
		check(t, os.RemoveAll(path))
		overwrite(t, path, string(good))
		change(t, path)
		next := s.again()
		if found := slices.Collect(next.Check()); len(found) != 1 || !strings.Contains(found[0].Error(), "compiled code") {
			t.Errorf("%s: the check finds %v", name, found)
		}
		if got := next.code("small"); !bytes.Equal(got, want) {
			t.Errorf("%s: other code is handed out", name)
		}
		if next.compiled() != 1 || !strings.Contains(next.log.String(), "thrown away") {
			t.Errorf("%s: the log says %s", name, next.log)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
			t.Errorf("%s: what is kept afterwards is not what was kept before, %v", name, err)
		}
	}
	// The control: what was signed here, for what runs here, is handed out.
	signed(testKey, func(*codeContext) {})(t, path)
	if next := s.again(); !bytes.Equal(next.code("small"), want) || next.compiled() != 0 || strings.Contains(next.log.String(), "WARN") {
		t.Errorf("unchanged: the log says %s", next.log)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func overwrite(t testing.TB, path, content string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(content), 0o600))
}

func flipByte(t testing.TB, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	b[at] ^= 0x10
	overwrite(t, path, string(b))
}

// TestWhatIsNoEngine: nothing is kept of it.
func TestWhatIsNoEngine(t *testing.T) {
	s := newShelf(t)
	large := s.file("large", "")
	check(t, os.Truncate(large, maxEngine+1))
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(s.file("small", small), link))
	pipe := filepath.Join(t.TempDir(), "pipe")
	check(t, unix.Mkfifo(pipe, 0o600))
	for name, c := range map[string]struct{ path, says string }{
		"a file that is too large":  {large, "67108864 is the most"},
		"a link":                    {link, "symbolic link"},
		"a pipe that nobody writes": {pipe, "not a regular file"},
		"a directory":               {t.TempDir(), "not a regular file"},
		"a device":                  {"/dev/zero", "not a regular file"},
		"no module":                 {s.file("text", "a text"), "not a WebAssembly module"},
		"a module that is cut":      {s.file("cut", small[:len(small)-1]), "not a WebAssembly module"},
		"a module that nobody knows": {
			s.file("bent", answerModule(43)), fmt.Sprintf("no known engine has its SHA-256, which is %x", sha256.Sum256([]byte(answerModule(43)))),
		},
	} {
		if p, err := s.Add(t.Context(), c.path); codeOf(err) != notebook.CodeInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := s.Add(t.Context(), filepath.Join(t.TempDir(), "nothing")); codeOf(err) != notebook.CodeNotFound {
		t.Errorf("nothing: %+v, %v", p, err)
	}
	if kept, err := os.ReadDir(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is kept: %v, %v", kept, err)
	}
}

func TestEnginesAreThisUsersAlone(t *testing.T) {
	s := newShelf(t)
	s.adds(small)
	s.code("small")
	for _, dir := range []string{s.dir, s.cache} {
		check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, failed error) error {
			info, err := d.Info()
			if err = errors.Join(failed, err); err != nil {
				return err
			}
			if m := info.Mode(); !(m == os.ModeDir|0o700 || m == 0o600 || m.Type() == os.ModeSymlink) {
				t.Errorf("%s has the mode %v", path, m)
			}
			return nil
		}))
		for _, mode := range []os.FileMode{0o770, 0o702, 0o755} {
			check(t, os.Chmod(dir, mode))
			if _, err := s.again().files(t.Context(), "small"); codeOf(err) != notebook.CodeRefused {
				t.Errorf("%s with the mode %v: %v", dir, mode, err)
			}
			if _, err := s.again().Add(t.Context(), s.file("small", small)); codeOf(err) != notebook.CodeRefused {
				t.Errorf("add to %s with the mode %v: %v", dir, mode, err)
			}
		}
		check(t, os.Chmod(dir, 0o700))
		check(t, os.Rename(dir, dir+".real"))
		check(t, os.Symlink(dir+".real", dir))
		if _, err := s.again().files(t.Context(), "small"); codeOf(err) != notebook.CodeRefused || !strings.Contains(err.Error(), "is not a directory") {
			t.Errorf("a link instead of %s: %v", dir, err)
		}
		check(t, os.Remove(dir))
		check(t, os.Rename(dir+".real", dir))
		if next := s.again(); next.code("small") == nil || next.compiled() != 0 {
			t.Errorf("as it was: %s", next.log)
		}
	}
}

// TestAShelfThatWasLeftHalfWritten: what a killed process left is no engine, and
// goes when nobody can be writing it any more.
func TestAShelfThatWasLeftHalfWritten(t *testing.T) {
	s := newShelf(t)
	check(t, s.ready())
	old := time.Now().Add(-2 * time.Hour)
	var stale, fresh []string
	for _, dir := range []string{s.dir, s.cache} {
		for _, name := range []string{"1", "2"} {
			file, folder := filepath.Join(dir, partial+name), filepath.Join(dir, partial+"dir"+name)
			overwrite(t, file, small[:9])
			check(t, os.MkdirAll(filepath.Join(folder, wazeroDir()), 0o700))
			overwrite(t, filepath.Join(folder, wazeroDir(), "code"), "x")
			if name == "1" {
				stale = append(stale, file, folder)
				check(t, os.Chtimes(file, old, old))
				check(t, os.Chtimes(folder, old, old))
			} else {
				fresh = append(fresh, file, folder)
			}
		}
	}
	if p := s.again().List()[0]; p.State != notebook.EngineAbsent {
		t.Errorf("half a file is an engine that is %s", p.State)
	}
	s.adds(small)
	s.code("small")
	for _, path := range stale {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range fresh {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s may be somebody's work: %v", path, err)
		}
	}
}

// TestEveryoneAtOnce: many who add and ask at once, in two processes as far as
// the files can tell, get one and the same, which is compiled once.
func TestEveryoneAtOnce(t *testing.T) {
	s := newShelf(t)
	check(t, s.ready())
	both := []*shelf{s, s.again()}
	offered := s.file("small", small)
	type answer struct {
		code []byte
		err  error
	}
	answers := make(chan answer, 16)
	var all sync.WaitGroup
	for i := range cap(answers) {
		all.Go(func() {
			e := both[i%2].Engines
			if _, err := e.Add(context.Background(), offered); err != nil {
				answers <- answer{err: err}
				return
			}
			f, err := e.files(context.Background(), "small")
			if err != nil {
				answers <- answer{err: err}
				return
			}
			b, err := io.ReadAll(io.NewSectionReader(f.code, 0, 1<<20))
			answers <- answer{b, err}
		})
	}
	all.Wait()
	want := s.code("small")
	for range cap(answers) {
		if a := <-answers; a.err != nil || !bytes.Equal(a.code, want) {
			t.Errorf("%d bytes, %v", len(a.code), a.err)
		}
	}
	if n := both[0].compiled() + both[1].compiled(); n != 1 {
		t.Errorf("compiled %d times:\n%s%s", n, both[0].log, both[1].log)
	}
}

// TestACacheThatIsDeleted while it is in use: what is open goes on, with new links.
func TestACacheThatIsDeleted(t *testing.T) {
	s := newShelf(t)
	s.adds(small)
	want := s.code("small")
	check(t, os.RemoveAll(s.cache))
	f, err := s.files(t.Context(), "small")
	check(t, err)
	if !bytes.Equal(content(t, f.code), want) || !linked(f.links, f.key) || s.compiled() != 1 {
		t.Errorf("linked %v, compiled %d times", linked(f.links, f.key), s.compiled())
	}
	if _, err := os.Stat(s.cache); err != nil {
		t.Error(err)
	}
}

// TestNothingOfAnEngineIsLeftOver: descriptors and processes.
func TestNothingOfAnEngineIsLeftOver(t *testing.T) {
	newShelf(t).adds(small)
	before := count()
	for range 3 {
		s := newShelf(t)
		s.adds(small)
		s.code("small")
		check(t, s.Close())
	}
	settle(t, "after three compilers", before)
}
