package p2p_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	ma "github.com/multiformats/go-multiaddr"

	"noted/notebook"
	"noted/p2p"
)

// villain is a host of its own making: it speaks libp2p and none of our rules.
type villain struct {
	host.Host
	t  *testing.T
	id notebook.DeviceID
}

func (w *world) villain(name string) *villain {
	w.t.Helper()
	c := p2p.Config{Key: keyOf(name)}
	w.links.Attach(&c)
	key, err := crypto.UnmarshalEd25519PrivateKey(c.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings(c.Listen...), libp2p.NoTransports, libp2p.Transport(quic.NewTransport), c.QUIC,
		libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery(), libp2p.ForceReachabilityPrivate(),
		libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close() })
	return &villain{h, w.t, notebook.DeviceID(c.Key[32:])}
}

// admit makes the villain a paired device of d's notebook, as far as d knows.
func (v *villain) admit(d *device) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	d.log.members[v.id] = true
}

// open calls a device and opens a stream to it.
func (v *villain) open(w *world, d *device, proto protocol.ID) (network.Stream, error) {
	time.Sleep(time.Second) // its own host may still believe in a connection that was refused
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a := ma.StringCast(w.links.Address(d.id))
	pub, err := crypto.UnmarshalEd25519PublicKey(d.id[:])
	if err != nil {
		v.t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.Connect(ctx, peer.AddrInfo{ID: id, Addrs: []ma.Multiaddr{a}}); err != nil {
		return nil, err
	}
	return v.NewStream(ctx, id, proto)
}

func frame(kind byte, body []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	return append(b, body...)
}

const (
	hello    = 1
	entries  = 2
	ack      = 3
	ping     = 4
	farewell = 5
)

// goodHello is a hello without heads, of a version and the test notebook.
func goodHello(version uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, version)
	b = append(b, append([]byte{1}, make([]byte, 31)...)...)
	b = append(b, make([]byte, 16)...)
	return frame(hello, append(b, 0, 0, 0, 0))
}

// said reads frames until the stream ends and returns the last farewell's reason.
func said(s network.Stream) byte {
	s.SetReadDeadline(time.Now().Add(3 * time.Minute))
	var last byte
	for {
		var head [5]byte
		if _, err := io.ReadFull(s, head[:]); err != nil {
			return last
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(s, body); err != nil {
			return last
		}
		if head[0] == farewell {
			last = body[0]
		}
	}
}

func TestMembersThatMisbehave(t *testing.T) {
	one := entry(notebook.DeviceID{7}, nil, []byte("x"))
	batch := func(n uint32, e notebook.Entry) []byte {
		b := binary.BigEndian.AppendUint32(nil, n)
		b = binary.BigEndian.AppendUint16(b, uint16(len(e.Header)))
		b = append(append(b, e.Header...), e.Sig...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Body)))
		return append(b, e.Body...)
	}
	big := entry(notebook.DeviceID{7}, nil, make([]byte, 700<<10))
	const byeVersion, byeNotebook, byeGarbage, byeFlood, byeStalled = 3, 4, 5, 6, 7
	send := func(parts ...[]byte) func(network.Stream) {
		return func(s network.Stream) { s.Write(bytes.Join(parts, nil)) }
	}
	for name, c := range map[string]struct {
		do      func(network.Stream)
		told    byte
		problem string
		slow    time.Duration
	}{
		"another version":           {do: send(goodHello(2)), told: byeVersion, problem: "speaks sync version 2, this noted speaks 1: update noted here"},
		"an older version":          {do: send(goodHello(0)), told: byeVersion, problem: "speaks sync version 0, this noted speaks 1: update noted there"},
		"another version's layout":  {do: send(frame(hello, []byte{0, 9, 1, 2, 3})), told: byeVersion, problem: "version 9"},
		"no hello":                  {do: send(frame(ping, nil)), told: byeGarbage, problem: "not noted's sync"},
		"prose":                     {do: send([]byte("GET / HTTP/1.1\r\n\r\n")), told: byeGarbage, problem: "not noted's sync"},
		"a huge frame":              {do: send([]byte{hello, 0xff, 0xff, 0xff, 0xff}), told: byeGarbage, problem: "at most"},
		"a short hello":             {do: send(frame(hello, []byte{0, 1, 1})), told: byeGarbage, problem: "are left"},
		"another notebook":          {do: send(func() []byte { b := goodHello(1); b[7] ^= 9; return b }()), told: byeNotebook, problem: "another notebook"},
		"too many heads":            {do: send(frame(hello, append(goodHello(1)[5:55:55], 0xff, 0xff, 0xff, 0xff))), told: byeGarbage, problem: "heads"},
		"an unknown kind":           {do: send(goodHello(1), frame(77, nil)), told: byeGarbage, problem: "kind 77"},
		"a second hello":            {do: send(goodHello(1), goodHello(1)), told: byeGarbage, problem: "kind 1"},
		"a ping with a body":        {do: send(goodHello(1), frame(ping, []byte{1})), told: byeGarbage, problem: "kind 4"},
		"an empty batch":            {do: send(goodHello(1), frame(entries, make([]byte, 4))), told: byeGarbage, problem: "batch of 0"},
		"a batch that lies":         {do: send(goodHello(1), frame(entries, batch(2, one))), told: byeGarbage, problem: "are left"},
		"more after the batch":      {do: send(goodHello(1), frame(entries, append(batch(1, one), 0))), told: byeGarbage, problem: "too many"},
		"a batch beyond its cap":    {do: send(goodHello(1), []byte{entries, 0x00, 0x40, 0, 0}), told: byeGarbage, problem: "at most"},
		"an entry without header":   {do: send(goodHello(1), frame(entries, batch(1, notebook.Entry{Sig: make([]byte, 64)}))), told: byeGarbage, problem: "without a header"},
		"an ack of nothing":         {do: send(goodHello(1), frame(ack, make([]byte, 12))), told: byeGarbage, problem: "not sent"},
		"pings":                     {do: send(goodHello(1), bytes.Repeat(frame(ping, nil), 12)), told: byeFlood, problem: "pings"},
		"more than the window":      {do: send(goodHello(1), frame(entries, batch(1, big)), frame(entries, batch(1, big))), told: byeFlood, problem: "unacknowledged", slow: time.Minute},
		"a frame that never ends":   {do: send(goodHello(1), []byte{entries, 0, 0, 1, 0, 1}), told: byeStalled, problem: "middle of a frame"},
		"silence after the hello":   {do: send(goodHello(1)), told: byeStalled, problem: "no sign of life"},
		"silence before the hello":  {do: func(s network.Stream) { s.Write([]byte{hello}) }, problem: "hung up at once"},
		"a farewell without reason": {do: send(goodHello(1), frame(farewell, nil)), told: byeGarbage, problem: "are left"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.device("laptop"), w.device("phone")
				introduce(a, b)
				w.call(b, a)
				v := w.villain("villain")
				v.admit(a)
				a.log.slow = c.slow
				s, err := v.open(w, a, "/noted/sync")
				if err != nil {
					t.Fatal(err)
				}
				c.do(s)
				if told := said(s); told != c.told {
					t.Errorf("it was told %d, want %d", told, c.told)
				}
				time.Sleep(2 * time.Second)
				if !a.saw(p2p.Problem, c.problem) {
					t.Errorf("the person was not told %q: %+v", c.problem, a.events)
				}
				if a.log.len() > 1 {
					t.Errorf("%d entries were taken", a.log.len())
				}
				a.log.slow = 0
				a.log.write(1)
				time.Sleep(time.Minute)
				w.connected(a, b)
				if a.log.len() != b.log.len() {
					t.Error("an honest member suffers")
				}
			})
		})
	}
}

// What does the same things in order is served: the control for the table above.
func TestAMemberThatBehavesIsServed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.device("laptop")
		v := w.villain("honest")
		v.admit(a)
		a.log.write(1)
		s, err := v.open(w, a, "/noted/sync")
		if err != nil {
			t.Fatal(err)
		}
		s.Write(goodHello(1))
		for _, want := range []byte{hello, entries} {
			var head [5]byte
			s.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := io.ReadFull(s, head[:]); err != nil || head[0] != want {
				t.Fatalf("kind %d, %v, want %d", head[0], err, want)
			}
			io.CopyN(io.Discard, s, int64(binary.BigEndian.Uint32(head[1:])))
		}
		if !a.saw(p2p.Connected, "") {
			t.Error("not connected")
		}
		s.Write(frame(farewell, []byte{1, 0, 1}))
		time.Sleep(time.Second)
		if !a.saw(p2p.Disconnected, "has stopped noted") {
			t.Errorf("%+v", a.events)
		}
		s.Reset()
	})
}

func TestAMisbehavingMemberIsLeftAloneForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.device("laptop")
		v := w.villain("villain")
		v.admit(a)
		heard := 0
		for began := time.Now(); time.Since(began) < 10*time.Minute; {
			s, err := v.open(w, a, "/noted/sync")
			if err != nil {
				time.Sleep(time.Second)
				continue
			}
			s.Write(append(goodHello(1), frame(77, nil)...))
			if said(s) == 5 {
				heard++
			}
			s.Reset()
			time.Sleep(100 * time.Millisecond)
		}
		if heard == 0 || heard > 6+11 { // 1 2 4 8 16 32 seconds, then one a minute
			t.Errorf("it was listened to %d times in ten minutes", heard)
		}
	})
}

// A member that takes nothing of what is sent to it, or does not say that it
// did, is let go.
func TestAMemberThatTakesNothing(t *testing.T) {
	for problem, read := range map[string]bool{"takes nothing": false, "does not acknowledge": true} {
		t.Run(problem, func(t *testing.T) { takesNothing(t, problem, read) })
	}
}

func takesNothing(t *testing.T, problem string, read bool) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.device("laptop")
		v := w.villain("villain")
		v.admit(a)
		for range 20 {
			a.log.write(make([]byte, 1<<20)...)
		}
		s, err := v.open(w, a, "/noted/sync")
		if err != nil {
			t.Fatal(err)
		}
		s.Write(goodHello(1))
		go func() { // alive, and never acknowledging
			for range 30 {
				time.Sleep(10 * time.Second)
				if _, err := s.Write(frame(ping, nil)); err != nil {
					return
				}
			}
		}()
		if read {
			go io.Copy(io.Discard, s)
		}
		time.Sleep(4 * time.Minute)
		if !a.saw(p2p.Problem, problem) {
			t.Errorf("%+v", a.events)
		}
		if sent := w.links.Bytes(a.id, v.id); sent > 3<<20 {
			t.Errorf("%d bytes were sent into a window of 1 MiB", sent)
		}
		s.Reset()
		time.Sleep(5 * time.Minute)
	})
}

func TestStrangersReachNothingButPairing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.device("laptop")
		a.log.write(1)
		v := w.villain("stranger")
		try := func(proto protocol.ID) (string, error) {
			s, err := v.open(w, a, proto)
			if err != nil {
				return "", err
			}
			defer s.Reset()
			s.SetReadDeadline(time.Now().Add(2 * time.Second))
			s.Write(goodHello(1))
			b := make([]byte, 5)
			n, err := io.ReadFull(s, b)
			return string(b[:n]), err
		}
		if _, err := try("/noted/pair"); err == nil {
			t.Error("pairing is open without a window")
		}
		shut := a.OpenWindow(func(_ context.Context, d notebook.DeviceID, s io.ReadWriteCloser) {
			if d != v.id {
				t.Errorf("paired with %v", d)
			}
			s.Write([]byte("hello"))
			s.Close()
		})
		if got, err := try("/noted/pair"); got != "hello" {
			t.Errorf("pairing in the window: %q, %v", got, err)
		}
		for _, proto := range []protocol.ID{"/noted/sync", identify.ID, identify.IDPush, "/ipfs/ping/1.0.0", "/ipfs/id/1.0.0"} {
			if got, err := try(proto); err == nil {
				t.Errorf("%s answered a stranger: %q", proto, got)
			}
		}
		if a.log.offered != 0 {
			t.Error("the log was offered something")
		}
		shut()
		time.Sleep(5 * time.Second)
		if n := len(v.Network().Peers()); n != 0 {
			t.Error("the stranger is still connected after the window was shut")
		}
		if _, err := try("/noted/pair"); err == nil {
			t.Error("pairing answers after the window was shut")
		}
		v.admit(a)
		time.Sleep(time.Second)
		if got, err := try("/noted/sync"); err != nil || got[0] != hello {
			t.Errorf("a member: %q, %v", got, err)
		}
	})
}

func TestAWindowThatIsShutEndsItsPairings(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		ended := make(chan struct{})
		shut := a.OpenWindow(func(ctx context.Context, _ notebook.DeviceID, s io.ReadWriteCloser) {
			defer s.Close()
			<-ctx.Done()
			s.Write([]byte("bye"))
			close(ended)
		})
		s, err := b.DialPairing(t.Context(), a.id, []string{w.links.Address(a.id)})
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte{1})
		time.Sleep(time.Second)
		shut()
		<-ended
		if got, _ := io.ReadAll(s); string(got) != "bye" {
			t.Errorf("the last words were %q", got)
		}
		s.Close()
	})
}

func TestPairedDevicesSyncAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		a.log.write(1)
		shut := a.OpenWindow(func(_ context.Context, d notebook.DeviceID, s io.ReadWriteCloser) {
			defer s.Close()
			io.ReadFull(s, make([]byte, 4))
			introduce(a, b) // what pairing ends with
			s.Write([]byte("done"))
		})
		s, err := b.DialPairing(t.Context(), a.id, []string{"/ip4/1.2.3.4/tcp/9", w.links.Address(a.id)})
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte("join"))
		if got := make([]byte, 4); true {
			if _, err := io.ReadFull(s, got); err != nil || string(got) != "done" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		s.Close()
		shut()
		w.call(b, a)
		time.Sleep(time.Second)
		w.connected(a, b)
		if !equal(a, b) {
			t.Error("they do not sync")
		}
		time.Sleep(10 * time.Second)
		w.connected(a, b)
	})
}

func TestDialPairingSaysWhatToDo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a, b := w.device("laptop"), w.device("phone")
		for name, addrs := range map[string][]string{
			"no window":  {w.links.Address(a.id)},
			"no address": nil,
			"a name":     {"/dns4/example.org/tcp/1"},
			"nobody":     {"/ip4/1.2.3.4/udp/1/quic-v1"},
			"another":    {w.links.Address(w.device("desk").id)}, // answers, with another key
		} {
			s, err := b.DialPairing(t.Context(), a.id, addrs)
			e, ok := err.(*notebook.Error)
			if !ok || e.Hint == "" {
				t.Errorf("%s: %v, %v", name, s, err)
			}
		}
		if _, err := b.DialPairing(t.Context(), b.id, []string{w.links.Address(b.id)}); err == nil {
			t.Error("it paired with itself")
		}
	})
}
