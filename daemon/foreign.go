package daemon

import (
	"hash/maphash"
	"iter"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// foreignIndex finds text that others ever had here. The record of it is on
// the disk, see [crdt.ForeignText]; a filter in memory, made when the first
// edit asks for it, answers for nearly everything that a person writes. What
// passes the filter is looked up in the record.
type foreignIndex struct {
	filter *crdt.Filter
	known  map[notebook.TextDigest]crdt.Known // that was looked up
	last   *sealed                            // the newest batch with a part of the record
}

// maxKnown bounds what is remembered of look-ups.
const maxKnown = 1 << 14

// learn puts digests into the record as a source's text. With the zero source
// this person typed them before anybody else had them.
func (x *foreignIndex) learn(b *batch, s notebook.Source, digests ...notebook.TextDigest) {
	for _, d := range digests {
		if !b.foreign.Add(s, d) {
			continue
		}
		delete(x.known, d)
		if x.filter != nil && !s.IsZero() {
			x.filter.Add(d)
		}
	}
}

// seal writes what a batch learned.
func (x *foreignIndex) seal(s *sealed) error {
	if s.foreign.Empty() {
		return nil
	}
	records, err := s.foreign.Records()
	if err != nil {
		return err
	}
	s.write(func(tx *store.Tx) error {
		for _, r := range records {
			if _, err := tx.Append(store.Foreign, r); err != nil {
				return err
			}
		}
		return nil
	})
	x.last = s
	return nil
}

// steps yields the record, step by step, and what the batch has so far.
func (d *Daemon) steps(b *batch) iter.Seq2[*crdt.ForeignText, error] {
	return func(yield func(*crdt.ForeignText, error) bool) {
		if x := &d.foreign; x.last != nil {
			if err := x.last.wait(); err != nil {
				yield(nil, err)
				return
			}
			x.last = nil
		}
		over := false
		err := d.db.View(func(tx *store.Tx) error {
			for t, err := range foreignText(tx) {
				if err != nil {
					return err
				}
				if over = !yield(t, nil); over {
					return nil
				}
			}
			return nil
		})
		switch {
		case err != nil:
			yield(nil, err)
		case !over:
			yield(&b.foreign, nil)
		}
	}
}

// foreignText yields the parts of the record that are on the disk.
func foreignText(tx *store.Tx) iter.Seq2[*crdt.ForeignText, error] {
	return func(yield func(*crdt.ForeignText, error) bool) {
		for r, err := range tx.All(store.Foreign, nil) {
			var t *crdt.ForeignText
			if err == nil {
				t, err = crdt.OpenForeignText(r.Value)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// perhaps returns the filter's question, which it makes if there is none.
func (d *Daemon) perhaps(b *batch) (func(notebook.TextDigest) bool, error) {
	if x := &d.foreign; x.filter == nil {
		filter := new(crdt.Filter)
		for t, err := range d.steps(b) {
			if err != nil {
				return nil, err
			}
			for s, digest := range t.Each {
				if !s.IsZero() {
					filter.Add(digest)
				}
			}
		}
		x.filter, x.known = filter, map[notebook.TextDigest]crdt.Known{}
	}
	return d.foreign.filter.Has, nil
}

// look fills in what the record knows of texts.
func (d *Daemon) look(b *batch, want map[notebook.TextDigest]*crdt.Known) error {
	x := &d.foreign
	rest := map[notebook.TextDigest]*crdt.Known{}
	for digest, k := range want {
		if known, ok := x.known[digest]; ok {
			*k = known
		} else {
			rest[digest] = k
		}
	}
	if len(rest) == 0 {
		return nil
	}
	wanted := crdt.NewWanted(rest)
	for t, err := range d.steps(b) {
		if err != nil {
			return err
		}
		t.Look(wanted)
	}
	if len(x.known)+len(rest) > maxKnown {
		clear(x.known)
	}
	for digest, k := range rest {
		x.known[digest] = *k
	}
	return nil
}

// sourceOf is the author as a source here.
func (d *Daemon) sourceOf(a notebook.Author) notebook.Source {
	return crdt.SourceOf(d.signer.Device(), a)
}

// learned is what the record of foreign text has of a page.
type learned struct {
	upTo   crdt.Mark           // every line of changes before it
	bodies map[uint64]struct{} // and these bodies of fences that do not stand local, by their hashes
}

// maxBodies bounds what is remembered of a page's fences, beside those that it has.
const maxBodies = 1 << 14

var bodySeed = maphash.MakeSeed()

// learnPage puts into the record what others have of a page as it is at the end
// of a step: the lines in which they have a hand, where they changed since the
// step before, and the bodies of fences that do not stand local.
func (d *Daemon) learnPage(b *batch, p *page) {
	self := d.author(typed)
	since, size := p.learned.upTo, b.foreign.Size()
	for line := range p.shadow.Lines(since) {
		if line.Origin.Only(self) {
			continue
		}
		d.foreign.learn(b, crdt.ForeignSource(self.Device, line.Origin), crdt.LineDigests(line.Text)...)
	}
	p.learned.upTo = p.shadow.Mark()
	for f := range d.strangeBodies(p) {
		d.foreign.learn(b, crdt.ForeignSource(self.Device, f.Origin), crdt.BodyDigests(f.Part.Code)...)
	}
	if grown := b.foreign.Size() - size; grown > 0 && !p.anew { // what is made anew was paid for
		d.chargeRecord(b, grown, p.shadow.Operations(since))
	}
}

// chargeRecord puts digests that the record of foreign text grew by on the
// accounts of the devices that did something, by how much each did: one
// character can make other fences of a whole page.
func (d *Daemon) chargeRecord(b *batch, digests int, did map[notebook.DeviceID]int) {
	all := 0
	for _, n := range did {
		all += n
	}
	for device, n := range did {
		if device == d.signer.Device() || device.IsZero() {
			continue
		}
		d.account(device).Learned += uint64(digests) * uint64(len(notebook.TextDigest{})) * uint64(n) / uint64(all)
		b.accounts[device] = true
	}
}

// strangeBodies yields the fences that do not stand local and whose bodies were
// not yielded before.
func (d *Daemon) strangeBodies(p *page) iter.Seq[*crdt.Fence] {
	return func(yield func(*crdt.Fence) bool) {
		fences, err := p.readFences()
		if err != nil {
			return // none is live, and their lines are known
		}
		if p.learned.bodies == nil || len(p.learned.bodies) > maxBodies+2*len(fences) {
			p.learned.bodies = make(map[uint64]struct{}, len(fences))
		}
		for i := range fences {
			f := &fences[i]
			key := maphash.String(bodySeed, f.Part.Code)
			if _, known := p.learned.bodies[key]; known || standsLocal(d.signer.Device(), p, f) {
				continue
			}
			p.learned.bodies[key] = struct{}{}
			if !yield(f) {
				return
			}
		}
	}
}

// standsLocal reports whether a fence of the page as it is stands local.
func standsLocal(self notebook.DeviceID, p *page, f *crdt.Fence) bool {
	return trust.Stand(self, nil, f.Origin, p.own.Has(f), f.Closed()).Local()
}

// learnTitle puts a title into the record, unless it was typed here.
func (d *Daemon) learnTitle(b *batch, a notebook.Author, set *notebook.Set) {
	if a != d.author(typed) {
		d.learnText(b, d.sourceOf(a), a.Device, set.Text)
	}
}

// learnResult puts the output of a run, which a device tells of, into the record
// as a source's text.
func (d *Daemon) learnResult(b *batch, s notebook.Source, by notebook.DeviceID, r *notebook.Result) {
	d.learnText(b, s, by, r.Output)
	d.learnText(b, s, by, r.Error)
}

func (d *Daemon) learnText(b *batch, s notebook.Source, by notebook.DeviceID, text string) {
	size := b.foreign.Size()
	d.foreign.learn(b, s, crdt.TextDigests(text)...)
	d.chargeRecord(b, b.foreign.Size()-size, map[notebook.DeviceID]int{by: 1})
}

// outputSource is whose text the output of a run counts as: the first author
// that is not this person at the keys, of the fence, of what it includes, of what
// it was handed, and of the request. It is nobody's where there is none.
func (d *Daemon) outputSource(c caller, r *trust.Request, grant trust.Grant) notebook.Source {
	origin := r.Origin
	for _, part := range r.Included {
		origin = origin.Union(part.Origin)
	}
	for _, in := range grant.Inputs() {
		origin = origin.Union(in.Authors)
	}
	if c.door() != typed {
		origin = origin.Union(notebook.Origin{d.author(c.door())})
	}
	if grant.Local() && origin.Only(d.author(typed)) {
		return notebook.Source{}
	}
	return crdt.ForeignSource(d.signer.Device(), origin)
}
