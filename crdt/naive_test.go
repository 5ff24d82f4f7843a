package crdt

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// naive is a page as its definition reads, and nothing else: a list of letters,
// each with who wrote it and who deleted it, and every question answered by
// walking over all of it. It shares with the shadow only how a change is decoded
// and how fences are read from text.
type naive struct {
	self    notebook.Author // the person at this device
	letters []letter
	commits []commit
	byHash  map[notebook.Hash]int
	own     map[letterID]ownLetter
}

type letterID struct {
	counter uint32
	actor   notebook.ActorID
}

type letter struct {
	letterID
	char    rune
	by      int   // commit that inserted it
	deleted []int // commits that deleted it
}

type commit struct {
	author notebook.Author
	deps   []int
}

// ownLetter is the record of an own fence, by the first letter of its delimiter.
type ownLetter struct {
	reads     string
	suspended bool
}

func newNaive(self notebook.Author) *naive {
	return &naive{
		self: self, commits: []commit{{}}, byHash: map[notebook.Hash]int{firstHash: 0}, own: map[letterID]ownLetter{},
	}
}

// before orders letters that were written at one place: the later counter
// first, then the higher actor.
func (x letterID) before(y letterID) bool {
	return x.counter > y.counter || x.counter == y.counter && bytes.Compare(x.actor[:], y.actor[:]) > 0
}

// take adds a commit that the gate has admitted.
func (n *naive) take(body []byte, author notebook.Author) {
	c := new(change)
	if err := c.decode(body, new(encoder)); err != nil {
		panic(err)
	}
	this := len(n.commits)
	k := commit{author: author}
	for _, d := range c.deps {
		k.deps = append(k.deps, n.byHash[d])
	}
	n.commits = append(n.commits, k)
	n.byHash[c.hash] = this
	for i, o := range c.ops {
		at := -1
		if o.counter > 0 {
			ref := letterID{o.counter, c.actor}
			if o.actor > 0 {
				ref.actor = c.actors[o.actor-1]
			}
			at = slices.IndexFunc(n.letters, func(l letter) bool { return l.letterID == ref })
		}
		if !o.inserts() {
			n.letters[at].deleted = append(n.letters[at].deleted, this)
			continue
		}
		id := letterID{c.start + uint32(i), c.actor}
		for at++; at < len(n.letters) && n.letters[at].before(id); at++ {
		}
		n.letters = slices.Insert(n.letters, at, letter{letterID: id, char: o.char, by: this})
	}
}

// past are the commits of a revision and all that they rest on.
func (n *naive) past(rev notebook.Revision) map[int]bool {
	past := map[int]bool{}
	var work []int
	for _, h := range rev {
		work = append(work, n.byHash[h])
	}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		if !past[k] {
			past[k] = true
			work = append(work, n.commits[k].deps...)
		}
	}
	return past
}

func (n *naive) everything() map[int]bool {
	all := map[int]bool{}
	for k := range n.commits {
		all[k] = true
	}
	return all
}

// naiveFence is a fence of the letters that some commits show.
type naiveFence struct {
	id      letterID
	reads   string // delimiter, info string and code
	closed  bool
	origin  notebook.Origin
	opening []letterID // of its opening line, without the line end
}

// text is what some commits show, and of each of its bytes the letter.
func (n *naive) text(shown map[int]bool) (string, []int) {
	var b strings.Builder
	var of []int
	for i, l := range n.letters {
		if !shown[l.by] || slices.ContainsFunc(l.deleted, func(k int) bool { return shown[k] }) {
			continue
		}
		b.WriteRune(l.char)
		for range utf8.RuneLen(l.char) {
			of = append(of, i)
		}
	}
	return b.String(), of
}

func (n *naive) fences(shown map[int]bool) []naiveFence {
	text, of := n.text(shown)
	found, err := notebook.Fences(text)
	if err != nil {
		return nil
	}
	var all []naiveFence
	for _, f := range found {
		from := strings.LastIndexByte(text[:f.Whole.From], '\n') + 1
		to := max(f.Whole.From, f.Whole.To-1)
		if end := strings.IndexByte(text[to:], '\n'); end >= 0 {
			to += end + 1
		} else {
			to = len(text)
		}
		// Tombstones count from behind the letter before the fence, and up to the
		// one after it where no line end of its own closes it.
		first, last := 0, of[to-1]
		if from > 0 {
			first = of[from-1] + 1
		}
		if !f.Closed() || text[to-1] != '\n' {
			last = len(n.letters) - 1
			if to < len(of) {
				last = of[to] - 1
			}
		}
		var authors []notebook.Author
		for i := first; i <= last; i++ {
			l := &n.letters[i]
			if !shown[l.by] {
				continue
			}
			dead := false
			for _, k := range l.deleted {
				if shown[k] {
					dead = true
					authors = append(authors, n.commits[k].author)
				}
			}
			if !dead {
				authors = append(authors, n.commits[l.by].author)
			}
		}
		part := f.Part(text)
		fence := naiveFence{
			id: n.letters[of[f.Open.From]].letterID, closed: f.Closed(), origin: notebook.NewOrigin(authors...),
			reads: part.Delimiter + "\x00" + part.Info + "\x00" + part.Code,
		}
		for at := from; at < to && text[at] != '\n'; at++ {
			if id := n.letters[of[at]].letterID; len(fence.opening) == 0 || fence.opening[len(fence.opening)-1] != id {
				fence.opening = append(fence.opening, id)
			}
		}
		all = append(all, fence)
	}
	return all
}

func findFence(all []naiveFence, id letterID) *naiveFence {
	for i := range all {
		if all[i].id == id {
			return &all[i]
		}
	}
	return nil
}

// other records a commit that this person did not type: what it changed or
// killed is nobody's own, and what is suspended does not come back.
func (n *naive) other() {
	now := n.fences(n.everything())
	for id, o := range n.own {
		if f := findFence(now, id); o.suspended || f == nil || f.reads != o.reads {
			delete(n.own, id)
		}
	}
}

// typed records the newest commit, which this person typed while seeing base.
func (n *naive) typed(base notebook.Revision) {
	this := len(n.commits) - 1
	saw := n.past(base)
	merged := n.everything()
	delete(merged, this)
	livedBefore := slices.Concat(n.fences(merged), n.fences(saw))
	saw[this] = true
	sees := n.fences(saw)
	now := n.fences(n.everything())
	own := map[letterID]ownLetter{}
	for i := range now {
		f := &now[i]
		record, recorded := n.own[f.id]
		seen := findFence(sees, f.id)
		agreed := seen != nil && seen.reads == f.reads
		wrote := slices.ContainsFunc(f.opening, func(id letterID) bool {
			i := slices.IndexFunc(n.letters, func(l letter) bool { return l.letterID == id })
			return n.letters[i].by == this
		})
		// A fence that lived before, unrecorded, does not become this person's by
		// what is typed into its opening line, nor does one made of that line.
		lived := slices.ContainsFunc(livedBefore, func(e naiveFence) bool {
			if r, recorded := n.own[e.id]; recorded && !r.suspended {
				return false
			}
			return slices.ContainsFunc(e.opening, func(id letterID) bool { return slices.Contains(f.opening, id) })
		})
		untouched := recorded && !record.suspended && record.reads == f.reads
		if untouched || agreed && (recorded || wrote && !lived) {
			own[f.id] = ownLetter{reads: f.reads}
		}
	}
	for id, record := range n.own {
		if findFence(now, id) == nil && findFence(sees, id) == nil {
			own[id] = ownLetter{reads: record.reads, suspended: true}
		}
	}
	n.own = own
}

// local says by definition whether a fence is this person's alone.
func (n *naive) local(f *naiveFence) bool {
	record, recorded := n.own[f.id]
	return f.closed && recorded && !record.suspended && record.reads == f.reads && f.origin.Only(n.self)
}
