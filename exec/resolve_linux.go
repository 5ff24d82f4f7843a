package exec

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// MaxProgram is how large a program may be that a fence is given, in bytes: it
// is read whole before each run.
const MaxProgram = 256 << 20

// maxMounts is how many lines of the table of mounts are read.
const maxMounts = 1 << 14

// Resolve says what a directory, a program or a host is on this device, in bytes
// for an approval to pin: the path without links with device and inode, the path
// without links with the SHA-256 of the file, the host and port. A run opens
// just that, or nothing. own are noted's own directories: nothing that is one of
// them, holds one or lies in one is given to a fence, by whatever name.
func Resolve(c notebook.Capability, own []string) ([]byte, error) {
	switch c.Kind() {
	case notebook.CapDir:
		d := pinnedDir{name: c.Path(), write: c.Writable()}
		var err error
		if d.real, d.id, err = resolveDir(d.name, own); err != nil {
			return nil, err
		}
		return d.pin(), nil
	case notebook.CapProgram:
		p := pinnedProgram{name: c.Path()}
		var err error
		if p.real, err = realPath(p.name); err != nil {
			return nil, err
		}
		if err := apart(p.name, filepath.Dir(p.real), own, false); err != nil {
			return nil, err
		}
		f, err := openProgram(p.name, p.real)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if p.digest, err = digestProgram(f, io.Discard); err != nil {
			return nil, notGiven(p.name, "it cannot be read: %v", err)
		}
		return p.pin(), nil
	case notebook.CapNet:
		return []byte(c.Address()), nil
	}
	return nil, notebook.Errorf(notebook.CodeInvalid, "%s is nothing that lies on this device", c)
}

func notGiven(name, format string, args ...any) error {
	return notebook.Errorf(notebook.CodeRefused, "%s is not given to a fence: %s", name, fmt.Sprintf(format, args...))
}

func realPath(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", notebook.Errorf(notebook.CodeNotFound, "%s is not there", name)
	}
	if err != nil {
		return "", notGiven(name, "%v", err)
	}
	if !absolute(real) {
		return "", notGiven(name, "it is %s", real)
	}
	return real, nil
}

func resolveDir(name string, own []string) (string, identity, error) {
	real, err := realPath(name)
	if err != nil {
		return "", identity{}, err
	}
	f, id, err := openDir(name, real)
	if err != nil {
		return "", identity{}, err
	}
	f.Close()
	return real, id, apart(name, real, own, true)
}

// openDir opens a directory by a path that has no links, without following one
// that was put there meanwhile.
func openDir(name, real string) (*os.File, identity, error) {
	fd, err := unix.Open(real, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, identity{}, notebook.Errorf(notebook.CodeNotFound, "%s is not there", name)
	case errors.Is(err, unix.ENOTDIR):
		return nil, identity{}, notGiven(name, "it is not a directory")
	case err != nil:
		return nil, identity{}, notGiven(name, "%v", err)
	}
	f := os.NewFile(uintptr(fd), real)
	fail := func(format string, args ...any) (*os.File, identity, error) {
		f.Close()
		return nil, identity{}, notGiven(name, format, args...)
	}
	// Also the directories above it are those of the path, and no links to others.
	if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || to != real {
		return fail("its path changed while it was opened")
	}
	var kind unix.Statfs_t
	if err := unix.Fstatfs(fd, &kind); err != nil {
		return fail("%v", err)
	}
	if pseudo[uint32(kind.Type)] || underKernel(real) {
		return fail("it belongs to the kernel, not to a disk")
	}
	id, err := identityOf(fd)
	if err != nil {
		return fail("%v", err)
	}
	return f, id, nil
}

func identityOf(fd int) (identity, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return identity{}, err
	}
	return identity{s.Dev, s.Ino}, nil
}

func identityAt(p string) (identity, error) {
	var s unix.Stat_t
	if err := unix.Stat(p, &s); err != nil {
		return identity{}, err
	}
	return identity{s.Dev, s.Ino}, nil
}

// pseudo are the file systems through which the kernel shows itself and is
// ruled, by the magic numbers of statfs, and the names that the table of mounts
// has for them.
var (
	pseudo = map[uint32]bool{
		unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEVPTS_SUPER_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true,
		unix.CGROUP2_SUPER_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true, unix.SECURITYFS_MAGIC: true,
		unix.BPF_FS_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.SELINUX_MAGIC: true,
		unix.SMACK_MAGIC: true, unix.NSFS_MAGIC: true, unix.BINFMTFS_MAGIC: true, 0x62656570 /* configfs */ : true,
		0x65735543 /* fusectl */ : true, 0x19800202 /* mqueue */ : true,
	}
	pseudoNames = map[string]bool{
		"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "cgroup": true, "cgroup2": true, "debugfs": true,
		"tracefs": true, "securityfs": true, "bpf": true, "efivarfs": true, "pstore": true, "selinuxfs": true,
		"smackfs": true, "nsfs": true, "binfmt_misc": true, "configfs": true, "fusectl": true, "mqueue": true,
	}
)

func underKernel(p string) bool {
	for _, k := range []string{"/proc", "/sys", "/dev"} {
		if within(k, p) {
			return true
		}
	}
	return false
}

// apart refuses a directory that has to do with one of noted's own, by path or,
// since a path may be mounted twice, by device and inode. Where the directory
// itself is given, what is mounted in it is given with it.
func apart(name, real string, own []string, given bool) error {
	places := []string{real}
	if given {
		mounts, err := mountsIn(real)
		if err != nil {
			return notGiven(name, "%v", err)
		}
		for _, m := range mounts {
			if pseudoNames[m.kind] {
				return notGiven(name, "%s belongs to the kernel", m.at)
			}
			if m.at != real && within(real, m.at) {
				places = append(places, m.at)
			}
		}
	}
	for _, o := range own {
		there, o, err := existing(o)
		if err != nil {
			return notGiven(name, "noted's own directories cannot be compared with it: %v", err)
		}
		for _, p := range places {
			in := false
			if there {
				in, err = lies(p, o)
			}
			if err == nil && !in && given {
				in, err = lies(o, p)
			}
			if err != nil {
				return notGiven(name, "it cannot be compared with noted's own directories: %v", err)
			}
			if in {
				return notGiven(name, "it is, holds or lies in a directory of noted's own, %s", o)
			}
		}
	}
	return nil
}

// existing is a directory without links, or, where it is not there yet, what is
// there of the directories above it.
func existing(dir string) (there bool, real string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, "", err
	}
	for p := dir; ; p = filepath.Dir(p) {
		real, err = filepath.EvalSymlinks(p)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || p == "/" {
			return p == dir, real, err
		}
	}
}

// lies reports whether the directory at inner is the one at outer or lies in it.
func lies(inner, outer string) (bool, error) {
	if within(outer, inner) {
		return true, nil
	}
	want, err := identityAt(outer)
	if err != nil {
		return false, err
	}
	for p := inner; ; p = filepath.Dir(p) {
		id, err := identityAt(p)
		if err != nil {
			return false, err
		}
		if id == want {
			return true, nil
		}
		if p == "/" {
			return false, nil
		}
	}
}

type mount struct{ at, kind string }

// mountsIn are the mounts below a directory and, first, the one that it lies on,
// from the table of the kernel.
func mountsIn(dir string) ([]mount, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if len(lines) > maxMounts {
		return nil, fmt.Errorf("there are more than %d mounts", maxMounts)
	}
	found := []mount{{at: "/"}}
	for _, l := range lines {
		before, after, ok := strings.Cut(string(l), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) == 0 {
			return nil, errors.New("the table of mounts cannot be read")
		}
		at := octal.Replace(fields[4])
		switch m := (mount{at, kind[0]}); {
		case within(at, dir) && len(at) >= len(found[0].at), at == "/" && found[0].at == "/":
			found[0] = m // of two at one place the later one is on top
		case within(dir, at):
			found = append(found, m)
		}
	}
	return found, nil
}

// octal undoes what the kernel escapes in its table of mounts.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// openProgram opens a program by a path that has no links, and makes sure that
// it is one.
func openProgram(name, real string) (*os.File, error) {
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, notebook.Errorf(notebook.CodeNotFound, "%s is not there", name)
	}
	if err != nil {
		return nil, notGiven(name, "%v", err)
	}
	f := os.NewFile(uintptr(fd), real)
	info, err := f.Stat()
	switch {
	case err != nil:
		err = notGiven(name, "%v", err)
	case !info.Mode().IsRegular():
		err = notGiven(name, "it is not a file")
	case info.Mode()&0o111 == 0:
		err = notGiven(name, "it is not a program: nobody may execute it")
	case info.Size() > MaxProgram:
		err = notGiven(name, "it has %d MiB, and a program has %d at most", info.Size()>>20, MaxProgram>>20)
	case underKernel(real):
		err = notGiven(name, "it belongs to the kernel, not to a disk")
	}
	if to, no := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && (no != nil || to != real) {
		err = notGiven(name, "its path changed while it was opened")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// digestProgram copies a program to w, whole and no more than [MaxProgram]
// bytes, and returns the digest of just these bytes.
func digestProgram(f *os.File, w io.Writer) (notebook.Hash, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, w), io.LimitReader(f, MaxProgram+1))
	if err == nil && n > MaxProgram {
		err = fmt.Errorf("it has more than %d MiB", MaxProgram>>20)
	}
	return notebook.Hash(h.Sum(nil)), err
}
