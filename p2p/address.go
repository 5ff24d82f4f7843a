package p2p

import (
	"cmp"
	"fmt"
	"net"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// maxAddresses is how many addresses of one device are kept; the oldest goes first.
const maxAddresses = 8

// parseAddress reads an address that this program can dial: an IP address and a
// port of QUIC or TCP. Names and relays are not among them, so nothing that a
// peer says makes this device ask a resolver or a third party.
func parseAddress(s string) (ma.Multiaddr, error) {
	a, err := ma.NewMultiaddr(s)
	if err != nil {
		return nil, fmt.Errorf("%.80q is not an address", s)
	}
	if rest, id := peer.SplitAddr(a); id != "" {
		a = rest
	}
	if !dialable(a) {
		return nil, fmt.Errorf("%.80q is not an address like /ip4/192.168.1.2/udp/4001/quic-v1 or /ip4/192.168.1.2/tcp/4001", s)
	}
	return a, nil
}

func dialable(a ma.Multiaddr) bool {
	if a == nil || ipOf(a) == nil {
		return false
	}
	var codes []int
	for _, c := range a {
		codes = append(codes, c.Protocol().Code)
	}
	switch {
	case len(codes) < 2 || codes[0] != ma.P_IP4 && codes[0] != ma.P_IP6:
		return false
	case len(codes) == 2:
		return codes[1] == ma.P_TCP
	}
	return len(codes) == 3 && codes[1] == ma.P_UDP && codes[2] == ma.P_QUIC_V1
}

func ipOf(a ma.Multiaddr) net.IP {
	ip, err := manet.ToIP(a)
	if err != nil {
		return nil
	}
	return ip
}

// learnable are those of the addresses which a peer says it listens on that its
// connection bears out: they have the address that it really came from. So no
// peer can make this device knock at other people's doors.
func learnable(claimed []ma.Multiaddr, from ma.Multiaddr) []ma.Multiaddr {
	ip := ipOf(from)
	var out []ma.Multiaddr
	for _, a := range claimed {
		if ip != nil && dialable(a) && ipOf(a).Equal(ip) && len(out) < maxAddresses {
			out = append(out, a)
		}
	}
	return out
}

// remember puts fresh addresses before the known ones; the second result says
// whether that changed the set.
func remember(known, fresh []ma.Multiaddr) ([]ma.Multiaddr, bool) {
	changed := false
	out := slices.Clone(fresh)
	for _, a := range fresh {
		changed = changed || !slices.ContainsFunc(known, a.Equal)
	}
	for _, a := range known {
		if !slices.ContainsFunc(out, a.Equal) {
			out = append(out, a)
		}
	}
	return out[:min(len(out), maxAddresses)], changed
}

// byUse orders a device's own addresses for an invitation: those that other
// machines can reach first, and QUIC before TCP.
func byUse(a, b ma.Multiaddr) int {
	rank := func(a ma.Multiaddr) int {
		r := 0
		if ip := ipOf(a); ip == nil || ip.IsLoopback() {
			r += 4
		} else if ip.IsLinkLocalUnicast() {
			r += 2
		}
		if len(a) == 2 {
			r++
		}
		return r
	}
	return cmp.Compare(rank(a), rank(b))
}

func texts(addrs []ma.Multiaddr) []string {
	out := make([]string, len(addrs))
	for k, a := range addrs {
		out[k] = a.String()
	}
	return out
}
