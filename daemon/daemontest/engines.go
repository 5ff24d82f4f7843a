package daemontest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"noted/exec"
)

// Engines are the engine files that make engines brought, compiled once for all
// tests: for the Exec of a device that is to run what needs one.
func Engines(t testing.TB) *exec.Engines {
	t.Helper()
	dir := EngineDir(t)
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatalf("%v: make engines", err)
	}
	e, err := exec.OpenEngines(dir, filepath.Join(dir, "compiled"), secret, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// EngineDir is where make engines puts the engine files.
func EngineDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "engines")
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
