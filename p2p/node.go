package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
)

// The protocols are not numbered: their first frames are, so that two versions
// can tell a person that they are two.
const (
	syncProtocol protocol.ID = "/noted/sync"
	pairProtocol protocol.ID = "/noted/pair"
)

// Config is what a node needs.
type Config struct {
	Key    ed25519.PrivateKey // the device's, and so its identity here
	Listen []string           // multiaddresses of QUIC and TCP, like /ip4/0.0.0.0/udp/0/quic-v1
	Log    Log
	Logger *slog.Logger // nil for none
	Events func(Event)  // nil for none; called from several goroutines, must return soon
	QUIC   Link         // nil for this machine's sockets; package p2ptest puts its links here
}

// Node is this device among the others.
type Node struct {
	self   notebook.DeviceID
	log    Log
	logger *slog.Logger
	events func(Event)
	host   host.Host
	run    uint64 // random, says to others that a program was started anew
	serial atomic.Uint64

	began chan struct{} // closed when Serve begins

	mu        sync.Mutex
	ctx       context.Context // of Serve; nil before
	ended     bool            // no new goroutine may begin
	peers     map[notebook.DeviceID]*member
	window    *pairingWindow
	calls     map[peer.ID][]ma.Multiaddr // pairings that this device dials
	strangers bucket                     // of events about them
	wg        sync.WaitGroup             // everything that Serve waits for
	closing   sync.Once
}

// New makes a node that listens, and answers nobody until [Node.Serve] runs.
func New(c Config) (*Node, error) {
	key, self, err := hostKey(c.Key)
	if err != nil {
		return nil, err
	}
	var listen []ma.Multiaddr
	for _, s := range c.Listen {
		a, err := parseAddress(s)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		listen = append(listen, a)
	}
	n := &Node{
		self: self, log: c.Log, logger: c.Logger, events: c.Events, run: rand.Uint64(),
		began:     make(chan struct{}),
		peers:     make(map[notebook.DeviceID]*member),
		calls:     make(map[peer.ID][]ma.Multiaddr),
		strangers: bucket{rate: 0.1, burst: 5},
	}
	if n.logger == nil {
		n.logger = slog.New(slog.DiscardHandler)
	}
	if n.events == nil {
		n.events = func(Event) {}
	}
	resources, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(resourceLimits()), rcmgr.WithMetricsDisabled())
	if err != nil {
		return nil, err
	}
	options := []libp2p.Option{
		libp2p.Identity(key),
		libp2p.NoListenAddrs,
		libp2p.NoTransports,
		libp2p.Transport(quic.NewTransport),
		libp2p.ResourceManager(&guard{resources, n.may}),
		libp2p.ConnectionGater(gate{n}),
		libp2p.ConnectionManager(connmgr.NullConnMgr{}),
		libp2p.DisableRelay(),
		libp2p.DisableMetrics(),
		libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.ForceReachabilityPrivate(), // nobody is asked to dial back
		libp2p.Ping(false),
		libp2p.UserAgent("noted"),
		libp2p.ProtocolVersion("noted"),
		// a device that is switched off for a week says nothing about the network
		libp2p.UDPBlackHoleSuccessCounter(nil),
		libp2p.IPv6BlackHoleSuccessCounter(nil),
	}
	if c.QUIC != nil {
		options = append(options, c.QUIC)
	} else {
		options = append(options,
			libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()), // two daemons on one port are a mistake
			libp2p.Security(noise.ID, noise.New),
			libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
		)
	}
	if n.host, err = libp2p.New(options...); err != nil {
		resources.Close()
		return nil, err
	}
	for _, a := range listen { // one at a time: together they succeed if one does
		if err := n.host.Network().Listen(a); err != nil {
			n.Close()
			return nil, fmt.Errorf("listen on %v: %w", a, err)
		}
	}
	return n, nil
}

// Serve connects to the members whose addresses are known, answers all of them,
// and keeps every exchange going, until ctx is done. Then it ends everything,
// waits for it, and closes the node.
func (n *Node) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.mu.Lock()
	if n.ctx != nil || n.ended {
		n.mu.Unlock()
		return errors.New("a node serves once")
	}
	n.ctx = ctx
	close(n.began)
	n.mu.Unlock()

	identified, err := n.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted), eventbus.BufSize(16))
	if err != nil {
		n.close()
		return err
	}
	n.host.SetStreamHandler(syncProtocol, n.answer)
	n.host.SetStreamHandler(pairProtocol, n.answerPairing)
	n.mu.Lock()
	for _, p := range n.peers { // not before the handlers: who is dialed may dial back
		n.keep(p)
	}
	n.mu.Unlock()
	var learning sync.WaitGroup
	learning.Go(func() {
		for e := range identified.Out() {
			n.learn(e.(event.EvtPeerIdentificationCompleted))
		}
	})
	<-ctx.Done()
	n.close()
	identified.Close()
	learning.Wait()
	return nil
}

// Close releases a node that was made and never served. It is harmless after [Node.Serve].
func (n *Node) Close() { n.close() }

// close lets nothing begin any more, waits for what runs, and closes the host.
func (n *Node) close() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.wg.Wait()
	n.closing.Do(func() {
		if err := n.host.Close(); err != nil {
			n.logger.Warn("the network did not close cleanly", "error", err)
		}
	})
}

// enter counts a goroutine that Serve waits for; false if none may begin.
func (n *Node) enter() (context.Context, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx == nil || n.ended || n.ctx.Err() != nil {
		return nil, false
	}
	n.wg.Add(1)
	return n.ctx, true
}

// Addresses are where this device can be reached now, best first.
func (n *Node) Addresses() []string {
	addrs := slices.DeleteFunc(n.host.Addrs(), func(a ma.Multiaddr) bool { return !dialable(a) })
	slices.SortStableFunc(addrs, byUse)
	return texts(addrs)
}

// Peers are the devices that have addresses or an exchange, by id.
func (n *Node) Peers() []PeerInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]PeerInfo, 0, len(n.peers))
	for _, p := range n.peers {
		info := PeerInfo{
			Device: p.device, Connected: p.live != nil && p.live.open, Addresses: texts(p.addrs),
			Since: p.since, Problem: p.problem,
		}
		if !info.Connected && len(p.addrs) > 0 {
			info.Retry = p.retry
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b PeerInfo) int { return slices.Compare(a.Device[:], b.Device[:]) })
	return out
}

// SetAddresses says where a device may be reached, and tries there at once. An
// error names an address that cannot be dialed; the others are used.
func (n *Node) SetAddresses(device notebook.DeviceID, addresses []string) error {
	if device == n.self {
		return errors.New("this device does not dial itself")
	}
	var problems []error
	var addrs []ma.Multiaddr
	for _, s := range addresses {
		a, err := parseAddress(s)
		if err != nil {
			problems = append(problems, err)
		} else if !slices.ContainsFunc(addrs, a.Equal) {
			addrs = append(addrs, a)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.member(device)
	if err != nil {
		return err
	}
	p.addrs = addrs[:min(len(addrs), maxAddresses)]
	p.backoff.reset()
	p.retry = time.Time{}
	n.keep(p)
	signal(p.wake)
	return errors.Join(problems...)
}

// Again asks every device that is connected for what it has sent and the log
// here did not take. Others are heard when they connect.
func (n *Node) Again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		if p.live != nil {
			signal(p.live.want)
		}
	}
}

// Drop ends every exchange and connection with a device and forgets its
// addresses. When it returns nothing more is sent to it, and nothing more that
// it has sent is given to the log than what the log is taking already. It may
// be called from within the log.
func (n *Node) Drop(device notebook.DeviceID) {
	n.mu.Lock()
	p := n.peers[device]
	delete(n.peers, device)
	var live *exchange
	if p != nil {
		if live = p.live; live != nil {
			live.cancel(errRemoved) // before the next line does it for another reason
		}
		p.stop()
	}
	n.mu.Unlock()
	if live != nil {
		live.stream.Reset()
	}
	if id, err := peerID(device); err == nil {
		n.host.Network().ClosePeer(id)
		n.host.Peerstore().ClearAddrs(id)
	}
}

// Reconnect ends the exchange with a device, so that the next one begins with
// what either side has: what this side did not take is sent again.
func (n *Node) Reconnect(device notebook.DeviceID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[device]; p != nil && p.live != nil {
		p.live.cancel(errAgain)
	}
}

// learn keeps the addresses of a member that its connection bears out.
func (n *Node) learn(e event.EvtPeerIdentificationCompleted) {
	d, ok := deviceID(e.Peer)
	if !ok || !n.log.Member(d) {
		return
	}
	fresh := learnable(e.ListenAddrs, e.Conn.RemoteMultiaddr())
	n.mu.Lock()
	p, err := n.member(d)
	if err != nil {
		n.mu.Unlock()
		return
	}
	addrs, changed := remember(p.addrs, fresh)
	p.addrs = addrs
	if !p.kept && p.live == nil {
		p.retry = time.Now().Add(firstDelay) // it has just called, and is about to say hello
	}
	n.keep(p)
	n.mu.Unlock()
	if changed {
		n.events(Event{Kind: Addresses, Device: d, Addresses: texts(addrs)})
	}
}

// turnedAway tells about a stranger, but not about all that a flood brings.
func (n *Node) turnedAway(p peer.ID, from ma.Multiaddr) {
	d, _ := deviceID(p)
	n.logger.Debug("turned a stranger away", "device", d, "from", from)
	n.mu.Lock()
	quiet := n.strangers.take(1, time.Now()) > 0
	if quiet {
		n.strangers.used-- // what is not told costs nothing
	}
	n.mu.Unlock()
	if !quiet {
		n.events(Event{Kind: Stranger, Device: d, Text: fmt.Sprintf("is not in this notebook and was turned away (it called from %v)", from)})
	}
}

// clearDialBackoff lets this package's own backoff be the only one.
func (n *Node) clearDialBackoff(p peer.ID) {
	if s, ok := n.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(p)
	}
}
