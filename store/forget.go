package store

import "bytes"

// Forget removes the log, everything that follows from it, the quotas and notices: what
// remains is what the home itself is (meta, clients, peers), the ledger, and what
// others ever wrote here. It is for a home that joins another notebook before it
// has pages of its own; of a large log it would make one large transaction.
func (tx *Tx) Forget() error {
	names := [][]byte{logBucket, orderBucket, pagesBucket, []byte(Quotas.String()), []byte(Notices.String())}
	for s := Chains; s <= Decisions; s++ {
		names = append(names, []byte(s.String()))
	}
	for _, name := range names {
		b := tx.bucket(name)
		for key := range tx.walk(b, nil) {
			if err := tx.delete(b, bytes.Clone(key)); err != nil {
				return err
			}
		}
	}
	order := tx.bucket(orderBucket)
	old := order.Sequence()
	if err := order.SetSequence(0); err != nil {
		return tx.fail(err)
	}
	tx.note(change{bucket: order, seq: old})
	return nil
}
