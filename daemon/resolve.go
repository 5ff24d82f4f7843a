package daemon

import (
	"strings"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// What is shown of a history that does not stand.
const (
	maxLostEntries = 256
	maxLostText    = 16 << 10 // bytes of one entry
)

// contradiction shows the two histories that a device signed.
func (d *Daemon) contradiction(device notebook.DeviceID) (*notebook.Contradiction, error) {
	d.mu.Lock()
	proof, open := d.log.Proof(device), d.log.Stopped(device)
	d.mu.Unlock()
	if proof == nil {
		return nil, notebook.Errorf(notebook.CodeNotFound, "%s signed one history, as it should", d.deviceName(device)).
			With("noted device list shows which device has a problem")
	}
	signed := func(i int) notebook.SignedHeader {
		return notebook.SignedHeader{Hash: proof.Hashes[i], Header: proof.Proof[i].Header, Sig: proof.Proof[i].Sig}
	}
	c := &notebook.Contradiction{
		Device: device, Open: open, Epoch: proof.Position.Epoch, Seq: proof.Position.Seq, Stands: signed(0), Other: signed(1),
	}
	err := d.db.View(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			if s.Position.Device == device && s.Void == trust.VoidLost {
				c.Count++
				c.Lost = append(c.Lost, lostEntry(&s))
				if len(c.Lost) > maxLostEntries {
					c.Lost = c.Lost[1:]
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, j := 0, len(c.Lost)-1; i < j; i, j = i+1, j-1 {
		c.Lost[i], c.Lost[j] = c.Lost[j], c.Lost[i]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range c.Lost {
		c.Lost[i].Title = d.index.cards[c.Lost[i].Page].Title
	}
	return c, nil
}

// lostEntry is what an entry says to a person, as far as it can be read.
func lostEntry(s *store.Stored) notebook.LostEntry {
	e := notebook.LostEntry{Page: s.Page}
	h, err := notebook.DecodeHeader(s.Entry.Header)
	if err != nil {
		return e
	}
	e.Kind, e.Time = h.Kind.String(), time.UnixMilli(h.Time)
	switch h.Kind {
	case notebook.KindText:
		e.Text = crdt.Inserted(s.Entry.Body)
	case notebook.KindSet:
		if set, err := notebook.DecodeSet(s.Entry.Body); err == nil {
			e.Text = set.Text
		}
	case notebook.KindRoster:
		if change, err := notebook.DecodeRosterChange(s.Entry.Body); err == nil {
			e.Text = strings.Join(strings.Fields(change.Act.String()+" "+change.Name+" "+change.Device.Short()), " ")
		}
	}
	if len(e.Text) > maxLostText {
		cut := maxLostText
		for cut > 0 && e.Text[cut]&0xc0 == 0x80 {
			cut--
		}
		e.Text = e.Text[:cut]
	}
	return e
}

// resolve lets a device that signed two histories go on: what it writes in a new
// epoch is taken again here, and through this device everywhere. This device
// itself, if it is the one, goes on in a new epoch, and writes again what it
// had on the side that does not stand; unless that was a copy's.
func (d *Daemon) resolve(device notebook.DeviceID, as notebook.Resolution, presence notebook.Presence) (*notebook.Contradiction, error) {
	act := map[notebook.Resolution]string{notebook.ResolveKeep: "keep ", notebook.ResolveClone: "go on after a clone of "}[as]
	if act == "" {
		return nil, notebook.Errorf(notebook.CodeInvalid, "a device is kept, removed, or said to have been cloned").
			With("noted device resolve --help shows the three ways out")
	}
	if err := d.present(presence, act+d.deviceName(device)); err != nil {
		return nil, err
	}
	self := device == d.signer.Device()
	err := d.step(func(b *batch) error {
		if !d.log.Keep(device) {
			return notebook.Errorf(notebook.CodeNotFound, "%s does not wait for a decision", d.name(device)).
				With("noted device list shows which device does")
		}
		if self {
			d.newEpoch()
		}
		if self && as == notebook.ResolveClone {
			b.write(func(tx *store.Tx) error {
				for r, err := range tx.All(store.Lost, nil) {
					if err != nil {
						return err
					}
					if err := tx.Delete(store.Lost, r.Key); err != nil {
						return err
					}
				}
				return nil
			})
		}
		b.tell(notebook.Event{Kind: "device", Device: device, Text: d.name(device) + " may go on, in a new epoch"})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if self {
		d.rewrite()
	} else {
		d.node.Reconnect(device) // what it sent meanwhile was not taken
	}
	return d.contradiction(device)
}
