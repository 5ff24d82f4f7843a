package trust

import (
	"slices"

	"noted/notebook"
)

// Tips are the newest places of all chains, continued ones included, sorted.
// Unlike heads they name each stretch of entries that the log holds.
func (l *Log) Tips() []notebook.Position {
	l.forest.mu.RLock()
	defer l.forest.mu.RUnlock()
	tips := make([]notebook.Position, 0, len(l.forest.chains))
	for id, c := range l.forest.chains {
		tips = append(tips, notebook.Position{Device: id.device, Epoch: id.epoch, Seq: c.last})
	}
	slices.SortFunc(tips, notebook.Position.Compare)
	return tips
}
