package crdt

// deletion is one element of a chain: the change that deleted, and the deletions before it.
type deletion struct{ change, before int32 }

// shortChain is how many deletions of an element are followed without a note of
// it. Usually there is one; many actors that delete the same at once make more.
const shortChain = 4

// anyDeletion reports whether it holds for the change of one of a chain of
// deletions. Chains share their older parts, and with the notes in asked each
// part is followed once: otherwise elements that thousands of actors deleted at
// the same time would make a change of a few bytes follow thousands of deletions
// for each of them.
func (p *Page) anyDeletion(newest int32, asked *map[int32]bool, holds func(change int32) bool) bool {
	found, n := false, 0
	d := newest
	for ; d > 0; d = p.deletions[d-1].before {
		if n >= shortChain {
			if old, known := (*asked)[d]; known {
				found = old
				break
			}
		}
		n++
		if holds(p.deletions[d-1].change) {
			found = true
			break
		}
	}
	p.steps += uint64(n)
	if n <= shortChain {
		return found
	}
	if *asked == nil {
		*asked = map[int32]bool{}
	}
	for e := newest; e != d; e = p.deletions[e-1].before {
		(*asked)[e] = found // down to d the answer is the same
	}
	if d > 0 {
		(*asked)[d] = found
	}
	return found
}
