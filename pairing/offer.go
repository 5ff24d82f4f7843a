package pairing

import (
	"crypto/hmac"
	"sync"
	"time"

	"noted/notebook"
)

// Bounds of an [Offer]. A secret of 128 bits cannot be guessed; they keep
// strangers from using the window to keep a device busy.
const (
	maxTries     = 3               // of one key
	maxStrangers = 64              // keys that are remembered
	strangerRate = 1 * time.Second // one admission for each, once the burst is spent
	strangerMost = 5               // burst
)

// Offer is the state of one invitation at the inviter: how often it was tried
// and whether it has been used. It may be used from several goroutines. It
// knows no clock: callers pass the time.
type Offer struct {
	invitation Invitation

	mu    sync.Mutex
	used  bool
	tries map[notebook.DeviceID]int
	spent time.Time // when the admissions so far will be paid for
}

// NewOffer opens an invitation.
func NewOffer(i Invitation) *Offer {
	return &Offer{invitation: i, tries: make(map[notebook.DeviceID]int)}
}

// Invitation is what is offered.
func (o *Offer) Invitation() Invitation { return o.invitation }

// Open says whether the offer can still be answered: nil, or a [*Failure] with
// reason Expired or Used.
func (o *Offer) Open(now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open(now)
}

func (o *Offer) open(now time.Time) error {
	switch {
	case o.used:
		return &Failure{Reason: Used}
	case !now.Before(o.invitation.Expires):
		return &Failure{Reason: Expired}
	}
	return nil
}

// Admit counts a try of a key, before anything that it says is looked at.
func (o *Offer) Admit(peer notebook.DeviceID, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(now); err != nil {
		return err
	}
	tries, known := o.tries[peer]
	switch {
	case tries >= maxTries:
		return &Failure{Reason: TooMany}
	case !known && len(o.tries) >= maxStrangers, o.spent.Sub(now) > (strangerMost-1)*strangerRate:
		return &Failure{Reason: Busy}
	}
	o.tries[peer] = tries + 1
	if o.spent.Before(now) {
		o.spent = now
	}
	o.spent = o.spent.Add(strangerRate)
	return nil
}

// Redeem compares the proof that a joiner sent with the right one, and uses the
// offer up if they are equal.
func (o *Offer) Redeem(proof, right []byte, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.open(now); err != nil {
		return err
	}
	if !hmac.Equal(proof, right) {
		return &Failure{Reason: WrongSecret}
	}
	o.used = true
	return nil
}
