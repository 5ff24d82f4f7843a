package trust

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"noted/notebook"
)

// LedgerKind says what a record of the ledger is about.
type LedgerKind uint8

const (
	LedgerRun        LedgerKind = 1 + iota // a run was dispatched; as a replay of the run of number Of, if that is not 0
	LedgerOutcome                          // how the run of number Of ended
	LedgerRefusal                          // a run was refused
	LedgerApproval                         // a person said yes
	LedgerDenial                           // a person said no to an ask
	LedgerRevoked                          // an approval was taken back or became void
	LedgerSpent                            // an approval was used up by the run of number Of
	LedgerSeal                             // a new chain begins; Reason names what was wrong with the old one, Digest all its records as they are
	LedgerQuarantine                       // the devices of Devices were put into quarantine
	LedgerRelease                          // their quarantine ended
	LedgerReset                            // the owner's PIN and token were replaced without them
)

var ledgerKinds = [...]string{"", "run", "outcome", "refusal", "approval", "denial", "revocation", "spent", "seal", "quarantine", "release", "reset"}

func (k LedgerKind) String() string {
	if k > 0 && int(k) < len(ledgerKinds) {
		return ledgerKinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// LedgerRecord is one thing that was done or refused. Fields that its kind has
// no use for are zero.
type LedgerRecord struct {
	_        struct{}      `cbor:",toarray"`
	Number   uint64        // from 1, set by Next
	Prev     notebook.Hash // of the record before, set by Next
	Kind     LedgerKind
	Time     int64  // Unix milliseconds
	Of       uint64 // number of the run that it belongs to
	Page     notebook.PageID
	Title    string
	Fence    notebook.FenceID
	Language string
	Closure  notebook.Hash
	Inputs   notebook.Hash
	Rung     notebook.Rung
	Standing string
	Client   string
	Approval uint64        // its number
	Digest   notebook.Hash // of what was approved, or of the result's body
	Verdict  notebook.Verdict
	Reason   string              // of a refusal, a revocation, a seal
	Devices  []notebook.DeviceID // whose text a run was of, at most [MaxLedgerDevices]
}

// MaxLedgerDevices bounds the devices that a record names: as many as a
// notebook has at one time. A record with all of them may be about others too.
const MaxLedgerDevices = maxMembers

// About reports whether the record names the device, or may be about it.
func (r *LedgerRecord) About(d notebook.DeviceID) bool {
	return len(r.Devices) >= MaxLedgerDevices || slices.Contains(r.Devices, d)
}

// MaxLedgerRecord bounds a record's bytes.
const MaxLedgerRecord = 16 << 10

// Ledger is the end of this device's chain of records: each holds the hash of
// the one before, so none can be changed, taken out or moved unseen. The zero
// value is an empty ledger.
type Ledger struct {
	Number uint64        // of the last record
	Head   notebook.Hash // its hash
}

func ledgerHash(record []byte) notebook.Hash { return notebook.Digest("noted/ledger/v1", record) }

// Next gives r its place after the last record and returns its bytes, to be
// stored under [Ledger.Number].
func (l *Ledger) Next(r LedgerRecord) ([]byte, error) {
	if r.Kind == 0 || int(r.Kind) >= len(ledgerKinds) {
		return nil, fmt.Errorf("ledger: unknown %v", r.Kind)
	}
	r.Number, r.Prev = l.Number+1, l.Head
	rec, err := newRecord(nil, &r)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if len(rec.Value) > MaxLedgerRecord {
		return nil, fmt.Errorf("ledger: a record of %d bytes where at most %d are allowed", len(rec.Value), MaxLedgerRecord)
	}
	l.Number, l.Head = r.Number, ledgerHash(rec.Value)
	return rec.Value, nil
}

type ledgerEnd struct {
	_      struct{} `cbor:",toarray"`
	Number uint64
	Head   notebook.Hash
}

// Record is the ledger's end as it is stored with each record, apart from
// them: it shows where the last ones were cut off.
func (l *Ledger) Record() []byte {
	r, err := newRecord(nil, &ledgerEnd{Number: l.Number, Head: l.Head})
	if err != nil {
		panic("trust: a number and a hash do not encode: " + err.Error())
	}
	return r.Value
}

// OpenLedger reads what [Ledger.Record] wrote.
func OpenLedger(record []byte) (*Ledger, error) {
	var r ledgerEnd
	if err := readRecord(record, &r); err != nil {
		return nil, fmt.Errorf("ledger: its end: %w", err)
	}
	return &Ledger{Number: r.Number, Head: r.Head}, nil
}

// DecodeLedgerRecord reads what [Ledger.Next] returned.
func DecodeLedgerRecord(b []byte) (*LedgerRecord, error) {
	r := new(LedgerRecord)
	if len(b) > MaxLedgerRecord {
		return nil, fmt.Errorf("ledger: a record of %d bytes", len(b))
	}
	if err := readRecord(b, r); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return r, nil
}

// SealDigest names all records of a ledger, by their numbers and as they are,
// whether or not they hold.
func SealDigest(records iter.Seq2[uint64, []byte]) notebook.Hash {
	var all notebook.Hash
	for n, b := range records {
		all = sealDigest(all, n, b)
	}
	return all
}

func sealDigest(before notebook.Hash, n uint64, record []byte) notebook.Hash {
	return notebook.Digest("noted/ledger-seal/v1", before[:], binary.BigEndian.AppendUint64(nil, n), record)
}

// CheckLedger follows the chain of records, in the order of the numbers under
// which they are kept, to its end, and says where it breaks. A break counts no
// longer once a [LedgerSeal] names the broken records as they are: the seal
// begins a new chain.
func CheckLedger(records iter.Seq2[uint64, []byte], end *Ledger) notebook.LedgerReport {
	var report notebook.LedgerReport
	var at Ledger
	var all notebook.Hash
	for n, b := range records {
		r, err := DecodeLedgerRecord(b)
		if report.Problem == "" {
			if report.Problem = at.breaks(n, r, err); report.Problem != "" {
				report.Records, report.Head = int(at.Number), at.Head
			}
		}
		if report.Problem != "" && err == nil && r.Kind == LedgerSeal && r.Number == n && r.Digest == all {
			report.Problem = ""
			report.Seals = append(report.Seals, notebook.LedgerSeal{Number: n, Reason: r.Reason})
		}
		if report.Problem == "" {
			at = Ledger{Number: n, Head: ledgerHash(b)}
		}
		all = sealDigest(all, n, b)
	}
	if report.Problem == "" {
		report.Records, report.Head = int(at.Number), at.Head
		if end != nil && at != *end {
			report.Problem = fmt.Sprintf("the ledger ends at record %d where record %d was the last written", at.Number, end.Number)
		}
	}
	return report
}

// breaks says why a record, which may be unreadable, does not follow l as number n.
func (l *Ledger) breaks(n uint64, r *LedgerRecord, unreadable error) string {
	switch {
	case unreadable != nil:
		return fmt.Sprintf("record %d cannot be read: %v", l.Number+1, unreadable)
	case n != l.Number+1 || r.Number != n:
		return fmt.Sprintf("record %d is where %d should be", r.Number, l.Number+1)
	case r.Prev != l.Head:
		return fmt.Sprintf("record %d does not continue the one before it: one of the two was changed", r.Number)
	}
	return ""
}
