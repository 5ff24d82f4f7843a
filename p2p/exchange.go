package p2p

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"noted/notebook"
)

// How long an exchange waits. A large frame gets a second more for each
// slowest bytes, so that a slow line is not taken for a dead one.
const (
	helloWait  = 10 * time.Second
	pingEvery  = 20 * time.Second
	silentMost = time.Minute // three pings
	stallMost  = 30 * time.Second
	slowest    = 8 << 10
	ackMost    = 2 * time.Minute // from the last progress, while something is unacknowledged
	byeMost    = time.Second
)

// What a peer may send: frames of entries are slowed down beyond their rate,
// which no honest peer reaches for long; pings beyond theirs are an attack.
const (
	entriesRate, entriesBurst = 2000, 4000
	pingRate, pingBurst       = 1, 10
	// Each makes the log look for all that the other side lacks, as a hello does.
	againRate, againBurst = openRate, openBurst
)

// exchange is one control stream between this device and another, in both
// directions, from the hellos to the farewell. Three goroutines work on it: one
// reads frames, one gives entries to the log and acknowledges them, one sends
// what the other side lacks. The reader never waits for the other two, so
// acknowledgements always get through; what it holds for the log is bounded by
// the window.
type exchange struct {
	node   *Node
	peer   notebook.DeviceID
	stream network.Stream
	ctx    context.Context
	cancel context.CancelCauseFunc

	writing chan struct{} // holds one while a frame is written
	wrote   atomic.Int64  // bytes of whole frames
	frames  atomic.Int64

	// of the peer's hello; guarded by the node's mutex
	open        bool
	run, serial uint64

	mu       sync.Mutex
	theirs   []notebook.Head                 // what the other side has, by its newest word
	gave     map[notebook.Hash]notebook.Head // and by the entries that it sent: the newest of each chain, by its hash
	sent     uint64                          // bytes of entries
	acked    uint64
	progress time.Time        // when acked grew, or sent from acked on
	queue    []notebook.Entry // for the log
	queued   uint64           // their bytes, those before the log included
	got      uint64           // bytes of entries, since the beginning

	room chan struct{} // acked grew; holds one
	work chan struct{} // queue grew; holds one
	more chan struct{} // what the other side did not take is to be sent again; holds one
	want chan struct{} // the other side is to be asked for that; holds one
}

func newExchange(ctx context.Context, n *Node, peer notebook.DeviceID, s network.Stream) *exchange {
	x := &exchange{node: n, peer: peer, stream: s, gave: make(map[notebook.Hash]notebook.Head), writing: make(chan struct{}, 1), room: make(chan struct{}, 1), work: make(chan struct{}, 1)}
	x.more, x.want = make(chan struct{}, 1), make(chan struct{}, 1)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// greet sends this side's hello.
func (x *exchange) greet() error {
	h := hello{
		version: ProtocolVersion, notebook: x.node.log.Notebook(),
		run: x.node.run, serial: x.node.serial.Add(1), heads: x.node.log.Heads(),
	}
	return x.write(h.frame())
}

// hear reads the other side's hello and judges it.
func (x *exchange) hear() (hello, error) {
	// What ends the exchange from elsewhere does not wait for the hello.
	defer context.AfterFunc(x.ctx, func() { x.stream.SetReadDeadline(time.Now()) })()
	k, b, err := x.read(helloWait)
	switch {
	case x.ctx.Err() != nil:
		return hello{}, context.Cause(x.ctx)
	case errors.Is(err, errFrame):
		return hello{}, garbage(err)
	case err != nil:
		return hello{}, &fault{problem: "hung up at once: it may not have this device in its notebook (any more)", err: err}
	case k == kindFarewell:
		return hello{}, x.farewell(b)
	case k != kindHello:
		return hello{}, garbage(malformed("kind %d instead of a hello", k))
	}
	h, err := readHello(b)
	switch {
	case err != nil:
		return hello{}, garbage(err)
	case h.version != ProtocolVersion:
		return hello{}, otherVersion(h.version)
	case h.notebook != x.node.log.Notebook() || h.notebook == notebook.NotebookID{}:
		return hello{}, otherNotebook()
	}
	return h, nil
}

func (x *exchange) farewell(b []byte) error {
	f, version, err := readFarewell(b)
	if err != nil {
		return garbage(err)
	}
	return told(f, version)
}

// serve runs the exchange after both hellos until it ends, and says why.
func (x *exchange) serve(h hello) error {
	x.heard(h.heads)
	var parts sync.WaitGroup
	reading := make(chan struct{})
	parts.Go(func() {
		defer close(reading)
		x.cancel(x.receive())
		x.drain()
	})
	parts.Go(func() { x.cancel(x.apply()) })
	parts.Go(func() { x.cancel(x.send()) })
	<-x.ctx.Done()
	err := context.Cause(x.ctx)
	x.leave(err, reading)
	parts.Wait()
	return err
}

// leave says farewell, gives the other side a moment to hear it, and lets go of
// the stream, which wakes whatever still reads or writes. A device that was
// removed is told nothing, at once.
func (x *exchange) leave(err error, reading <-chan struct{}) {
	x.cancel(err)
	if f := asFault(err); f.bye != 0 {
		x.stream.SetWriteDeadline(time.Now().Add(byeMost)) // also of a frame that is being written
		x.writing <- struct{}{}
		_, werr := x.stream.Write(farewellFrame(f.bye))
		<-x.writing
		if werr == nil && x.stream.CloseWrite() == nil {
			moment := time.NewTimer(byeMost)
			defer moment.Stop()
			select {
			case <-reading:
			case <-moment.C:
			}
		}
	}
	x.stream.Reset()
}

// refuse ends an exchange that was never served.
func (x *exchange) refuse(err error) {
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		x.drain()
	}()
	x.leave(err, reading)
	<-reading
}

// drain reads to the end of what the other side still sends, within bounds: it
// hangs up when it has heard the farewell.
func (x *exchange) drain() {
	x.stream.SetReadDeadline(time.Now().Add(byeMost))
	io.CopyN(io.Discard, x.stream, 2*window)
}

// write sends one frame. A peer that does not take it in time is stalled.
func (x *exchange) write(frame []byte) error {
	select {
	case x.writing <- struct{}{}:
		defer func() { <-x.writing }()
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	}
	x.stream.SetWriteDeadline(time.Now().Add(stallMost + time.Duration(len(frame)/slowest)*time.Second))
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	_, err := x.stream.Write(frame)
	switch {
	case err == nil:
		x.wrote.Add(int64(len(frame)))
		x.frames.Add(1)
		return nil
	case isTimeout(err):
		return stalled("takes nothing that this noted sends")
	}
	// What the other side said last tells more than that it hung up: let the
	// reader, which has it, be first.
	moment := time.NewTimer(byeMost)
	defer moment.Stop()
	select {
	case <-x.ctx.Done():
	case <-moment.C:
	}
	return &fault{problem: "lost the connection", err: err}
}

// read reads one frame, for whose beginning it waits.
func (x *exchange) read(wait time.Duration) (kind, []byte, error) {
	x.stream.SetReadDeadline(time.Now().Add(wait))
	if x.ctx.Err() != nil {
		return 0, nil, context.Cause(x.ctx)
	}
	k, n, err := readHead(x.stream)
	if err != nil {
		return 0, nil, err
	}
	x.stream.SetReadDeadline(time.Now().Add(stallMost + time.Duration(n/slowest)*time.Second))
	if x.ctx.Err() != nil {
		return 0, nil, context.Cause(x.ctx)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(x.stream, b); err != nil {
		if isTimeout(err) {
			return 0, nil, stalled("stopped in the middle of a frame")
		}
		return 0, nil, err
	}
	return k, b, nil
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// receive reads frames until the exchange ends.
func (x *exchange) receive() error {
	entries := bucket{rate: entriesRate, burst: entriesBurst}
	pings := bucket{rate: pingRate, burst: pingBurst}
	agains := bucket{rate: againRate, burst: againBurst}
	for {
		k, b, err := x.read(silentMost)
		switch {
		case x.ctx.Err() != nil:
			return context.Cause(x.ctx)
		case errors.Is(err, errFrame):
			return garbage(err)
		case err != nil && isTimeout(err):
			return stalled("gave no sign of life for a minute")
		case errors.Is(err, io.EOF):
			return &fault{problem: "hung up"}
		case err != nil:
			return asFault(err)
		case !x.node.log.Member(x.peer):
			return errRemoved
		}
		switch k {
		case kindEntries:
			if debt := entries.take(1, time.Now()); debt > 0 {
				if !sleep(x.ctx, debt) {
					return context.Cause(x.ctx)
				}
			}
			err = x.enqueue(b)
		case kindAck:
			err = x.acknowledged(b)
		case kindPing:
			if pings.take(1, time.Now()) > 0 {
				return flood("pings")
			}
		case kindAgain:
			if debt := agains.take(1, time.Now()); debt > 0 {
				if !sleep(x.ctx, debt) {
					return context.Cause(x.ctx)
				}
			}
			err = x.again(b)
		case kindFarewell:
			return x.farewell(b)
		default:
			err = garbage(malformed("kind %d in the middle of an exchange", k))
		}
		if err != nil {
			return err
		}
	}
}

// given takes note that the other side has the entries that it sends, so that
// they are not sent back as soon as the log has the first of them. A header that
// cannot be read is for the log to judge.
func (x *exchange) given(entries []notebook.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k := range entries {
		h, err := notebook.DecodeHeader(entries[k].Header)
		if err != nil {
			continue
		}
		delete(x.gave, h.Prev.Hash)
		if len(x.gave) < maxHeads {
			x.gave[entries[k].Hash()] = notebook.Head{Position: h.Position(), Hash: entries[k].Hash()}
		}
	}
}

// heard keeps the other side's word about what it has.
func (x *exchange) heard(heads []notebook.Head) {
	x.mu.Lock()
	x.theirs = heads
	x.mu.Unlock()
	x.node.log.Acknowledged(x.peer, heads)
}

// enqueue keeps a batch for the log.
func (x *exchange) enqueue(b []byte) error {
	entries, err := readEntries(b)
	if err != nil {
		return garbage(err)
	}
	x.mu.Lock()
	n := uint64(len(b))
	if x.queued > 0 && x.queued+n > window {
		x.mu.Unlock()
		return flood("more than what may be unacknowledged")
	}
	x.queue = append(x.queue, entries...)
	x.queued += n
	x.got += n
	x.mu.Unlock()
	signal(x.work)
	return nil
}

// acknowledged takes an acknowledgement, which must be of what was sent.
func (x *exchange) acknowledged(b []byte) error {
	taken, heads, err := readAck(b)
	if err != nil {
		return garbage(err)
	}
	x.mu.Lock()
	if taken <= x.acked || taken > x.sent {
		x.mu.Unlock()
		return garbage(malformed("an acknowledgement of what was not sent"))
	}
	x.acked, x.progress = taken, time.Now()
	x.mu.Unlock()
	x.heard(heads)
	signal(x.room)
	return nil
}

// again hears that the other side takes now what it did not take before.
func (x *exchange) again(b []byte) error {
	heads, err := readAgain(b)
	if err != nil {
		return garbage(err)
	}
	x.heard(heads)
	signal(x.more)
	return nil
}

// apply gives the log what came, everything that waits at once, and
// acknowledges what the log has committed.
func (x *exchange) apply() error {
	for {
		select {
		case <-x.work:
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
		x.mu.Lock()
		entries, got := x.queue, x.got
		held := x.queued
		x.queue = nil
		x.mu.Unlock()
		if len(entries) == 0 {
			continue
		}
		if !x.node.log.Member(x.peer) {
			return errRemoved
		}
		x.given(entries)
		if err := x.node.log.Accept(x.ctx, x.peer, entries); err != nil {
			if x.ctx.Err() != nil {
				return context.Cause(x.ctx)
			}
			return &fault{problem: "sent an entry that is not accepted here", bye: byeRefused, theirs: true, err: err}
		}
		x.mu.Lock()
		x.queued -= held
		x.mu.Unlock()
		if err := x.write(ackFrame(got, x.node.log.Heads())); err != nil {
			return err
		}
	}
}

// send sends what the other side lacks: once at the beginning, and then
// whenever something is committed.
func (x *exchange) send() error {
	commits := x.node.log.Commits(x.ctx)
	pings := time.NewTicker(pingEvery)
	defer pings.Stop()
	var told []notebook.Head // what the other side has, or has on its way
	histories := x.node.log.Histories()
	for pass := true; ; {
		if pass {
			heads := x.node.log.Heads()
			if now := x.node.log.Histories(); now != histories {
				// What the other side was taken to have of that device may have been
				// another history of it.
				told, histories = nil, now
			}
			if err := x.pass(told); err != nil {
				return err
			}
			told = heads
		}
		select {
		case <-commits:
			pass = true
		case <-x.more:
			pass, told = true, nil
		case <-x.want:
			pass = false
			if !x.node.log.Member(x.peer) {
				return errRemoved
			}
			if err := x.write(againFrame(x.node.log.Heads())); err != nil {
				return err
			}
		case <-pings.C:
			pass = false
			if !x.node.log.Member(x.peer) {
				return errRemoved
			}
			if x.overdue() {
				return stalled("takes entries and does not acknowledge them")
			}
			if err := x.write(endFrame(beginFrame(nil, kindPing))); err != nil {
				return err
			}
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
	}
}

// pass sends what the other side lacks, beyond what it was told already.
func (x *exchange) pass(told []notebook.Head) error {
	x.mu.Lock()
	have := slices.AppendSeq(slices.Concat(x.theirs, told), maps.Values(x.gave))
	x.mu.Unlock()
	slices.SortFunc(have, notebook.Head.Compare)
	have = slices.Compact(have)
	b := newBatch()
	for e, err := range x.node.log.Missing(have) {
		if err != nil {
			return &fault{problem: "cannot be given what it lacks", bye: byeFailed, err: err}
		}
		if b.full(&e) {
			if err := x.deliver(b); err != nil {
				return err
			}
			b = newBatch()
		}
		if err := b.add(&e); err != nil {
			return &fault{problem: "cannot be given what it lacks", bye: byeFailed, err: err}
		}
	}
	if b.n == 0 {
		return nil
	}
	return x.deliver(b)
}

// deliver sends a batch when the window has room for it.
func (x *exchange) deliver(b *batch) error {
	n := uint64(b.size())
	for {
		x.mu.Lock()
		unacked := x.sent - x.acked
		fits := unacked == 0 || unacked+n <= window
		if fits {
			if unacked == 0 {
				x.progress = time.Now()
			}
			x.sent += n
		}
		wait := time.Until(x.progress.Add(ackMost))
		x.mu.Unlock()
		if fits {
			break
		}
		late := time.NewTimer(wait)
		select {
		case <-x.room:
			late.Stop()
		case <-late.C:
			if x.overdue() {
				return stalled("takes entries and does not acknowledge them")
			}
		case <-x.ctx.Done():
			late.Stop()
			return context.Cause(x.ctx)
		}
	}
	if !x.node.log.Member(x.peer) {
		return errRemoved
	}
	return x.write(b.end())
}

// overdue reports whether something has been unacknowledged for too long.
func (x *exchange) overdue() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent > x.acked && time.Since(x.progress) >= ackMost
}

// signal wakes whoever waits on c, or will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for d; false if ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
