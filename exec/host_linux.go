package exec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hostName is argv[0] of what runs a fence at the rung host: it starts the
// person's own shell and is the root of all that this starts. Its arguments are a
// worker's, and to its parent it is one; it has no jail.
const hostName = "noted-fence-host"

// The layers of a run at host: how its processes are held together.
const (
	layerProcesses = "processes" // a namespace of processes: they end with the first of them
	layerTree      = "tree"      // where that cannot be had: they are looked for and ended one by one
)

// hostShell is the shell of a fence at host, and maxHostSource how long its source
// may be, in bytes: it is one argument, and the kernel takes no longer one.
const (
	hostShell     = "/bin/sh"
	maxHostSource = 128<<10 - 1
)

// openHost starts what runs a fence at host.
func (r *Runner) openHost(_ context.Context, k kind) (w *worker, done func(), err error) {
	for _, namespaces := range []bool{true, false} {
		var s *spawner
		if s, err = newSpawner(false, namespaces, &profile{host: true}); err != nil {
			continue
		}
		if w, err = s.worker(k, nil); err == nil {
			w.tree = !namespaces
			return w, s.close, nil
		}
		s.close()
		if !refused(err) {
			break
		}
	}
	return nil, nil, refusal(err)
}

// hostVariables are the person's: who they are, where their things are and what
// they read. No other has a place here, whatever it is called.
var hostVariables = []string{
	"HOME", "PATH", "USER", "LOGNAME", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
	"LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}

// hostEnvironment is what of the daemon's environment is the person's, and not
// noted's or of whatever the daemon was started from.
func hostEnvironment(all []string) []string {
	env := []string{"TERM=dumb", "SHELL=" + hostShell}
	for _, e := range all {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(hostVariables, name) {
			env = append(env, e)
		}
	}
	return env
}

// beHost runs one request in a shell and says how it ended. It stays until its
// parent ends it, with all that it is the root of.
func beHost(args []string) int {
	runtime.LockOSThread() // what starts the shell has no more rights than that is to have
	runtime.GOMAXPROCS(1)
	// What it starts may signal it, and is to be ended by it. What is handled here is
	// as usual again in the shell; what is ignored would not be.
	signal.Notify(make(chan os.Signal, 1))
	k, err := readKind(args)
	if err != nil {
		return exitProtocol
	}
	closeInherited(0)
	for _, fd := range []int{fdRequest, fdOutput, fdFrames} {
		unix.CloseOnExec(fd)
	}
	_ = unix.Close(fdRoot)
	r := ready{layers: []string{layerTree}}
	if os.Getpid() == 1 {
		r.layers = []string{layerProcesses}
		// With its own /proc the shell sees its own processes. Without, it sees
		// numbers that are not theirs.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err == nil {
			_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return exitProtocol
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return exitProtocol
	}
	// The shell, which is of the same user, has no say in how it ended.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return exitProtocol
	}
	frames := os.NewFile(fdFrames, "frames")
	if _, err := frames.Write(r.encode()); err != nil {
		return exitProtocol
	}
	b, err := readFrame(os.NewFile(fdRequest, "request"), k.maxRequest())
	if err != nil {
		return exitProtocol
	}
	req, err := decodeRequest(b)
	if err != nil {
		return exitProtocol
	}
	go endWithParent()
	o := runHost(&req)
	if _, err := frames.Write(o.encode()); err != nil {
		endTree(os.Getpid())
		return exitProtocol
	}
	select {}
}

// endWithParent ends this process and all that it started when nobody waits for
// its outcome any more. Within a namespace of processes the kernel does.
func endWithParent() {
	gone := []unix.PollFd{{Fd: fdFrames}} // no event asked for: only that the other end is closed
	for gone[0].Revents == 0 {
		if _, err := unix.Poll(gone, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
	endTree(os.Getpid())
	os.Exit(exitProtocol)
}

// runHost runs the source in a shell. The source is one argument, and what was
// passed to the fence are others, as NAME=VALUE: nothing is put into the source.
func runHost(r *request) outcome {
	var source strings.Builder
	for _, p := range r.before {
		source.WriteString(p.value + "\n")
	}
	source.WriteString(r.source)
	if source.Len() > maxHostSource {
		return failed("the fence and what it includes are %d bytes, a shell takes %d", source.Len(), maxHostSource)
	}
	if strings.ContainsRune(source.String(), 0) {
		return failed("the fence holds a NUL character, which no shell takes")
	}
	argv := []string{hostShell, "-c", source.String(), chunk}
	for _, a := range r.args {
		argv = append(argv, a.name+"="+a.value)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return failed("%v", err)
	}
	defer null.Close()
	home := os.Getenv("HOME")
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		home = "/"
	}
	out := os.NewFile(fdOutput, "output")
	p, err := os.StartProcess(hostShell, argv, &os.ProcAttr{Dir: home, Env: hostEnvironment(os.Environ()), Files: []*os.File{null, out, out}})
	if err != nil {
		return failed("the shell cannot be started: %v", err)
	}
	for {
		// What loses its parent comes here, and is waited for, too.
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && pid != p.Pid:
		case err != nil:
			return failed("the shell is lost: %v", err)
		case status.Signaled():
			return failed("the shell was ended by signal %d", status.Signal())
		case status.ExitStatus() != 0:
			return failed("the shell ended with %d", status.ExitStatus())
		default:
			return outcome{}
		}
	}
}

// endTreeWithin is how long what a process started is looked for and ended.
const endTreeWithin = 2 * time.Second

// endTree ends all that a process started, which what it started could not leave:
// what loses its parent becomes this process's own. It itself is left.
func endTree(root int) {
	for until := time.Now().Add(endTreeWithin); time.Now().Before(until); {
		below := descendants(root)
		if len(below) == 0 {
			return
		}
		// Stopped first, so that none starts another while the others end.
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range below {
				_ = unix.Kill(pid, signal)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// descendants are the processes below one that are not dead yet.
func descendants(root int) []int {
	var below []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", queue[0]))
		for _, l := range lists {
			b, _ := os.ReadFile(l)
			for _, f := range strings.Fields(string(b)) {
				pid, err := strconv.Atoi(f)
				if err != nil || pid <= 1 || len(below) > math.MaxUint16 {
					continue
				}
				queue = append(queue, pid)
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") {
					below = append(below, pid)
				}
			}
		}
	}
	return below
}
