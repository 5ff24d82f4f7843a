package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
)

// toucherVariable names the home that this program serves as another process,
// whose pages it touches one after the other; folderVariable the folder that it
// imports them from.
const (
	toucherVariable = "NOTED_TEST_TOUCHER"
	folderVariable  = "NOTED_TEST_FOLDER"
)

// modelProcesses are the processes of a daemon that hold its write models.
func modelProcesses(daemon int) (pids []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(daemon) && strings.HasPrefix(string(line), "noted-page-models\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// beToucher serves a home, imports a folder, types a character into each page,
// and says how long that took and what it holds.
func beToucher(dir, folder string) error {
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx) }()
	token, err := daemon.ReadToken(home.OwnerToken())
	if err != nil {
		return err
	}
	c, err := d.Open(token)
	if err != nil {
		return err
	}
	peak := 0.0 // of the processes that hold the write models
	look := func() {
		for _, pid := range modelProcesses(os.Getpid()) {
			if held, err := statusMiB(pid, "VmHWM:"); err == nil {
				peak = max(peak, held)
			}
		}
	}
	began, done := time.Now(), 0
	if _, err := c.Import(ctx, "markdown", folder, func(int, string) {
		if done++; done%50 == 0 {
			look()
		}
	}); err != nil {
		return err
	}
	took := time.Since(began)
	rss, err := statusMiB("self", "VmRSS:")
	if err != nil {
		return err
	}
	fmt.Println("import-s", took.Seconds())
	fmt.Println("import-rss-MiB", rss)
	pages, err := c.Pages(ctx)
	if err != nil {
		return err
	}
	began = time.Now()
	for i, p := range pages {
		if _, err := c.Edit(ctx, notebook.Edit{Page: p.ID, Base: p.Revision, Splices: []notebook.Splice{{At: 3, Insert: "@"}}}); err != nil {
			return err
		}
		if i%50 == 0 {
			look()
		}
	}
	fmt.Println("touch-ms", time.Since(began).Seconds()*1000/float64(len(pages)))
	if rss, err = statusMiB("self", "VmRSS:"); err != nil {
		return err
	}
	fmt.Println("rss-MiB", rss)
	fmt.Println("child-peak-MiB", peak)
	stop()
	return <-ended
}

// BenchmarkTouched is what a daemon holds after 10,000 pages were imported, and
// after each of them was edited: both right then, with nothing collected for the occasion.
func BenchmarkTouched(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	d := w.Device("laptop")
	d.Stops()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), toucherVariable+"="+d.Home.Data, folderVariable+"="+folderOfPages(b))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var name string
		var value float64
		if _, err := fmt.Sscan(lines.Text(), &name, &value); err != nil {
			b.Errorf("%q: %v", lines.Text(), err)
		}
		b.ReportMetric(value, name)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op")
}
