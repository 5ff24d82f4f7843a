package crdt

import (
	"iter"
	"math/rand"
	"strings"

	"noted/notebook"
)

// traceOps is a long technical paper that was typed key by key.
const traceOps = 260_000

// writing is a long session at the keys, of which each element is one edit:
// typing and correcting, going elsewhere, taking out what was written, and
// pasting. It is the same for the same seed.
type writing struct {
	random *rand.Rand
	at     int
	length int
}

func (w *writing) next() notebook.Splice {
	r := w.random
	s := notebook.Splice{At: min(w.at, w.length)}
	switch n := r.Intn(1000); {
	case n < 8: // elsewhere
		w.at = r.Intn(w.length + 1)
		return w.next()
	case n < 10: // a block goes
		s.Delete = min(w.length-s.At, 1+r.Intn(400))
	case n < 11: // a block comes
		s.Insert = strings.Repeat("Some pasted text, é漢😀.\n", 1+r.Intn(8))
	case n < 20: // a word is replaced
		s.Delete = min(w.length-s.At, 1+r.Intn(8))
		s.Insert = "word "
	case n < 180 && s.At > 0: // backspace
		s.At--
		s.Delete = 1
	case n < 190: // the other key
		s.Delete = min(w.length-s.At, 1)
	}
	if s.Delete == 0 && s.Insert == "" {
		s.Insert = string([]rune("etaoin shrdlu\né漢😀")[min(r.Intn(60), 16)])
	}
	inserted := len([]rune(s.Insert))
	w.at = s.At + inserted
	w.length += inserted - s.Delete
	return s
}

// several is up to thirty edits of the text as it is, in their order, which lie
// close together mostly.
func (w *writing) several(yield func(notebook.Splice) bool) {
	end, length := w.random.Intn(w.length+1), w.length
	shift := 0 // how much longer those so far make the text
	for range 1 + w.random.Intn(30) {
		s := notebook.Splice{At: min(end+w.random.Intn(1+w.random.Intn(40)), length)}
		s.Delete = min(length-s.At, w.random.Intn(4))
		if s.Delete == 0 || w.random.Intn(2) == 0 {
			s.Insert = string([]rune("né漢😀né漢")[:1+w.random.Intn(7)])
		}
		end = s.At + s.Delete
		shift += len([]rune(s.Insert)) - s.Delete
		if !yield(s) {
			break
		}
	}
	w.length += shift
}

// oneByOne is an edit as edits of one character each.
func oneByOne(s notebook.Splice) iter.Seq[notebook.Splice] {
	return func(yield func(notebook.Splice) bool) {
		for range s.Delete {
			if !yield(notebook.Splice{At: s.At, Delete: 1}) {
				return
			}
		}
		for i, c := range []rune(s.Insert) {
			if !yield(notebook.Splice{At: s.At + i, Insert: string(c)}) {
				return
			}
		}
	}
}
