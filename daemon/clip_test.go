package daemon

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A reason that is cut in the middle of a character could not be recorded, and
// then neither could the run.
func TestReasonsAreCutBetweenCharacters(t *testing.T) {
	for n := range 4 {
		s := strings.Repeat("x", n) + strings.Repeat("€", 400)
		if got := clip(s); !utf8.ValidString(got) || len(got) > 1024 || len(got) < 1020 || !strings.HasPrefix(s, got) {
			t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-4:])
		}
	}
	if got := clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
}
