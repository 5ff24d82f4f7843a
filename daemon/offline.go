package daemon

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// offline is the gatehouse of a home that no daemon serves. What a person does
// when the daemon cannot help is done in one transaction.
type offline struct {
	home      Home
	tx        *store.Tx
	approvals *trust.Approvals
	asks      *trust.Asks
	ledger    *trust.Ledger
	now       time.Time
}

// unserved opens the file of a home that no daemon serves.
func unserved(home Home) (*store.DB, error) {
	if !home.Exists() {
		return nil, notebook.Errorf(notebook.CodeNotFound, "there is no notebook in %s", home.Data).With("noted init founds one")
	}
	return store.Open(home.Database(), store.Options{})
}

// change opens the gatehouse, lets do change it, and keeps what it changed.
func change(db *store.DB, home Home, do func(o *offline) error) error {
	return db.Update(func(tx *store.Tx) (err error) {
		o := &offline{home: home, tx: tx, now: time.Now()}
		var failed error
		if o.approvals, err = trust.OpenApprovals(pairs(tx, store.Decisions, &failed, approvalKeys...)); err != nil {
			return err
		}
		if o.asks, err = trust.OpenAsks(pairs(tx, store.Decisions, &failed, askKeys...)); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		if o.ledger, err = ledgerEnd(tx); err != nil {
			return err
		}
		if err := do(o); err != nil {
			return err
		}
		for _, r := range append(o.approvals.Flush(), o.asks.Flush()...) {
			if err := putDecision(tx, r); err != nil {
				return err
			}
		}
		return tx.Put(store.Meta, metaLedger, o.ledger.Record())
	})
}

// record appends to the ledger.
func (o *offline) record(r trust.LedgerRecord) error {
	last, err := o.tx.Last(store.Ledger)
	if err != nil {
		return err
	}
	o.ledger.Number = max(o.ledger.Number, last)
	r.Time, r.Client = o.now.UnixMilli(), roleOwner.String()
	value, err := o.ledger.Next(r)
	if err != nil {
		return err
	}
	_, err = o.tx.Append(store.Ledger, value)
	return err
}

// voided records that approvals count no longer.
func (o *offline) voided(approvals []uint64, reason string) error {
	for _, id := range approvals {
		if err := o.record(trust.LedgerRecord{Kind: trust.LedgerRevoked, Approval: id, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// present checks that a person is there. A try is on the disk before its
// outcome is known to anybody.
func present(db *store.DB, proof notebook.Presence, act string) error {
	var refused error
	err := db.Update(func(tx *store.Tx) error {
		record, err := tx.Get(store.Meta, metaPresence)
		if err != nil {
			return err
		}
		presence, err := trust.OpenPresence(record)
		if err != nil {
			return err
		}
		_, refused = presence.Check(proof, act)
		return tx.Put(store.Meta, metaPresence, presence.Record())
	})
	return errors.Join(err, refused)
}

// HasPIN reports whether a home that no daemon serves has a PIN.
func HasPIN(home Home) (has bool, err error) {
	db, err := unserved(home)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *store.Tx) error {
		record, err := tx.Get(store.Meta, metaPresence)
		if err != nil {
			return err
		}
		presence, err := trust.OpenPresence(record)
		has = err == nil && presence.HasPIN()
		return err
	})
	return has, err
}

// ResetClock makes now the highest time that was ever seen in a home that no
// daemon serves, where a wrong clock had left a later one. Every approval that
// had expired by then is void for good. It returns how far back it went, and
// how many approvals it voided.
func ResetClock(home Home, proof notebook.Presence) (back time.Duration, voided int, err error) {
	db, err := unserved(home)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *store.Tx) (failed error) {
		approvals, err := trust.OpenApprovals(pairs(tx, store.Decisions, &failed, approvalKeys...))
		if err == nil {
			back = approvals.Ahead(time.Now())
		}
		return errors.Join(err, failed)
	})
	if err != nil {
		return 0, 0, err
	}
	if back <= 0 {
		return 0, 0, notebook.Errorf(notebook.CodeInvalid, "the clock is not behind the highest time that was seen here").With("there is nothing to do")
	}
	if err := present(db, proof, "set the clock back"); err != nil {
		return 0, 0, err
	}
	err = change(db, home, func(o *offline) error {
		gone := o.approvals.Rewind(o.now)
		voided = len(gone)
		return o.voided(gone, "expired before the clock was set back")
	})
	return back, voided, err
}

// Reset is what a reset of the owner took back.
type Reset struct {
	Approvals int
	Agents    []string
}

// ResetOwner gives a home that no daemon serves a new PIN, or none, and a new
// owner's token, for a person who lost the old ones. It proves nothing about who
// asks, so it takes back what the old PIN had allowed: every approval is void,
// and every agent's and browser's token is gone. Status tells of it from then on.
func ResetOwner(home Home, pin string) (report *Reset, err error) {
	db, err := unserved(home)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	presence := trust.NoPIN()
	if pin != "" {
		var salt [16]byte
		_, _ = rand.Read(salt[:]) // never fails
		if presence, err = trust.NewPresence(pin, salt); err != nil {
			return nil, err
		}
	}
	token := newToken()
	report = &Reset{}
	err = change(db, home, func(o *offline) error {
		reason := "the owner was reset"
		gone := o.approvals.VoidAll(reason)
		report.Approvals = len(gone)
		if err := o.record(trust.LedgerRecord{Kind: trust.LedgerReset, Reason: reason}); err != nil {
			return err
		}
		if err := o.voided(gone, reason); err != nil {
			return err
		}
		for r, err := range o.tx.All(store.Clients, nil) {
			if err != nil {
				return err
			}
			if c, err := openClient(r.Value); err == nil && c.Role == roleAgent {
				report.Agents = append(report.Agents, c.Name)
				o.asks.Drop(caller{role: roleAgent, name: c.Name}.requester())
			}
			if err := o.tx.Delete(store.Clients, r.Key); err != nil {
				return err
			}
		}
		if err := o.tx.Put(store.Meta, metaPresence, presence.Record()); err != nil {
			return err
		}
		if err := o.tx.Put(store.Meta, metaReset, store.Number(uint64(o.now.UnixMilli()))); err != nil {
			return err
		}
		return putClient(o.tx, token, clientRecord{Role: roleOwner, Created: o.now.UnixMilli()})
	})
	if err != nil {
		return nil, err
	}
	tokens, err := filepath.Glob(home.AgentToken("*"))
	for _, path := range tokens { // of no use to anybody any more
		err = errors.Join(err, os.Remove(path))
	}
	return report, errors.Join(err, writeSecret(home.OwnerToken(), []byte(token+"\n")))
}
