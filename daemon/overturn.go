package daemon

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// calmFactor is how much longer than it took to overturn the log nothing more is
// overturned: what a liar and its accomplices sign takes a twentieth of the time.
const calmFactor = 20

// calm reports whether the log may be overturned now. What is held because it
// may not is taken by keepCalm. It is called under d.mu.
func (d *Daemon) calm() bool {
	if !time.Now().Before(d.calmAt) {
		return true
	}
	select {
	case d.restless <- struct{}{}:
	default: // it knows
	}
	return false
}

// keepCalm takes the histories that had to wait, all at once, until ctx ends.
func (d *Daemon) keepCalm(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.restless:
		}
		d.mu.Lock()
		wait := time.Until(d.calmAt)
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := d.takeIn(notebook.DeviceID{}, nil); err != nil {
			d.logger.Warn("histories that waited were not taken", "error", err)
		}
	}
}

// overturn makes true here that another history of a device stands than the one
// that stood: everything that entries of the old one had done, and what may rest
// on it, is made anew from the log. Entries are those that just came, in order.
// It is called under d.mu.
func (d *Daemon) overturn(b *batch, entries []trust.Verified) error {
	if err := d.drain(); err != nil {
		return err
	}
	began := time.Now()
	defer func() { d.calmAt = time.Now().Add(calmFactor * time.Since(began)) }()
	members := d.log.Roster()
	return d.db.View(func(tx *store.Tx) error {
		o := &overturning{members: members, d: d, tx: tx, new: entries, pages: map[notebook.PageID]*remade{}, devices: map[notebook.DeviceID]bool{}, fallen: map[notebook.DeviceID]int{}}
		if err := o.survey(); err != nil {
			return err
		}
		return o.remake(b)
	})
}

// overturning is one overturn. It reads the whole log twice: to find what of it
// is judged otherwise now, and to make that anew.
type overturning struct {
	d       *Daemon
	tx      *store.Tx
	new     []trust.Verified
	members *trust.Roster // as it was
	pages   map[notebook.PageID]*remade
	devices map[notebook.DeviceID]bool // whose results may be others now
	fallen  map[notebook.DeviceID]int  // entries of others that are void since, though they themselves signed one history
}

// remade is a page that is made anew.
type remade struct {
	before  *page // as it was
	page    *page
	touched bool
	sets    map[notebook.Register]lostSet
}

// lostSet is an entry of this device that set a register and is void now.
type lostSet struct {
	author notebook.Author
	hash   notebook.Hash
	set    notebook.Set
}

// judged is an entry with today's verdict of the log.
type judged struct {
	trust.Verified
	known bool   // it was kept before this step
	void  string // why it was void then
}

// judge replays the log.
func (o *overturning) judge() iter.Seq2[judged, error] {
	return func(yield func(judged, error) bool) {
		var now judged
		for v, err := range o.d.log.Replay(func(yield func(notebook.Entry, error) bool) {
			for s, err := range o.tx.Entries(1) {
				now.known, now.void = true, s.Void
				if !yield(s.Entry, err) {
					return
				}
			}
			now.known, now.void = false, ""
			for _, v := range o.new {
				if !yield(v.Entry(), nil) {
					return
				}
			}
		}) {
			now.Verified = v
			if !yield(now, err) {
				return
			}
		}
	}
}

// survey finds the pages and results that have to be made anew: those with an
// entry that just came, that the log judges otherwise now, or that was void and
// may not be any more.
func (o *overturning) survey() error {
	for e, err := range o.judge() {
		if err != nil {
			return err
		}
		if e.known && e.void == o.d.logVoid(e.Verified) {
			continue
		}
		switch h := e.Header(); h.Kind {
		case notebook.KindText, notebook.KindSet:
			o.pages[h.Page] = nil
		case notebook.KindResult:
			o.devices[h.Device] = true
		}
	}
	for id := range o.pages {
		before, err := o.d.page(id)
		if err != nil {
			return err
		}
		o.pages[id] = &remade{
			before: before, sets: map[notebook.Register]lostSet{},
			page: &page{id: id, shadow: crdt.NewPage(id), registers: crdt.NewRegisters(id), own: before.own, anew: true},
		}
		if err := stayPurged(o.tx, id, before.registers, o.pages[id].page.registers); err != nil {
			return err
		}
		o.pages[id].touched = before.registers.Purged()
	}
	return nil
}

func (o *overturning) remake(b *batch) error {
	d := o.d
	void := 0
	results := map[string][]byte{}
	for e, err := range o.judge() {
		if err != nil {
			return err
		}
		reason := o.d.logVoid(e.Verified)
		if reason == "" {
			if reason, err = o.apply(b, e, results); err != nil {
				return err
			}
		}
		if reason != "" {
			void++
		}
		switch place := e.Place(); {
		case !e.known:
			b.put(e.Verified, reason)
		case reason != e.void:
			o.lose(e, reason)
			if h := e.Header(); e.void == "" && reason != trust.VoidLost && h.Device != d.signer.Device() {
				o.fallen[h.Device]++
			}
			b.write(func(tx *store.Tx) error { return tx.SetVoid(place, reason) })
		}
	}
	if void != d.void {
		d.setVoid(b, void)
	}
	if err := o.keepResults(b, results); err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(o.pages), func(x, y notebook.PageID) int { return bytes.Compare(x[:], y[:]) }) {
		if err := o.keepPage(b, o.pages[id]); err != nil {
			return err
		}
	}
	o.tellMembers(b)
	for device, n := range o.fallen {
		d.remind(b, fmt.Sprintf("%s of %s rested on a history that does not stand: void until that device writes it again", count(n, "entry", "entries"), d.name(device)))
	}
	return nil
}

// apply makes of an entry what it says, and returns why it does nothing.
func (o *overturning) apply(b *batch, e judged, results map[string][]byte) (void string, err error) {
	h := e.Header()
	switch r := o.pages[h.Page]; {
	case o.d.comesBare(e.Verified):
		return "", nil
	case h.Kind == notebook.KindRoster:
		if !e.known {
			err = o.d.applyRoster(b, e.Verified)
		}
	case h.Kind == notebook.KindResult:
		var result *notebook.Result
		if result, err = openResult(e.Verified); err == nil && o.devices[h.Device] && h.Device != o.d.signer.Device() {
			results[string(resultKey(result.Fence, h.Device))], err = foreignResult(e.Verified, result)
		}
	case r == nil:
		return e.void, nil // nothing of its page is judged otherwise
	case h.Kind == notebook.KindText:
		err = r.page.applyText(e.Verified)
	default:
		err = r.page.registers.Apply(e.Verified)
	}
	switch {
	case err == nil:
		if !e.known || e.void != "" {
			o.learn(b, e.Verified)
		}
		if r := o.pages[h.Page]; r != nil && h.Kind != notebook.KindResult {
			r.page.changed, r.touched = max(r.page.changed, h.Time), true
		}
		return "", nil
	case isVoid(err):
		return voidReason(err), nil
	}
	return "", err
}

// learn puts into the record of foreign text what an entry says that is no page's text.
func (o *overturning) learn(b *batch, v trust.Verified) {
	switch v.Header().Kind {
	case notebook.KindSet:
		if set, err := notebook.DecodeSet(v.Entry().Body); err == nil {
			o.d.learnTitle(b, v.Author(), set)
		}
	case notebook.KindResult:
		if result, err := openResult(v); err == nil {
			o.d.learnResult(b, o.d.sourceOf(v.Author()), v.Header().Device, result)
		}
	}
}

// lose remembers the registers that an entry of this device had set.
func (o *overturning) lose(e judged, void string) {
	h := e.Header()
	r := o.pages[h.Page]
	if r == nil || void == "" || e.void != "" || h.Kind != notebook.KindSet || h.Device != o.d.signer.Device() {
		return
	}
	if set, err := notebook.DecodeSet(e.Entry().Body); err == nil {
		r.sets[set.Register] = lostSet{author: h.Author(), hash: e.Hash(), set: *set}
	}
}

// keepResults puts the newest results of the devices whose entries are judged
// otherwise in the place of those that were kept.
func (o *overturning) keepResults(b *batch, results map[string][]byte) error {
	if len(o.devices) == 0 {
		return nil
	}
	for r, err := range o.tx.All(store.Results, nil) {
		if err != nil {
			return err
		}
		device := notebook.DeviceID(r.Key[16:])
		if _, again := results[string(r.Key)]; again || !o.devices[device] || device == o.d.signer.Device() {
			continue
		}
		b.write(func(tx *store.Tx) error { return tx.Delete(store.Results, r.Key) })
	}
	for key, record := range results {
		b.write(func(tx *store.Tx) error { return tx.Put(store.Results, []byte(key), record) })
	}
	return nil
}

// keepPage puts a page that was made anew in the place of the old one, and what
// this device had done there and is gone into the record of what it writes again.
func (o *overturning) keepPage(b *batch, r *remade) error {
	d, id := o.d, r.page.id
	lost := r.before.shadow.Lost(r.page.shadow, d.signer.Device())
	if err := o.remember(b, r, lost); err != nil {
		return err
	}
	r.page.own.Other(r.page.shadow)
	r.before.closeWriter()
	d.open[id] = r.page
	if r.touched {
		r.page.used = d.tick
		delete(b.dirty, id) // of the page as it was
		b.touch(r.page, r.page.changed)
		return nil
	}
	// Nothing of it stands: it is as if nobody had heard of it.
	delete(d.open, id)
	delete(b.dirty, id)
	d.index.remove(id)
	b.gone = append(b.gone, id)
	b.tell(notebook.Event{Kind: "page", Page: id})
	b.write(func(tx *store.Tx) error {
		for _, space := range []store.Space{store.Infos, store.Shadows, store.Registers, store.OwnFences} {
			if err := tx.Delete(space, id[:]); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// tellMembers tells who is in the notebook now and was not before, and the other
// way round, and cuts off who is out.
func (o *overturning) tellMembers(b *batch) {
	before, now := o.members, o.d.log.Roster()
	for _, m := range before.Members() {
		if !m.Removed && !now.Has(m.Device) && !slices.Contains(b.removed, m.Device) {
			b.removed = append(b.removed, m.Device)
			o.d.stopRunsOf(m.Device, "is not in the notebook any more")
			b.tell(notebook.Event{Kind: "device", Device: m.Device, Text: fmt.Sprintf(
				"%s is not in the notebook any more: it was added by a history that does not stand", notebook.EscapeLine(before.Shown(m.Device)))})
		}
	}
	for _, m := range now.Members() {
		if !m.Removed && !before.Has(m.Device) {
			b.tell(notebook.Event{Kind: "device", Device: m.Device, Text: o.d.name(m.Device) + " is in the notebook"})
		}
	}
}
