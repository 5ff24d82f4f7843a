package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
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
	return []line{
		quantiles("command line round trip: page show", show, 30),
		quantiles("RPC RunFence, warm Lua, to the stored result", asked, 4),
	}, err
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
		time.Sleep(20 * time.Millisecond) // a spare is ready again
		begun := time.Now()
		run, err := c.Run(ctx, notebook.RunRequest{FenceRef: notebook.FenceRef{Page: f.Page, Fence: f.ID, Shown: f.Hash}})
		if err != nil || run.Result.Output != "2\n" {
			return nil, fmt.Errorf("%+v %v", run, err)
		}
		took = append(took, since(begun))
	}
	return took, nil
}
