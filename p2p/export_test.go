package p2p

import "noted/notebook"

// Traffic is what the live exchange with a device has sent, hello included:
// bytes and frames.
func Traffic(n *Node, d notebook.DeviceID) (bytes, frames int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.peers[d].live
	return x.wrote.Load(), x.frames.Load()
}
