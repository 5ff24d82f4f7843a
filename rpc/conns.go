package rpc

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
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

// turnAway writes one answer without reading anything, in the form of an error
// of the protocol, and closes. The answer fits any socket's empty buffer, so
// the accept loop does not wait for the other end.
func (l *conns) turnAway(c net.Conn) {
	const body = `{"code":"unavailable","message":"the daemon has too many connections; close some and try again"}`
	if held, ok := l.refused.pass(time.Now()); ok {
		l.log.Warn("rpc: connection refused", "why", "too many are open", "held back", held)
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	_ = c.Close()
}

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
