package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

// attempt is one run on its way.
type attempt struct {
	order
	c       caller
	cancel  context.CancelCauseFunc
	found   *finding
	grant   trust.Grant
	refused *trust.Refusal
	rec     runRecord
	out     *live
	spent   bool // its approval was for once
	early   bool // it was stopped before its turn came
}

// run walks a fence through its life: what was shown is looked up, decided on,
// recorded, run, and its outcome recorded. The record of the run, and of the
// approval that it spends, is on the disk before the worker gets a byte.
func (d *Daemon) run(ctx context.Context, c caller, o order) (*notebook.RunInfo, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found, err := d.lookFor(ctx, c, o.RunRequest)
	if err != nil {
		return nil, err
	}
	a := attempt{order: o, c: c, cancel: cancel, found: found}
	err = d.step(func(b *batch) error { return d.dispatch(b, &a) })
	if _, begun := d.isRunning(a.rec.Number); begun {
		defer d.ended(a.rec.Number)
	}
	switch {
	case err != nil:
		return nil, err
	case a.refused != nil:
		return nil, a.refused.Unwrap()
	}

	result, notRun := d.runner.Follow(ctx, a.grant, a.out.tell)
	rest := a.out.end()
	if a.early = errors.Is(notRun, exec.ErrStopped); a.early {
		result, notRun = *a.rec.unfinished(notebook.Cancelled), nil
	}
	err = d.step(func(b *batch) error { return d.conclude(ctx, b, &a, &result, notRun, rest) })
	if err != nil {
		return nil, err
	}
	d.events.tell(rest...)
	info, err := a.rec.info()
	if err == nil {
		d.events.tell(a.rec.event(info))
	}
	if notRun != nil {
		return nil, a.notRun(notRun)
	}
	return info, err
}

// event tells how a run ended, or that it was refused.
func (r *runRecord) event(info *notebook.RunInfo) notebook.Event {
	text := "run " + r.name()
	switch {
	case r.State == stateRefused:
		text += " was refused: " + notebook.EscapeLine(r.Reason)
	case r.Reason == "":
		text += ": " + info.Result.Verdict.String()
	default:
		text += ": " + info.Result.Verdict.String() + ", " + notebook.EscapeLine(r.Reason)
	}
	return notebook.Event{Kind: eventRun, Page: r.Page, Title: r.Title, Fence: r.Fence, Run: info, Text: text}
}

// notRun is why a run did not begin after all, for who asked for it. That it was
// allowed once is used up: it was recorded before anybody could know.
func (a *attempt) notRun(err error) error {
	e, ok := errors.AsType[*notebook.Error](err)
	if !ok || !a.spent {
		return err
	}
	again := fmt.Sprintf("approval %d was for once and is used up: noted fence approve =%s#%s gives another", a.rec.Approval, a.rec.Page.String()[:12], a.rec.Fence.Short())
	if e.Hint != "" {
		again = e.Hint + "; " + again
	}
	return e.With("%s", again)
}

// dispatch decides on a run and records it, or that it was refused.
func (d *Daemon) dispatch(b *batch, a *attempt) error {
	if d.closing {
		return errStopped
	}
	if err := d.stillIn(a.c); err != nil {
		return err
	}
	if a.replay != nil && slices.ContainsFunc(a.replay.recipe.Pages, d.isPurged) {
		return notebook.Errorf(notebook.CodeStale, "what run %d was handed was purged meanwhile", a.replay.of.Number).With("noted fence run runs the fence as it is now")
	}
	p, i, err := d.findFence(a.Page, a.Fence)
	if err != nil {
		return err
	}
	r := d.closer(a.found.sight).request(a.c, p, i, a.replay.inputs(append(p.inputs(), a.found.input(p.fences[i].Part)...)))
	r.Shown, r.Args = a.Shown, a.Args
	rec := &a.rec
	*rec = newRunRecord(a.c, p, &r)
	if !d.mayAsk(a.c, r.Now) {
		return tooMany(a.c)
	}
	d.approvals.See(r.Now)
	a.grant, a.refused = trust.Decide(r)
	if a.replay != nil {
		rec.Of = a.replay.of.Number
		if a.refused == nil {
			a.grant, a.refused = a.replay.narrow(a.grant)
		}
	}
	if no := a.refused; no != nil {
		rec.State, rec.Reason, rec.Rule = stateRefused, no.Reason, no.Rule
		rec.stale = a.c.role == roleAgent && no.Code == notebook.CodeStale
		return d.refuse(b, rec)
	}
	pages := a.found.pages(a.grant)
	if len(pages) > 0 && d.lostRow(a.found.rows) {
		return errLostRow
	}
	rec.Pages = a.replay.pages(append(rec.Pages, pages...))
	rec.State, rec.Engine, rec.Rule, rec.Approval = stateRunning, r.Engine, a.grant.Rule(), a.grant.Approval()
	rec.Rung, rec.Limits, rec.Capabilities = a.grant.Rung(), a.grant.Limits(), clipCapabilities(a.grant.Capabilities())
	line := rec.line(trust.LedgerRun)
	line.Rung, line.Approval, line.Of = rec.Rung, rec.Approval, rec.Of
	if rec.Number, err = d.record(b, line); err != nil {
		return err
	}
	if a.out, err = d.newLive(rec, d.outputSource(a.c, &r, a.grant)); err != nil {
		return err
	}
	if rec.Approval != 0 {
		if a.spent, err = d.spend(b, rec, rec.Approval); err != nil {
			return err
		}
	}
	d.keepDecisions(b)
	d.keepRun(b, *rec)
	d.running[rec.Number] = &running{
		cancel: a.cancel, by: a.c.label(), approval: rec.Approval, devices: rec.devices, over: make(chan struct{}),
	}
	d.work.Add(1) // its outcome is written before the writer goes
	if a.number != nil {
		a.number.Store(rec.Number)
	}
	b.tell(notebook.Event{Kind: eventRun, Page: rec.Page, Title: rec.Title, Fence: rec.Fence, Run: a.out.run, Text: "run " + rec.name() + " began"})
	return nil
}

// conclude records what a run came to. notRun is why it did not begin after all;
// rest is of its output what nobody was told yet.
func (d *Daemon) conclude(ctx context.Context, b *batch, a *attempt, result *notebook.Result, notRun error, rest []notebook.Event) error {
	rec := &a.rec
	line := rec.line(trust.LedgerOutcome)
	line.Of, line.Rung = rec.Number, rec.Rung
	if notRun != nil {
		rec.State, rec.Reason = stateRefused, notRun.Error()
	} else {
		if result.Verdict == notebook.Cancelled {
			rec.Reason = d.whyStopped(ctx)
			if a.early {
				rec.Reason += ", before its turn came"
			}
		}
		if err := rec.end(result, rec.Reason); err != nil {
			return err
		}
		for i := range rest {
			a.out.learn(b, &rest[i])
		}
		if !a.out.by.IsZero() {
			d.learnResult(b, a.out.by, d.signer.Device(), result)
		}
		line.Verdict, line.Inputs, line.Digest = result.Verdict, result.Inputs, notebook.BodyDigest(rec.Result)
		if err := d.keepOutcome(b, a.c, rec, result, a.grant); err != nil {
			return err
		}
	}
	line.Reason = clip(rec.Reason)
	if _, err := d.record(b, line); err != nil {
		return err
	}
	d.keepRun(b, *rec)
	return nil
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
func (d *Daemon) spend(b *batch, rec *runRecord, id uint64) (spent bool, err error) {
	if err := d.approvals.Spend(id); err != nil {
		return false, err
	}
	spent = slices.ContainsFunc(d.approvals.Of(rec.Page, rec.Fence, time.Now()), func(a notebook.Approval) bool { return a.ID == id && a.Spent })
	if !spent {
		return false, nil
	}
	line := rec.line(trust.LedgerSpent)
	line.Approval, line.Of = id, rec.Number
	_, err = d.record(b, line)
	return true, err
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
		b.tell(rec.event(info))
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
