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
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// shellIn runs a shell in this process, with directories and programs: here its
// own handlers are all that there is.
func shellIn(t *testing.T, source string, prepare func(*shellEngine)) (output string, o outcome) {
	t.Helper()
	var out strings.Builder
	e, err := newShell(&out, nil)
	if err != nil {
		t.Fatal(err)
	}
	prepare(e)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o = e.run(&request{source: source})
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("no answer for %.100q", source)
	}
	return out.String(), o
}

func grantDir(t *testing.T, e *shellEngine, dir string, write bool) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	e.files = append(e.files, &dirGrant{path: dir, root: root, write: write, quota: &quota{files: maxFiles, bytes: maxWritten}})
}

// grantDirs makes a directory to read, one to write to within it, and a secret
// beside them, and returns their parent.
func grantDirs(t *testing.T) (parent string, grant func(*shellEngine)) {
	t.Helper()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"read/sub", "read/write"} {
		if err := os.MkdirAll(filepath.Join(parent, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"secret": "secret\n", "read/a.md": "first\nsecond\n", "read/b.md": "", "read/sub/c.md": "third\n"} {
		if err := os.WriteFile(filepath.Join(parent, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"read/inside": "a.md", "read/outside": "../secret", "read/absolute": parent + "/secret", "read/up": ".."} {
		if err := os.Symlink(to, filepath.Join(parent, link)); err != nil {
			t.Fatal(err)
		}
	}
	return parent, func(e *shellEngine) {
		for _, dir := range []string{"read", "read/write"} {
			grantDir(t, e, filepath.Join(parent, dir), dir == "read/write")
		}
	}
}

func TestShellInADirectory(t *testing.T) {
	parent, grant := grantDirs(t)
	for _, c := range []struct{ source, output string }{
		{"read -r x < P/read/a.md; echo $x; echo \"$(<P/read/sub/c.md)\"", "first\nthird\n"},
		{"cd P/read; pwd; for f in *.md */; do echo $f; done; cd sub; echo *; cd ..; pwd", "P/read\na.md\nb.md\nsub/\nwrite/\nc.md\nP/read\n"},
		{"echo P/read/*.md", "P/read/a.md P/read/b.md\n"},
		{"cd P/read; [ -f a.md ] && [ -d sub ] && [ -s a.md ] && [ ! -s b.md ] && [ -r a.md ] && [ ! -w a.md ] && [ -L inside ] && [ ! -e none ] && [ -w write ] && echo yes", "yes\n"},
		{"cd P/read; [[ -f a.md && -d sub && -s a.md && ! -s b.md && -r a.md && ! -w a.md && -L inside && ! -e none && -w write ]] && echo yes", "yes\n"},
		{"while read -r l; do echo \"<$l>\"; done < P/read/inside", "<first>\n<second>\n"},
		{"cd P/read/write; echo one > new; echo two >> new; echo \"$(<new)\"; echo three > new; echo \"$(<new)\"; [ -w new ] && echo yes", "one\ntwo\nthree\nyes\n"},
		{"read -r x < P/read/none; echo $?; cd P/read/none; echo $?", "open P/read/none: no such file or directory\n1\ncd: no such file or directory: \"P/read/none\"\n1\n"},
		{"cd P/read; cd ..; pwd; echo *; echo P/* P/read/../*; echo P/read/up/* P/read/outside/*; [ -d / ] && [ -d .. ] && [ ! -f .. ] && echo yes", "P\nread\nP/read P/read/../read\nP/read/up/* P/read/outside/*\nyes\n"},
		{"read -r x < P/read/sub; echo $?", "open P/read/sub: it is not a file\n1\n"},
	} {
		here := strings.NewReplacer("P/", parent+"/", "P\n", parent+"\n")
		if output, o := shellIn(t, here.Replace(c.source), grant); o.failed || output != here.Replace(c.output) {
			t.Errorf("%s: %q %q, want %q", c.source, output, o.text, here.Replace(c.output))
		}
	}
	if b, err := os.ReadFile(filepath.Join(parent, "read/write/new")); err != nil || string(b) != "three\n" {
		t.Errorf("%q %v", b, err)
	}
}

// TestShellDoesNotLeaveItsDirectory: everything else has no name.
func TestShellDoesNotLeaveItsDirectory(t *testing.T) {
	parent, grant := grantDirs(t)
	for _, source := range []string{
		"read x < P/secret", "read x < P/read/../secret", "read x < P/read/outside", "read x < P/read/absolute", "read x < P/read/up/secret", "cd P/read; read x < ../secret",
		"cd P/read/up", "cd P/read; read x < ../../secret", "echo /etc/*", "PWD=/etc; echo *", "[ -e P/secret ]", "[ -e P/read/outside ]", "[[ -e P/secret ]]", "[[ -s P/read/absolute ]]",
		"echo x > P/read/a.md", "echo x >> P/read/new", "echo x > P/new", "echo x > P/read/write/../new", "cd P/read/write; echo x > ../a.md", "read x < P/readx", "read x < P/read/write/../../secret", "ls", "read x < /etc/passwd", "(read x < P/secret) || :",
	} {
		output, o := shellIn(t, "echo before\n"+strings.ReplaceAll(source, "P/", parent+"/")+"\necho after", grant)
		if !o.failed || output != "before\n" || !strings.HasPrefix(o.text, "fence:2: ") {
			t.Errorf("%s: %q %q", source, output, o.text)
		}
	}
	if b, err := os.ReadFile(filepath.Join(parent, "read/a.md")); err != nil || string(b) != "first\nsecond\n" {
		t.Errorf("it was changed: %q %v", b, err)
	}
	for _, gone := range []string{"new", "read/new"} {
		if _, err := os.Lstat(filepath.Join(parent, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
}

// TestShellIsToldWhatWasNotWritten: nothing that was written is lost in silence.
func TestShellIsToldWhatWasNotWritten(t *testing.T) {
	parent, grant := grantDirs(t)
	little := func(e *shellEngine) {
		grant(e)
		for _, d := range e.files {
			d.quota = &quota{files: 1, bytes: 10}
		}
	}
	file := parent + "/read/write/new"
	for _, c := range []shellCase{
		okShell("as much as may be", "echo 123456789 > FILE; echo on", "on\n"),
		failedShell("more", "echo 123456789 > FILE\necho x >> FILE\necho on", "", fmt.Sprintf("fence:2: %q: %v", file, errBytes)),
		failedShell("more in a pipe", "{ echo 12345678901 || :; } > FILE | :\necho on", "", fmt.Sprintf("fence:1: %q: %v", file, errBytes)),
		okShell("more files are not opened", ": > FILE; : > FILE2; echo $?", fmt.Sprintf("open %s2: %v\n1\n", file, errFiles)),
	} {
		output, o := shellIn(t, strings.ReplaceAll(c.source, "FILE", file), little)
		if o.failed != (c.verdict == notebook.Failed) || output != c.output || o.text != c.err {
			t.Errorf("%s: %q %q, want %q %q", c.name, output, o.text, c.output, c.err)
		}
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShellTellsTheLine: a word that is computed is told of at its own line.
func TestShellTellsTheLine(t *testing.T) {
	_, grant := grantDirs(t)
	for source, line := range map[string]string{
		"echo *.md\nd=/etc\n\necho $d/*":               "fence:4: ",
		"echo *.md\n\necho /etc/*":                     "fence:3: ",
		"[[ -e / ]]\nf=/etc/passwd\n\n[[ -e $f ]]":     "fence:4: ",
		"[[ -e / ]]\n\n[[ -e /etc/passwd ]]":           "fence:3: ",
		"f() {\n  cd /etc\n}\n\necho $(f)":             "fence:2: ",
		"[[ -e / ]]\nx=1\ncd /etc":                     "fence:3: ",
		"cd /\necho x |\n  while read y; do\nls; done": "fence:4: ",
	} {
		if _, o := shellIn(t, source, grant); !strings.HasPrefix(o.text, line) {
			t.Errorf("%q: %q, want %q", source, o.text, line)
		}
	}
}

// TestShellMeetsManyEntries: case 46, the part about patterns.
func TestShellMeetsManyEntries(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxList + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grant := func(e *shellEngine) {
		grantDir(t, e, dir, true)
	}
	if output, o := shellIn(t, "a=("+dir+"/*); echo ${#a[@]}", grant); !o.failed || output != "" || o.text != fmt.Sprintf("fence:1: %q: it holds more than %d names", dir, maxList) {
		t.Errorf("%q %q", output, o.text)
	}
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	if output, o := shellIn(t, "a=("+dir+"/*); echo ${#a[@]}", grant); o.failed || output != fmt.Sprintf("%d\n", maxList) {
		t.Errorf("%q %q", output, o.text)
	}
}

// TestShellDoesNotWaitForAPipe: what lies in a directory and is no file is somebody else's.
func TestShellDoesNotWaitForAPipe(t *testing.T) {
	parent, grant := grantDirs(t)
	if err := unix.Mkfifo(filepath.Join(parent, "read/write/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := parent + "/read/write/pipe"
	output, o := shellIn(t, "read x < "+p+"; echo $?; echo x > "+p+"; echo $?", grant)
	if o.failed || output != "open "+p+": it is not a file\n1\nopen "+p+": no such device or address\n1\n" {
		t.Errorf("%q %q", output, o.text)
	}
}

// TestShellPrograms: what is started is what was granted, with the words as they
// are and nothing else; a status is the program's own.
func TestShellPrograms(t *testing.T) {
	var started []string
	programs := func(e *shellEngine) {
		e.programs = []string{"/usr/bin/sort", "/opt/tool"}
		e.start = func(ctx context.Context, path string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
			started = append(started, fmt.Sprintf("%s %q", path, args))
			switch {
			case len(args) > 0 && args[0] == "in":
				_, err := io.Copy(stdout, stdin)
				return err
			case len(args) > 0 && args[0] == "status":
				return exitStatus(126)
			case len(args) > 0 && args[0] == "lost":
				return errors.New("it is not the program that was granted")
			}
			_, err := fmt.Fprintln(stdout, "ran")
			return err
		}
	}
	for _, c := range []struct{ source, output, err, started string }{
		{"sort 'a b' $(echo c d)", "ran\n", "", `/usr/bin/sort ["a b" "c" "d"]`},
		{"/opt/tool; x=$(tool); echo $x", "ran\nran\n", "", `/opt/tool [] /opt/tool []`},
		{"echo piped | tool in", "piped\n", "", `/opt/tool ["in"]`},
		{"tool status || echo $?", "126\n", "", `/opt/tool ["status"]`},
		{"tool status", "", "exit status 126", `/opt/tool ["status"]`},
		{"tool lost || echo on", "", `fence:1: "tool": it is not the program that was granted`, `/opt/tool ["lost"]`},
		{"/bin/sort", "", `fence:1: there is no command "/bin/sort" here`, ""},
		{"./sort", "", `fence:1: there is no command "./sort" here`, ""},
		{"../../usr/bin/sort", "", `fence:1: there is no command "../../usr/bin/sort" here`, ""},
		{"ls", "", `fence:1: there is no command "ls" here`, ""},
		{"PATH=/opt; too", "", `fence:1: there is no command "too" here`, ""},
		{"sort() { echo mine; }; sort", "mine\n", "", ""},
	} {
		started = nil
		output, o := shellIn(t, c.source, programs)
		if output != c.output || !strings.HasPrefix(o.text, c.err) || o.failed != (c.err != "") || strings.Join(started, " ") != c.started {
			t.Errorf("%s: %q %q, started %q", c.source, output, o.text, started)
		}
	}
	// Five times denied in five runs, each is told anew: nothing is remembered.
	for range 5 {
		if _, o := shellIn(t, "ls", programs); !strings.HasPrefix(o.text, `fence:1: there is no command "ls" here`) {
			t.Errorf("%q", o.text)
		}
	}
}

// TestShellInADirectoryInTheJail: the same in a worker, where the kernel keeps the
// directory too.
func TestShellInADirectoryInTheJail(t *testing.T) {
	dir := tree(t, map[string]string{"in/a.md": "first\n", "in/b.md": "", "in/sub/c.md": "third\n", "in/out": "-> DIR/secret", "secret": "secret\n"})
	in := filepath.Join(dir, "in")
	r := newRunner(t, Config{Limits: quick})
	run := func(source string, write bool) notebook.Result {
		t.Helper()
		j := granting(t, quick, strings.ReplaceAll(source, "P/", dir+"/"), notebook.Dir(in, write))
		j.language = shellLanguage.name
		return runJob(t, r, j)
	}
	for _, c := range []struct {
		source, output string
		write          bool
	}{
		{`cd P/in; for f in *.md */; do [ -f $f ] && echo "$f $(<$f)"; done; [[ -d sub && -L out && ! -w a.md ]] && echo yes`, "a.md first\nb.md \nyes\n", false},
		{`cd P/in; i=0; while read -r l; do i=$((i + 1)); done < a.md; echo $i | { read -r n; echo $n lines; }`, "1 lines\n", false},
		{`cd P/in/sub; echo one > new; echo two >> new; while read -r l; do echo "$l"; done < new; [ -w new ] && echo yes`, "one\ntwo\nyes\n", true},
	} {
		if res := run(c.source, c.write); res.Verdict != notebook.OK || res.Output != c.output {
			t.Errorf("%s: %v %q %q", c.source, res.Verdict, res.Output, res.Error)
		}
	}
	if text := contentOf(t, filepath.Join(in, "sub/new")); text != "one\ntwo\n" {
		t.Errorf("%q", text)
	}
	for _, source := range []string{"read x < P/secret", "read x < P/in/out", "read x < P/in/../secret", "echo x > P/in/a.md", "[ -e /etc/passwd ]", "cd /etc", "ls", "echo x | (read x < P/secret) || :"} {
		if res := run("echo a\n"+source+"\necho b", false); res.Verdict != notebook.Failed || res.Output != "a\n" || !strings.HasPrefix(res.Error, "fence:2: ") {
			t.Errorf("%s: %v %q %q", source, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestShellProgramsInTheJail: what was granted is started in the run's own jail,
// what was not is a denial, and a program's status is its own.
func TestShellProgramsInTheJail(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	run := func(l notebook.Limits, source string) notebook.Result {
		t.Helper()
		j := granting(t, l, source, notebook.Program(shell), notebook.Program(cat))
		j.language = shellLanguage.name
		return runJob(t, r, j)
	}
	for _, c := range []shellCase{
		okShell("piped", `echo piped | cat | while read -r l; do echo "<$l>"; done`, "<piped>\n"),
		okShell("by its path, in a substitution", `x=$(/bin/cat <<< 'a b'); echo "$x"`, "a b\n"),
		okShell("nothing to read, nothing in the environment", `X=1; export X; cat; sh -c 'echo "<$X$HOME>" $#' name`, "<> 0\n"),
		okShell("a status", `sh -c 'exit 126' || echo $?`, "126\n"),
		failedShell("a status at the end", `sh -c 'echo a; exit 7'`, "a\n", "exit status 7"),
		failedShell("what was not granted", "echo a\nls || :", "a\n", `fence:2: there is no command "ls" here`),
		failedShell("by another path", "/usr/sbin/cat", "", `fence:1: there is no command "/usr/sbin/cat" here`),
	} {
		if res := run(quick, c.source); res.Verdict != c.verdict || res.Output != c.output || !strings.HasPrefix(res.Error, c.err) {
			t.Errorf("%s: %v %q %q", c.name, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestCase17AGrantedProgramAtTheDeadline: it is not waited for.
func TestCase17AGrantedProgramAtTheDeadline(t *testing.T) {
	r := newRunner(t, Config{Limits: short})
	for source, want := range map[string]notebook.Verdict{"sh -c 'while :; do :; done'": notebook.Timeout, "sh -c ':'": notebook.OK} {
		j := granting(t, short, "echo a; "+source, notebook.Program(shell))
		j.language = shellLanguage.name
		start := time.Now()
		if res, _ := watched(t, r, j); res.Verdict != want || res.Output != "a\n" {
			t.Errorf("%s: %v %q %q after %v", source, res.Verdict, res.Output, res.Error, time.Since(start))
		}
	}
}
