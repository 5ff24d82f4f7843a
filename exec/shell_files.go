package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// shellFiles are the names that a fence finds: those of the directories that it
// was granted and of what lies in them, as far as an [os.Root] follows it, and of
// the directories above them, which hold nothing else. The root is always there,
// and is where a shell begins; so is /dev/null. Nothing else has a name.
type shellFiles []*dirGrant

// find is the directory that a name lies in and the rest of the name; none for
// what lies above. What was not granted is an error that does not tell whether it
// is there.
func (f shellFiles) find(name string) (*dirGrant, string, error) {
	d, rest, err := findDir(f, name)
	if err != nil && (name == "/" || len(f.below(name)) > 0) {
		return nil, "", nil
	}
	return d, rest, err
}

// below are the names that lead from a directory to what was granted.
func (f shellFiles) below(name string) []fs.DirEntry {
	var names []string
	for _, d := range f {
		if rest, ok := strings.CutPrefix(d.path, strings.TrimSuffix(name, "/")+"/"); ok {
			next, _, _ := strings.Cut(rest, "/")
			names = append(names, next)
		}
	}
	slices.Sort(names)
	var entries []fs.DirEntry
	for _, n := range slices.Compact(names) {
		entries = append(entries, fs.FileInfoToDirEntry(above(n)))
	}
	return entries
}

// inside is err, or [errOutside] where a link left its directory.
func inside(err error) error {
	if err != nil && plainError(err).Error() == "path escapes from parent" {
		return errOutside
	}
	return err
}

// errMany is for a directory that a pattern cannot go through.
var errMany = fmt.Errorf("it holds more than %d names", maxList)

// denial reports whether an error of a file ends the run, and is no answer.
func denial(err error) bool {
	return errors.Is(err, errOutside) || errors.Is(err, errReadOnly) || errors.Is(err, errMany)
}

func (f shellFiles) open(name string, flag int) (io.ReadWriteCloser, error) {
	if name == os.DevNull {
		return openNull(flag)
	}
	d, rest, err := f.find(name)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, errNoFile
	case flag&(os.O_WRONLY|os.O_RDWR) != 0:
		w, err := d.create(rest, flag&os.O_APPEND != 0)
		if err != nil {
			return nil, inside(err)
		}
		return writeOnly{WriteCloser: w}, nil
	}
	r, err := d.open(rest)
	if err != nil {
		return nil, inside(err)
	}
	return r, nil
}

// writeOnly is a file that is being written. No command of the interpreter looks
// whether that is so: failed is told.
type writeOnly struct {
	io.WriteCloser
	failed func(error)
}

func (w writeOnly) Write(p []byte) (int, error) {
	n, err := w.WriteCloser.Write(p)
	if err != nil {
		w.failed(err)
	}
	return n, err
}

func (writeOnly) Read([]byte) (int, error) { return 0, errors.New("it is open for writing") }

func (f shellFiles) stat(name string, follow bool) (fs.FileInfo, error) {
	d, rest, err := f.find(name)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return above(path.Base(name)), nil
	case follow:
		info, err := d.stat(rest)
		return info, inside(err)
	}
	info, err := d.root.Lstat(rest)
	return info, inside(err)
}

// access is by what was granted and by the permissions that the file shows.
func (f shellFiles) access(name string, mode interp.AccessMode) error {
	info, err := f.stat(name, true)
	if err != nil {
		return err
	}
	d, _, _ := f.find(name)
	bits := fs.FileMode(mode)
	if mode&interp.AccessWrite != 0 && (d == nil || !d.write) || info.Mode()&(bits<<6|bits<<3|bits) == 0 {
		return fs.ErrPermission
	}
	return nil
}

// readDir is for patterns: a link that leads out is for them what is not there.
func (f shellFiles) readDir(name string) ([]fs.DirEntry, error) {
	d, rest, err := f.find(name)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return f.below(name), nil
	}
	dir, err := d.root.OpenFile(rest, os.O_RDONLY|openNow, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxList + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxList {
		return nil, errMany
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// from is a name as it is from a directory, in its shortest form.
func from(dir, name string) string {
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	return path.Clean(name)
}

// openNull is a /dev/null without a device: to be read, it is a pipe at its end.
func openNull(flag int) (io.ReadWriteCloser, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return null{}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return r, w.Close()
}

type null struct{}

func (null) Read([]byte) (int, error)    { return 0, io.EOF }
func (null) Write(p []byte) (int, error) { return len(p), nil }
func (null) Close() error                { return nil }

// above is a directory above those that were granted, by its name.
type above string

func (a above) Name() string     { return string(a) }
func (above) Size() int64        { return 0 }
func (above) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (above) ModTime() time.Time { return time.Unix(0, 0) }
func (above) IsDir() bool        { return true }
func (above) Sys() any           { return nil }

// The handlers through which the interpreter comes here. A name that no grant
// covers ends the run; every other error is told by the shell.

func (e *shellEngine) openFile(ctx context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	name, line := unmark(name)
	f, err := e.files.open(from(hc.Dir, name), flag)
	if err = e.judge(line, name, err); err != nil && !denial(err) {
		err = &fs.PathError{Op: "open", Path: name, Err: plainError(err)}
	}
	if w, ok := f.(writeOnly); ok {
		var once sync.Once
		w.failed = func(err error) {
			once.Do(func() { _ = e.deny(line, "%s: %v", inWords(name), plainError(err)) })
		}
		f = w
	}
	return f, err
}

func (e *shellEngine) readDir(_ context.Context, name string) ([]fs.DirEntry, error) {
	entries, err := e.files.readDir(path.Clean(name))
	return entries, e.judge(e.place(name, true), name, err)
}

func (e *shellEngine) stat(_ context.Context, name string, follow bool) (fs.FileInfo, error) {
	info, err := e.files.stat(path.Clean(name), follow)
	return info, e.judge(e.place(name, false), name, err)
}

func (e *shellEngine) access(_ context.Context, name string, mode interp.AccessMode) error {
	return e.judge(e.place(name, false), name, e.files.access(path.Clean(name), mode))
}

// judge ends the run if an error is a denial.
func (e *shellEngine) judge(line uint, name string, err error) error {
	if denial(err) {
		_ = e.deny(line, "%s: %v", inWords(name), err)
	}
	return err
}
