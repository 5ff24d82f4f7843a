package exec

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/tetratelabs/wazero"
	wasi "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// guestDirs are the directories that a run in WebAssembly was granted. The guest
// sees each of them at the path that the fence has for it, by the calls of its
// system interface; at no other path is there anything of this device.
type guestDirs struct {
	dirs   []*dirGrant
	reason error // of the last failure, where the interface has no number for it
}

// mount adds the directories to what a guest sees; c may be nil where that is nothing.
func (g *guestDirs) mount(c wazero.FSConfig) wazero.FSConfig {
	for _, d := range g.dirs {
		if c == nil {
			c = wazero.NewFSConfig()
		}
		c = c.(sysfs.FSConfig).WithSysFSMount(&guestDir{of: g, dir: d}, d.path)
	}
	return c
}

// paths are where the guest sees them.
func (g *guestDirs) paths() (paths []string) {
	for _, d := range g.dirs {
		paths = append(paths, d.path)
	}
	return paths
}

// explain adds to how a guest failed why a directory refused what it refused last,
// if the interface could not tell it.
func (g *guestDirs) explain(o outcome) outcome {
	if o.failed && !o.exhausted && g.reason != nil {
		o.text = clipError(o.text + "\nwhat a directory last refused: " + g.reason.Error())
	}
	return o
}

// errnoOf is an error as the interface has it.
func (g *guestDirs) errnoOf(err error) wasi.Errno {
	err = plainError(err)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return 0
	case errors.Is(err, errReadOnly):
		g.reason = nil
		return wasi.EROFS
	}
	errno := wasi.UnwrapOSError(err)
	if errno != wasi.EIO {
		g.reason = nil
		return errno
	}
	g.reason = err
	if _, isSystems := errors.AsType[syscall.Errno](err); isSystems || errors.Is(err, errBytes) || errors.Is(err, errFiles) {
		return wasi.EIO
	}
	return wasi.EPERM // of a path that leads out, of what is no file, of a directory with too many names
}

// guestDir implements [wasi.FS] for one directory. Paths are relative to it.
type guestDir struct {
	of  *guestDirs
	dir *dirGrant
}

// OpenFile opens a file or a directory. Nothing else can be opened.
func (g *guestDir) OpenFile(name string, flag wasi.Oflag, _ fs.FileMode) (wasi.File, wasi.Errno) {
	if flag&wasi.O_NOFOLLOW != 0 {
		if info, err := g.dir.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, wasi.ELOOP
		}
	}
	if flag&wasi.O_DIRECTORY == 0 && flag&(wasi.O_RDWR|wasi.O_WRONLY|wasi.O_CREAT|wasi.O_TRUNC|wasi.O_APPEND) != 0 {
		f, err := g.dir.change(name, opening{
			reads: flag&wasi.O_WRONLY == 0, appends: flag&wasi.O_APPEND != 0,
			creates: flag&wasi.O_CREAT != 0, makes: flag&wasi.O_EXCL != 0, empties: flag&wasi.O_TRUNC != 0,
		})
		if err != nil {
			return nil, g.of.errnoOf(err)
		}
		return &guestFile{of: g, file: f, appends: flag&wasi.O_APPEND != 0}, 0
	}
	// A name that ends in a slash is a directory's.
	if info, err := g.dir.root.Stat(name); err != nil || info.IsDir() || flag&wasi.O_DIRECTORY != 0 || strings.HasSuffix(name, "/") {
		if err == nil && !info.IsDir() {
			return nil, wasi.ENOTDIR
		}
		var at *os.Root
		if err == nil {
			at, err = g.dir.root.OpenRoot(name)
		}
		if err != nil {
			return nil, g.of.errnoOf(err)
		}
		return &guestFolder{of: g, at: at}, 0
	}
	f, err := g.dir.open(name)
	if err != nil {
		return nil, g.of.errnoOf(err)
	}
	return &guestFile{of: g, file: f}, 0
}

// Stat describes what a path leads to. Where a link leads out of the directory
// that is nothing, as where it leads nowhere.
func (g *guestDir) Stat(name string) (sys.Stat_t, wasi.Errno) {
	s, errno := g.described(g.dir.root.Stat(name))
	if errno == wasi.EPERM && g.of.reason != nil {
		errno = wasi.ENOENT
	}
	return s, errno
}

// Lstat describes what lies at a path.
func (g *guestDir) Lstat(name string) (sys.Stat_t, wasi.Errno) {
	return g.described(g.dir.root.Lstat(name))
}

func (g *guestDir) described(info fs.FileInfo, err error) (sys.Stat_t, wasi.Errno) {
	if err != nil {
		return sys.Stat_t{}, g.of.errnoOf(err)
	}
	return sys.NewStat_t(info), 0
}

// Readlink is what a link says.
func (g *guestDir) Readlink(name string) (string, wasi.Errno) {
	to, err := g.dir.root.Readlink(name)
	return to, g.of.errnoOf(err)
}

// Mkdir makes a directory, which counts as a file.
func (g *guestDir) Mkdir(name string, _ fs.FileMode) wasi.Errno {
	return g.changes(func() error {
		if err := g.dir.quota.takeFile(); err != nil {
			return err
		}
		return g.dir.root.Mkdir(name, 0o777)
	})
}

// Rename gives a file or a directory another name in the directory that it is in.
// The kernel keeps it there.
func (g *guestDir) Rename(from, to string) wasi.Errno {
	return g.changes(func() error { return g.dir.root.Rename(from, to) })
}

// Unlink removes what is no directory.
func (g *guestDir) Unlink(name string) wasi.Errno { return g.remove(name, false, syscall.EISDIR) }

// Rmdir removes an empty directory.
func (g *guestDir) Rmdir(name string) wasi.Errno { return g.remove(name, true, syscall.ENOTDIR) }

func (g *guestDir) remove(name string, isDir bool, otherwise error) wasi.Errno {
	return g.changes(func() error {
		info, err := g.dir.root.Lstat(name)
		if err != nil {
			return err
		}
		if info.IsDir() != isDir {
			return otherwise
		}
		return g.dir.root.Remove(name)
	})
}

// changes does what needs a directory that may be written to.
func (g *guestDir) changes(act func() error) wasi.Errno {
	if !g.dir.write {
		return wasi.EROFS
	}
	return g.of.errnoOf(act())
}

// Chmod is refused: who may do what with a file is not the run's to say.
func (*guestDir) Chmod(string, fs.FileMode) wasi.Errno { return wasi.EPERM }

// Utimens is refused, too.
func (*guestDir) Utimens(string, int64, int64) wasi.Errno { return wasi.EPERM }

// Link is refused: a second name of a file outlives what is done about the first.
func (*guestDir) Link(string, string) wasi.Errno { return wasi.EPERM }

// Symlink is refused: others may follow it.
func (*guestDir) Symlink(string, string) wasi.Errno { return wasi.EPERM }

// position is an int64 by another name: by that of its own vet takes Seek of
// [wasi.File] for a mistaken one of [io.Seeker].
type position = int64

// guestFile implements [wasi.File] for a file.
type guestFile struct {
	of      *guestDir
	file    *os.File
	appends bool
}

func (f *guestFile) errno(n int, err error) (int, wasi.Errno) {
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, f.of.of.errnoOf(err)
}

// Stat implements [wasi.File].
func (f *guestFile) Stat() (sys.Stat_t, wasi.Errno) { return f.of.described(f.file.Stat()) }

// Dev implements [wasi.File].
func (f *guestFile) Dev() (uint64, wasi.Errno) { s, errno := f.Stat(); return s.Dev, errno }

// Ino implements [wasi.File].
func (f *guestFile) Ino() (sys.Inode, wasi.Errno) { s, errno := f.Stat(); return s.Ino, errno }

// IsDir implements [wasi.File].
func (*guestFile) IsDir() (bool, wasi.Errno) { return false, 0 }

// IsAppend implements [wasi.File].
func (f *guestFile) IsAppend() bool { return f.appends }

// SetAppend implements [wasi.File]: a file stays what it was opened as.
func (f *guestFile) SetAppend(appends bool) wasi.Errno {
	if appends != f.appends {
		return wasi.ENOTSUP
	}
	return 0
}

// Read implements [wasi.File].
func (f *guestFile) Read(p []byte) (int, wasi.Errno) { return f.errno(f.file.Read(p)) }

// Pread implements [wasi.File].
func (f *guestFile) Pread(p []byte, at int64) (int, wasi.Errno) { return f.errno(f.file.ReadAt(p, at)) }

// Seek implements [wasi.File].
func (f *guestFile) Seek(to position, whence int) (int64, wasi.Errno) {
	at, err := f.file.Seek(to, whence)
	return at, f.of.of.errnoOf(err)
}

// Readdir implements [wasi.File].
func (*guestFile) Readdir(int) ([]wasi.Dirent, wasi.Errno) { return nil, wasi.ENOTDIR }

// Write implements [wasi.File].
func (f *guestFile) Write(p []byte) (int, wasi.Errno) {
	if err := f.of.dir.quota.takeBytes(int64(len(p))); err != nil {
		return f.errno(0, err)
	}
	return f.errno(f.file.Write(p))
}

// Pwrite implements [wasi.File].
func (f *guestFile) Pwrite(p []byte, at int64) (int, wasi.Errno) {
	if err := f.of.dir.quota.takeBytes(int64(len(p))); err != nil {
		return f.errno(0, err)
	}
	return f.errno(f.file.WriteAt(p, at))
}

// Truncate implements [wasi.File]. What a file grows by counts as written.
func (f *guestFile) Truncate(size int64) wasi.Errno {
	info, err := f.file.Stat()
	if err == nil {
		err = f.of.dir.quota.takeBytes(max(0, size-info.Size()))
	}
	if err == nil {
		err = f.file.Truncate(size)
	}
	return f.of.of.errnoOf(err)
}

// Sync implements [wasi.File]: when it is on the disk is the kernel's to say.
func (*guestFile) Sync() wasi.Errno { return 0 }

// Datasync implements [wasi.File].
func (*guestFile) Datasync() wasi.Errno { return 0 }

// Utimens implements [wasi.File].
func (*guestFile) Utimens(int64, int64) wasi.Errno { return wasi.EPERM }

// Close implements [wasi.File].
func (f *guestFile) Close() wasi.Errno { return f.of.of.errnoOf(f.file.Close()) }

// guestFolder implements [wasi.File] for a directory, a granted one or one in it.
type guestFolder struct {
	wasi.DirFile
	of    *guestDir
	at    *os.Root
	names []string // those that were not told yet; nil before the directory is listed
}

// Stat implements [wasi.File].
func (f *guestFolder) Stat() (sys.Stat_t, wasi.Errno) { return f.of.described(f.at.Stat(".")) }

// Dev implements [wasi.File].
func (f *guestFolder) Dev() (uint64, wasi.Errno) { s, errno := f.Stat(); return s.Dev, errno }

// Ino implements [wasi.File].
func (f *guestFolder) Ino() (sys.Inode, wasi.Errno) { s, errno := f.Stat(); return s.Ino, errno }

// Seek implements [wasi.File]: back to the first name, and nowhere else.
func (f *guestFolder) Seek(to position, whence int) (int64, wasi.Errno) {
	if to != 0 || whence != io.SeekStart {
		return 0, wasi.EINVAL
	}
	f.names = nil
	return 0, 0
}

// Readdir implements [wasi.File]. Names are sorted, and no more than [maxList].
func (f *guestFolder) Readdir(n int) (list []wasi.Dirent, errno wasi.Errno) {
	if f.names == nil {
		names, err := listIn(f.at, ".")
		if err != nil {
			return nil, f.of.of.errnoOf(err)
		}
		f.names = append([]string{}, names...)
	}
	for len(f.names) > 0 && (n <= 0 || len(list) < n) {
		name := f.names[0]
		f.names = f.names[1:]
		info, err := f.at.Lstat(name)
		if err != nil {
			continue // it has just been removed
		}
		list = append(list, wasi.Dirent{Name: name, Type: info.Mode().Type(), Ino: sys.NewStat_t(info).Ino})
	}
	return list, 0
}

// Sync implements [wasi.File].
func (*guestFolder) Sync() wasi.Errno { return 0 }

// Datasync implements [wasi.File].
func (*guestFolder) Datasync() wasi.Errno { return 0 }

// Utimens implements [wasi.File].
func (*guestFolder) Utimens(int64, int64) wasi.Errno { return wasi.EPERM }

// Close implements [wasi.File].
func (f *guestFolder) Close() wasi.Errno { return f.of.of.errnoOf(f.at.Close()) }
