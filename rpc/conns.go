package rpc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"noted/notebook"
)

// conn is an accepted connection together with who is at its other end.
type conn struct {
	net.Conn
	peer    peer
	unknown error // why peer is not known; nil where it is
	release func()
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite lets the HTTP server close gently: what it wrote last is still read.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// conns is a listener that takes no more connections than a bound, in all and
// of one process: each costs memory before anybody has shown a token.
type conns struct {
	net.Listener
	most      int // open at once
	mostOfOne int // open at once of one process
	log       *slog.Logger
	refused   gate
	leaving   atomic.Int32 // that are being told that there is no room

	mu   sync.Mutex
	open int
	of   map[int32]int // by process
}

// Accept returns the next connection that there is room for; the others are
// told so and closed.
func (l *conns) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, unknown := peerOf(c)
		if !l.take(p.pid) {
			l.turnAway(c)
			continue
		}
		return &conn{Conn: c, peer: p, unknown: unknown, release: sync.OnceFunc(func() { l.give(p.pid) })}, nil
	}
}

func (l *conns) take(pid int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most || l.of[pid] >= l.mostOfOne {
		return false
	}
	if l.of == nil {
		l.of = map[int32]int{}
	}
	l.open++
	l.of[pid]++
	return true
}

func (l *conns) give(pid int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[pid]--; l.of[pid] == 0 {
		delete(l.of, pid)
	}
}

// errFull is what a connection that there is no room for is told.
var errFull = notebook.Errorf(notebook.CodeUnavailable, "the daemon has too many connections open").With("close some of its clients and try again")

// full is errFull as a body, in the protocol's form for a call without a stream.
var full = func() []byte {
	type detail struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	}
	e := withDetail(codes[errFull.Code], errFull)
	body := struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Details []detail `json:"details"`
	}{e.Code().String(), e.Message(), nil}
	for _, d := range e.Details() {
		body.Details = append(body.Details, detail{d.Type(), base64.RawStdEncoding.EncodeToString(d.Bytes())})
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // a struct of strings
	}
	return b
}()

// turnAway tells a connection that there is no room and closes it. A client
// takes no answer that comes before its request, so the first bytes are awaited
// for a moment; of connections beyond the few that may wait so, nothing is read.
func (l *conns) turnAway(c net.Conn) {
	if held, ok := l.refused.pass(time.Now()); ok {
		l.log.Warn("rpc: connection refused", "why", "too many are open", "held back", held)
	}
	if l.leaving.Add(1) > maxLeaving {
		l.leaving.Add(-1)
		_ = c.Close()
		return
	}
	go func() {
		defer l.leaving.Add(-1)
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		if n, _ := c.Read(make([]byte, 4<<10)); n == 0 {
			return
		}
		answer := http.Response{
			StatusCode: http.StatusServiceUnavailable, ProtoMajor: 1, ProtoMinor: 1, Close: true,
			Header:        http.Header{"Content-Type": {"application/json"}},
			ContentLength: int64(len(full)), Body: io.NopCloser(bytes.NewReader(full)),
		}
		_ = answer.Write(c) // the client may be gone
	}()
}

// maxLeaving is how many connections that there is no room for may wait for their answer.
const maxLeaving = 16

// gate lets a few messages a minute into the log, so that a client that is
// refused again and again cannot fill it. It is safe for concurrent use.
type gate struct {
	mu     sync.Mutex
	since  time.Time
	passed int
	held   int
}

// gateEach is how many messages pass in a minute.
const gateEach = 20

// pass reports whether a message may be logged now, and how many were held
// back before it.
func (g *gate) pass(now time.Time) (held int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.since) >= time.Minute {
		g.since, g.passed = now, 0
	}
	if g.passed >= gateEach {
		g.held++
		return 0, false
	}
	g.passed++
	held, g.held = g.held, 0
	return held, true
}
