package daemon_test

import (
	"os"
	"testing"

	"noted/exec"
)

func TestMain(m *testing.M) {
	exec.Worker()
	if home := os.Getenv(victimVariable); home != "" {
		beVictim(home)
	}
	os.Exit(m.Run())
}
