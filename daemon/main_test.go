package daemon_test

import (
	"os"
	"testing"

	"noted/exec"
)

func TestMain(m *testing.M) {
	exec.Worker()
	os.Exit(m.Run())
}
