package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// stageName is argv[0] of what becomes the worker of a granted run: it makes the
// jail for which the strict one has no need, and turns into the worker by an
// execve, which leaves behind what it could do. Its arguments are the worker's.
const stageName = "noted-fence-stage"

// roles are what else this program is started as, by argv[0].
var roles = map[string]func([]string) int{stageName: stage, launcherName: launch, programName: beProgram, hostName: beHost}

// Bounds of the file systems in memory that a granted run sees.
const (
	rootSize    = MaxProgram + 8<<20 // the root, which holds a copy of each program and is never written to
	tempSize    = 16 << 20           // /tmp of programs
	tempFiles   = 1 << 10            // files in it
	programPids = 1 << 10            // process and thread numbers of the run, from Linux 6.14 on
)

// stage makes a root that holds nothing but what the run was granted, on a mount
// namespace that holds nothing else either, puts this thread under landlock and
// becomes the worker. It returns only where that fails.
func stage(args []string) int {
	runtime.LockOSThread() // landlock is of the thread that calls execve
	kind, err := readKind(args)
	if err != nil {
		return exitProtocol
	}
	closeInherited(len(args) - kindArgs)
	r := ready{missing: layerNamespaces}
	if err = buildRoot(args[kindArgs:]); err == nil {
		r.missing = layerLandlock
		if err = confineStage(args[kindArgs:]); err == nil {
			r.missing = layerSeccomp // nothing of it is closed yet
			err = unix.Exec("/proc/self/exe", slices.Concat([]string{workerName}, kind.args(), args[kindArgs:]), workerEnv)
		}
	}
	if errors.Is(err, errChanged) {
		r.missing = "" // nothing of the machine's
	}
	r.reason = err.Error()
	if _, err := os.NewFile(fdFrames, "frames").Write(r.encode()); err != nil {
		return exitProtocol
	}
	return exitNoJail
}

// libraries are where programs that are linked at their start find what they
// need: this one, if it was built so, and those that are granted.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"}

// What noted itself has in the new root lies where no directory can be granted.
const (
	placeEmpty    = "/proc/empty"    // a directory for the worker to lock itself in
	placePrograms = "/proc/programs" // the copies
)

// place is something of the old root that the new one has too.
type place struct {
	path  string
	file  int // opened in the old root
	attr  uint64
	isDir bool
}

const (
	attrLibrary = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrDir     = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	attrDevice  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// buildRoot makes the new root and goes there. The old one cannot be reached any
// more, by no path and through no descriptor but those of the parent's pipes.
func buildRoot(args []string) error {
	granted, err := readGranted(args)
	if err != nil {
		return err
	}
	var places []place
	open := func(path string, attr uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil {
			return err
		}
		places = append(places, place{path, fd, attr, s.Mode&unix.S_IFMT == unix.S_IFDIR})
		return nil
	}
	links := map[string]string{}
	for _, l := range libraries {
		if to, err := os.Readlink(l); err == nil {
			links[l] = to
		} else if err := open(l, attrLibrary); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	for _, l := range []string{"/bin", "/sbin"} {
		if to, err := os.Readlink(l); err == nil {
			links[l] = to // a program in /usr/bin is in /bin, too
		}
	}
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return err
	}
	if err := open("/proc/"+self, attrDir|unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	places[len(places)-1].path = "/proc/self"
	if err := open(os.DevNull, attrDevice&^unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	// The directories are opened again in this mount namespace; they must be what
	// the parent has opened and compared.
	programs := false
	for i, g := range granted {
		if g.kind != argRead && g.kind != argWrite {
			continue
		}
		attr := uint64(attrDir)
		if g.kind == argRead {
			attr |= unix.MOUNT_ATTR_RDONLY
		}
		if err := open(g.real, attr); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		p := &places[len(places)-1]
		want, err1 := identityOf(fdGrants + i)
		is, err2 := identityOf(p.file)
		if err := errors.Join(err1, err2); err != nil || want != is {
			return errors.Join(fmt.Errorf("%s: %w", g.name, errChanged), err)
		}
	}
	for i, g := range granted {
		switch g.kind {
		case argProgram:
			programs = true
		case argProcesses:
			if err := showProcesses(fdGrants + i); err != nil && !errors.Is(err, unix.EPERM) {
				return err
			}
			boundProcesses()
		case argRefs:
			// The new root's /proc cannot be written to. Where there is none the peak stays.
			_ = reopen("/proc/self/clear_refs", unix.O_WRONLY, fdGrants+i)
		}
	}
	if programs {
		for _, d := range programDevices {
			if err := open(d, attrDevice); err != nil {
				return fmt.Errorf("%s: %w", d, err)
			}
		}
		// What landlock allows in /tmp, it would allow in a directory of it.
		if !slices.ContainsFunc(places, func(p place) bool { return within("/tmp", p.path) }) {
			places = append(places, place{path: "/tmp", file: -1, isDir: true})
		}
	}

	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("a private root: %w", err)
	}
	root, err := memory(rootSize, 1<<10, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return err
	}
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("the new root: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	// What is made from here on is made in it, whatever links the directories hold:
	// those that lead out of it still lead to the old root.
	under, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer under.Close()
	defer unix.Umask(unix.Umask(0)) // what the run makes is made as the person's other files are
	// What lies in another one comes after it, so that it is seen.
	slices.SortStableFunc(places, func(a, b place) int { return len(a.path) - len(b.path) })
	for l, to := range links {
		if filepath.IsAbs(to) {
			if to, err = filepath.Rel(filepath.Dir(l), to); err != nil {
				return err
			}
		}
		if err := under.MkdirAll(filepath.Dir(l[1:]), 0o755); err != nil {
			return err
		}
		if err := under.Symlink(to, l[1:]); err != nil {
			return err
		}
	}
	if err := under.MkdirAll(placeEmpty[1:], 0o755); err != nil {
		return err
	}
	for _, p := range places {
		if err := p.show(under); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	for i, g := range granted {
		if g.kind != argProgram {
			continue
		}
		if err := showProgram(under, g, i); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	if err := unix.MountSetattr(root, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for i, g := range granted {
		if g.kind != argRead && g.kind != argWrite {
			continue
		}
		if err := reopen(g.real, unix.O_RDONLY|unix.O_DIRECTORY, fdGrants+i); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return reopen(placeEmpty, unix.O_PATH|unix.O_DIRECTORY, fdRoot)
}

// reopen puts what is now at a path in the place of a descriptor.
func reopen(path string, flags, as int) error {
	fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Dup3(fd, as, 0)
}

// programDevices are the devices of programs, beside /dev/null.
var programDevices = []string{"/dev/zero", "/dev/urandom"}

var errChanged = errors.New("it is not what it was when it was granted")

// showProgram puts a copy of a program at its path, if it has the digest that was
// granted. The copy is what is executed: nothing can be changed about it. By the
// name that the fence has for it, it is there where that leads into no directory
// that was granted.
func showProgram(under *os.Root, g granted, i int) error {
	read, err := unix.FcntlInt(uintptr(fdGrants+i), unix.F_DUPFD_CLOEXEC, fdGrants)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(read), g.real)
	defer from.Close()
	at := fmt.Sprintf("%s/%d", placePrograms[1:], i)
	if err := under.MkdirAll(placePrograms[1:], 0o700); err != nil {
		return err
	}
	to, err := under.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o555)
	if err != nil {
		return err
	}
	digest, err := digestProgram(from, to)
	if e := to.Close(); err == nil {
		err = e
	}
	if err == nil && digest.String() != g.digest {
		err = errChanged
	}
	if err != nil {
		return err
	}
	fd, err := unix.Open(at, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	p := place{path: g.real, file: fd, attr: attrLibrary}
	if err := p.show(under); err != nil || g.name == g.real {
		return err
	}
	link := strings.TrimPrefix(g.name, "/")
	// It fails where a directory was granted that has the name, or has a link on the
	// way to it.
	if err := under.MkdirAll(filepath.Dir(link), 0o755); err == nil {
		_ = under.Symlink(g.real, link)
	}
	return nil
}

// showProcesses puts a procfs of this namespace, which no path leads to, in the
// place of a descriptor.
func showProcesses(as int) error {
	c, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(c)
	if err := unix.FsconfigCreate(c); err != nil {
		return err
	}
	m, err := unix.Fsmount(c, unix.FSMOUNT_CLOEXEC, attrDir|unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(m)
	return unix.Dup3(m, as, 0)
}

// boundProcesses has the kernel bound the processes of this namespace, from the
// first version on that counts them for each. In an older one the same file is
// the whole machine's.
func boundProcesses() {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 14 {
		return
	}
	_ = os.WriteFile("/proc/sys/kernel/pid_max", fmt.Append(nil, programPids), 0)
}

// memory makes a file system in memory.
func memory(size, files int, attr int) (int, error) {
	c, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("a file system in memory: %w", err)
	}
	defer unix.Close(c)
	for k, v := range map[string]string{"size": fmt.Sprint(size), "nr_inodes": fmt.Sprint(files), "mode": "0755"} {
		if err := unix.FsconfigSetString(c, k, v); err != nil {
			return 0, fmt.Errorf("a file system in memory: %s: %w", k, err)
		}
	}
	if err := unix.FsconfigCreate(c); err != nil {
		return 0, fmt.Errorf("a file system in memory: %w", err)
	}
	m, err := unix.Fsmount(c, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return 0, fmt.Errorf("a file system in memory: %w", err)
	}
	return m, nil
}

// show makes a place visible in the new root.
func (p *place) show(under *os.Root) error {
	at := strings.TrimPrefix(p.path, "/")
	var err error
	if p.isDir {
		err = under.MkdirAll(at, 0o755)
	} else {
		err = touch(under, at)
	}
	if err != nil {
		return err
	}
	var tree int
	if p.file < 0 {
		tree, err = memory(tempSize, tempFiles, attrDir)
	} else {
		tree, err = unix.OpenTree(p.file, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if p.file >= 0 {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: p.attr}); err != nil {
			return err
		}
	}
	// A real path has no links; one that has come into it meanwhile is not followed.
	to, err := unix.Openat2(unix.AT_FDCWD, at, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(to)
	return unix.MoveMount(tree, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// touch makes an empty file, with the directories above it, unless there is one.
func touch(under *os.Root, at string) error {
	if err := under.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if _, err := under.Lstat(at); err == nil {
		return nil
	}
	return under.WriteFile(at, nil, 0o444)
}

// linkers are what the kernel starts for a program that is linked at its start. Of
// all that lies among the libraries only they are executed; programs do, too.
func linkers() []string {
	var found []string
	for _, l := range libraries {
		for _, pattern := range []string{"/ld-*.so*", "/ld.so*", "/*/ld-*.so*"} {
			names, _ := filepath.Glob(l + pattern) // an error is of the pattern
			found = append(found, names...)
		}
	}
	return found
}

// confineStage puts this thread under landlock for what the worker is going to
// be, and takes from it the right to mount.
func confineStage(args []string) error {
	granted, err := readGranted(args)
	if err != nil {
		return err
	}
	rules := []landRule{{"/proc/self/exe", landExecute | landReadFile}, {"/proc/self/", landReadFile | landReadDir}, {os.DevNull, landReadFile | landWriteFile}}
	for _, l := range libraries {
		rules = append(rules, landRule{l, landReadFile | landReadDir})
	}
	for _, l := range linkers() {
		rules = append(rules, landRule{l, landExecute | landReadFile})
	}
	for i, g := range granted {
		rules = append(rules, g.rules(i)...)
		if g.kind == argProcesses {
			rules = append(rules, programRules(granted)...)
		}
	}
	if err := restrict(rules); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, unix.CAP_SYS_ADMIN, 0, 0)
}
