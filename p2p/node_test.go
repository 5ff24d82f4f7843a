package p2p_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"noted/notebook"
	"noted/p2p"
	"noted/p2p/p2ptest"
)

// memory is a small honest log: chains of one epoch for each device, without
// signatures, which is what package trust is for. It keeps the promises of
// p2p.Log: causal order, waiting entries, committed heads.
type memory struct {
	paused bool // nothing is taken, and nobody is blamed

	mu      sync.Mutex
	nb      notebook.NotebookID
	self    notebook.DeviceID
	entries []notebook.Entry // committed, in order
	places  []place          // of the entries
	chain   map[notebook.DeviceID][]notebook.Hash
	waiting map[notebook.DeviceID][]notebook.Entry
	members map[notebook.DeviceID]bool
	watch   map[chan struct{}]bool

	acked    map[notebook.DeviceID][]notebook.Head
	accepts  int
	offered  int                        // entries given to Accept
	onAccept func(notebook.Entry) error // may refuse
	slow     time.Duration              // each Accept takes
	onAck    func()
}

type place struct {
	device notebook.DeviceID
	seq    uint64
}

func newMemory(self notebook.DeviceID) *memory {
	return &memory{
		nb: notebook.NotebookID{1}, self: self,
		chain:   make(map[notebook.DeviceID][]notebook.Hash),
		waiting: make(map[notebook.DeviceID][]notebook.Entry),
		members: map[notebook.DeviceID]bool{self: true},
		watch:   make(map[chan struct{}]bool),
		acked:   make(map[notebook.DeviceID][]notebook.Head),
	}
}

var epoch = notebook.Epoch{1}

// entry is a device's next entry; its signature is filler.
func entry(d notebook.DeviceID, prev []notebook.Hash, body []byte) notebook.Entry {
	h := notebook.Header{
		Version: notebook.EntryVersion, Notebook: notebook.NotebookID{1}, Device: d, Epoch: epoch, Seq: uint64(len(prev)) + 1,
		Kind: notebook.KindText, Page: notebook.PageID{1}, Class: notebook.Typed,
		Body: notebook.BodyDigest(body), Size: uint32(len(body)),
	}
	if n := len(prev); n > 0 {
		h.Prev = notebook.Head{Position: notebook.Position{Device: d, Epoch: epoch, Seq: uint64(n)}, Hash: prev[n-1]}
	}
	b, err := notebook.EncodeHeader(&h)
	if err != nil {
		panic(err)
	}
	return notebook.Entry{Header: b, Sig: make([]byte, 64), Body: body}
}

func position(e notebook.Entry) (notebook.DeviceID, uint64, error) {
	h, err := notebook.DecodeHeader(e.Header)
	if err != nil {
		return notebook.DeviceID{}, 0, err
	}
	if notebook.BodyDigest(e.Body) != h.Body {
		return notebook.DeviceID{}, 0, errors.New("a body that is not the header's")
	}
	return h.Device, h.Seq, nil
}

func (m *memory) write(body ...byte) {
	m.mu.Lock()
	e := entry(m.self, m.chain[m.self], body)
	m.commit(e)
	m.mu.Unlock()
	m.tell()
}

func (m *memory) commit(e notebook.Entry) {
	d, seq, _ := position(e)
	m.chain[d] = append(m.chain[d], e.Hash())
	m.entries = append(m.entries, e)
	m.places = append(m.places, place{d, seq})
}

func (m *memory) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.watch {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (m *memory) Notebook() notebook.NotebookID { return m.nb }

func (m *memory) Heads() []notebook.Head {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []notebook.Head
	for d, c := range m.chain {
		out = append(out, notebook.Head{Position: notebook.Position{Device: d, Epoch: epoch, Seq: uint64(len(c))}, Hash: c[len(c)-1]})
	}
	slices.SortFunc(out, func(a, b notebook.Head) int { return a.Position.Compare(b.Position) })
	return out
}

func (m *memory) Missing(have []notebook.Head) iter.Seq2[notebook.Entry, error] {
	return func(yield func(notebook.Entry, error) bool) {
		m.mu.Lock()
		covered := make(map[notebook.DeviceID]uint64)
		for _, h := range have {
			c := m.chain[h.Position.Device]
			if n := h.Position.Seq; n <= uint64(len(c)) && c[n-1] == h.Hash {
				covered[h.Position.Device] = max(covered[h.Position.Device], n)
			}
		}
		entries, places := m.entries, m.places // which only grow
		m.mu.Unlock()
		for k, p := range places {
			if p.seq > covered[p.device] && !yield(entries[k], nil) {
				return
			}
		}
	}
}

func (m *memory) Accept(ctx context.Context, _ notebook.DeviceID, entries []notebook.Entry) error {
	m.mu.Lock()
	m.accepts++
	m.mu.Unlock()
	if m.slow > 0 {
		select {
		case <-time.After(m.slow):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := m.accept(entries)
	m.tell()
	return err
}

func (m *memory) accept(entries []notebook.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offered += len(entries)
	for _, e := range entries {
		d, seq, err := position(e)
		if err == nil && m.onAccept != nil {
			err = m.onAccept(e)
		}
		if err != nil {
			return err
		}
		switch next := uint64(len(m.chain[d])) + 1; {
		case m.paused:
		case seq > next:
			m.waiting[d] = append(m.waiting[d], e)
		case seq == next:
			m.commit(e)
			slices.SortFunc(m.waiting[d], func(a, b notebook.Entry) int {
				_, x, _ := position(a)
				_, y, _ := position(b)
				return cmp.Compare(x, y)
			})
			for len(m.waiting[d]) > 0 {
				w := m.waiting[d][0]
				if _, seq, _ := position(w); seq > uint64(len(m.chain[d]))+1 {
					break
				} else if seq == uint64(len(m.chain[d]))+1 {
					m.commit(w)
				}
				m.waiting[d] = m.waiting[d][1:]
			}
		}
	}
	return nil
}

func (m *memory) Acknowledged(peer notebook.DeviceID, heads []notebook.Head) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[peer] = heads
	if m.onAck != nil {
		m.onAck()
	}
}

func (m *memory) Histories() int { return 0 }

func (m *memory) Commits(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	m.mu.Lock()
	m.watch[c] = true
	m.mu.Unlock()
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		delete(m.watch, c)
		m.mu.Unlock()
	})
	return c
}

func (m *memory) Member(d notebook.DeviceID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[d]
}

func (m *memory) remove(d notebook.DeviceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, d)
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// device is a node with its log, in a test's network.
type device struct {
	*p2p.Node
	name string
	id   notebook.DeviceID
	key  ed25519.PrivateKey
	log  *memory
	stop func()

	mu     sync.Mutex
	events []p2p.Event
}

// world is the devices of one test, that are members of one notebook.
type world struct {
	t     *testing.T
	links *p2ptest.Links
}

func newWorld(t *testing.T) *world { return &world{t, p2ptest.New(t, 5*time.Millisecond)} }

func keyOf(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (w *world) device(name string) *device {
	key := keyOf(name)
	id := notebook.DeviceID(key.Public().(ed25519.PublicKey))
	d := &device{name: name, id: id, key: key, log: newMemory(id)}
	d.start(w)
	return d
}

// start makes the device's node and serves it; stop ends it and waits.
func (d *device) start(w *world) {
	w.t.Helper()
	c := p2p.Config{Key: d.key, Log: d.log, Events: d.note}
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("at", d.name)
	}
	w.links.Attach(&c)
	n, err := p2p.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	d.Node = n
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			w.t.Errorf("%s: %v", d.name, err)
		}
	})
	synctest.Wait()
	w.t.Cleanup(d.stop)
}

func (d *device) note(e p2p.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// saw reports whether the device had an event of this kind whose text holds what.
func (d *device) saw(kind p2p.EventKind, what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.events, func(e p2p.Event) bool { return e.Kind == kind && strings.Contains(e.Text, what) })
}

func (d *device) count(kind p2p.EventKind) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// introduce makes devices members for each other.
func introduce(devices ...*device) {
	for _, d := range devices {
		for _, e := range devices {
			d.log.mu.Lock()
			d.log.members[e.id] = true
			d.log.mu.Unlock()
		}
	}
}

// call tells a where b is.
func (w *world) call(a, b *device) {
	w.t.Helper()
	if err := a.SetAddresses(b.id, []string{w.links.Address(b.id)}); err != nil {
		w.t.Fatal(err)
	}
}

func (d *device) peer(o *device) p2p.PeerInfo {
	for _, p := range d.Peers() {
		if p.Device == o.id {
			return p
		}
	}
	return p2p.PeerInfo{}
}

func (w *world) connected(a, b *device) {
	w.t.Helper()
	if !a.peer(b).Connected || !b.peer(a).Connected {
		w.t.Fatalf("%s and %s are not connected: %+v, %+v", a.name, b.name, a.peer(b), b.peer(a))
	}
}

func equal(a, b *device) bool {
	ha, hb := a.log.Heads(), b.log.Heads()
	return a.log.len() == b.log.len() && slices.Equal(ha, hb)
}

func bubble(t *testing.T, story func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { story(t, newWorld(t)) })
}

func TestTwoDevicesConverge(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		for k := range 300 {
			a.log.write(byte(k), byte(k>>8))
			if k%3 == 0 {
				b.log.write(byte(k))
			}
		}
		w.call(a, b)
		time.Sleep(2 * time.Second)
		w.connected(a, b)
		if !equal(a, b) || a.log.len() != 400 {
			t.Fatalf("%d and %d entries", a.log.len(), b.log.len())
		}
		if a.log.offered != 100 || b.log.offered != 300 {
			t.Errorf("entries were sent that were there: %d to the laptop, %d to the phone", a.log.offered, b.log.offered)
		}
		if !slices.Equal(a.log.acked[b.id], b.log.Heads()) {
			t.Errorf("acknowledged %v", a.log.acked[b.id])
		}
		// live, both ways
		began := time.Now()
		a.log.write(1)
		for !equal(a, b) {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 20*time.Millisecond {
			t.Errorf("an entry took %v over a link of 5 ms", took)
		}
		b.log.write(2)
		time.Sleep(time.Second)
		if !equal(a, b) {
			t.Error("the phone's entry did not arrive")
		}
		if a.log.offered != 101 || b.log.offered != 301 {
			t.Errorf("live entries came back: %d and %d", a.log.offered, b.log.offered)
		}
	})
}

// TestWhatWasNotTakenIsAskedForAgain: a device that had no room asks on the same
// exchange, and gets all of it.
// offers is how many entries were offered so far.
func (m *memory) offers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offered
}

func TestWhatWasNotTakenIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		b.log.paused = true
		for k := range 300 {
			a.log.write(byte(k), byte(k>>8))
		}
		w.call(a, b)
		time.Sleep(2 * time.Second)
		w.connected(a, b)
		offered := b.log.offers()
		b.log.mu.Lock()
		b.log.paused = false
		b.log.mu.Unlock()
		time.Sleep(5 * time.Minute)
		if b.log.len() != 0 || b.log.offers() != offered || offered != 300 {
			t.Fatalf("%d entries were taken and %d offered again before anybody asked", b.log.len(), b.log.offers()-offered)
		}
		b.Again()
		time.Sleep(time.Second)
		if !equal(a, b) || a.log.len() != 300 {
			t.Fatalf("%d of 300 entries came when they were asked for again", b.log.len())
		}
		w.connected(a, b)
		if b.log.offers() != 600 {
			t.Errorf("%d entries were offered again, want 300", b.log.offers()-offered)
		}
		for range 50 {
			b.Again() // once is enough, and more does no harm
		}
		time.Sleep(10 * time.Minute)
		w.connected(a, b)
		if b.log.offers() != 600 {
			t.Errorf("%d entries were offered though nothing was lacking", b.log.offers()-600)
		}
	})
}

func TestThreeDevicesPassOnWhatTheyGet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.device("laptop"), w.device("phone"), w.device("desk")
		introduce(a, b, c)
		w.call(a, b)
		w.call(c, b) // laptop and desk know only the phone
		time.Sleep(time.Second)
		for k := range 50 {
			a.log.write(byte(k))
			c.log.write(byte(k), 1)
		}
		time.Sleep(time.Second)
		if !equal(a, b) || !equal(b, c) || a.log.len() != 100 {
			t.Fatalf("%d, %d, %d entries", a.log.len(), b.log.len(), c.log.len())
		}
	})
}

func TestLargeEntriesAreFlowControlled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		for k := range 6 {
			a.log.write(bytes.Repeat([]byte{byte(k)}, notebook.MaxText)...)
		}
		a.log.write(7)
		b.log.slow = 5 * time.Second
		w.call(a, b)
		time.Sleep(90 * time.Second)
		if !equal(a, b) {
			t.Fatalf("%d of 7 entries: %+v", b.log.len(), a.peer(b))
		}
		if b.log.accepts < 6 {
			t.Errorf("12 MiB reached the log in %d pieces: the window is 1 MiB", b.log.accepts)
		}
		w.connected(a, b)
	})
}

func TestAnInterruptedSyncGoesOnWhereItWas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		for k := range 2000 {
			a.log.write(bytes.Repeat([]byte{byte(k)}, 4<<10)...)
		}
		b.log.slow = 100 * time.Millisecond
		w.call(a, b)
		time.Sleep(time.Second)
		w.links.Cut(a.id, b.id)
		time.Sleep(3 * time.Minute)
		had := b.log.len()
		if had == 0 || had == 2000 {
			t.Fatalf("%d entries before the cut: the test cuts at the wrong time", had)
		}
		if a.peer(b).Connected || a.peer(b).Problem == "" {
			t.Errorf("the laptop has not noticed: %+v", a.peer(b))
		}
		w.links.Heal(a.id, b.id)
		time.Sleep(2 * time.Minute)
		w.connected(a, b)
		if !equal(a, b) {
			t.Fatalf("%d entries", b.log.len())
		}
		if again := b.log.offered - 2000; again > 0 {
			t.Errorf("%d entries were sent twice", again)
		}
	})
}

func TestEqualHeadsCostOneRoundTripAndLittle(t *testing.T) {
	for _, n := range []int{1, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.device("laptop"), w.device("phone")
				introduce(a, b)
				for range n {
					a.log.write(1)
				}
				w.call(a, b)
				time.Sleep(10 * time.Second)
				if !equal(a, b) {
					t.Fatal("not equal")
				}
				offered := b.log.offered
				b.stop()
				time.Sleep(2 * time.Minute)
				b.start(w)
				w.call(b, a)
				time.Sleep(time.Second)
				w.connected(a, b)
				if b.log.offered != offered || a.log.offered != 0 {
					t.Errorf("entries were sent")
				}
				sent, frames := p2p.Traffic(b.Node, a.id)
				if sent > 512 || frames != 1 { // both sides together then stay below 1 KiB
					t.Errorf("the phone sent %d bytes in %d frames", sent, frames)
				}
				sent, frames = p2p.Traffic(a.Node, b.id)
				if sent > 512 || frames != 1 {
					t.Errorf("the laptop sent %d bytes in %d frames", sent, frames)
				}
			})
		})
	}
}

func TestBothDialAndKeepOneExchange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		for range 20 {
			w.call(a, b)
			w.call(b, a)
			time.Sleep(10 * time.Second)
			w.connected(a, b)
			a.log.write(1)
			b.log.write(2)
			time.Sleep(time.Second)
			if !equal(a, b) {
				t.Fatal("they do not sync")
			}
			if n := p2p.Exchanges(a.Node, b.id); n != 1 {
				t.Fatalf("%d exchanges", n)
			}
			w.links.Cut(a.id, b.id)
			time.Sleep(2 * time.Minute)
			if a.peer(b).Connected || b.peer(a).Connected {
				t.Fatal("a cut link counts as connected")
			}
			w.links.Heal(a.id, b.id)
		}
	})
}

func TestAStrangerIsTurnedAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, stranger := w.device("laptop"), w.device("phone"), w.device("stranger")
		introduce(a, b)
		a.log.write(1)
		stranger.log.write(2)
		// the stranger believes that the laptop is in its notebook
		stranger.log.members[a.id] = true
		w.call(stranger, a)
		w.call(b, a)
		time.Sleep(30 * time.Second)
		if a.peer(stranger).Connected || stranger.log.len() != 1 || a.log.len() != 1 {
			t.Fatalf("the stranger came in: %+v, %d entries there, %d here", a.peer(stranger), stranger.log.len(), a.log.len())
		}
		if !a.saw(p2p.Stranger, "not in this notebook") {
			t.Error("nobody was told")
		}
		if p := stranger.peer(a).Problem; p == "" {
			t.Errorf("the stranger has no problem")
		}
		w.connected(a, b) // a member came in by the same door
		if !equal(a, b) {
			t.Error("the member does not sync")
		}
		// and one that is dialed
		w.call(a, stranger)
		time.Sleep(30 * time.Second)
		if a.peer(stranger).Connected {
			t.Error("the laptop dialed a stranger")
		}
	})
}

func TestARemovedDeviceIsCutOffAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.device("laptop"), w.device("phone"), w.device("desk")
		introduce(a, b, c)
		w.call(b, a)
		w.call(c, a)
		time.Sleep(time.Second)
		w.connected(a, b)
		w.connected(a, c)

		a.log.remove(b.id)
		a.Drop(b.id)
		if a.peer(b).Connected {
			t.Fatal("still connected after Drop returned")
		}
		if n := p2p.Conns(a.Node, b.id); n != 0 {
			t.Errorf("%d connections after Drop returned", n)
		}
		had, sent := b.log.len(), w.links.Bytes(a.id, b.id)
		a.log.write(1)
		b.log.write(2) // the phone does not know yet
		time.Sleep(10 * time.Minute)
		if b.log.len() != had+1 || a.log.len() != 1 {
			t.Errorf("%d entries there, %d here", b.log.len(), a.log.len())
		}
		if more := w.links.Bytes(a.id, b.id) - sent; more == 0 {
			t.Error("the phone never tried again: the test proves nothing")
		}
		if a.peer(b).Connected || b.peer(a).Connected {
			t.Error("the removed device came back")
		}
		if !equal(a, c) {
			t.Error("the other member suffers")
		}
	})
}

// A removal that the log takes from the very device it removes, in the middle
// of an exchange, must not wait for itself.
func TestARemovalFromWithinTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.call(a, b)
		time.Sleep(time.Second)
		a.log.onAccept = func(notebook.Entry) error {
			delete(a.log.members, b.id)
			a.Drop(b.id)
			return nil
		}
		b.log.write(1)
		time.Sleep(time.Second)
		if a.peer(b).Connected || a.log.len() != 1 {
			t.Errorf("%+v, %d entries", a.peer(b), a.log.len())
		}
		a.log.write(2)
		time.Sleep(time.Minute)
		if b.log.len() != 1 {
			t.Error("the removed device still reads")
		}
	})
}

func TestMembershipIsAskedOnEveryFrame(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.call(a, b)
		time.Sleep(time.Second)
		a.log.remove(b.id) // and nobody calls Drop
		a.log.write(1)
		b.log.write(2)
		time.Sleep(time.Minute)
		if b.log.len() != 1 || a.log.len() != 1 || a.peer(b).Connected {
			t.Errorf("%d entries there, %d here, %+v", b.log.len(), a.log.len(), a.peer(b))
		}
	})
}

// What a device has sent and the log has not begun to take when the device is
// removed is not taken, whoever calls Drop or does not.
func TestWhatIsQueuedWhenADeviceIsRemovedIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.call(a, b)
		time.Sleep(time.Second)
		a.log.slow = 5 * time.Second
		for k := range 5 {
			b.log.write(byte(k))
			time.Sleep(100 * time.Millisecond)
		}
		a.log.remove(b.id) // while the log takes the first
		time.Sleep(time.Minute)
		if a.log.accepts != 1 || a.log.len() != 1 {
			t.Errorf("the log was given %d batches and took %d entries", a.log.accepts, a.log.len())
		}
	})
}

// The same entry may reach a device from several others, once from each, and
// never goes back to where it came from.
func TestInAMeshAnEntryCrossesEachLinkOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b, c := w.device("laptop"), w.device("phone"), w.device("desk")
		introduce(a, b, c)
		for k := range 1000 {
			a.log.write(make([]byte, 1000+k%7)...)
		}
		w.call(b, a)
		w.call(c, a)
		w.call(b, c)
		time.Sleep(10 * time.Second)
		for k := range 100 {
			a.log.write(byte(k))
			b.log.write(byte(k))
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if !equal(a, b) || !equal(b, c) || a.log.len() != 1200 {
			t.Fatalf("%d, %d, %d entries", a.log.len(), b.log.len(), c.log.len())
		}
		// What is committed just as a pass begins may go twice.
		const twice = 20
		if a.log.offered > 2*100+twice || b.log.offered > 2*1100+twice || c.log.offered > 2*1200+twice {
			t.Errorf("sent to the laptop %d, the phone %d, the desk %d", a.log.offered, b.log.offered, c.log.offered)
		}
	})
}

func TestARefusedEntryEndsTheExchangeOnBothScreens(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		a.log.onAccept = func(notebook.Entry) error { return errors.New("the signature is wrong") }
		b.log.write(1)
		w.call(a, b)
		time.Sleep(time.Minute)
		if !a.saw(p2p.Problem, "the signature is wrong") {
			t.Errorf("the laptop: %+v", a.events)
		}
		if !b.saw(p2p.Problem, "does not accept") {
			t.Errorf("the phone: %+v", b.events)
		}
		tries := a.log.accepts
		if tries > 7 { // 1 2 4 8 16 32
			t.Errorf("%d tries in a minute", tries)
		}
		a.log.mu.Lock()
		a.log.onAccept = nil
		a.log.mu.Unlock()
		time.Sleep(3 * time.Minute)
		w.connected(a, b)
		if !equal(a, b) {
			t.Error("they do not sync after the cause is gone")
		}
		if p := a.peer(b).Problem; p != "" {
			t.Errorf("the problem stays: %s", p)
		}
	})
}

func TestAnotherNotebookIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		b.log.nb = notebook.NotebookID{2}
		a.log.write(1)
		w.call(a, b)
		time.Sleep(time.Minute)
		for _, d := range []*device{a, b} {
			if !d.saw(p2p.Problem, "another notebook") {
				t.Errorf("%s: %+v", d.name, d.events)
			}
		}
		if b.log.len() != 0 {
			t.Error("an entry crossed")
		}
	})
}

func TestReconnectingBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.links.Cut(a.id, b.id)
		w.call(a, b)
		time.Sleep(10 * time.Minute)
		p := a.peer(b)
		if p.Connected || !strings.Contains(p.Problem, "does not answer") {
			t.Errorf("%+v", p)
		}
		if n := a.count(p2p.Problem); n != 1 {
			t.Errorf("the same problem was told %d times", n)
		}
		if wait := time.Until(p.Retry); wait > 75*time.Second {
			t.Errorf("the next try is in %v", wait)
		}
		w.links.Heal(a.id, b.id)
		time.Sleep(90 * time.Second)
		w.connected(a, b)

		// a new address is tried at once, whatever the backoff
		w.links.Cut(a.id, b.id)
		time.Sleep(10 * time.Minute)
		for time.Until(a.peer(b).Retry) < 10*time.Second {
			time.Sleep(time.Second)
		}
		w.links.Heal(a.id, b.id)
		w.call(a, b)
		time.Sleep(time.Second)
		w.connected(a, b)
	})
}

func TestAnIdleExchangeStaysAndADeadOneEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.call(a, b)
		time.Sleep(time.Second)
		since := a.peer(b).Since
		time.Sleep(time.Hour)
		w.connected(a, b)
		if !a.peer(b).Since.Equal(since) || a.count(p2p.Connected) != 1 {
			t.Error("it was cut in between")
		}
		w.links.Cut(a.id, b.id)
		time.Sleep(silentMost)
		if a.peer(b).Connected || b.peer(a).Connected {
			t.Error("a dead link counts as connected after a minute")
		}
	})
}

const silentMost = 65 * time.Second

func TestAddressesAreLearntAndReported(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		w.call(b, a) // the laptop has no address of the phone
		time.Sleep(2 * time.Second)
		w.connected(a, b)
		want := []string{w.links.Address(b.id)}
		if got := a.peer(b).Addresses; !slices.Equal(got, want) {
			t.Errorf("learnt %q, want %q", got, want)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !slices.ContainsFunc(a.events, func(e p2p.Event) bool {
			return e.Kind == p2p.Addresses && e.Device == b.id && slices.Equal(e.Addresses, want)
		}) {
			t.Errorf("nobody was told: %+v", a.events)
		}
	})
}

func TestServeEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		introduce(a, b)
		b.log.slow = time.Hour // its log is busy
		for range 100 {
			a.log.write(make([]byte, 100<<10)...)
		}
		w.call(a, b)
		time.Sleep(5 * time.Second)
		began := time.Now()
		b.stop()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("ending took %v", took)
		}
		time.Sleep(2 * time.Second)
		if a.peer(b).Connected {
			t.Error("the laptop has not noticed")
		}
		if err := b.Serve(t.Context()); err == nil {
			t.Error("a node served twice")
		}
	}) // the bubble fails if a goroutine is left
}

func TestBadConfigurations(t *testing.T) {
	key := keyOf("x")
	for name, c := range map[string]p2p.Config{
		"no key":   {Listen: []string{"/ip4/127.0.0.1/tcp/0"}},
		"a name":   {Key: key, Listen: []string{"/dns4/example.org/tcp/1"}},
		"prose":    {Key: key, Listen: []string{"localhost:80"}},
		"relay":    {Key: key, Listen: []string{"/p2p-circuit"}},
		"sctp":     {Key: key, Listen: []string{"/ip4/127.0.0.1/sctp/1"}},
		"bare udp": {Key: key, Listen: []string{"/ip4/127.0.0.1/udp/1"}},
	} {
		if n, err := p2p.New(c); err == nil {
			n.Close()
			t.Errorf("%s: no error", name)
		}
	}
	n, err := p2p.New(p2p.Config{Key: key, Log: newMemory(notebook.DeviceID{}), Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	addrs := n.Addresses()
	if len(addrs) != 2 || !strings.HasSuffix(addrs[0], "quic-v1") {
		t.Errorf("%q", addrs)
	}
	if err := n.SetAddresses(notebook.DeviceID{9}, []string{"/ip4/10.0.0.1/tcp/1", "nonsense"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v", err)
	}
}
