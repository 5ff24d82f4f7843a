package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// Check yields everything that is wrong with a home that no daemon serves: the
// store's structure, every entry's signature and chain, the reasons of those
// that are void, the pages as they follow from the log, the cards, the results,
// the ledger, runs without an outcome, foreign text that is not recorded, and
// the engine files.
// An intact home yields nothing. It reads everything and verifies every
// signature anew.
func Check(home Home) iter.Seq[error] {
	return func(yield func(error) bool) {
		c := &checker{yield: yield, gone: map[notebook.PageID]*crdt.Registers{}}
		key, err := readKey(home.KeyFile())
		if err != nil {
			c.report("%w", err)
			return
		}
		c.self = trust.NewSigner(key).Device()
		db, err := store.Open(home.Database(), store.Options{})
		if err != nil {
			c.report("%w", err)
			return
		}
		for err := range db.Check() {
			c.report("store: %w", err)
		}
		err = db.View(func(tx *store.Tx) error {
			c.tx = tx
			for _, part := range []func() error{c.openForeign, c.checkLog, c.checkPages, c.checkResults, c.checkRuns, c.checkShares, c.checkKept, c.checkRest} {
				if err := part(); err != nil {
					c.report("%w", err)
				}
			}
			return nil
		})
		if err := errors.Join(err, db.Close(), checkEngines(c, home, key)); err != nil {
			c.report("%w", err)
		}
	}
}

// Damage is an error of [Check] that [Mend] can mend: what is kept of a page is
// not what the log makes of it.
type Damage struct {
	Page notebook.PageID
	Err  error
}

func (d *Damage) Error() string { return d.Err.Error() }
func (d *Damage) Unwrap() error { return d.Err }

type checker struct {
	yield func(error) bool
	over  bool // nobody listens any more
	self  notebook.DeviceID
	tx    *store.Tx
	taken []taken                             // the log, in the order of arrival
	page  notebook.PageID                     // that is made anew; zero while none is
	gone  map[notebook.PageID]*crdt.Registers // of pages that were looked at: those that are kept as purged, nil for others

	foreign map[notebook.TextDigest]struct{} // the record of foreign text
}

// taken is an entry that was verified anew, and why it is void by the log as kept.
type taken struct {
	trust.Verified
	void string
}

func (c *checker) report(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if !c.page.IsZero() {
		err = &Damage{Page: c.page, Err: err}
	}
	if !c.over && !c.yield(err) {
		c.over = true
	}
}

// checkLog takes the whole log into a new one.
func (c *checker) checkLog() error {
	var fresh *trust.Log
	var stored []store.Stored
	verified := map[notebook.Hash]trust.Verified{}
	entries := map[notebook.Place]notebook.Entry{}
	excuses := map[notebook.PageID][]byte{}
	for s, err := range c.tx.Entries(1) {
		if err != nil {
			return err
		}
		stored = append(stored, s)
		entries[s.Place] = s.Entry
		if fresh == nil {
			log, _, err := trust.JoinLog(c.self, s.Entry)
			if err != nil {
				return fmt.Errorf("the first entry: %w", err)
			}
			fresh = log
			fresh.Recall(func(p notebook.Place) (notebook.Entry, bool) {
				e, found := entries[p]
				return e, found
			})
			// Whether a page may be kept as purged is looked at with the page.
			fresh.Excuse(func(notebook.PageID, notebook.DeviceID) bool { return true })
			continue
		}
		if s.Entry.Body == nil {
			if s.Entry.Body, err = excuseFor(c.tx, c.self, excuses, s.Page); err != nil {
				c.report("entry %v has no body: %w", s.Position, err)
			}
		}
		// Whether something of it is missing shows at the end.
		if _, err := fresh.Retake([]notebook.Entry{s.Entry}); err != nil && !trust.Innocent(err) {
			c.report("entry %v: %w", s.Position, err)
		}
	}
	if fresh == nil {
		return errors.New("the log is empty")
	}
	// Which of several histories of a device stands is known once all are here.
	for v, err := range fresh.Replay(func(yield func(notebook.Entry, error) bool) {
		for _, s := range stored {
			if !yield(s.Entry, nil) {
				return
			}
		}
	}) {
		if err != nil {
			c.report("%w", err)
			break
		}
		verified[v.Hash()] = v
	}
	for _, s := range stored {
		v, found := verified[s.Entry.Hash()]
		if !found {
			c.report("entry %v does not hold by the entries before it", s.Position)
			continue
		}
		if at, page := v.Place(), v.Header().Page; at != s.Place || page != s.Page {
			c.report("entry %v of page %s is kept as %v of page %s", at, page, s.Place, s.Page)
		}
		c.taken = append(c.taken, taken{v, s.Void})
	}
	if err := c.checkVoid(stored); err != nil {
		return err
	}
	if err := c.checkAccounts(); err != nil {
		return err
	}
	var failed error
	kept, err := trust.OpenLog(c.self, pairs(c.tx, store.Chains, &failed))
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("the records of the log: %w", err)
	}
	if !slices.Equal(headsOf(kept), headsOf(fresh)) {
		c.report("the kept heads are not those of the entries")
	}
	if !slices.Equal(kept.Roster().Members(), fresh.Roster().Members()) {
		c.report("the kept roster is not that of the entries")
	}
	return nil
}

// checkVoid counts the void entries.
func (c *checker) checkVoid(stored []store.Stored) error {
	void := uint64(0)
	for _, s := range stored {
		if s.Void != "" {
			void++
		}
	}
	n, err := c.tx.Get(store.Meta, metaVoid)
	if err != nil {
		return err
	}
	if n == nil {
		n = store.Number(0)
	}
	if !bytes.Equal(n, store.Number(void)) {
		c.report("%d entries are void, and %x were counted", void, n)
	}
	return nil
}

// checkAccounts counts the log anew. A home that was founded or joined and not
// opened since has no accounts yet.
func (c *checker) checkAccounts() error {
	counted, err := accountsOf(c.tx)
	if err != nil {
		return err
	}
	entries := uint64(0)
	kept := map[notebook.DeviceID]*account{}
	for r, err := range c.tx.All(store.Quotas, nil) {
		if err != nil {
			return err
		}
		a, err := openAccount(r.Value)
		if err != nil {
			c.report("the quota of device %x: %w", r.Key, err)
			continue
		}
		kept[notebook.DeviceID(r.Key)] = a
		entries += a.Entries
	}
	if entries == 0 {
		return nil
	}
	for device, want := range counted {
		have := kept[device]
		if have == nil {
			c.report("nothing is accounted for of device %s", device.Short())
			continue
		}
		want.Used.Actors = have.Used.Actors // which a purge does not lower
		if have.Entries != want.Entries || have.Used != want.Used {
			c.report("of device %s %d entries, %+v, are accounted for, and %d, %+v, are kept", device.Short(), have.Entries, have.Used, want.Entries, want.Used)
		}
	}
	for device, have := range kept {
		if counted[device] == nil && have.Entries > 0 {
			c.report("%d entries of device %s are accounted for, and none is kept", have.Entries, device.Short())
		}
	}
	return nil
}

// headsOf are a log's heads as values that can be compared.
func headsOf(l *trust.Log) (heads []notebook.Head) {
	for _, h := range l.Heads() {
		heads = append(heads, notebook.Head{Position: h.Position, Hash: h.Hash})
	}
	return heads
}

// verdict reports where the reason for which an entry is void is not the one that is kept.
func (c *checker) verdict(e taken, void string) {
	if void != e.void {
		c.report("entry %v is kept as void for %q and is void for %q", e.Header().Position(), e.void, void)
	}
}

// checkPages makes every page anew from its entries and compares it with what is kept.
func (c *checker) checkPages() error {
	pages := map[notebook.PageID][]taken{}
	for _, e := range c.taken {
		switch h := e.Header(); {
		case e.bare(c):
			if e.Entry().Body != nil {
				c.report("entry %v has its body, and page %s was purged", h.Position(), h.Page)
			}
			c.verdict(e, "")
			pages[h.Page] = append(pages[h.Page], e)
		case e.Void() != "":
			c.verdict(e, e.Void())
		case h.Kind == notebook.KindText || h.Kind == notebook.KindSet:
			pages[h.Page] = append(pages[h.Page], e)
		case h.Kind == notebook.KindRoster:
			c.verdict(e, "")
		}
	}
	for _, space := range []store.Space{store.Infos, store.Shadows, store.Registers, store.OwnFences} {
		for r, err := range c.tx.All(space, nil) {
			if err != nil {
				return err
			}
			if _, known := pages[notebook.PageID(r.Key)]; !known {
				c.report("%v holds page %x, of which the log knows nothing", space, r.Key)
			}
		}
	}
	for id, entries := range pages {
		c.page = id
		if err := c.checkPage(id, entries); err != nil {
			c.report("page %s: %w", id, err)
		}
		c.page = notebook.PageID{}
		delete(pages, id) // what it held is not needed any more
	}
	return nil
}

// checkAbsent reports what is kept of a page of which nothing holds.
func (c *checker) checkAbsent(id notebook.PageID) error {
	for _, space := range []store.Space{store.Infos, store.Shadows, store.Registers} {
		if kept, err := c.tx.Get(space, id[:]); err != nil {
			return err
		} else if kept != nil {
			c.report("page %s: nothing of it holds, and %v keeps a record of it", id, space)
		}
	}
	return nil
}

func (c *checker) checkPage(id notebook.PageID, entries []taken) error {
	p := &page{id: id, shadow: crdt.NewPage(id), registers: crdt.NewRegisters(id)}
	purged := c.purged(id)
	touched := purged != nil
	if purged != nil {
		p.registers.Purge(purged.Excuse())
	}
	for _, e := range entries {
		apply := p.applyText
		if e.Header().Kind == notebook.KindSet {
			apply = p.registers.Apply
		} else if purged != nil {
			continue
		} else if e.Entry().Body == nil {
			c.report("entry %v has no body, and page %s was not purged", e.Header().Position(), id)
			continue
		}
		if err := apply(e.Verified); err != nil {
			c.verdict(e, voidReason(err))
			continue
		}
		c.verdict(e, "")
		if e.Header().Kind == notebook.KindSet {
			c.checkForeignTitle(e)
		}
		p.changed = max(p.changed, e.Header().Time)
		touched = true
	}
	if purged != nil && len(p.registers.Values(notebook.RegisterPurged)) == 0 && len(purged.Excuse()) == 0 {
		c.report("page %s is kept as purged, and nobody purged it", id)
	}
	if !touched {
		return c.checkAbsent(id)
	}
	own, err := c.tx.Get(store.OwnFences, id[:])
	if err != nil {
		return err
	}
	if p.own, err = c.openOwn(p, own); err != nil {
		return err
	}
	c.checkForeignPage(p)
	records, err := p.records(p.card(c.self))
	if err != nil {
		return err
	}
	for _, r := range records {
		kept, err := c.tx.Get(r.space, id[:])
		if err != nil {
			return err
		}
		if !bytes.Equal(kept, r.value) {
			c.report("page %s: the record in %v is not the one that its entries make", id, r.space)
		}
	}
	return nil
}

// purged are the registers of a page if it is kept as purged; nil otherwise.
func (c *checker) purged(id notebook.PageID) *crdt.Registers {
	if registers, known := c.gone[id]; known {
		return registers
	}
	record, err := c.tx.Get(store.Registers, id[:])
	var registers *crdt.Registers
	if err == nil && record != nil {
		if registers, err = crdt.OpenRegisters(id, record); err != nil || !registers.Purged() {
			registers = nil // what cannot be read is reported where pages are compared
		}
	}
	c.gone[id] = registers
	return registers
}

// bare reports whether e is kept without its body, and has no verdict: its page was purged.
func (e taken) bare(c *checker) bool {
	h := e.Header()
	return (h.Kind == notebook.KindText || h.Kind == notebook.KindResult) && c.purged(h.Page) != nil
}

// openOwn reads the own fences of a page. What the person typed when is not in
// the log, so they cannot be made anew: what is recorded has to read as it is
// written, and a fence that counts as typed here has to have an opening line of
// which this device wrote something.
func (c *checker) openOwn(p *page, record []byte) (*crdt.OwnFences, error) {
	own, err := crdt.OpenOwnFences(record)
	if err != nil {
		return nil, err
	}
	fences, err := p.readFences()
	if err != nil {
		return own, nil // none is live
	}
	typedHere := notebook.Author{Device: c.self, Class: notebook.Typed}
	for i := range fences {
		if own.Has(&fences[i]) && !slices.Contains(fences[i].Origin, typedHere) {
			c.report("page %s: fence %s is recorded as typed here, and nobody typed any of it here", p.id, fences[i].ID.Short())
		}
	}
	return own, nil
}

// checkResults compares the newest results of other devices with what they sent.
func (c *checker) checkResults() error {
	type key struct {
		fence  notebook.FenceID
		device notebook.DeviceID
	}
	newest := map[key][]byte{}
	for _, e := range c.taken {
		h := e.Header()
		if h.Kind != notebook.KindResult || e.Void() != "" || e.bare(c) {
			continue
		}
		result, err := openResult(e.Verified)
		if err != nil {
			c.verdict(e, voidReason(err))
			continue
		}
		c.verdict(e, "")
		if h.Device == c.self {
			continue
		}
		c.checkForeignResult(result)
		if newest[key{result.Fence, h.Device}], err = foreignResult(e.Verified, result); err != nil {
			return err
		}
	}
	for r, err := range c.tx.All(store.Results, nil) {
		if err != nil {
			return err
		}
		k := key{notebook.FenceID(r.Key[:16]), notebook.DeviceID(r.Key[16:])}
		if k.device == c.self {
			c.openRun(r.Value)
			continue
		}
		if !bytes.Equal(newest[k], r.Value) {
			c.report("the result of fence %s by %s is not the newest that it sent", k.fence.Short(), k.device.Short())
		}
		delete(newest, k)
	}
	for k := range maps.Keys(newest) {
		c.report("the result of fence %s by %s is missing", k.fence.Short(), k.device.Short())
	}
	return nil
}

func (c *checker) openRun(b []byte) *runRecord {
	r, err := openRun(b)
	if err == nil {
		_, err = r.info()
	}
	if err != nil {
		c.report("%w", err)
		return nil
	}
	return r
}

// checkRuns follows the ledger's chain, and looks for runs and spent approvals
// that the ledger and their own records tell differently.
func (c *checker) checkRuns() error {
	report, err := readLedger(c.tx)
	if err != nil {
		return err
	}
	if report.Problem != "" {
		return fmt.Errorf("ledger: %s", report.Problem)
	}
	var sealed uint64 // what stands before proves nothing, and need not even be readable
	for _, seal := range report.Seals {
		sealed = seal.Number
	}
	var failed error
	approvals, err := trust.OpenApprovals(pairs(c.tx, store.Decisions, &failed, approvalKeys...))
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	open := map[uint64]bool{} // runs without an outcome
	for r, err := range c.tx.All(store.Ledger, nil) {
		if err != nil {
			return err
		}
		if r.Number() < sealed {
			continue
		}
		line, err := trust.DecodeLedgerRecord(r.Value)
		if err != nil {
			return err
		}
		switch line.Kind {
		case trust.LedgerRun:
			open[line.Number] = true
		case trust.LedgerOutcome:
			if !open[line.Of] && line.Of > sealed {
				c.report("ledger: record %d is the outcome of run %d, which has one or did not begin", line.Number, line.Of)
			}
			delete(open, line.Of)
		case trust.LedgerSpent:
			c.checkSpent(approvals, line)
		}
	}
	for number := range open {
		c.report("ledger: run %d has no outcome", number)
	}
	for r, err := range c.tx.All(store.Outcomes, nil) {
		if err != nil {
			return err
		}
		if run := c.openRun(r.Value); run != nil && (run.State == stateRunning || run.Number != r.Number()) {
			c.report("run %d is kept as number %d, %s", r.Number(), run.Number, run.State)
		}
	}
	return nil
}

// checkSpent reports an approval that the ledger says is spent and that counts all the same.
func (c *checker) checkSpent(approvals *trust.Approvals, line *trust.LedgerRecord) {
	for _, a := range approvals.Of(line.Page, line.Fence, time.Now()) {
		if a.ID == line.Approval && a.Scope == notebook.ScopeOnce && !a.Spent {
			c.report("ledger: approval %d was spent by run %d and still counts", a.ID, line.Of)
		}
	}
}

// checkRest reads what stands by itself.
func (c *checker) checkRest() error {
	var failed error
	_, err := trust.OpenAsks(pairs(c.tx, store.Decisions, &failed, askKeys...))
	if err = errors.Join(err, failed); err != nil {
		c.report("%w", err)
	}
	_, err = trust.OpenQuarantine(pairs(c.tx, store.Decisions, &failed, heldKeys...))
	if err = errors.Join(err, failed); err != nil {
		c.report("%w", err)
	}
	_, err = trust.OpenFired(pairs(c.tx, store.Decisions, &failed, firedKeys...))
	if err = errors.Join(err, failed); err != nil {
		c.report("%w", err)
	}
	if _, err := readNotices(c.tx); err != nil {
		c.report("%w", err)
	}
	presence, err := c.tx.Get(store.Meta, metaPresence)
	if err != nil {
		return err
	}
	if _, err := trust.OpenPresence(presence); err != nil {
		c.report("%w", err)
	}
	policy, err := c.tx.Get(store.Meta, metaPolicy)
	if err != nil {
		return err
	}
	if policy != nil {
		if _, err := trust.ParsePolicy(policy); err != nil {
			c.report("policy: %w", err)
		}
	}
	for r, err := range c.tx.All(store.Clients, nil) {
		if err != nil {
			return err
		}
		if _, err := openClient(r.Value); err != nil {
			c.report("client: %w", err)
		}
	}
	for r, err := range c.tx.All(store.Peers, nil) {
		if err != nil {
			return err
		}
		if _, err := getPeer(c.tx, notebook.DeviceID(r.Key)); err != nil {
			c.report("peer: %w", err)
		}
	}
	return nil
}
