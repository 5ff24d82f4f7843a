package pairing

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"noted/notebook"
)

// device is a person's device with the least that a daemon would give pairing:
// real keys and real signatures, so that a changed byte is found.
type device struct {
	id  notebook.DeviceID
	key ed25519.PrivateKey
}

func newDevice(n byte) device {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	return device{notebook.DeviceID(key.Public().(ed25519.PublicKey)), key}
}

func (d device) sign(domain string, parts ...[]byte) []byte {
	h := notebook.Digest(domain, parts...)
	return ed25519.Sign(d.key, h[:])
}

func signed(by notebook.DeviceID, sig []byte, domain string, parts ...[]byte) error {
	h := notebook.Digest(domain, parts...)
	if !ed25519.Verify(by[:], h[:], sig) {
		return errors.New("the signature is wrong")
	}
	return nil
}

// table is two devices that pair: everything that a test may bend.
type table struct {
	laptop, phone device
	offer         *Offer
	invite        InviteConfig
	join          JoinConfig

	mu     sync.Mutex
	codes  []string // as shown
	added  []notebook.DeviceID
	firsts [][]byte
}

func newTable() *table {
	w := &table{laptop: newDevice(1), phone: newDevice(2)}
	genesis := w.laptop.sign("genesis")
	nb := notebook.NotebookID(notebook.Digest("genesis", genesis))
	w.offer = NewOffer(NewInvitation(nb, w.laptop.id, []string{"/ip4/10.0.0.1/udp/4001/quic-v1"}, time.Now()))
	yes := func(code string) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.codes = append(w.codes, code)
		return true, nil
	}
	number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	w.invite = InviteConfig{
		Offer:   w.offer,
		Peer:    w.phone.id,
		Name:    "laptop",
		Number:  func(notebook.DeviceID) (uint32, error) { return 1, nil },
		Confirm: func(_ context.Context, _ Peer, code string) (bool, error) { return yes(code) },
		Commit: func(_ context.Context, p Peer, n uint32, acceptance []byte) ([]byte, error) {
			if err := signed(p.Device, acceptance, "join", nb[:], w.laptop.id[:], number(n)); err != nil {
				return nil, err
			}
			w.added = append(w.added, p.Device)
			return genesis, nil
		},
		First: func(_ context.Context, p Peer, entry []byte) error {
			if err := signed(p.Device, entry, "first"); err != nil {
				return err
			}
			w.firsts = append(w.firsts, entry)
			return nil
		},
	}
	w.join = JoinConfig{
		Invitation: w.offer.Invitation(),
		Self:       w.phone.id,
		Name:       "phone",
		Check:      func(Peer) error { return nil },
		Confirm:    func(_ context.Context, _ Peer, code string) (bool, error) { return yes(code) },
		Accept: func(nb notebook.NotebookID, inviter notebook.DeviceID, n uint32) ([]byte, error) {
			return w.phone.sign("join", nb[:], inviter[:], number(n)), nil
		},
		Install: func(_ context.Context, _ Peer, welcome []byte) ([]byte, error) {
			if notebook.NotebookID(notebook.Digest("genesis", welcome)) != nb {
				return nil, errors.New("this is not the beginning of the notebook that was shown")
			}
			return w.phone.sign("first"), nil
		},
	}
	return w
}

// outcome is how each side ended.
type outcome struct {
	phone, laptop         Peer // as the other side saw it
	atLaptop, atPhone     error
	laptopTook, phoneTook time.Duration
}

// play runs both sides over the two ends of a channel.
func (w *table) play(ctx context.Context, atLaptop, atPhone io.ReadWriteCloser) (o outcome) {
	var both sync.WaitGroup
	began := time.Now()
	both.Go(func() {
		o.phone, o.atLaptop = Invite(ctx, atLaptop, w.invite)
		o.laptopTook = time.Since(began)
	})
	both.Go(func() {
		o.laptop, o.atPhone = Join(ctx, atPhone, w.join)
		o.phoneTook = time.Since(began)
	})
	both.Wait()
	return o
}

func (w *table) pair(ctx context.Context) outcome {
	a, b := net.Pipe()
	return w.play(ctx, a, b)
}

// both asserts that each screen shows the reason, and who found it.
func (o outcome) both(t *testing.T, reason Reason, step Step, foundAtLaptop bool) {
	t.Helper()
	for side, err := range map[string]error{"laptop": o.atLaptop, "phone": o.atPhone} {
		f, ok := errors.AsType[*Failure](err)
		if !ok {
			t.Errorf("%s: %v, want reason %d", side, err, reason)
			continue
		}
		if f.Reason != reason || f.Step != step || f.There == ((side == "laptop") == foundAtLaptop) {
			t.Errorf("%s: reason %d at %v, found there: %v (%v), want reason %d at %v, found at the laptop: %v",
				side, f.Reason, f.Step, f.There, err, reason, step, foundAtLaptop)
		}
	}
}

func TestTwoDevicesPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		o := w.pair(t.Context())
		if o.atLaptop != nil || o.atPhone != nil {
			t.Fatalf("laptop: %v, phone: %v", o.atLaptop, o.atPhone)
		}
		if o.phone != (Peer{w.phone.id, "phone"}) || o.laptop != (Peer{w.laptop.id, "laptop"}) {
			t.Errorf("they saw %v and %v", o.phone, o.laptop)
		}
		if len(w.codes) != 2 || w.codes[0] != w.codes[1] || len(w.codes[0]) != 6 {
			t.Errorf("codes %q, want the same six digits twice", w.codes)
		}
		if len(w.added) != 1 || len(w.firsts) != 1 {
			t.Errorf("%d added, %d first entries", len(w.added), len(w.firsts))
		}
	})
}

func TestASecretIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		if o := w.pair(t.Context()); o.atLaptop != nil {
			t.Fatal(o.atLaptop)
		}
		thief := newDevice(3)
		w.invite.Peer, w.join.Self = thief.id, thief.id
		w.pair(t.Context()).both(t, Used, Greeting, true)
		if len(w.added) != 1 {
			t.Errorf("%d devices added", len(w.added))
		}
	})
}

func TestADeclinedSecretIsSpentToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		w.invite.Confirm = func(context.Context, Peer, string) (bool, error) { return false, nil }
		w.pair(t.Context()).both(t, Declined, Confirmation, true)
		w.pair(t.Context()).both(t, Used, Greeting, true)
	})
}

func TestAWrongSecretHasThreeTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		right := w.join.Invitation.Secret
		w.join.Invitation.Secret[0] ^= 1
		for range 3 {
			w.pair(t.Context()).both(t, WrongSecret, Proof, true)
		}
		w.join.Invitation.Secret = right
		w.pair(t.Context()).both(t, TooMany, Greeting, true)

		// another key still has its tries
		other := newDevice(4)
		w.invite.Peer, w.join.Self = other.id, other.id
		w.join.Accept = func(nb notebook.NotebookID, inviter notebook.DeviceID, n uint32) ([]byte, error) {
			return other.sign("join", nb[:], inviter[:], binary.BigEndian.AppendUint32(nil, n)), nil
		}
		w.join.Install = func(context.Context, Peer, []byte) ([]byte, error) { return other.sign("first"), nil }
		if o := w.pair(t.Context()); o.atLaptop != nil || o.atPhone != nil {
			t.Errorf("another key: %v, %v", o.atLaptop, o.atPhone)
		}
	})
}

func TestAnInvitationExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		time.Sleep(Lifetime)
		w.pair(t.Context()).both(t, Expired, Greeting, true)
	})
	synctest.Test(t, func(t *testing.T) { // between the greeting and the proof
		w := newTable()
		time.Sleep(Lifetime - time.Second)
		late := delayed{nth: 2, by: 2 * time.Second}
		o := w.between(t.Context(), &late, nil)
		o.both(t, Expired, Proof, true)
	})
}

func TestEitherPersonMayDecline(t *testing.T) {
	no := func(context.Context, Peer, string) (bool, error) { return false, nil }
	never := func(ctx context.Context, _ Peer, _ string) (bool, error) { <-ctx.Done(); return false, ctx.Err() }
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		w.invite.Confirm, w.join.Confirm = no, never // the other person is still looking
		w.pair(t.Context()).both(t, Declined, Confirmation, true)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		w.join.Confirm = no
		w.pair(t.Context()).both(t, Declined, Confirmation, false)
		if len(w.added) != 0 {
			t.Error("added in spite of a no")
		}
	})
}

func TestAJoiningHomeMayRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		w.join.Check = func(Peer) error { return &Failure{Reason: HasPages} }
		o := w.pair(t.Context())
		f := &Failure{}
		if !errors.As(o.atPhone, &f) || f.Reason != HasPages || f.There {
			t.Errorf("phone: %v", o.atPhone)
		}
		if !errors.As(o.atLaptop, &f) || f.Reason != HasPages || !f.There {
			t.Errorf("laptop: %v", o.atLaptop)
		}
		if len(w.codes) > 1 {
			t.Error("the phone's person was asked")
		}
	})
}

func TestAnotherNotebook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		w.join.Invitation.Notebook[0] ^= 1
		w.pair(t.Context()).both(t, Notebook, Greeting, true)
	})
}

func TestAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		o := w.between(t.Context(), rewrite{kindGreet, func(b []byte) []byte { b[1] = 7; return append(b, "and more"...) }}, nil)
		o.both(t, Version, Greeting, true)
		for _, err := range []error{o.atLaptop, o.atPhone} {
			if !strings.Contains(err.Error(), "update noted") {
				t.Errorf("%v", err)
			}
		}
		if f := o.atLaptop.(*Failure); f.Theirs != 7 {
			t.Errorf("the laptop saw version %d", f.Theirs)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		o := w.between(t.Context(), nil, rewrite{kindAnswer, func(b []byte) []byte { b[1] = 7; return b }})
		o.both(t, Version, Greeting, false)
	})
}

func TestCallbacksMayRefuse(t *testing.T) {
	no := errors.New("the disk is full")
	for name, c := range map[string]struct {
		bend     func(w *table)
		step     Step
		atLaptop bool
	}{
		"number": {func(w *table) { w.invite.Number = func(notebook.DeviceID) (uint32, error) { return 0, no } }, Proof, true},
		"accept": {func(w *table) {
			w.join.Accept = func(notebook.NotebookID, notebook.DeviceID, uint32) ([]byte, error) { return nil, no }
		}, Acceptance, false},
		"commit": {func(w *table) {
			w.invite.Commit = func(context.Context, Peer, uint32, []byte) ([]byte, error) { return nil, no }
		}, Acceptance, true},
		"big": {func(w *table) {
			w.invite.Commit = func(context.Context, Peer, uint32, []byte) ([]byte, error) { return make([]byte, MaxWelcome+1), nil }
		}, Welcome, true},
		"install": {func(w *table) {
			w.join.Install = func(context.Context, Peer, []byte) ([]byte, error) { return nil, no }
		}, Welcome, false},
		"first": {func(w *table) { w.invite.First = func(context.Context, Peer, []byte) error { return no } }, FirstEntry, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTable()
				c.bend(w)
				w.pair(t.Context()).both(t, Refused, c.step, c.atLaptop)
			})
		})
	}
}

func TestACancelledPairingSaysSoThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		ctx, cancel := context.WithCancel(t.Context())
		w.invite.Confirm = func(ctx context.Context, _ Peer, _ string) (bool, error) {
			cancel()
			<-ctx.Done()
			return false, ctx.Err()
		}
		w.join.Confirm = func(ctx context.Context, _ Peer, _ string) (bool, error) { <-ctx.Done(); return false, ctx.Err() }
		a, b := net.Pipe()
		var atPhone error
		var other sync.WaitGroup
		other.Go(func() { _, atPhone = Join(t.Context(), b, w.join) })
		_, atLaptop := Invite(ctx, a, w.invite)
		other.Wait()
		outcome{atLaptop: atLaptop, atPhone: atPhone}.both(t, Cancelled, Confirmation, true)
	})
}
