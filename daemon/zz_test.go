package daemon

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"noted/crdt"
)

func TestZZ(t *testing.T) {
	dir := t.TempDir()
	home := Home{dir, dir, dir, dir, dir}
	if err := Init(home, InitOptions{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(Config{Home: home, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Serve(ctx) }()
	rss := func() string {
		b, _ := os.ReadFile("/proc/self/status")
		for _, l := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(l, "VmRSS") {
				return l
			}
		}
		return ""
	}
	_, err = d.importFolder(ctx, "markdown", "/tmp/vault", func(n int, _ string) {
		if n%250 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(n, rss(), "heap", m.HeapAlloc>>20, "sys", m.HeapSys>>20, "inuse", m.HeapInuse>>20, "released", m.HeapReleased>>20)
		}
		if n == 1750 {
			f, _ := os.Create("/tmp/heap.prof")
			runtime.GC()
			pprof.WriteHeapProfile(f)
			f.Close()
		}
	})
	fmt.Println(err, rss())
	n := 0
	for _, p := range d.open {
		if p.writer != nil {
			n++
		}
	}
	fmt.Println("open", len(d.open), "writers", n)
	for range 4 {
		crdt.Collect()
		time.Sleep(200 * time.Millisecond)
		fmt.Println(rss())
	}
	b, _ := os.ReadFile("/proc/self/smaps")
	os.WriteFile("/tmp/smaps", b, 0o600)
	buf := make([]byte, 1<<20)
	os.WriteFile("/tmp/stacks", buf[:runtime.Stack(buf, true)], 0o600)
	for _, l := range strings.Split(string(b), "\n") {
		var from, to uint64
		if n, _ := fmt.Sscanf(l, "%x-%x rw-p", &from, &to); n == 2 && strings.HasPrefix(l, "7f") && to-from > 50<<20 {
			m, _ := os.Open("/proc/self/mem")
			chunk := make([]byte, 8<<20)
			m.ReadAt(chunk, int64(from)+(20<<20))
			os.WriteFile("/tmp/arena", chunk, 0o600)
			m.Close()
			break
		}
	}
	ran := make(chan bool, 1)
	type big struct{ b [1 << 16]byte }
	x := &big{}
	runtime.SetFinalizer(x, func(*big) { ran <- true })
	x = nil
	runtime.GC()
	select {
	case <-ran:
		fmt.Println("finalizers run")
	case <-time.After(2 * time.Second):
		fmt.Println("FINALIZERS STUCK")
	}
	clear(d.open)
	for range 4 {
		crdt.Collect()
		time.Sleep(200 * time.Millisecond)
		fmt.Println("cleared", rss())
	}
	cancel()
	<-done
}
