package exec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// The descriptors of a worker that has an engine file.
const (
	fdWasm  = fdEngine     // the stripped module
	fdCode  = fdEngine + 1 // what wazero compiled of it
	fdLinks = fdEngine + 2 // a directory for wazero's cache, in which the code's entry leads to fdCode
)

// Engines are the engine files of a device, and what was compiled of them. Its
// methods may be called from any goroutine, and from several processes at once.
type Engines struct {
	dir    string // the files, each named after its engine and the beginning of its digest
	cache  string // the compiled code
	secret []byte // which this device's cache is signed with
	logger *slog.Logger
	pins   []notebook.EngineInfo
	jail   compileJail
	turns  map[notebook.Hash]chan *engineFiles // holds one value: what is open, or nil; whoever has taken it has the turn
}

// engineFiles are an engine as a worker gets it. They stay open as long as their
// [Engines], and belong to it. Their offsets are shared by everyone.
type engineFiles struct {
	wasm  *os.File // sealed: nobody can write it any more
	code  *os.File // sealed
	links *os.File
	key   string // wazero's, of the code
}

func (f *engineFiles) close() {
	for _, f := range []*os.File{f.wasm, f.code, f.links} {
		if f != nil {
			f.Close()
		}
	}
}

// OpenEngines opens the engine files in dir and the cache of compiled code. Both
// directories are made when they are needed, and must be this user's alone; the
// cache may be deleted at any time. It is trusted as far as it is signed with
// secret, which must be at least 32 bytes that no other user knows. A nil logger
// means none.
func OpenEngines(dir, cache string, secret []byte, logger *slog.Logger) (*Engines, error) {
	return openEngines(dir, cache, secret, logger, pins)
}

func openEngines(dir, cache string, secret []byte, logger *slog.Logger, pins []notebook.EngineInfo) (*Engines, error) {
	if !dispatched.Load() {
		return nil, errUncalled // what compiles is this program again
	}
	if len(secret) < sha256.Size {
		return nil, errors.New("the secret of the engine cache is too short")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	e := &Engines{
		dir: dir, cache: cache, secret: slices.Clone(secret), logger: logger, pins: pins,
		jail: compileTight, turns: map[notebook.Hash]chan *engineFiles{},
	}
	for _, p := range pins {
		e.turns[p.Digest] = make(chan *engineFiles, 1)
		e.turns[p.Digest] <- nil
	}
	return e, nil
}

// ready makes the directories where they are missing, and refuses them where
// they are not this user's alone.
func (e *Engines) ready() error {
	for _, d := range []string{e.dir, e.cache} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return notebook.Errorf(notebook.CodeUnavailable, "engines cannot be kept: %v", err)
		}
		if err := privateDir(d); err != nil {
			return err
		}
		sweep(d)
	}
	return nil
}

// sweep removes what a process left half written that was killed. Another one may
// be writing now, which takes no longer than compiling.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir) // what cannot be read cannot be swept
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasPrefix(entry.Name(), partial) && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// privateDir refuses a directory that somebody else could write to: what lies in
// it is run, once its signature holds, and refused again and again if it does not.
func privateDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return notebook.Errorf(notebook.CodeRefused, "%s is not a directory", dir).With("remove it, and it is made anew")
	case st.Uid != uint32(os.Getuid()), st.Mode&0o077 != 0:
		return notebook.Errorf(notebook.CodeRefused, "%s is not this user's alone (mode %#o)", dir, st.Mode&0o777).With("chmod 700 %s", dir)
	}
	return nil
}

// Close lets go of every file. Nothing may use the engines any more.
func (e *Engines) Close() error {
	for _, turn := range e.turns {
		if open := <-turn; open != nil {
			open.close()
		}
		turn <- nil
	}
	return nil
}

func (e *Engines) path(p notebook.EngineInfo) string {
	return filepath.Join(e.dir, fmt.Sprintf("%s-%x.wasm", p.Name, p.Digest[:8]))
}

func (e *Engines) pin(name string) (notebook.EngineInfo, error) {
	for _, p := range e.pins {
		if p.Name == name {
			return p, nil
		}
	}
	var known []string
	for _, p := range e.pins {
		known = append(known, p.Name)
	}
	return notebook.EngineInfo{}, notebook.Errorf(notebook.CodeNotFound, "there is no engine %q, only %s", notebook.EscapeLine(name), strings.Join(known, " and ")).
		With("noted engine list")
}

// Add takes the file at path, strips it, and keeps it if it is one that noted
// knows. Who adds it changes nothing about which file it must be, or what it may do.
func (e *Engines) Add(ctx context.Context, path string) (notebook.EngineInfo, error) {
	fail := func(err error) (notebook.EngineInfo, error) {
		return notebook.EngineInfo{}, notebook.Errorf(notebook.CodeInvalid, "%s cannot be an engine: %v", notebook.EscapeLine(path), err).
			With("noted engine list says where the files come from")
	}
	f, size, err := openRegular(path, maxEngine)
	if errors.Is(err, os.ErrNotExist) {
		return notebook.EngineInfo{}, notebook.Errorf(notebook.CodeNotFound, "there is no file %s", notebook.EscapeLine(path)).
			With("noted engine list says where the files come from")
	}
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	module, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return fail(err)
	}
	stripped, err := strip(module)
	if err != nil {
		return fail(err)
	}
	digest := notebook.Hash(sha256.Sum256(stripped))
	i := slices.IndexFunc(e.pins, func(p notebook.EngineInfo) bool { return p.Digest == digest })
	if i < 0 {
		return fail(fmt.Errorf("no known engine has its SHA-256, which is %s without custom sections", digest))
	}
	p := e.pins[i]
	open, err := e.turn(ctx, p)
	if err != nil {
		return notebook.EngineInfo{}, err
	}
	defer func() { e.turns[p.Digest] <- open }()
	if err := e.ready(); err != nil {
		return notebook.EngineInfo{}, err
	}
	if have, err := e.load(p); err == nil {
		have.Close()
	} else if err := e.keep(p, stripped); err != nil {
		return notebook.EngineInfo{}, notebook.Errorf(notebook.CodeFailed, "the engine %s cannot be kept: %v", p.Name, err).
			With("see to %s", e.path(p))
	}
	p.State = e.state(p)
	return p, nil
}

// keep writes the file of an engine, in place of whatever has its name.
func (e *Engines) keep(p notebook.EngineInfo, stripped []byte) error {
	if info, err := os.Lstat(e.path(p)); err == nil && info.IsDir() {
		return errors.New("a directory has its name")
	}
	return writeWhole(e.path(p), bytes.NewReader(stripped))
}

// Prepare compiles the engine of that name, unless what it compiles to is here:
// for CPython this takes some seconds. Without it the first fence waits for it.
func (e *Engines) Prepare(ctx context.Context, name string) (notebook.EngineInfo, error) {
	p, err := e.pin(name)
	if err == nil {
		_, err = e.files(ctx, name)
	}
	if err != nil {
		return notebook.EngineInfo{}, err
	}
	p.State = notebook.EngineCompiled
	return p, nil
}

// Check yields what is wrong with the files that are here. It changes nothing.
func (e *Engines) Check() iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, p := range e.pins {
			wasm, err := e.load(p)
			if err == nil {
				wasm.Close()
			} else if !errors.Is(err, os.ErrNotExist) && !yield(fmt.Errorf("the engine %s: %w", p.Name, err)) {
				return
			}
			code, _, err := e.loadCode(p, e.codePath(p))
			if err == nil {
				code.Close()
			} else if !errors.Is(err, os.ErrNotExist) && !yield(fmt.Errorf("the compiled code of the engine %s: %w", p.Name, err)) {
				return
			}
		}
	}
}

// List tells of every engine that noted knows, and what is here of it.
func (e *Engines) List() []notebook.EngineInfo {
	list := slices.Clone(e.pins)
	for i := range list {
		list[i].State = e.state(list[i])
	}
	return list
}

func (e *Engines) state(p notebook.EngineInfo) notebook.EngineState {
	f, err := e.load(p)
	if errors.Is(err, os.ErrNotExist) {
		return notebook.EngineAbsent
	}
	if err != nil {
		return notebook.EngineDamaged
	}
	f.Close()
	if _, err := os.Lstat(e.codePath(p)); err != nil {
		return notebook.EngineAdded
	}
	return notebook.EngineCompiled
}

// Remove forgets the file of the engine of that name, and what was compiled of
// it. Fences that are running go on.
func (e *Engines) Remove(ctx context.Context, name string) error {
	p, err := e.pin(name)
	if err != nil {
		return err
	}
	if _, err := e.turn(ctx, p); err != nil {
		return err
	}
	// A worker may just be starting with what was open; it closes when nobody has it any more.
	defer func() { e.turns[p.Digest] <- nil }()
	err = os.Remove(e.path(p))
	if errors.Is(err, os.ErrNotExist) {
		return notebook.Errorf(notebook.CodeNotFound, "the engine %s is not on this device", p.Name).With("noted engine list")
	}
	return errors.Join(err, e.dropCode(p, time.Time{}))
}

// turn waits until nobody else changes the engine, and returns what is open of it.
// The turn must be given back with what is open then.
func (e *Engines) turn(ctx context.Context, p notebook.EngineInfo) (*engineFiles, error) {
	select {
	case open := <-e.turns[p.Digest]:
		return open, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// files are the engine of that name, for a worker. The first call verifies them,
// and compiles where there is no compiled code or none that can be trusted.
func (e *Engines) files(ctx context.Context, name string) (*engineFiles, error) {
	p, err := e.pin(name)
	if err != nil {
		return nil, err
	}
	open, err := e.turn(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { e.turns[p.Digest] <- open }()
	switch {
	case open == nil:
		open, err = e.open(ctx, p)
	case !linked(open.links, open.key): // somebody deleted the cache
		again := *open
		if err = e.ready(); err == nil {
			err = e.link(ctx, p, &again)
		}
		if err != nil {
			return nil, err
		}
		open = &again
	}
	return open, err
}

// open verifies the files of an engine; it is called in its turn.
func (e *Engines) open(ctx context.Context, p notebook.EngineInfo) (*engineFiles, error) {
	if err := e.ready(); err != nil {
		return nil, err
	}
	wasm, err := e.load(p)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNoEngine(p)
	}
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the engine %s cannot be used: %v", p.Name, err).
			With("noted engine remove %s, and add it again", p.Name)
	}
	files := &engineFiles{wasm: wasm}
	if err := e.openCode(ctx, p, files); err != nil {
		files.close()
		return nil, err
	}
	return files, nil
}

// load reads the file of an engine into memory that nobody can write any more,
// and then checks that it is the one that is pinned.
func (e *Engines) load(p notebook.EngineInfo) (*os.File, error) {
	f, size, err := openRegular(e.path(p), p.Bytes)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := sealed(p.Name, io.LimitReader(f, size))
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(m, 0, size)); err != nil {
		m.Close()
		return nil, err
	}
	if notebook.Hash(h.Sum(nil)) != p.Digest {
		m.Close()
		return nil, fmt.Errorf("its file was changed: the SHA-256 is %x and must be %s", h.Sum(nil), p.Digest)
	}
	return m, nil
}

// openRegular opens a regular file of at most most bytes for reading, and
// nothing that the path leads to in another way.
func openRegular(path string, most int64) (*os.File, int64, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, 0, errors.New("it is a symbolic link")
	case err != nil:
		return nil, 0, err
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("it is not a regular file")
	case st.Size > most:
		err = fmt.Errorf("it has %d bytes, and %d is the most", st.Size, most)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size, nil
}

// sealed copies what r has into memory that cannot be changed any more, by
// anybody, and returns it opened for reading.
func sealed(name string, r io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("noted-"+name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3
		fd, err = unix.MemfdCreate("noted-"+name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	m := os.NewFile(uintptr(fd), name)
	defer m.Close()
	if _, err := io.Copy(m, r); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// writeWhole writes a file that only this user can read, whole or not at all.
func writeWhole(path string, content io.Reader) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), partial+"*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once renamed
	_, err = io.Copy(tmp, content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// partial is how the names of files and directories begin that are not whole yet.
const partial = ".partial-"
