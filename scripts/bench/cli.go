package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"noted/daemon"
	"noted/notebook"
	"noted/rpc"
)

// commands are measured against a real daemon: how long the command line takes
// to show a page, as a whole process, and how long a run takes from the request
// on the socket to its answer, when its result is on the disk.
func commands(binary string) ([]line, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "noted-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	noted := func(args ...string) *osexec.Cmd {
		return osexec.Command(binary, append([]string{"--home", home}, args...)...)
	}
	if out, err := noted("init", "--no-pin", "--name", "bench").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("init: %w\n%s", err, out)
	}
	served := noted("daemon", "run", "--listen", "/ip4/127.0.0.1/tcp/0")
	ready, err := served.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := served.Start(); err != nil {
		return nil, err
	}
	defer func() {
		served.Process.Kill()
		served.Wait()
	}()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the daemon did not come up: %w", err)
	}
	if out, err := noted("page", "new", "Bench").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("page new: %w\n%s", err, out)
	}
	show := []float64{}
	for range runs {
		begun := time.Now()
		if out, err := noted("page", "show", "Bench").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("page show: %w\n%s", err, out)
		}
		show = append(show, since(begun))
	}
	asked, err := fenceRuns(home)
	if err != nil {
		return nil, err
	}
	time.Sleep(spareReady)
	own, err := privateMemory(served.Process.Pid, "noted-fence-worker\x00lua\x00")
	return []line{
		quantiles(roundTrip, show, 30),
		quantiles(runOverRPC, asked, 4),
		{Name: ownMemory, P50: round(own), P99: round(own), Unit: "MiB", Budget: 4},
	}, err
}

// spareReady is more than a worker takes to start.
const spareReady = 50 * time.Millisecond

// privateMemory is what the child of a process that is called so has in memory
// that it shares with no other, in MiB.
func privateMemory(parent int, called string) (mib float64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return 0, err
	}
	var children []string // each is the child of the thread that started it
	for _, t := range threads {
		if own, err := os.ReadFile(t); err == nil {
			children = append(children, strings.Fields(string(own))...)
		}
	}
	for _, child := range children {
		name, err := os.ReadFile("/proc/" + child + "/cmdline")
		if err != nil || !strings.HasPrefix(string(name), called) {
			continue
		}
		rollup, err := os.ReadFile("/proc/" + child + "/smaps_rollup")
		if err != nil {
			return 0, err
		}
		for l := range strings.Lines(string(rollup)) {
			var kib float64
			if kind, rest, _ := strings.Cut(l, ":"); kind == "Private_Clean" || kind == "Private_Dirty" {
				if _, err := fmt.Sscan(rest, &kib); err != nil {
					return 0, err
				}
				mib += kib / 1024
			}
		}
		return mib, nil
	}
	return 0, fmt.Errorf("the daemon has no child %q", called)
}

// runs is how often each is measured.
const runs = 100

func since(begun time.Time) float64 { return float64(time.Since(begun).Microseconds()) / 1000 }

func quantiles(name string, took []float64, budget float64) line {
	slices.Sort(took)
	l := line{Name: name, Unit: "ms", Budget: budget}
	if n := len(took); n > 0 {
		l.P50, l.P99 = round(took[n/2]), round(took[n*99/100])
	}
	return l
}

// fenceRuns runs a fence that its person typed over the socket, again and again.
func fenceRuns(home string) (took []float64, err error) {
	ctx := context.Background()
	of := daemon.Home{Config: home, Data: home, State: home, Cache: home, Runtime: home}
	token, err := daemon.ReadToken(of.OwnerToken())
	if err != nil {
		return nil, err
	}
	c := rpc.Dial(of.Socket(), token)
	defer c.Close()
	page, err := c.Page(ctx, "Bench")
	if err != nil {
		return nil, err
	}
	if _, err := c.Put(ctx, notebook.Put{Page: page.ID, Base: page.Revision, Body: "```lua\nreturn 1 + 1\n```\n"}); err != nil {
		return nil, err
	}
	if page, err = c.Page(ctx, "Bench"); err != nil {
		return nil, err
	}
	f := page.Fences[0]
	for range runs {
		time.Sleep(spareReady)
		begun := time.Now()
		run, err := c.Run(ctx, notebook.RunRequest{FenceRef: notebook.FenceRef{Page: f.Page, Fence: f.ID, Shown: f.Hash}})
		if err != nil || run.Result.Output != "2\n" {
			return nil, fmt.Errorf("%+v %v", run, err)
		}
		took = append(took, since(begun))
	}
	return took, nil
}
