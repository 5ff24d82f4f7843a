package crdt

import (
	"strings"

	"noted/notebook"
)

// Loss is what an author of a device had done to a page and is not there any
// more: splices of the page's present text that do it again.
type Loss struct {
	Author  notebook.Author
	Splices []notebook.Splice
	Chars   int // code points of the text that is inserted again
}

// Lost compares p, a page as it was, with after, the same page made anew without
// some of its changes, and returns what of it a device had done, each of its
// authors apart: characters that it had inserted and that after never had, each
// behind the character of after behind which it stood; and those of after that
// it had deleted.
func (p *Page) Lost(after *Page, device notebook.DeviceID) []Loss {
	w := loser{before: p, after: after, device: device, place: make([]int32, len(after.chars)), at: make(map[notebook.Author]int)}
	n := int32(0)
	for r := range after.seq.each {
		for k := range int32(r.n) {
			if r.deleted == 0 {
				n++
				w.place[r.op+k] = n // from 1
			}
		}
	}
	for r := range p.seq.each {
		actor := &p.actors[r.actor]
		for k := range int32(r.n) {
			w.element(name{r.counter + uint32(k), r.actor}, &actor.author, p.chars[r.op+k], r.deleted)
		}
	}
	for i := range w.losses {
		l := &w.losses[i]
		for j := range l.Splices {
			l.Splices[j].Insert = w.text[i][j].String()
		}
	}
	return w.losses
}

// loser walks along the elements of a page as it was.
type loser struct {
	before, after *Page
	device        notebook.DeviceID
	place         []int32 // by operation of after: 1 + where its character is; 0 if it is not visible
	here          int     // in after's text, behind the last character that both have
	losses        []Loss
	text          [][]*strings.Builder // of each loss and splice
	at            map[notebook.Author]int
}

func (w *loser) element(x name, author *notebook.Author, char rune, deleted int32) {
	op := int32(-1)
	if actor, known := w.after.actorOf[w.before.seq.ids[x.actor]]; known {
		// In two histories of one device one name is that of two elements.
		y := name{x.counter, actor}
		if k := w.after.changeOf(y); k >= 0 && w.after.changes[k].hash == w.before.changes[w.before.changeOf(x)].hash {
			op = w.after.operation(y)
		}
	}
	switch there := op >= 0; {
	case there && w.place[op] > 0:
		w.here = int(w.place[op])
		if by, own := w.deleter(deleted); own {
			w.splice(by, w.here-1, 1, 0)
		}
	case !there && deleted == 0 && author.Device == w.device:
		w.splice(*author, w.here, 0, char)
	}
}

// deleter is which author of the device made one of a chain of deletions.
func (w *loser) deleter(newest int32) (notebook.Author, bool) {
	for d := newest; d > 0; d = w.before.deletions[d-1].before {
		change := &w.before.changes[w.before.deletions[d-1].change]
		if a := w.before.actors[change.actor].author; a.Device == w.device {
			return a, true
		}
	}
	return notebook.Author{}, false
}

// splice adds a deletion of one character at a place, or an insertion there, to
// what the author lost.
func (w *loser) splice(author notebook.Author, at, del int, char rune) {
	i, known := w.at[author]
	if !known {
		i = len(w.losses)
		w.at[author] = i
		w.losses = append(w.losses, Loss{Author: author})
		w.text = append(w.text, nil)
	}
	l := &w.losses[i]
	last := len(l.Splices) - 1
	switch {
	case last >= 0 && l.Splices[last].At+l.Splices[last].Delete == at && (del == 0 || w.text[i][last].Len() == 0):
		l.Splices[last].Delete += del
	default:
		l.Splices = append(l.Splices, notebook.Splice{At: at, Delete: del})
		w.text[i] = append(w.text[i], new(strings.Builder))
		last++
	}
	if del == 0 {
		w.text[i][last].WriteRune(char)
		l.Chars++
	}
}

// Inserted is the text that a change inserts, piece by piece in the order of its
// operations, for a person to read; empty if the bytes are no change.
func Inserted(body []byte) string {
	c := new(change)
	if c.decode(body, new(encoder)) != nil {
		return ""
	}
	var b strings.Builder
	for i := range c.ops {
		switch o := &c.ops[i]; {
		case !o.inserts():
		case i > 0 && (o.actor != 0 || o.counter != c.start+uint32(i)-1):
			b.WriteByte('\n') // it stands elsewhere
			fallthrough
		default:
			b.WriteRune(o.char)
		}
	}
	return b.String()
}
