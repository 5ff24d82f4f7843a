package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestEnginesOfADevice: a device keeps its engine files and its compiled code for
// itself: what another device compiled is not believed, and what was compiled once
// is not compiled again.
func TestEnginesOfADevice(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	found, err := filepath.Glob(filepath.Join(daemontest.EngineDir(t), "quickjs-*.wasm"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v: make engines", found, err)
	}
	for _, name := range []string{"laptop", "phone"} {
		hand := w.As(name)
		if _, err := hand.Client.AddEngine(t.Context(), filepath.Base(found[0])); daemontest.CodeOf(err) != notebook.CodeInvalid {
			t.Errorf("%s: a path that depends on where the daemon is: %v", name, err)
		}
		e, err := hand.Client.AddEngine(t.Context(), found[0])
		if err != nil || e.Name != "quickjs" || e.State != notebook.EngineCompiled {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
	}
	code := func(name string) (path string, info os.FileInfo) {
		files, err := filepath.Glob(filepath.Join(w.Device(name).Home.EngineCode(), "*.code"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s has %v, %v", name, files, err)
		}
		if info, err = os.Stat(files[0]); err != nil {
			t.Fatal(err)
		}
		return files[0], info
	}
	mine, before := code("laptop")
	w.Device("laptop").Restarts()
	if _, err := w.As("laptop").Client.AddEngine(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if _, after := code("laptop"); !os.SameFile(before, after) {
		t.Error("what was compiled before is compiled again")
	}
	// The phone's code in the laptop's cache.
	theirs, _ := code("phone")
	b, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	w.Device("laptop").Stops()
	if err := os.WriteFile(mine, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Device("laptop").Starts()
	if _, err := w.As("laptop").Client.AddEngine(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	// By its bytes: a file that was removed may leave its number to the next.
	made, _ := code("laptop")
	if now, err := os.ReadFile(made); err != nil || bytes.Equal(now, b) {
		t.Errorf("another device's code is believed: %v", err)
	}
	if err := w.As("laptop").Client.RemoveEngine(t.Context(), "quickjs"); err != nil {
		t.Fatal(err)
	}
	engines, err := w.As("laptop").Client.Engines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		if e.State != notebook.EngineAbsent || !strings.Contains(e.Source, "npm package") {
			t.Errorf("%+v", e)
		}
	}
}
