package daemon

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

// emptied gives each try of a property a space without records.
func emptied(rt *rapid.T, db *store.DB, do func(tx *store.Tx) error) {
	err := db.Update(func(tx *store.Tx) error {
		for _, space := range []store.Space{store.Kept, store.Outcomes} {
			for kept, err := range tx.All(space, nil) {
				if err != nil {
					return err
				}
				if err := tx.Delete(space, kept.Key); err != nil {
					return err
				}
			}
		}
		return do(tx)
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// kept is what the space of [store.Kept] has of one kind for a share.
func kept(rt *rapid.T, tx *store.Tx, s share, what byte) (numbers []uint64) {
	for r, err := range tx.All(store.Kept, s.key(what)) {
		if err != nil {
			rt.Fatal(err)
		}
		numbers = append(numbers, store.Record{Key: r.Key[2:]}.Number())
	}
	return numbers
}

// TestSharesPushOutTheirOwn: whatever runs were handed, and whatever they share, each
// share keeps its newest runs as far as they fit, as if the other one were not there.
func TestSharesPushOutTheirOwn(t *testing.T) {
	const most = 2000
	type run struct {
		number uint64
		page   notebook.PageID
		record int
		values []int
	}
	db := storetest.Open(t)
	value := func(n int) []byte { return make([]byte, 100+70*n) } // of different sizes, and so different
	pushes := map[share]int{}
	rapid.Check(t, func(rt *rapid.T) {
		emptied(rt, db, func(tx *store.Tx) error {
			model, pushed := map[share][]run{}, map[share]uint64{}
			size := func(runs []run) (total uint64) {
				used := map[int]bool{}
				for _, r := range runs {
					total += uint64(r.record)
					for _, v := range r.values {
						if !used[v] {
							total += uint64(len(value(v)))
						}
						used[v] = true
					}
				}
				return total
			}
			runs := rapid.Uint64Range(1, 40).Draw(rt, "runs")
			for number := uint64(1); number <= runs; number++ {
				s := rapid.SampledFrom(allShares[:]).Draw(rt, "share")
				r := run{number: number, page: notebook.PageID{byte(rapid.IntRange(1, 3).Draw(rt, "page"))}, values: rapid.SliceOfN(rapid.IntRange(0, 9), 0, 4).Draw(rt, "values")}
				rec := recipe{Version: keptVersion, Number: number, Pages: []notebook.PageID{r.page}}
				values := map[notebook.Hash][]byte{}
				for _, v := range r.values {
					h := valueDigest(value(v))
					values[h] = value(v)
					rec.Inputs = append(rec.Inputs, keptInput{Capability: notebook.CapPage, Value: h})
				}
				record, err := notebook.Marshal(&rec)
				if err != nil {
					return err
				}
				r.record = len(record)
				if err := putKept(tx, s, &rec, record, values, most); err != nil {
					return err
				}
				model[s] = append(model[s], r)
				for size(model[s]) > most {
					pushed[s], model[s] = max(pushed[s], model[s][0].number), model[s][1:]
					pushes[s]++
				}
				switch rapid.IntRange(0, 9).Draw(rt, "then") {
				case 0:
					page := notebook.PageID{byte(rapid.IntRange(1, 3).Draw(rt, "purged"))}
					if err := purgeKept(tx, page); err != nil {
						return err
					}
					for s := range model {
						model[s] = slices.DeleteFunc(model[s], func(r run) bool { return r.page == page })
					}
				case 1:
					gone := rapid.Uint64Range(1, number).Draw(rt, "forgotten")
					for _, s := range allShares {
						if err := dropKept(tx, s, gone); err != nil {
							return err
						}
						model[s] = slices.DeleteFunc(model[s], func(r run) bool { return r.number == gone })
					}
				}
			}
			all := map[int]bool{}
			for _, s := range allShares {
				var want []uint64
				for _, r := range model[s] {
					want = append(want, r.number)
					for _, v := range r.values {
						all[v] = true
					}
					if rec, values, err := readKept(tx, s, r.number); err != nil || rec == nil || len(values) != len(slices.Compact(slices.Sorted(slices.Values(r.values)))) {
						rt.Fatalf("run %d was handed %+v: %v", r.number, rec, err)
					}
				}
				if got := kept(rt, tx, s, keptRecipe); !slices.Equal(got, want) {
					rt.Fatalf("share %c keeps %v, not %v", s, got, want)
				}
				total, err := s.number(tx, keptTotal)
				if gone, perr := s.number(tx, keptPushed); err != nil || perr != nil || total != size(model[s]) || gone != pushed[s] {
					rt.Fatalf("share %c has %d bytes and pushed out %d, not %d and %d", s, total, gone, size(model[s]), pushed[s])
				}
			}
			n := 0
			for _, err := range tx.All(store.Kept, []byte{keptValue}) {
				if n++; err != nil {
					return err
				}
			}
			if n != len(all) {
				rt.Fatalf("%d values are kept, not %v", n, slices.Sorted(maps.Keys(all)))
			}
			return nil
		})
	})
	if pushes[ownShare] == 0 || pushes[otherShare] == 0 {
		t.Errorf("nothing was pushed out: %v", pushes)
	}
}

// TestOutcomesOfAShare: of each share the newest runs are kept, and those that go on.
func TestOutcomesOfAShare(t *testing.T) {
	const most = 5
	db := storetest.Open(t)
	dropped := 0
	rapid.Check(t, func(rt *rapid.T) {
		emptied(rt, db, func(tx *store.Tx) error {
			model, running := map[share][]uint64{}, map[uint64]bool{}
			put := func(r *runRecord) error {
				value, err := notebook.Marshal(r)
				if err != nil {
					return err
				}
				if err := tx.Put(store.Outcomes, store.Number(r.Number), value); err != nil {
					return err
				}
				return countOutcome(tx, r.share(), r.Number, most)
			}
			runs := rapid.Uint64Range(1, 40).Draw(rt, "runs")
			for number := uint64(1); number <= runs; number++ {
				r := &runRecord{Version: runVersion, Number: number, State: stateRunning}
				r.Standing = rapid.SampledFrom([]string{"local", "local", "device:phone"}).Draw(rt, "standing")
				r.By = rapid.SampledFrom([]string{"", "", "ab"}).Draw(rt, "by")
				s := ownShare
				if r.Standing != "local" || r.By != "" {
					s = otherShare
				}
				if rapid.Bool().Draw(rt, "refused") {
					r.State = stateRefused
				}
				running[number] = r.State == stateRunning
				if err := put(r); err != nil {
					return err
				}
				model[s] = append(model[s], number)
				for i := 0; i < len(model[s]) && len(model[s]) > most; {
					if running[model[s][i]] {
						i++
						continue
					}
					model[s], dropped = slices.Delete(model[s], i, i+1), dropped+1
				}
				if running[number] && rapid.IntRange(0, 3).Draw(rt, "ends") > 0 {
					r.State, running[number] = stateDone, false
					if err := put(r); err != nil {
						return err
					}
				}
			}
			var all []uint64
			for _, s := range allShares {
				all = append(all, model[s]...)
				if got := kept(rt, tx, s, keptRun); !slices.Equal(got, model[s]) {
					rt.Fatalf("share %c keeps %v, not %v", s, got, model[s])
				}
				if n, err := s.number(tx, keptRuns); err != nil || n != uint64(len(model[s])) {
					rt.Fatalf("%d runs are counted, not %d", n, len(model[s]))
				}
			}
			slices.Sort(all)
			var outcomes []uint64
			for r, err := range tx.All(store.Outcomes, nil) {
				if outcomes = append(outcomes, r.Number()); err != nil {
					return err
				}
			}
			newest, err := keptNumbers(tx)
			slices.Reverse(newest)
			if err != nil || !slices.Equal(outcomes, all) || !slices.Equal(newest, all) {
				rt.Fatalf("%v are kept and %v are listed, not %v (%v)", outcomes, newest, all, err)
			}
			return nil
		})
	})
	if dropped == 0 {
		t.Error("nothing was forgotten")
	}
}
