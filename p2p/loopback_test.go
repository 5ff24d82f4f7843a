package p2p_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"noted/notebook"
	"noted/p2p"
)

// onLoopback makes a device on this machine's real sockets.
func onLoopback(t testing.TB, name string, listen ...string) *device {
	t.Helper()
	key := keyOf(name)
	d := &device{name: name, id: notebook.DeviceID(key[32:]), key: key}
	d.log = newMemory(d.id)
	n, err := p2p.New(p2p.Config{Key: key, Log: d.log, Listen: listen, Events: d.note})
	if err != nil {
		t.Fatal(err)
	}
	d.Node = n
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func TestOverRealSockets(t *testing.T) {
	for name, listen := range map[string]string{"quic": "/ip4/127.0.0.1/udp/0/quic-v1", "tcp": "/ip4/127.0.0.1/tcp/0"} {
		t.Run(name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			a, b := onLoopback(t, "laptop", listen), onLoopback(t, "phone", listen)
			introduce(a, b)
			for k := range 500 {
				a.log.write(byte(k))
			}
			if err := b.SetAddresses(a.id, a.Addresses()); err != nil {
				t.Fatal(err)
			}
			await(t, "to be equal", func() bool { return equal(a, b) && a.log.len() == 500 })
			b.log.write(1)
			await(t, "the live entry", func() bool { return equal(a, b) })
			await(t, "the phone's address", func() bool { return slices.Equal(a.peer(b).Addresses, b.Addresses()) })
			a.log.remove(b.id)
			a.Drop(b.id)
			await(t, "the phone to notice", func() bool { return !b.peer(a).Connected && b.peer(a).Problem != "" })
			a.stop()
			b.stop()
			goleak.VerifyNone(t, leaks, goleak.IgnoreAnyFunction("github.com/libp2p/go-libp2p/p2p/transport/tcpreuse.init"))
		})
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	a := onLoopback(t, "laptop", "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1")
	for _, used := range a.Addresses() {
		_, err := p2p.New(p2p.Config{Key: keyOf("phone"), Log: newMemory(notebook.DeviceID{}), Listen: []string{"/ip4/127.0.0.1/tcp/0", used}})
		if err == nil || !strings.Contains(err.Error(), used) {
			t.Errorf("%s: %v", used, err)
		}
	}
}

// BenchmarkPush is from an entry's commit on one device to its acknowledgement
// back there: push, decode, accept, acknowledge.
func BenchmarkPush(b *testing.B) {
	for name, listen := range map[string]string{"quic": "/ip4/127.0.0.1/udp/0/quic-v1", "tcp": "/ip4/127.0.0.1/tcp/0"} {
		b.Run(name, func(b *testing.B) {
			x, y := onLoopback(b, "laptop", listen), onLoopback(b, "phone", listen)
			introduce(x, y)
			if err := y.SetAddresses(x.id, x.Addresses()); err != nil {
				b.Fatal(err)
			}
			await(b, "a connection", func() bool { return x.peer(y).Connected && y.peer(x).Connected })
			acked := make(chan struct{}, 16)
			x.log.onAck = func() { acked <- struct{}{} }
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				x.log.write(1)
				<-acked
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkReconnect is a program's start to the end of the heads exchange with
// a log of 10,000 entries in which nothing changed.
func BenchmarkReconnect(b *testing.B) {
	const listen = "/ip4/127.0.0.1/udp/0/quic-v1"
	x := onLoopback(b, "laptop", listen)
	log := newMemory(notebook.DeviceID{})
	for range 10_000 {
		x.log.write(1)
	}
	log.entries, log.places, log.chain = x.log.entries, x.log.places, x.log.chain
	var took []time.Duration
	var sent int64
	for b.Loop() {
		b.StopTimer()
		y := onLoopback(b, fmt.Sprint("phone ", len(took)), listen) // one device may not come back that often
		y.log.entries, y.log.places, y.log.chain = log.entries, log.places, log.chain
		introduce(x, y)
		began := time.Now()
		b.StartTimer()
		if err := y.SetAddresses(x.id, x.Addresses()); err != nil {
			b.Fatal(err)
		}
		await(b, "a connection", func() bool { return y.peer(x).Connected })
		took = append(took, time.Since(began))
		b.StopTimer()
		await(b, "the other side", func() bool { return x.peer(y).Connected })
		s, _ := p2p.Traffic(y.Node, x.id)
		r, _ := p2p.Traffic(x.Node, y.id)
		sent = s + r
		y.stop()
		x.log.remove(y.id) // or the laptop dials all those that are gone
		x.Drop(y.id)
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(sent), "bytes")
}

// BenchmarkFirstSync is 10,000 entries of 2 KiB to an empty log in memory.
func BenchmarkFirstSync(b *testing.B) {
	const listen = "/ip4/127.0.0.1/udp/0/quic-v1"
	x := onLoopback(b, "laptop", listen)
	for range 10_000 {
		x.log.write(make([]byte, 2<<10)...)
	}
	for n := 0; b.Loop(); n++ {
		y := onLoopback(b, fmt.Sprint("phone ", n), listen)
		introduce(x, y)
		if err := y.SetAddresses(x.id, x.Addresses()); err != nil {
			b.Fatal(err)
		}
		await(b, "everything", func() bool { return y.log.len() == 10_000 })
		b.StopTimer()
		y.stop()
		x.log.remove(y.id) // or the laptop dials all those that are gone
		x.Drop(y.id)
		b.StartTimer()
	}
}
