package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/trust"
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

// BenchmarkWhy is the time of asking why a fence stands as it does, on a page of
// 200 fences by two devices that was edited just before.
func BenchmarkWhy(b *testing.B) {
	w := daemontest.Loopback(b, "laptop", "phone")
	w.Pair("laptop", "phone")
	laptop, phone := w.As("laptop"), w.As("phone")
	var body strings.Builder
	for n := range 200 {
		fmt.Fprintf(&body, "some prose between\n\n```lua\nlocal answer = %d + 7\nprint(answer)\n```\n\n", n)
	}
	laptop.Types("Page", body.String())
	w.Settle()
	for n := range 100 {
		phone.Edits("Page", fmt.Sprintf(" %d + 7", n), fmt.Sprintf(" %d - 7", n))
	}
	w.Settle()
	ctx := context.Background()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		p := laptop.Page("Page")
		if _, err := laptop.Client.Edit(ctx, notebook.Edit{Page: p.ID, Base: p.Revision, Splices: []notebook.Splice{{At: 0, Insert: "@"}}}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		why, err := laptop.Client.Why(ctx, p.ID, p.Fences[50].ID)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		if len(p.Fences) != 200 || why.Fence.Standing != "device:phone" {
			b.Fatalf("%d fences, of which one stands %s", len(p.Fences), why.Fence.Standing)
		}
	}
	spread(b, took)
}

// BenchmarkRunFence is the time from the request to run a fence to its stored
// result: both records on the disk, the worker dead. A person does not run
// fences in a row, so that a worker waits ready.
func BenchmarkRunFence(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	laptop := w.As("laptop")
	laptop.Pipes("Sums", sums)
	f := laptop.Fence("Sums", 1)
	var took, worker []time.Duration
	for b.Loop() {
		began := time.Now()
		run, err := laptop.TryRun(f)
		if err != nil {
			b.Fatal(err)
		}
		took, worker = append(took, time.Since(began)), append(worker, time.Duration(run.Result.Took)*time.Microsecond)
		time.Sleep(40 * time.Millisecond)
	}
	slices.Sort(worker)
	b.ReportMetric(float64(worker[len(worker)/2].Microseconds())/1000, "worker-p50-ms")
	spread(b, took)
}

// folderOfPages is a folder with the pages of the benchmarks.
func folderOfPages(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	line := strings.Repeat("a line of text that is not short\n", pageSize/33+1)[:pageSize-10]
	for n := range manyPages {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("Page %05d.md", n)), fmt.Appendf(nil, "# %05d\n%s\n", n, line), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// fill imports the pages of the benchmarks.
func fill(b *testing.B, h *daemontest.Hand) {
	b.Helper()
	dir, began := folderOfPages(b), time.Now()
	r, err := h.Client.Import(context.Background(), "markdown", dir, nil)
	if err != nil || r.Pages != manyPages {
		b.Fatalf("%+v %v", r, err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "import-s")
}

// BenchmarkFirstSync is the time in which a device that has just been paired
// has 10,000 pages on its disk, readable.
func BenchmarkFirstSync(b *testing.B) {
	for b.Loop() {
		w, took := together(b)
		b.ReportMetric(took.Seconds(), "s")
		phone := w.As("phone")
		if pages, err := phone.Client.Pages(context.Background()); err != nil || len(pages) != manyPages {
			b.Fatalf("%d pages, %v", len(pages), err)
		}
		if body := phone.Body("Page 09999"); len(body) < pageSize-20 {
			b.Fatalf("%q", body)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// together are a laptop with 10,000 pages and a phone that got them all.
func together(b *testing.B) (*daemontest.World, time.Duration) {
	b.Helper()
	w := daemontest.Loopback(b, "laptop", "phone")
	fill(b, w.As("laptop"))
	began := time.Now()
	if err := w.TryPair("laptop", "phone"); err != nil {
		b.Fatal(err)
	}
	w.SettleWithin(5 * time.Minute)
	return w, time.Since(began)
}

// BenchmarkReconnect is how long two devices with the same 10,000 pages take to
// know that they have the same, from the moment that they can reach each other.
// A device that begins more than ten exchanges in a row is slowed down: it is to
// be run with -benchtime 8x.
func BenchmarkReconnect(b *testing.B) {
	w, _ := together(b)
	var took []time.Duration
	for b.Loop() {
		w.Device("phone").Stops()
		laptop := w.As("laptop")
		connected := func() bool {
			return slices.ContainsFunc(laptop.Devices(), func(d notebook.DeviceInfo) bool { return d.Name == "phone" && d.Connected })
		}
		w.Eventually("the laptop sees it go", func() bool { return !connected() })
		w.Device("phone").Starts() // and dials
		began := time.Now()
		for !connected() {
			time.Sleep(50 * time.Microsecond)
		}
		w.SettleWithin(time.Minute)
		took = append(took, time.Since(began))
	}
	spread(b, took)
}

// BenchmarkStart is the time from the start of a process that serves a home
// with 10,000 pages to its first answer, and what it holds when it is idle.
func BenchmarkStart(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	fill(b, w.As("laptop"))
	d := w.Device("laptop")
	d.Stops()
	var took []time.Duration
	var rss, cold, asked, peak float64
	for b.Loop() {
		began := time.Now()
		cmd := osexec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), idlerVariable+"="+d.Home.Data)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var pages int
		if !lines.Scan() {
			b.Fatal("no answer")
		}
		took = append(took, time.Since(began))
		if _, err := fmt.Sscanf(lines.Text(), "pages %d", &pages); err != nil || pages != manyPages {
			b.Fatalf("%q %v", lines.Text(), err)
		}
		if !lines.Scan() {
			b.Fatal("no second answer")
		}
		if _, err := fmt.Sscanf(lines.Text(), "rss %f", &rss); err != nil {
			b.Fatal(err)
		}
		if !lines.Scan() {
			b.Fatal("no third answer")
		}
		if _, err := fmt.Sscanf(lines.Text(), "asked %f %f %f", &cold, &asked, &peak); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rss, "rss-MiB")
	b.ReportMetric(cold, "first-query-ms")
	b.ReportMetric(asked, "asked-rss-MiB")
	b.ReportMetric(peak, "asked-peak-MiB")
	spread(b, took)
}

// BenchmarkQuery is how long a notebook of 10,000 pages takes to answer: what no
// page has, what every block is looked at for, and what every block answers; and
// an edit meanwhile.
func BenchmarkQuery(b *testing.B) {
	w := daemontest.Loopback(b, "laptop")
	laptop := w.As("laptop")
	fill(b, laptop)
	ctx := context.Background()
	for name, query := range map[string]string{"absent": "nowhere-to-be-found", "tasks": "task:todo", "everything": "a sort:date"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				rows, err := laptop.Client.Query(ctx, query)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
				if name == "everything" && len(rows.List) == 0 {
					b.Fatal("nothing found")
				}
			}
			spread(b, took)
		})
	}
	edits := func(b *testing.B, meanwhile func(context.Context)) {
		asking, stop := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() {
			defer close(over)
			meanwhile(asking)
		}()
		info := &laptop.Page("Page 00001").PageInfo
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			var err error
			if info, err = laptop.Client.Edit(ctx, notebook.Edit{Page: info.ID, Base: info.Revision, Splices: []notebook.Splice{{Insert: "@"}}}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		stop()
		<-over
		spread(b, took)
	}
	b.Run("edit", func(b *testing.B) { edits(b, func(context.Context) {}) })
	b.Run("edit-meanwhile", func(b *testing.B) {
		edits(b, func(asking context.Context) {
			for asking.Err() == nil {
				_, _ = laptop.Client.Query(asking, "task:todo") // it ends with the benchmark
			}
		})
	})
}

// idlerVariable names the home that this program serves as another process, to
// be measured.
const idlerVariable = "NOTED_TEST_IDLER"

// beIdle serves a home, answers one question, and says what it holds.
func beIdle(dir string) error {
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}})
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
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Println("pages", s.Pages)
	time.Sleep(time.Second)
	rss, err := resident()
	if err != nil {
		return err
	}
	fmt.Println("rss", rss)
	began := time.Now()
	if _, err := c.Query(ctx, "task:todo -a"); err != nil {
		return err
	}
	took := time.Since(began)
	peak, err := statusMiB("self", "VmHWM:")
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	if rss, err = statusMiB("self", "VmRSS:"); err != nil {
		return err
	}
	fmt.Println("asked", float64(took.Microseconds())/1000, rss, peak)
	stop()
	return <-ended
}

// resident is what this process holds of memory after a collection, in MiB.
func resident() (float64, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return statusMiB("self", "VmRSS:")
}

// statusMiB is a value of a process's status, in MiB.
func statusMiB(pid, key string) (float64, error) {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), key)
	if !found {
		return 0, fmt.Errorf("there is no %s of %s", key, pid)
	}
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	return float64(kb) / 1024, err
}

// BenchmarkPageOfIncludes is a look at a page of 200 fences: that include
// nothing, three fences of one other page each, and, as the worst that a page
// can do, 31 large fences on as many pages.
func BenchmarkPageOfIncludes(b *testing.B) {
	for _, c := range []struct {
		name         string
		pages, names int
		size         int
	}{{"none", 0, 0, 0}, {"three", 1, 3, 100}, {"worst", 31, 31, 2000}} {
		b.Run(c.name, func(b *testing.B) {
			laptop := daemontest.Loopback(b, "laptop").As("laptop")
			var refs []string
			for n := range c.pages {
				title := fmt.Sprintf("Lib %d", n)
				laptop.Types(title, strings.Repeat("```lua\nx = '"+strings.Repeat("x", c.size)+"'\n```\n", max(1, c.names/c.pages)))
				for _, f := range laptop.Page(title).Fences {
					refs = append(refs, ref(f))
				}
			}
			fence := "```lua\nreturn x\n```\n"
			if c.names > 0 {
				fence = including("return x", refs...)
			}
			laptop.Types("Page", strings.Repeat(fence, 200))
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				laptop.Page("Page")
				took = append(took, time.Since(began))
			}
			spread(b, took)
		})
	}
}

// BenchmarkOverturn is how long a daemon with 10,000 pages and 100,000 entries
// takes to let another history of a device stand; to be run with -benchtime 8x.
func BenchmarkOverturn(b *testing.B) {
	const edits = 9
	w := daemontest.Loopback(b, "laptop", "tablet")
	w.Pair("laptop", "tablet")
	w.Settle()
	thief := w.Device("tablet").Stolen()
	give := func(entries ...notebook.Entry) {
		if err := thief.Gives(w.Device("laptop"), entries...); err != nil {
			b.Fatal(err)
		}
	}
	pageOf := func(i int) notebook.PageID { return notebook.PageID{0xaa, byte(i >> 8), byte(i)} }
	for i := range manyPages {
		id := pageOf(i)
		body, err := notebook.EncodeSet(&notebook.Set{Register: notebook.RegisterTitle, Text: fmt.Sprint("Page ", i)})
		if err != nil {
			b.Fatal(err)
		}
		entries := []notebook.Entry{thief.Appends(trust.Draft{Kind: notebook.KindSet, Page: id, Class: notebook.Typed, Body: body})}
		for n := range edits {
			entries = append(entries, thief.Types(id, strings.Repeat("a line of text that is not so short\n", n+1)))
		}
		thief.Forgets(id)
		give(entries...)
	}
	// Each stands against the one before it.
	sides := make([]notebook.Entry, 64)
	for i := range sides {
		page := pageOf(manyPages + i)
		sides[i] = thief.Seals(thief.Next(page), thief.Change(page, thief.Self(), "another\n"))
	}
	slices.SortFunc(sides, func(x, y notebook.Entry) int {
		if lower(x, y) {
			return 1
		}
		return -1
	})
	give(sides[0])
	var took []time.Duration
	for b.Loop() {
		w.Device("laptop").Daemon.WaitForCalm(0)
		began := time.Now()
		if err := w.Device("laptop").Daemon.Accept(context.Background(), notebook.DeviceID{1}, sides[1+len(took):][:1]); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	if n := w.As("laptop").Status().Void; n != len(took) {
		b.Fatalf("%d entries are void after %d", n, len(took))
	}
	spread(b, took)
}
