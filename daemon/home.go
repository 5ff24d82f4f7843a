package daemon

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"noted/notebook"
)

// Home is where a notebook lives on this device. The five directories may be
// one and the same.
type Home struct {
	Config  string // policy.toml, config.toml
	Data    string // noted.db, device.key
	State   string // owner.token, agents/, daemon.json
	Cache   string // may be deleted at any time
	Runtime string // daemon.sock
}

// PolicyFile is the person's policy; it is in force once accepted.
func (h Home) PolicyFile() string { return filepath.Join(h.Config, "policy.toml") }

// Database is the one file that holds the notebook.
func (h Home) Database() string { return filepath.Join(h.Data, "noted.db") }

// KeyFile holds the device's private key.
func (h Home) KeyFile() string { return filepath.Join(h.Data, "device.key") }

// Engines is the directory of the engine files.
func (h Home) Engines() string { return filepath.Join(h.Data, "engines") }

// EngineCode is the directory of what was compiled of the engine files.
func (h Home) EngineCode() string { return filepath.Join(h.Cache, "engine-code") }

// OwnerToken is the file with the token of the person's own clients.
func (h Home) OwnerToken() string { return filepath.Join(h.State, "owner.token") }

// AgentToken is the file with the token of the agent of that name.
func (h Home) AgentToken(name string) string {
	return filepath.Join(h.State, "agents", name+".token")
}

// InfoFile says who serves this home: see [Info].
func (h Home) InfoFile() string { return filepath.Join(h.State, "daemon.json") }

// Socket is where local clients find the daemon.
func (h Home) Socket() string { return filepath.Join(h.Runtime, "daemon.sock") }

// Exists reports whether a notebook was founded here.
func (h Home) Exists() bool {
	_, err := os.Stat(h.Database())
	return err == nil
}

func (h Home) make() error {
	for _, dir := range []string{h.Config, h.Data, h.State, h.Cache, h.Runtime, filepath.Join(h.State, "agents")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return notebook.Errorf(notebook.CodeFailed, "cannot make the directory %s: %v", dir, unwrapPath(err)).
				With("choose another place with --home DIR")
		}
		info, err := os.Stat(dir)
		if err != nil {
			return unwrapPath(err)
		}
		if _, err := ownedByUser(dir, info); err != nil {
			return err // before a key is in it
		}
	}
	return nil
}

// unwrapPath drops the path that the caller names itself.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// writeSecret writes a file that only this user can read, whole or not at all.
func writeSecret(path string, content []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once renamed
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// readSecret reads a small file that must be this user's alone.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if _, err := ownedByUser(path, info); err != nil {
		return nil, err // nor can its mode be trusted
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, notebook.Errorf(notebook.CodeRefused, "%s can be read by others (mode %#o)", path, info.Mode().Perm()).
			With("chmod 600 %s, and consider what it guards as known to them", path)
	}
	return readSmall(path)
}

// unknownOwner refuses a file on a system where nobody can say whose it is and
// who may read or write it.
func unknownOwner(system, path string) error {
	return notebook.Errorf(notebook.CodeRefused, "on %s noted cannot tell who may read or write %s, so it does not use it", system, path).
		With("keep the notebook on a Linux device")
}

// maxSmall is more than any file of the home but the database holds.
const maxSmall = 64 << 10

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err == nil && len(b) > maxSmall {
		err = fmt.Errorf("%s is too large for what it should hold", path)
	}
	return b, err
}

// newToken makes a token: 256 random bits.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ReadToken reads a token from a file that must be its owner's alone.
func ReadToken(path string) (string, error) {
	b, err := readSecret(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

const keyType = "PRIVATE KEY" // PKCS #8

func newKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeSecret(path, pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der}))
}

func readKey(path string) (ed25519.PrivateKey, error) {
	b, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(b)
	if block == nil || block.Type != keyType || len(strings.TrimSpace(string(rest))) != 0 {
		return nil, fmt.Errorf("%s is not a device key", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s is not a device key: %w", path, err)
	}
	ed, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a key of another kind; noted uses ed25519", path)
	}
	return ed, nil
}
