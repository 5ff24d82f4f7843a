//go:build !linux

package exec

import (
	"strings"
	"testing"
)

func TestWithoutAJailNothingRuns(t *testing.T) {
	dispatched.Store(true)
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Strict(); err == nil || !strings.Contains(err.Error(), layerSeccomp) {
		t.Errorf("%v", err)
	}
	if _, _, err := r.run(t.Context(), job{}); err == nil {
		t.Error("it ran")
	}
}
