package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"noted/exec"
	"noted/notebook"
	"noted/trust"
)

// order is what a run is asked for with.
type order struct {
	notebook.RunRequest
	replay *replaying     // what it does again; nil: nothing
	number *atomic.Uint64 // takes the number of the run before anybody hears of it; may be nil
}

func seed() []byte {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return b[:]
}

// run walks a fence through its life: what was shown is looked up, decided on,
// recorded, run, and its outcome recorded. The record of the run, and of the
// approval that it spends, is on the disk before the worker gets a byte.
func (d *Daemon) run(ctx context.Context, c caller, o order) (*notebook.RunInfo, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var grant trust.Grant
	var rec runRecord
	var out *live
	var refused *trust.Refusal
	found, err := d.lookFor(ctx, c, o.RunRequest)
	if err != nil {
		return nil, err
	}
	err = d.step(func(b *batch) error {
		if d.closing {
			return errStopped
		}
		p, i, err := d.findFence(o.Page, o.Fence)
		if err != nil {
			return err
		}
		r := d.closer(found.sight).request(c, p, i, o.replay.inputs(append(p.inputs(), found.input(p.fences[i].Part)...)))
		r.Shown, r.Args = o.Shown, o.Args
		rec = newRunRecord(c, p, &r)
		if !d.mayAsk(c, r.Now) {
			return tooMany(c)
		}
		d.approvals.See(r.Now)
		grant, refused = trust.Decide(r)
		if o.replay != nil {
			rec.Of = o.replay.of.Number
			if refused == nil {
				grant, refused = o.replay.narrow(grant)
			}
		}
		if refused != nil {
			rec.State, rec.Reason, rec.Rule = stateRefused, refused.Reason, refused.Rule
			rec.stale = c.role == roleAgent && refused.Code == notebook.CodeStale
			return d.refuse(b, &rec)
		}
		pages := found.pages(grant)
		if len(pages) > 0 && d.lostRow(found.rows) {
			return errLostRow
		}
		rec.Pages = o.replay.pages(append(rec.Pages, pages...))
		rec.State, rec.Engine, rec.Rule, rec.Approval = stateRunning, r.Engine, grant.Rule(), grant.Approval()
		rec.Rung, rec.Limits, rec.Capabilities = grant.Rung(), grant.Limits(), clipCapabilities(grant.Capabilities())
		by := d.outputSource(c, &r, grant)
		line := rec.line(trust.LedgerRun)
		line.Rung, line.Approval, line.Of = grant.Rung(), grant.Approval(), rec.Of
		if rec.Number, err = d.record(b, line); err != nil {
			return err
		}
		if out, err = d.newLive(&rec, by); err != nil {
			return err
		}
		if id := grant.Approval(); id != 0 {
			if err := d.spend(b, &rec, id); err != nil {
				return err
			}
		}
		d.keepDecisions(b)
		d.keepRun(b, rec)
		d.running[rec.Number] = &running{
			cancel: cancel, by: c.label(), approval: rec.Approval, devices: rec.devices, over: make(chan struct{}),
		}
		d.work.Add(1) // its outcome is written before the writer goes
		if o.number != nil {
			o.number.Store(rec.Number)
		}
		b.tell(notebook.Event{Kind: eventRun, Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Run: out.run, Text: "run " + rec.name() + " began"})
		return nil
	})
	if _, begun := d.isRunning(rec.Number); begun {
		defer d.ended(rec.Number)
	}
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.Unwrap()
	}

	result, notRun := d.runner.Follow(ctx, grant, out.tell)
	rest := out.end()
	err = d.step(func(b *batch) error {
		line := rec.line(trust.LedgerOutcome)
		line.Of, line.Rung = rec.Number, grant.Rung()
		switch {
		case notRun == nil && result.Verdict == notebook.Cancelled:
			rec.Reason = d.whyStopped(ctx)
		case errors.Is(notRun, exec.ErrStopped):
			result, notRun = *rec.unfinished(notebook.Cancelled), nil
			rec.Reason = d.whyStopped(ctx) + ", before its turn came"
		}
		line.Reason = clip(rec.Reason)
		if notRun != nil {
			rec.State, rec.Reason = stateRefused, notRun.Error()
			line.Reason = clip(rec.Reason)
		} else {
			if err := rec.end(&result, rec.Reason); err != nil {
				return err
			}
			for i := range rest {
				out.learn(b, &rest[i])
			}
			if !out.by.IsZero() {
				d.learnResult(b, out.by, d.signer.Device(), &result)
			}
			line.Verdict, line.Inputs, line.Digest = result.Verdict, result.Inputs, notebook.BodyDigest(rec.Result)
			if err := d.keepOutcome(b, c, &rec, &result, grant); err != nil {
				return err
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
	d.events.tell(rest...)
	if notRun != nil {
		return nil, notRun
	}
	info, err := rec.info()
	if err == nil {
		text := "run " + rec.name() + ": " + info.Result.Verdict.String()
		if rec.Reason != "" {
			text += ", " + notebook.EscapeLine(rec.Reason)
		}
		d.events.tell(notebook.Event{Kind: eventRun, Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Run: info, Text: text})
	}
	return info, err
}

// newRunRecord begins the record of a run that is asked for.
func newRunRecord(c caller, p *page, r *trust.Request) runRecord {
	rec := runRecord{
		Time: r.Now.UnixMilli(), Page: p.id, Title: p.registers.Title(), Fence: r.Fence, Language: r.Closure.Main().Language, Closure: r.Closure.Hash(),
		Standing: r.Standing().String(), Client: c.label(), By: c.id,
		devices: r.Everyone().Devices(),
	}
	for _, in := range r.Included {
		if in.Page != p.id && !slices.Contains(rec.Pages, in.Page) {
			rec.Pages = append(rec.Pages, in.Page)
		}
	}
	return rec
}

// keepOutcome does what else there is to do with a result: it is shared where it
// may be, and what the run was given is kept for a replay. Of a page that was
// purged meanwhile nothing is kept.
func (d *Daemon) keepOutcome(b *batch, c caller, rec *runRecord, result *notebook.Result, grant trust.Grant) error {
	if d.isPurged(rec.Page) || slices.ContainsFunc(rec.Pages, d.isPurged) {
		return rec.blank()
	}
	began := result.Verdict != notebook.Cancelled || result.Took > 0
	if began && rec.Of == 0 && grant.Rung() == notebook.Strict {
		d.shareResult(b, c, rec.Page, *result)
	}
	if began {
		d.keepInputs(b, rec, grant)
	}
	return nil
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
	info, err := rec.info()
	if err == nil {
		b.tell(notebook.Event{Kind: eventRun, Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Run: info, Text: "run " + rec.name() + " was refused: " + notebook.EscapeLine(rec.Reason)})
	}
	return err
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

// clipCapabilities keeps the capabilities of a run to what its record has room
// for. What is left out stands for what no replay has anyway.
func clipCapabilities(all []notebook.Capability) []notebook.Capability {
	room := 10 << 10 // more than a fence can want
	for i, c := range all {
		if room -= len(c) + 8; room < 0 {
			return append(slices.Clone(all[:i]), "…")
		}
	}
	return all
}

// clip keeps a text to what a record of the ledger holds.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 1<<10)], "")
}

// shareResult sends a strict result to the other devices, where it is shown
// under this one's name. The layers of this device's jail are its own business.
func (d *Daemon) shareResult(b *batch, c caller, page notebook.PageID, result notebook.Result) {
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
