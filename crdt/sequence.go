package crdt

import (
	"bytes"

	"noted/notebook"
)

// run is a stretch of elements that one actor inserted one after the other and
// that share their deletions. Element i of it has the counter counter+i and was
// inserted by the page's operation op+i.
type run struct {
	counter uint32
	op      int32
	deleted int32 // 1 + index of the newest of its deletions, 0 where it is visible
	actor   uint16
	n       uint16
}

const (
	maxRun    = 256 // so that moving a run costs a bounded time
	leafRuns  = 32
	nodeChild = 32
)

// name is an element's id with the page's number for its actor.
type name struct {
	counter uint32
	actor   uint16
}

// sequence holds the elements of a page in their order, tombstones included: a
// B-tree of runs. It is a tree for two searches. The order of concurrent inserts
// needs the next element with a lower name: each entry of a node holds the lowest
// name below it, so that nobody can make that search long. A local edit needs the
// element at a position of the text: each entry counts what is visible below it.
type sequence struct {
	ids    []notebook.ActorID // by number; breaks ties between counters
	leafOf []int32            // the leaf of the element that an operation inserted, -1 for a deletion
	leaves []*leaf            // the first one stays the first of the sequence
	nodes  []*node
	root   int32
	steps  uint64 // of all searches and moves so far; see [Page.Steps]
}

type leaf struct {
	up, next int32 // next in sequence, -1 for none
	n        int
	runs     [leafRuns]run
}

type node struct {
	up     int32 // -1 for the root
	n      int
	bottom bool // the children are leaves
	child  [nodeChild]int32
	below  [nodeChild]summary
}

// summary is what a node knows of a child.
type summary struct {
	low     name
	visible int32 // elements that are not deleted
}

// highest is above all names: what is lowest in an empty leaf.
var highest = name{counter: 1<<32 - 1}

func newSequence() sequence {
	root := &node{up: -1, n: 1, bottom: true}
	root.below[0].low = highest
	return sequence{leaves: []*leaf{{next: -1}}, nodes: []*node{root}}
}

// less orders names as automerge orders operations: by counter, then by actor.
func (s *sequence) less(a, b name) bool {
	if a.counter != b.counter {
		return a.counter < b.counter
	}
	return a.actor != b.actor && bytes.Compare(s.ids[a.actor][:], s.ids[b.actor][:]) < 0
}

// find returns where the element that op inserted is: leaf, run, place in the run.
func (s *sequence) find(op int32) (l int32, i, k int) {
	l = s.leafOf[op]
	for i := range s.leaves[l].runs[:s.leaves[l].n] {
		r := &s.leaves[l].runs[i]
		if r.op <= op && op < r.op+int32(r.n) {
			s.steps += uint64(i)
			return l, i, int(op - r.op)
		}
	}
	panic("crdt: an element is not in its leaf")
}

// insert puts n elements after the element that the operation after inserted
// (-1 for the beginning), of which the first is called x and was inserted by op,
// and each further one stands behind the one before it.
func (s *sequence) insert(after int32, x name, op int32, n int) {
	l, i := s.place(after, x)
	r := run{counter: x.counter, op: op, actor: x.actor}
	if lf := s.leaves[l]; i > 0 {
		if before := &lf.runs[i-1]; before.reaches(r) && before.n < maxRun {
			m := min(n, maxRun-int(before.n))
			before.n += uint16(m)
			s.count(l, m)
			for k := range m {
				s.leafOf[int(op)+k] = l
			}
			r.counter += uint32(m)
			r.op += int32(m)
			n -= m
		}
	}
	for n > 0 {
		r.n = uint16(min(n, maxRun))
		l, i = s.put(l, i, r)
		s.count(l, int(r.n))
		i++
		n -= int(r.n)
		r.counter += uint32(r.n)
		r.op += int32(r.n)
	}
}

// reaches reports whether q could go on where r ends.
func (r *run) reaches(q run) bool {
	return r.actor == q.actor && r.deleted == q.deleted && r.counter+uint32(r.n) == q.counter && r.op+int32(r.n) == q.op
}

// strand is all that one run could hold if runs had no longest length: how a
// sequence is cut into runs depends on how it came to be, and this does not.
type strand struct {
	run
	length int
}

// strands yields the strands in order.
func (s *sequence) strands(yield func(strand) bool) {
	var whole strand
	for r := range s.each {
		if whole.length > 0 && whole.goesOn(r) {
			whole.length += int(r.n)
			continue
		}
		if whole.length > 0 && !yield(whole) {
			return
		}
		whole = strand{run: *r, length: int(r.n)}
	}
	if whole.length > 0 {
		yield(whole)
	}
}

func (w *strand) goesOn(q *run) bool {
	return w.actor == q.actor && w.deleted == q.deleted && w.counter+uint32(w.length) == q.counter && w.op+int32(w.length) == q.op
}

// place finds where a new element called x goes that refers to the one after
// which it is typed: behind that one and behind all that follow with higher
// names. Those are later inserts at the same place together with what refers to
// them, since a reference's name is lower than the name of what refers to it.
func (s *sequence) place(after int32, x name) (int32, int) {
	l, i := int32(0), 0
	if after >= 0 {
		var k int
		l, i, k = s.find(after)
		r := &s.leaves[l].runs[i]
		if k++; k < int(r.n) && s.less(name{r.counter + uint32(k), r.actor}, x) {
			return s.split(l, i, k)
		}
		i++ // names ascend in a run, so the rest of it is higher, too
	}
	if j := s.below(l, i, x); j >= 0 {
		return l, j
	}
	next, last := s.nextBelow(l, x)
	if next < 0 {
		return last, s.leaves[last].n
	}
	return next, s.below(next, 0, x)
}

// below is the first run of leaf l, from i on, whose name is lower than x, or -1.
func (s *sequence) below(l int32, i int, x name) int {
	lf := s.leaves[l]
	s.steps += uint64(lf.n)
	for ; i < lf.n; i++ {
		if s.less(name{lf.runs[i].counter, lf.runs[i].actor}, x) {
			return i
		}
	}
	return -1
}

// nextBelow is the first leaf behind l with a name lower than x; or -1 and the last leaf.
func (s *sequence) nextBelow(l int32, x name) (next, last int32) {
	child, up := l, s.leaves[l].up
	for up >= 0 {
		u := s.nodes[up]
		s.steps += nodeChild
		for j := u.index(child) + 1; j < u.n; j++ {
			if s.less(u.below[j].low, x) {
				return s.descend(u, j, x), -1
			}
		}
		child, up = up, u.up
	}
	u := s.nodes[s.root]
	for !u.bottom {
		u = s.nodes[u.child[u.n-1]]
	}
	return -1, u.child[u.n-1]
}

func (s *sequence) descend(u *node, j int, x name) int32 {
	for !u.bottom {
		u = s.nodes[u.child[j]]
		s.steps += nodeChild
		for j = 0; !s.less(u.below[j].low, x); j++ {
		}
	}
	return u.child[j]
}

func (u *node) index(child int32) int {
	for j := range u.n {
		if u.child[j] == child {
			return j
		}
	}
	panic("crdt: a child is not in its parent")
}

// split cuts run i of leaf l before its element k and returns where the second part is.
func (s *sequence) split(l int32, i, k int) (int32, int) {
	if s.leaves[l].n == leafRuns {
		right := s.splitLeaf(l) // while the leaf is whole, so that what is counted in it stays right
		if i >= leafRuns/2 {
			l, i = right, i-leafRuns/2
		}
	}
	r := &s.leaves[l].runs[i]
	second := run{counter: r.counter + uint32(k), op: r.op + int32(k), deleted: r.deleted, actor: r.actor, n: r.n - uint16(k)}
	r.n = uint16(k)
	return s.put(l, i+1, second)
}

// put inserts a run as number i of leaf l and returns where it went. It does not
// count the run's elements.
func (s *sequence) put(l int32, i int, r run) (int32, int) {
	if s.leaves[l].n == leafRuns {
		right := s.splitLeaf(l)
		if i > leafRuns/2 {
			l, i = right, i-leafRuns/2
		}
	}
	lf := s.leaves[l]
	copy(lf.runs[i+1:lf.n+1], lf.runs[i:lf.n])
	lf.runs[i] = r
	lf.n++
	if s.leafOf[r.op] != l {
		s.steps += uint64(r.n)
		for k := range int32(r.n) {
			s.leafOf[r.op+k] = l
		}
	}
	s.lower(l, name{r.counter, r.actor})
	return l, i
}

// count takes into account that leaf l has so many more visible elements.
func (s *sequence) count(l int32, more int) {
	if more == 0 {
		return
	}
	child, up := l, s.leaves[l].up
	for up >= 0 {
		u := s.nodes[up]
		u.below[u.index(child)].visible += int32(more)
		child, up = up, u.up
	}
}

// at returns where the visible element is that has so many visible ones before
// it: leaf, run, place in the run. There is one.
func (s *sequence) at(position int) (l int32, i, k int) {
	left := int32(position)
	u := s.nodes[s.root]
	for {
		j := 0
		for ; left >= u.below[j].visible; j++ {
			left -= u.below[j].visible
		}
		if l = u.child[j]; u.bottom {
			break
		}
		u = s.nodes[l]
	}
	for ; ; i++ {
		r := &s.leaves[l].runs[i]
		if r.deleted != 0 {
			continue
		}
		if left < int32(r.n) {
			return l, i, int(left)
		}
		left -= int32(r.n)
	}
}

// lower takes a new name below leaf l into account.
func (s *sequence) lower(l int32, x name) {
	child, up := l, s.leaves[l].up
	for up >= 0 {
		u := s.nodes[up]
		j := u.index(child)
		if !s.less(x, u.below[j].low) {
			return
		}
		u.below[j].low = x
		child, up = up, u.up
	}
}

func (s *sequence) splitLeaf(l int32) int32 {
	lf := s.leaves[l]
	right := &leaf{up: lf.up, next: lf.next, n: leafRuns / 2}
	copy(right.runs[:], lf.runs[leafRuns/2:])
	lf.n = leafRuns / 2
	id := int32(len(s.leaves))
	s.leaves = append(s.leaves, right)
	lf.next = id
	for _, r := range right.runs[:right.n] {
		s.steps += uint64(r.n)
		for k := range int32(r.n) {
			s.leafOf[r.op+k] = id
		}
	}
	s.adopt(lf.up, l, s.summary(lf), id, s.summary(right))
	return id
}

func (s *sequence) summary(lf *leaf) summary {
	x := summary{low: highest}
	for _, r := range lf.runs[:lf.n] {
		if y := (name{r.counter, r.actor}); s.less(y, x.low) {
			x.low = y
		}
		if r.deleted == 0 {
			x.visible += int32(r.n)
		}
	}
	return x
}

// adopt makes the new child right the sibling behind left in node up. What is
// below both together has not changed.
func (s *sequence) adopt(up, left int32, ofLeft summary, right int32, ofRight summary) {
	if s.nodes[up].n == nodeChild {
		s.splitNode(up)
		up = s.upOf(up, left)
	}
	u := s.nodes[up]
	j := u.index(left)
	u.below[j] = ofLeft
	copy(u.child[j+2:u.n+1], u.child[j+1:u.n])
	copy(u.below[j+2:u.n+1], u.below[j+1:u.n])
	u.child[j+1], u.below[j+1] = right, ofRight
	u.n++
	if u.bottom {
		s.leaves[right].up = up
	} else {
		s.nodes[right].up = up
	}
}

// upOf is the parent of child after its parent was split.
func (s *sequence) upOf(up, child int32) int32 {
	if s.nodes[up].bottom {
		return s.leaves[child].up
	}
	return s.nodes[child].up
}

func (s *sequence) splitNode(id int32) {
	u := s.nodes[id]
	v := &node{up: u.up, n: nodeChild / 2, bottom: u.bottom}
	copy(v.child[:], u.child[nodeChild/2:])
	copy(v.below[:], u.below[nodeChild/2:])
	u.n = nodeChild / 2
	right := int32(len(s.nodes))
	s.nodes = append(s.nodes, v)
	for _, c := range v.child[:v.n] {
		if v.bottom {
			s.leaves[c].up = right
		} else {
			s.nodes[c].up = right
		}
	}
	if u.up < 0 {
		root := &node{up: -1, n: 1}
		root.child[0] = id
		s.root = int32(len(s.nodes))
		s.nodes = append(s.nodes, root)
		u.up, v.up = s.root, s.root
	}
	s.adopt(u.up, id, s.summaryOf(u), right, s.summaryOf(v))
}

func (s *sequence) summaryOf(u *node) summary {
	x := summary{low: highest}
	for _, y := range u.below[:u.n] {
		if s.less(y.low, x.low) {
			x.low = y.low
		}
		x.visible += y.visible
	}
	return x
}

// mark gives the element that op inserted another newest deletion.
func (s *sequence) mark(op, deletion int32) {
	l, i, k := s.find(op)
	lf := s.leaves[l]
	r := &lf.runs[i]
	less := 0
	if r.deleted == 0 {
		less = -1
	}
	one := run{counter: r.counter + uint32(k), op: op, deleted: deletion, actor: r.actor, n: 1}
	if k == 0 && i > 0 {
		if before := &lf.runs[i-1]; before.reaches(one) && before.n < maxRun {
			before.n++
			r.counter++
			r.op++
			if r.n--; r.n == 0 {
				lf.n--
				copy(lf.runs[i:lf.n], lf.runs[i+1:lf.n+1])
			}
			s.count(l, less)
			return
		}
	}
	if k > 0 {
		l, i = s.split(l, i, k)
	}
	if s.leaves[l].runs[i].n > 1 {
		s.split(l, i, 1)
		l, i, _ = s.find(op)
	}
	s.leaves[l].runs[i].deleted = deletion
	s.count(l, less)
}

// each yields the runs in order.
func (s *sequence) each(yield func(*run) bool) {
	for l := int32(0); l >= 0; l = s.leaves[l].next {
		lf := s.leaves[l]
		for i := range lf.runs[:lf.n] {
			if !yield(&lf.runs[i]) {
				return
			}
		}
	}
}

// fill makes an empty sequence of runs in their order. Leaves and nodes are
// left with room, so that the first inserts do not split each of them.
func (s *sequence) fill(runs []run) {
	const full = leafRuns * 3 / 4
	for i := 0; len(runs) > 0; i++ {
		n := min(full, len(runs))
		if i == 0 {
			s.leaves[0].n = copy(s.leaves[0].runs[:], runs[:n])
		} else {
			lf := &leaf{next: -1, n: n}
			copy(lf.runs[:], runs[:n])
			s.leaves[i-1].next = int32(i)
			s.leaves = append(s.leaves, lf)
		}
		for _, r := range runs[:n] {
			for k := range int32(r.n) {
				s.leafOf[r.op+k] = int32(i)
			}
		}
		runs = runs[n:]
	}
	level := make([]int32, len(s.leaves))
	below := make([]summary, len(s.leaves))
	for i, lf := range s.leaves {
		level[i], below[i] = int32(i), s.summary(lf)
	}
	s.nodes = s.nodes[:0]
	for bottom := true; bottom || len(level) > 1; bottom = false {
		var upper []int32
		var ofUpper []summary
		for len(level) > 0 {
			n := min(nodeChild*3/4, len(level))
			u := &node{up: -1, n: n, bottom: bottom}
			copy(u.child[:], level[:n])
			copy(u.below[:], below[:n])
			id := int32(len(s.nodes))
			s.nodes = append(s.nodes, u)
			for _, c := range level[:n] {
				if bottom {
					s.leaves[c].up = id
				} else {
					s.nodes[c].up = id
				}
			}
			upper, ofUpper = append(upper, id), append(ofUpper, s.summaryOf(u))
			level, below = level[n:], below[n:]
		}
		level, below = upper, ofUpper
	}
	s.root = level[0]
}
