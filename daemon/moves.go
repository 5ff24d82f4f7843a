package daemon

import (
	"slices"

	"noted/crdt"
	"noted/notebook"
)

// moveCopies compares the fences that a local commit, made since the mark, has
// created or changed with all text that others ever had here, as they now read
// and whoever the edit says wrote them. What is others' is written again as
// moved from them, in the same step, and stands as theirs from then on. Where
// that cannot be done the fences are nobody's own.
func (d *Daemon) moveCopies(b *batch, c door, p *page, before []crdt.Fence, since crdt.Mark) {
	var changed, theirs []*crdt.Fence
	if fences, err := p.readFences(); err == nil { // otherwise none is live
		changed = changedFences(before, fences)
	}
	var moves []crdt.Move
	left := 0
	perhaps, err := d.perhaps(b)
	if err == nil {
		moves, theirs, left, err = p.shadow.Moves(d.signer.Device(), changed, since, perhaps, func(want map[notebook.TextDigest]*crdt.Known) error {
			return d.look(b, want)
		})
	}
	if err == nil && c == typed {
		strange := make(map[*crdt.Fence]bool, len(theirs))
		for _, f := range theirs {
			strange[f] = true
		}
		own := slices.DeleteFunc(slices.Clone(changed), func(f *crdt.Fence) bool { return strange[f] })
		err = d.typedFirst(b, p, perhaps, own, since)
	}
	if err != nil {
		theirs = changed
	}
	for _, f := range theirs {
		p.own.Disown(f.ID)
	}
	for _, m := range moves {
		if err == nil {
			err = d.commitEdit(b, moved(m.Source), p, m.Splices)
		}
	}
	if len(moves) > 0 {
		p.own.Other(p.shadow)
	}
	if left > 0 {
		b.tell(notebook.Event{Kind: "note", Page: p.id, Text: "this edit makes fences of much text that reads like that of others: " +
			count(left, "fence does", "fences do") + " not stand local, and it is not written down whose they are"})
	}
	if err != nil {
		d.logger.Error("text was not compared with that of others", "page", p.id, "error", err)
		b.tell(notebook.Event{Kind: "note", Page: p.id, Text: "what was pasted could not be told from what was typed, so the fences of this edit do not stand local: " + notebook.EscapeLine(err.Error())})
	}
}

// changedFences are the fences that were not there before, or read otherwise.
func changedFences(before, now []crdt.Fence) []*crdt.Fence {
	was := make(map[notebook.FenceID]notebook.Part, len(before))
	for i := range before {
		was[before[i].ID] = before[i].Part
	}
	var changed []*crdt.Fence
	for i := range now {
		if part, there := was[now[i].ID]; !there || part != now[i].Part {
			changed = append(changed, &now[i])
		}
	}
	return changed
}

// typedFirst records what this person typed, since the mark, before anybody else
// had it: lines, and bodies of fences, of which every character is theirs.
func (d *Daemon) typedFirst(b *batch, p *page, perhaps func(notebook.TextDigest) bool, fences []*crdt.Fence, since crdt.Mark) error {
	self := d.author(typed)
	type text struct {
		as    notebook.TextDigest   // how it is recorded
		found []notebook.TextDigest // how others' would be
	}
	var typedHere []text
	for line := range p.shadow.Lines(since) {
		if digest, chars := crdt.LineDigest(line.Text); chars > 0 && line.Origin.Only(self) {
			typedHere = append(typedHere, text{digest, []notebook.TextDigest{digest}})
		}
	}
	for _, f := range fences {
		if found := crdt.BodyDigests(f.Part.Code); len(found) > 0 && f.Origin.Only(self) {
			typedHere = append(typedHere, text{crdt.TypedDigest(f.Part.Code), found})
		}
	}
	known := map[notebook.TextDigest]*crdt.Known{}
	for _, t := range typedHere {
		for _, digest := range t.found {
			if perhaps(digest) {
				known[digest] = &crdt.Known{}
			}
		}
	}
	if err := d.look(b, known); err != nil {
		return err
	}
	theirs := func(digest notebook.TextDigest) bool { k := known[digest]; return k != nil && len(k.Sources) > 0 }
	for _, t := range typedHere {
		if !slices.ContainsFunc(t.found, theirs) {
			d.foreign.learn(b, notebook.Source{}, t.as)
		}
	}
	return nil
}
