package trust

import (
	"slices"

	"noted/notebook"
)

// Stretch is the part of one chain that the log holds.
type Stretch struct {
	From uint64         // the first entry: 1, or later for a branch
	Tip  notebook.Place // of the newest entry
}

// Stretches are those of all chains, continued ones included, sorted. Unlike
// heads they name each entry that the log holds once.
func (l *Log) Stretches() []Stretch {
	l.forest.mu.RLock()
	defer l.forest.mu.RUnlock()
	all := make([]Stretch, 0, len(l.forest.chains))
	for _, c := range l.forest.chains {
		all = append(all, Stretch{From: c.from, Tip: c.place(c.last)})
	}
	slices.SortFunc(all, func(a, b Stretch) int { return a.Tip.Compare(b.Tip) })
	return all
}
