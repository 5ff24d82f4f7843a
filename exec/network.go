package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Network is how the daemon reaches the hosts that runs are granted. Its zero
// value is the machine's own network.
type Network struct {
	// Resolve returns the addresses of a name.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address with its port; it resolves nothing.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

func (n Network) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if n.Resolve != nil {
		return n.Resolve(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (n Network) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if n.Dial != nil {
		return n.Dial(ctx, to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

// A worker has no socket. It asks the parent for what it does with the network,
// one request after the other over one descriptor: a frame whose first byte is
// what it wants, answered by a frame whose first byte says whether that was done.
const (
	netOpen    = 'o' // HOST:PORT; answered by the number of the connection
	netSend    = 's' // number, bytes
	netReceive = 'r' // number, how many bytes at most; answered by some, none at the end
	netClose   = 'c' // number

	netDone   = '+'
	netFailed = '-'

	maxConnections = 4        // of a run at once
	maxNetFrame    = 64 << 10 // bytes of a frame
	maxNetBytes    = 16 << 20 // bytes of a run, each way
	maxAddresses   = 4        // of a name that are tried
	dialWithin     = 5 * time.Second
)

// proxy is the parent's end of it, for one run.
type proxy struct {
	network Network
	hosts   []string // HOST:PORT that were granted
	worker  *os.File
	ctx     context.Context
	cancel  context.CancelFunc
	ended   chan struct{}

	mu             sync.Mutex
	connections    map[byte]net.Conn
	closed         bool
	next           byte
	sent, received int64
}

// startProxy serves what comes from the worker until [proxy.close].
func startProxy(n Network, hosts []string, worker *os.File) *proxy {
	p := &proxy{network: n, hosts: hosts, worker: worker, connections: map[byte]net.Conn{}, ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.serve()
	return p
}

// close ends all connections and returns when nothing of the proxy is left.
func (p *proxy) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.connections {
		c.Close()
	}
	p.mu.Unlock()
	p.worker.Close()
	<-p.ended
}

func (p *proxy) serve() {
	defer close(p.ended)
	defer p.worker.Close() // who sent nonsense waits for no answer
	for {
		b, err := readFrame(p.worker, maxNetFrame)
		if err != nil || len(b) == 0 {
			return
		}
		answer, err := p.do(b[0], b[1:])
		head := byte(netDone)
		if err != nil {
			head, answer = netFailed, []byte(clipError(err.Error()))
		}
		if _, err := p.worker.Write(frame(append(append(make([]byte, 4, 5+len(answer)), head), answer...))); err != nil {
			return
		}
	}
}

var (
	errNet         = errors.New("the request is malformed")
	errConnection  = errors.New("there is no such connection")
	errConnections = fmt.Errorf("a run may have %d connections at once", maxConnections)
	errNetBytes    = fmt.Errorf("a run may send %d MiB, and receive as much", maxNetBytes>>20)
	errNoHost      = errors.New("it is not granted")
)

func (p *proxy) do(what byte, b []byte) ([]byte, error) {
	if what == netOpen {
		return p.open(string(b))
	}
	if len(b) == 0 {
		return nil, errNet
	}
	p.mu.Lock()
	c := p.connections[b[0]]
	p.mu.Unlock()
	if c == nil {
		return nil, errConnection
	}
	switch what {
	case netSend:
		if p.sent+int64(len(b)-1) > maxNetBytes {
			return nil, errNetBytes
		}
		n, err := c.Write(b[1:])
		p.sent += int64(n)
		return nil, netError(err)
	case netReceive:
		if len(b) != 5 {
			return nil, errNet
		}
		left := maxNetBytes - p.received
		if left <= 0 {
			return nil, errNetBytes
		}
		buffer := make([]byte, min(int64(binary.BigEndian.Uint32(b[1:])), maxNetFrame-1, left))
		n, err := c.Read(buffer)
		p.received += int64(n)
		if n > 0 || errors.Is(err, io.EOF) {
			err = nil
		}
		return buffer[:n], netError(err)
	case netClose:
		p.mu.Lock()
		delete(p.connections, b[0])
		p.mu.Unlock()
		return nil, netError(c.Close())
	}
	return nil, errNet
}

// netError takes addresses out of an error: they are not the fence's to know.
func netError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// open resolves, checks what came of it, and connects to the very address that
// was checked.
func (p *proxy) open(to string) ([]byte, error) {
	if !slices.Contains(p.hosts, to) {
		return nil, errNoHost
	}
	p.mu.Lock()
	n := len(p.connections)
	p.mu.Unlock()
	if n >= maxConnections {
		return nil, errConnections
	}
	ctx, cancel := context.WithTimeout(p.ctx, dialWithin)
	defer cancel()
	addresses, err := p.addresses(ctx, to)
	if err != nil {
		return nil, err
	}
	c, err := p.connect(ctx, addresses)
	if err != nil {
		return nil, netError(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	for p.next++; p.connections[p.next] != nil; p.next++ {
	}
	p.connections[p.next] = c
	return []byte{p.next}, nil
}

// connect connects to the first address that answers. One that is silent leaves
// the others their part of the time.
func (p *proxy) connect(ctx context.Context, addresses []netip.AddrPort) (c net.Conn, err error) {
	deadline, _ := ctx.Deadline()
	for i, a := range addresses {
		each, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addresses)-i))
		c, err = p.network.dial(each, a)
		cancel()
		if err == nil {
			return c, nil
		}
	}
	return nil, err
}

// addresses are where HOST:PORT may be reached. One that is named as such is
// taken as it is; what a name leads to must be an address of the internet.
func (p *proxy) addresses(ctx context.Context, to string) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(to); err == nil {
		return []netip.AddrPort{a}, nil
	}
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, errNet
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, errNet
	}
	found, err := p.network.resolve(ctx, host)
	if err != nil {
		return nil, resolveError(err)
	}
	var good []netip.AddrPort
	for _, a := range found {
		a = a.Unmap() // so come those that the machine's own list of hosts has
		if public(a) && len(good) < maxAddresses {
			good = append(good, netip.AddrPortFrom(a, uint16(number)))
		}
	}
	if len(good) == 0 {
		return nil, errors.New("its name leads to no address of the internet; a private one is reached where wants names the address itself")
	}
	return good, nil
}

// resolveError says no more than why a name led nowhere: what the resolver says has
// its own address in it, and this machine's.
func resolveError(err error) error {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dns.IsNotFound:
		return errors.New("no such host")
	case ok && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return errors.New("its name was not resolved in time")
	}
	return errors.New("its name cannot be resolved")
}

// notPublic are the addresses within the two families that are not everybody's:
// of this host, of private networks, of the carrier's, for tests and
// documentation, and those that stand for addresses of the other family.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// unicast6 are the addresses of version 6 that are assigned at all.
var unicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(all ...string) []netip.Prefix {
	var p []netip.Prefix
	for _, s := range all {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !unicast6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// netGrant is the worker's end.
type netGrant struct{ parent io.ReadWriter }

func (n *netGrant) ask(what byte, b ...byte) ([]byte, error) {
	if 1+len(b) > maxNetFrame {
		return nil, errNet
	}
	if _, err := n.parent.Write(frame(append(append(make([]byte, 4, 5+len(b)), what), b...))); err != nil {
		return nil, err
	}
	answer, err := readFrame(n.parent, maxNetFrame)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF // not the end of what a host sends
	case err != nil:
		return nil, err
	case len(answer) == 0:
		return nil, errFrame
	case answer[0] != netDone:
		return nil, errors.New(string(answer[1:]))
	}
	return answer[1:], nil
}

// open connects to a host that was granted, as wants names it.
func (n *netGrant) open(to string) (*netConn, error) {
	b, err := n.ask(netOpen, []byte(to)...)
	if err == nil && len(b) != 1 {
		err = errFrame
	}
	if err != nil {
		return nil, err
	}
	return &netConn{grant: n, number: b[0]}, nil
}

// netConn is a connection, which noted's parent process has.
type netConn struct {
	grant  *netGrant
	number byte
	buffer []byte
}

func (c *netConn) send(text string) error {
	const most = maxNetFrame - 2
	for len(text) > 0 {
		n := min(len(text), most)
		if _, err := c.grant.ask(netSend, append([]byte{c.number}, text[:n]...)...); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// receive returns some bytes, at most so many, or [io.EOF].
func (c *netConn) receive(most int) ([]byte, error) {
	if len(c.buffer) == 0 {
		b, err := c.grant.ask(netReceive, binary.BigEndian.AppendUint32([]byte{c.number}, maxNetFrame)...)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			return nil, io.EOF
		}
		c.buffer = b
	}
	n := min(most, len(c.buffer))
	b := c.buffer[:n]
	c.buffer = c.buffer[n:]
	return b, nil
}

func (c *netConn) close() error {
	_, err := c.grant.ask(netClose, c.number)
	return err
}
