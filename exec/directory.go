package exec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Bounds of one run in the directories that it was granted, for what goes
// through noted's own code: Lua and the shell itself. A program that was granted
// with a directory has only the bound of one file.
const (
	maxFiles   = 1 << 10  // files that are made
	maxWritten = 64 << 20 // bytes that are written, in all
	maxFile    = 64 << 20 // bytes of one file; the kernel keeps this one
	maxRead    = 64 << 20 // bytes of a file that is read in one piece; memory is bounded by itself
	maxList    = 1 << 14  // names that a directory is listed with
)

// openNow keeps an open from waiting for the other side of a pipe.
const openNow = syscall.O_NONBLOCK

// dirGrant is a directory that the run was granted. What does not lie in it does
// not exist: links that lead out of it are not followed.
type dirGrant struct {
	path  string // as the fence names it, without a slash at its end
	root  *os.Root
	write bool
	quota *quota
}

// quota is what a run may still write, in all its directories together.
type quota struct {
	mu    sync.Mutex
	files int
	bytes int64
}

var (
	errOutside  = errors.New("it lies in no directory that was granted; the path is that of wants, from the root")
	errReadOnly = errors.New("the directory was granted to be read; wants has :rw for writing")
	errNoFile   = errors.New("it is not a file")
	errFiles    = fmt.Errorf("a run may make %d files and no more", maxFiles)
	errBytes    = fmt.Errorf("a run may write %d MiB and no more", maxWritten>>20)
)

// findDir finds the granted directory that a path lies in, and the rest of the
// path. What the rest leads to is up to [os.Root].
func findDir(dirs []*dirGrant, name string) (*dirGrant, string, error) {
	var found *dirGrant
	for _, d := range dirs {
		if within(d.path, name) && (found == nil || len(d.path) > len(found.path)) {
			found = d
		}
	}
	if found == nil {
		return nil, "", errOutside
	}
	rest := strings.Trim(name[len(found.path):], "/")
	if rest == "" {
		rest = "."
	}
	return found, rest, nil
}

// open opens a file to be read. Nothing but a file can be: a pipe would wait for
// another side, and a device is the kernel's.
func (d *dirGrant) open(rest string) (*os.File, error) {
	f, err := d.root.OpenFile(rest, os.O_RDONLY|openNow, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, cmpErr(err, errNoFile)
	}
	return f, nil
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// read reads a file whole.
func (d *dirGrant) read(rest string) ([]byte, error) {
	f, err := d.open(rest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err == nil && len(b) > maxRead {
		err = fmt.Errorf("it has more than %d MiB", maxRead>>20)
	}
	return b, err
}

// create opens a file to be written, from its beginning or its end. What the run
// has left to write is counted down by it.
func (d *dirGrant) create(rest string, appending bool) (*grantedFile, error) {
	f, err := d.change(rest, opening{appends: appending, creates: true, empties: !appending})
	if err != nil {
		return nil, err
	}
	return &grantedFile{f, d.quota}, nil
}

// opening is how a file is opened to be written.
type opening struct {
	reads   bool // it can be read too
	appends bool // what is written goes to its end
	creates bool // it is made if it is not there
	makes   bool // it must not be there
	empties bool // it begins empty
}

// change opens a file to be written. Who writes to it counts that down by d.quota.
func (d *dirGrant) change(rest string, how opening) (*os.File, error) {
	if !d.write {
		return nil, errReadOnly
	}
	flags := os.O_WRONLY | openNow
	if how.reads {
		flags = os.O_RDWR | openNow
	}
	if how.appends {
		flags |= os.O_APPEND
	}
	f, err := d.root.OpenFile(rest, flags, 0)
	switch {
	case how.creates && errors.Is(err, fs.ErrNotExist):
		if err := d.quota.takeFile(); err != nil {
			return nil, err
		}
		flags |= os.O_CREATE
		if how.makes {
			flags |= os.O_EXCL
		}
		f, err = d.root.OpenFile(rest, flags, 0o666)
	case err == nil && how.creates && how.makes:
		f.Close()
		return nil, fs.ErrExist
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err == nil && how.empties {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// grantedFile is a file that is being written.
type grantedFile struct {
	file  *os.File
	quota *quota
}

func (f *grantedFile) Write(p []byte) (int, error) {
	if err := f.quota.takeBytes(int64(len(p))); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

func (f *grantedFile) Close() error { return f.file.Close() }

func (q *quota) takeFile() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.files == 0 {
		return errFiles
	}
	q.files--
	return nil
}

func (q *quota) takeBytes(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.bytes {
		return errBytes
	}
	q.bytes -= n
	return nil
}

// list names what lies in a directory, sorted.
func (d *dirGrant) list(rest string) ([]string, error) { return listIn(d.root, rest) }

func listIn(root *os.Root, rest string) ([]string, error) {
	f, err := root.OpenFile(rest, os.O_RDONLY|openNow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxList + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxList {
		return nil, fmt.Errorf("it holds more than %d names", maxList)
	}
	slices.Sort(names)
	return names, nil
}

// stat describes what a path leads to.
func (d *dirGrant) stat(rest string) (fs.FileInfo, error) { return d.root.Stat(rest) }

// plainError is an error of a file without the path in it, which a fence knows
// by another name.
func plainError(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
