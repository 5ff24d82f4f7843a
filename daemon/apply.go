package daemon

import (
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// apply makes what a verified entry says true here, unless that was done when
// there was room for it, and keeps it. An entry that does not hold is kept as
// void, with the reason. It is called under d.mu.
func (d *Daemon) apply(b *batch, v trust.Verified) {
	void, judged := b.verdicts[v.Hash()]
	if !judged {
		void = d.logVoid(v)
	}
	if void == "" && !judged {
		switch err := d.applyBody(b, v); {
		case err == nil:
		case isVoid(err):
			void = voidReason(err)
		default:
			// The entry could not be judged: what is kept here cannot be read.
			d.fail(err)
			return
		}
	}
	if void != "" {
		header := v.Header()
		d.setVoid(b, d.void+1)
		b.tell(notebook.Event{
			Kind: "note", Page: header.Page, Device: header.Device,
			Text: fmt.Sprintf("a %s entry of %s was refused and is kept as void: %s", header.Kind, d.name(header.Device), notebook.EscapeLine(void)),
		})
	}
	b.put(v, void)
}

// setVoid sets how many entries of the log are void.
func (d *Daemon) setVoid(b *batch, n int) {
	d.void = n
	b.write(func(tx *store.Tx) error { return tx.Put(store.Meta, metaVoid, store.Number(uint64(n))) })
}

// isVoid reports whether an entry does not hold.
func isVoid(err error) bool {
	_, void := errors.AsType[*trust.Void](err)
	return void
}

// maxReason is how much of a reason is kept: the longest that the gate gives fits.
const maxReason = 400

func voidReason(err error) string {
	reason := err.Error()
	if v, ok := errors.AsType[*trust.Void](err); ok {
		reason = v.Reason
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return notebook.EscapeLine(reason)
}

func (d *Daemon) applyBody(b *batch, v trust.Verified) error {
	switch header := v.Header(); header.Kind {
	case notebook.KindText:
		p, err := d.page(header.Page)
		if err != nil {
			return err
		}
		if d.comesBare(v) {
			return d.applyBare(b, p, v)
		}
		if err := p.applyText(v); err != nil {
			return err
		}
		p.arrived(v.Entry().Body)
		p.own.Other(p.shadow)
		b.touch(p, header.Time)
		return nil
	case notebook.KindSet:
		p, err := d.page(header.Page)
		if err != nil {
			return err
		}
		purged := p.registers.Purged()
		if err := p.registers.Apply(v); err != nil {
			return err
		}
		set, err := notebook.DecodeSet(v.Entry().Body)
		if err != nil {
			return err
		}
		d.learnTitle(b, v.Author(), set)
		if p.registers.Purged() && !purged {
			if err := d.empty(b, p); err != nil {
				return err
			}
		}
		if p.registers.PurgedBy(header.Device) && header.Device != d.signer.Device() {
			b.purged = append(b.purged, p.id)
		}
		b.touch(p, header.Time)
		return nil
	case notebook.KindResult:
		if d.comesBare(v) {
			p, err := d.page(header.Page)
			if err != nil {
				return err
			}
			return d.applyBare(b, p, v)
		}
		return d.applyResult(b, v)
	case notebook.KindRoster:
		return d.applyRoster(b, v)
	default:
		return &trust.Void{Reason: fmt.Sprintf("entries of %s are not known here", header.Kind)}
	}
}

// applyText passes a change through the gate into the shadow.
func (p *page) applyText(v trust.Verified) error {
	if err := p.shadow.Apply(v); err != nil {
		return err
	}
	p.unsaved = append(p.unsaved, v.Entry().Body)
	p.textChanged()
	return p.registers.Apply(v)
}

const removedFrom = "was removed from the notebook"

// applyRoster acts on a change of the roster, which the log has already folded.
func (d *Daemon) applyRoster(b *batch, v trust.Verified) error {
	change, err := notebook.DecodeRosterChange(v.Entry().Body)
	if err != nil {
		return &trust.Void{Reason: err.Error()}
	}
	name := d.name(change.Device)
	switch change.Act {
	case notebook.RosterAdd:
		b.tell(notebook.Event{Kind: "device", Device: change.Device, Text: name + " is in the notebook"})
	case notebook.RosterRemove:
		if !d.log.Roster().Has(change.Device) {
			b.removed = append(b.removed, change.Device)
			d.stopRunsOf(change.Device, removedFrom)
			b.tell(notebook.Event{Kind: "device", Device: change.Device, Text: name + " was removed from the notebook"})
		}
		if h := v.Header(); h.Device != d.signer.Device() && !d.log.Roster().Has(change.Device) && slices.ContainsFunc(d.log.Heads(), func(head notebook.Head) bool {
			return head.Position.Device == change.Device && !v.Saw(head.Position)
		}) {
			b.cut = append(b.cut, change.Device)
		}
	}
	return nil
}

// maxCut is how many logs of a removed device a cut names; what its entry has
// seen says the rest.
const maxCut = 64

// cutRemoved says how far this device had taken the logs of a device before it
// heard that another one had removed it: what came until then stands, on every
// member. It runs once all that came with the removal is applied.
func (d *Daemon) cutRemoved(b *batch) error {
	for _, device := range b.cut {
		if !d.log.Roster().Has(d.signer.Device()) {
			return nil
		}
		change := notebook.RosterChange{Act: notebook.RosterCut, Device: device}
		for _, h := range d.log.Heads() {
			if h.Position.Device == device && len(change.Cut) < maxCut {
				change.Cut = append(change.Cut, h)
			}
		}
		body, err := notebook.EncodeRosterChange(&change)
		if err != nil {
			return err
		}
		if err := d.changeRoster(b, body); err != nil {
			return err
		}
	}
	return nil
}

// applyResult keeps the newest result that a device has of a fence. It is
// shown under the device's name and decides nothing.
func (d *Daemon) applyResult(b *batch, v trust.Verified) error {
	result, err := openResult(v)
	if err != nil {
		return err
	}
	d.learnResult(b, d.sourceOf(v.Author()), v.Header().Device, result)
	if v.Header().Device == d.signer.Device() {
		return nil // from a backup: this device's own record is the better one
	}
	record, err := foreignResult(v, result)
	if err != nil {
		return err
	}
	key := resultKey(result.Fence, v.Header().Device)
	b.write(func(tx *store.Tx) error { return tx.Put(store.Results, key, record) })
	return nil
}

// openResult reads a result as far as it may come from anybody.
func openResult(v trust.Verified) (*notebook.Result, error) {
	result, err := notebook.DecodeResult(v.Entry().Body)
	if err != nil {
		return nil, &trust.Void{Reason: err.Error()}
	}
	if result.Rung != notebook.Strict {
		return nil, &trust.Void{Reason: fmt.Sprintf("a result at %s does not sync", result.Rung)}
	}
	return result, nil
}

// foreignResult is another device's result as it is kept.
func foreignResult(v trust.Verified, result *notebook.Result) ([]byte, error) {
	return notebook.Marshal(&runRecord{
		Version: runVersion, Page: v.Header().Page, Fence: result.Fence, Closure: result.Closure,
		State: stateDone, Result: v.Entry().Body,
	})
}

func resultKey(fence notebook.FenceID, device notebook.DeviceID) []byte {
	return append(fence[:], device[:]...)
}

// touch marks a page's records as changed. The time is of the entry that
// changed it, in Unix milliseconds, as its author claims.
func (b *batch) touch(p *page, at int64) {
	p.changed, p.dirty = max(p.changed, at), true
	if _, already := b.dirty[p.id]; !already {
		b.dirty[p.id] = p
		b.tell(notebook.Event{Kind: "page", Page: p.id})
	}
}

// name is how this device calls a device, fit for a line of text.
func (d *Daemon) name(device notebook.DeviceID) string {
	return notebook.EscapeLine(d.log.Roster().Shown(device))
}
