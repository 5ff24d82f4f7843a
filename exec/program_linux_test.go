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

// starterLanguage is one of this test binary's workers only: each line of its
// source is a program with its arguments, parted by tabs. It shows what the
// program wrote and how it ended.
var starterLanguage = language{name: "starter", open: func(w *workspace) (engine, error) { return &starter{w}, nil }}

type starter struct{ w *workspace }

func (s *starter) run(r *request) outcome {
	for line := range strings.Lines(r.source) {
		words := strings.Split(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n"), "\t")
		var in io.Reader
		if text, piped := strings.CutPrefix(words[0], "<"); piped {
			in, words = strings.NewReader(text), words[1:]
		}
		status, err := s.w.programs.run(context.Background(), words[0], words[1:], in, s.w.out, s.w.out)
		if err != nil {
			return failed("%v", err)
		}
		fmt.Fprintf(s.w.out, "[%d]\n", status)
	}
	return outcome{}
}

// starting is a job that starts programs.
func starting(t *testing.T, l notebook.Limits, source string, capabilities ...notebook.Capability) job {
	t.Helper()
	j := granting(t, l, source, capabilities...)
	j.language = starterLanguage.name
	return j
}

// shell and cat are as every machine has them.
const (
	shell = "/bin/sh"
	cat   = "/bin/cat"
)

func sh(script string) string {
	return shell + "\t-c\texec 2>&1; " + strings.ReplaceAll(script, "\n", `\n`)
}

func TestAProgramRuns(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "granted\n"})
	for _, c := range []struct{ source, output string }{
		{sh("echo hello; exit 3"), "hello\n[3]\n"},
		{cat, "[0]\n"},
		{"<piped\t" + cat, "piped[0]\n"},
		{cat + "\t" + at + "/in/x", "granted\n[0]\n"},
		{sh("echo err >&2; kill -9 $$"), "err\n[137]\n"},
		{sh("echo $# $0 $1") + "\tname\ta b", "1 name a b\n[0]\n"},
		{sh("set") + "\n", ""},
		{sh("echo x | /bin/cat; echo $?"), "x\n0\n[0]\n"},
		{sh("echo 1 | /bin/cat | /usr/bin/cat"), "1\n[0]\n"},
	} {
		j := starting(t, quick, c.source, notebook.Program(shell), notebook.Program(cat), notebook.Dir(at+"/in", false))
		if res := runJob(t, r, j); res.Verdict != notebook.OK || c.output != "" && res.Output != c.output {
			t.Errorf("%q: %v %q %q, want %q", c.source, res.Verdict, res.Output, res.Error, c.output)
		}
	}
}

// marks are files in a directory that a run may write to, seen from outside.
type marks struct {
	t   *testing.T
	dir string
}

func newMarks(t *testing.T) marks {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return marks{t, dir}
}

func (m marks) there(name string) bool {
	_, err := os.Lstat(filepath.Join(m.dir, name))
	return err == nil
}

// tail waits so long that a survivor would have left its mark.
func (m marks) tail() { time.Sleep(1500 * time.Millisecond) }

// TestNothingOfAProgramTreeIsLeft: cases 17 to 21, 30, 48 and 24 of what a tree
// of programs may try, each with the control that it was really running.
func TestNothingOfAProgramTreeIsLeft(t *testing.T) {
	r := newRunner(t, Config{Limits: quick, Slots: 8})
	short := quick
	short.Time = 500 * time.Millisecond
	for _, c := range []struct {
		name, script string
		limits       notebook.Limits
		verdict      notebook.Verdict
		most         time.Duration
	}{
		{"case 17: a program outlives the deadline", "touch START; sleep 1; touch LATE", short, notebook.Timeout, time.Second},
		{"case 18: in the background", "(touch START; sleep 1; touch LATE)& wait", short, notebook.Timeout, time.Second},
		{"case 19: in a session of its own", "setsid sh -c 'touch START; sleep 1; touch LATE' & wait", short, notebook.Timeout, time.Second},
		{"case 19: twice forked", "(setsid sh -c '(touch START; sleep 1; touch LATE) & exit' & exit) ; sleep 5", short, notebook.Timeout, time.Second},
		{"case 20: after a normal end", "(setsid sh -c 'exec >&- 2>&-; touch START; sleep 1; touch LATE' &) ; sleep 0.2; echo done", quick, notebook.OK, 1200 * time.Millisecond},
		{"case 21: deaf to signals", "trap '' TERM INT HUP QUIT; touch START; sleep 1; sleep 1; touch LATE", short, notebook.Timeout, time.Second},
		{"case 30: a descendant holds the output", "(touch START; sleep 1; touch LATE)& echo done", quick, notebook.OK, 1200 * time.Millisecond},
		{"the control: it may end by itself", "touch START; sleep 0.1; touch LATE", quick, notebook.OK, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMarks(t)
			script := strings.NewReplacer("START", m.dir+"/START", "LATE", m.dir+"/LATE", "setsid", "/usr/bin/setsid", "touch", "/usr/bin/touch", "sleep", "/bin/sleep", "sh -c", "/bin/sh -c").Replace(c.script)
			j := starting(t, c.limits, sh(script), notebook.Dir(m.dir, true),
				notebook.Program(shell), notebook.Program("/usr/bin/setsid"), notebook.Program("/usr/bin/touch"), notebook.Program("/bin/sleep"))
			res := runJob(t, r, j)
			if res.Verdict != c.verdict || !m.there("START") {
				t.Fatalf("%v, started %v: %q %q", res.Verdict, m.there("START"), res.Output, res.Error)
			}
			if took := time.Duration(res.Took) * time.Microsecond; took > c.most*slower {
				t.Errorf("it took %v", took)
			}
			if c.name == "case 30: a descendant holds the output" && res.Output != "done\n"+shell+": what it started still holds its output\n[0]\n" {
				t.Errorf("it says %q", res.Output)
			}
			m.tail()
			if control := strings.HasPrefix(c.name, "the control"); m.there("LATE") != control {
				t.Errorf("afterwards something was alive: %v", m.there("LATE"))
			}
		})
	}
}

// slower is how much longer things take under the race detector.
var slower = map[bool]time.Duration{false: 1, true: 10}[raceDetector]

// TestCase45AForkBomb: programs cannot become many, and all of them end.
func TestCase45AForkBomb(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	before := len(allProcesses(t))
	most := make(chan int)
	stop := make(chan struct{})
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(5 * time.Millisecond):
				n = max(n, len(allProcesses(t)))
			}
		}
	}()
	// The control: as many as are allowed end by themselves.
	res := runJob(t, r, starting(t, quick, sh("i=0; while [ $i -lt 40 ]; do /bin/sleep 0.3 & i=$((i+1)); done; wait; echo all"), notebook.Program(shell), notebook.Program("/bin/sleep")))
	if res.Verdict != notebook.OK || res.Output != "all\n[0]\n" {
		t.Errorf("the control: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	res = runJob(t, r, starting(t, quick, sh("b() { b | b & }; b; while true; do :; done")+"\n"+sh("echo again"), notebook.Program(shell)))
	close(stop)
	peak := <-most
	// It is counted, or on a slow machine it comes to the kernel's bound first, at
	// which what starts the programs ends, and all of them with it.
	said := strings.Contains(res.Error, "more than 64 processes") || strings.Contains(res.Error, "what starts programs has ended")
	if res.Verdict == notebook.OK || res.Verdict == notebook.Failed && !said || strings.Contains(res.Output, "again") {
		t.Errorf("a fork bomb: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	if peak < before+40 || peak > before+programPids+200 {
		t.Errorf("of %d processes there were %d at most", before, peak)
	}
	t.Logf("%d processes before, %d at most", before, peak)
	for range 100 {
		if len(allProcesses(t)) <= before+10 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d processes before, %d afterwards", before, len(allProcesses(t)))
}

func allProcesses(t *testing.T) []string {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	return all
}

// TestWhatAProgramMayTake: memory, files, descriptors and cores of programs are
// bounded, each alone and all together: cases 32, 47, 48 and 49.
func TestWhatAProgramMayTake(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	m := newMarks(t)
	dd := func(args string) string { return "/bin/dd\t" + strings.ReplaceAll(args, " ", "\t") }
	grants := []notebook.Capability{notebook.Dir(m.dir, true), notebook.Program(shell), notebook.Program("/bin/dd"), notebook.Program("/bin/sleep")}
	for _, c := range []struct{ name, source, has string }{
		{"the control", dd("if=/dev/zero of=" + m.dir + "/small bs=1M count=8 status=none"), "[0]\n"},
		{"one large block of memory", dd("if=/dev/zero of=/dev/null bs=200M count=1 status=none"), "memory exhausted"},
		{"a large file", dd("if=/dev/zero of=" + m.dir + "/large bs=1M count=100 status=none"), "[153]"},
		{"a full /tmp", dd("if=/dev/zero of=/tmp/large bs=1M count=50 status=none"), "No space left"},
		{"many files in /tmp", sh("i=0; while [ $i -lt 10000 ] && : > /tmp/$i; do i=$((i+1)); done; echo made $i"), "No space left"},
		{"what was made in /tmp, as a library", sh("/bin/dd if=/bin/sh of=/tmp/s status=none; /lib64/ld-linux-x86-64.so.2 /tmp/s -c 'echo RAN'"), "failed to map"},
		{"case 48: descriptors", sh("ulimit -n; ulimit -n 100000; echo $?"), "256\n"},
		{"case 49: cores", sh("ulimit -c; kill -SEGV $$"), "0\n[139]\n"},
		{"limits are for good", sh("ulimit -v unlimited || echo refused"), "refused"},
	} {
		given := grants
		if strings.Contains(c.name, "/tmp") {
			given = grants[1:] // there is a /tmp unless the directory in it is granted
		}
		res := runJob(t, r, starting(t, quick, c.source, given...))
		if !strings.Contains(res.Output, c.has) {
			t.Errorf("%s: %v %q %q", c.name, res.Verdict, res.Output, res.Error)
		}
	}
	if info, err := os.Stat(m.dir + "/large"); err != nil || info.Size() != maxFile {
		t.Errorf("the large file: %v %v", info, err)
	}
	if cores, _ := filepath.Glob(m.dir + "/core*"); len(cores) > 0 {
		t.Errorf("cores: %v", cores)
	}
	// Many that have a little each have too much together.
	res := runJob(t, r, starting(t, quick, sh("i=0; while [ $i -lt 20 ]; do /bin/dd if=/dev/zero of=/dev/null bs=30M count=1000 status=none & i=$((i+1)); done; wait; echo survived"), grants...))
	if strings.Contains(res.Output, "survived") || !strings.Contains(res.Error, "memory together") {
		t.Errorf("together: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "noted-root-*")); len(left) > 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestWhatAProgramSees: no environment, nothing of the machine but what was
// granted, no other process, no terminal: cases 58, 59 and 65 to 68.
func TestWhatAProgramSees(t *testing.T) {
	t.Setenv("NOTED_SECRET", "SECRET")
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/x": "granted", "secret": "SECRET", "in/link": "-> ../secret", "rw/x": "granted"})
	held, err := os.Open(at + "/secret") // case 59: a descriptor of the parent's
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	grants := []notebook.Capability{
		notebook.Dir(at+"/in", false), notebook.Dir(at+"/rw", true), notebook.Program(shell), notebook.Program(cat),
		notebook.Program("/bin/ls"), notebook.Program("/usr/bin/env"), notebook.Program("/usr/bin/id"), notebook.Program("/bin/ln"), notebook.Program("/bin/chmod"),
	}
	for _, c := range []struct{ name, source, output string }{
		{"case 58: the environment", "/usr/bin/env", "[0]\n"},
		{"case 65: its input", cat, "[0]\n"},
		{"case 67: its pid and parent", sh("[ $$ -lt 1000 ] && [ $PPID -lt 1000 ] && echo small"), "small\n[0]\n"},
		{"case 67: its user", "/usr/bin/id\t-u", "65534\n[0]\n"},
		{"the root", "/bin/ls\t/", "/bin/ls: cannot open directory '/': Permission denied\n[2]\n"},
		{"the directories above a granted one", "/bin/ls\t" + at, "/bin/ls: cannot open directory '" + at + "': Permission denied\n[2]\n"},
		{"case 66: /proc", "/bin/ls\t/proc", "/bin/ls: cannot open directory '/proc': Permission denied\n[2]\n"},
		{"case 66: itself", "/bin/ls\t/proc/self", "/bin/ls: cannot open directory '/proc/self': Permission denied\n[2]\n"},
		{"case 66: the worker", sh("kill -9 1; kill -TERM 1; kill -9 -1; echo alive"), "*Operation not permitted*alive\n[0]\n"},
		{"case 68: a file", cat + "\t" + at + "/secret", "/bin/cat: " + at + "/secret: No such file or directory\n[1]\n"},
		{"case 68: through a link", cat + "\t" + at + "/in/link", "/bin/cat: " + at + "/in/link: No such file or directory\n[1]\n"},
		{"case 68: /etc", cat + "\t/etc/passwd", "/bin/cat: /etc/passwd: No such file or directory\n[1]\n"},
		{"case 68: above the directory", cat + "\t" + at + "/in/../secret", "/bin/cat: " + at + "/in/../secret: No such file or directory\n[1]\n"},
		{"case 68: writing what is to be read", sh("echo x > " + at + "/in/x; echo x > " + at + "/in/y; echo x > " + at + "/rw/x; " + cat + " " + at + "/rw/x"), "*in/x: Read-only file system*in/y: Read-only file system*[0]\n"},
		{"case 68: a program that was not granted", sh("/bin/date; /usr/bin/python3 -c 1; /lib64/ld-linux-x86-64.so.2 /bin/date; echo $?"), "*not found*not found*127\n[0]\n"},
		{"a program among the libraries", sh("/lib/x86_64-linux-gnu/libc.so.6; echo $?; /lib64/ld-linux-x86-64.so.2 --version | { read x; echo \"$x\"; }"), "*ermission denied\n126\n*ld*[0]\n"},
		{"a program that was made", sh(cat + " /bin/sh > " + at + "/rw/sh; /bin/chmod 755 " + at + "/rw/sh; " + at + "/rw/sh -c 'echo RAN'; echo end"), "*ermission denied*end\n[0]\n"},
		{"a link into the directory", "/bin/ln\t-s\t/etc/passwd\t" + at + "/rw/l", "*ermission denied*[1]\n"},
		{"descriptors", sh("for i in 3 4 5 6 7 8 9; do if (: <&$i); then echo open $i; fi; done 2>/dev/null; echo end"), "end\n[0]\n"},
		{"the controlling terminal", sh("(: < /dev/tty) || echo none"), "*No such*none*"},
		{"the control", cat + "\t" + at + "/in/x", "granted[0]\n"},
	} {
		res := runJob(t, r, starting(t, quick, c.source, grants...))
		if res.Verdict != notebook.OK || !matches(c.output, res.Output) || strings.Contains(res.Output, "SECRET") || strings.Contains(res.Output, "RAN") {
			t.Errorf("%s: %v %q %q, want %q", c.name, res.Verdict, res.Output, res.Error, c.output)
		}
	}
}

// matches compares with a pattern in which a star stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// probeRole makes this binary a program that makes one system call.
const probeRole = "noted-test-probe"

func beProbe(name string) int {
	call, ok := systemCalls[name]
	if !ok {
		call = socketCalls[name]
	}
	fmt.Println(call())
	return 0
}

// socketCalls are the ways to the network, and to other programs of the machine.
var socketCalls = map[string]func() error{
	"tcp":       func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) },
	"udp":       func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)) },
	"mptcp":     func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)) },
	"tcp6":      func() error { return closing(unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)) },
	"udp6":      func() error { return closing(unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)) },
	"unix path": func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) },
	"abstract":  func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)) },
	"raw":       func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) },
	"packet":    func() error { return closing(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
	"datagrams": func() error { return pair(unix.SOCK_DGRAM) },
	"messages":  func() error { return pair(unix.SOCK_RAW) }, // another name of the same
	"stream":    func() error { return pair(unix.SOCK_STREAM) },
	"limits":    limitParent,
	"netlink":   func() error { return closing(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)) },
	"vsock":     func() error { return closing(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
}

// limitParent sets a limit of whoever started this process, to what it is: where
// it succeeds, as the control, that is the go command.
func limitParent() error {
	var l unix.Rlimit
	if err := unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &l); err != nil {
		return err
	}
	return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, &l, nil)
}

// pair makes two sockets that are connected to each other.
func pair(kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return err
}

// TestCase62WhatAProgramMayCall: a program that is native code gets no socket,
// no namespace, no other process and none of the kernel's back doors.
func TestCase62WhatAProgramMayCall(t *testing.T) {
	ofTheWorker(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	large := quick // a program in Go reserves much before it starts
	large.Memory, large.Time = 8<<30, 60*time.Second
	r := newRunner(t, Config{Limits: quick})
	const no, killed = "operation not permitted\n[0]\n", "[159]\n"
	want := map[string]string{
		"open": "no such file or directory\n[0]\n", "openat2": "function not implemented\n[0]\n", "create": "<nil>\n[0]\n",
		"stat": "no such file or directory\n[0]\n", "exec": "no such file or directory\n[0]\n", "socket": no, "unix": no,
		"kill": "no such process\n[0]\n", "killself": "<nil>\n[0]\n", "tgkill": "no such process\n[0]\n", "ptrace": killed, "rlimit": "*",
		"fork": "invalid argument\n[0]\n", "memfd": no, "chroot": killed, "mount": killed, "unshare": killed, "dup": "<nil>\n[0]\n", "prctl": "<nil>\n[0]\n",
		"code": "<nil>\n[0]\n", "ioctl": "*", "process": "<nil>\n[0]\n", "bpf": killed, "uring": killed,
	}
	for name := range socketCalls {
		want[name] = no
	}
	want["stream"] = "<nil>\n[0]\n" // which cannot be sent anywhere else
	var lines, names []string
	for name := range systemCalls {
		names = append(names, name)
	}
	for name := range socketCalls {
		names = append(names, name)
	}
	for _, name := range names {
		lines = append(lines, self+"\t"+probeRole+"\t"+name)
	}
	res := runJob(t, r, starting(t, large, strings.Join(lines, "\n"), notebook.Program(self)))
	got := strings.SplitAfter(res.Output, "]\n")
	if res.Verdict != notebook.OK || len(got) != len(names)+1 {
		t.Fatalf("%v: %d answers to %d calls: %q %q", res.Verdict, len(got), len(names), res.Output, res.Error)
	}
	for i, name := range names {
		if w, ok := want[name]; !ok || !matches(w, got[i]) {
			t.Errorf("%s: %q, want %q", name, got[i], w)
		}
	}
}

// TestCase75WhatAProgramSays: exit codes and words of programs are theirs, and
// decide nothing.
func TestCase75WhatAProgramSays(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, status := range []int{1, 2, 66, exitNoJail, exitProtocol, exitLate, 124, 125, 126, 127, 137, 159, 255} {
		source := sh(fmt.Sprintf("echo 'deadline exceeded'; echo timeout >&2; exit %d", status)) + "\n" + sh("echo goes on")
		res := runJob(t, r, starting(t, quick, source, notebook.Program(shell)))
		if res.Verdict != notebook.OK || res.Output != fmt.Sprintf("deadline exceeded\ntimeout\n[%d]\ngoes on\n[0]\n", status) && res.Output != fmt.Sprintf("timeout\ndeadline exceeded\n[%d]\ngoes on\n[0]\n", status) {
			t.Errorf("exit %d: %v %q %q", status, res.Verdict, res.Output, res.Error)
		}
	}
}

// TestAProgramThatIsNotTheGrantedOne: other bytes at the path are not executed,
// nor is what was not granted.
func TestAProgramThatIsNotTheGrantedOne(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"p": "#!/bin/sh\necho one\n", "q": "#!/bin/sh\necho two\n"})
	for _, p := range []string{"/p", "/q"} {
		if err := os.Chmod(at+p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := notebook.Program(at + "/p")
	j := starting(t, quick, at+"/p\n", program, notebook.Program(shell))
	if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != "one\n[0]\n" {
		t.Errorf("the control: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	j.request.source = at + "/q\n"
	if res := runJob(t, r, j); res.Verdict != notebook.Failed || res.Error != errNoProgram.Error() {
		t.Errorf("what was not granted: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	j.request.source = at + "/p\n"
	if err := os.WriteFile(at+"/p", []byte("#!/bin/sh\necho two\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var e *notebook.Error
	if res, _, err := r.run(context.Background(), j); !errors.As(err, &e) || e.Code != notebook.CodeStale || res.Verdict != notebook.NoVerdict {
		t.Errorf("other bytes: %v %q %v", res.Verdict, res.Output, err)
	}
}

// TestAProgramIsShownWithinTheRoot: where the name of a program has come to lead
// out of a directory that was granted, nothing is made there.
func TestAProgramIsShownWithinTheRoot(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"dir/bin/tool": "-> " + cat, "dir/x": "granted"})
	if err := os.Mkdir(at+"/outside", 0o755); err != nil {
		t.Fatal(err)
	}
	tool := at + "/dir/bin/tool"
	j := starting(t, quick, tool+"\t"+at+"/dir/x", notebook.Dir(at+"/dir", true), notebook.Program(tool))
	if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != "granted[0]\n" {
		t.Errorf("the control: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	for _, to := range []string{at + "/outside", "../../outside", at + "/outside/deeper"} {
		if err := os.RemoveAll(at + "/dir/bin"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at+"/dir/bin"); err != nil {
			t.Fatal(err)
		}
		if res := runJob(t, r, j); res.Verdict != notebook.OK || res.Output != "granted[0]\n" {
			t.Errorf("%s: %v %q %q", to, res.Verdict, res.Output, res.Error)
		}
		if made, err := os.ReadDir(at + "/outside"); err != nil || len(made) > 0 {
			t.Errorf("%s: outside there is %v %v", to, made, err)
		}
	}
}

// TestNothingOfNotedsIsInAGrantedDirectory: what the stage makes for itself lies
// where [Resolve] gives no directory.
func TestNothingOfNotedsIsInAGrantedDirectory(t *testing.T) {
	for _, at := range []string{placeEmpty, placePrograms} {
		if _, err := Resolve(notebook.Dir(filepath.Dir(at), true), nil); !underKernel(at) || err == nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	if _, err := Resolve(notebook.Dir(newMarks(t).dir, true), nil); err != nil {
		t.Errorf("the control: %v", err)
	}
}

// TestNoNumberOfTheMachineChanges: what a run bounds for itself is not the
// machine's.
func TestNoNumberOfTheMachineChanges(t *testing.T) {
	before := contentOf(t, "/proc/sys/kernel/pid_max")
	r := newRunner(t, Config{Limits: quick})
	if res := runJob(t, r, starting(t, quick, sh("echo ran"), notebook.Program(shell))); res.Output != "ran\n[0]\n" {
		t.Errorf("%v %q %q", res.Verdict, res.Output, res.Error)
	}
	if now := contentOf(t, "/proc/sys/kernel/pid_max"); now != before {
		t.Errorf("pid_max was %q and is %q", before, now)
	}
}
