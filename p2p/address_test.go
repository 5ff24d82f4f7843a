package p2p

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
)

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"/ip4/192.168.1.2/udp/4001/quic-v1": "/ip4/192.168.1.2/udp/4001/quic-v1",
		"/ip4/192.168.1.2/tcp/4001":         "/ip4/192.168.1.2/tcp/4001",
		"/ip6/fd00::1/udp/4001/quic-v1":     "/ip6/fd00::1/udp/4001/quic-v1",
		"/ip4/10.0.0.1/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA": "/ip4/10.0.0.1/tcp/1",

		"":                                         "",
		"192.168.1.2:4001":                         "",
		"/dns4/example.org/tcp/4001":               "",
		"/dnsaddr/example.org":                     "",
		"/ip4/10.0.0.1":                            "",
		"/ip4/10.0.0.1/udp/1":                      "",
		"/ip4/10.0.0.1/udp/1/quic":                 "",
		"/ip4/10.0.0.1/tcp/1/ws":                   "",
		"/ip4/10.0.0.1/tcp/1/http":                 "",
		"/ip4/300.0.0.1/tcp/1":                     "",
		"/ip6zone/eth0/ip6/fe80::1/tcp/1":          "",
		"/unix/tmp/socket":                         "",
		"/ip4/10.0.0.1/udp/1/quic-v1/webtransport": "",
		"/ip4/10.0.0.1/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA/p2p-circuit": "",
	} {
		got, err := parseAddress(in)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}

func TestOnlyTheAddressItCameFromIsLearnt(t *testing.T) {
	claimed := []ma.Multiaddr{
		ma.StringCast("/ip4/10.0.0.7/udp/4001/quic-v1"),
		ma.StringCast("/ip4/10.0.0.7/tcp/4001"),
		ma.StringCast("/ip4/10.0.0.8/tcp/22"),
		ma.StringCast("/ip4/127.0.0.1/tcp/4001"),
		ma.StringCast("/dns4/example.org/tcp/4001"),
		ma.StringCast("/ip4/10.0.0.7/tcp/4001/ws"),
	}
	got := texts(learnable(claimed, ma.StringCast("/ip4/10.0.0.7/udp/55555/quic-v1")))
	if want := []string{"/ip4/10.0.0.7/udp/4001/quic-v1", "/ip4/10.0.0.7/tcp/4001"}; !slices.Equal(got, want) {
		t.Errorf("learnt %q", got)
	}
	var many []ma.Multiaddr
	for k := range 1000 {
		many = append(many, ma.StringCast(fmt.Sprintf("/ip4/10.0.0.7/tcp/%d", k+1)))
	}
	if got := learnable(many, claimed[0]); len(got) != maxAddresses {
		t.Errorf("%d addresses of 1000", len(got))
	}
}

func TestRemember(t *testing.T) {
	at := func(ports ...int) (out []ma.Multiaddr) {
		for _, p := range ports {
			out = append(out, ma.StringCast(fmt.Sprintf("/ip4/10.0.0.7/tcp/%d", p)))
		}
		return out
	}
	got, changed := remember(at(1, 2, 3), at(2))
	if changed || !slices.Equal(texts(got), texts(at(2, 1, 3))) {
		t.Errorf("%v, %v", got, changed)
	}
	got, changed = remember(at(1, 2, 3, 4, 5, 6, 7, 8), at(9))
	if !changed || !slices.Equal(texts(got), texts(at(9, 1, 2, 3, 4, 5, 6, 7))) {
		t.Errorf("%v, %v", got, changed)
	}
}

func TestDeviceAndPeerNameEachOther(t *testing.T) {
	for range 100 {
		pub, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		p, err := peerID(notebook.DeviceID(pub))
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := deviceID(p); !ok || d != notebook.DeviceID(pub) {
			t.Fatalf("%v became %v", pub, d)
		}
	}
	_, rsa, err := crypto.GenerateRSAKeyPair(2048, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, secp, err := crypto.GenerateSecp256k1Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.PubKey{rsa, secp} {
		p, err := peer.IDFromPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := deviceID(p); ok {
			t.Errorf("%v of type %v became device %v", p, key.Type(), d)
		}
	}
	for _, p := range []peer.ID{"", "x", peer.ID(make([]byte, 34))} {
		if d, ok := deviceID(p); ok {
			t.Errorf("%q became device %v", p, d)
		}
	}
}
