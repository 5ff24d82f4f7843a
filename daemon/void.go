package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"noted/notebook"
	"noted/trust"
)

// voidApprovals ends the approvals of fences of a page that are no longer what
// was approved, and says so in the ledger. It is called under d.mu.
func (d *Daemon) voidApprovals(b *batch, p *page) error {
	voided := d.approvals.VoidChanged(p.id, func(fence notebook.FenceID) (now notebook.Hash) {
		if _, i, err := d.findFence(p.id, fence); err == nil {
			now = notebook.Closure{p.fences[i].Part}.Hash()
		}
		return now // zero: the fence is gone
	})
	return d.recordVoids(b, voided, "the fence changed")
}

// voidIncluding ends the approvals of fences that include one of a changed page,
// where they are no longer what was approved, and of those of pages that are
// gone. It is called under d.mu, when all changed pages are saved.
func (d *Daemon) voidIncluding(b *batch) error {
	var voided []uint64
	closure := func(page notebook.PageID, fence notebook.FenceID) notebook.Hash {
		now, _ := d.closureOf(page, fence)
		return now
	}
	for _, id := range slices.AppendSeq(slices.Clone(b.gone), maps.Keys(b.dirty)) {
		voided = append(voided, d.approvals.VoidIncluding(id, closure)...)
	}
	for _, id := range b.gone {
		voided = append(voided, d.approvals.VoidChanged(id, func(notebook.FenceID) (gone notebook.Hash) { return gone })...)
	}
	slices.Sort(voided)
	return d.recordVoids(b, voided, "the fence, or one that it includes, changed")
}

// recordVoids writes into the ledger which approvals count no longer, and keeps that.
func (d *Daemon) recordVoids(b *batch, voided []uint64, reason string) error {
	var problems []error
	for _, id := range voided {
		_, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerRevoked, Approval: id, Reason: reason})
		problems = append(problems, err)
	}
	if len(voided) > 0 {
		d.keepDecisions(b)
	}
	return errors.Join(problems...)
}

// maxTick is how long an approval may outlive its time in the store, where a
// clock that is turned back finds it; a decision always looks at the clock.
const maxTick = time.Minute

// keepTime voids approvals whose time is over, until ctx ends. It counts the
// time that passes by itself, so that a clock that is turned back while noted
// runs does not lengthen an approval. Where none expires nothing is written.
func (d *Daemon) keepTime(ctx context.Context) {
	began := time.Now()
	for {
		wait := maxTick
		d.mu.Lock()
		next := d.approvals.Next()
		d.mu.Unlock()
		steady := began.Add(time.Since(began)) // what a clock that is left alone would show
		if !next.IsZero() {
			wait = min(wait, max(time.Millisecond, next.Sub(steady)))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := d.expire(began.Add(time.Since(began))); err != nil {
			d.logger.Warn("approvals were not looked at", "error", err)
		}
	}
}

// expire voids the approvals whose time is over, by the later of the clock and steady.
func (d *Daemon) expire(steady time.Time) error {
	return d.step(func(b *batch) error {
		if d.approvals.Next().IsZero() {
			return nil
		}
		d.approvals.See(time.Now())
		d.approvals.See(steady)
		err := d.recordVoids(b, d.approvals.Expire(), "expired")
		d.keepDecisions(b) // also the time that was seen
		return err
	})
}
