package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"noted/notebook"
	"noted/trust"
)

// granting is a job with capabilities, resolved as they are now.
func granting(t *testing.T, l notebook.Limits, source string, capabilities ...notebook.Capability) job {
	t.Helper()
	j := strictJob(l, source)
	j.rung = notebook.Granted
	for _, c := range capabilities {
		pin, err := Resolve(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := j.grants.add(trust.Input{Capability: c, Value: pin}); err != nil || !taken {
			t.Fatalf("%s is not taken: %v", c, err)
		}
	}
	return j
}

// tree makes files, and links where the text starts with an arrow.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(strings.ReplaceAll(to, "DIR", dir), name)
		} else {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contentOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestADirectoryIsGranted: what a fence can do in a directory, and that it is
// only what was granted.
func TestADirectoryIsGranted(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct {
		write          bool
		source, output string
	}{
		{false, `return dir.read("DIR/in/a.txt")`, "first\n\n"},
		{false, `return table.concat(dir.list("DIR/in"), " ")`, "a.txt deep inner\n"},
		{false, `return table.concat(dir.list("DIR/in/"), " "), dir.list("DIR/in/deep")[1]`, "a.txt deep inner\tb.txt\n"},
		{false, `return dir.stat("DIR/in/a.txt").kind, dir.stat("DIR/in/a.txt").size, dir.stat("DIR/in").kind`, "file\t6\tdir\n"},
		{false, `return dir.read("DIR/in/inner")`, "second\n\n"},
		{false, `return dir.read("DIR/in/deep/../a.txt")`, "first\n\n"},
		{false, `return dir.read("DIR/in/none")`, "nil\tDIR/in/none: no such file or directory\n"},
		{false, `return dir.read("DIR/in/deep")`, "nil\tDIR/in/deep: it is not a file\n"},
		{false, `return dir.write("DIR/in/a.txt", "x")`, "nil\tDIR/in/a.txt: " + errReadOnly.Error() + "\n"},
		{false, `return dir.write("DIR/in/new.txt", "x")`, "nil\tDIR/in/new.txt: " + errReadOnly.Error() + "\n"},
		{true, `return dir.write("DIR/in/a.txt", "x"), dir.read("DIR/in/a.txt")`, "true\tx\n"},
		{true, `return dir.write("DIR/in/deep/new.txt", "new"), dir.read("DIR/in/deep/new.txt")`, "true\tnew\n"},
		{true, `return dir.write("DIR/in/none/new.txt", "new")`, "nil\tDIR/in/none/new.txt: no such file or directory\n"},
		{true, `return dir.write("DIR/in/deep", "new")`, "nil\tDIR/in/deep: is a directory\n"},
		{true, `return dir.write("DIR/out.txt", "x")`, "nil\tDIR/out.txt: " + errOutside.Error() + "\n"},
		{false, `return dir.read("relative")`, "nil\trelative: " + errOutside.Error() + "\n"},
		{false, `return dir.read("DIR/into")`, "nil\tDIR/into: " + errOutside.Error() + "\n"},
	} {
		at := tree(t, map[string]string{"in/a.txt": "first\n", "in/deep/b.txt": "second\n", "in/inner": "-> deep/b.txt", "out.txt": "outside"})
		j := granting(t, quick, strings.ReplaceAll(c.source, "DIR", at), notebook.Dir(at+"/in", c.write))
		if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != strings.ReplaceAll(c.output, "DIR", at) {
			t.Errorf("%s, to write %v: %v %q %q", c.source, c.write, res.Verdict, res.Output, res.Error)
		}
		if now := contentOf(t, at+"/out.txt"); now != "outside" {
			t.Fatalf("%s wrote outside: %q", c.source, now)
		}
	}
	if res := runSource(t, r, quick, "return dir"); res.Output != "nil\n" {
		t.Errorf("without a grant dir is %q", res.Output)
	}
}

// TestCase60And61NothingOutsideTheDirectory: no path and no link leads out of a
// granted directory, also one that is put there while a fence runs.
func TestCase60And61NothingOutsideTheDirectory(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{
		"own/noted.key": "SECRET", "in/plain": "seen",
		"in/up": "-> ..", "in/relative": "-> ../own/noted.key", "in/absolute": "-> DIR/own/noted.key",
		"in/twice": "-> relative", "in/dangling": "-> ../own/new", "in/sub/root": "-> /", "in/sub/self": "-> /proc/self/root",
	})
	in := notebook.Dir(at+"/in", true)
	for _, path := range []string{
		"in/../own/noted.key", "in/sub/../../own/noted.key", "in/./../own/noted.key", "in//../own/noted.key",
		"in/up/own/noted.key", "in/relative", "in/absolute", "in/twice", "in/sub/root" + at + "/own/noted.key",
		"in/sub/self" + at + "/own/noted.key", "own/noted.key", "in/\x00/../../own/noted.key",
	} {
		source := fmt.Sprintf(`local p = %q
			print(dir.read(p)) print(dir.write(p, "OVERWRITTEN")) print(dir.list(p)) print(dir.stat(p))`, at+"/"+path)
		res := runJob(t, r, granting(t, quick, source, in))
		if res.Verdict != notebook.OK || strings.Contains(res.Output, "SECRET") || strings.Count(res.Output, "nil\t") != 4 {
			t.Errorf("%s: %v %q %q", path, res.Verdict, res.Output, res.Error)
		}
	}
	res := runJob(t, r, granting(t, quick, fmt.Sprintf(`print(dir.write(%q, "x"))`, at+"/in/dangling"), in))
	if _, err := os.Lstat(at + "/own/new"); err == nil || !strings.HasPrefix(res.Output, "nil\t") {
		t.Errorf("through a link to nothing: %q, %v", res.Output, err)
	}
	// The control: without a link the same calls do what they say.
	res = runJob(t, r, granting(t, quick, fmt.Sprintf(`return dir.read(%q)`, at+"/in/plain"), in))
	if res.Output != "seen\n" {
		t.Errorf("the control: %q %q", res.Output, res.Error)
	}

	// A file that is a link every other moment, while the fence reads and writes it.
	stop, swapped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { swapped <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			n++
			os.Remove(at + "/in/swap")
			if n%2 == 0 {
				os.Symlink(at+"/own/noted.key", at+"/in/swap")
			} else {
				os.WriteFile(at+"/in/swap", []byte("plain"), 0o644)
			}
		}
	}()
	res = runJob(t, r, granting(t, quick, fmt.Sprintf(`local p, seen = %q, {}
		for i = 1, 20000 do
		  local text, no = dir.read(p)
		  local k = text or no:match(": (.*)")
		  seen[k] = (seen[k] or 0) + 1
		  if i %% 7 == 0 then dir.write(p, "plain") end
		end
		for k, n in pairs(seen) do print(k, n) end`, at+"/in/swap"), in))
	close(stop)
	if n := <-swapped; n < 100 || res.Verdict != notebook.OK || strings.Contains(res.Output, "SECRET") || !strings.Contains(res.Output, "plain\t") || !strings.Contains(res.Output, "escapes") {
		t.Errorf("swapped %d times: %v %q %q", n, res.Verdict, res.Output, res.Error)
	}
	if now := contentOf(t, at+"/own/noted.key"); now != "SECRET" {
		t.Errorf("the file outside is %q", now)
	}
}

// TestADirectoryThatIsNotTheGrantedOne: another directory at the path, or a link
// in it, is not opened.
func TestADirectoryThatIsNotTheGrantedOne(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"a/in/x": "granted", "b/in/x": "another"})
	in := notebook.Dir(at+"/a/in", false)
	pin, err := Resolve(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		swap func() error
		code notebook.Code
	}{
		{"nothing happened", func() error { return nil }, ""},
		{"another one in its place", func() error {
			return errors.Join(os.Rename(at+"/a/in", at+"/a/old"), os.Rename(at+"/b/in", at+"/a/in"))
		}, notebook.CodeStale},
		{"a link in its place", func() error {
			return errors.Join(os.Rename(at+"/a/in", at+"/b/in"), os.Symlink(at+"/b/in", at+"/a/in"))
		}, notebook.CodeRefused},
		{"a link above it", func() error {
			return errors.Join(os.RemoveAll(at+"/a/in"), os.Rename(at+"/a/old", at+"/a/in"), os.Rename(at+"/a", at+"/c"), os.Symlink("c", at+"/a"))
		}, notebook.CodeRefused},
		{"a file", func() error {
			return errors.Join(os.Remove(at+"/a"), os.Mkdir(at+"/a", 0o755), os.WriteFile(at+"/a/in", nil, 0o644))
		}, notebook.CodeRefused},
		{"nothing", func() error { return os.Remove(at + "/a/in") }, notebook.CodeNotFound},
	} {
		j := strictJob(quick, fmt.Sprintf("return dir.read(%q)", at+"/a/in/x"))
		if _, err := j.grants.add(trust.Input{Capability: in, Value: pin}); err != nil {
			t.Fatal(err)
		}
		if err := c.swap(); err != nil {
			t.Fatal(c.name, err)
		}
		res, _, err := r.run(t.Context(), j)
		var e *notebook.Error
		if c.code == "" {
			if err != nil || res.Output != "granted\n" {
				t.Errorf("%s: %q %v", c.name, res.Output, err)
			}
		} else if !errors.As(err, &e) || e.Code != c.code || res.Verdict != notebook.NoVerdict {
			t.Errorf("%s: %v %v", c.name, res.Verdict, err)
		}
	}
}

// TestADirectoryThatIsRenamed: a run keeps the directory that was granted,
// whatever happens to its name.
func TestADirectoryThatIsRenamed(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "granted", "other/x": "SECRET"})
	j := granting(t, quick, fmt.Sprintf(`local p = %q
		while not dir.read(p .. "go") do end
		return dir.read(p .. "x"), dir.write(p .. "y", "written")`, at+"/in/"), notebook.Dir(at+"/in", true))
	done := make(chan notebook.Result, 1)
	go func() {
		res, _, err := r.run(context.Background(), j)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	runningWorker(t)
	for _, err := range []error{
		os.Rename(at+"/in", at+"/moved"), os.Rename(at+"/other", at+"/in"), os.WriteFile(at+"/moved/go", nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if res := <-done; res.Output != "granted\ttrue\n" {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	if contentOf(t, at+"/moved/y") != "written" {
		t.Error("it was not written where it was granted")
	}
	if _, err := os.Lstat(at + "/in/y"); err == nil {
		t.Error("it was written in another directory of this name")
	}
}

// TestCase47WhatARunWrites: files and bytes of a run are bounded.
func TestCase47WhatARunWrites(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/old": "x", "in/full": ""})
	in := notebook.Dir(at+"/in", true)
	for _, c := range []struct{ source, output string }{
		{`local made = 0
		  for i = 1, 10000 do
		    local ok, no = dir.write("DIR/in/n" .. i, "")
		    if not ok then return made, no:match(": (.*)"), dir.write("DIR/in/old", "y") end
		    made = made + 1
		  end`, fmt.Sprintf("%d\t%v\ttrue\n", maxFiles, errFiles)},
		{`local mib, wrote = ("x"):rep(2^20), 0
		  for i = 1, 1000 do
		    local ok, no = dir.write("DIR/in/full", mib)
		    if not ok then return wrote, no:match(": (.*)"), dir.write("DIR/in/full", "") end
		    wrote = wrote + 1
		  end`, fmt.Sprintf("%d\t%v\ttrue\n", maxWritten>>20, errBytes)},
	} {
		if res := runJob(t, r, granting(t, quick, strings.ReplaceAll(c.source, "DIR", at), in)); res.Output != c.output {
			t.Errorf("%v %q %q, want %q", res.Verdict, res.Output, res.Error, c.output)
		}
	}
}

// TestCase64TwoRunsDoNotMeet: a run sees nothing of another one beside or before it.
func TestCase64TwoRunsDoNotMeet(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"a/x": "of a", "b/x": "of b"})
	source := fmt.Sprintf(`local before = left left = "something"
		return dir.read(%q), dir.read(%q), before`, at+"/a/x", at+"/b/x")
	outputs := make(chan string, 20)
	for i := range cap(outputs) {
		j := granting(t, quick, source, notebook.Dir(at+[]string{"/a", "/b"}[i%2], false))
		go func() {
			res, _, err := r.run(context.Background(), j)
			if err != nil {
				t.Error(err)
			}
			outputs <- res.Output
		}()
	}
	var a, b int
	for range cap(outputs) {
		switch out := <-outputs; {
		case strings.HasPrefix(out, "of a\t") && !strings.Contains(out, "of b") && !strings.Contains(out, "something"):
			a++
		case strings.Contains(out, "of b\t") && !strings.Contains(out, "of a") && !strings.Contains(out, "something"):
			b++
		default:
			t.Errorf("a run sees %q", out)
		}
	}
	if a != 10 || b != 10 {
		t.Errorf("%d saw one, %d the other", a, b)
	}
}

// TestTheJailOfADirectory: with every library of the engine open, and plain
// system calls, a worker that has a directory reaches it and nothing else.
func TestTheJailOfADirectory(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "seen", "secret": "SECRET"})
	for name := range systemCalls {
		j := granting(t, allLibraries(quick), "return probe."+name+"()", notebook.Dir(at+"/in", true))
		res := runJob(t, r, j)
		switch {
		case slices.Contains([]string{"open", "create", "stat"}, name):
			if res.Verdict != notebook.OK || !slices.Contains([]string{"no such file or directory\n", "permission denied\n", "operation not permitted\n"}, res.Output) {
				t.Errorf("%s: %v %q", name, res.Verdict, res.Output)
			}
		case name == "openat2" && res.Verdict == notebook.OK:
			if res.Output != "operation not permitted\n" {
				t.Errorf("%s: %q", name, res.Output)
			}
		case res.Verdict != notebook.Violation:
			t.Errorf("%s: %v %q", name, res.Verdict, res.Output)
		}
	}
	for name, want := range map[string]string{
		"upwards": "no such file or directory", "upwards to proc": "no such file or directory", "upwards to itself": "read-only file system", "upwards to the linker": "read-only file system", "link": "killed", "symlink": "killed", "fifo": "killed",
		"run": "killed", "mode": "killed", "inside": "<nil>",
	} {
		j := granting(t, allLibraries(quick), fmt.Sprintf("return dirprobe(%q)", name), notebook.Dir(at+"/in", true))
		res := runJob(t, r, j)
		got := strings.TrimSuffix(res.Output, "\n")
		if res.Verdict == notebook.Violation {
			got = "killed"
		}
		if got != want {
			t.Errorf("%s: %v %q %q, want %s", name, res.Verdict, res.Output, res.Error, want)
		}
	}
}

// grantedDir is the descriptor of the directory that this worker was granted.
func grantedDir() int {
	fd := fdGrants
	for n := 3; n < maxOpenFiles; n++ {
		var s unix.Stat_t
		if unix.Fstat(n, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR {
			fd = n
		}
	}
	return fd
}

// dirProbes are what a worker could try with the descriptor of a directory.
var dirProbes = map[string]func(fd int) error{
	"inside":  func(fd int) error { return closing(unix.Openat(fd, "x", unix.O_RDWR, 0)) },
	"upwards": func(fd int) error { return closing(unix.Openat(fd, "../secret", unix.O_RDONLY, 0)) },
	"upwards to proc": func(fd int) error {
		return closing(unix.Openat(fd, strings.Repeat("../", 40)+"proc/sys/kernel/core_pattern", unix.O_WRONLY, 0))
	},
	"upwards to itself": func(fd int) error {
		return closing(unix.Openat(fd, strings.Repeat("../", 40)+"proc/self/mem", unix.O_RDWR, 0))
	},
	"upwards to the linker": func(fd int) error {
		return closing(unix.Openat(fd, strings.Repeat("../", 40)+"usr/lib/os-release", unix.O_RDWR, 0))
	},
	"link":    func(fd int) error { return unix.Linkat(fd, "x", fd, "y", 0) },
	"symlink": func(fd int) error { return unix.Symlinkat("/", fd, "y") },
	"fifo":    func(fd int) error { return unix.Mknodat(fd, "y", unix.S_IFIFO|0o600, 0) },
	"run": func(fd int) error {
		_, _, e := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), 0, 0, 0, unix.AT_EMPTY_PATH, 0)
		return e
	},
	"mode": func(fd int) error { return unix.Fchmodat(fd, "x", 0o777, 0) },
}
