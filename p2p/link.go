package p2p

import "github.com/libp2p/go-libp2p"

// Link is how frames travel between nodes. Nil means this machine's sockets;
// package p2ptest makes links of a simulated network.
type Link = libp2p.Option
