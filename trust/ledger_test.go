package trust

import (
	"bytes"
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

func TestLedger(t *testing.T) {
	records, l := someLedger(t)
	end := must(OpenLedger(l.Record()))
	if *end != *l {
		t.Errorf("its end came back as %+v", end)
	}
	if got := CheckLedger(slices.Values(records), end); got.Problem != "" || got.Records != 6 || got.Head != l.Head {
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
		if got := CheckLedger(slices.Values(broken), end); got.Problem == "" {
			t.Errorf("%s: not found", name)
		}
	}
	jump := &Ledger{Number: 8, Head: l.Head}
	jumped := append(slices.Clone(records), must(jump.Next(LedgerRecord{Kind: LedgerRefusal})))
	if got := CheckLedger(slices.Values(jumped), jump); !strings.Contains(got.Problem, "record 9 is where 7 should be") {
		t.Errorf("numbers left out: %q", got.Problem)
	}
	for i := range records {
		for j := range records[i] {
			changed := edit(func(b [][]byte) [][]byte { b[i][j] ^= 1; return b })
			if got := CheckLedger(slices.Values(changed), end); got.Problem == "" {
				t.Fatalf("byte %d of record %d changed: not found", j, i+1)
			}
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
