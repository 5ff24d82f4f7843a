//go:build cgo

package daemon_test

import (
	"bufio"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
)

// TestNoModelProcessOutlivesItsDaemon kills a daemon that is writing.
func TestNoModelProcessOutlivesItsDaemon(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	w.As("laptop").Types("Long", "nothing to run\n")
	w.Device("laptop").Stops()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+w.Device("laptop").Home.Data)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for typed := 0; typed < 5 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "typed") {
			typed++
		}
	}
	held := modelProcesses(cmd.Process.Pid)
	if len(held) != 1 {
		t.Errorf("the daemon has the processes %v", held)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for end := time.Now().Add(daemontest.Patience); ; time.Sleep(time.Millisecond) {
		left := 0
		for _, pid := range held {
			// One that nobody waits for is dead all the same.
			if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v are still there", left, held)
		}
	}
}
