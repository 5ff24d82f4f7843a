package crdt

import (
	"slices"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// Diff is an edit that makes new of old and keeps the characters, and with them
// their authors, that both have in common: whole lines first, then what is equal
// within the lines between. It finds the shortest edit where the texts are alike
// and a good one elsewhere; its time is bounded by their size. The same texts
// always give the same edit. Both are valid bodies.
func Diff(old, new string) []notebook.Splice {
	d := differ{}
	a, b := d.lines(old), d.lines(new)
	oldLines, newLines := strings.SplitAfter(old, "\n"), strings.SplitAfter(new, "\n")
	i, j := 0, 0
	between := func(to, from int) {
		d.runes(strings.Join(oldLines[i:to], ""), strings.Join(newLines[j:from], ""))
	}
	align(a, b, alignLines, func(x, y, n int) {
		between(x, y)
		for _, l := range oldLines[x : x+n] {
			d.at += utf8.RuneCountInString(l)
		}
		i, j = x+n, y+n
	})
	between(len(a), len(b))
	return d.out
}

type differ struct {
	numbers map[string]int32 // of lines
	at      int              // code points of the old text that are done
	out     []notebook.Splice
}

// lines numbers the lines of a text, equal ones with equal numbers.
func (d *differ) lines(s string) []int32 {
	if d.numbers == nil {
		d.numbers = map[string]int32{}
	}
	var out []int32
	for l := range strings.SplitAfterSeq(s, "\n") {
		n, ok := d.numbers[l]
		if !ok {
			n = int32(len(d.numbers))
			d.numbers[l] = n
		}
		out = append(out, n)
	}
	return out
}

// runes appends the edit that makes new of old, which stands next.
func (d *differ) runes(old, new string) {
	a, b := []rune(old), []rune(new)
	i, j := 0, 0
	between := func(to, from int) {
		if to > i || from > j {
			d.splice(to-i, string(b[j:from]))
		}
	}
	align(a, b, alignRunes, func(x, y, n int) {
		between(x, y)
		d.at += n
		i, j = x+n, y+n
	})
	between(len(a), len(b))
}

func (d *differ) splice(deleted int, insert string) {
	if n := len(d.out) - 1; n >= 0 && d.out[n].At+d.out[n].Delete == d.at {
		d.out[n].Delete += deleted
		d.out[n].Insert += insert
	} else {
		d.out = append(d.out, notebook.Splice{At: d.at, Delete: deleted, Insert: insert})
	}
	d.at += deleted
}

// align tells keep which stretches of a and b are the same: n elements from x
// in a and from y in b, in order. It is Myers' greedy search for the shortest
// edit, cut off after most differences: then it takes the path that has come
// furthest and begins again at its end. One search costs at most the square of
// most and gets at least most ahead, so all cost most times the length.
func align[T comparable](a, b []T, most int, keep func(x, y, n int)) {
	start, end := 0, 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	if start > 0 {
		keep(0, 0, start)
	}
	suffix := [2]int{len(a) - end, len(b) - end}
	a, b = a[:suffix[0]], b[:suffix[1]]
	for x, y := start, start; x < len(a) && y < len(b); {
		s := search[T]{a: a[x:], b: b[y:]}
		d, k := s.run(most)
		for _, kept := range s.path(d, k) {
			keep(x+kept.x, y+kept.y, kept.n)
		}
		x, y = x+s.reached[d].at(k), y+s.reached[d].at(k)-k
	}
	if end > 0 {
		keep(suffix[0], suffix[1], end)
	}
}

// search is one greedy search: how far down each diagonal (the place in a less
// the one in b) one comes with so many differences.
type search[T comparable] struct {
	a, b    []T
	reached []frontier // by number of differences
}

// frontier holds the place in a on every second diagonal from -d to d, -1 where none is reached.
type frontier []int

func (f frontier) at(k int) int {
	d := len(f) - 1
	if k < -d || k > d {
		return -1
	}
	return f[(k+d)/2]
}

// step is how one comes to diagonal k with one more difference: from which one, and where.
func (s *search[T]) step(before frontier, k int) (from, x int) {
	deleted, inserted := before.at(k-1), before.at(k+1)
	if deleted >= 0 && deleted < len(s.a) {
		deleted++
	} else {
		deleted = -1
	}
	if inserted-k > len(s.b) {
		inserted = -1
	}
	if inserted > deleted {
		return k + 1, inserted
	}
	return k - 1, deleted
}

// run searches until the end of both or most differences, and returns the
// number of differences and the diagonal of the path that came furthest.
func (s *search[T]) run(most int) (d, k int) {
	bestD, bestK, best := 0, 0, -1
	for d := 0; d <= most; d++ {
		f := make(frontier, d+1)
		for i := range f {
			k, x := 2*i-d, 0
			if d > 0 {
				_, x = s.step(s.reached[d-1], k)
			}
			for x >= 0 && x < len(s.a) && x-k < len(s.b) && s.a[x] == s.b[x-k] {
				x++
			}
			f[i] = x
			if x >= 0 && 2*x-k > best {
				bestD, bestK, best = d, k, 2*x-k
			}
		}
		s.reached = append(s.reached, f)
		if best == len(s.a)+len(s.b) {
			break
		}
	}
	return bestD, bestK
}

type stretch struct{ x, y, n int }

// path is what the path to diagonal k with d differences keeps, in order.
func (s *search[T]) path(d, k int) []stretch {
	var kept []stretch
	for ; d >= 0; d-- {
		from, x := k, 0
		if d > 0 {
			from, x = s.step(s.reached[d-1], k)
		}
		if n := s.reached[d].at(k) - x; n > 0 {
			kept = append(kept, stretch{x, x - k, n})
		}
		k = from
	}
	slices.Reverse(kept)
	return kept
}
