package daemon

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// gatehouse is what decides on this device and never leaves it: policy,
// approvals, asks and the ledger. It is guarded by the daemon's mutex, but for
// presence, whose check takes a tenth of a second and has a mutex of its own.
type gatehouse struct {
	policy      *trust.Policy
	approvals   *trust.Approvals
	asks        *trust.Asks
	ledger      *trust.Ledger
	running     map[uint64]*running
	latest      map[notebook.FenceID]uint64 // the run that is the newest of its fence, of those since the daemon started
	quarantined *trust.Quarantine
	spells      map[string]spell // by agent
	gone        map[string]bool  // agents whose token was taken away since the start, by [clientID]
	reset       time.Time        // of the owner, last; zero if there was none
	auto        autorun

	presenceMu sync.Mutex // guards presence; taken before d.mu, never after it
	presence   *trust.Presence
}

var metaLedger = []byte("ledger") // where the ledger ends

// pairs yields the records of a space as package trust reads them.
func pairs(tx *store.Tx, space store.Space, failed *error, prefixes ...byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for r, err := range tx.All(space, nil) {
			if err != nil {
				*failed = err
				return
			}
			if len(prefixes) > 0 && !slices.Contains(prefixes, r.Key[0]) {
				continue
			}
			if !yield(r.Key, r.Value) {
				return
			}
		}
	}
}

// The first bytes of the keys in the space of decisions; see package trust.
var (
	approvalKeys = []byte{'a', 't'}
	askKeys      = []byte{'q'}
	heldKeys     = []byte{'d'}
	firedKeys    = []byte{'u'}
)

func (d *Daemon) loadGatehouse(tx *store.Tx) error {
	d.running, d.latest = map[uint64]*running{}, map[notebook.FenceID]uint64{}
	d.spells, d.gone, d.auto = map[string]spell{}, map[string]bool{}, newAutorun()
	var failed error
	var err error
	if d.approvals, err = trust.OpenApprovals(pairs(tx, store.Decisions, &failed, approvalKeys...)); err != nil {
		return err
	}
	if d.asks, err = trust.OpenAsks(pairs(tx, store.Decisions, &failed, askKeys...)); err != nil {
		return err
	}
	if d.quarantined, err = trust.OpenQuarantine(pairs(tx, store.Decisions, &failed, heldKeys...)); err != nil {
		return err
	}
	if d.auto.fired, err = trust.OpenFired(pairs(tx, store.Decisions, &failed, firedKeys...)); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if d.ledger, err = ledgerEnd(tx); err != nil {
		return err
	}
	last, err := tx.Last(store.Ledger)
	if err != nil {
		return err
	}
	d.ledger.Number = max(d.ledger.Number, last) // of a damaged ledger, which goes on as it is
	if at, err := tx.Get(store.Meta, metaReset); err != nil {
		return err
	} else if at != nil {
		d.reset = time.UnixMilli(int64(store.Record{Key: at}.Number()))
	}
	record, err := tx.Get(store.Meta, metaPresence)
	if err != nil {
		return err
	}
	if d.presence, err = trust.OpenPresence(record); err != nil {
		return err
	}
	text, err := tx.Get(store.Meta, metaPolicy)
	if err != nil {
		return err
	}
	if text == nil {
		d.policy = trust.DefaultPolicy()
		return nil
	}
	// What was accepted by an older noted holds or nothing does.
	if d.policy, err = trust.ParsePolicy(text); err != nil {
		return fmt.Errorf("the accepted policy cannot be read any more: %w", err)
	}
	return nil
}

// keepDecisions puts what changed of approvals, asks and the quarantine into the batch.
func (d *Daemon) keepDecisions(b *batch) {
	for _, r := range slices.Concat(d.approvals.Flush(), d.asks.Flush(), d.quarantined.Flush(), d.auto.fired.Flush()) {
		b.write(func(tx *store.Tx) error { return putDecision(tx, r) })
	}
}

// putDecision keeps one of package trust's records, or takes it out.
func putDecision(tx *store.Tx, r trust.Record) error {
	if r.Value == nil {
		return tx.Delete(store.Decisions, r.Key)
	}
	return tx.Put(store.Decisions, r.Key, r.Value)
}

// record appends to the ledger and returns the record's number.
func (d *Daemon) record(b *batch, r trust.LedgerRecord) (uint64, error) {
	r.Time = time.Now().UnixMilli()
	value, err := d.ledger.Next(r)
	if err != nil {
		return 0, err
	}
	number, end := d.ledger.Number, d.ledger.Record()
	b.write(func(tx *store.Tx) error {
		n, err := tx.Append(store.Ledger, value)
		if err != nil {
			return err
		}
		if n != number {
			return fmt.Errorf("the ledger has %d records where %d were expected", n, number)
		}
		return tx.Put(store.Meta, metaLedger, end)
	})
	return number, nil
}

// present checks that a person is there who wants act done. A try is on the
// disk before its outcome is known to anybody.
func (d *Daemon) present(proof notebook.Presence, act string) error {
	_, err := d.proof(proof, act)
	return err
}

func (d *Daemon) proof(proof notebook.Presence, act string) (trust.Present, error) {
	d.presenceMu.Lock()
	defer d.presenceMu.Unlock()
	present, refused := d.presence.Check(proof, act)
	record := d.presence.Record()
	err := d.step(func(b *batch) error {
		b.write(func(tx *store.Tx) error { return tx.Put(store.Meta, metaPresence, record) })
		return nil
	})
	if err != nil {
		return trust.Present{}, err
	}
	return present, refused
}

// deviceName is a device's name as a line of text, taken under the mutex.
func (d *Daemon) deviceName(device notebook.DeviceID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.name(device)
}

// openAsks is how many asks of an agent wait for an answer.
func (d *Daemon) openAsks(agent string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, a := range d.asks.List() {
		if by := a.By(); a.State == trust.AskOpen && by.Role == roleAgent.String() && by.Name == agent {
			n++
		}
	}
	return n
}

const (
	// resetShown is how long status tells of a reset: long enough for a person
	// who looks now and then.
	resetShown = 90 * 24 * time.Hour
	// clockSlack is what a clock may be set back without a word, as time servers do.
	clockSlack = time.Minute
)

// gateStatus adds what the gatehouse has to say. It is called under d.mu.
func (d *Daemon) gateStatus(s *notebook.Status) {
	for _, a := range d.asks.List() {
		if a.State == trust.AskOpen {
			s.Asks++
		}
	}
	if s.Asks > 0 {
		s.Notes = append(s.Notes, count(s.Asks, "request for approval waits", "requests for approval wait")+" for an answer: noted ask list")
	}
	d.quarantineStatus(s)
	if now := time.Now(); now.Sub(d.reset) < resetShown {
		s.Notes = append(s.Notes, "the owner was reset at "+d.reset.UTC().Format(time.RFC3339)+": approvals and tokens from before are void. If that was not you, somebody else has your files")
	}
	if ahead := d.approvals.Ahead(time.Now()); ahead > clockSlack {
		s.Notes = append(s.Notes, fmt.Sprintf("the clock of this device is %v behind a time that was seen here, against which approvals expire: set it right, or forget that time with noted doctor --clock", ahead.Round(time.Second)))
	}
	s.Running = len(d.running)
}

// presenceStatus adds how a person proves to be there. It is called without
// d.mu, which whoever checks a proof takes while holding the other mutex.
func (d *Daemon) presenceStatus(s *notebook.Status) {
	d.presenceMu.Lock()
	defer d.presenceMu.Unlock()
	s.NoPIN = !d.presence.HasPIN()
	if s.NoPIN {
		s.Notes = append(s.Notes, "there is no PIN: a sentence typed on a terminal is all that shows that you are there")
	} else if d.presence.Left() == 0 {
		s.Notes = append(s.Notes, "the PIN is locked after too many wrong tries")
	}
}
