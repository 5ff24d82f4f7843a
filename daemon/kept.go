package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// What a run was handed is kept for replays, each value once under its digest:
// a page that a hundred runs read is there once. It never leaves this device,
// goes with the run's own record, and goes with the page.

const (
	keptVersion = 1

	// maxKept is how many bytes of values a share may keep for replays; those of
	// its oldest runs go first. It has room for seven different pages of the largest
	// size. A value that runs of both shares were handed counts in both.
	maxKept = 16 << 20

	maxRecipe = 2*18*notebook.MaxRows + 32<<10 // bytes of a recipe: 16 KiB of args, who wrote the inputs, and the pages that a query found
)

// The first bytes of the keys of the space. The second byte is a [share], but for
// values and who uses them.
const (
	keptRun    = 'r' // number of a run whose record is kept → nothing
	keptRuns   = 'c' // → how many those are
	keptRecipe = 'n' // number of a run → recipe
	keptTotal  = 't' // → bytes of the share's recipes, and of the values that it uses
	keptPushed = 'p' // → the newest run whose values made room for those of later ones
	keptValue  = 'v' // digest → value
	keptUse    = 'u' // digest, share, number of a run that has it → nothing
)

// recipe is what a run was handed, but for the fence itself, which is on its page
// or there is no replay.
type recipe struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Number  uint64
	Pages   []notebook.PageID // whose text it may hold
	Any     bool              // it may hold text of any page
	Args    map[string]string
	Inputs  []keptInput
}

type keptInput struct {
	_          struct{} `cbor:",toarray"`
	Capability notebook.Capability
	Value      notebook.Hash
	Authors    notebook.Origin
}

func valueKey(value notebook.Hash) []byte { return append([]byte{keptValue}, value[:]...) }

func useKey(value notebook.Hash) []byte { return append([]byte{keptUse}, value[:]...) }

func (s share) useKey(value notebook.Hash, run ...uint64) []byte {
	key := append(useKey(value), byte(s))
	for _, number := range run {
		key = append(key, store.Number(number)...)
	}
	return key
}

// valueDigest names a value.
func valueDigest(value []byte) notebook.Hash { return notebook.Digest("noted/kept/v1", value) }

// isValue reports whether what a capability gave to a run was a value, which can
// be given again.
func isValue(c notebook.Capability) bool {
	switch c {
	case notebook.CapPage, notebook.CapClock, notebook.CapArgs, notebook.CapSeed, notebook.CapQuery:
		return true
	}
	return false
}

// keepInputs keeps what a run was handed, if all of that were values.
func (d *Daemon) keepInputs(b *batch, rec *runRecord, grant trust.Grant) {
	if slices.ContainsFunc(rec.Capabilities, func(c notebook.Capability) bool { return !isValue(c) }) || grant.Rung() > notebook.Granted {
		return
	}
	r := recipe{Version: keptVersion, Number: rec.Number, Pages: append([]notebook.PageID{rec.Page}, rec.Pages...), Args: grant.Args()}
	values := map[notebook.Hash][]byte{}
	for _, in := range grant.Inputs() {
		h := valueDigest(in.Value)
		values[h] = in.Value
		r.Any = r.Any || in.Capability == notebook.CapQuery
		r.Inputs = append(r.Inputs, keptInput{Capability: in.Capability, Value: h, Authors: in.Authors})
	}
	value, err := notebook.Marshal(&r)
	if err != nil || len(value) > maxRecipe {
		d.logger.Warn("a run cannot be replayed", "run", rec.Number, "bytes", len(value), "error", err)
		return
	}
	share := rec.share()
	b.write(func(tx *store.Tx) error { return putKept(tx, share, &r, value, values, d.keeps) })
}

// putKept keeps a recipe and the values of it that are not there yet, and makes
// room for them among those of its share.
func putKept(tx *store.Tx, s share, r *recipe, record []byte, values map[notebook.Hash][]byte, most uint64) error {
	total, err := s.number(tx, keptTotal)
	if err != nil {
		return err
	}
	for h, value := range values {
		used, err := isUsed(tx, s.useKey(h))
		if err != nil {
			return err
		}
		if !used {
			if err := tx.Put(store.Kept, valueKey(h), value); err != nil {
				return err
			}
			total += uint64(len(value))
		}
		if err := tx.Put(store.Kept, s.useKey(h, r.Number), []byte{}); err != nil {
			return err
		}
	}
	total += uint64(len(record))
	if err := errors.Join(tx.Put(store.Kept, s.key(keptRecipe, r.Number), record), s.putNumber(tx, keptTotal, total)); err != nil || total <= most {
		return err
	}
	pushed, err := s.number(tx, keptPushed)
	if err != nil {
		return err
	}
	for old, err := range tx.All(store.Kept, s.key(keptRecipe)) {
		if err != nil {
			return err
		}
		number, err := dropRecipe(tx, s, old)
		if err != nil {
			return err
		}
		pushed = max(pushed, number)
		if total, err = s.number(tx, keptTotal); err != nil {
			return err
		}
		if total <= most {
			break
		}
	}
	return s.putNumber(tx, keptPushed, pushed)
}

// isUsed reports whether a run that is kept was handed a value, by the beginning of
// the keys of its uses.
func isUsed(tx *store.Tx, uses []byte) (bool, error) {
	for _, err := range tx.All(store.Kept, uses) {
		return err == nil, err
	}
	return false, nil
}

// dropKept forgets what a run was handed.
func dropKept(tx *store.Tx, s share, number uint64) error {
	key := s.key(keptRecipe, number)
	b, err := tx.Get(store.Kept, key)
	if err != nil || b == nil {
		return err
	}
	_, err = dropRecipe(tx, s, store.Record{Key: key, Value: b})
	return err
}

// dropRecipe forgets a recipe, and the values that no other one has.
func dropRecipe(tx *store.Tx, s share, kept store.Record) (number uint64, err error) {
	number = store.Record{Key: kept.Key[2:]}.Number()
	values, err := valuesOf(tx, s, number, kept.Value)
	if err != nil {
		return 0, err
	}
	total, err := s.number(tx, keptTotal)
	if err != nil {
		return 0, err
	}
	total -= uint64(len(kept.Value))
	for h := range values {
		if err := tx.Delete(store.Kept, s.useKey(h, number)); err != nil {
			return 0, err
		}
		if used, err := isUsed(tx, s.useKey(h)); err != nil {
			return 0, err
		} else if used {
			continue
		}
		value, err := tx.Get(store.Kept, valueKey(h))
		if err != nil {
			return 0, err
		}
		total -= uint64(len(value))
		if used, err := isUsed(tx, useKey(h)); err != nil {
			return 0, err
		} else if used {
			continue // by the other share
		}
		if err := tx.Delete(store.Kept, valueKey(h)); err != nil {
			return 0, err
		}
	}
	return number, errors.Join(tx.Delete(store.Kept, kept.Key), s.putNumber(tx, keptTotal, total))
}

// valuesOf are the values that a run was handed: as its recipe says, or, where that
// cannot be read, as the values' uses do.
func valuesOf(tx *store.Tx, s share, number uint64, record []byte) (map[notebook.Hash]bool, error) {
	values := map[notebook.Hash]bool{}
	r, err := openRecipe(record)
	if err == nil {
		for _, in := range r.Inputs {
			values[in.Value] = true
		}
		return values, nil
	}
	for kept, err := range tx.All(store.Kept, []byte{keptUse}) {
		if err != nil {
			return nil, err
		}
		h := notebook.Hash(kept.Key[1:][:len(notebook.Hash{})])
		if bytes.Equal(kept.Key, s.useKey(h, number)) {
			values[h] = true
		}
	}
	return values, nil
}

// purgeKept forgets what runs were handed that may hold text of a page.
func purgeKept(tx *store.Tx, page notebook.PageID) error {
	for kept, err := range tx.All(store.Kept, []byte{keptRecipe}) {
		if err != nil {
			return err
		}
		if r, err := openRecipe(kept.Value); err == nil && !r.Any && !slices.Contains(r.Pages, page) {
			continue // of one that cannot be read nobody can tell whose text it may hold
		}
		if _, err := dropRecipe(tx, share(kept.Key[1]), kept); err != nil {
			return err
		}
	}
	return nil
}

func openRecipe(b []byte) (*recipe, error) {
	r := new(recipe)
	if err := notebook.Unmarshal(b, r, maxRecipe); err != nil {
		return nil, fmt.Errorf("what a run was handed: %w", err)
	}
	if r.Version != keptVersion {
		return nil, fmt.Errorf("what run %d was handed was kept by another version of noted: update noted", r.Number)
	}
	return r, nil
}

// readKept reads what a run was handed; nil if it is not kept.
func readKept(tx *store.Tx, s share, number uint64) (r *recipe, values map[notebook.Hash][]byte, err error) {
	b, err := tx.Get(store.Kept, s.key(keptRecipe, number))
	if err != nil || b == nil {
		return nil, nil, err
	}
	if r, err = openRecipe(b); err != nil {
		return nil, nil, err
	}
	values = map[notebook.Hash][]byte{}
	for _, in := range r.Inputs {
		value, err := tx.Get(store.Kept, valueKey(in.Value))
		if err != nil {
			return nil, nil, err
		}
		if value == nil || valueDigest(value) != in.Value {
			return nil, nil, fmt.Errorf("what run %d was handed as %s is not what is kept", number, in.Capability)
		}
		values[in.Value] = value
	}
	return r, values, nil
}

// checkKept reports what is kept for replays and is not what its keys say.
func (c *checker) checkKept() error {
	totals := map[share]uint64{}
	values := map[notebook.Hash]uint64{} // their sizes
	for kept, err := range c.tx.All(store.Kept, []byte{keptValue}) {
		if err != nil {
			return err
		}
		h := valueDigest(kept.Value)
		if values[h] = uint64(len(kept.Value)); !bytes.Equal(kept.Key, valueKey(h)) {
			c.report("the value %s is kept as another one", h)
		}
	}
	uses, used := map[string]bool{}, map[notebook.Hash]bool{}
	for _, s := range allShares {
		ofShare := map[notebook.Hash]bool{}
		for kept, err := range c.tx.All(store.Kept, s.key(keptRecipe)) {
			if err != nil {
				return err
			}
			totals[s] += uint64(len(kept.Value))
			r, err := openRecipe(kept.Value)
			if err != nil {
				c.report("%w", err)
				continue
			}
			if known, err := c.tx.Get(store.Kept, s.key(keptRun, r.Number)); err != nil {
				return err
			} else if known == nil || !bytes.Equal(kept.Key, s.key(keptRecipe, r.Number)) {
				c.report("what run %d was handed is kept, and the run is not", r.Number)
			}
			if _, _, err := readKept(c.tx, s, r.Number); err != nil {
				c.report("%w", err)
			}
			for _, in := range r.Inputs {
				uses[string(s.useKey(in.Value, r.Number))] = true
				if used[in.Value] = true; !ofShare[in.Value] {
					ofShare[in.Value], totals[s] = true, totals[s]+values[in.Value]
				}
			}
		}
		if total, err := s.number(c.tx, keptTotal); err != nil {
			return err
		} else if total != totals[s] {
			c.report("what is kept for replays has %d bytes, and is said to have %d", totals[s], total)
		}
	}
	for h := range values {
		if !used[h] {
			c.report("the value %s is kept for no run", h)
		}
	}
	n := 0
	for kept, err := range c.tx.All(store.Kept, []byte{keptUse}) {
		if err != nil {
			return err
		}
		if n++; !uses[string(kept.Key)] {
			c.report("a value is kept for a run that was not handed it")
		}
	}
	if n != len(uses) {
		c.report("of %d uses of values %d are kept", len(uses), n)
	}
	return nil
}
