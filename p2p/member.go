package p2p

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
)

const (
	dialWait = 15 * time.Second

	// An exchange that lasted this long clears what a device did before.
	goodSpell = time.Minute

	// How often a device may begin an exchange.
	openRate, openBurst = 0.5, 10
)

// member is a device of the roster as the node deals with it. Its fields are
// guarded by the node's mutex.
type member struct {
	device  notebook.DeviceID
	id      peer.ID
	addrs   []ma.Multiaddr
	live    *exchange // the one exchange; not open before the device's hello
	since   time.Time
	problem string
	backoff backoff
	retry   time.Time // when it is dialed next
	banned  bool      // it misbehaved: it may not begin an exchange before retry either
	opens   bucket    // exchanges that it began
	wake    chan struct{}
	stop    context.CancelFunc // ends the goroutine that dials; does nothing if there is none
	kept    bool               // there is one
}

// member finds or makes a device's record. The caller holds the mutex.
func (n *Node) member(d notebook.DeviceID) (*member, error) {
	if p := n.peers[d]; p != nil {
		return p, nil
	}
	id, err := peerID(d)
	if err != nil {
		return nil, err
	}
	p := &member{
		device: d, id: id, since: time.Now(), wake: make(chan struct{}, 1), stop: func() {},
		opens: bucket{rate: openRate, burst: openBurst},
	}
	n.peers[d] = p
	return p, nil
}

// keep starts the goroutine that dials a device, once there is a reason to. The
// caller holds the mutex.
func (n *Node) keep(p *member) {
	if p.kept || len(p.addrs) == 0 || n.ctx == nil || n.ended {
		return
	}
	ctx, stop := context.WithCancel(n.ctx)
	p.stop, p.kept = stop, true
	n.wg.Go(func() {
		defer stop()
		n.dial(ctx, p)
	})
}

// dial keeps an exchange with a device going until ctx is done.
func (n *Node) dial(ctx context.Context, p *member) {
	for ctx.Err() == nil {
		n.mu.Lock()
		wait := time.Until(p.retry)
		idle := p.live != nil || len(p.addrs) == 0
		n.mu.Unlock()
		switch {
		case !idle && wait <= 0 && n.log.Member(p.device):
			n.connect(ctx, p)
			continue
		case idle || wait <= 0:
			wait = time.Minute // the roster may have changed
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-p.wake:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// connect dials a device and runs the exchange.
func (n *Node) connect(ctx context.Context, p *member) {
	n.mu.Lock()
	addrs := slices.Clone(p.addrs)
	n.mu.Unlock()
	x, h, err := n.open(ctx, p, addrs)
	if err == nil {
		n.serve(p, x, h)
		return
	}
	if x != nil {
		x.refuse(err)
	}
	n.over(p, x, err)
}

func (n *Node) open(ctx context.Context, p *member, addrs []ma.Multiaddr) (*exchange, hello, error) {
	dialing, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	n.clearDialBackoff(p.id)
	if err := n.host.Connect(dialing, peer.AddrInfo{ID: p.id, Addrs: addrs}); err != nil {
		return nil, hello{}, &fault{problem: "does not answer at the addresses known here", err: err}
	}
	s, err := n.host.NewStream(network.WithNoDial(dialing, "dialed"), p.id, syncProtocol)
	if err != nil {
		return nil, hello{}, &fault{problem: "answers and does not sync: it may not have this device in its notebook (any more)", err: err}
	}
	x := newExchange(ctx, n, p.device, s)
	n.mu.Lock()
	taken := p.live != nil
	if !taken {
		p.live = x
	}
	n.mu.Unlock()
	if taken {
		return x, hello{}, errDuplicate
	}
	if err := x.greet(); err != nil {
		return x, hello{}, err
	}
	h, err := x.hear()
	return x, h, err
}

// answer takes an exchange that another device began.
func (n *Node) answer(s network.Stream) {
	ctx, ok := n.enter()
	if !ok {
		s.Reset()
		return
	}
	defer n.wg.Done()
	d, ok := deviceID(s.Conn().RemotePeer())
	if !ok || !n.log.Member(d) {
		s.Reset()
		return
	}
	x := newExchange(ctx, n, d, s)
	n.mu.Lock()
	p, err := n.member(d)
	busy := err != nil || p.banned && time.Now().Before(p.retry) || p.opens.take(1, time.Now()) > 0
	n.mu.Unlock()
	if busy {
		x.refuse(&fault{problem: "begins too many exchanges", bye: byeBusy})
		s.Conn().Close()
		return
	}
	h, err := x.hear()
	if err == nil {
		err = n.adopt(p, x, h)
	}
	if err == nil && !n.log.Member(d) { // Drop sees it from now on
		err = errRemoved
	}
	if err == nil {
		err = x.greet()
	}
	if err != nil {
		x.refuse(err)
		n.over(p, x, err)
		return
	}
	n.serve(p, x, h)
}

// adopt makes x the exchange with a device, or says why it is not. Both sides
// may dial, so there may be two. A device's own newest word counts: a later
// hello of the same run, or any of another run, says that it has given the old
// exchange up. While the old one is this side's and still unanswered, the device
// with the lower id is the one that dials.
func (n *Node) adopt(p *member, x *exchange, h hello) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.peers[p.device] != p { // dropped
		return errRemoved
	}
	if old := p.live; old != nil {
		ours := !old.open && slices.Compare(n.self[:], p.device[:]) < 0
		older := old.open && old.run == h.run && old.serial > h.serial
		if ours || older {
			return errDuplicate
		}
		old.cancel(errDuplicate)
	}
	x.run, x.serial = h.run, h.serial
	p.live = x
	return nil
}

// serve runs an exchange whose hellos have been said.
func (n *Node) serve(p *member, x *exchange, h hello) {
	n.mu.Lock()
	if p.live != x { // replaced or dropped in between
		n.mu.Unlock()
		x.refuse(errDuplicate)
		return
	}
	x.open, x.run, x.serial = true, h.run, h.serial
	p.since, p.problem, p.banned = time.Now(), "", false
	n.mu.Unlock()
	n.closeIdle(x)
	n.events(Event{Kind: Connected, Device: p.device})
	began := time.Now()
	err := x.serve(h)
	if time.Since(began) >= goodSpell || !asFault(err).theirs {
		n.mu.Lock()
		p.backoff.reset()
		n.mu.Unlock()
	}
	n.over(p, x, err)
}

// closeIdle closes connections with the peer that a simultaneous dial left over.
func (n *Node) closeIdle(x *exchange) {
	for _, c := range n.host.Network().ConnsToPeer(x.stream.Conn().RemotePeer()) {
		if c != x.stream.Conn() && len(c.GetStreams()) == 0 {
			c.Close()
		}
	}
}

// over takes note of how an exchange, or the attempt at one, ended.
func (n *Node) over(p *member, x *exchange, err error) {
	f := asFault(err)
	n.mu.Lock()
	mine := x == nil || p.live == x || p.live == nil
	opened := mine && x != nil && x.open
	if mine && p.live == x {
		p.live = nil
	}
	gone := n.peers[p.device] != p
	var events []Event
	if mine && !gone && f != errDuplicate {
		if opened {
			p.since = time.Now()
			events = append(events, Event{Kind: Disconnected, Device: p.device, Text: f.problem})
		}
		// The end of an exchange that ran well is no problem; what ended it is.
		problem := f.Error()
		if x == nil {
			problem = f.problem // a list of addresses helps nobody
		}
		if n.ctx.Err() == nil && problem != p.problem {
			p.problem = problem
			events = append(events, Event{Kind: Problem, Device: p.device, Text: problem})
		}
		if f.lasting {
			p.backoff.last()
		}
		p.banned = f.theirs && f.bye != byeStalled
		p.retry = time.Now().Add(p.backoff.next(rand.Float64()))
	} else if mine && !gone {
		p.retry = time.Now().Add(p.backoff.next(rand.Float64()))
	}
	n.mu.Unlock()
	if x != nil && mine && f != errDuplicate {
		x.stream.Conn().Close()
	}
	n.logger.Debug("an exchange ended", "device", p.device, "error", err)
	for _, e := range events {
		n.events(e)
	}
	signal(p.wake)
}
