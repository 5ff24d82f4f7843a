package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"noted/notebook"
	"noted/trust"
)

// running is a run whose worker may be alive.
type running struct {
	cancel  context.CancelFunc
	by      string              // the client's label
	devices []notebook.DeviceID // whose text it is
	over    chan struct{}       // closed when its worker is dead and its outcome is kept
}

func seed() []byte {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return b[:]
}

// run walks a fence through its life: what was shown is looked up, decided on,
// recorded, run, and its outcome recorded. The record of the run, and of the
// approval that it spends, is on the disk before the worker gets a byte.
func (d *Daemon) run(ctx context.Context, c caller, req notebook.RunRequest) (*notebook.RunInfo, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var grant trust.Grant
	var rec runRecord
	var output notebook.Source // whose text its output is
	var refused *trust.Refusal
	err := d.step(func(b *batch) error {
		if d.closing {
			return errStopped
		}
		p, i, err := d.findFence(req.Page, req.Fence)
		if err != nil {
			return err
		}
		r := d.closer().request(c, p, i, p.inputs())
		r.Shown, r.Args = req.Shown, req.Args
		rec = runRecord{
			Time: r.Now.UnixMilli(), Page: p.id, Title: p.registers.Title(), Fence: r.Fence, Language: r.Closure.Main().Language, Closure: r.Closure.Hash(),
			Standing: r.Standing().String(), Client: c.label(), By: c.id,
			devices: r.Everyone().Devices(),
		}
		if !d.mayAsk(c, r.Now) {
			return tooMany(c)
		}
		d.approvals.See(r.Now)
		grant, refused = trust.Decide(r)
		if refused != nil {
			rec.State, rec.Reason, rec.stale = stateRefused, refused.Reason, c.role == roleAgent && refused.Code == notebook.CodeStale
			return d.refuse(b, &rec)
		}
		output = d.outputSource(c, &r, grant)
		line := rec.line(trust.LedgerRun)
		line.Rung, line.Approval = grant.Rung(), grant.Approval()
		if rec.Number, err = d.record(b, line); err != nil {
			return err
		}
		if id := grant.Approval(); id != 0 {
			if err := d.spend(b, &rec, id); err != nil {
				return err
			}
		}
		d.keepDecisions(b)
		rec.State = stateRunning
		d.keepRun(b, rec)
		d.running[rec.Number] = &running{cancel: cancel, by: c.label(), devices: rec.devices, over: make(chan struct{})}
		d.work.Add(1) // its outcome is written before the writer goes
		b.tell(notebook.Event{Kind: "run", Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Text: "run " + rec.name() + " began"})
		return nil
	})
	if rec.State == stateRunning {
		defer d.ended(rec.Number)
	}
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.Unwrap()
	}

	result, notRun := d.runner.Run(ctx, grant)
	err = d.step(func(b *batch) error {
		line := rec.line(trust.LedgerOutcome)
		line.Of, line.Rung = rec.Number, grant.Rung()
		rec.State = stateDone
		if notRun != nil {
			rec.State, rec.Reason = stateRefused, notRun.Error()
			line.Reason = clip(rec.Reason)
		} else {
			body, err := notebook.EncodeResult(&result)
			if err != nil {
				return err
			}
			rec.Result = body
			if !output.IsZero() {
				d.learnResult(b, output, d.signer.Device(), &result)
			}
			line.Verdict, line.Inputs, line.Digest = result.Verdict, result.Inputs, notebook.BodyDigest(body)
			if grant.Rung() == notebook.Strict {
				d.shareResult(b, c, rec.Page, result)
			}
		}
		if _, err := d.record(b, line); err != nil {
			return err
		}
		d.keepRun(b, rec)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if notRun != nil {
		return nil, notRun
	}
	info, err := rec.info()
	if err == nil {
		d.events.tell(notebook.Event{Kind: "run", Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Run: info, Text: "run " + rec.name() + ": " + result.Verdict.String()})
	}
	return info, err
}

// spend uses up the approval that a run rests on, if it is for once.
func (d *Daemon) spend(b *batch, rec *runRecord, id uint64) error {
	if err := d.approvals.Spend(id); err != nil {
		return err
	}
	spent := slices.ContainsFunc(d.approvals.Of(rec.Page, rec.Fence, time.Now()), func(a notebook.Approval) bool { return a.ID == id && a.Spent })
	if !spent {
		return nil
	}
	line := rec.line(trust.LedgerSpent)
	line.Approval, line.Of = id, rec.Number
	_, err := d.record(b, line)
	return err
}

// maxAgentRuns is how many runs and approvals an agent may ask for in a minute.
// Each request for a run is recorded for ever, also one that is refused, and takes the place of what is
// shown: without a bound an agent could fill the disk and clear the screen.
const maxAgentRuns = 120

func tooMany(c caller) error {
	return notebook.Errorf(notebook.CodeExhausted, "%s asked for more than %d runs and approvals in a minute", c.label(), maxAgentRuns).With("wait a minute")
}

// spell is a minute of an agent's requests.
type spell struct {
	began time.Time
	runs  int
}

// mayAsk counts a request for a run. Persons are not counted: they are slow.
func (d *Daemon) mayAsk(c caller, now time.Time) bool {
	if c.role != roleAgent {
		return true
	}
	s := d.spells[c.name]
	if now.Sub(s.began) >= time.Minute {
		s = spell{began: now}
	}
	s.runs++
	d.spells[c.name] = s
	return s.runs <= maxAgentRuns
}

// refuse records that a run was refused. It takes the place of the fence's
// last result, since that is what happened last.
func (d *Daemon) refuse(b *batch, rec *runRecord) error {
	line := rec.line(trust.LedgerRefusal)
	line.Reason = clip(rec.Reason)
	var err error
	if rec.Number, err = d.record(b, line); err != nil {
		return err
	}
	d.keepRun(b, *rec)
	d.keepDecisions(b)
	b.tell(notebook.Event{Kind: "run", Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Text: "run " + rec.name() + " was refused: " + notebook.EscapeLine(rec.Reason)})
	return nil
}

// line is the ledger's record of r.
func (r *runRecord) line(kind trust.LedgerKind) trust.LedgerRecord {
	return trust.LedgerRecord{
		Kind: kind, Page: r.Page, Title: clip(r.Title), Fence: r.Fence, Language: clip(r.Language),
		Closure: r.Closure, Standing: clip(r.Standing), Client: clip(r.Client),
		Devices: r.devices[:min(len(r.devices), trust.MaxLedgerDevices)],
	}
}

func (r *runRecord) name() string {
	return notebook.EscapeLine(r.Title) + "#" + r.Fence.Short()
}

// clip keeps a text to what a record of the ledger holds.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 1<<10)], "")
}

// shareResult sends a strict result to the other devices, where it is shown
// under this one's name. The layers of this device's jail are its own business.
func (d *Daemon) shareResult(b *batch, c caller, page notebook.PageID, result notebook.Result) {
	if d.isPurged(page) {
		return // nothing of it is kept by anybody
	}
	result.Layers = nil
	body, err := notebook.EncodeResult(&result)
	if err == nil {
		var v trust.Verified
		if v, err = d.append(b, c.door(), notebook.KindResult, page, body); err == nil {
			b.put(v, "")
		}
	}
	if err != nil {
		d.logger.Warn("a result was not shared", "error", err)
	}
}

// ended forgets a run that is over.
func (d *Daemon) ended(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.running[number].over)
	delete(d.running, number)
	d.work.Done()
}

// cancelRun kills a run. An agent ends its own only.
func (d *Daemon) cancelRun(c caller, number uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.running[number]
	switch {
	case r == nil:
		return notebook.Errorf(notebook.CodeNotFound, "run %d is not running", number).With("noted run list shows what is")
	case c.role == roleAgent && r.by != c.label():
		return denied{c}.no("cancel another's run")
	}
	r.cancel()
	return nil
}

// buryRuns gives the runs that a crash of the daemon interrupted an outcome:
// their workers died with it.
func (d *Daemon) buryRuns(b *batch) error {
	all, err := d.newestRuns(d.ledger.Number, outcomeWindow, func(r *runRecord) bool { return r.State == stateRunning })
	if err != nil {
		return err
	}
	var problems []error
	for _, rec := range all {
		if _, alive := d.running[rec.Number]; alive {
			continue
		}
		rec.State, rec.Reason = stateRefused, "noted stopped while it ran; the run died with it"
		line := rec.line(trust.LedgerOutcome)
		line.Of, line.Verdict, line.Reason = rec.Number, notebook.Crash, rec.Reason
		_, err := d.record(b, line)
		problems = append(problems, err)
		d.keepRun(b, *rec)
	}
	return errors.Join(problems...)
}
