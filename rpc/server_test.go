package rpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// watched is a house whose desk has watchers.
func watched(h *house) {
	h.events = make(chan notebook.Event)
	h.began, h.ended = make(chan string, 256), make(chan error, 256)
}

func TestWatchDelivers(t *testing.T) {
	h := newHouse(t, watched)
	got := make(chan notebook.Event, 3)
	done := make(chan error, 1)
	go func() {
		done <- h.client(t, RoleViewer).Watch(within10(t), func(e notebook.Event) error { got <- e; return nil })
	}()
	receive(t, "the watch", h.began)
	for i := range 3 {
		want := notebook.Event{Kind: "page", Text: fmt.Sprint(i), Page: notebook.PageID{byte(i)}}
		h.events <- want
		// Each is there before the next is sent: nothing waits in a buffer.
		if e := receive(t, "the event", got); e != want {
			t.Errorf("the watcher sees %+v, want %+v", e, want)
		}
	}
	close(h.events)
	if err := receive(t, "the end", done); err != nil {
		t.Errorf("the daemon ended the watch: %v", err)
	}
}

// However a watcher leaves, the daemon's side of the call ends.
func TestAWatcherThatLeaves(t *testing.T) {
	enough := errors.New("seen enough")
	for name, leave := range map[string]func(t *testing.T, h *house, c *LocalClient) error{
		"it cancels": func(t *testing.T, h *house, c *LocalClient) error {
			ctx, cancel := context.WithCancel(within10(t))
			done := make(chan error, 1)
			go func() { done <- c.Watch(ctx, func(notebook.Event) error { return nil }) }()
			receive(t, "the watch", h.began)
			cancel()
			if err := receive(t, "the client's end", done); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the client sees %w", err)
			}
			return nil
		},
		"its time is over": func(t *testing.T, _ *house, c *LocalClient) error {
			ctx, cancel := context.WithTimeout(within10(t), 50*time.Millisecond)
			defer cancel()
			wantCode(t, c.Watch(ctx, func(notebook.Event) error { return nil }), notebook.CodeTimeout)
			return nil
		},
		"it has seen enough": func(t *testing.T, h *house, c *LocalClient) error {
			done := make(chan error, 1)
			go func() { done <- c.Watch(within10(t), func(notebook.Event) error { return enough }) }()
			h.events <- notebook.Event{}
			if err := receive(t, "the client's end", done); !errors.Is(err, enough) {
				return fmt.Errorf("the client sees %w", err)
			}
			return nil
		},
		"its process dies": func(t *testing.T, h *house, _ *LocalClient) error {
			c := rawWatch(t, h.path)
			receive(t, "the watch", h.began)
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, watched)
			if err := leave(t, h, h.client(t, RoleOwner)); err != nil {
				t.Error(err)
			}
			if err := receive(t, "the daemon's end", h.ended); err == nil {
				t.Error("the daemon's side ended without a reason")
			}
			// The place is free again.
			for start := time.Now(); ; time.Sleep(time.Millisecond) {
				h.server.mu.Lock()
				left := len(h.server.usage)
				h.server.mu.Unlock()
				if left == 0 {
					return
				}
				if time.Since(start) > 10*time.Second {
					t.Fatalf("%d clients still have calls", left)
				}
			}
		})
	}
}

// rawWatch opens a watch by hand and reads nothing.
func rawWatch(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	const body = "\x00\x00\x00\x00\x02{}"
	_, err = fmt.Fprintf(c, "POST /noted.v1.Daemon/Watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s", viewerToken, len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A watcher that reads nothing holds up its own call for a while, and no other.
func TestASlowWatcherHoldsNobodyUp(t *testing.T) {
	h := newHouse(t, watched, func(h *house) { h.server.bounds.write = 300 * time.Millisecond })
	rawWatch(t, h.path)
	receive(t, "the slow watch", h.began)
	// Only the slow one watches now. It is given events until it takes no more.
	big := notebook.Event{Text: strings.Repeat("x", 64<<10)}
	for stuck := false; !stuck; {
		select {
		case h.events <- big:
		case <-time.After(100 * time.Millisecond):
			stuck = true
		case err := <-h.ended:
			t.Fatalf("the slow watcher ended before it was stuck: %v", err)
		}
	}
	c := h.client(t, RoleOwner)
	got := make(chan notebook.Event, 1)
	go func() { _ = c.Watch(within10(t), func(e notebook.Event) error { got <- e; return nil }) }()
	receive(t, "the other watch", h.began)
	h.events <- notebook.Event{Text: "hello"}
	if e := receive(t, "the other's event", got); e.Text != "hello" {
		t.Errorf("the other watcher sees %q", e.Text)
	}
	if _, err := c.Pages(within10(t)); err != nil {
		t.Errorf("a call beside it: %v", err)
	}
	if err := receive(t, "the slow watcher's end", h.ended); err == nil {
		t.Error("the slow watcher ended without a reason")
	}
}

// A watch outlives the time that a request may take to come in, over both
// versions of HTTP.
func TestAWatchOutlivesTheReadDeadline(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		t.Run("HTTP/"+version, func(t *testing.T) {
			h := newHouse(t, watched, func(h *house) { h.server.bounds.read, h.server.bounds.write = 50*time.Millisecond, 50*time.Millisecond })
			transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", h.path)
			}}
			transport.Protocols.SetHTTP1(version == "1")
			transport.Protocols.SetUnencryptedHTTP2(version == "2")
			t.Cleanup(transport.CloseIdleConnections)
			d := notedv1.NewDaemonClient(&http.Client{Transport: bearer{viewerToken, transport}}, "http://localhost")
			ctx, cancel := context.WithCancel(within10(t))
			defer cancel()
			s, err := d.Watch(ctx, &notedv1.WatchRequest{})
			if err != nil {
				t.Fatal(err)
			}
			receive(t, "the watch", h.began)
			for i := range 3 {
				time.Sleep(120 * time.Millisecond)
				h.events <- notebook.Event{Text: fmt.Sprint(i)}
				if !s.Receive() || s.Msg().GetEvent().GetText() != fmt.Sprint(i) {
					t.Fatalf("event %d: %v", i, s.Err())
				}
			}
		})
	}
}

// countingBody is an endless body that counts what was taken of it.
type countingBody struct {
	taken atomic.Int64
	first string
}

func (b *countingBody) Read(p []byte) (int, error) {
	n := copy(p, b.first)
	b.first = b.first[n:]
	for i := n; i < len(p); i++ {
		p[i] = ' '
	}
	b.taken.Add(int64(len(p)))
	return len(p), nil
}

// A body that is too large is refused before it is decoded, and the daemon
// takes no more of it than its bound, however it comes.
func TestLargeBodies(t *testing.T) {
	const slack = 2 << 20 // buffers of both sides and the kernel
	for _, c := range []struct {
		name, route, contentType, first string
		length                          int64 // -1: not said
		most                            int64
		says                            string // where there still is an answer
	}{
		{"said in advance", getRoute, "application/json", "{", 1 << 30, 0, "resource_exhausted"},
		{"said in advance, of a page", putRoute, "application/json", "{", 1 << 30, 0, "resource_exhausted"},
		{"not said", getRoute, "application/json", "{", -1, defaultBounds.request, "resource_exhausted"},
		{"not said, of a page", putRoute, "application/json", "{", -1, defaultBounds.text, "resource_exhausted"},
		{"not said, in binary", putRoute, "application/proto", "\x0a\xff\xff\xff\x7f", -1, defaultBounds.text, "resource_exhausted"},
		{"a message that says four GiB", "/noted.v1.Daemon/Watch", "application/connect+json", "\x00\xff\xff\xff\xff", -1, defaultBounds.request, "resource_exhausted"},
		{"the same in gRPC", "/noted.v1.Daemon/Watch", "application/grpc", "\x00\xff\xff\xff\xff", -1, defaultBounds.request, "Grpc-Status:[8]"},
		{"an endless row of messages", "/noted.v1.Daemon/Watch", "application/connect+json", "\x00\x00\x00\x00\x02{}\x00\x00\x00\x00\x02{}\x00\xff\xff\xff\xff", -1, defaultBounds.request, "multiple messages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			body := &countingBody{first: c.first}
			q, err := http.NewRequestWithContext(within10(t), http.MethodPost, "http://localhost"+c.route, io.NopCloser(body))
			if err != nil {
				t.Fatal(err)
			}
			q.ContentLength = c.length
			q.Header.Set("Content-Type", c.contentType)
			q.Header.Set("Authorization", "Bearer "+ownerToken)
			res, err := plainClient(t, h.path).Do(q)
			if err == nil {
				b, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if all := fmt.Sprint(string(b), res.Trailer); !strings.Contains(all, c.says) {
					t.Errorf("the answer is %d %s", res.StatusCode, all)
				}
			}
			runtime.ReadMemStats(&after)
			if h.count() != 0 {
				t.Error("it reached the daemon")
			}
			if n := body.taken.Load(); n > c.most+slack {
				t.Errorf("the daemon took %d bytes and may take %d", n, c.most)
			}
			// A buffer that doubles until it holds the bound has allocated less than
			// four times that, and twice that under the race detector.
			if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 8*c.most+2*slack {
				t.Errorf("%d bytes were allocated for a bound of %d", grown, c.most)
			}
		})
	}
}

// The largest text that a page may have fits, however JSON writes it.
func TestALargePageFits(t *testing.T) {
	h := newHouse(t)
	body := strings.Repeat("\\u0041", notebook.MaxBody)
	got := post(t, plainClient(t, h.path), putRoute, ownerToken, `{"put":{"page":"`+page16+`","base":{},"body":"`+body+`"}}`)
	if got.status != http.StatusOK {
		t.Fatalf("the answer is %d %.200s", got.status, got.body)
	}
	if put := h.last().args[0].(notebook.Put); len(put.Body) != notebook.MaxBody {
		t.Errorf("%d bytes arrived", len(put.Body))
	}
	_, err := h.client(t, RoleOwner).Put(within10(t), notebook.Put{
		Page: notebook.PageID{1}, Base: notebook.Revision{}, Body: strings.Repeat("x", int(defaultBounds.text)),
	})
	if e := wantCode(t, err, notebook.CodeExhausted); !strings.Contains(e.Message, "too large") || e.Hint == "" {
		t.Errorf("one that is far too large: %v", e)
	}
	if h.count() != 1 {
		t.Error("it reached the daemon")
	}
}

// A small body that unpacks to a large one is not unpacked.
func TestCompressionIsNotSpoken(t *testing.T) {
	h := newHouse(t)
	got := post(t, plainClient(t, h.path), getRoute, ownerToken, "\x1f\x8b\x08", func(q *http.Request) { q.Header.Set("Content-Encoding", "gzip") })
	if got.Code != "unimplemented" || h.count() != 0 {
		t.Errorf("the answer is %s", got.body)
	}
}

// A client that sends its body a byte at a time is cut off.
func TestASlowBodyIsCutOff(t *testing.T) {
	h := newHouse(t, func(h *house) { h.server.bounds.read = 200 * time.Millisecond })
	c, err := net.Dial("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", getRoute, ownerToken)
	go func() {
		for {
			if _, err := c.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
	if h.count() != 0 {
		t.Error("it reached the daemon")
	}
}

// One client cannot take the places of the others, and gets its own back.
func TestAClientHasSoManyCalls(t *testing.T) {
	h := newHouse(t, watched, func(h *house) { h.server.bounds.calls = 3 })
	agent := h.client(t, RoleAgent)
	ctx, cancel := context.WithCancel(within10(t))
	defer cancel()
	for range 3 {
		go func() { _ = agent.Watch(ctx, func(notebook.Event) error { return nil }) }()
		receive(t, "the watch", h.began)
	}
	_, err := agent.Pages(within10(t))
	if e := wantCode(t, err, notebook.CodeExhausted); !strings.Contains(e.Message, "3 calls") || e.Hint == "" {
		t.Errorf("the error is %v", e)
	}
	if _, err := h.client(t, RoleOwner).Pages(within10(t)); err != nil {
		t.Errorf("another client: %v", err)
	}
	cancel()
	for range 3 {
		receive(t, "the end of a watch", h.ended)
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err = agent.Pages(within10(t)); err == nil || time.Since(start) > 10*time.Second {
			break
		}
	}
	if err != nil {
		t.Errorf("with the places free again: %v", err)
	}
}

// Bytes under way are bounded for each client too: what a request says that it
// has, or may have, counts until its call ends.
func TestAClientHasSoManyBytes(t *testing.T) {
	s := newServer(book{}, ServerConfig{}, defaultBounds)
	large := func(n int64) *http.Request { return &http.Request{ContentLength: n} }
	text := s.routes[putRoute]
	agent := Client{Role: RoleAgent, Name: "a"}
	var leave []func()
	for range s.bounds.bytes / s.bounds.text {
		l, f := s.enter(agent, text, large(-1))
		if f != nil {
			t.Fatalf("call %d: %v", len(leave), f.err)
		}
		leave = append(leave, l)
	}
	if _, f := s.enter(agent, text, large(1)); f == nil || f.err.Code != notebook.CodeExhausted {
		t.Error("one byte more is taken")
	}
	if l, f := s.enter(Client{Role: RoleAgent, Name: "b"}, text, large(1)); f != nil {
		t.Errorf("another agent: %v", f.err)
	} else {
		l()
	}
	leave[0]()
	if l, f := s.enter(agent, text, large(1)); f != nil {
		t.Errorf("with one call done: %v", f.err)
	} else {
		l()
	}
	for _, l := range leave[1:] {
		l()
	}
	if len(s.usage) != 0 {
		t.Errorf("after all calls %v is left", s.usage)
	}
}

// A process has so many connections; the next is told so.
func TestAProcessHasSoManyConnections(t *testing.T) {
	for name, set := range map[string]func(*bounds){
		"of a process": func(b *bounds) { b.connsEach = 2 },
		"in all":       func(b *bounds) { b.conns = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, func(h *house) { set(&h.server.bounds) })
			// ask makes a connection and one call, and keeps the connection open.
			ask := func() (net.Conn, string) {
				c, err := net.Dial("unix", h.path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", statusRoute, ownerToken)
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(res.Body)
				return c, fmt.Sprint(res.StatusCode, " ", string(b))
			}
			first, got := ask()
			if !strings.HasPrefix(got, "200 ") {
				t.Fatalf("the first connection: %s", got)
			}
			if _, got := ask(); !strings.HasPrefix(got, "200 ") {
				t.Fatalf("the second connection: %s", got)
			}
			if _, got := ask(); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "too many connections") {
				t.Errorf("the third connection: %s", got)
			}
			_, err := h.client(t, RoleOwner).Status(within10(t))
			if e := wantCode(t, err, notebook.CodeUnavailable); !strings.Contains(e.Message, "too many connections") || e.Hint == "" {
				t.Errorf("the client learns %v", e)
			}
			_ = first.Close()
			for start := time.Now(); ; time.Sleep(time.Millisecond) {
				if _, got = ask(); strings.HasPrefix(got, "200 ") {
					break
				}
				if time.Since(start) > 10*time.Second {
					t.Fatalf("with one closed: %s", got)
				}
			}
		})
	}
}

// When the daemon stops, streams end at once with the reason, calls under way
// finish, and the socket is gone.
func TestTheDaemonStops(t *testing.T) {
	h := newHouse(t, watched, func(h *house) { h.finish = make(chan struct{}) })
	c := h.client(t, RoleOwner)
	watch, status := make(chan error, 1), make(chan error, 1)
	go func() { watch <- c.Watch(within10(t), func(notebook.Event) error { return nil }) }()
	receive(t, "the watch", h.began)
	go func() { _, err := c.Status(within10(t)); status <- err }()
	receive(t, "the call", h.began)

	var stopped sync.WaitGroup
	stopped.Go(h.stop)
	if e := wantCode(t, receive(t, "the watch's end", watch), notebook.CodeUnavailable); e.Message != errStopping.Message {
		t.Errorf("the watcher learns %v", e)
	}
	receive(t, "the daemon's side of the watch", h.ended)
	close(h.finish)
	if err := receive(t, "the call's answer", status); err != nil {
		t.Errorf("the call under way: %v", err)
	}
	stopped.Wait()
	if _, err := os.Lstat(h.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	_, err := c.Status(within10(t))
	wantCode(t, err, notebook.CodeUnavailable)
}

// A call that does not end holds a stopping daemon for its grace alone.
func TestACallThatDoesNotEndIsCutOff(t *testing.T) {
	h := newHouse(t, watched, func(h *house) {
		h.finish = make(chan struct{})
		h.server.bounds.grace = 100 * time.Millisecond
	})
	status := make(chan error, 1)
	go func() { _, err := h.client(t, RoleOwner).Status(within10(t)); status <- err }()
	receive(t, "the call", h.began)
	h.stop()
	if err := receive(t, "the call's end", status); err == nil {
		t.Error("the call was answered")
	}
	if err := receive(t, "the daemon's side", h.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the daemon's side ended with %v", err)
	}
}

// A deadline and a cancel reach the daemon's side of a call.
func TestACallThatIsGivenUpEnds(t *testing.T) {
	h := newHouse(t, watched, func(h *house) { h.finish = make(chan struct{}) })
	ctx, cancel := context.WithTimeout(within10(t), 50*time.Millisecond)
	defer cancel()
	_, err := h.client(t, RoleOwner).Status(ctx)
	wantCode(t, err, notebook.CodeTimeout)
	if err := receive(t, "the daemon's side", h.ended); err == nil {
		t.Error("it ended without a reason")
	}
	ctx, cancel = context.WithCancel(within10(t))
	done := make(chan error, 1)
	go func() { _, err := h.client(t, RoleOwner).Status(ctx); done <- err }()
	receive(t, "the first call", h.began)
	receive(t, "the second call", h.began)
	cancel()
	if err := receive(t, "the client's end", done); !errors.Is(err, context.Canceled) {
		t.Errorf("the client sees %v", err)
	}
	receive(t, "the daemon's side", h.ended)
}
