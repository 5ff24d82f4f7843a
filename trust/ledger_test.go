package trust

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"noted/notebook"
)

func someLedger(t *testing.T) ([][]byte, *Ledger) {
	t.Helper()
	l := new(Ledger)
	var records [][]byte
	for _, r := range []LedgerRecord{
		{Kind: LedgerApproval, Time: 1, Approval: 1, Digest: notebook.Hash{1}, Client: "owner"},
		{Kind: LedgerRun, Time: 2, Approval: 1, Fence: notebook.FenceID{1}, Closure: notebook.Hash{2}, Standing: "device:laptop"},
		{Kind: LedgerSpent, Time: 2, Of: 2, Approval: 1},
		{Kind: LedgerOutcome, Time: 3, Of: 2, Verdict: notebook.OK},
		{Kind: LedgerRefusal, Time: 4, Reason: "policy asks"},
		{Kind: LedgerRevoked, Time: 5, Approval: 1},
	} {
		b, err := l.Next(r)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, b)
	}
	return records, l
}

// numbered yields records under the numbers that they were kept with, from 1.
func numbered(records [][]byte) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for i, b := range records {
			if !yield(uint64(i)+1, b) {
				return
			}
		}
	}
}

func TestLedger(t *testing.T) {
	records, l := someLedger(t)
	end := must(OpenLedger(l.Record()))
	if *end != *l {
		t.Errorf("its end came back as %+v", end)
	}
	if got := CheckLedger(numbered(records), end); got.Problem != "" || got.Records != 6 || got.Head != l.Head {
		t.Fatalf("%+v", got)
	}
	r := must(DecodeLedgerRecord(records[1]))
	if r.Number != 2 || r.Prev != ledgerHash(records[0]) || r.Standing != "device:laptop" || r.Kind.String() != "run" {
		t.Errorf("%+v", r)
	}
	edit := func(f func([][]byte) [][]byte) [][]byte {
		var c [][]byte
		for _, b := range records {
			c = append(c, bytes.Clone(b))
		}
		return f(c)
	}
	for name, broken := range map[string][][]byte{
		"removed":       edit(func(b [][]byte) [][]byte { return slices.Delete(b, 2, 3) }),
		"first removed": edit(func(b [][]byte) [][]byte { return b[1:] }),
		"cut off":       edit(func(b [][]byte) [][]byte { return b[:4] }),
		"all gone":      nil,
		"swapped":       edit(func(b [][]byte) [][]byte { b[1], b[2] = b[2], b[1]; return b }),
		"twice":         edit(func(b [][]byte) [][]byte { return slices.Insert(b, 1, b[0]) }),
		"one more":      edit(func(b [][]byte) [][]byte { return append(b, b[5]) }),
		"written anew": edit(func(b [][]byte) [][]byte {
			l := &Ledger{Number: 4, Head: ledgerHash(b[3])}
			b[4] = must(l.Next(LedgerRecord{Kind: LedgerRefusal, Time: 4, Reason: "something else"}))
			return b
		}),
		"last written anew": edit(func(b [][]byte) [][]byte {
			l := &Ledger{Number: 5, Head: ledgerHash(b[4])}
			b[5] = must(l.Next(LedgerRecord{Kind: LedgerRevoked, Time: 5, Approval: 2}))
			return b
		}),
		"not a record": edit(func(b [][]byte) [][]byte { b[3] = []byte("x"); return b }),
		"too large":    edit(func(b [][]byte) [][]byte { b[3] = make([]byte, MaxLedgerRecord+1); return b }),
	} {
		if got := CheckLedger(numbered(broken), end); got.Problem == "" {
			t.Errorf("%s: not found", name)
		}
	}
	jump := &Ledger{Number: 8, Head: l.Head}
	jumped := append(slices.Clone(records), must(jump.Next(LedgerRecord{Kind: LedgerRefusal})))
	if got := CheckLedger(numbered(jumped), jump); !strings.Contains(got.Problem, "record 9 is where 7 should be") {
		t.Errorf("numbers left out: %q", got.Problem)
	}
	for i := range records {
		for j := range records[i] {
			changed := edit(func(b [][]byte) [][]byte { b[i][j] ^= 1; return b })
			if got := CheckLedger(numbered(changed), end); got.Problem == "" {
				t.Fatalf("byte %d of record %d changed: not found", j, i+1)
			}
		}
	}
}

// A broken chain is sealed by a record that names what is there, however it is
// broken. What holds from there on holds, and the sealed part stays as it is.
func TestSealedLedger(t *testing.T) {
	records, l := someLedger(t)
	for name, damage := range map[string]func(map[uint64][]byte){
		"changed":         func(b map[uint64][]byte) { b[3] = bytes.Clone(b[3]); b[3][20] ^= 1 },
		"not a record":    func(b map[uint64][]byte) { b[1] = []byte("x") },
		"removed":         func(b map[uint64][]byte) { delete(b, 2) },
		"the last gone":   func(b map[uint64][]byte) { delete(b, 6) },
		"all gone":        func(b map[uint64][]byte) { clear(b) },
		"swapped":         func(b map[uint64][]byte) { b[4], b[5] = b[5], b[4] },
		"last is another": func(b map[uint64][]byte) { b[6] = b[5] },
	} {
		kept := map[uint64][]byte{}
		for n, b := range numbered(records) {
			kept[n] = b
		}
		damage(kept)
		all := func(yield func(uint64, []byte) bool) {
			for _, n := range slices.Sorted(maps.Keys(kept)) {
				if !yield(n, kept[n]) {
					return
				}
			}
		}
		broken := CheckLedger(all, l)
		if broken.Problem == "" {
			t.Fatalf("%s: not found", name)
		}
		end := *l
		next := func(r LedgerRecord) {
			b := must(end.Next(r))
			kept[end.Number] = b
		}
		next(LedgerRecord{Kind: LedgerRefusal, Reason: "before anybody looked"})
		if got := CheckLedger(all, &end); got.Problem == "" {
			t.Fatalf("%s: heals by itself", name)
		}
		for _, digest := range []notebook.Hash{{}, {1}} {
			forged, at := maps.Clone(kept), end
			forged[at.Number+1] = must(at.Next(LedgerRecord{Kind: LedgerSeal, Reason: "none", Digest: digest}))
			if got := CheckLedger(func(yield func(uint64, []byte) bool) {
				for _, n := range slices.Sorted(maps.Keys(forged)) {
					if !yield(n, forged[n]) {
						return
					}
				}
			}, &at); got.Problem == "" {
				t.Errorf("%s: a seal that names something else seals", name)
			}
		}
		next(LedgerRecord{Kind: LedgerSeal, Reason: broken.Problem, Digest: SealDigest(all)})
		seal := end.Number
		next(LedgerRecord{Kind: LedgerRefusal, Reason: "after it"})
		got := CheckLedger(all, &end)
		if got.Problem != "" || len(got.Seals) != 1 || got.Seals[0] != (notebook.LedgerSeal{Number: seal, Reason: broken.Problem}) || got.Head != end.Head {
			t.Errorf("%s: sealed: %+v", name, got)
		}
		for n := range kept {
			kept[n] = bytes.Clone(kept[n])
			kept[n][len(kept[n])-1] ^= 1
			if got := CheckLedger(all, &end); got.Problem == "" {
				t.Errorf("%s: record %d was changed after the seal %d: not found", name, n, seal)
			}
			kept[n][len(kept[n])-1] ^= 1
		}
	}
}

func TestLedgerRefuses(t *testing.T) {
	l := new(Ledger)
	for _, r := range []LedgerRecord{
		{}, {Kind: 99}, {Kind: LedgerRefusal, Reason: strings.Repeat("x", MaxLedgerRecord)}, {Kind: LedgerRefusal, Reason: "\xff"},
	} {
		if _, err := l.Next(r); err == nil || *l != (Ledger{}) {
			t.Errorf("kept %v: %v", r.Kind, err)
		}
	}
	for _, b := range [][]byte{nil, {1}, {2, 0}, []byte("\x01x")} {
		if _, err := OpenLedger(b); err == nil {
			t.Errorf("%x: opened", b)
		}
	}
}
