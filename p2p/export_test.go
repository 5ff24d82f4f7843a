package p2p

import "noted/notebook"

// Conns is how many connections there are with a device.
func Conns(n *Node, d notebook.DeviceID) int {
	id, err := peerID(d)
	if err != nil {
		return 0
	}
	return len(n.host.Network().ConnsToPeer(id))
}

// Exchanges is how many control streams are open with a device.
func Exchanges(n *Node, d notebook.DeviceID) (open int) {
	id, err := peerID(d)
	if err != nil {
		return 0
	}
	for _, c := range n.host.Network().ConnsToPeer(id) {
		for _, s := range c.GetStreams() {
			if s.Protocol() == syncProtocol {
				open++
			}
		}
	}
	return open
}

// Traffic is what the live exchange with a device has sent, hello included:
// bytes and frames.
func Traffic(n *Node, d notebook.DeviceID) (bytes, frames int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.peers[d].live
	return x.wrote.Load(), x.frames.Load()
}
