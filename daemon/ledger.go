package daemon

import (
	"iter"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// numbered yields the ledger's records under their numbers, until one cannot be read.
func numbered(tx *store.Tx, failed *error) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for r, err := range tx.All(store.Ledger, nil) {
			if err != nil {
				*failed = err
				return
			}
			if !yield(r.Number(), r.Value) {
				return
			}
		}
	}
}

// readLedger follows the kept ledger to its kept end.
func readLedger(tx *store.Tx) (notebook.LedgerReport, error) {
	end, err := ledgerEnd(tx)
	if err != nil {
		return notebook.LedgerReport{}, err
	}
	var failed error
	report := trust.CheckLedger(numbered(tx, &failed), end)
	return report, failed
}

func ledgerEnd(tx *store.Tx) (*trust.Ledger, error) {
	b, err := tx.Get(store.Meta, metaLedger)
	if err != nil || b == nil {
		return &trust.Ledger{}, err
	}
	return trust.OpenLedger(b)
}

func (d *Daemon) verifyLedger() (report *notebook.LedgerReport, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		r, err := readLedger(tx)
		report = &r
		return err
	})
	return report, err
}

// sealLedger begins a new chain after a broken one. The seal names what is
// wrong, and every record that is there as it is; nothing is taken out or mended.
func (d *Daemon) sealLedger(proof notebook.Presence) (*notebook.LedgerReport, error) {
	report, err := d.verifyLedger()
	if err != nil {
		return nil, err
	}
	if report.Problem == "" {
		return nil, notebook.Errorf(notebook.CodeInvalid, "the ledger holds: there is nothing to seal").With("noted run verify shows it")
	}
	if err := d.present(proof, "seal the broken ledger"); err != nil {
		return nil, err
	}
	err = d.step(func(b *batch) error {
		if err := d.drain(); err != nil { // what waits for the disk is sealed too
			return err
		}
		var all notebook.Hash
		err := d.db.View(func(tx *store.Tx) (failed error) {
			all = trust.SealDigest(numbered(tx, &failed))
			return failed
		})
		if err != nil {
			return err
		}
		_, err = d.record(b, trust.LedgerRecord{Kind: trust.LedgerSeal, Client: roleOwner.String(), Digest: all, Reason: clip(report.Problem)})
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.verifyLedger()
}
