package daemon_test

import (
	"fmt"
	"os"
	"testing"

	"noted/exec"
)

func TestMain(m *testing.M) {
	exec.Worker()
	if home := os.Getenv(victimVariable); home != "" {
		beVictim(home)
	}
	if home := os.Getenv(spenderVariable); home != "" {
		beSpender(home)
	}
	if home := os.Getenv(idlerVariable); home != "" {
		if err := beIdle(home); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
