package crdt

import (
	"math"
	"strings"

	"noted/notebook"
)

// Mark is a point in a page's history here: what was taken after it can be told
// from what was there. A commit is what was taken between two marks.
type Mark int

// Mark is the present point.
func (p *Page) Mark() Mark { return Mark(len(p.changes)) }

// Operations is how many operations each device did since the mark.
func (p *Page) Operations(since Mark) map[notebook.DeviceID]int {
	n := map[notebook.DeviceID]int{}
	for _, c := range p.changes[min(int(since), len(p.changes)):] {
		n[p.actors[c.actor].author.Device] += int(c.n)
	}
	return n
}

// view is a page as it is seen from somewhere: what a past knows, and beside it
// what was taken since a mark.
type view struct {
	past
	since int32          // changes from this one on are seen, too
	from  []uint32       // by actor: the first counter of those changes
	asked map[int32]bool // by deletion, whether it or one before it is seen
}

// now sees the page as it is.
func now() *view { return &view{past: past{all: true}, since: math.MaxInt32} }

// at sees the page as it was at a revision.
func (p *Page) at(rev notebook.Revision) (*view, error) {
	if len(rev) == 0 {
		return nil, ErrUnknownRevision
	}
	deps := make([]int32, 0, len(rev))
	seen := make(map[int32]bool, len(rev))
	for _, h := range rev {
		k := p.lookup(h)
		if k < 0 {
			return nil, ErrUnknownRevision
		}
		if !seen[k] {
			seen[k] = true
			deps = append(deps, k)
		}
	}
	return &view{past: p.pastOf(deps), since: math.MaxInt32}, nil
}

// with adds what was taken since the mark to what v sees.
func (p *Page) with(v *view, since Mark) *view {
	w := &view{past: v.past, since: int32(since), from: make([]uint32, len(p.actors))}
	for a := range w.from {
		w.from[a] = math.MaxUint32
	}
	for k := len(p.changes) - 1; k >= int(since); k-- {
		c := &p.changes[k]
		w.from[c.actor] = c.start
	}
	return w
}

// wrote reports whether an element was inserted since the mark of v.
func (v *view) wrote(x name) bool {
	return int(x.actor) < len(v.from) && x.counter >= v.from[x.actor]
}

// sees cuts a run into what v sees: elements up to known and from later on.
func (v *view) sees(r *run) (known, later int) {
	known, later = v.cut(r), int(r.n)
	if int(r.actor) < len(v.from) && v.from[r.actor] < r.counter+uint32(r.n) {
		later = int(max(v.from[r.actor], r.counter) - r.counter)
	}
	return known, max(known, later)
}

// deleted reports whether v sees one of a chain of deletions.
func (p *Page) deletedTo(v *view, newest int32) bool {
	if v.all {
		return newest > 0
	}
	return p.anyDeletion(newest, &v.asked, func(k int32) bool { return k >= v.since || v.hasChange(&p.changes[k]) })
}

// elements yields what v sees of the page, in order: runs, tombstones among
// them. A yielded run is valid until the next one.
func (p *Page) elements(v *view) func(yield func(r run, dead bool) bool) {
	return func(yield func(run, bool) bool) {
		for r := range p.seq.each {
			known, later := v.sees(r)
			dead := p.deletedTo(v, r.deleted)
			if known > 0 && !yield(r.part(0, known), dead) {
				return
			}
			if later < int(r.n) && !yield(r.part(later, int(r.n)), dead) {
				return
			}
		}
	}
}

// part is the run's elements from i to j.
func (r *run) part(i, j int) run {
	return run{counter: r.counter + uint32(i), op: r.op + int32(i), deleted: r.deleted, actor: r.actor, n: uint16(j - i)}
}

// TextAt is the page's text at a revision: the changes it names and all that
// they depend on.
func (p *Page) TextAt(rev notebook.Revision) (string, error) {
	v, err := p.at(rev)
	if err != nil {
		return "", err
	}
	if v.all {
		return p.Text(), nil
	}
	var b strings.Builder
	for r, dead := range p.elements(v) {
		if !dead {
			writeRunes(&b, p.chars[r.op:r.op+int32(r.n)])
		}
	}
	return b.String(), nil
}

// Rebase turns splices of the text at base into splices of the text as it is,
// which do to the same characters what those would have done: what has gone
// meanwhile is not deleted again, what has come in between stays, and an insert
// stands behind the character behind which it was typed.
func (p *Page) Rebase(base notebook.Revision, s []notebook.Splice) ([]notebook.Splice, error) {
	v, err := p.at(base)
	if err != nil {
		return nil, err
	}
	length := p.length
	if !v.all {
		length = 0
		for r, dead := range p.elements(v) {
			if !dead {
				length += int(r.n)
			}
		}
	}
	if err := checkSplices(s, length); err != nil {
		return nil, err
	}
	if v.all {
		return s, nil
	}
	b := rebase{splices: s}
	b.inserts()
	for r := range p.seq.each {
		known := v.cut(r)
		there := !p.deletedTo(v, r.deleted) // at base, as far as known
		visible := r.deleted == 0
		if there {
			for range known {
				b.character(visible)
			}
		} else if visible {
			b.now += known
		}
		if visible {
			b.now += int(r.n) - known
		}
	}
	return b.out, nil
}

// rebase walks along two texts at once, the one at the base and the present one.
type rebase struct {
	splices   []notebook.Splice // that are not finished
	done      int               // deleted code points of the first splice
	base, now int               // where the walk is in either text
	out       []notebook.Splice
}

// inserts places the inserts of all splices that begin here.
func (b *rebase) inserts() {
	for len(b.splices) > 0 && b.splices[0].At == b.base && b.done == 0 {
		if b.splices[0].Insert != "" {
			b.out = append(b.out, notebook.Splice{At: b.now, Insert: b.splices[0].Insert})
		}
		if b.splices[0].Delete > 0 {
			return
		}
		b.splices = b.splices[1:]
	}
}

// character goes over one character of the base, which may still be there.
func (b *rebase) character(visible bool) {
	if len(b.splices) > 0 && b.splices[0].At+b.done == b.base && b.splices[0].Delete > b.done {
		if visible {
			if n := len(b.out) - 1; n >= 0 && b.out[n].At+b.out[n].Delete == b.now {
				b.out[n].Delete++
			} else {
				b.out = append(b.out, notebook.Splice{At: b.now, Delete: 1})
			}
		}
		if b.done++; b.done == b.splices[0].Delete {
			b.splices, b.done = b.splices[1:], 0
		}
	}
	b.base++
	if visible {
		b.now++
	}
	b.inserts()
}
