package daemon

import (
	"fmt"
	"slices"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// runRecord is a run or a refusal as it is kept: under its number, and as the
// newest of its fence.
type runRecord struct {
	_            struct{} `cbor:",toarray"`
	Version      uint8
	Number       uint64
	Time         int64 // Unix milliseconds of the request
	Page         notebook.PageID
	Title        string
	Fence        notebook.FenceID
	Language     string
	Closure      notebook.Hash
	Standing     string
	Client       string
	By           string // which of the agents that had this name: see [clientID]; empty of others
	State        string
	Reason       string
	Result       []byte            // encoded; empty while there is none
	Pages        []notebook.PageID // of what the fence includes, and of what its query found
	Engine       notebook.Hash
	Rule         string // what decided
	Approval     uint64 // that it rests on; 0: none
	Rung         notebook.Rung
	Capabilities []notebook.Capability
	Limits       notebook.Limits
	Of           uint64 // the run that it replays; 0: it is no replay

	devices []notebook.DeviceID // whose text it is, sources of moved text included; not kept
	stale   bool                // an agent asked for other bytes than are there; not kept
}

const (
	runVersion   = 3
	maxRunRecord = notebook.MaxResult + 2*18*notebook.MaxRows + 24<<10

	stateRunning = "running"
	stateDone    = "done"
	stateRefused = "refused"
)

func (r *runRecord) info() (*notebook.RunInfo, error) {
	info := &notebook.RunInfo{
		Number: r.Number, Page: r.Page, Title: r.Title, Fence: r.Fence, Language: r.Language,
		Standing: r.Standing, Client: r.Client, State: r.State, Reason: r.Reason,
		Engine: r.Engine, Rule: r.Rule, Approval: r.Approval, Capabilities: slices.Clone(r.Capabilities), Replays: r.Of,
		Result: notebook.Result{Fence: r.Fence, Closure: r.Closure, Rung: r.Rung, Started: r.Time, Limits: r.Limits},
	}
	if len(r.Result) > 0 {
		result, err := notebook.DecodeResult(r.Result)
		if err != nil {
			return nil, err
		}
		info.Result = *result
	}
	return info, nil
}

// end gives a run the outcome that it came to, or was given because it came to
// none, and the reason for that.
func (r *runRecord) end(result *notebook.Result, reason string) (err error) {
	r.State, r.Reason = stateDone, reason
	r.Result, err = notebook.EncodeResult(result)
	return err
}

// unfinished is the result of a run of which nothing came.
func (r *runRecord) unfinished(verdict notebook.Verdict) *notebook.Result {
	return &notebook.Result{Fence: r.Fence, Closure: r.Closure, Rung: r.Rung, Verdict: verdict, Started: r.Time, Limits: r.Limits}
}

// touches reports whether a run has to do with the text of a page.
func (r *runRecord) touches(page notebook.PageID) bool {
	return r.Page == page || slices.Contains(r.Pages, page)
}

// blank takes out what a run wrote; how it ended stays.
func (r *runRecord) blank() error {
	if len(r.Result) == 0 {
		return nil
	}
	result, err := notebook.DecodeResult(r.Result)
	if err != nil {
		return err
	}
	result.Dropped += int64(len(result.Output))
	result.Output, result.Head, result.Error = "", 0, ""
	r.Result, err = notebook.EncodeResult(result)
	return err
}

func openRun(b []byte) (*runRecord, error) {
	r := new(runRecord)
	if err := notebook.Unmarshal(b, r, maxRunRecord); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if r.Version != runVersion {
		return nil, fmt.Errorf("run %d was kept by another version of noted: update noted", r.Number)
	}
	return r, nil
}

// keepRun keeps a run under its number, and as the newest of its fence unless it
// is a replay, or an agent asked for bytes that are not there. Of two at once the
// newest is the one that began later, whichever ends last.
func (d *Daemon) keepRun(b *batch, r runRecord) {
	r.Version = runVersion
	// A page may name a language, and a reason repeat it, that no record has room for.
	r.Language, r.Standing, r.Reason, r.Rule = clip(r.Language), clip(r.Standing), clip(r.Reason), clip(r.Rule)
	newest := !r.stale && r.Of == 0 && r.Number >= d.latest[r.Fence]
	if newest {
		d.latest[r.Fence] = r.Number
	}
	b.write(func(tx *store.Tx) error {
		value, err := notebook.Marshal(&r)
		if err != nil {
			return err
		}
		if err := tx.Put(store.Outcomes, store.Number(r.Number), value); err != nil {
			return err
		}
		if newest {
			if err := tx.Put(store.Results, resultKey(r.Fence, d.signer.Device()), value); err != nil {
				return err
			}
		}
		return countOutcome(tx, r.share(), r.Number, outcomeWindow)
	})
}

// purgeOutcomes takes the text of a page out of what is kept of runs: what they
// wrote, and what they were handed.
func purgeOutcomes(tx *store.Tx, page notebook.PageID) error {
	for r, err := range tx.All(store.Outcomes, nil) {
		if err != nil {
			return err
		}
		run, err := openRun(r.Value)
		if err != nil { // nobody can tell whose text it is
			if err := forgetOutcome(tx, r.Number()); err != nil {
				return err
			}
			continue
		}
		if !run.touches(page) || len(run.Result) == 0 {
			continue
		}
		if err := run.blank(); err != nil {
			return err
		}
		value, err := notebook.Marshal(run)
		if err != nil {
			return err
		}
		if err := tx.Put(store.Outcomes, r.Key, value); err != nil {
			return err
		}
	}
	return purgeKept(tx, page)
}

// lastRun is the newest run of a fence on this device that c is shown, nil if
// there is none. What came of a strict run has nothing that the page has not.
func (d *Daemon) lastRun(c caller, tx *store.Tx, fence notebook.FenceID) (*notebook.RunInfo, error) {
	b, err := tx.Get(store.Results, resultKey(fence, d.signer.Device()))
	if err != nil || b == nil {
		return nil, err
	}
	r, info, err := showRun(b)
	switch {
	case err != nil && c.role == roleAgent:
		return nil, nil
	case err != nil:
		return damagedRun(0), nil
	case !c.sees(r) && info.Result.Rung != notebook.Strict:
		return nil, nil
	}
	return info, nil
}

// showRun reads a run for whoever asks about it.
func showRun(b []byte) (*runRecord, *notebook.RunInfo, error) {
	r, err := openRun(b)
	if err != nil {
		return nil, nil, err
	}
	info, err := r.info()
	return r, info, err
}

// damagedRun stands for a run whose record cannot be read, so that the others can be
// shown beside it.
func damagedRun(number uint64) *notebook.RunInfo {
	return &notebook.RunInfo{Number: number, State: stateDone, Reason: "what is kept of it is damaged: noted doctor tells more"}
}

// sees reports whether a run is this caller's business: an agent sees its own,
// and not those of an agent that had its name before.
func (c caller) sees(r *runRecord) bool {
	return c.role != roleAgent || r.Client == c.label() && r.By == c.id
}

// runs are the newest runs that c sees.
func (d *Daemon) runs(c caller, most int) (all []notebook.RunInfo, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		numbers, err := keptNumbers(tx)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if len(all) == most {
				break
			}
			b, err := tx.Get(store.Outcomes, store.Number(n))
			if err != nil {
				return err
			}
			r, info, err := showRun(b)
			if err != nil && c.role != roleAgent {
				r, info, err = &runRecord{}, damagedRun(n), nil
			}
			if err != nil || !c.sees(r) {
				continue
			}
			all = append(all, *info)
		}
		return nil
	})
	return all, err
}

func (d *Daemon) runInfo(c caller, number uint64) (*notebook.RunInfo, error) {
	r, err := d.runRecord(c, number)
	if err != nil {
		return nil, err
	}
	return r.info()
}

// runRecord is a run that c sees, as it is kept.
func (d *Daemon) runRecord(c caller, number uint64) (r *runRecord, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		b, err := tx.Get(store.Outcomes, store.Number(number))
		if err != nil {
			return err
		}
		if b != nil {
			if r, _, err = showRun(b); err != nil && c.role != roleAgent {
				return notebook.Errorf(notebook.CodeFailed, "what is kept of run %d is damaged: %v", number, err).With("noted daemon stop, then noted doctor")
			}
		}
		if r == nil || !c.sees(r) {
			return notebook.Errorf(notebook.CodeNotFound, "there is no run %d, or its output is kept no longer", number).With("noted run list shows those that are")
		}
		return nil
	})
	return r, err
}

// buryRuns gives the runs that the death of the daemon interrupted their
// outcome, before anybody can see them: their workers died with it.
func (d *Daemon) buryRuns() error {
	var open []*runRecord
	err := d.db.View(func(tx *store.Tx) error {
		for kept, err := range tx.All(store.Outcomes, nil) {
			if err != nil {
				return err
			}
			r, err := openRun(kept.Value)
			if err != nil {
				d.logger.Error("what is kept of a run is damaged", "run", kept.Number(), "error", err)
				continue
			}
			if r.State != stateRunning {
				continue
			}
			open = append(open, r)
			newest, err := tx.Get(store.Results, resultKey(r.Fence, d.signer.Device()))
			if err != nil {
				return err
			}
			if n, err := openRun(newest); err == nil {
				d.latest[r.Fence] = n.Number
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := newBatch()
	for _, r := range open {
		if err := r.end(r.unfinished(notebook.Crash), "the daemon died while it ran, and the run with it"); err != nil {
			return err
		}
		line := r.line(trust.LedgerOutcome)
		line.Of, line.Rung, line.Verdict, line.Reason = r.Number, r.Rung, notebook.Crash, r.Reason
		line.Digest = notebook.BodyDigest(r.Result)
		if _, err := d.record(b, line); err != nil {
			return err
		}
		d.keepRun(b, *r)
	}
	if len(open) == 0 {
		return nil
	}
	return d.write([]*sealed{{batch: b}})
}
