package main

import (
	"bufio"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"time"
)

// pageShow is how long the command line takes to show a page, as a whole process.
func pageShow(binary string) (line, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return line{}, err
	}
	home, err := os.MkdirTemp("", "noted-bench-")
	if err != nil {
		return line{}, err
	}
	defer os.RemoveAll(home)
	noted := func(args ...string) *osexec.Cmd {
		return osexec.Command(binary, append([]string{"--home", home}, args...)...)
	}
	if out, err := noted("init", "--no-pin", "--name", "bench").CombinedOutput(); err != nil {
		return line{}, fmt.Errorf("init: %w\n%s", err, out)
	}
	daemon := noted("daemon", "run", "--listen", "/ip4/127.0.0.1/tcp/0")
	ready, err := daemon.StdoutPipe()
	if err != nil {
		return line{}, err
	}
	if err := daemon.Start(); err != nil {
		return line{}, err
	}
	defer func() {
		daemon.Process.Kill()
		daemon.Wait()
	}()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		return line{}, fmt.Errorf("the daemon did not come up: %w", err)
	}
	if out, err := noted("page", "new", "Bench").CombinedOutput(); err != nil {
		return line{}, fmt.Errorf("page new: %w\n%s", err, out)
	}
	const runs = 100
	var took []float64
	for range runs {
		begun := time.Now()
		if out, err := noted("page", "show", "Bench").CombinedOutput(); err != nil {
			return line{}, fmt.Errorf("page show: %w\n%s", err, out)
		}
		took = append(took, float64(time.Since(begun).Microseconds())/1000)
	}
	slices.Sort(took)
	return line{Name: "command line round trip: page show", P50: round(took[runs/2]), P99: round(took[runs*99/100]), Unit: "ms", Budget: 30}, nil
}
