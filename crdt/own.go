package crdt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"noted/notebook"
)

// OwnFences is this device's record of the fences of one page that are live now
// and became so by this person's typing here. Who wrote a fence's characters
// does not say who made a fence of them: others can wrap, unwrap and cut text
// that this person wrote as something else. The record is kept with the page
// and never leaves the device. Each commit of the page is told to it once, in order.
type OwnFences struct {
	fences map[notebook.FenceID]own
}

type own struct {
	digest    notebook.Hash
	suspended bool
}

// ownDigest pins what a fence is: its delimiter, its info string, its code as parsed.
func ownDigest(f *Fence) notebook.Hash {
	return notebook.Digest("noted/own-fence/v1", []byte(f.Part.Delimiter), []byte(f.Part.Info), []byte(f.Part.Code))
}

// NewOwnFences is the record of a page on which this person has typed no fence.
func NewOwnFences() *OwnFences {
	return &OwnFences{fences: map[notebook.FenceID]own{}}
}

// Has reports whether a fence of the page as it is now is an own fence, as it reads.
func (o *OwnFences) Has(f *Fence) bool {
	e, ok := o.fences[f.ID]
	return ok && !e.suspended && e.digest == ownDigest(f)
}

// Empty reports whether nothing is recorded.
func (o *OwnFences) Empty() bool { return len(o.fences) == 0 }

// Typed records a commit that this person typed here: what the page took since
// the mark. Before and now are the page's fences at the mark and after it, none
// where they cannot be read; base is the revision that the person saw while
// typing.
//
// A fence enters if the commit wrote a character of its opening line, it reads
// the same in what the person saw, and nothing of that line belonged to a fence
// that was live without being recorded. A recorded fence that the commit
// changed is renewed, and one that it killed is suspended, if what the person
// saw shows the same; one that is live again is restored.
func (o *OwnFences) Typed(p *Page, before, now []Fence, base notebook.Revision, since Mark) error {
	for _, c := range p.changes[since:] {
		if a := p.actors[c.actor].author; a.Class != notebook.Typed || c.actor != p.changes[since].actor {
			o.Other(p)
			return fmt.Errorf("own fences of page %s: a commit that is not typed by one author is told as typed", p.id)
		}
	}
	was := digests(before, nil)
	maps.DeleteFunc(o.fences, func(id notebook.FenceID, e own) bool {
		digest, live := was[id]
		return e.suspended && live || !e.suspended && digest != e.digest // a commit came in between that nobody told
	})
	seen, err := p.at(base)
	if err != nil {
		return err
	}
	typed := p.with(seen, since)
	strangers := []strangers{o.strangers(before)}
	var seenAfter map[notebook.FenceID]notebook.Hash
	if slices.ContainsFunc(p.changes[:since], func(c applied) bool { return !seen.hasChange(&c) }) {
		seenBefore, err := p.fences(seen)
		if err != nil {
			seenBefore = nil // nothing of it was live
		}
		strangers = append(strangers, o.strangers(seenBefore))
		seenAfter = digests(p.fences(typed))
	} else {
		seenAfter = digests(now, nil) // the person saw all there was
	}
	isStrange := func(f *Fence) bool {
		for _, s := range strangers {
			if s.wrote(f.opening) {
				return true
			}
		}
		return false
	}
	live := make(map[notebook.FenceID]bool, len(now))
	fences := map[notebook.FenceID]own{}
	for i := range now {
		f := &now[i]
		live[f.ID] = true
		digest := ownDigest(f)
		e, recorded := o.fences[f.ID]
		switch agreed := seenAfter[f.ID] == digest; {
		case recorded && e.digest == digest && !e.suspended:
		case !agreed:
			continue
		case recorded:
		case !typed.wroteAny(f.opening) || isStrange(f):
			continue
		}
		fences[f.ID] = own{digest: digest}
	}
	suspended := 0
	for id, e := range o.fences {
		if _, stillThere := seenAfter[id]; !live[id] && !stillThere {
			fences[id] = own{digest: e.digest, suspended: true}
			suspended++
		}
	}
	if suspended > maxSuspended {
		maps.DeleteFunc(fences, func(_ notebook.FenceID, e own) bool { return e.suspended })
	}
	o.fences = fences
	return nil
}

// Other records a commit of anyone else, or through another door: the fences
// that it changed or killed are no longer this person's, and none that was
// suspended comes back.
func (o *OwnFences) Other(p *Page) {
	if len(o.fences) == 0 {
		return // reading the page's fences costs as much as the page is long
	}
	now := digests(p.Fences())
	for id, e := range o.fences {
		if e.suspended || now[id] != e.digest {
			delete(o.fences, id)
		}
	}
}

// Disown takes a fence out of the record: some of it is others' text, whoever typed it.
func (o *OwnFences) Disown(id notebook.FenceID) { delete(o.fences, id) }

// digests are the digests of fences that could be read.
func digests(fences []Fence, err error) map[notebook.FenceID]notebook.Hash {
	m := make(map[notebook.FenceID]notebook.Hash, len(fences))
	if err == nil {
		for i := range fences {
			m[fences[i].ID] = ownDigest(&fences[i])
		}
	}
	return m
}

// wroteAny reports whether one of the elements was inserted since v's mark.
func (v *view) wroteAny(elements []run) bool {
	return slices.ContainsFunc(elements, func(r run) bool { return v.wrote(name{r.counter + uint32(r.n) - 1, r.actor}) })
}

// strangers are the opening lines of fences that were live and are not recorded:
// by actor, in the order of counters.
type strangers map[uint16][]run

func (o *OwnFences) strangers(earlier []Fence) strangers {
	s := strangers{}
	for i := range earlier {
		if e, recorded := o.fences[earlier[i].ID]; recorded && !e.suspended {
			continue
		}
		for _, r := range earlier[i].opening {
			s[r.actor] = append(s[r.actor], r)
		}
	}
	for _, runs := range s {
		slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.counter, b.counter) })
	}
	return s
}

// wrote reports whether one of the elements was in one of those lines.
func (s strangers) wrote(elements []run) bool {
	return slices.ContainsFunc(elements, func(r run) bool {
		runs := s[r.actor] // no two hold one element
		i, _ := slices.BinarySearchFunc(runs, r.counter, func(q run, counter uint32) int { return cmp.Compare(q.counter+uint32(q.n)-1, counter) })
		return i < len(runs) && runs[i].counter < r.counter+uint32(r.n)
	})
}

// ownRecord is how the record is kept: sorted by fence.
type ownRecord struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Fences  []ownEntry
}

type ownEntry struct {
	_         struct{} `cbor:",toarray"`
	Fence     notebook.FenceID
	Digest    notebook.Hash
	Suspended bool
}

const ownVersion = 1

// Record is the record as it is kept, the same for equal records.
func (o *OwnFences) Record() ([]byte, error) {
	r := ownRecord{Version: ownVersion}
	for id, e := range o.fences {
		r.Fences = append(r.Fences, ownEntry{Fence: id, Digest: e.digest, Suspended: e.suspended})
	}
	slices.SortFunc(r.Fences, func(a, b ownEntry) int { return bytes.Compare(a.Fence[:], b.Fence[:]) })
	return notebook.Marshal(&r)
}

// OpenOwnFences reads what [OwnFences.Record] wrote.
func OpenOwnFences(record []byte) (*OwnFences, error) {
	var r ownRecord
	if err := notebook.Unmarshal(record, &r, maxOwnRecord); err != nil {
		return nil, err
	}
	if r.Version != ownVersion {
		return nil, fmt.Errorf("own fences: a record of version %d, where this program knows version %d", r.Version, ownVersion)
	}
	o := NewOwnFences()
	for _, e := range r.Fences {
		o.fences[e.Fence] = own{digest: e.Digest, suspended: e.Suspended}
	}
	if len(o.fences) != len(r.Fences) {
		return nil, errors.New("own fences: a fence is recorded twice")
	}
	return o, nil
}
