package p2p

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"
)

// gate lets connections through to and from members of the roster, and pairing
// devices while a person pairs. It asks anew each time.
type gate struct{ node *Node }

func (g gate) InterceptPeerDial(p peer.ID) bool { return g.node.known(p) || g.node.calling(p) != nil }

// InterceptAddrDial keeps to the addresses that this device chose to believe;
// identify tells libp2p of more.
func (g gate) InterceptAddrDial(p peer.ID, a ma.Multiaddr) bool {
	if rest, id := peer.SplitAddr(a); id != "" {
		a = rest
	}
	return slices.ContainsFunc(g.node.calling(p), a.Equal) || g.node.known(p) && slices.ContainsFunc(g.node.believed(p), a.Equal)
}

func (g gate) InterceptAccept(network.ConnMultiaddrs) bool { return true } // nothing is known yet

func (g gate) InterceptSecured(dir network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	switch {
	case g.node.known(p), g.node.calling(p) != nil:
		return true
	case dir == network.DirInbound && g.node.pairing():
		return true
	}
	if dir == network.DirInbound {
		g.node.turnedAway(p, c.RemoteMultiaddr())
	}
	return false
}

func (g gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// may is what [guard] asks about each stream, in either direction.
func (n *Node) may(p peer.ID, proto protocol.ID) error {
	switch proto {
	case pairProtocol:
		if n.pairing() || n.calling(p) != nil {
			return nil
		}
	case syncProtocol, identify.ID, identify.IDPush:
		if n.known(p) {
			return nil
		}
	}
	return fmt.Errorf("peer %s may not speak %q now", p, proto)
}

// known reports whether the peer is a member now.
func (n *Node) known(p peer.ID) bool {
	d, ok := deviceID(p)
	return ok && n.log.Member(d)
}

// believed are the addresses at which this device would dial the peer.
func (n *Node) believed(p peer.ID) []ma.Multiaddr {
	d, ok := deviceID(p)
	if !ok {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if q := n.peers[d]; q != nil {
		return q.addrs
	}
	return nil
}
