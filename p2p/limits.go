package p2p

import (
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
)

// resourceLimits are what all connections together, and each alone, may take. A
// notebook has a handful of devices: each needs one connection and one stream
// of ours, and identify's for a moment. They do not depend on the machine.
func resourceLimits() rcmgr.ConcreteLimitConfig {
	const conns, streams = 64, 256
	return rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: conns, ConnsInbound: 48, ConnsOutbound: conns, FD: conns,
			Streams: streams, StreamsInbound: streams, StreamsOutbound: streams, Memory: 256 << 20,
		},
		// connections whose peer is not known yet
		Transient: rcmgr.ResourceLimits{
			Conns: 32, ConnsInbound: 16, ConnsOutbound: 32, FD: 32,
			Streams: 64, StreamsInbound: 32, StreamsOutbound: 64, Memory: 32 << 20,
		},
		PeerDefault: rcmgr.ResourceLimits{
			Conns: 8, ConnsInbound: 4, ConnsOutbound: 8, FD: 8,
			Streams: 24, StreamsInbound: 8, StreamsOutbound: 16, Memory: 64 << 20,
		},
		Protocol: map[protocol.ID]rcmgr.ResourceLimits{
			syncProtocol: {Streams: 128, StreamsInbound: 64, StreamsOutbound: 64, Memory: 128 << 20},
			pairProtocol: {Streams: 16, StreamsInbound: 8, StreamsOutbound: 8, Memory: 16 << 20},
		},
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{
			syncProtocol: {Streams: 8, StreamsInbound: 4, StreamsOutbound: 4, Memory: 64 << 20},
			pairProtocol: {Streams: 4, StreamsInbound: 2, StreamsOutbound: 2, Memory: 4 << 20},
		},
	}.Build(rcmgr.DefaultLimits.Scale(0, 0))
}

// guard refuses, on every stream of every protocol, whatever a peer may not
// speak: a stranger may pair and nothing else, not even ask who this is.
type guard struct {
	network.ResourceManager
	may func(peer.ID, protocol.ID) error
}

func (g *guard) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	s, err := g.ResourceManager.OpenStream(p, dir)
	if err != nil {
		return nil, err
	}
	return &guardedStream{s, p, g.may}, nil
}

type guardedStream struct {
	network.StreamManagementScope
	peer peer.ID
	may  func(peer.ID, protocol.ID) error
}

func (s *guardedStream) SetProtocol(proto protocol.ID) error {
	if err := s.may(s.peer, proto); err != nil {
		return err
	}
	return s.StreamManagementScope.SetProtocol(proto)
}
