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

	// maxKept is how many bytes of values are kept for replays; those of the
	// oldest runs go first. It has room for thirty different pages of the largest size.
	maxKept = 32 << 20

	maxRecipe = 2*18*notebook.MaxRows + 32<<10 // bytes of a recipe: 16 KiB of args, who wrote the inputs, and the pages that a query found
)

// The first bytes of the keys of the space.
const (
	keptRecipe = 'n' // number of a run → recipe
	keptValue  = 'v' // digest → value
	keptUse    = 'u' // digest, number of a run that has it → nothing
	keptTotal  = 't' // → bytes of all recipes and values
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

func recipeKey(number uint64) []byte { return append([]byte{keptRecipe}, store.Number(number)...) }

func valueKey(value notebook.Hash) []byte { return append([]byte{keptValue}, value[:]...) }

func useKey(value notebook.Hash, number uint64) []byte {
	return append(append([]byte{keptUse}, value[:]...), store.Number(number)...)
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
	b.write(func(tx *store.Tx) error { return putKept(tx, &r, value, values) })
}

// putKept keeps a recipe and the values of it that are not there yet, and makes
// room for them.
func putKept(tx *store.Tx, r *recipe, record []byte, values map[notebook.Hash][]byte) error {
	total, err := keptBytes(tx)
	if err != nil {
		return err
	}
	for h, value := range values {
		used, err := isUsed(tx, h)
		if err != nil {
			return err
		}
		if !used {
			if err := tx.Put(store.Kept, valueKey(h), value); err != nil {
				return err
			}
			total += uint64(len(value))
		}
		if err := tx.Put(store.Kept, useKey(h, r.Number), []byte{}); err != nil {
			return err
		}
	}
	if err := tx.Put(store.Kept, recipeKey(r.Number), record); err != nil {
		return err
	}
	if total, err = total+uint64(len(record)), putKeptBytes(tx, total+uint64(len(record))); err != nil || total <= maxKept {
		return err
	}
	for old, err := range tx.All(store.Kept, []byte{keptRecipe}) {
		if err != nil {
			return err
		}
		if err := dropRecipe(tx, old); err != nil {
			return err
		}
		if total, err = keptBytes(tx); err != nil || total <= maxKept {
			return err
		}
	}
	return nil
}

func keptBytes(tx *store.Tx) (uint64, error) {
	b, err := tx.Get(store.Kept, []byte{keptTotal})
	if err != nil || b == nil {
		return 0, err
	}
	return store.Record{Key: b}.Number(), nil
}

func putKeptBytes(tx *store.Tx, n uint64) error {
	return tx.Put(store.Kept, []byte{keptTotal}, store.Number(n))
}

// isUsed reports whether a run that is kept was handed the value.
func isUsed(tx *store.Tx, value notebook.Hash) (bool, error) {
	for _, err := range tx.All(store.Kept, append([]byte{keptUse}, value[:]...)) {
		return err == nil, err
	}
	return false, nil
}

// dropKept forgets what a run was handed.
func dropKept(tx *store.Tx, number uint64) error {
	key := recipeKey(number)
	b, err := tx.Get(store.Kept, key)
	if err != nil || b == nil {
		return err
	}
	return dropRecipe(tx, store.Record{Key: key, Value: b})
}

// dropRecipe forgets a recipe, and the values that no other one has.
func dropRecipe(tx *store.Tx, kept store.Record) error {
	r, err := openRecipe(kept.Value)
	if err != nil {
		return err
	}
	total, err := keptBytes(tx)
	if err != nil {
		return err
	}
	total -= uint64(len(kept.Value))
	seen := map[notebook.Hash]bool{}
	for _, in := range r.Inputs {
		if seen[in.Value] {
			continue
		}
		seen[in.Value] = true
		if err := tx.Delete(store.Kept, useKey(in.Value, r.Number)); err != nil {
			return err
		}
		if used, err := isUsed(tx, in.Value); err != nil {
			return err
		} else if used {
			continue
		}
		value, err := tx.Get(store.Kept, valueKey(in.Value))
		if err != nil {
			return err
		}
		total -= uint64(len(value))
		if err := tx.Delete(store.Kept, valueKey(in.Value)); err != nil {
			return err
		}
	}
	if err := tx.Delete(store.Kept, kept.Key); err != nil {
		return err
	}
	return putKeptBytes(tx, total)
}

// purgeKept forgets what runs were handed that may hold text of a page.
func purgeKept(tx *store.Tx, page notebook.PageID) error {
	for kept, err := range tx.All(store.Kept, []byte{keptRecipe}) {
		if err != nil {
			return err
		}
		r, err := openRecipe(kept.Value)
		if err != nil {
			return err
		}
		if !r.Any && !slices.Contains(r.Pages, page) {
			continue
		}
		if err := dropRecipe(tx, kept); err != nil {
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
func readKept(tx *store.Tx, number uint64) (r *recipe, values map[notebook.Hash][]byte, err error) {
	b, err := tx.Get(store.Kept, recipeKey(number))
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
	var total uint64
	used := map[notebook.Hash]bool{}
	uses := map[string]bool{}
	for kept, err := range c.tx.All(store.Kept, []byte{keptRecipe}) {
		if err != nil {
			return err
		}
		total += uint64(len(kept.Value))
		r, err := openRecipe(kept.Value)
		if err != nil {
			c.report("%w", err)
			continue
		}
		if run, err := c.tx.Get(store.Outcomes, store.Number(r.Number)); err != nil {
			return err
		} else if run == nil || !bytes.Equal(kept.Key, recipeKey(r.Number)) {
			c.report("what run %d was handed is kept, and the run is not", r.Number)
		}
		if _, values, err := readKept(c.tx, r.Number); err != nil {
			c.report("%w", err)
		} else {
			for h := range values {
				used[h], uses[string(useKey(h, r.Number))] = true, true
			}
		}
	}
	for kept, err := range c.tx.All(store.Kept, []byte{keptValue}) {
		if err != nil {
			return err
		}
		total += uint64(len(kept.Value))
		if h := valueDigest(kept.Value); !used[h] || !bytes.Equal(kept.Key, valueKey(h)) {
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
	kept, err := keptBytes(c.tx)
	if err == nil && (kept != total || n != len(uses)) {
		err = errors.New("what is kept for replays does not add up")
	}
	return err
}
