package daemontest

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/exec"
	"noted/notebook"
	"noted/p2p"
	"noted/p2p/p2ptest"
)

// Patience is how long a story waits for what has to happen.
const Patience = 20 * time.Second

// World is the devices of a story.
type World struct {
	t       testing.TB
	dir     string
	links   *p2ptest.Links // nil on loopback
	devices map[string]*Device
	names   []string
}

// Loopback makes a device of each name, on this machine's network. Each has a
// notebook of its own and no PIN.
func Loopback(t testing.TB, names ...string) *World {
	t.Helper()
	w := &World{t: t, dir: t.TempDir(), devices: map[string]*Device{}}
	w.Add(names...)
	return w
}

// Bubble makes a device of each name over simulated links. It is called in a
// synctest bubble.
func Bubble(t testing.TB, names ...string) *World {
	t.Helper()
	// The links close after the devices.
	w := &World{t: t, dir: t.TempDir(), links: p2ptest.New(t, 2*time.Millisecond), devices: map[string]*Device{}}
	w.Add(names...)
	return w
}

// Add makes more devices, each with a notebook of its own and no PIN.
func (w *World) Add(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.Init(name, "")
	}
}

// Init makes a device with a PIN, or without one where it is empty, and starts it.
func (w *World) Init(name, pin string) *Device {
	w.t.Helper()
	dir := filepath.Join(w.dir, name)
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	if err := daemon.Init(home, daemon.InitOptions{Name: name, PIN: pin}); err != nil {
		w.t.Fatalf("%s: init: %v", name, err)
	}
	d := &Device{w: w, Name: name, Home: home, Exec: exec.Config{Slots: 2}, pin: pin}
	if w.links != nil {
		d.Exec.Spares = -1
	}
	d.ID = notebook.DeviceID(d.Key().Public().(ed25519.PublicKey))
	w.devices[name] = d
	w.names = append(w.names, name)
	w.t.Cleanup(func() {
		d.Stops()
		for err := range daemon.Check(home) {
			w.t.Errorf("%s: check: %v", name, err)
		}
	})
	d.Starts()
	return d
}

// As is the person at the device of that name.
func (w *World) As(name string) *Hand { return w.Device(name).Owner() }

// Device is the device of that name.
func (w *World) Device(name string) *Device {
	w.t.Helper()
	d := w.devices[name]
	if d == nil {
		w.t.Fatalf("there is no device %s in this story", name)
	}
	return d
}

// Pair takes each of the others into the first one's notebook.
func (w *World) Pair(inviter string, joiners ...string) {
	w.t.Helper()
	for _, joiner := range joiners {
		if err := w.TryPair(inviter, joiner); err != nil {
			w.t.Fatalf("pair %s with %s: %v", inviter, joiner, err)
		}
	}
	w.Settle()
}

// TryPair goes through a pairing in which both persons say yes.
func (w *World) TryPair(inviter, joiner string) error {
	a, b := w.As(inviter), w.As(joiner)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	invitations, codes := make(chan string, 1), make(chan string, 2)
	yes := func(h *Hand, e notebook.PairEvent) error {
		switch e.State {
		case notebook.PairWaiting:
			invitations <- e.Invitation
		case notebook.PairCompare:
			codes <- e.Code
			return h.Client.Confirm(ctx, e.Session, true, h.Presence("the codes are the same"))
		}
		return nil
	}
	invited := make(chan error, 1)
	go func() {
		invited <- a.Client.Pair(ctx, func(e notebook.PairEvent) error { return yes(a, e) })
	}()
	select {
	case invitation := <-invitations:
		if err := b.Join(ctx, invitation, func(e notebook.PairEvent) error { return yes(b, e) }); err != nil {
			cancel()
			return fmt.Errorf("%s: %w (%s: %w)", joiner, err, inviter, <-invited)
		}
	case err := <-invited:
		return fmt.Errorf("%s: %w", inviter, err)
	}
	if err := <-invited; err != nil {
		return fmt.Errorf("%s: %w", inviter, err)
	}
	if x, y := <-codes, <-codes; x != y {
		return fmt.Errorf("the codes are %s and %s", x, y)
	}
	return nil
}

// Settle waits until all running devices that take each other for members have
// the same entries.
func (w *World) Settle() {
	w.t.Helper()
	w.SettleWithin(Patience)
}

// SettleWithin is Settle with another patience.
func (w *World) SettleWithin(patience time.Duration) {
	w.t.Helper()
	if apart := w.within(patience, w.apart); apart != "" {
		w.t.Fatalf("the devices do not come together: %s", apart)
	}
}

// waitFor waits until what returns nothing, and returns what it said last.
func (w *World) waitFor(what func() string) string { return w.within(Patience, what) }

func (w *World) within(patience time.Duration, what func() string) (last string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if last = what(); last == "" {
			return ""
		}
	}
	return last
}

// Eventually waits until it is true.
func (w *World) Eventually(what string, is func() bool) {
	w.t.Helper()
	if w.waitFor(func() string {
		if is() {
			return ""
		}
		return what
	}) != "" {
		w.t.Fatalf("this did not come about: %s", what)
	}
}

// apart says which devices differ; empty if none do.
func (w *World) apart() string {
	for i, x := range w.names {
		for _, y := range w.names[:i] {
			a, b := w.devices[x], w.devices[y]
			if a.Daemon == nil || b.Daemon == nil || !a.Daemon.Member(b.ID) || !b.Daemon.Member(a.ID) {
				continue
			}
			have, has := headLines(a.Daemon.Heads()), headLines(b.Daemon.Heads())
			if !slices.Equal(have, has) {
				return fmt.Sprintf("%s has %v and %s has %v", x, have, y, has)
			}
		}
	}
	return ""
}

func headLines(heads []notebook.Head) (lines []string) {
	for _, h := range heads {
		p := h.Position
		lines = append(lines, fmt.Sprintf("%s/%x/%d:%.8s", p.Device.Short(), p.Epoch[:3], p.Seq, h.Hash))
	}
	return lines
}

// Cut loses every packet between two devices of a bubble, until Heal.
func (w *World) Cut(x, y string) { w.links.Cut(w.Device(x).ID, w.Device(y).ID) }

// Heal ends what Cut began, and waits as long as it takes them to notice.
func (w *World) Heal(x, y string) {
	w.links.Heal(w.Device(x).ID, w.Device(y).ID)
	// The longest wait between two attempts to connect is some minutes.
	time.Sleep(15 * time.Minute)
}

// Device is one device of a story.
type Device struct {
	w    *World
	Name string
	ID   notebook.DeviceID
	Home daemon.Home
	Exec exec.Config // of the next start
	pin  string

	Daemon *daemon.Daemon // nil while it is stopped
	listen []string       // where it was first, so that the others find it again
	stop   context.CancelFunc
	ended  chan error
}

// Key is the device's private key: whoever reads its home has it.
func (d *Device) Key() ed25519.PrivateKey {
	d.w.t.Helper()
	b, err := os.ReadFile(d.Home.KeyFile())
	if err != nil {
		d.w.t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		d.w.t.Fatalf("%s holds no key", d.Home.KeyFile())
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return key.(ed25519.PrivateKey)
}

// Starts starts the device's daemon.
func (d *Device) Starts() {
	d.w.t.Helper()
	c := daemon.Config{Home: d.Home, Listen: d.listen, Exec: d.Exec}
	if d.listen == nil {
		c.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}
	}
	if d.w.links != nil {
		place := p2p.Config{Key: d.Key()}
		d.w.links.Attach(&place)
		c.Listen, c.Link = place.Listen, place.QUIC
	}
	d.open(c)
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.ended = make(chan error, 1)
	serving := d.Daemon
	go func(ended chan<- error) { ended <- serving.Serve(ctx) }(d.ended)
	for _, info := range d.Owner().Devices() {
		if info.Self {
			d.listen = info.Addresses
		}
	}
	d.w.Eventually(d.Name+" serves", func() bool {
		_, err := os.Stat(d.Home.InfoFile())
		return err == nil
	})
}

// open opens the daemon. A port on which the device was before may be some other
// test's for a moment.
func (d *Device) open(c daemon.Config) {
	d.w.t.Helper()
	var err error
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if d.Daemon, err = daemon.Open(c); err == nil {
			return
		}
		if !strings.Contains(err.Error(), "address already in use") || time.Since(began) > Patience {
			d.w.t.Fatalf("%s: open: %v", d.Name, err)
		}
	}
}

// Stops stops it in an orderly way, if it runs.
func (d *Device) Stops() {
	d.w.t.Helper()
	if d.Daemon == nil {
		return
	}
	d.stop()
	select {
	case err := <-d.ended:
		if err != nil {
			d.w.t.Errorf("%s: serve: %v", d.Name, err)
		}
	case <-time.After(3 * Patience):
		d.w.t.Errorf("%s does not stop", d.Name)
	}
	d.Daemon = nil
}

// Restarts stops it and starts it again.
func (d *Device) Restarts() {
	d.w.t.Helper()
	d.Stops()
	d.Starts()
}

// Open is whoever holds a token here.
func (d *Device) Open(token string) (*Hand, error) {
	client, err := d.Daemon.Open(token)
	if err != nil {
		return nil, err
	}
	return &Hand{Device: d, Client: client, t: d.w.t}, nil
}

// Owner is the person at this device.
func (d *Device) Owner() *Hand {
	d.w.t.Helper()
	token, err := daemon.ReadToken(d.Home.OwnerToken())
	if err != nil {
		d.w.t.Fatal(err)
	}
	h, err := d.Open(token)
	if err != nil {
		d.w.t.Fatal(err)
	}
	return h
}

// Agent is an agent at this device, which the person lets in at its first mention.
func (d *Device) Agent(name string) *Hand {
	d.w.t.Helper()
	token, err := os.ReadFile(d.Home.AgentToken(name))
	if err != nil {
		owner := d.Owner()
		if _, err := owner.Client.AddAgent(context.Background(), name, owner.Presence("let "+name+" in")); err != nil {
			d.w.t.Fatalf("%s: let %s in: %v", d.Name, name, err)
		}
		if token, err = os.ReadFile(d.Home.AgentToken(name)); err != nil {
			d.w.t.Fatal(err)
		}
	}
	h, err := d.Open(strings.TrimSpace(string(token)))
	if err != nil {
		d.w.t.Fatal(err)
	}
	return h
}
