package p2p

import (
	"context"
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
)

// roster is a log of which only the members are asked.
type roster struct {
	Log
	members map[notebook.DeviceID]bool
}

func (r roster) Member(d notebook.DeviceID) bool { return r.members[d] }

func newDevice(n byte) (ed25519.PrivateKey, notebook.DeviceID) {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	key := ed25519.NewKeyFromSeed(seed)
	return key, notebook.DeviceID(key.Public().(ed25519.PublicKey))
}

func TestOnlyBelievedAddressesAreDialed(t *testing.T) {
	key, _ := newDevice(1)
	_, member := newDevice(2)
	_, other := newDevice(3)
	n, err := New(Config{Key: key, Log: roster{members: map[notebook.DeviceID]bool{member: true, other: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	const known, claimed = "/ip4/10.0.0.2/tcp/4001", "/ip4/10.0.0.9/tcp/22"
	if err := n.SetAddresses(member, []string{known}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		device notebook.DeviceID
		addr   string
		want   bool
	}{
		{member, known, true},
		{member, claimed, false}, // what identify said
		{other, known, false},    // somebody else's address
	} {
		id, err := peerID(c.device)
		if err != nil {
			t.Fatal(err)
		}
		if got := (gate{n}).InterceptAddrDial(id, ma.StringCast(c.addr)); got != c.want {
			t.Errorf("dial %s at %s: %v", c.device.Short(), c.addr, got)
		}
	}
}

func TestWhichOfTwoExchangesStays(t *testing.T) {
	_, x := newDevice(1)
	_, y := newDevice(2)
	low, high := x, y
	if slices.Compare(low[:], high[:]) > 0 {
		low, high = high, low
	}
	const thisRun, lastRun = 7, 6
	for name, c := range map[string]struct {
		self, peer notebook.DeviceID
		old        *exchange // nil for none
		hello      hello
		newStays   bool
	}{
		"the first":                      {low, high, nil, hello{run: thisRun, serial: 1}, true},
		"both dialed, here the lower":    {low, high, &exchange{}, hello{run: thisRun, serial: 1}, false},
		"both dialed, here the higher":   {high, low, &exchange{}, hello{run: thisRun, serial: 1}, true},
		"it dialed anew":                 {low, high, &exchange{open: true, run: thisRun, serial: 1}, hello{run: thisRun, serial: 2}, true},
		"it dialed anew, here the lower": {high, low, &exchange{open: true, run: thisRun, serial: 1}, hello{run: thisRun, serial: 2}, true},
		"an old hello comes late":        {high, low, &exchange{open: true, run: thisRun, serial: 2}, hello{run: thisRun, serial: 1}, false},
		"it was started anew":            {low, high, &exchange{open: true, run: lastRun, serial: 900}, hello{run: thisRun, serial: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &member{device: c.peer, live: c.old, since: time.Now()}
			n := &Node{self: c.self, peers: map[notebook.DeviceID]*member{c.peer: p}}
			if c.old != nil {
				c.old.ctx, c.old.cancel = context.WithCancelCause(t.Context())
			}
			fresh := &exchange{}
			err := n.adopt(p, fresh, c.hello)
			if (err == nil) != c.newStays || (p.live == fresh) != c.newStays {
				t.Errorf("%v", err)
			}
			if c.old != nil && (c.old.ctx.Err() != nil) != c.newStays {
				t.Error("the old one was not ended, or was")
			}
			delete(n.peers, c.peer)
			if err := n.adopt(p, fresh, c.hello); err != errRemoved {
				t.Errorf("after Drop: %v", err)
			}
		})
	}
}
