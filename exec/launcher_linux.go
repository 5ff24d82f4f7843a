package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// A run that was granted programs has two processes of noted's in its namespace
// of processes: the worker, which is sealed and has an interpreter in it, and the
// launcher, which starts the programs that the worker names. What crosses the
// socket between them are messages of one packet each: to the launcher a number,
// the place of the program in the grant and its arguments, with the three
// standard descriptors; back the number and how the program ended.
const (
	launcherName = "noted-fence-launcher"
	fdLauncher   = 3 // the launcher's end of the socket
	fdProcesses  = 4 // a procfs of the run's own namespace, or /dev/null

	maxMessage   = 96 << 10 // bytes of a message: of all arguments, too
	maxProcesses = 64       // of a run's programs, at once
	lookEvery    = 10 * time.Millisecond
	heldWithin   = 500 * time.Millisecond // how long the output of a program that has ended is waited for
)

// launcher starts the programs of a run, from the worker.
type launcher struct {
	granted []granted // the programs, in the order of the launcher's own
	socket  int

	mu      sync.Mutex
	listens sync.Once
	next    uint32
	waiting map[uint32]chan ended
	over    error
}

// ended is how a program ended.
type ended struct {
	status int // as a shell knows it: the exit code, or 128 and the number of the signal
	err    error
}

// errNoProgram is for what was not granted; it does not tell whether it is there.
var errNoProgram = errors.New("it is not granted")

// startLauncher starts the launcher, before the worker is sealed.
func startLauncher(limits notebook.Limits, all []granted, processes int) (*launcher, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs, proc := os.NewFile(uintptr(ends[1]), "launcher"), os.NewFile(uintptr(processes), "processes")
	defer theirs.Close()
	defer proc.Close()
	null := os.Stderr // a worker's is /dev/null
	args := append([]string{launcherName}, kind{"", limits}.args()...)
	for _, g := range all {
		args = append(args, g.arg())
	}
	p, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{
		Dir: "/", Env: workerEnv, Files: []*os.File{null, null, null, fdLauncher: theirs, fdProcesses: proc},
	})
	if err != nil {
		unix.Close(ends[0])
		return nil, err
	}
	_ = p.Release() // it ends with the namespace
	l := &launcher{socket: ends[0], waiting: map[uint32]chan ended{}}
	for _, g := range all {
		if g.kind == argProgram {
			l.granted = append(l.granted, g)
		}
	}
	return l, nil
}

// names are what the fence has for the programs that it was granted: paths.
func (l *launcher) names() (names []string) {
	for _, g := range l.granted {
		names = append(names, g.name)
	}
	return names
}

// find is the place of a program in the grant, by the name that the fence has
// for it or by its real path.
func (l *launcher) find(path string) (int, bool) {
	i := slices.IndexFunc(l.granted, func(g granted) bool { return g.name == path || g.real == path })
	return i, i >= 0
}

// run runs a program that was granted and waits until it has ended. A nil stdin
// is at its end; of a file the program has the descriptor itself, so that what it
// does not read is there for the next one. What the program left running may hold
// its output open: that is waited for a moment only, and then said on stderr.
func (l *launcher) run(ctx context.Context, path string, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	i, found := l.find(path)
	if !found {
		return 0, errNoProgram
	}
	fds := [3]int{2, -1, -1} // 2 is /dev/null
	var pipes [3]*os.File    // our ends
	closeAll := func() {
		for i, fd := range fds {
			if fd > 2 {
				unix.Close(fd)
			}
			fds[i] = -1
		}
	}
	defer closeAll()
	file, isFile := stdin.(*os.File)
	if isFile {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0) // Fd also makes it wait, as a program expects
		if err != nil {
			return 0, err
		}
		fds[0] = fd
	}
	for n := range fds {
		if n == 0 && (stdin == nil || isFile) {
			continue
		}
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
		ours, theirs := ends[0], ends[1]
		if n == 0 {
			ours, theirs = theirs, ours
		}
		fds[n] = theirs
		if err := unix.SetNonblock(ours, true); err != nil {
			unix.Close(ours)
			return 0, err
		}
		pipes[n] = os.NewFile(uintptr(ours), "program")
		defer pipes[n].Close()
	}
	end, err := l.start(i, args, fds)
	if err != nil {
		return 0, err
	}
	closeAll()
	if pipes[0] != nil {
		go func() {
			_, _ = io.Copy(pipes[0], stdin)
			pipes[0].Close()
		}()
	}
	var copying sync.WaitGroup
	var held sync.Once
	for n, w := range []io.Writer{1: stdout, 2: stderr} {
		if n == 0 {
			continue
		}
		copying.Go(func() {
			_, err := io.Copy(w, pipes[n])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				held.Do(func() { _, _ = fmt.Fprintf(stderr, "%s: what it started still holds its output\n", path) })
			}
			pipes[n].Close() // who writes on gets a signal
		})
	}
	select {
	case e := <-end:
		for _, p := range pipes[1:] {
			_ = p.SetReadDeadline(time.Now().Add(heldWithin))
		}
		copying.Wait()
		return e.status, e.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// start sends one message. What it answers comes on the channel.
func (l *launcher) start(program int, args []string, fds [3]int) (<-chan ended, error) {
	end := make(chan ended, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return nil, l.over
	}
	l.next++
	b := binary.BigEndian.AppendUint32(nil, l.next)
	b = append(b, byte(program))
	b = binary.AppendUvarint(b, uint64(len(args)))
	for _, a := range args {
		b = appendText(b, a)
	}
	if len(b) > maxMessage {
		return nil, fmt.Errorf("its arguments are more than %d bytes", maxMessage)
	}
	if err := unix.Sendmsg(l.socket, b, unix.UnixRights(fds[:]...), nil, 0); err != nil {
		return nil, err
	}
	l.waiting[l.next] = end
	// Not before: while the worker is being sealed no thread may just be starting.
	l.listens.Do(func() { go l.listen() })
	return end, nil
}

// listen takes what the launcher says until there is none.
func (l *launcher) listen() {
	b := make([]byte, 1<<10)
	for {
		n, _, _, _, err := unix.Recvmsg(l.socket, b, nil, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		l.mu.Lock()
		if err != nil || n < 8 {
			l.over = errors.New("what starts programs has ended")
			for _, c := range l.waiting {
				c <- ended{err: l.over}
			}
			clear(l.waiting)
			l.mu.Unlock()
			return
		}
		id, e := binary.BigEndian.Uint32(b), ended{status: int(binary.BigEndian.Uint32(b[4:]))}
		if n > 8 {
			e.err = errors.New(string(b[8:n]))
		}
		if id == 0 {
			l.over = e.err
		} else if c, ok := l.waiting[id]; ok {
			if l.over != nil {
				e.err = l.over // it was ended with all the others
			}
			c <- e
			delete(l.waiting, id)
		}
		l.mu.Unlock()
	}
}

// launching is the launcher itself.
type launching struct {
	limits   notebook.Limits
	programs []granted
	args     []string // of everything granted

	mu      sync.Mutex
	running map[int]uint32 // by process
	started chan struct{}
	over    string
}

// launch is the launcher: it starts what the worker asks for until that is gone.
func launch(args []string) int {
	runtime.GOMAXPROCS(1)
	debug.SetTraceback("none")
	k, err := readKind(args)
	if err != nil {
		return exitProtocol
	}
	all, err := readGranted(args[kindArgs:])
	if err != nil {
		return exitProtocol
	}
	l := &launching{limits: k.limits, args: args[kindArgs:], running: map[int]uint32{}, started: make(chan struct{}, 1)}
	for _, g := range all {
		if g.kind == argProgram {
			l.programs = append(l.programs, g)
		}
	}
	// What a program leaves behind is this one's then, and reaped.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return exitProtocol
	}
	unix.CloseOnExec(fdLauncher)
	unix.CloseOnExec(fdProcesses)
	go l.reap()
	go l.watch()
	b, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(3*4))
	for {
		n, on, flags, _, err := unix.Recvmsg(fdLauncher, b, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || !l.take(b[:n], oob[:on]) {
			return exitProtocol
		}
	}
}

// take starts the program of one message. It reports whether that was well formed.
func (l *launching) take(b, oob []byte) bool {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 || len(b) < 5 {
		return false
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 3 {
		return false
	}
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "program")
		defer f.Close()
		files = append(files, f)
	}
	id, program, s := binary.BigEndian.Uint32(b), int(b[4]), scan{b: b[5:]}
	var args []string
	for range s.number(maxMessage) {
		if args = append(args, s.text()); s.bad {
			break
		}
	}
	if s.end() != nil || id == 0 || program >= len(l.programs) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != "" {
		l.say(id, 126, l.over)
		return true
	}
	g := l.programs[program]
	wrap := slices.Concat([]string{programName}, kind{"", l.limits}.args(), []string{strconv.Itoa(len(l.args))}, l.args, []string{g.real, g.name}, args)
	p, err := os.StartProcess("/proc/self/exe", wrap, &os.ProcAttr{Dir: "/", Env: workerEnv, Files: files})
	if err != nil {
		l.say(id, 126, "it cannot be started: "+err.Error())
		return true
	}
	l.running[p.Pid] = id
	_ = p.Release()
	select {
	case l.started <- struct{}{}:
	default:
	}
	return true
}

func (l *launching) say(id uint32, status int, text string) {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id), uint32(status))
	_ = unix.Sendmsg(fdLauncher, append(b, text...), nil, nil, 0)
}

// reap waits for every process that ends, also for those that programs left behind.
func (l *launching) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			<-l.started // no child at all
			continue
		}
		l.mu.Lock()
		if id, ok := l.running[pid]; ok {
			delete(l.running, pid)
			code := status.ExitStatus()
			if status.Signaled() {
				code = 128 + int(status.Signal())
			}
			l.say(id, code, "")
		}
		l.mu.Unlock()
	}
}

// watch looks at what the programs have become, and ends all of them when they
// are too many or have too much memory together. The kernel bounds each of them
// by itself, and how many there are where it can.
func (l *launching) watch() {
	self := os.Getpid()
	for {
		time.Sleep(lookEvery)
		pids, resident, err := processes(self)
		if err != nil {
			return // there is no procfs to look at
		}
		over := ""
		switch {
		case pids > maxProcesses:
			over = fmt.Sprintf("the programs of the fence were more than %d processes, and all of them were ended", maxProcesses)
		case resident > l.limits.Memory:
			over = fmt.Sprintf("the programs of the fence had more than %d MiB of memory together, and all of them were ended", l.limits.Memory>>20)
		default:
			continue
		}
		l.mu.Lock()
		l.over = over
		l.say(0, 126, over)
		l.mu.Unlock()
		// All at once: a process that forks in this moment has no child.
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

// processes counts the processes of the namespace but the worker and the
// launcher, and sums up what they have in memory.
func processes(self int) (n int, resident int64, err error) {
	fd, err := unix.Openat(fdProcesses, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	d := os.NewFile(uintptr(fd), "processes")
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 || pid == self {
			continue
		}
		n++
		if n > maxProcesses {
			return n, 0, nil
		}
		resident += residentOf(fdProcesses, name)
	}
	return n, resident, nil
}

func residentOf(proc int, pid string) int64 {
	fd, err := unix.Openat(proc, pid+"/statm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0 // it has just ended
	}
	defer unix.Close(fd)
	var b [128]byte
	n, _ := unix.Read(fd, b[:])
	var size, pages int64
	_, _ = fmt.Sscan(string(b[:max(n, 0)]), &size, &pages)
	return pages * int64(os.Getpagesize())
}
