package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// systemCalls are what a worker must not be able to do, as plain calls. The
// workers of this test binary that open every library have them under "probe".
var systemCalls = map[string]func() error{
	"open": func() error { return closing(unix.Open("/etc/passwd", unix.O_RDONLY, 0)) },
	"create": func() error {
		return closing(unix.Open("/tmp/noted-probe", unix.O_RDWR|unix.O_CREAT, 0o600))
	},
	"openat2":  func() error { return closing(unix.Openat2(unix.AT_FDCWD, "/etc/passwd", &unix.OpenHow{})) },
	"stat":     func() error { return unix.Stat("/etc/passwd", new(unix.Stat_t)) },
	"exec":     func() error { return unix.Exec("/no/such/program", []string{"x"}, nil) },
	"socket":   func() error { return closing(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) },
	"unix":     func() error { return closing(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) },
	"kill":     func() error { return unix.Kill(1<<22, 0) },
	"killself": func() error { return unix.Kill(os.Getpid(), 0) },
	"tgkill":   func() error { return unix.Tgkill(1<<22, 1<<22, 0) },
	"ptrace":   func() error { return unix.PtraceAttach(1 << 22) },
	"rlimit": func() error {
		return unix.Prlimit(0, unix.RLIMIT_CORE, nil, new(unix.Rlimit))
	},
	"fork": func() error {
		_, _, e := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_SIGHAND, 0, 0) // which needs CLONE_VM
		return e
	},
	"memfd":   func() error { return closing(unix.MemfdCreate("x", 0)) },
	"chroot":  func() error { return unix.Chroot("/no/such/directory") },
	"mount":   func() error { return unix.Mount("none", "/no/such/directory", "tmpfs", 0, "") },
	"unshare": func() error { return unix.Unshare(0) },
	"dup":     func() error { return closing(unix.Dup(0)) },
	"prctl":   func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) },
	"code": func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"ioctl":   func() error { _, err := unix.IoctlGetInt(0, unix.TIOCOUTQ); return err },
	"process": func() error { return closing(unix.PidfdOpen(os.Getpid(), 0)) },
	"bpf":     func() error { _, _, e := unix.RawSyscall(unix.SYS_BPF, ^uintptr(0), 0, 0); return e },
	"uring":   func() error { _, _, e := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 0, 0, 0); return e },
}

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func TestTheKernelRefusesWhatAWorkerMustNotDo(t *testing.T) {
	limits := allLibraries(quick)
	r := newRunner(t, Config{Limits: limits})
	fails := []string{"open", "create", "stat"} // as EPERM; everything else is death
	for name, call := range systemCalls {
		// The control: outside of the jail the kernel runs the call, though it may
		// not like its arguments.
		if err := call(); errors.Is(err, unix.EPERM) {
			t.Errorf("%s outside of the jail: %v", name, err)
		}
		res := runSource(t, r, limits, "return probe."+name+"()")
		if slices.Contains(fails, name) || name == "openat2" && res.Verdict == notebook.OK {
			if res.Verdict != notebook.OK || res.Output != "operation not permitted\n" {
				t.Errorf("%s: %v %q", name, res.Verdict, res.Output)
			}
		} else if res.Verdict != notebook.Violation || res.Output != "" {
			t.Errorf("%s: %v %q", name, res.Verdict, res.Output)
		}
	}
	os.Remove("/tmp/noted-probe")
}

func TestEveryLibraryOfTheEngineReachesNothing(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("return 'the secret'"), 0o644); err != nil {
		t.Fatal(err)
	}
	limits := allLibraries(quick)
	r := newRunner(t, Config{Limits: limits})
	for _, c := range []struct {
		source  string
		verdict notebook.Verdict
	}{
		{`return io.open(%q)`, notebook.OK},
		{`return pcall(dofile, %q)`, notebook.OK},
		{`return loadfile(%q)`, notebook.OK},
		{`return io.lines(%q)()`, notebook.Failed},
		{`return os.remove(%q)`, notebook.Violation},
		{`return os.rename(%q, "/tmp/x")`, notebook.Violation},
		{`return os.execute("cat " .. %q)`, notebook.Violation},
		{`return io.popen("cat " .. %q):read("*a")`, notebook.Violation},
		{`io.stdin = io.open(%q) return io.read()`, notebook.OK},
	} {
		res := runSource(t, r, limits, fmt.Sprintf(c.source, secret))
		if strings.Contains(res.Output+res.Error, "the secret") || res.Verdict != c.verdict {
			t.Errorf("%s: %v %q %q", c.source, res.Verdict, res.Output, res.Error)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "return 'the secret'" {
		t.Errorf("the file afterwards: %q %v", b, err)
	}
	res := runSource(t, r, limits, `local n = 0 for _ in pairs({os.getenv("HOME"), os.getenv("PATH"), os.getenv("USER")}) do n = n + 1 end return n, io.read("*a")`)
	if res.Verdict != notebook.OK || res.Output != "0\t\n" {
		t.Errorf("environment and stdin: %v %q %q", res.Verdict, res.Output, res.Error)
	}
}

// seenFromOutside reads in /proc what the worker has that runs a job which does
// not end by itself.
func seenFromOutside(t *testing.T, r *Runner, j job) {
	t.Helper()
	// What the daemon inherited from whoever started it is not handed on, and
	// another program that it starts has it.
	t.Setenv("NOTED_TEST_SECRET", "the secret")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	inherited, err := unix.Open(secret, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf(`cat /proc/self/fd/%d; printf "$NOTED_TEST_SECRET"`, inherited)).Output()
	if err != nil || string(out) != "the secretthe secret" {
		t.Errorf("the control: another program has %q %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	pid := warmed(t, r, j)
	warm := userTicks(pid)
	go func() {
		res, _, err := r.run(ctx, j)
		if err == nil && res.Verdict != notebook.Cancelled {
			err = fmt.Errorf("ended as %v", res.Verdict)
		}
		done <- err
	}()
	if pid == 0 {
		pid = runningWorker(t)
	}
	// The spare is one until the run has come to it.
	for begin := warm; userTicks(pid) < begin+5; time.Sleep(time.Millisecond) {
		if t.Context().Err() != nil || processState(pid) == "" {
			t.Fatal("the run has not come to its worker")
		}
	}
	proc := func(name string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	status := proc("status")
	for _, line := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
		if !strings.Contains(status, line) {
			t.Errorf("status lacks %q", line)
		}
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if s := proc("task/" + task.Name() + "/status"); !strings.Contains(s, "Seccomp:\t2\n") {
			t.Errorf("thread %s is not under the filter", task.Name())
		}
	}
	if env := proc("environ"); strings.TrimSuffix(env, "\x00") != strings.Join(workerEnv, "\x00") {
		t.Errorf("environment: %q", env)
	}
	limits := proc("limits")
	language, _ := languageOf(j.language)
	files := fmt.Sprintf("Max open files %d %[1]d", fdFrames+1+language.pipes)
	flat := strings.Join(strings.Fields(limits), " ")
	for _, want := range []string{"Max file size 0 0", "Max core file size 0 0", files, "Max locked memory 0 0"} {
		if !strings.Contains(flat, want) {
			t.Errorf("limits lack %q:\n%s", want, limits)
		}
	}
	// Counted from what it took to get ready, in whole seconds.
	least, soft, hard := cpuSeconds(j.limits.Time), uint64(0), uint64(0)
	_, rest, _ := strings.Cut(flat, "Max cpu time ")
	if _, err := fmt.Sscan(rest, &soft, &hard); err != nil || soft != hard || soft < least || soft > least+uint64(readyWithin/time.Second) {
		t.Errorf("the processor time is not %d seconds:\n%s", least, limits)
	}
	handed := map[string]string{}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		kind, _, _ := strings.Cut(to, ":[")
		handed[fd.Name()] = kind
	}
	for fd, kind := range handed {
		switch {
		case fd == "0" || fd == "1" || fd == "3":
			if kind != "pipe" {
				t.Errorf("fd %s is %s", fd, kind)
			}
		case fd == "2" && kind == "/dev/null":
		case kind == "anon_inode": // the runtime's own poller
		default:
			t.Errorf("fd %s is %s", fd, kind)
		}
	}
	if slices.Contains(r.Layers(), layerRoot) {
		if root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid)); err != nil || !strings.HasSuffix(root, " (deleted)") {
			t.Errorf("its root is %q, %v", root, err)
		}
		if entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", pid)); len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its root holds %v, %v", entries, err)
		}
	}
	if slices.Contains(r.Layers(), layerNamespaces) {
		for _, ns := range []string{"user", "net", "pid", "mnt", "ipc", "uts", "cgroup"} {
			ours, _ := os.Readlink("/proc/self/ns/" + ns)
			its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
			if err != nil || its == ours {
				t.Errorf("its %s namespace is ours: %v", ns, err)
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := processState(pid); s != "" {
		t.Errorf("the worker is %s after the answer", s)
	}
}

// runningWorker waits for a worker of this process that uses the processor, and
// returns its pid.
func runningWorker(t *testing.T) int {
	t.Helper()
	for range 500 {
		for _, pid := range children(os.Getpid()) {
			if cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); userTicks(pid) >= 5 && strings.HasPrefix(string(cmd), workerName) {
				return pid
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no worker is running")
	return 0
}

// userTicks is the processor time that a process has used outside of the kernel,
// in hundredths of a second; 0 if it is gone.
func userTicks(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 12 {
		return 0
	}
	n, _ := strconv.Atoi(f[11])
	return n
}

// children are the processes that a process has started and not yet waited for.
func children(pid int) []int {
	var pids []int
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var child, parent int
		var state string
		head, rest, _ := strings.Cut(string(b), " (")
		_, rest, _ = strings.Cut(rest, ") ")
		if _, err := fmt.Sscan(head, &child); err != nil {
			continue
		}
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// TestLandlockOnAThread: what a restricted thread may open, and what not.
func TestLandlockOnAThread(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := map[string]error{}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := restrictThread(); err != nil {
			done <- err
			return
		}
		for _, name := range []string{file, "/etc/passwd", "/proc/self/status", "/dev/null", "/proc/self/exe", "/dev/zero"} {
			open[name] = closing(unix.Open(name, unix.O_RDONLY, 0))
		}
		open["create"] = closing(unix.Open(file+"2", unix.O_RDWR|unix.O_CREAT, 0o600))
		open["remove"] = unix.Unlink(file)
		done <- nil
	}()
	if err := <-done; err != nil {
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
			t.Logf("this kernel has no landlock: %v", err)
			return
		}
		t.Fatal(err)
	}
	for name, err := range open {
		switch name {
		case "/proc/self/status", "/dev/null", "/proc/self/exe":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if !errors.Is(err, unix.EACCES) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := closing(unix.Open(file, unix.O_RDONLY, 0)); err != nil {
		t.Errorf("another thread: %v", err)
	}
}

// TestLandlockIsOnTheSpawnerOnly: the daemon's other threads stay free.
func TestLandlockIsOnTheSpawnerOnly(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	if !slices.Contains(r.Layers(), layerLandlock) {
		t.Logf("this kernel has no landlock; held: %v", r.Layers())
	}
	failed := make(chan error, 100)
	for range cap(failed) {
		go func() {
			f, err := os.CreateTemp(t.TempDir(), "free")
			if err == nil {
				err = f.Close()
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if out, err := exec.Command("/bin/sh", "-c", "echo free").Output(); err != nil || string(out) != "free\n" {
		t.Errorf("a program of the daemon's own: %q %v", out, err)
	}
}
