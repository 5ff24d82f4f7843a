package crdt

import (
	"slices"

	"noted/notebook"
)

// does reports whether an own change, which the gate admits, is what splices of
// the present text come to, and nothing else: it rests on all of the present revision,
// deletes the elements at their positions, and inserts their characters there.
// The gate asks whose change it is; this asks whether it is the one that the
// person made. Without it a write model that was taken over could put any text
// under the person's name.
//
// A model works from the last splice to the first, so that positions stay what
// they were.
func (p *Page) does(a *arrival, at int64, s []notebook.Splice) bool {
	c := a.change
	if c.time != at {
		return false
	}
	deps := slices.Sorted(slices.Values(a.deps)) // automerge also names the actor's own last change
	for _, h := range p.heads {
		if _, known := slices.BinarySearch(deps, h); !known {
			return false
		}
	}
	var deleted []int32                // by splices, in their order
	before := make([]int32, 0, len(s)) // of each splice the element that its text stands behind
	next, place := 0, 0                // the splice that is looked for, the place of the next element
	last := int32(-1)                  // the element before that place
	for r := range p.seq.each {
		if next == len(s) {
			break
		}
		if r.deleted != 0 {
			continue
		}
		for i := int32(0); i < int32(r.n); {
			for ; next < len(s) && s[next].At == place && len(before) == next; next++ {
				before = append(before, last)
				if s[next].Delete > 0 {
					break
				}
			}
			if next == len(s) {
				break
			}
			if x := s[next]; x.At <= place {
				deleted = append(deleted, r.op+i)
				if place+1 == x.At+x.Delete {
					next++
				}
				place, last, i = place+1, r.op+i, i+1
				continue
			}
			n := min(int32(r.n)-i, int32(s[next].At-place))
			place, i = place+int(n), i+n
			last = r.op + i - 1
		}
	}
	for ; next < len(s) && s[next].At == place && s[next].Delete == 0; next++ {
		before = append(before, last)
	}
	if next < len(s) {
		return false
	}
	base, i := int32(len(p.chars)), 0
	var erased []int32
	for k := len(s) - 1; k >= 0; k-- {
		ref := before[k]
		for _, char := range s[k].Insert {
			for ; i < len(c.ops) && !c.ops[i].inserts(); i++ {
				erased = append(erased, a.refs[i])
			}
			if i == len(c.ops) || c.ops[i].char != char || a.refs[i] != ref {
				return false
			}
			ref = base + int32(i)
			i++
		}
	}
	for ; i < len(c.ops); i++ {
		if c.ops[i].inserts() {
			return false
		}
		erased = append(erased, a.refs[i])
	}
	slices.Sort(deleted)
	slices.Sort(erased)
	return slices.Equal(deleted, erased)
}
