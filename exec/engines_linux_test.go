package exec

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"noted/notebook"
)

// fetchedEngines are the engine files that make engines brought, compiled once
// for all tests.
func fetchedEngines(t testing.TB) *Engines {
	t.Helper()
	dir := filepath.Join("..", "engines")
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatalf("%v: make engines", err)
	}
	e, err := OpenEngines(dir, filepath.Join(dir, "compiled"), secret, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestFetchedEnginesAreHere(t *testing.T) {
	for _, p := range fetchedEngines(t).List() {
		if p.State != notebook.EngineAdded && p.State != notebook.EngineCompiled {
			t.Errorf("%s is %s: make engines", p.Name, p.State)
		}
	}
}
