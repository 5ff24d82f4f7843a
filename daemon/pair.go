package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"noted/notebook"
	"noted/pairing"
	"noted/store"
	"noted/trust"
)

// firstWait is how long both sides wait for each other's first entry once they
// are paired: the log that comes before it may be a large one.
const firstWait = time.Minute

// pairingSession is one pairing as a person sees it, on either side.
type pairingSession struct {
	id     string
	takes  bool        // this side takes the other in
	shown  atomic.Bool // the code was
	answer chan bool   // a person's, once
	events chan notebook.PairEvent
}

func newPairing(takes bool) *pairingSession {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &pairingSession{takes: takes, id: hex.EncodeToString(b[:]), answer: make(chan bool, 1), events: make(chan notebook.PairEvent, 16)}
}

// tell shows a step. A client that reads no events loses them; the last is
// returned by the call itself.
func (s *pairingSession) tell(e notebook.PairEvent) {
	e.Session = s.id
	select {
	case s.events <- e:
	default:
	}
}

// confirm shows the code and waits for the person.
func (s *pairingSession) confirm(ctx context.Context, peer pairing.Peer, code string) (bool, error) {
	s.shown.Store(true)
	s.tell(notebook.PairEvent{State: notebook.PairCompare, Peer: peer.Device, Name: peer.Name, Code: code})
	select {
	case yes := <-s.answer:
		return yes, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// begin makes a session known, so that it can be confirmed. There is one window
// for strangers, so one session at a time takes a device in.
func (d *Daemon) begin(takes bool) (s *pairingSession, end func(), err error) {
	s = newPairing(takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.pairings {
		if takes && other.takes {
			return nil, nil, notebook.Errorf(notebook.CodeRefused, "an invitation is open already").With("use it, or end the noted device pair that shows it")
		}
	}
	d.pairings[s.id] = s
	return s, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.pairings, s.id)
	}, nil
}

// takesIn reports whether confirming a session takes a device in.
func (d *Daemon) takesIn(session string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.pairings[session]
	return s == nil || s.takes
}

// confirmPairing gives a person's answer to a session that shows a code.
func (d *Daemon) confirmPairing(session string, yes bool) error {
	d.mu.Lock()
	s := d.pairings[session]
	d.mu.Unlock()
	if s == nil {
		return notebook.Errorf(notebook.CodeNotFound, "there is no such pairing under way").With("noted device pair begins one")
	}
	if !s.shown.Load() {
		return notebook.Errorf(notebook.CodeInvalid, "there is no code to compare yet").With("wait until both devices show one")
	}
	select {
	case s.answer <- yes:
		return nil
	default:
		return notebook.Errorf(notebook.CodeInvalid, "this pairing is answered already")
	}
}

// follow passes a session's events on while work runs, and then how it ended.
func (s *pairingSession) follow(ctx context.Context, each func(notebook.PairEvent) error, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	var lost error // the client went away
	for {
		select {
		case e := <-s.events:
			if lost == nil {
				if lost = each(e); lost != nil {
					cancel()
				}
			}
		case err := <-done:
			for len(s.events) > 0 && lost == nil {
				lost = each(<-s.events)
			}
			if err != nil {
				return err
			}
			return lost
		}
	}
}

// pair invites one device and waits for it.
func (d *Daemon) pair(ctx context.Context, each func(notebook.PairEvent) error) error {
	addresses := d.node.Addresses()
	if len(addresses) == 0 {
		return notebook.Errorf(notebook.CodeUnavailable, "this device has no address at which another one could reach it").
			With("connect it to a network")
	}
	s, end, err := d.begin(true)
	if err != nil {
		return err
	}
	defer end()
	invitation := pairing.NewInvitation(d.Notebook(), d.signer.Device(), addresses, time.Now())
	offer := pairing.NewOffer(invitation)
	return s.follow(ctx, each, func(ctx context.Context) error {
		ctx, cancel := context.WithDeadline(ctx, invitation.Expires)
		defer cancel()
		type outcome struct {
			peer pairing.Peer
			err  error
		}
		outcomes := make(chan outcome, 8)
		shut := d.node.OpenWindow(func(ctx context.Context, device notebook.DeviceID, rw io.ReadWriteCloser) {
			peer, err := pairing.Invite(ctx, rw, d.inviteConfig(s, offer, device))
			select {
			case outcomes <- outcome{peer, err}:
			default:
			}
		})
		defer shut()
		s.tell(notebook.PairEvent{State: notebook.PairWaiting, Invitation: invitation.URI(), Expires: invitation.Expires, Notebook: invitation.Notebook})
		for {
			select {
			case o := <-outcomes:
				if o.err == nil {
					return d.awaitFirst(context.WithoutCancel(ctx), s, o.peer)
				}
				if offer.Open(time.Now()) != nil {
					return pairingFailed(s, o.err)
				}
				// A stranger who does not know the secret does not end the window.
				d.events.tell(notebook.Event{Kind: "note", Device: device(o.peer), Text: "a pairing attempt failed: " + notebook.EscapeLine(o.err.Error())})
			case <-ctx.Done():
				reason := pairing.Expired
				if errors.Is(ctx.Err(), context.Canceled) { // the client that shows it is gone
					reason = pairing.Cancelled
					shut()
				}
				if offer.Open(time.Now()) == nil || time.Now().After(invitation.Expires) {
					return pairingFailed(s, &pairing.Failure{Reason: reason})
				}
				// Somebody proved the secret: the steps have deadlines of their own.
				select {
				case o := <-outcomes:
					if o.err == nil {
						return d.awaitFirst(context.WithoutCancel(ctx), s, o.peer)
					}
					return pairingFailed(s, o.err)
				case <-time.After(firstWait):
					return pairingFailed(s, &pairing.Failure{Reason: pairing.Timeout, Step: pairing.Confirmation})
				}
			}
		}
	})
}

func device(p pairing.Peer) notebook.DeviceID { return p.Device }

// pairingFailed shows why a pairing ended and makes it the call's error.
func pairingFailed(s *pairingSession, err error) error {
	s.tell(notebook.PairEvent{State: notebook.PairFailed, Reason: notebook.EscapeLine(err.Error())})
	return problem(err)
}

func (d *Daemon) inviteConfig(s *pairingSession, offer *pairing.Offer, device notebook.DeviceID) pairing.InviteConfig {
	return pairing.InviteConfig{
		Offer: offer, Peer: device, Name: d.selfName(),
		Number: func(joiner notebook.DeviceID) (uint32, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.log.Roster().Has(joiner) {
				return 0, errors.New("the device is in the notebook already")
			}
			return d.log.Roster().Number(joiner) + 1, nil
		},
		Confirm: s.confirm,
		Commit: func(ctx context.Context, peer pairing.Peer, number uint32, acceptance []byte) (welcome []byte, err error) {
			if err := d.addDevice(peer, number, acceptance); err != nil {
				return nil, err
			}
			return d.welcome()
		},
		First: func(ctx context.Context, peer pairing.Peer, first []byte) error {
			if nb := d.Notebook(); string(first) != string(nb[:]) {
				return errors.New("the joining device installed something else")
			}
			return nil
		},
	}
}

// addDevice takes a device into the roster. Pairing grants nothing else.
func (d *Daemon) addDevice(peer pairing.Peer, number uint32, acceptance []byte) error {
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{
		Act: notebook.RosterAdd, Device: peer.Device, Name: peer.Name, Role: notebook.RoleMember, Number: number, Joiner: acceptance,
	})
	if err != nil {
		return err
	}
	return d.step(func(b *batch) error { return d.changeRoster(b, body) })
}

// changeRoster signs a change of the roster and acts on it.
func (d *Daemon) changeRoster(b *batch, body []byte) error {
	v, err := d.append(b, typed, notebook.KindRoster, notebook.PageID{}, body)
	if err != nil {
		return err
	}
	d.apply(b, v)
	return nil
}

// welcome is the beginning of the log: its first entry. All others come by sync.
func (d *Daemon) welcome() ([]byte, error) {
	var genesis *notebook.Entry
	err := d.db.View(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			genesis = &s.Entry
			break
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if genesis == nil {
		return nil, errors.New("the log is empty")
	}
	return notebook.Marshal(&welcomeRecord{Header: genesis.Header, Sig: genesis.Sig, Body: genesis.Body})
}

type welcomeRecord struct {
	_                 struct{} `cbor:",toarray"`
	Header, Sig, Body []byte
}

// awaitFirst waits until an entry that the new device signed is here.
func (d *Daemon) awaitFirst(ctx context.Context, s *pairingSession, peer pairing.Peer) error {
	done := notebook.PairEvent{State: notebook.PairDone, Peer: peer.Device, Name: peer.Name}
	if !d.await(ctx, func() bool {
		for _, s := range d.log.Stretches() {
			if s.Tip.Position.Device == peer.Device {
				return true
			}
		}
		return false
	}) {
		done.Reason = "paired; its first entry has not come yet"
	}
	s.tell(done)
	return nil
}

// await waits, for a while, until a commit makes it true.
func (d *Daemon) await(ctx context.Context, true func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	commits := d.feed.subscribe(ctx)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		d.mu.Lock()
		yes := true()
		d.mu.Unlock()
		if yes {
			return yes
		}
		select {
		case <-commits:
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
}

// join answers an invitation with this home, which must be a new one.
func (d *Daemon) join(ctx context.Context, uri, name string, each func(notebook.PairEvent) error) error {
	invitation, err := pairing.ParseInvitation(uri)
	if err != nil {
		return problem(err)
	}
	if name == "" {
		name = d.selfName()
	}
	if err := notebook.CheckLabel(name); err != nil {
		return notebook.Errorf(notebook.CodeInvalid, "the name cannot be used: %v", err)
	}
	if err := d.mayJoin(); err != nil {
		return problem(err)
	}
	s, end, err := d.begin(false)
	if err != nil {
		return err
	}
	defer end()
	return s.follow(ctx, each, func(ctx context.Context) error {
		rw, err := d.node.DialPairing(ctx, invitation.Inviter, invitation.Addresses)
		if err != nil {
			if !time.Now().Before(invitation.Expires) { // by this clock; the inviter's decides where it answers
				err = &pairing.Failure{Reason: pairing.Expired}
			}
			return pairingFailed(s, err)
		}
		inviter, err := pairing.Join(ctx, rw, pairing.JoinConfig{
			Invitation: invitation, Self: d.signer.Device(), Name: name,
			Check:   func(pairing.Peer) error { return d.mayJoin() },
			Confirm: s.confirm,
			Accept: func(nb notebook.NotebookID, inviter notebook.DeviceID, number uint32) ([]byte, error) {
				return trust.AcceptJoin(d.signer, nb, inviter, number, name), nil
			},
			Install: func(ctx context.Context, inviter pairing.Peer, welcome []byte) ([]byte, error) {
				if err := d.install(invitation, welcome); err != nil {
					return nil, err
				}
				return invitation.Notebook[:], nil
			},
		})
		if err != nil {
			return pairingFailed(s, err)
		}
		if err := d.node.SetAddresses(inviter.Device, invitation.Addresses); err != nil {
			d.logger.Warn("an address cannot be dialed", "device", inviter.Device, "error", err)
		}
		done := notebook.PairEvent{State: notebook.PairDone, Peer: inviter.Device, Name: inviter.Name, Notebook: invitation.Notebook}
		if !d.await(context.WithoutCancel(ctx), func() bool { return d.ownAcknowledged(inviter.Device) }) {
			done.Reason = "paired; the notebook is still coming"
		}
		s.tell(done)
		return nil
	})
}

// ownAcknowledged reports whether a peer has committed an entry of this device.
func (d *Daemon) ownAcknowledged(peer notebook.DeviceID) bool {
	for _, h := range d.acknowledged[peer] {
		if h.Position.Device == d.signer.Device() && d.log.Has(h.Position) {
			return true
		}
	}
	return false
}

// mayJoin refuses a home that has something to lose.
func (d *Daemon) mayJoin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nothingToLose()
}

// nothingToLose is mayJoin under the mutex.
func (d *Daemon) nothingToLose() error {
	if len(d.index.cards) > 0 {
		return &pairing.Failure{Reason: pairing.HasPages}
	}
	if members := d.log.Roster().Members(); len(members) > 1 {
		return notebook.Errorf(notebook.CodeRefused, "this device shares a notebook with %s already", count(len(members)-1, "other device", "other devices")).
			With("join from a new home: noted --home DIR init")
	}
	return nil
}

// install replaces this home's empty notebook by the beginning of another.
func (d *Daemon) install(invitation pairing.Invitation, welcome []byte) error {
	var w welcomeRecord
	if err := notebook.Unmarshal(welcome, &w, notebook.MaxHeader+notebook.MaxSmall+256); err != nil {
		return err
	}
	genesis := notebook.Entry{Header: w.Header, Sig: w.Sig, Body: w.Body}
	if notebook.NotebookID(genesis.Hash()) != invitation.Notebook {
		return errors.New("the first entry is not that of the notebook of the invitation")
	}
	log, v, err := trust.JoinLog(d.signer.Device(), genesis)
	if err != nil {
		return err
	}
	return d.step(func(b *batch) error {
		if err := d.nothingToLose(); err != nil {
			return err
		}
		d.listen(log)
		d.introducer = invitation.Inviter
		d.meter = newMeter()
		d.newEpoch()
		d.acknowledged = map[notebook.DeviceID][]notebook.Head{}
		d.open, d.notes, d.notices = map[notebook.PageID]*page{}, nil, map[notebook.PageID]*notice{}
		d.approvals, d.asks = trust.NewApprovals(), trust.NewAsks() // of no page that is still there
		b.write((*store.Tx).Forget)
		d.setVoid(b, 0)
		b.write(func(tx *store.Tx) error { return tx.Put(store.Meta, metaIntroducer, invitation.Inviter[:]) })
		d.remember(b, invitation.Inviter, func(r *peerRecord) { r.Addresses = invitation.Addresses })
		d.charge(b, v)
		b.put(v, "")
		return nil
	})
}

// joined writes this device's first entry once it is in the roster: the name
// that it was taken in under, said by itself.
func (d *Daemon) joined(b *batch) {
	self := d.signer.Device()
	if d.introducer.IsZero() || !d.log.Roster().Has(self) {
		return
	}
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{Act: notebook.RosterRename, Device: self, Name: d.log.Roster().Name(self)})
	if err == nil {
		err = d.changeRoster(b, body)
	}
	if err != nil {
		d.logger.Warn("the first entry could not be written", "error", err)
		return
	}
	d.introducer = notebook.DeviceID{}
	b.write(func(tx *store.Tx) error { return tx.Delete(store.Meta, metaIntroducer) })
}

// selfName is what this device calls itself.
func (d *Daemon) selfName() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Roster().Name(d.signer.Device())
}

// removeDevice shuts a device out. On this device it is out when this returns.
func (d *Daemon) removeDevice(device notebook.DeviceID) error {
	if device == d.signer.Device() {
		return notebook.Errorf(notebook.CodeInvalid, "a device does not remove itself").With("remove it from another device of the notebook")
	}
	body, err := notebook.EncodeRosterChange(&notebook.RosterChange{Act: notebook.RosterRemove, Device: device})
	if err != nil {
		return err
	}
	var stopping stopping
	err = d.step(func(b *batch) error {
		if !d.log.Roster().Has(device) {
			return notebook.Errorf(notebook.CodeNotFound, "device %s is not in the notebook", device.Short()).With("noted device list shows who is")
		}
		err := d.changeRoster(b, body)
		if err == nil {
			stopping = d.stopRunsOf(device, removedFrom)
		}
		return err
	})
	stopping.wait()
	return err
}

// problem makes an error one that a person reads.
func problem(err error) error {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e
	}
	if f, ok := errors.AsType[*pairing.Failure](err); ok {
		return f.Person()
	}
	return err
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
