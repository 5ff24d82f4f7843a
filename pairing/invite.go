package pairing

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"noted/notebook"
)

// Peer is the other device: its key, which the channel has proven, and what it
// calls itself, which is its claim.
type Peer struct {
	Device notebook.DeviceID
	Name   string
}

// InviteConfig is one answer to an invitation, at the device that made it.
type InviteConfig struct {
	Offer *Offer
	Peer  notebook.DeviceID // who answers, as the channel has proven
	Name  string            // what this device calls itself

	// Number is the roster's number for a joining device: 1, or one more than
	// the last time its key was added. An error refuses it.
	Number func(notebook.DeviceID) (uint32, error)

	// Confirm shows the code and returns the person's answer. It must return
	// when its context is done, which it is when the other side gives up.
	Confirm func(ctx context.Context, peer Peer, code string) (bool, error)

	// Commit adds the device to the roster with its acceptance, once both
	// people have said yes, and returns the beginning of the log, at most
	// [MaxWelcome] bytes.
	Commit func(ctx context.Context, peer Peer, number uint32, acceptance []byte) (welcome []byte, err error)

	// First takes the joiner's first entry, at most [MaxFirst] bytes.
	First func(ctx context.Context, peer Peer, entry []byte) error
}

// Invite answers a device that answers the invitation, and closes rw. The
// secret is used up by the first right proof, whatever becomes of the pairing.
// The error is a [*Failure].
func Invite(ctx context.Context, rw io.ReadWriteCloser, c InviteConfig) (Peer, error) {
	s := start(rw, inviterTakes)
	peer, err := s.invite(ctx, c)
	return peer, s.finish(ctx, err)
}

func (s *session) invite(ctx context.Context, c InviteConfig) (Peer, error) {
	peer := Peer{Device: c.Peer}
	if err := c.Offer.Admit(c.Peer, time.Now()); err != nil {
		return peer, because(Greeting, err)
	}
	inv := c.Offer.Invitation()
	t := transcript{notebook: inv.Notebook, inviter: inv.Inviter, joiner: c.Peer}

	f, err := s.receive(ctx, Greeting, networkWait, kindGreet)
	if err != nil {
		return peer, err
	}
	if err := sameVersion(f); err != nil {
		return peer, err
	}
	nb, commitment, ok := f.greet()
	switch {
	case !ok:
		return peer, &Failure{Reason: Garbled, Step: Greeting}
	case nb != inv.Notebook:
		return peer, &Failure{Reason: Notebook, Step: Greeting}
	}
	t.commitment = commitment
	rand.Read(t.inviteNonce[:])
	if err := s.send(ctx, Greeting, answerFrame(ProtocolVersion, t.inviteNonce)); err != nil {
		return peer, err
	}

	f, err = s.receive(ctx, Proof, networkWait, kindProof)
	if err != nil {
		return peer, err
	}
	var proof []byte
	t.joinNonce, proof, t.joinName, ok = f.proof()
	if !ok || commitTo(t.joinNonce) != t.commitment {
		return peer, &Failure{Reason: Garbled, Step: Proof}
	}
	if err := c.Offer.Redeem(proof, t.proof(inv.Secret, roleJoiner), time.Now()); err != nil {
		return peer, because(Proof, err)
	}
	peer.Name = t.joinName
	if t.number, err = c.Number(c.Peer); err != nil {
		return peer, because(Proof, err)
	}
	t.inviteName = c.Name
	if err := s.send(ctx, Proof, returnFrame(t.number, t.proof(inv.Secret, roleInviter), c.Name)); err != nil {
		return peer, err
	}

	err = s.confirm(ctx, func(ctx context.Context) (bool, error) { return c.Confirm(ctx, peer, t.code()) })
	if err != nil {
		return peer, err
	}
	f, err = s.receive(ctx, Acceptance, networkWait+slack, kindAccept)
	if err != nil {
		return peer, err
	}
	var welcome []byte
	err = onDisk(ctx, Acceptance, func(ctx context.Context) (err error) {
		welcome, err = c.Commit(ctx, peer, t.number, f.body)
		return err
	})
	if err == nil && len(welcome) > MaxWelcome {
		err = &Failure{Reason: Refused, Step: Welcome, Err: fmt.Errorf("it has %d bytes where at most %d are allowed", len(welcome), MaxWelcome)}
	}
	if err != nil {
		return peer, err
	}
	if err := s.send(ctx, Welcome, frame{kindWelcome, welcome}); err != nil {
		return peer, err
	}
	f, err = s.receive(ctx, FirstEntry, diskWait+networkWait, kindFirst)
	if err != nil {
		return peer, err
	}
	if err := onDisk(ctx, FirstEntry, func(ctx context.Context) error { return c.First(ctx, peer, f.body) }); err != nil {
		return peer, err
	}
	return peer, s.send(ctx, Acknowledgement, frame{kind: kindDone})
}

// onDisk runs a callback that writes.
func onDisk(ctx context.Context, step Step, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, diskWait)
	defer cancel()
	if err := do(ctx); err != nil {
		return because(step, err)
	}
	return nil
}

func sameVersion(f frame) error {
	v, ok := f.version()
	switch {
	case !ok:
		return &Failure{Reason: Garbled, Step: Greeting}
	case v != ProtocolVersion:
		return &Failure{Reason: Version, Step: Greeting, Theirs: v}
	}
	return nil
}
