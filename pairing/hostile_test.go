package pairing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// meddler sees each frame of one direction and returns what is passed on; nil
// drops it.
type meddler interface{ pass(f frame) []frame }

// everything is what both sides may say, for the one in the middle.
var everything = func() limits {
	l := limits{}
	for _, side := range []limits{inviterTakes, joinerTakes} {
		for k, n := range side {
			l[k] = max(l[k], n)
		}
	}
	return l
}()

// rewrite changes the frames of one kind.
type rewrite struct {
	kind kind
	to   func([]byte) []byte
}

func (r rewrite) pass(f frame) []frame {
	if f.kind == r.kind {
		f.body = r.to(bytes.Clone(f.body))
	}
	return []frame{f}
}

// delayed holds the nth frame back.
type delayed struct {
	nth, seen int
	by        time.Duration
}

func (d *delayed) pass(f frame) []frame {
	if d.seen++; d.seen == d.nth {
		time.Sleep(d.by)
	}
	return []frame{f}
}

// silence passes nothing from the frame of one kind on.
type silence struct {
	from  kind
	quiet *bool
}

func (s silence) pass(f frame) []frame {
	if f.kind == s.from {
		*s.quiet = true
	}
	if *s.quiet {
		return nil
	}
	return []frame{f}
}

// between plays a pairing with somebody in the middle who owns the wire.
func (w *table) between(ctx context.Context, fromPhone, fromLaptop meddler) outcome {
	laptop, nearLaptop := net.Pipe()
	phone, nearPhone := net.Pipe()
	var wires sync.WaitGroup
	wire := func(from, to net.Conn, m meddler) {
		defer from.Close()
		hush, silent := m.(silence)
		for {
			f, err := readFrame(from, everything)
			if err != nil {
				if !silent || !*hush.quiet { // a side that is silent does not hang up either
					to.Close()
				}
				return
			}
			out := []frame{f}
			if m != nil {
				out = m.pass(f)
			}
			for _, f := range out {
				to.Write(appendFrame(nil, f)) // an end that has hung up hears nothing, but may have spoken
			}
		}
	}
	wires.Go(func() { wire(nearPhone, nearLaptop, fromPhone) })
	wires.Go(func() { wire(nearLaptop, nearPhone, fromLaptop) })
	o := w.play(ctx, laptop, phone)
	wires.Wait()
	return o
}

func TestTheMiddleChangesNothingAndTheyPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		if o := w.between(t.Context(), nil, nil); o.atLaptop != nil || o.atPhone != nil {
			t.Fatalf("laptop: %v, phone: %v", o.atLaptop, o.atPhone)
		}
	})
}

// A stolen invitation does not let anyone stand between the two without its own
// key: the proofs speak of the keys that the channels have proven.
func TestAManInTheMiddleFailsTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		middle := newDevice(9)
		w.invite.Peer = middle.id // the laptop's channel ends in the middle
		w.between(t.Context(), nil, nil).both(t, WrongSecret, Proof, true)
		if len(w.added) != 0 || len(w.codes) != 0 {
			t.Error("it came further than the proof")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		middle := newDevice(9)
		w.join.Invitation.Inviter = middle.id // the phone scanned the middle's code
		w.between(t.Context(), nil, nil).both(t, WrongSecret, Proof, true)
	})
}

// A middle that knows the secret and answers each side with its own key shows
// each person another code: the joiner is bound to its nonce before it sees
// the inviter's.
func TestTwoPairingsShowTwoCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		stop := func(context.Context, Peer, string) (bool, error) { return false, nil }
		seen := map[string]bool{}
		for k := range 20 {
			w.offer = NewOffer(w.offer.Invitation())
			w.invite.Offer = w.offer
			var code string
			w.invite.Confirm = func(_ context.Context, _ Peer, c string) (bool, error) { code = c; return false, nil }
			w.join.Confirm = stop
			w.invite.Peer = newDevice(byte(10 + k)).id
			w.join.Self = w.invite.Peer
			w.pair(t.Context())
			seen[code] = true
		}
		if len(seen) < 19 {
			t.Errorf("%d codes of 20 pairings", len(seen))
		}
	})
	t.Run("the commitment binds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTable()
			other := func(b []byte) []byte { b[0] ^= 1; return b } // another nonce than it bound itself to
			w.between(t.Context(), rewrite{kindProof, other}, nil).both(t, Garbled, Proof, true)
		})
	})
}

func TestATamperedFrameEndsThePairing(t *testing.T) {
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			if at < 0 {
				at += len(b)
			}
			b[at] ^= 1
			return b
		}
	}
	grow := func(b []byte) []byte { return append(b, 0) }
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	for name, c := range map[string]struct {
		phone, laptop meddler
		reason        Reason
		step          Step
		atLaptop      bool
	}{
		"notebook":          {rewrite{kindGreet, flip(2)}, nil, Notebook, Greeting, true},
		"commitment":        {rewrite{kindGreet, flip(-1)}, nil, Garbled, Proof, true},
		"short greeting":    {rewrite{kindGreet, cut}, nil, Garbled, Greeting, true},
		"inviter's nonce":   {nil, rewrite{kindAnswer, flip(-1)}, WrongSecret, Proof, true},
		"long answer":       {nil, rewrite{kindAnswer, grow}, Garbled, Greeting, false},
		"joiner's proof":    {rewrite{kindProof, flip(32)}, nil, WrongSecret, Proof, true},
		"joiner's name":     {rewrite{kindProof, flip(-1)}, nil, WrongSecret, Proof, true},
		"number":            {nil, rewrite{kindReturn, flip(2)}, WrongSecret, Proof, false},
		"inviter's proof":   {nil, rewrite{kindReturn, flip(4)}, WrongSecret, Proof, false},
		"inviter's name":    {nil, rewrite{kindReturn, flip(-1)}, WrongSecret, Proof, false},
		"control in a name": {nil, rewrite{kindReturn, func(b []byte) []byte { b[len(b)-1] = 0x1b; return b }}, Garbled, Proof, false},
		"joiner's yes":      {rewrite{kindConfirm, grow}, nil, Garbled, Confirmation, true},
		"inviter's yes":     {nil, rewrite{kindConfirm, grow}, Garbled, Confirmation, false},
		"acceptance":        {rewrite{kindAccept, flip(0)}, nil, Refused, Acceptance, true},
		"welcome":           {nil, rewrite{kindWelcome, flip(0)}, Refused, Welcome, false},
		"first entry":       {rewrite{kindFirst, flip(0)}, nil, Refused, FirstEntry, true},
		"done":              {nil, rewrite{kindDone, grow}, Garbled, Acknowledgement, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTable()
				o := w.between(t.Context(), c.phone, c.laptop)
				if c.step == Acknowledgement { // the laptop has the first entry and is done
					if f, ok := errors.AsType[*Failure](o.atPhone); !ok || f.Reason != c.reason || f.Step != c.step {
						t.Errorf("phone: %v", o.atPhone)
					}
					return
				}
				o.both(t, c.reason, c.step, c.atLaptop)
			})
		})
	}
}

// Whatever goes silent, whenever: both sides end, and each names the step.
func TestSilenceEndsAndNamesTheStep(t *testing.T) {
	for name, c := range map[string]struct {
		from    kind
		phone   bool // who goes silent
		waiting Step // what the other waits for
	}{
		"greeting":    {kindGreet, true, Greeting},
		"answer":      {kindAnswer, false, Greeting},
		"proof":       {kindProof, true, Proof},
		"return":      {kindReturn, false, Proof},
		"their yes":   {kindConfirm, true, Confirmation},
		"our yes":     {kindConfirm, false, Confirmation},
		"acceptance":  {kindAccept, true, Acceptance},
		"welcome":     {kindWelcome, false, Welcome},
		"first entry": {kindFirst, true, FirstEntry},
		"done":        {kindDone, false, Acknowledgement},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTable()
				quiet := silence{c.from, new(bool)}
				fromPhone, fromLaptop := meddler(quiet), meddler(nil)
				if !c.phone {
					fromPhone, fromLaptop = nil, quiet
				}
				o := w.between(t.Context(), fromPhone, fromLaptop)
				waited := o.atLaptop
				if !c.phone {
					waited = o.atPhone
				}
				f, ok := errors.AsType[*Failure](waited)
				if !ok || f.Reason != Timeout || f.Step != c.waiting || f.There {
					t.Errorf("the waiting side: %v", waited)
				}
				if most := personWait + slack + diskWait + 2*networkWait; o.laptopTook > most || o.phoneTook > most {
					t.Errorf("it took %v and %v", o.laptopTook, o.phoneTook)
				}
				if c.from != kindDone && (o.atLaptop == nil || o.atPhone == nil) {
					t.Errorf("a side thinks it is paired: %v, %v", o.atLaptop, o.atPhone)
				}
			})
		})
	}
}

// A peer that takes nothing, so that writes hang, cannot hold a side either.
func TestAPeerThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		a, b := net.Pipe()
		defer b.Close()
		_, err := Join(t.Context(), a, w.join)
		if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != Timeout || f.Step != Greeting {
			t.Errorf("%v", err)
		}
	})
}

func TestALostConnectionNamesTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTable()
		a, b := net.Pipe()
		go func() {
			readFrame(b, everything)
			b.Close()
		}()
		_, err := Join(t.Context(), a, w.join)
		if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != Lost || f.Step != Greeting {
			t.Errorf("%v", err)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, greetFrame(1, [32]byte{1}, [32]byte{2})))
	f.Add(appendFrame(nil, returnFrame(1, make([]byte, 32), "laptop")))
	f.Add(appendFrame(nil, endFrame(&Failure{Reason: Used, Step: Proof})))
	f.Add([]byte{byte(kindWelcome), 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		got, err := readFrame(r, everything)
		if err != nil {
			return
		}
		if len(got.body) > everything[got.kind] {
			t.Fatalf("kind %d with %d bytes", got.kind, len(got.body))
		}
		if again := appendFrame(nil, got); !bytes.Equal(again, b[:len(again)]) || r.Len() != len(b)-len(again) {
			t.Fatal("not what was read")
		}
		if v, ok := got.version(); ok && got.kind == kindGreet {
			if nb, c, ok := got.greet(); ok && !bytes.Equal(greetFrame(v, nb, c).body, got.body) {
				t.Fatal("greeting does not round trip")
			}
		}
		if n, proof, name, ok := got.proof(); ok && !bytes.Equal(proofFrame(n, proof, name).body, got.body) {
			t.Fatal("proof does not round trip")
		}
		if n, proof, name, ok := got.returned(); ok && !bytes.Equal(returnFrame(n, proof, name).body, got.body) {
			t.Fatal("return does not round trip")
		}
		if end, ok := got.end(); ok && end.Error() == "" {
			t.Fatal("an end without words")
		}
	})
}

func TestAFrameIsCappedBeforeItIsAllocated(t *testing.T) {
	huge := []byte{byte(kindWelcome), 0x7f, 0xff, 0xff, 0xff}
	got := testing.AllocsPerRun(10, func() {
		if _, err := readFrame(bytes.NewReader(huge), joinerTakes); !errors.Is(err, errFrame) {
			t.Error(err)
		}
	})
	if got > 20 {
		t.Errorf("%v allocations", got)
	}
	if _, err := readFrame(bytes.NewReader(appendFrame(nil, frame{kindWelcome, make([]byte, MaxWelcome)})), joinerTakes); err != nil {
		t.Errorf("the largest welcome: %v", err)
	}
	if _, err := readFrame(bytes.NewReader(appendFrame(nil, frame{kindWelcome, nil})), inviterTakes); !errors.Is(err, errFrame) {
		t.Errorf("an inviter took a welcome: %v", err)
	}
	if _, err := readFrame(bytes.NewReader(huge[:3]), joinerTakes); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
