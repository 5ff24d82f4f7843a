package daemon

import (
	"errors"
	"fmt"
	"slices"

	"noted/store"
)

// share is a part of what is kept of runs. Each has bounds of its own, so that
// nobody but the person can push out what the person ran: agents ask often, and
// what others wrote may be large.
type share byte

const (
	ownShare   share = 'p' // runs of the person's own fences, by the person or their policy
	otherShare share = 'o' // runs that an agent asked for, and those of others' fences
)

var allShares = [...]share{ownShare, otherShare}

// share is where a run belongs, from when it is asked for.
func (r *runRecord) share() share {
	if r.By != "" || r.Standing != "local" {
		return otherShare
	}
	return ownShare
}

// room says how much of what runs were handed is kept for replays.
func (s share) room() string {
	if s == ownShare {
		return fmt.Sprintf("%d MiB are kept of what you run of your own", maxKept>>20)
	}
	return fmt.Sprintf("%d MiB are kept of what agents run, and of others' fences", maxKept>>20)
}

// outcomeWindow is how many runs and refusals of a share are kept with their output.
// The ledger keeps the rest for ever, without.
const outcomeWindow = 1000

// key is that of a share's record of a kind: of a run, or the one that there is.
func (s share) key(what byte, run ...uint64) []byte {
	key := []byte{what, byte(s)}
	for _, number := range run {
		key = append(key, store.Number(number)...)
	}
	return key
}

// number reads a number that is kept for a share; 0 if none is.
func (s share) number(tx *store.Tx, what byte) (uint64, error) {
	b, err := tx.Get(store.Kept, s.key(what))
	if err != nil || b == nil {
		return 0, err
	}
	return store.Record{Key: b}.Number(), nil
}

func (s share) putNumber(tx *store.Tx, what byte, n uint64) error {
	return tx.Put(store.Kept, s.key(what), store.Number(n))
}

// countOutcome counts a run whose record was kept, unless it is counted, and
// forgets the oldest of its share that there is no room for, but for runs that
// still go on: their outcome is yet to come.
func countOutcome(tx *store.Tx, s share, number uint64, most uint64) error {
	key := s.key(keptRun, number)
	if known, err := tx.Get(store.Kept, key); err != nil || known != nil {
		return err
	}
	if err := tx.Put(store.Kept, key, []byte{}); err != nil {
		return err
	}
	n, err := s.number(tx, keptRuns)
	if err != nil {
		return err
	}
	n++
	for kept, err := range tx.All(store.Kept, s.key(keptRun)) {
		if err != nil {
			return err
		}
		if n <= most {
			break
		}
		old := store.Record{Key: kept.Key[2:]}.Number()
		record, err := tx.Get(store.Outcomes, store.Number(old))
		if err != nil {
			return err
		}
		// One that cannot be read is as old as it is.
		if run, err := openRun(record); err == nil && run.State == stateRunning {
			continue
		}
		if err := forgetOf(tx, s, old); err != nil {
			return err
		}
		n--
	}
	return s.putNumber(tx, keptRuns, n)
}

func forgetOf(tx *store.Tx, s share, number uint64) error {
	return errors.Join(tx.Delete(store.Outcomes, store.Number(number)), tx.Delete(store.Kept, s.key(keptRun, number)), dropKept(tx, s, number))
}

// forgetOutcome forgets a run of which nobody can tell the share.
func forgetOutcome(tx *store.Tx, number uint64) error {
	for _, s := range allShares {
		known, err := tx.Get(store.Kept, s.key(keptRun, number))
		if err != nil {
			return err
		}
		if known == nil {
			continue
		}
		n, err := s.number(tx, keptRuns)
		if err != nil {
			return err
		}
		if err := errors.Join(forgetOf(tx, s, number), s.putNumber(tx, keptRuns, n-1)); err != nil {
			return err
		}
	}
	return tx.Delete(store.Outcomes, store.Number(number))
}

// keptNumbers are the numbers of all runs that are kept with their output, newest first.
func keptNumbers(tx *store.Tx) (all []uint64, err error) {
	for _, s := range allShares {
		for kept, err := range tx.All(store.Kept, s.key(keptRun)) {
			if err != nil {
				return nil, err
			}
			all = append(all, store.Record{Key: kept.Key[2:]}.Number())
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

// checkShares reports runs that are kept and not counted where they belong.
func (c *checker) checkShares() error {
	counted := map[share]uint64{}
	for kept, err := range c.tx.All(store.Kept, []byte{keptRun}) {
		if err != nil {
			return err
		}
		if len(kept.Key) != len(ownShare.key(keptRun, 0)) {
			return errors.New("a run is counted that has no number")
		}
		s, number := share(kept.Key[1]), store.Record{Key: kept.Key[2:]}.Number()
		counted[s]++
		record, err := c.tx.Get(store.Outcomes, store.Number(number))
		if err != nil {
			return err
		}
		if record == nil {
			c.report("run %d is counted, and not kept", number)
		} else if run := c.openRun(record); run != nil && run.share() != s {
			c.report("run %d is counted where it does not belong", number)
		}
	}
	for r, err := range c.tx.All(store.Outcomes, nil) {
		if err != nil {
			return err
		}
		run := c.openRun(r.Value)
		if run == nil {
			continue
		}
		if known, err := c.tx.Get(store.Kept, run.share().key(keptRun, r.Number())); err != nil {
			return err
		} else if known == nil {
			c.report("run %d is kept, and not counted", r.Number())
		}
	}
	for _, s := range allShares {
		if n, err := s.number(c.tx, keptRuns); err != nil {
			return err
		} else if n != counted[s] {
			c.report("%d runs are said to be kept, and %d are", n, counted[s])
		}
	}
	return nil
}
