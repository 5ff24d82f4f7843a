package p2p

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
)

// Bounds of pairing. A stranger's last frame gets a moment to arrive before
// its connection is closed.
const (
	maxPairings = 4
	linger      = time.Second
)

// pairingWindow is the time in which strangers may knock.
type pairingWindow struct {
	ctx     context.Context
	cancel  context.CancelFunc
	handler func(context.Context, notebook.DeviceID, io.ReadWriteCloser)
	active  map[peer.ID]int // pairings under way; guarded by the node's mutex
}

// OpenWindow lets devices that are not in the roster reach handler, and nothing
// else, until the returned function is called, which also ends the contexts of
// handlers that still run. Of two windows the newer one counts. A handler owns
// its stream; the peer's id is proven.
func (n *Node) OpenWindow(handler func(ctx context.Context, peer notebook.DeviceID, s io.ReadWriteCloser)) (shut func()) {
	w := &pairingWindow{handler: handler, active: make(map[peer.ID]int)}
	n.mu.Lock()
	old := n.window
	w.ctx, w.cancel = context.WithCancel(context.Background())
	n.window = w
	n.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	return func() {
		w.cancel()
		n.mu.Lock()
		if n.window == w {
			n.window = nil
		}
		n.mu.Unlock()
		for _, p := range n.host.Network().Peers() {
			n.mu.Lock()
			active := w.active[p] > 0
			n.mu.Unlock()
			if !active {
				n.closeStranger(p)
			}
		}
	}
}

// pairing reports whether strangers may knock.
func (n *Node) pairing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.window != nil && n.window.ctx.Err() == nil
}

// answerPairing takes a stream to the pairing handler, if there is one.
func (n *Node) answerPairing(s network.Stream) {
	ctx, ok := n.enter()
	if !ok {
		s.Reset()
		return
	}
	defer n.wg.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := s.Conn().RemotePeer()
	d, ok := deviceID(p)
	n.mu.Lock()
	w := n.window
	total := 0
	if w != nil {
		for _, k := range w.active {
			total += k
		}
	}
	if !ok || w == nil || w.ctx.Err() != nil || total >= maxPairings {
		n.mu.Unlock()
		s.Reset()
		return
	}
	w.active[p]++
	n.mu.Unlock()

	defer context.AfterFunc(w.ctx, cancel)()
	w.handler(ctx, d, s)
	s.Close()
	n.lingerWith(p)

	n.mu.Lock()
	if w.active[p]--; w.active[p] == 0 {
		delete(w.active, p)
	}
	n.mu.Unlock()
	n.closeStranger(p)
}

// lingerWith waits while a stranger may still have to hear the last frame.
func (n *Node) lingerWith(p peer.ID) {
	if !n.known(p) {
		time.Sleep(linger)
	}
}

// closeStranger closes the connections of a peer that is no member and does not
// pair with this device.
func (n *Node) closeStranger(p peer.ID) {
	if n.known(p) || n.calling(p) != nil {
		return
	}
	n.mu.Lock()
	active := n.window != nil && n.window.active[p] > 0
	n.mu.Unlock()
	if !active {
		n.host.Network().ClosePeer(p)
	}
}

// calling are the addresses of a peer that this device dials to pair with it,
// nil if it does not.
func (n *Node) calling(p peer.ID) []ma.Multiaddr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[p]
}

// DialPairing reaches the device that made an invitation. That it is this one
// is proven. Closing the stream ends what was allowed for it.
func (n *Node) DialPairing(ctx context.Context, device notebook.DeviceID, addresses []string) (io.ReadWriteCloser, error) {
	var addrs []ma.Multiaddr
	for _, s := range addresses {
		if a, err := parseAddress(s); err == nil && len(addrs) < maxAddresses {
			addrs = append(addrs, a)
		}
	}
	id, err := peerID(device)
	switch {
	case device == n.self:
		return nil, notebook.Errorf(notebook.CodeInvalid, "this is this device's own invitation").With("use it on the device that is to join")
	case err != nil || len(addrs) == 0:
		return nil, notebook.Errorf(notebook.CodeInvalid, "the invitation has no address that can be dialed").With("make a new invitation while the other device is on a network")
	}
	dialing, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	select {
	case <-n.began: // who has just started a daemon need not wait for its network
	case <-dialing.Done():
	}
	if _, ok := n.enter(); !ok {
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the network is closed").With("start the daemon again: noted daemon run")
	}
	n.mu.Lock()
	n.calls[id] = addrs
	n.mu.Unlock()
	end := sync.OnceFunc(func() {
		defer n.wg.Done()
		n.mu.Lock()
		delete(n.calls, id)
		n.mu.Unlock()
		n.closeStranger(id)
	})
	n.clearDialBackoff(id)
	s, err := n.callPairing(dialing, peer.AddrInfo{ID: id, Addrs: addrs})
	if err != nil {
		end()
		n.logger.Info("the inviting device was not reached", "device", device, "error", err)
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the inviting device does not answer at the %d addresses of the invitation", len(addrs)).
			With("see that both are on one network and the invitation is still shown there, then try again")
	}
	return &pairingCall{s, end, n}, nil
}

func (n *Node) callPairing(ctx context.Context, to peer.AddrInfo) (network.Stream, error) {
	if err := n.host.Connect(ctx, to); err != nil {
		return nil, err
	}
	return n.host.NewStream(network.WithNoDial(ctx, "dialed"), to.ID, pairProtocol)
}

// pairingCall is a pairing's stream at the side that dialed.
type pairingCall struct {
	network.Stream
	end  func()
	node *Node
}

func (c *pairingCall) Close() error {
	err := c.Stream.Close()
	go func() {
		c.node.lingerWith(c.Conn().RemotePeer())
		c.end()
	}()
	return err
}
