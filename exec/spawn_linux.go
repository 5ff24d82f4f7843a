package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// readyWithin is how long a worker may take to close its jail.
const readyWithin = 20 * time.Second

// spawner starts workers. All of them are children of one thread: the kernel
// kills them when that thread ends, and what landlock forbids it is forbidden
// to them from birth.
type spawner struct {
	orders     chan order
	root       *os.File // an empty directory that has no name any more
	null       *os.File
	landlocked bool
	namespaces bool
	profile    *profile
}

type order struct {
	kind  kind
	files *engineFiles
	done  chan<- started
}

type started struct {
	worker *worker
	err    error
}

// newSpawner starts the thread. With landlock it fails where that cannot be had.
func newSpawner(landlock, namespaces bool, p *profile) (*spawner, error) {
	s := &spawner{orders: make(chan order), landlocked: landlock, namespaces: namespaces, profile: p}
	var err error
	if s.root, err = emptyRoot(); err != nil {
		return nil, err
	}
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		s.root.Close()
		return nil, err
	}
	up := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		// The worker of a granted run makes its own landlock, see [stage]: under one it
		// could not mount.
		if landlock && p.empty() {
			if err := restrictThread(); err != nil {
				up <- err
				return
			}
		}
		up <- nil
		for o := range s.orders {
			w, err := s.start(o.kind, o.files)
			o.done <- started{w, err}
		}
	}()
	if err := <-up; err != nil {
		s.root.Close()
		s.null.Close()
		return nil, err
	}
	return s, nil
}

// close ends the thread. Nothing may be started any more, and nothing may be running.
func (s *spawner) close() {
	close(s.orders)
	s.root.Close()
	s.null.Close()
}

// emptyRoot makes a directory and deletes it while it is open: it stays usable
// as a root, and nothing can be created in it.
func emptyRoot() (*os.File, error) {
	dir, err := os.MkdirTemp("", "noted-root-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(dir)
	return os.Open(dir)
}

// start starts a worker on the spawner's own thread; see [spawner.worker].
func (s *spawner) start(k kind, files *engineFiles) (*worker, error) {
	var ends [6]int // of the request, output and frame pipes: read, write
	for i := 0; i < len(ends); i += 2 {
		if err := unix.Pipe2(ends[i:i+2], unix.O_CLOEXEC); err != nil {
			for _, fd := range ends[:i] {
				unix.Close(fd)
			}
			return nil, err
		}
	}
	request, output, frames := os.NewFile(uintptr(ends[0]), "request"), os.NewFile(uintptr(ends[3]), "output"), os.NewFile(uintptr(ends[5]), "frames")
	defer func() {
		request.Close()
		output.Close()
		frames.Close()
	}()
	parent := [3]*os.File{}
	for i, fd := range []int{ends[1], ends[2], ends[4]} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, err
		}
		parent[i] = os.NewFile(uintptr(fd), "worker")
	}
	w := &worker{limits: k.limits, request: parent[0], output: parent[1], frames: parent[2]}
	inherit := []*os.File{fdRequest: request, fdOutput: output, 2: s.null, fdFrames: frames, fdRoot: s.root}
	if files == nil {
		files = &engineFiles{}
	}
	inherit = append(inherit, files.wasm, files.code, files.links) // from fdEngine on
	var err error
	w.process, err = s.startProcess(slices.Concat([]string{s.name()}, k.args(), s.profile.args()), &os.ProcAttr{
		Dir:   "/",
		Env:   s.environment(),
		Files: append(inherit, s.profile.files()...),
		Sys:   s.attributes(),
	})
	if err != nil {
		w.closeFiles()
		return nil, err
	}
	if s.namespaces {
		w.namespace, _ = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", w.process.Pid))
	}
	w.status, _ = os.Open(fmt.Sprintf("/proc/%d/status", w.process.Pid))
	// The rusage of a child starts at what its parent had resident at the fork.
	if peak, err := readStatus("/proc/self/status", "VmHWM"); err == nil {
		w.inherited = int64(peak[0])
	} else {
		w.inherited = math.MaxInt64
	}
	return w, nil
}

// workerStack is the most that a thread of a worker may have for its stack. The C
// library takes what the limit of the process says, and takes it when the process
// starts: with the 64 MiB that some have set the second thread that a worker starts
// finds no room under its limit of memory, see [heapSlack].
const workerStack = 8 << 20

// oneStarts is held while a process starts: a limit is of all threads of a process.
var oneStarts sync.Mutex

// startProcess starts this program. A worker has no more stack than [workerStack];
// a shell of the person's has what they have set.
func (s *spawner) startProcess(argv []string, attr *os.ProcAttr) (*os.Process, error) {
	oneStarts.Lock()
	defer oneStarts.Unlock()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &own); err != nil {
		return nil, err
	}
	if !s.host() && own.Cur > workerStack {
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: workerStack, Max: own.Max}); err != nil {
			return nil, err
		}
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_STACK, &own) }()
	}
	return os.StartProcess("/proc/self/exe", argv, attr)
}

// host reports whether it starts what has no jail.
func (s *spawner) host() bool { return s.profile != nil && s.profile.host }

// environment is what the process starts with.
func (s *spawner) environment() []string {
	if s.host() {
		return slices.Concat(hostEnvironment(os.Environ()), workerEnv)
	}
	return workerEnv
}

// name is what the process starts as.
func (s *spawner) name() string {
	switch {
	case s.host():
		return hostName
	case s.profile.empty():
		return workerName
	}
	return stageName
}

func (s *spawner) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if s.host() {
		if !s.namespaces {
			a.Pdeathsig = 0 // it has to end what it started first, see [endWithParent]
			return a
		}
		a.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
		if id := os.Getuid(); id != 0 { // who is not root needs a user namespace for it, and is in it who they are
			a.Cloneflags |= unix.CLONE_NEWUSER
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
			a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount /proc; the shell does not get it
		}
		return a
	}
	if s.namespaces {
		const nobody = 65534
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getgid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_CHROOT} // to lock itself in, within its own user namespace
		if !s.profile.empty() {
			a.AmbientCaps = append(a.AmbientCaps, unix.CAP_SYS_ADMIN) // to mount; gone before it is the worker
		}
	}
	return a
}

// startTries is how often a worker is started that dies before it is ready.
const startTries = 3

// worker starts a worker, with the files of its engine if it needs any, and
// waits until its jail is closed.
func (s *spawner) worker(k kind, files *engineFiles) (*worker, error) {
	var w *worker
	for try := 1; ; try++ {
		done := make(chan started, 1)
		s.orders <- order{k, files, done}
		st := <-done
		if st.err != nil {
			return nil, st.err
		}
		w = st.worker
		err := w.becomesReady(readyWithin)
		if err == nil {
			break
		}
		// One died so on a busy machine while a thread that was starting took the room of
		// the next one, see [workerEnv]. It has read nothing from anybody yet, so another
		// one may be tried where something else does it.
		if !errors.Is(err, io.EOF) || try == startTries {
			if files != nil && (errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded)) {
				err = &missingLayer{layer: layerEngine, reason: err.Error()}
			}
			return nil, err
		}
	}
	if s.host() {
		return w, nil
	}
	if s.namespaces {
		w.layers = append(w.layers, layerNamespaces)
	}
	if s.landlocked {
		w.layers = append(w.layers, layerLandlock)
	}
	slices.Sort(w.layers)
	return w, nil
}

// becomesReady waits until the jail of a worker is closed, at most so long. One
// that does not get there is ended.
func (w *worker) becomesReady(within time.Duration) error {
	fail := func(err error) error {
		w.discard()
		return err
	}
	_ = w.frames.SetReadDeadline(time.Now().Add(within))
	b, err := readFrame(w.frames, maxReadyFrame)
	if err != nil {
		return fail(fmt.Errorf("the worker did not get ready: %w", err))
	}
	_ = w.frames.SetReadDeadline(time.Time{})
	r, err := decodeReady(b)
	if err != nil {
		return fail(err)
	}
	if r.missing == "" && r.reason != "" {
		return fail(notebook.Errorf(notebook.CodeStale, "%s", r.reason).With(lookAgain))
	}
	if r.missing != "" {
		return fail(&missingLayer{layer: r.missing, reason: r.reason})
	}
	w.layers = r.layers
	return nil
}

// openJail finds the strongest jail that this machine lets a worker have, and
// returns it with a first worker in it.
func openJail(k kind) (*spawner, *worker, error) {
	var first error
	for _, try := range []struct{ landlock, namespaces bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		s, err := newSpawner(try.landlock, try.namespaces, &profile{})
		if err == nil {
			var w *worker
			if w, err = s.worker(k, nil); err == nil {
				return s, w, nil
			}
			s.close()
		}
		if m := (*missingLayer)(nil); first == nil || errors.As(err, &m) {
			first = err // a mandatory layer is the reason that a person can do something about
		}
		if !refused(err) {
			break
		}
	}
	return nil, nil, first
}

// refused reports whether err is this machine's no to a layer, to be answered by
// trying without it. Anything else must not weaken the jail.
func refused(err error) bool {
	for _, no := range []error{
		unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOSPC, unix.EUSERS,
		io.EOF, // the worker's dynamic linker did not find its libraries
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// alive reports whether a waiting worker is still there.
func (w *worker) alive() bool {
	alive := false
	c, err := w.frames.SyscallConn()
	if err != nil {
		return false
	}
	_ = c.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		alive = n == 0 && err == nil
	})
	return alive
}

// peak samples the peak of the resident memory of a worker that has not been
// waited for; 0 if it has already died.
func (w *worker) peak() int64 {
	if w.status == nil {
		return 0
	}
	var b [2 << 10]byte
	n, err := w.status.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return 0
	}
	_, rest, found := bytes.Cut(b[:n], []byte("\nVmHWM:"))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(line, []byte("kB")))), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// ending reads the exit status of a dead worker.
func ending(p *os.ProcessState, limits notebook.Limits) end {
	status, usage := p.Sys().(syscall.WaitStatus), p.SysUsage().(*syscall.Rusage)
	e := end{code: -1, peak: int64(usage.Maxrss) << 10}
	switch {
	case status.Exited():
		e.code = status.ExitStatus()
	case status.Signal() == syscall.SIGSYS:
		e.forbidden = true
	case status.Signal() == syscall.SIGKILL:
		used := p.UserTime() + p.SystemTime()
		e.spent = used >= time.Duration(cpuSeconds(limits.Time)-1)*time.Second
	}
	return e
}
