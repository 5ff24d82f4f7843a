package daemon

import (
	"slices"
	"strings"
	"time"

	"noted/notebook"
	"noted/p2p"
	"noted/store"
)

// peerRecord is what this device remembers of another.
type peerRecord struct {
	_         struct{} `cbor:",toarray"`
	Version   uint8
	Addresses []string
	Seen      int64 // Unix milliseconds of the last connection
}

const (
	peerVersion = 1
	maxPeer     = 8 << 10
)

func getPeer(tx *store.Tx, device notebook.DeviceID) (r peerRecord, err error) {
	b, err := tx.Get(store.Peers, device[:])
	if err != nil || b == nil {
		return peerRecord{Version: peerVersion}, err
	}
	if err := notebook.Unmarshal(b, &r, maxPeer); err != nil || r.Version != peerVersion {
		// What is remembered of a device can be learnt again.
		return peerRecord{Version: peerVersion}, nil
	}
	return r, nil
}

// remember changes what is kept of a device.
func (d *Daemon) remember(b *batch, device notebook.DeviceID, change func(*peerRecord)) {
	b.write(func(tx *store.Tx) error {
		r, err := getPeer(tx, device)
		if err != nil {
			return err
		}
		change(&r)
		value, err := notebook.Marshal(&r)
		if err != nil {
			return err
		}
		return tx.Put(store.Peers, device[:], value)
	})
}

// heard acts on what the network tells. It returns soon: what is to be kept is
// kept in its own time.
func (d *Daemon) heard(e p2p.Event) {
	text := notebook.EscapeLine(e.Text)
	kind := "device"
	switch e.Kind {
	case p2p.Connected:
		text = "connected"
	case p2p.Addresses:
		text = ""
	case p2p.Problem, p2p.Stranger:
		kind = "note"
	}
	d.work.Go(func() {
		err := d.step(func(b *batch) error {
			name := d.name(e.Device)
			switch e.Kind {
			case p2p.Connected:
				d.remember(b, e.Device, func(r *peerRecord) { r.Seen = time.Now().UnixMilli() })
			case p2p.Addresses:
				d.remember(b, e.Device, func(r *peerRecord) { r.Addresses = e.Addresses })
			}
			if text != "" {
				b.tell(notebook.Event{Kind: kind, Device: e.Device, Text: name + " " + text})
			}
			return nil
		})
		if err != nil {
			d.logger.Warn("a network event was not kept", "error", err)
		}
	})
}

// dialKnown tells the network where the members were last.
func (d *Daemon) dialKnown() {
	d.mu.Lock()
	members := d.log.Roster().Members()
	introducer := d.introducer
	d.mu.Unlock()
	devices := []notebook.DeviceID{introducer}
	for _, m := range members {
		if !m.Removed && m.Device != d.signer.Device() {
			devices = append(devices, m.Device)
		}
	}
	_ = d.db.View(func(tx *store.Tx) error {
		for _, device := range devices {
			if r, err := getPeer(tx, device); err == nil && len(r.Addresses) > 0 {
				if err := d.node.SetAddresses(device, r.Addresses); err != nil {
					d.logger.Warn("an address cannot be dialed", "device", device, "error", err)
				}
			}
		}
		return nil
	})
}

// devices are the roster as this device sees it.
func (d *Daemon) devices() ([]notebook.DeviceInfo, error) {
	peers := map[notebook.DeviceID]p2p.PeerInfo{}
	for _, p := range d.node.Peers() {
		peers[p.Device] = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []notebook.DeviceInfo
	roster := d.log.Roster()
	for _, m := range roster.Members() {
		info := notebook.DeviceInfo{
			ID: m.Device, Name: roster.Shown(m.Device), Role: m.Role, AddedBy: m.AddedBy, Removed: m.Removed,
			Self: m.Device == d.signer.Device(), Quarantined: d.quarantined.Since(m.Device),
			Paused: d.paused[m.Device].why,
		}
		if info.Self {
			info.Addresses = d.node.Addresses()
		} else {
			p := peers[m.Device]
			info.Connected, info.Addresses, info.Problem = p.Connected, p.Addresses, p.Problem
			info.Behind = d.behind(m.Device)
			err := d.db.View(func(tx *store.Tx) error {
				r, err := getPeer(tx, m.Device)
				if r.Seen > 0 {
					info.LastSeen = time.UnixMilli(r.Seen)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		if slices.Contains(d.log.Frozen(), m.Device) {
			info.Problem = "signed two histories: nothing new of it is taken until you decide with noted device resolve"
		}
		all = append(all, info)
	}
	slices.SortStableFunc(all, func(a, b notebook.DeviceInfo) int {
		if a.Self != b.Self {
			if a.Self {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// behind is how many entries of ours a device has not acknowledged.
func (d *Daemon) behind(device notebook.DeviceID) uint64 {
	covered := d.log.Covers(d.acknowledged[device])
	var n uint64
	for _, s := range d.log.Stretches() {
		n += s.Tip.Position.Seq + 1 - firstMissing(covered, s)
	}
	return n
}
