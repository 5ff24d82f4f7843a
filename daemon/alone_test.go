package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"noted/exec"
	"noted/notebook"
	"noted/pairing"
	"noted/trust"
)

// alone is a daemon that serves a new home, with the person at it. Nobody
// knows where it listens.
func alone(t *testing.T, name string) (*Daemon, Client) {
	t.Helper()
	d, person, ended := serving(t, name)
	t.Cleanup(func() {
		d.Stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: serve: %v", name, err)
		}
		for err := range Check(d.home) {
			t.Errorf("%s: check: %v", name, err)
		}
	})
	return d, person
}

// serving is alone for a daemon that the test stops itself.
func serving(t *testing.T, name string) (d *Daemon, person Client, ended <-chan error) {
	t.Helper()
	dir := t.TempDir()
	home := Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	if err := Init(home, InitOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(Config{Home: home, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Exec: exec.Config{Slots: 1, Spares: -1}})
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- d.Serve(context.Background()) }()
	token, err := ReadToken(home.OwnerToken())
	if err != nil {
		t.Fatal(err)
	}
	if person, err = d.Open(token); err != nil {
		t.Fatal(err)
	}
	return d, person, end
}

// invited takes the joiner into the inviter's roster and gives it the beginning
// of the log, as a pairing does. Nothing else has come to it yet.
func invited(t *testing.T, inviter, joiner *Daemon) {
	t.Helper()
	nb, from, to := inviter.Notebook(), inviter.signer.Device(), joiner.signer.Device()
	name := joiner.selfName()
	welcome, err := inviter.welcome()
	if err == nil {
		err = errors.Join(
			inviter.addDevice(pairing.Peer{Device: to, Name: name}, 1, trust.AcceptJoin(joiner.signer, nb, from, 1, name)),
			joiner.install(pairing.NewInvitation(nb, from, nil, time.Now()), welcome))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lacking are the entries that one device has and another lacks.
func lacking(t *testing.T, from, to *Daemon) (entries []notebook.Entry) {
	t.Helper()
	for e, err := range from.Missing(to.Heads()) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// handed gives to one device, at once, all that it lacks of another.
func handed(t *testing.T, from, to *Daemon) {
	t.Helper()
	if err := to.Accept(context.Background(), from.signer.Device(), lacking(t, from, to)); err != nil {
		t.Fatal(err)
	}
}
