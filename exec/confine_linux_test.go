package exec

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// confinedProgram is a program that closes itself in and then does what it must not.
const confinedProgram = "noted-test-confined"

// confinedMemory is what that program may hold.
const confinedMemory = 64 << 20

// beConfined does one thing as a program that is closed in, says how it went,
// and computes for a while.
func beConfined() int {
	if err := Confine(confinedMemory); err != nil {
		fmt.Println("missing", err)
		return 1
	}
	fmt.Println("confined")
	switch what := os.Args[1]; what {
	case "echo":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
	case "inherited":
		fmt.Println(syscall.Write(3, []byte("x")))
	case "memory":
		debug.SetGCPercent(-1)
		for range 8 {
			b := make([]byte, confinedMemory/4)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
		}
	default:
		fmt.Println(systemCalls[what]())
	}
	return 0
}

var kept [][]byte

// TestConfine: a program that is closed in reads and writes what it was given,
// and does nothing else.
func TestConfine(t *testing.T) {
	for what, c := range map[string]struct {
		says   string
		signal syscall.Signal // that ends it
		code   int
	}{
		"echo":      {says: "confined\nhello"},
		"inherited": {says: "confined\n-1 bad file descriptor\n"},
		"open":      {says: "confined\noperation not permitted\n"},
		"create":    {says: "confined\noperation not permitted\n"},
		"socket":    {says: "confined\n", signal: syscall.SIGSYS},
		"unix":      {says: "confined\n", signal: syscall.SIGSYS},
		"exec":      {says: "confined\n", signal: syscall.SIGSYS},
		"fork":      {says: "confined\n", signal: syscall.SIGSYS},
		"ptrace":    {says: "confined\n", signal: syscall.SIGSYS},
		"memory":    {says: "confined\n", code: 2},
	} {
		t.Run(what, func(t *testing.T) {
			if what == "memory" && raceDetector {
				c.code = exitExhausted
			}
			inherited, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer inherited.Close()
			cmd := role(t, confinedProgram, what)
			cmd.ExtraFiles = []*os.File{inherited}
			cmd.Stderr = nil
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(in, "hello")
			in.Close()
			late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			out, _ := cmd.Output()
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || string(out) != c.says || status.Signaled() != (c.signal != 0) || status.Signaled() && status.Signal() != c.signal || !status.Signaled() && status.ExitStatus() != c.code {
				t.Errorf("it said %q and ended with %v", out, cmd.ProcessState)
			}
		})
	}
}
