package p2ptest

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/marcopolo/simnet"
	"github.com/quic-go/quic-go"
	"go.uber.org/fx"

	"noted/notebook"
	"noted/p2p"
)

// Links is a network inside the process: QUIC over simulated packets, on the
// clock of the bubble it was made in.
type Links struct {
	net *simnet.Simnet

	mu    sync.Mutex
	hosts map[notebook.DeviceID]string // device → IP
	cut   map[[2]string]bool           // from IP, to IP
	bytes map[[2]string]int64
}

// port is where every node listens, each on an IP of its own.
const port = 8000

// bandwidth of each link, bits a second. It is not what a test is about.
const bandwidth = 100e6

// New makes a network in which a packet takes latency from one node to another.
// It is closed with the test; the nodes have to be closed before, inside the bubble.
func New(t testing.TB, latency time.Duration) *Links {
	l := &Links{
		net:   &simnet.Simnet{LatencyFunc: simnet.StaticLatency(latency), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		hosts: make(map[notebook.DeviceID]string),
		cut:   make(map[[2]string]bool),
		bytes: make(map[[2]string]int64),
	}
	l.net.Start()
	t.Cleanup(l.net.Close)
	oneProcessor(t)
	return l
}

// Attach gives the node that c configures its place in the network: the same for
// the same key, so that a node may be closed and made again.
func (l *Links) Attach(c *p2p.Config) {
	c.Listen = []string{l.Address(device(c.Key))}
	var own ownAddress
	c.QUIC = libp2p.QUICReuse(
		func(lc fx.Lifecycle, reset quic.StatelessResetKey, token quic.TokenGeneratorKey, o ...quicreuse.Option) (*quicreuse.ConnManager, error) {
			m, err := quicreuse.NewConnManager(reset, token, o...)
			if err == nil {
				lc.Append(fx.StopHook(m.Close))
			}
			return m, err
		},
		quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) { return &own, nil }),
		quicreuse.OverrideListenUDP(func(_ string, a *net.UDPAddr) (net.PacketConn, error) {
			own.set(a.IP)
			link := simnet.LinkSettings{BitsPerSecond: bandwidth}
			return &endpoint{l.net.NewEndpoint(a, simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}), a.IP.String(), l}, nil
		}),
	)
}

// Address is where a device's node listens, or will.
func (l *Links) Address(d notebook.DeviceID) string {
	return fmt.Sprintf("/ip4/%s/udp/%d/quic-v1", l.ip(d), port)
}

func (l *Links) ip(d notebook.DeviceID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[d] == "" {
		l.hosts[d] = simnet.IntToPublicIPv4(len(l.hosts)).String()
	}
	return l.hosts[d]
}

// Cut loses every packet between the two, in both directions, until Heal.
func (l *Links) Cut(a, b notebook.DeviceID) { l.set(a, b, true) }

// Heal ends what Cut began.
func (l *Links) Heal(a, b notebook.DeviceID) { l.set(a, b, false) }

func (l *Links) set(a, b notebook.DeviceID, cut bool) {
	x, y := l.ip(a), l.ip(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]string{x, y}], l.cut[[2]string{y, x}] = cut, cut
}

// Bytes is how much from sent to to so far, in UDP payload.
func (l *Links) Bytes(from, to notebook.DeviceID) int64 {
	x, y := l.ip(from), l.ip(to)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes[[2]string{x, y}]
}

func device(key ed25519.PrivateKey) notebook.DeviceID {
	return notebook.DeviceID(key.Public().(ed25519.PublicKey))
}

// endpoint is a node's socket.
type endpoint struct {
	*simnet.SimConn
	ip    string
	links *Links
}

func (e *endpoint) WriteTo(p []byte, to net.Addr) (int, error) {
	l := e.links
	way := [2]string{e.ip, to.(*net.UDPAddr).IP.String()}
	l.mu.Lock()
	cut := l.cut[way]
	l.bytes[way] += int64(len(p))
	l.mu.Unlock()
	if cut {
		return len(p), nil
	}
	return e.SimConn.WriteTo(p, to)
}

// ownAddress answers QUIC's question from where it should send.
type ownAddress struct {
	mu sync.Mutex
	ip net.IP
}

func (o *ownAddress) set(ip net.IP) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ip = ip
}

// PreferredSourceIPForDestination is the one address that the node has.
func (o *ownAddress) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ip, nil
}
