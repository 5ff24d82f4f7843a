package pairing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"fmt"
	"io"

	"noted/notebook"
)

// JoinConfig is one answer to an invitation, at the device that answers. The
// channel must have proven that the invitation's inviter is at its other end.
type JoinConfig struct {
	Invitation Invitation
	Self       notebook.DeviceID
	Name       string // what this device calls itself

	// Check says why this device cannot join, once the inviter has proven that
	// it made the invitation and before any person is asked.
	Check func(inviter Peer) error

	// Confirm shows the code and returns the person's answer. It must return
	// when its context is done, which it is when the other side gives up.
	Confirm func(ctx context.Context, inviter Peer, code string) (bool, error)

	// Accept signs that this device wants to be in the notebook, by this
	// inviter, under the roster's number; at most [MaxAccept] bytes.
	Accept func(nb notebook.NotebookID, inviter notebook.DeviceID, number uint32) ([]byte, error)

	// Install judges the beginning of the log, keeps it, and returns this
	// device's first entry in it, at most [MaxFirst] bytes.
	Install func(ctx context.Context, inviter Peer, welcome []byte) (first []byte, err error)
}

// Join answers an invitation, and closes rw. When it returns nil, both sides
// have the other's entries. The error is a [*Failure].
func Join(ctx context.Context, rw io.ReadWriteCloser, c JoinConfig) (Peer, error) {
	s := start(rw, joinerTakes)
	inviter, err := s.join(ctx, c)
	return inviter, s.finish(ctx, err)
}

func (s *session) join(ctx context.Context, c JoinConfig) (Peer, error) {
	inviter := Peer{Device: c.Invitation.Inviter}
	t := transcript{notebook: c.Invitation.Notebook, inviter: c.Invitation.Inviter, joiner: c.Self, joinName: c.Name}
	rand.Read(t.joinNonce[:])
	t.commitment = commitTo(t.joinNonce)
	if err := s.send(ctx, Greeting, greetFrame(ProtocolVersion, t.notebook, t.commitment)); err != nil {
		return inviter, err
	}
	f, err := s.receive(ctx, Greeting, networkWait, kindAnswer)
	if err != nil {
		return inviter, err
	}
	if err := sameVersion(f); err != nil {
		return inviter, err
	}
	var ok bool
	if t.inviteNonce, ok = f.answer(); !ok {
		return inviter, &Failure{Reason: Garbled, Step: Greeting}
	}

	if err := s.send(ctx, Proof, proofFrame(t.joinNonce, t.proof(c.Invitation.Secret, roleJoiner), c.Name)); err != nil {
		return inviter, err
	}
	f, err = s.receive(ctx, Proof, networkWait, kindReturn)
	if err != nil {
		return inviter, err
	}
	var proof []byte
	if t.number, proof, t.inviteName, ok = f.returned(); !ok {
		return inviter, &Failure{Reason: Garbled, Step: Proof}
	}
	if !hmac.Equal(proof, t.proof(c.Invitation.Secret, roleInviter)) {
		return inviter, &Failure{Reason: WrongSecret, Step: Proof}
	}
	inviter.Name = t.inviteName
	if err := c.Check(inviter); err != nil {
		return inviter, because(Proof, err)
	}

	err = s.confirm(ctx, func(ctx context.Context) (bool, error) { return c.Confirm(ctx, inviter, t.code()) })
	if err != nil {
		return inviter, err
	}
	acceptance, err := c.Accept(t.notebook, t.inviter, t.number)
	if err != nil {
		return inviter, because(Acceptance, err)
	}
	if err := s.send(ctx, Acceptance, frame{kindAccept, acceptance}); err != nil {
		return inviter, err
	}
	f, err = s.receive(ctx, Welcome, diskWait+networkWait, kindWelcome)
	if err != nil {
		return inviter, err
	}
	var first []byte
	err = onDisk(ctx, Welcome, func(ctx context.Context) (err error) {
		first, err = c.Install(ctx, inviter, f.body)
		return err
	})
	if err == nil && len(first) > MaxFirst {
		err = &Failure{Reason: Refused, Step: FirstEntry, Err: fmt.Errorf("it has %d bytes where at most %d are allowed", len(first), MaxFirst)}
	}
	if err != nil {
		return inviter, err
	}
	if err := s.send(ctx, FirstEntry, frame{kindFirst, first}); err != nil {
		return inviter, err
	}
	_, err = s.receive(ctx, Acknowledgement, diskWait+networkWait, kindDone)
	return inviter, err
}
