package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// manyPages and pageSize are the notebook of the numbers that have a budget.
const (
	manyPages = 10_000
	pageSize  = 2 << 10
)

// spread reports the median and the 99th percentile.
func spread(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkEditVisible is the time from a keystroke's request at one device to
// the event that tells a watcher at the other.
func BenchmarkEditVisible(b *testing.B) {
	w := daemontest.Loopback(b, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")
	laptop.Types("Page", strings.Repeat("a line of text that is not short\n", 60))
	w.Settle()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan time.Time, 1024)
	go func() {
		_ = phone.Client.Watch(ctx, func(e notebook.Event) error {
			if e.Kind == "page" {
				seen <- time.Now()
			}
			return nil
		})
	}()
	time.Sleep(10 * time.Millisecond)
	p := laptop.Page("Page")
	info := &p.PageInfo
	var committed, requested []time.Duration
	for b.Loop() {
		began := time.Now()
		var err error
		info, err = laptop.Client.Edit(ctx, notebook.Edit{Page: info.ID, Base: info.Revision, Splices: []notebook.Splice{{At: 5, Insert: "@"}}})
		if err != nil {
			b.Fatal(err)
		}
		done := time.Now()
		visible := <-seen
		committed, requested = append(committed, max(0, visible.Sub(done))), append(requested, visible.Sub(began))
	}
	if n := strings.Count(phone.Body("Page"), "@"); n != len(committed) {
		b.Fatalf("%d of %d edits are visible", n, len(committed))
	}
	slices.Sort(requested)
	b.ReportMetric(float64(requested[len(requested)/2].Microseconds())/1000, "request-p50-ms")
	spread(b, committed)
}

// BenchmarkRunFence is the time from the request to run a fence to its stored
// result: both records on the disk, the worker dead. A person does not run
// fences in a row, so that a worker waits ready.
func BenchmarkRunFence(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	laptop := w.As("laptop")
	laptop.Pipes("Sums", sums)
	f := laptop.Fence("Sums", 1)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := laptop.TryRun(f); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		time.Sleep(40 * time.Millisecond)
	}
	spread(b, took)
}

// fill imports the pages of the benchmarks.
func fill(b *testing.B, h *daemontest.Hand) {
	b.Helper()
	dir := b.TempDir()
	line := strings.Repeat("a line of text that is not short\n", pageSize/33+1)[:pageSize-10]
	for n := range manyPages {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("Page %05d.md", n)), fmt.Appendf(nil, "# %05d\n%s\n", n, line), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	r, err := h.Client.Import(context.Background(), "markdown", dir, nil)
	if err != nil || r.Pages != manyPages {
		b.Fatalf("%+v %v", r, err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "import-s")
}

// BenchmarkFirstSync is the time in which a device that has just been paired
// has everything on its disk, readable.
func BenchmarkFirstSync(b *testing.B) {
	for b.Loop() {
		w := daemontest.Loopback(b, "laptop", "phone")
		fill(b, w.As("laptop"))
		began := time.Now()
		if err := w.TryPair("laptop", "phone"); err != nil {
			b.Fatal(err)
		}
		phone := w.As("phone")
		w.SettleWithin(5 * time.Minute)
		b.ReportMetric(time.Since(began).Seconds(), "s")
		if pages, err := phone.Client.Pages(context.Background()); err != nil || len(pages) != manyPages {
			b.Fatalf("%d pages, %v", len(pages), err)
		}
		if body := phone.Body("Page 09999"); len(body) < pageSize-20 {
			b.Fatalf("%q", body)
		}
		b.ReportMetric(resident(b), "both-rss-MiB")
		again(b, w)
	}
	b.ReportMetric(0, "ns/op")
}

// again measures how two devices with the same 10,000 pages meet.
func again(b *testing.B, w *daemontest.World) {
	b.Helper()
	phone := w.As("phone")
	var took []time.Duration
	for range 5 {
		w.Device("laptop").Restarts()
		began := time.Now()
		laptop := w.As("laptop")
		connected := func() bool {
			return slices.ContainsFunc(laptop.Devices(), func(d notebook.DeviceInfo) bool { return d.Name == "phone" && d.Connected })
		}
		for !connected() {
			time.Sleep(100 * time.Microsecond)
		}
		w.SettleWithin(time.Minute)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "reconnect-ms")
	if n := phone.Status().Pages; n != manyPages {
		b.Fatalf("%d pages", n)
	}
}

// BenchmarkStart is the time from opening a home with 10,000 pages to the first
// answer, and what the process holds when it is idle.
func BenchmarkStart(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	fill(b, w.As("laptop"))
	d := w.Device("laptop")
	var took []time.Duration
	d.Stops()
	for b.Loop() {
		began := time.Now()
		d.Starts()
		if n := d.Owner().Status().Pages; n != manyPages {
			b.Fatalf("%d pages", n)
		}
		took = append(took, time.Since(began))
		d.Stops()
	}
	d.Starts()
	b.ReportMetric(resident(b), "rss-MiB")
	spread(b, took)
}

// resident is what this process holds of memory after a collection, in MiB.
func resident(b *testing.B) float64 {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1024
}
