package daemon

import (
	"errors"
	"os"
	"strings"
	"testing"

	"noted/notebook"
)

// TestUnknownOwnerOfAFile is what is said on a system where nobody can say whose
// a file is: it is not used.
func TestUnknownOwnerOfAFile(t *testing.T) {
	var e *notebook.Error
	err := unknownOwner("windows", "/home/policy.toml")
	if !errors.As(err, &e) || e.Code != notebook.CodeRefused || !strings.Contains(e.Message, "on windows") || !strings.Contains(e.Message, "/home/policy.toml") || e.Hint == "" {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := ownedByUser(dir, info); !own || err != nil {
		t.Errorf("an own directory: %v, %v", own, err)
	}
}
