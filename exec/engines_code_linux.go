package exec

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"noted/notebook"
)

// A file of compiled code is a header and what wazero wrote. The header is the
// magic, the MAC, wazero's key and the length of the code; the MAC is over what
// the code is for (see codeContext) and over everything behind the MAC. Nothing
// in such a file is looked at, beside how long it is, before its MAC was.
const (
	codeMagic  = "engine code\x01"
	codeHeader = len(codeMagic) + sha256.Size + sha256.Size + 8

	// maxCode is the most bytes of compiled code; CPython's are about 40 MB.
	maxCode = 256 << 20
)

// codeContext is all that compiled code depends on.
type codeContext struct {
	engine    notebook.Hash
	wazero    string // its version
	build     string // of this program, see wazeroDir
	processor string // what it can do
}

// contextOf is the context of what this program compiles of an engine here.
func contextOf(p notebook.EngineInfo) codeContext {
	return codeContext{engine: p.Digest, wazero: wazeroVersion, build: wazeroDir(), processor: fmt.Sprintf("%+v %+v", cpu.X86, cpu.ARM64)}
}

func (c codeContext) hash() notebook.Hash {
	return notebook.Digest("noted/engine-cache/v1", c.engine[:], []byte(c.wazero), []byte(c.build), []byte(c.processor))
}

// wazeroDir is the folder of a cache in which wazero looks for what this
// program's build of it compiled for this system.
func wazeroDir() string {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if strings.Contains(d.Path, "github.com/tetratelabs/wazero") {
				version = d.Version
			}
		}
		if version == "" || version == "(devel)" {
			version = info.Main.Version
		}
	}
	if version == "" || version == "(devel)" {
		version = "dev"
	}
	return "wazero-" + version + "-" + runtime.GOARCH + "-" + runtime.GOOS
}

// codePath is the file of what was compiled of an engine for this program and
// this processor. Code for others has another name, so that what fails its MAC
// under this one is not merely old.
func (e *Engines) codePath(p notebook.EngineInfo) string {
	h := contextOf(p).hash()
	return filepath.Join(e.cache, codePrefix(p)+hex.EncodeToString(h[:8])+".code")
}

func codePrefix(p notebook.EngineInfo) string { return hex.EncodeToString(p.Digest[:8]) + "-" }

// mac is over what code is for, and then over what is written to it.
func (e *Engines) mac(c codeContext) hash.Hash {
	h, of := hmac.New(sha256.New, e.secret), c.hash()
	h.Write(of[:])
	return h
}

// openCode finds or makes the compiled code of files.wasm, in the engine's turn.
func (e *Engines) openCode(ctx context.Context, p notebook.EngineInfo, files *engineFiles) error {
	unlock, err := e.lock(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	path := e.codePath(p)
	code, key, err := e.loadCode(p, path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.logger.Warn("compiled code that this device did not make, or that was changed, is thrown away", "engine", p.Name, "file", path, "error", err)
		if err := os.RemoveAll(path); err != nil {
			return notebook.Errorf(notebook.CodeUnavailable, "compiled code that cannot be trusted stands in the way: %v", err).With("remove %s", path)
		}
	}
	if err != nil {
		began := time.Now()
		if code, key, err = e.compile(ctx, p, files.wasm); err != nil {
			return err
		}
		e.logger.Info("compiled an engine", "engine", p.Name, "took", time.Since(began).Round(time.Millisecond))
		err := e.storeCode(contextOf(p), path, key, code)
		if err = errors.Join(err, e.dropCode(p, time.Now().Add(-codeAge))); err != nil {
			e.logger.Warn("compiled code cannot be kept, so it is compiled again at the next start", "engine", p.Name, "error", err)
		}
	}
	files.code, files.key = code, key
	files.links, err = e.links(p, key)
	return err
}

// link makes the links of code that is open anew, in the engine's turn.
func (e *Engines) link(ctx context.Context, p notebook.EngineInfo, files *engineFiles) error {
	unlock, err := e.lock(ctx, p)
	if err != nil {
		return err
	}
	defer unlock()
	files.links, err = e.links(p, files.key)
	return err
}

// lock has one process at a time compile an engine; the kernel lets go of it when
// the process ends.
func (e *Engines) lock(ctx context.Context, p notebook.EngineInfo) (unlock func(), err error) {
	fd, err := unix.Open(filepath.Join(e.cache, codePrefix(p)+"lock"), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the cache of compiled engines cannot be used: %v", err).With("see to %s", e.cache)
	}
	for {
		switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { unix.Close(fd) }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			unix.Close(fd)
			return nil, err
		}
		select {
		case <-ctx.Done():
			unix.Close(fd)
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// loadCode reads a file of compiled code into memory that nobody can write any
// more, and then checks its MAC. It returns the code and wazero's key of it.
func (e *Engines) loadCode(p notebook.EngineInfo, path string) (code *os.File, key string, err error) {
	f, size, err := openRegular(path, int64(codeHeader)+maxCode)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	head := make([]byte, codeHeader)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:len(codeMagic)]) != codeMagic {
		return nil, "", errors.New("it is not a file of compiled code")
	}
	mac, signed := head[len(codeMagic):][:sha256.Size], head[len(codeMagic)+sha256.Size:]
	length := size - int64(codeHeader)
	code, err = sealed(p.Name+"-code", io.LimitReader(f, length))
	if err != nil {
		return nil, "", err
	}
	h := e.mac(contextOf(p))
	h.Write(signed)
	n, err := io.Copy(h, io.NewSectionReader(code, 0, length))
	if err == nil && n != length {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && (!hmac.Equal(h.Sum(nil), mac) || binary.BigEndian.Uint64(signed[sha256.Size:]) != uint64(length)) {
		err = errors.New("its MAC is wrong")
	}
	if err != nil {
		code.Close()
		return nil, "", err
	}
	return code, hex.EncodeToString(signed[:sha256.Size]), nil
}

// storeCode signs compiled code and keeps it.
func (e *Engines) storeCode(c codeContext, path, key string, code *os.File) error {
	info, err := code.Stat()
	if err != nil {
		return err
	}
	signed, err := hex.DecodeString(key)
	if err != nil {
		return err
	}
	signed = binary.BigEndian.AppendUint64(signed, uint64(info.Size()))
	content := func() io.Reader { return io.NewSectionReader(code, 0, info.Size()) }
	h := e.mac(c)
	h.Write(signed)
	if _, err := io.Copy(h, content()); err != nil {
		return err
	}
	head := append([]byte(codeMagic), h.Sum(nil)...)
	return writeWhole(path, io.MultiReader(bytes.NewReader(head), bytes.NewReader(signed), content()))
}

// codeAge is how long compiled code is kept after code of the same engine was
// made for another program or processor, which may share the cache with this one.
const codeAge = 7 * 24 * time.Hour

// dropCode removes what was compiled of an engine before a time, zero for all of it.
func (e *Engines) dropCode(p notebook.EngineInfo, before time.Time) error {
	entries, err := os.ReadDir(e.cache)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		n := entry.Name()
		if !strings.HasPrefix(n, codePrefix(p)) || !strings.HasSuffix(n, ".code") {
			continue
		}
		if info, gone := entry.Info(); gone != nil || !before.IsZero() && info.ModTime().After(before) {
			continue
		}
		if gone := os.Remove(filepath.Join(e.cache, n)); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// links returns a directory that is laid out as a cache of wazero's, and whose
// only entry leads to descriptor fdCode of whoever opens it: wazero opens its
// cache by path, and what it finds there is the very memory that was verified.
// The directory says nothing else, so every process of this program may use the
// same one. It is made in the engine's lock.
func (e *Engines) links(p notebook.EngineInfo, key string) (*os.File, error) {
	top := strings.TrimSuffix(e.codePath(p), ".code") + ".links"
	if f, err := openLinks(top, key); err == nil {
		return f, nil
	}
	if err := os.RemoveAll(top); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(top, wazeroDir()), 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(linkTo, filepath.Join(top, wazeroDir(), key)); err != nil {
		return nil, err
	}
	return openLinks(top, key)
}

// linkTo is where the one link leads.
var linkTo = fmt.Sprintf("/proc/self/fd/%d", fdCode)

func openLinks(top, key string) (*os.File, error) {
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), top)
	if !linked(f, key) {
		f.Close()
		return nil, fmt.Errorf("%s is not a directory of links", top)
	}
	return f, nil
}

// linked reports whether a directory of links has the link of that key.
func linked(links *os.File, key string) bool {
	to := make([]byte, len(linkTo)+1)
	n, err := unix.Readlinkat(int(links.Fd()), wazeroDir()+"/"+key, to)
	return err == nil && string(to[:n]) == linkTo
}
