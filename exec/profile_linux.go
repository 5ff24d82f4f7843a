package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// profile is what the jail of one run leaves open: the grants of its job, as
// open files. The strict jail has none.
type profile struct {
	dirs     []openedDir
	programs []openedProgram
	null     *os.File // holds the place of what the stage opens
	refs     *os.File // does so, where an engine is a file
	net      *os.File // the worker's end of the proxy
	proxy    *proxy
	host     bool // there is no jail
}

// openedProgram is a program that is about to be copied and compared.
type openedProgram struct {
	pinnedProgram
	file *os.File
}

// openedDir is a directory that was found to be the one that was granted.
type openedDir struct {
	pinnedDir
	file *os.File
}

// openProfile opens what was granted, and makes sure of each that it is the same
// as when it was.
func openProfile(n Network, g *grants) (*profile, error) {
	p := &profile{}
	fail := func(err error) (*profile, error) {
		p.close()
		return nil, err
	}
	for _, d := range g.dirs {
		f, id, err := openDir(d.name, d.real)
		if err != nil {
			return fail(err)
		}
		p.dirs = append(p.dirs, openedDir{d, f})
		if id != d.id {
			return fail(changed(d.name))
		}
	}
	for _, w := range g.programs {
		f, err := openProgram(w.name, w.real)
		if err != nil {
			return fail(err)
		}
		p.programs = append(p.programs, openedProgram{w, f})
	}
	if len(p.programs) > 0 {
		var err error
		if p.null, err = os.Open(os.DevNull); err != nil {
			return fail(err)
		}
	}
	if len(g.hosts) > 0 {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fail(err)
		}
		p.net = os.NewFile(uintptr(ends[1]), "worker")
		if err := unix.SetNonblock(ends[0], true); err != nil {
			unix.Close(ends[0])
			return fail(err)
		}
		p.proxy = startProxy(n, g.hosts, os.NewFile(uintptr(ends[0]), "proxy"))
	}
	return p, nil
}

func changed(name string) error {
	return notebook.Errorf(notebook.CodeStale, "%s: %v", name, errChanged).With(lookAgain)
}

const lookAgain = "look at it, and approve the fence again with noted fence approve"

func (p *profile) close() {
	for _, d := range p.dirs {
		d.file.Close()
	}
	for _, w := range p.programs {
		w.file.Close()
	}
	for _, f := range []*os.File{p.null, p.refs, p.net} {
		if f != nil {
			f.Close()
		}
	}
	if p.proxy != nil {
		p.proxy.close()
	}
}

// layersOfGrants are those without which nothing but values is granted.
var layersOfGrants = []string{layerRoot, layerLandlock, layerNamespaces}

// openGranted starts a worker for one run with these grants, on a thread of its
// own whose landlock has room for them. done ends that thread, when the worker is
// dead.
func (r *Runner) openGranted(ctx context.Context, k kind, g *grants) (w *worker, done func(), err error) {
	for _, l := range layersOfGrants {
		if !slices.Contains(r.layers, l) {
			return nil, nil, notebook.Errorf(notebook.CodeUnavailable, "%s cannot be granted here: the jail's layer %s is missing", g.kinds(), l).
				With("this machine must allow user namespaces and landlock; a container may forbid them")
		}
	}
	p, err := openProfile(r.network, g)
	if err != nil {
		return nil, nil, err
	}
	engine, err := r.engineFiles(ctx, k)
	if err != nil {
		p.close()
		return nil, nil, err
	}
	if engine != nil {
		if p.refs, err = os.Open(os.DevNull); err != nil {
			p.close()
			return nil, nil, err
		}
	}
	s, err := newSpawner(true, true, p)
	if err != nil {
		p.close()
		return nil, nil, refusal(err)
	}
	done = func() {
		s.close()
		p.close()
		if p.proxy != nil {
			g.sent, g.received = p.proxy.sent, p.proxy.received
		}
	}
	if w, err = s.worker(k, engine); err == nil && !slices.Contains(w.layers, layerRoot) {
		w.discard()
		err = &missingLayer{layer: layerRoot, reason: "the worker could not lock itself in"}
	}
	if err != nil {
		done()
		if e, ok := errors.AsType[*notebook.Error](err); ok {
			return nil, nil, e
		}
		return nil, nil, refusal(err)
	}
	return w, done, nil
}

// files are the descriptors of the worker from [fdGrants] on, and args what they
// are, in this order.
func (p *profile) files() []*os.File {
	var files []*os.File
	for _, d := range p.dirs {
		files = append(files, d.file)
	}
	for _, w := range p.programs {
		files = append(files, w.file)
	}
	if p.null != nil {
		files = append(files, p.null)
	}
	if p.refs != nil {
		files = append(files, p.refs)
	}
	if p.net != nil {
		files = append(files, p.net)
	}
	return files
}

func (p *profile) args() []string {
	var args []string
	for _, d := range p.dirs {
		args = append(args, granted{map[bool]string{false: argRead, true: argWrite}[d.write], d.real, d.name, ""}.arg())
	}
	for _, w := range p.programs {
		args = append(args, granted{argProgram, w.real, w.name, w.digest.String()}.arg())
	}
	if p.null != nil {
		args = append(args, granted{kind: argProcesses}.arg())
	}
	if p.refs != nil {
		args = append(args, granted{kind: argRefs}.arg())
	}
	if p.net != nil {
		args = append(args, granted{kind: argNet}.arg())
	}
	return args
}

// granted is what an argument of a worker says of the descriptor in its place.
type granted struct{ kind, real, name, digest string }

// The kinds of what is granted.
const (
	argRead  = "read"
	argWrite = "write"

	argProgram   = "program"   // its descriptor is the file, until it is copied
	argProcesses = "processes" // a procfs of the run's namespace for the launcher, or /dev/null
	argRefs      = "refs"      // the worker's own clear_refs, see [proc.forgetPeak], or /dev/null
	argNet       = "net"       // the worker's end of the proxy
)

func (g granted) arg() string {
	return fmt.Sprintf("%s %s %d %s%s", g.kind, g.digest, len(g.real), g.real, g.name)
}

// readGranted reads what [granted.arg] writes.
func readGranted(args []string) ([]granted, error) {
	var all []granted
	for _, a := range args {
		kind, rest, _ := strings.Cut(a, " ")
		digest, rest, _ := strings.Cut(rest, " ")
		length, rest, found := strings.Cut(rest, " ")
		n, err := strconv.Atoi(length)
		if err != nil || !found || n < 0 || n > len(rest) {
			return nil, fmt.Errorf("argument %q", a)
		}
		all = append(all, granted{kind, rest[:n], rest[n:], digest})
	}
	return all, nil
}

// rules are what landlock lets the worker, and what it starts, reach of it.
func (g granted) rules(i int) []landRule {
	// By way of /proc it is what was opened, whatever the path has become.
	at := fmt.Sprintf("/proc/self/fd/%d", fdGrants+i)
	switch g.kind {
	case argRead:
		return []landRule{{at, landToRead}}
	case argWrite:
		return []landRule{{at, landToWrite}}
	case argProgram:
		return []landRule{{g.real, landExecute | landReadFile}}
	case argProcesses:
		return []landRule{{at, landReadFile | landReadDir}}
	}
	return nil
}

func (p *profile) empty() bool { return p == nil || len(p.dirs)+len(p.programs) == 0 && p.net == nil }

// inherited is a profile in the worker.
type inherited struct {
	dirs     []*dirGrant
	pipes    int       // descriptors that the language opens, as pipes
	programs *launcher // nil where none is granted
	net      *netGrant // nil where no host is granted
	refs     *os.File  // nil where the engine is not a file
}

// inherit takes over what the arguments say that the parent left open.
func inherit(limits notebook.Limits, args []string) (*inherited, error) {
	in := &inherited{}
	q := &quota{files: maxFiles, bytes: maxWritten}
	all, err := readGranted(args)
	if err != nil {
		return nil, err
	}
	for i, g := range all {
		fd := fdGrants + i
		switch g.kind {
		case argRead, argWrite:
			// By way of /proc the name is that of the descriptor, not of a path.
			root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
			if err != nil {
				return nil, err
			}
			in.dirs = append(in.dirs, &dirGrant{path: g.name, root: root, write: g.kind == argWrite, quota: q})
		case argProgram: // it has been copied
		case argRefs:
			in.refs = os.NewFile(uintptr(fd), "refs")
			continue // until the jail is closed
		case argNet:
			in.net = &netGrant{os.NewFile(uintptr(fd), "proxy")}
			continue // it stays
		case argProcesses:
			if in.programs, err = startLauncher(limits, all, fd); err != nil {
				return nil, err
			}
			continue // closed
		default:
			return nil, errors.New("an unknown grant")
		}
		_ = unix.Close(fd)
	}
	if in.writes() {
		signal.Ignore(unix.SIGXFSZ) // a file that is too large is an error, not the end
	}
	return in, nil
}

// calls are the system calls that the grants take.
func (in *inherited) calls() []uint32 {
	var calls []uint32
	if len(in.dirs) > 0 {
		calls = append(calls, callsToRead...)
	}
	if in.writes() {
		calls = append(calls, callsToWrite...)
	}
	if in.pipes > 0 {
		calls = append(calls, callsToPipe...)
	}
	if in.programs != nil {
		calls = append(calls, callsToLaunch...)
	}
	return calls
}

// fileSize is how large a file may become.
func (in *inherited) fileSize() uint64 {
	if in.writes() {
		return maxFile
	}
	return 0
}

// openFiles bounds the descriptors: in the strict jail only pipes can be opened.
func (in *inherited) openFiles() uint64 {
	if len(in.dirs) > 0 || in.programs != nil {
		return uint64(maxOpenFiles + in.pipes)
	}
	return uint64(fdFrames + 1 + in.pipes)
}

func (in *inherited) writes() bool {
	return slices.ContainsFunc(in.dirs, func(d *dirGrant) bool { return d.write })
}

// maxOpenFiles is how many descriptors a worker may have that may open files.
const maxOpenFiles = 128

// callsToRead and callsToWrite are those of [os.Root]. There is none that makes a
// link, and none that changes whose a file is or who may do what with it.
var (
	callsToRead = []uint32{
		unix.SYS_OPENAT, unix.SYS_FSTAT, unix.SYS_GETDENTS64, unix.SYS_LSEEK, unix.SYS_READLINKAT,
		unix.SYS_PREAD64, unix.SYS_EPOLL_CTL, callStat,
	}
	// callsToLaunch are those of pipes, and of the socket to the launcher.
	callsToLaunch = []uint32{unix.SYS_PIPE2, unix.SYS_FCNTL, unix.SYS_EPOLL_CTL, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_FSTAT}
	callsToWrite  = []uint32{
		unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
	}
	// What they make and change are descriptors of the worker's own.
	callsToPipe = []uint32{unix.SYS_PIPE2, unix.SYS_FCNTL, unix.SYS_EPOLL_CTL}
)
