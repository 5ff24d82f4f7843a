package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// guests are the languages that are WebAssembly.
var guests = []string{"python", "javascript", "wasm"}

// handed is a job of a guest with one directory, which is DIR in its source.
func handed(t *testing.T, language, source, dir string, write bool) job {
	t.Helper()
	source = strings.ReplaceAll(source, "DIR", dir)
	if language == "wasm" {
		source = module(source)
	}
	j := granting(t, quick, source, notebook.Dir(dir, write))
	j.language = language
	return j
}

// opens is a module's text that opens a path in the first directory that it was
// granted and leaves what came of it, and the descriptor at 32.
func opens(at int, path string, oflags, rights, fdflags int) string {
	return fmt.Sprintf(`data %d %q i32.const 3 i32.const 1 i32.const %d i32.const %d i32.const %d i64.const %d i64.const 0 i32.const %d i32.const 32 call path_open `,
		at, path, at, len(path), oflags, rights, fdflags)
}

// Numbers of the system interface of WebAssembly.
const (
	wasiCreate, wasiExclusive, wasiEmpty = 1, 4, 8
	wasiReads, wasiWrites                = 1 << 1, 1 << 6
	wasiAppends                          = 1
)

// puts writes what was read from the descriptor at 32, 64 KiB at most.
const puts = `data 40 "\x00\x10\x00\x00\x00\x00\x01\x00" i32.const 32 i32.load i32.const 40 i32.const 1 i32.const 44 call fd_read drop i32.const 1 i32.const 40 i32.const 1 i32.const 36 call fd_write drop `

// TestADirectoryIsGrantedToAGuest: what a guest can do in a directory, by the
// means of its own language, and what it is told of what it cannot.
func TestADirectoryIsGrantedToAGuest(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	files := map[string]string{
		"in/a.csv": "name,n\nx,1\ny,41\n", "in/deep/b.txt": "second\n", "in/inner": "-> deep/b.txt", "in/outer": "-> ../out.txt", "out.txt": "outside",
	}
	// tries prints what came of each of some expressions of Python.
	tries := func(expressions ...string) string {
		s := "import os, pathlib, shutil\ndef tries(f):\n    try: print(f())\n    except OSError as e: print(type(e).__name__)\n"
		for _, e := range expressions {
			s += "tries(lambda: " + e + ")\n"
		}
		return s
	}
	for _, c := range []struct {
		language      string
		write         bool
		source        string
		output, error string
	}{
		{"python", false, "import csv\nwith open('DIR/a.csv', newline='') as f: rows = list(csv.DictReader(f))\nsum(int(r['n']) for r in rows)", "42\n", ""},
		{"python", false, "import os\nprint(os.listdir('DIR'), os.listdir('DIR/deep/'), [(e.name, e.is_dir(), e.is_symlink()) for e in os.scandir('DIR')])", "['a.csv', 'deep', 'inner', 'outer'] ['b.txt'] [('a.csv', False, False), ('deep', True, False), ('inner', False, True), ('outer', False, True)]\n", ""},
		{"python", false, "import pathlib\np = pathlib.Path('DIR')\nprint(sorted(x.name for x in p.rglob('*')), (p / 'inner').read_text(), (p / 'a.csv').stat().st_size, (p / 'deep').is_dir(), (p / 'none').exists())", "['a.csv', 'b.txt', 'deep', 'inner', 'outer'] second\n 16 True False\n", ""},
		{"python", false, "import os\nos.chdir('DIR/deep')\nprint(open('b.txt').read(3), os.path.samefile('b.txt', '../inner'), os.path.samefile('b.txt', '../a.csv'))", "sec True False\n", ""},
		{"python", false, "with open('DIR/a.csv', 'rb') as f:\n    f.seek(-3, 2)\n    print(f.read(), f.tell(), f.seek(2), f.read(2))", "b'41\\n' 16 2 b'me'\n", ""},
		{
			"python", false, tries("open('DIR/outer')", "open('DIR/../out.txt')", "open('DIR/none')", "open('DIR/deep').read()", "open('DIR/a.csv', 'w')", "open('DIR/a.csv', 'a')", "open('DIR/a.csv', 'r+')", "open('DIR/new', 'x')",
				"os.mkdir('DIR/new')", "os.remove('DIR/a.csv')", "os.rename('DIR/a.csv', 'DIR/new')", "os.rmdir('DIR/deep')", "os.truncate('DIR/a.csv', 0)"),
			"PermissionError\nPermissionError\nFileNotFoundError\nIsADirectoryError\nOSError\nOSError\nOSError\nOSError\nOSError\nOSError\nOSError\nOSError\nOSError\n", "",
		},
		{"python", false, "open('DIR/a.csv', 'w')", "", "fence:1: OSError: [Errno 69] Read-only file system: 'DIR/a.csv'"},
		{"python", false, "open('DIR/outer')", "", "fence:1: PermissionError: [Errno 63] Operation not permitted: 'DIR/outer'\nwhat a directory last refused: path escapes from parent"},
		{"python", false, "try: open('DIR/outer')\nexcept OSError: open('DIR/none')", "", "fence:2: FileNotFoundError: [Errno 44] No such file or directory: 'DIR/none'"},
		{
			"python", true, tries("open('DIR/new', 'w').write('one')", "open('DIR/new', 'a').write('two')", "open('DIR/new').read()", "open('DIR/new', 'x')", "open('DIR/new', 'r+').truncate(4)", "open('DIR/new').read()",
				"os.mkdir('DIR/d')", "os.rmdir('DIR/d')", "os.rename('DIR/new', 'DIR/newer')", "os.path.exists('DIR/new')", "shutil.copyfile('DIR/newer', 'DIR/copy') and open('DIR/copy').read()", "os.remove('DIR/newer')",
				"os.remove('DIR/deep')", "os.rmdir('DIR/copy')", "os.rmdir('DIR/deep')", "open('DIR/deep', 'w')", "open('DIR/none/new', 'w')", "os.rename('DIR/copy', 'DIR/../copy')"),
			"3\n3\nonetwo\nFileExistsError\n4\nonet\nNone\nNone\nNone\nFalse\nonet\nNone\nIsADirectoryError\nNotADirectoryError\nOSError\nIsADirectoryError\nFileNotFoundError\nPermissionError\n", "",
		},
		{"javascript", false, `print(dir.read("DIR/a.csv").trim().split("\n").slice(1).reduce((n, l) => n + Number(l.split(",")[1]), 0))`, "42\n", ""},
		{"javascript", false, `print(dir.list("DIR"), dir.list("DIR/deep/"), dir.read("DIR/inner"), dir.stat("DIR/a.csv").kind, dir.stat("DIR/a.csv").size, dir.stat("DIR/deep").kind, dir.stat("DIR/a.csv").modified > 1e12)`, "[\"a.csv\", \"deep\", \"inner\", \"outer\"] [\"b.txt\"] second\n file 16 dir true\n", ""},
		{
			"javascript", false, `for (const f of [() => dir.read("DIR/outer"), () => dir.read("DIR/../out.txt"), () => dir.read("DIR/none"), () => dir.read("DIR/deep"), () => dir.list("DIR/a.csv"), () => dir.write("DIR/a.csv", "x"), () => dir.read("relative"), () => dir.read("DIRx"), () => dir.read("/boot"), () => dir.read("/fence"), () => dir.read(7), () => dir.write("DIR/a.csv"), () => { dir.read = 1; return typeof dir.read }])
			try { print(f()) } catch (e) { print(String(e).split("DIR/").join("")) }`,
			"Error: outer: No such file or directory\nError: ../out.txt: Operation not permitted\nError: none: No such file or directory\nError: deep: it is not a file\nError: a.csv: Not a directory\nError: a.csv: Read-only file system\n" +
				"Error: relative: OUTSIDE\nError: DIRx: OUTSIDE\nError: /boot: OUTSIDE\nError: /fence: OUTSIDE\nTypeError: a path is a string\nTypeError: what is written is a string\nfunction\n", "",
		},
		{"javascript", false, "\ndir.read('DIR/outer')", "", "fence:2: Error: DIR/outer: No such file or directory\nwhat a directory last refused: path escapes from parent"},
		{"javascript", true, `print(dir.write("DIR/new", "one ü"), dir.read("DIR/new"), dir.write("DIR/new", "x"), dir.read("DIR/new"), dir.list("DIR").length)`, "true one ü true x 5\n", ""},
		{"javascript", true, `dir.write("DIR/deep", "x")`, "", "fence:1: Error: DIR/deep: Is a directory"},
		{"wasm", false, `memory 2 - func run ` + opens(1024, "a.csv", 0, wasiReads, 0) + "drop " + puts, "name,n\nx,1\ny,41\n", ""},
		{"wasm", false, `memory 2 - func run -> i32 -> i32 -> i32 -> i32 ` + opens(1024, "outer", 0, wasiReads, 0) + opens(1100, "../out.txt", 0, wasiReads, 0) + opens(1200, "none", 0, wasiReads, 0) + opens(1300, "a.csv", 0, wasiReads|wasiWrites, 0), "63\n63\n44\n69\n", ""},
		{"wasm", false, `memory 2 - data 0 "unchanged" func run i32.const 3 i32.const 64 call fd_prestat_get i32.const 4 i32.const 64 call fd_prestat_get i32.const 8 i32.eq i32.eq if unreachable end
			i32.const 3 i32.const 4096 i32.const 68 i32.load call fd_prestat_dir_name drop i32.const 40 i32.const 4096 i32.store i32.const 44 i32.const 68 i32.load i32.store i32.const 1 i32.const 40 i32.const 1 i32.const 36 call fd_write drop`, "DIR", ""},
		{"wasm", true, `memory 2 - func run -> i32 -> i32 ` + opens(1024, "new", wasiCreate|wasiExclusive, wasiReads|wasiWrites, 0) +
			`data 40 "\x80\x04\x00\x00\x03\x00\x00\x00" data 1152 "new" i32.const 32 i32.load i32.const 40 i32.const 1 i32.const 36 call fd_write `, "0\n0\n", ""},
		{"wasm", false, `memory 2 - func run ` + opens(1024, "outer", 0, wasiReads, 0) + `drop i32.const 3 call proc_exit`, "", "exit status 3\nwhat a directory last refused: path escapes from parent"},
	} {
		at := tree(t, files)
		here := strings.NewReplacer("DIR", at+"/in", "OUTSIDE", errOutside.Error())
		res := runJob(t, r, handed(t, c.language, c.source, at+"/in", c.write))
		if (res.Verdict == notebook.OK) != (c.error == "") || res.Output != here.Replace(c.output) || res.Error != here.Replace(c.error) {
			t.Errorf("%s: %.300s\n%v %q %q, want %q", c.language, c.source, res.Verdict, res.Output, res.Error, here.Replace(c.output))
		}
		if now := contentOf(t, at+"/out.txt"); now != "outside" {
			t.Fatalf("%s wrote outside: %q", c.source, now)
		}
		if now := contentOf(t, at+"/in/a.csv"); now != files["in/a.csv"] {
			t.Errorf("%s changed %q", c.source, now)
		}
	}
	for language, c := range map[string]struct{ source, output string }{
		"python":     {"import os\ntry: os.listdir('DIR')\nexcept FileNotFoundError: print('nothing')", "nothing\n"},
		"javascript": {"print(typeof dir)", "undefined\n"},
		"wasm":       {"memory 1 - func run -> i32 i32.const 3 i32.const 64 call fd_prestat_get", "8\n"},
	} {
		source := strings.ReplaceAll(c.source, "DIR", t.TempDir())
		if language == "wasm" {
			source = module(source)
		}
		if res := runIn(t, r, language, source); res.Verdict != notebook.OK || res.Output != c.output {
			t.Errorf("without a grant, %s: %v %q %q", language, res.Verdict, res.Output, res.Error)
		}
	}
}

// reaching is a fence that tries paths, a module only one, in four ways: to read it,
// to write to it, to list it and to describe it. It says "no" for each that failed.
func reaching(language string, paths ...string) string {
	switch list, _ := json.Marshal(paths); language {
	case "python":
		return fmt.Sprintf(`import os
for p in %s:
    for f in open, lambda p: open(p, "w").write("OVERWRITTEN"), os.listdir, os.stat:
        try: r = f(p); print(getattr(r, "read", lambda: r)())
        except (OSError, ValueError): print("no")`, list)
	case "javascript":
		return fmt.Sprintf(`for (const p of %s) for (const f of [dir.read, (p) => dir.write(p, "OVERWRITTEN"), dir.list, dir.stat]) try { print(f(p)) } catch (e) { print("no") }`, list)
	}
	// A module says the rest of the path by itself; what could be read would be put out.
	_, rest, _ := strings.Cut(paths[0], "/in/")
	no := `if print 1 "no\n" else ` + puts + `end `
	return module(`memory 2 - func run ` + opens(2048, rest, 0, wasiReads, 0) + no + opens(2048, rest, wasiCreate|wasiEmpty, wasiReads|wasiWrites, 0) + no +
		opens(2048, rest, 2, wasiReads, 0) + no + fmt.Sprintf(`i32.const 3 i32.const 1 i32.const 2048 i32.const %d i32.const 512 call path_filestat_get `, len(rest)) + no)
}

// TestCase60And61NothingOutsideTheDirectoryOfAGuest: no path and no link leads out
// of it, also one that is put there while the fence runs.
func TestCase60And61NothingOutsideTheDirectoryOfAGuest(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{
		"own/noted.key": "SECRET", "in/plain": "seen",
		"in/up": "-> ..", "in/relative": "-> ../own/noted.key", "in/absolute": "-> DIR/own/noted.key",
		"in/twice": "-> relative", "in/dangling": "-> ../own/new", "in/sub/root": "-> /", "in/sub/self": "-> /proc/self/root",
	})
	run := func(language, source string) notebook.Result {
		t.Helper()
		j := granting(t, quick, source, notebook.Dir(at+"/in", true))
		j.language = language
		return runJob(t, r, j)
	}
	var paths []string
	for _, path := range []string{
		"in/../own/noted.key", "in/sub/../../own/noted.key", "in/up/own/noted.key", "in/relative", "in/absolute", "in/twice", "in/dangling",
		"in/sub/root" + at + "/own/noted.key", "in/sub/self" + at + "/own/noted.key", "in/\x00/../../own/noted.key", "in//../own/noted.key",
	} {
		paths = append(paths, at+"/"+path)
	}
	for _, language := range guests {
		atOnce := [][]string{paths}
		if language == "wasm" {
			atOnce = slices.Collect(slices.Chunk(paths, 1))
		}
		for _, paths := range atOnce {
			res := run(language, reaching(language, paths...))
			if res.Verdict != notebook.OK || strings.Contains(res.Output, "SECRET") || res.Output != strings.Repeat("no\n", 4*len(paths)) {
				t.Errorf("%s, %q: %v %q %q", language, paths, res.Verdict, res.Output, res.Error)
			}
		}
		// The control: what is in it can be read, and then written to.
		if err := os.WriteFile(at+"/in/plain", []byte("seen"), 0o644); err != nil {
			t.Fatal(err)
		}
		if res := run(language, reaching(language, at+"/in/plain")); res.Verdict != notebook.OK || !strings.HasPrefix(res.Output, "seen") || strings.HasPrefix(contentOf(t, at+"/in/plain"), "seen") {
			t.Errorf("%s, the control: %v %q %q", language, res.Verdict, res.Output, res.Error)
		}
	}
	if _, err := os.Lstat(at + "/own/new"); err == nil {
		t.Error("something was made through a link")
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
	for language, source := range map[string]string{
		"python": `seen = set()
for i in range(3000):
    try:
        with open(SWAP, "r+" if i % 7 == 0 else "r") as f:
            seen.add(f.read())
            if i % 7 == 0: f.write("plain")
    except PermissionError: seen.add("escapes")
    except OSError: pass
sorted(seen)`,
		"javascript": `const seen = {};
for (let i = 0; i < 3000; i++) try { seen[dir.read(SWAP)] = 1; if (i % 7 === 0) dir.write(SWAP, "plain") } catch (e) { seen[/not permitted|No such/.test(e) ? "escapes" : "gone"] = 1 }
Object.keys(seen)`,
	} {
		res := run(language, strings.ReplaceAll(source, "SWAP", fmt.Sprintf("%q", at+"/in/swap")))
		if res.Verdict != notebook.OK || strings.Contains(res.Output, "SECRET") || !strings.Contains(res.Output, "plain") || !strings.Contains(res.Output, "escapes") {
			t.Errorf("%s: %v %q %q", language, res.Verdict, res.Output, res.Error)
		}
	}
	close(stop)
	if n := <-swapped; n < 100 {
		t.Errorf("it was swapped %d times", n)
	}
	if now := contentOf(t, at+"/own/noted.key"); now != "SECRET" {
		t.Errorf("the file outside is %q", now)
	}
}

// TestWhatAGuestMayNotMake: links of both kinds, and what is no file is neither
// made nor opened, and nobody waits for it.
func TestWhatAGuestMayNotMake(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/a": "a", "in/sub/b": "b"})
	if err := unix.Mkfifo(at+"/in/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ language, source, output string }{
		{"python", `import os
for f in (lambda: os.symlink("a", "DIR/l"), lambda: os.symlink("/etc", "DIR/l"), lambda: os.link("DIR/a", "DIR/l"), lambda: os.utime("DIR/a"), lambda: open("DIR/pipe"), lambda: open("DIR/pipe", "w"), lambda: open("DIR/pipe", "r+"), lambda: os.rename("DIR/a", "DIR/sub/a")):
    try: print(f())
    except OSError as e: print(e.errno)
open("DIR/l", "x").write("a")`, "63\n63\n63\n63\n63\n29\n63\n29\n"},
		{"javascript", `for (const f of [() => dir.read("DIR/pipe"), () => dir.write("DIR/pipe", "x")]) try { print(f()) } catch (e) { print(String(e).replace(/.*: /, "")) }
dir.write("DIR/l", "a")`, "it is not a file\nI/O error\n"},
		{"wasm", `memory 2 - data 1024 "a" data 1040 "l" data 1056 "pipe" func run -> i32 -> i32 -> i32 -> i32 i32.const 1024 i32.const 1 i32.const 3 i32.const 1040 i32.const 1 call path_symlink
			i32.const 3 i32.const 1 i32.const 1024 i32.const 1 i32.const 3 i32.const 1040 i32.const 1 call path_link ` +
			opens(1056, "pipe", 0, wasiReads, 0) + opens(1040, "l", wasiCreate|wasiExclusive, wasiWrites, 0), "63\n63\n63\n0\n"},
	} {
		res := runJob(t, r, handed(t, c.language, c.source, at+"/in", true))
		if res.Verdict != notebook.OK || res.Output != c.output {
			t.Errorf("%s: %v %q %q", c.language, res.Verdict, res.Output, res.Error)
		}
		info, err := os.Lstat(at + "/in/l")
		if err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s, the control: %v %v", c.language, info, err)
		}
		if n := info.Sys().(*syscall.Stat_t).Nlink; n != 1 {
			t.Errorf("%s: it has %d names", c.language, n)
		}
		os.Remove(at + "/in/l")
	}
}

// TestCase47WhatAGuestWrites: files and bytes of a run are bounded, and the size
// of each file is.
func TestCase47WhatAGuestWrites(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/old": "x", "in/full": ""})
	made := func(language string) string {
		return map[string]string{
			"python":     "import os\nmade = 0\ntry:\n    while True:\n        if made % 2: os.mkdir(f'DIR/n{made}')\n        else: open(f'DIR/n{made}', 'w').close()\n        made += 1\nexcept OSError as e: print(made, e.errno, open('DIR/old', 'w').write('y'))\nopen('DIR/more', 'w')",
			"javascript": "let made = 0;\ntry { for (;;) { dir.write('DIR/n' + made, ''); made++ } } catch (e) { print(made, String(e).replace(/.*: /, ''), dir.write('DIR/old', 'y')) }\ndir.write('DIR/more', '')",
		}[language]
	}
	full := func(language string) string {
		return map[string]string{
			"python":     "mib, wrote = 'x' * (1 << 20), 0\ntry:\n    while True:\n        with open('DIR/full', 'w') as f: f.write(mib)\n        wrote += 1\nexcept OSError as e: print(wrote, e.errno, open('DIR/full', 'w').close())\nwith open('DIR/full', 'w') as f: f.write('x')",
			"javascript": "const mib = 'x'.repeat(1 << 20); let wrote = 0;\ntry { for (;;) { dir.write('DIR/full', mib); wrote++ } } catch (e) { print(wrote, String(e).replace(/.*: /, ''), dir.write('DIR/full', '')) }\ndir.write('DIR/full', 'x')",
		}[language]
	}
	for _, c := range []struct {
		language, source, output string
		why                      error
	}{
		{"python", made("python"), fmt.Sprintf("%d 29 1\n", maxFiles), errFiles},
		{"javascript", made("javascript"), fmt.Sprintf("%d I/O error true\n", maxFiles), errFiles},
		{"python", full("python"), fmt.Sprintf("%d 29 None\n", maxWritten>>20), errBytes},
		{"javascript", full("javascript"), fmt.Sprintf("%d it was not written true\n", maxWritten>>20), errBytes},
		// What is not written is not made by making a file long either, and one file has its own bound.
		{"python", "import os\nwith open('DIR/full', 'r+') as f:\n    for n in 40, 20, 60, 40, 65: f.truncate(n << 20); print(f.seek(0, 2) >> 20)", "40\n20\n", errBytes},
		{"python", "with open('DIR/full', 'rb+', buffering=0) as f:\n    f.seek((64 << 20) - 1); print(f.write(b'x')); f.write(b'x')", "1\n", unix.EFBIG},
		{"python", "import os\nos.posix_fallocate(os.open('DIR/full', os.O_RDWR), 0, 65 << 20)", "", errBytes},
	} {
		j := handed(t, c.language, c.source, at+"/in", true)
		j.limits.Time = 2 * quick.Time
		res := runJob(t, r, j)
		if res.Verdict != notebook.Failed || res.Output != c.output || !strings.HasSuffix(res.Error, "what a directory last refused: "+c.why.Error()) {
			t.Errorf("%s %.80q: %v %q %q, want %q", c.language, c.source, res.Verdict, res.Output, res.Error, c.output)
		}
		if info, err := os.Stat(at + "/in/full"); err != nil || info.Size() > maxFile {
			t.Errorf("%s: %v %v", c.source, info.Size(), err)
		}
		all, _ := filepath.Glob(at + "/in/n*")
		for _, n := range all {
			os.Remove(n)
		}
		if err := os.WriteFile(at+"/in/full", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A module, which has no bound of its own in between: as much as there is, and no more.
	write := `memory 17 - data 64 "\x00\x00\x01\x00\x00\x00\x10\x00" func run -> i32 -> i32 ` + opens(1024, "full", wasiEmpty, wasiWrites, 0) +
		`drop loop i32.const 32 i32.load i64.const 0 i32.const 0 i32.const 88 call fd_seek drop local.get 0 i32.const 1 i32.add local.set 0 i32.const 32 i32.load i32.const 64 i32.const 1 i32.const 80 call fd_write local.tee 1 i32.eqz br_if 0 end local.get 0 local.get 1`
	if res := runJob(t, r, handed(t, "wasm", write, at+"/in", true)); res.Verdict != notebook.OK || res.Output != fmt.Sprintf("%d\n29\n", maxWritten>>20+1) {
		t.Errorf("a module: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

// TestCase46AGuestMeetsManyNames: a directory that holds too many is not listed,
// and a file in it can be read.
func TestCase46AGuestMeetsManyNames(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "seen"})
	for i := range maxList {
		if err := os.WriteFile(fmt.Sprintf("%s/in/%d", at, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const source = "import os\nprint(open('DIR/x').read())\nprint(len(os.listdir('DIR')))"
	why := fmt.Sprintf("it holds more than %d names", maxList)
	if res := runJob(t, r, handed(t, "python", source, at+"/in", false)); res.Verdict != notebook.Failed || res.Output != "seen\n" || !strings.HasSuffix(res.Error, why) {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	if err := os.Remove(at + "/in/0"); err != nil {
		t.Fatal(err)
	}
	if res := runJob(t, r, handed(t, "python", source, at+"/in", false)); res.Verdict != notebook.OK || res.Output != fmt.Sprintf("seen\n%d\n", maxList) {
		t.Errorf("one less: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

// TestCase64TwoGuestsDoNotMeet: a run sees nothing of the directory of another one
// beside it, and nothing is kept from one to the next: no spare has a directory.
func TestCase64TwoGuestsDoNotMeet(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"a/x": "of a", "b/x": "of b"})
	source := map[string]string{
		"python":     "import os\nfor d in 'ab':\n    try: print(open(f'" + at + "/{d}/x').read())\n    except FileNotFoundError: print('nothing')",
		"javascript": `for (const d of "ab") try { print(dir.read("` + at + `/" + d + "/x")) } catch (e) { print(/no directory/.test(e) ? "nothing" : e) }`,
	}
	for language, source := range source {
		strict := strictJob(quick, source)
		strict.language = language
		spare := warmed(t, r, strict)
		outputs := make(chan string, 4)
		for i := range cap(outputs) {
			j := granting(t, quick, source, notebook.Dir(at+[]string{"/a", "/b"}[i%2], false))
			j.language = language
			go func() {
				res, pid, err := r.run(context.Background(), j)
				if err != nil || pid == spare {
					t.Errorf("%s: %v, by the worker %d, and %d is the spare", language, err, pid, spare)
				}
				outputs <- res.Output
			}()
		}
		seen := map[string]int{}
		for range cap(outputs) {
			seen[<-outputs]++
		}
		if seen["of a\nnothing\n"] != 2 || seen["nothing\nof b\n"] != 2 {
			t.Errorf("%s: %v", language, seen)
		}
		strict.request.source = map[string]string{"python": "print(6 * 7)", "javascript": "print(typeof dir)"}[language]
		if res, pid := watched(t, r, strict); pid != spare || res.Output != map[string]string{"python": "42\n", "javascript": "undefined\n"}[language] {
			t.Errorf("%s: then a strict run by %d, and %d is the spare: %q", language, pid, spare, res.Output)
		}
	}
}

// TestAGuestKeepsTheDirectoryThatIsRenamed: whatever happens to its name.
func TestAGuestKeepsTheDirectoryThatIsRenamed(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "granted", "other/x": "SECRET"})
	j := handed(t, "python", "import os\nwhile not os.path.exists('DIR/go'): pass\nprint(open('DIR/x').read(), open('DIR/y', 'w').write('written'))", at+"/in", true)
	done := make(chan notebook.Result, 1)
	go func() {
		res, _, err := r.run(context.Background(), j)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	runningWorker(t)
	if err := errors.Join(os.Rename(at+"/in", at+"/moved"), os.Rename(at+"/other", at+"/in"), os.WriteFile(at+"/moved/go", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if res := <-done; res.Output != "granted 7\n" {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	if contentOf(t, at+"/moved/y") != "written" {
		t.Error("it was not written where it was granted")
	}
	if _, err := os.Lstat(at + "/in/y"); err == nil {
		t.Error("it was written in another directory of this name")
	}
}

// TestAnEngineWithADirectoryIsInItsJail: while an engine is started, and when it
// runs, it has what a worker with a directory has, and nothing more.
func TestAnEngineWithADirectoryIsInItsJail(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "seen", "secret": "SECRET"})
	said := func(language string, write bool) string {
		j := granting(t, quick, "x", notebook.Dir(at+"/in", write))
		w, done, err := r.openGranted(t.Context(), kind{language, quick}, &j.grants)
		if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "EOF") {
			return "killed"
		}
		if err != nil {
			return err.Error()
		}
		defer done()
		res := w.run(t.Context(), &request{source: "x"})
		w.release()
		if res.verdict == notebook.Violation {
			return "killed"
		}
		text, _, _ := res.output.text()
		return text
	}
	const noFile, noCall = "no such file or directory", "killed"
	probes := map[string]string{
		"inside": "<nil>", "upwards": noFile, "upwards to proc": noFile, "upwards to itself": "read-only file system", "upwards to the linker": "read-only file system",
		"link": noCall, "symlink": noCall, "fifo": noCall, "run": noCall, "mode": noCall,
	}
	for name := range dirProbes {
		want, known := probes[name]
		for _, stage := range []string{"starting", "running"} {
			if got := said(stage+" in it: "+name, true); !known || got != want {
				t.Errorf("%s while it is %s: %s, want %s", name, stage, got, want)
			}
		}
	}
	if got := said("running in it: inside", false); got != "read-only file system" {
		t.Errorf("writing to a directory that may be read: %s", got)
	}
	for name := range systemCalls {
		got := said("running "+name, true)
		switch name {
		case "open", "create", "stat":
			if !slices.Contains([]string{noFile, "permission denied", "operation not permitted"}, got) {
				t.Errorf("%s: %s", name, got)
			}
		default:
			if got != noCall && (name != "openat2" || got != "operation not permitted") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	for name, want := range map[string]string{"code": noCall, "exec": noCall, "memfd": noCall, "prctl": "<nil>"} {
		if got := said("starting "+name, true); got != want {
			t.Errorf("%s while it is started: %s, want %s", name, got, want)
		}
	}
}

// TestAGuestWithADirectoryHasItsLimits: the deadline, and as much memory as without
// a directory and no more, are what they are at strict.
func TestAGuestWithADirectoryHasItsLimits(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/large": strings.Repeat("x", 20<<20)})
	run := func(language, source string, l notebook.Limits) notebook.Result {
		t.Helper()
		j := handed(t, language, source, at+"/in", true)
		j.limits = l
		res, pid := watched(t, r, j)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the worker %d is still there: %v", pid, err)
		}
		if !raceDetector && res.Peak > l.Memory+attackMemory {
			t.Errorf("%s: %d MiB resident", language, res.Peak>>20)
		}
		return res
	}
	for language, source := range map[string]string{
		"python":     "print('so far', flush=True)\nwhile True:\n    open('DIR/new', 'w').close()\n    open('DIR/large').read(1)",
		"javascript": "print('so far'); for (;;) { dir.write('DIR/new', ''); dir.list('DIR') }",
		"wasm":       `memory 2 - func run print 1 "so far\n" ` + again(opens(1024, "large", 0, wasiReads, 0)+"drop i32.const 32 i32.load call fd_close drop"),
	} {
		if res := run(language, source, caseLimits); res.Verdict != notebook.Timeout || language != "javascript" && res.Output != "so far\n" {
			t.Errorf("%s: %v %q %q", language, res.Verdict, res.Output, res.Error)
		}
	}
	const fill = "taken = []\ntry:\n    while True: taken.append(bytearray(64 << 10))\nexcept MemoryError: mib = len(taken) >> 4\nprint(mib)"
	var mib int
	if res := run("python", fill, quick); res.Verdict != notebook.OK || !scans(res.Output, &mib) || mib < 33 {
		t.Errorf("a fence may take %d MiB: %v %q", mib, res.Verdict, res.Error)
	}
	if res := run("python", "len(open('DIR/large').read())", quick); res.Output != "20971520\n" && res.Verdict != notebook.Memory {
		t.Errorf("a file of 20 MiB: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	if res := run("python", "x = [open('DIR/large').read() for _ in range(9)]", quick); res.Verdict != notebook.Memory {
		t.Errorf("nine of them: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	if res := run("python", "import os\nall = []\ntry:\n    while True: all.append(os.open('DIR/large', os.O_RDONLY))\nexcept OSError: print(len(all) < 128)", quick); res.Output != "True\n" {
		t.Errorf("files that stay open: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

func scans(text string, n *int) bool {
	_, err := fmt.Sscan(text, n)
	return err == nil
}

// TestADirectoryWhereAnEngineHasItsOwn: the library of an engine, and noted's
// script for it, lie where nothing else can be.
func TestADirectoryWhereAnEngineHasItsOwn(t *testing.T) {
	for _, c := range []struct {
		language, path string
		refused        bool
	}{
		{"python", "/usr", true},
		{"python", "/usr/local", true},
		{"python", "/usr/local/lib", true},
		{"python", "/usr/local/lib/python3.12/json", true},
		{"python", "/usr/local/library", false},
		{"python", "/usr/share", false},
		{"python", "/boot", false},
		{"javascript", "/boot", true},
		{"javascript", "/boot/x", true},
		{"javascript", "/fence", true},
		{"javascript", "/boots", false},
		{"javascript", "/usr/local/lib", false},
		{"wasm", "/usr", false},
		{"lua", "/usr", false},
		{"sh", "/boot", false},
	} {
		g := grants{dirs: []pinnedDir{{name: "/home/me"}, {name: c.path}}}
		err := g.beside(c.language)
		if (err != nil) != c.refused || c.refused && codeOf(err) != notebook.CodeRefused {
			t.Errorf("%s in %s: %v", c.path, c.language, err)
		}
	}
	at := tree(t, map[string]string{"x": "seen"})
	r := newRunner(t, Config{Limits: quick})
	j := granting(t, quick, "1", notebook.Dir(at, false))
	j.language, j.grants.dirs[0].name = "python", "/usr/local/lib"
	if _, _, err := r.run(t.Context(), j); codeOf(err) != notebook.CodeRefused || !strings.Contains(err.Error(), "has files of its own at /usr/local/lib") {
		t.Errorf("a run with it: %v", err)
	}
}

// TestFilesAreMadeAsThePersonsOwn: who else may read and write what a run makes is
// as the daemon's own umask says, in every language.
func TestFilesAreMadeAsThePersonsOwn(t *testing.T) {
	ofTheWorker(t)
	defer unix.Umask(unix.Umask(0o027))
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, nil)
	for language, source := range map[string]string{
		"lua": "return dir.write('DIR/lua', 'x')", "sh": "echo x > DIR/sh", "python": "open('DIR/python', 'w').write('x')", "javascript": "dir.write('DIR/javascript', 'x')",
		"wasm": `memory 2 - func run -> i32 ` + opens(1024, "wasm", wasiCreate, wasiWrites, 0),
	} {
		res := runJob(t, r, handed(t, language, source, at, true))
		info, err := os.Stat(filepath.Join(at, language))
		if res.Verdict != notebook.OK || err != nil || info.Mode() != 0o640 {
			t.Errorf("%s: %v %q, %v %v", language, res.Verdict, res.Error, info, err)
		}
	}
	handedDir := handed(t, "python", "import os\nos.mkdir('DIR/made')", at, true)
	if res := runJob(t, r, handedDir); res.Verdict != notebook.OK {
		t.Errorf("%v %q", res.Verdict, res.Error)
	}
	if info, err := os.Stat(at + "/made"); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v %v", info, err)
	}
}
