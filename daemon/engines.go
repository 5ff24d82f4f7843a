package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"

	"noted/exec"
	"noted/notebook"
)

// openEngines opens the engine files of a home.
func openEngines(home Home, key ed25519.PrivateKey, logger *slog.Logger) (*exec.Engines, error) {
	secret, err := engineSecret(key)
	if err != nil {
		return nil, err
	}
	return exec.OpenEngines(home.Engines(), home.EngineCode(), secret, logger)
}

func (d *Daemon) closeEngines() error {
	if d.lent {
		return nil
	}
	return d.engines.Close()
}

// checkEngines reports engine files and compiled code that are not what they were.
func checkEngines(c *checker, home Home, key ed25519.PrivateKey) error {
	engines, err := openEngines(home, key, nil)
	if err != nil {
		return err
	}
	for err := range engines.Check() {
		c.report("%w", err)
	}
	return engines.Close()
}

// engineSecret is what signs this device's cache of compiled engines: derived, so
// that there is no other file to lose or to leak, and of no use without the key.
func engineSecret(key ed25519.PrivateKey) ([]byte, error) {
	return hkdf.Key(sha256.New, key.Seed(), nil, "noted/engine-cache/v1", sha256.Size)
}

// addEngine keeps an engine file and compiles it. A call that is given up leaves
// the file, which is compiled when it is first needed.
func (d *Daemon) addEngine(ctx context.Context, file string) (*notebook.EngineInfo, error) {
	e, err := d.engines.Add(ctx, file)
	if err != nil {
		return nil, err
	}
	e, err = d.engines.Prepare(ctx, e.Name)
	if err != nil {
		return nil, err
	}
	return &e, nil
}
