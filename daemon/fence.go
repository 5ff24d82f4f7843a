package daemon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"noted/exec"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// findFence finds a live fence of a live page. It is called under d.mu.
func (d *Daemon) findFence(id notebook.PageID, fence notebook.FenceID) (*page, int, error) {
	p, err := d.livePage(id)
	if err != nil {
		return nil, 0, err
	}
	fences, err := p.readFences()
	if err != nil {
		return nil, 0, notebook.Errorf(notebook.CodeFailed, "the page's fences cannot be read: %v", err)
	}
	for i := range fences {
		if fences[i].ID == fence {
			return p, i, nil
		}
	}
	return nil, 0, notebook.Errorf(notebook.CodeNotFound, "the page has no such fence any more").With("noted fence list PAGE lists its fences")
}

// inputs are what a fence of a page could be handed.
func (p *page) inputs() []trust.Input {
	return []trust.Input{
		{Capability: notebook.CapPage, Value: []byte(p.shadow.Text()), Authors: p.shadow.Authors()},
		{Capability: notebook.CapClock, Value: strconv.AppendInt(nil, time.Now().UnixMilli(), 10)},
		{Capability: notebook.CapSeed, Value: seed()},
	}
}

// request is everything that a decision on a fence rests on; without inputs, on
// what it stands. It is called under d.mu.
func (l *closer) request(c caller, p *page, i int, inputs []trust.Input) trust.Request {
	d, f := l.d, &p.fences[i]
	r := trust.Request{
		Notebook: d.log.Notebook(), Self: d.signer.Device(), Roster: d.log.Roster(),
		Page: p.id, Fence: f.ID, Closure: notebook.Closure{f.Part}, Origin: f.Origin,
		Own: p.own.Has(f), Closed: f.Closed(),
		Engine: exec.Engine(notebook.Canonical(f.Part.Language)),
		By:     c.requester(),
		Inputs: inputs, Policy: d.policy, Approvals: d.approvals, Quarantine: d.quarantined, Now: time.Now(),
	}
	l.closes(&r)
	if inputs != nil {
		l.reach(&r, nil)
	}
	return r
}

// fenceInfo is the Nth fence of a page with what noted thinks of it.
func (l *closer) fenceInfo(c caller, p *page, i int, inputs []trust.Input) *notebook.FenceInfo {
	f := &p.fences[i]
	r := l.request(c, p, i, inputs)
	info := &notebook.FenceInfo{
		Page: p.id, ID: f.ID, Number: i + 1, Language: f.Part.Language, Info: f.Part.Info, Code: f.Part.Code,
		Hash: r.Shown, Standing: r.Standing().String(), Includes: r.Parts(),
		Approved: l.d.approvals.Of(p.id, f.ID, r.Now),
	}
	if l.short {
		info.Unseen, info.Hash = true, notebook.Hash{}
	}
	r.Suppose()
	info.Decision, info.Reason = trust.Decision(trust.Decide(r))
	return info
}

// maxListed is how many fences of a page are shown at once: more than anybody
// looks through, few enough that a page whose every line is a fence costs little.
const maxListed = 1000

// fenceInfos are the fences of a page, the first maxListed of them, with their
// newest runs here.
func (d *Daemon) fenceInfos(c caller, p *page, from, to int) (all []notebook.FenceInfo, err error) {
	inputs, closer := p.inputs(), d.closer()
	err = d.db.View(func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			info := closer.fenceInfo(c, p, i, inputs)
			last, err := d.lastRun(c, tx, info.ID)
			if err != nil {
				return err
			}
			if last != nil {
				info.Last = last
				info.Stale = last.Result.Closure != info.Hash && !info.Unseen
			}
			all = append(all, *info)
		}
		return nil
	})
	return all, err
}

// oneFence is one fence of a page with its newest run here.
func (d *Daemon) oneFence(c caller, p *page, i int) (*notebook.FenceInfo, error) {
	all, err := d.fenceInfos(c, p, i, i+1)
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// explain answers why a fence stands as it does, and what would change it.
func (d *Daemon) explain(c caller, p *page, i int) (*notebook.Explanation, error) {
	info, err := d.oneFence(c, p, i)
	if err != nil {
		return nil, err
	}
	f := &p.fences[i]
	r := d.closer().request(c, p, i, nil)
	e := &notebook.Explanation{Fence: *info, Ranges: p.shadow.Ranges(f), Closure: r.Closure}
	self, roster := d.signer.Device(), d.log.Roster()
	for k := range e.Ranges {
		origin := notebook.NewOrigin(e.Ranges[k].Author)
		e.Ranges[k].Name = trust.Stand(self, roster, origin, true, true).String()
	}
	typedOnly := f.Origin.Only(d.author(typed))
	switch {
	case info.Standing == "local":
		e.Rule = "every character was typed on this device, and so was the fence"
		if len(r.Included) > 0 {
			e.Rule += ", and everything that it includes"
		}
		e.Change = []string{"an edit by anybody else, or a paste, makes it foreign"}
	case typedOnly && f.Closed() && p.own.Has(f):
		e.Rule = "this fence was typed here, and what it includes stands with it: " + foreignParts(info.Includes)
		e.Change = []string{"approve the exact bytes of all of it: noted fence approve", "include what you typed yourself: noted fence include", "see why an included fence stands so: noted fence why"}
	case typedOnly && !f.Closed():
		e.Rule = "every character was typed here, but no closing line of its own ends the fence: where it ends is up to others"
		e.Change = []string{"type a closing line"}
	case typedOnly:
		e.Rule = "every character was typed here, but that they are a fence is not this device's doing"
		e.Change = []string{"type its opening line anew", "approve its exact bytes: noted fence approve"}
	case slices.ContainsFunc(f.Origin, func(a notebook.Author) bool { return a.Device == self && a.Class == notebook.Moved }):
		e.Rule = fmt.Sprintf("some of it reads like text that others had here before it was typed or pasted, and stands as theirs: %s", info.Standing)
		e.Change = toOwn
	default:
		e.Rule = fmt.Sprintf("some of it was written or deleted by %s", info.Standing)
		e.Change = toOwn
	}
	return e, nil
}

// foreignParts names the included fences that do not stand local.
func foreignParts(all []notebook.Included) string {
	var names []string
	for _, in := range all {
		if in.Standing != "local" {
			names = append(names, fmt.Sprintf("%s#%s stands %s", notebook.EscapeLine(in.Title), in.Fence.Short(), in.Standing))
		}
	}
	return strings.Join(names, ", ")
}

// toOwn is what a person can do about a fence that is in part another's.
var toOwn = []string{"approve its exact bytes: noted fence approve", "write a fence in your own words, in another place: lines that read like theirs stay theirs"}

// runRecord is a run or a refusal as it is kept: under its number, and as the
// newest of its fence.
type runRecord struct {
	_        struct{} `cbor:",toarray"`
	Version  uint8
	Number   uint64
	Time     int64 // Unix milliseconds of the request
	Page     notebook.PageID
	Title    string
	Fence    notebook.FenceID
	Language string
	Closure  notebook.Hash
	Standing string
	Client   string
	By       string // which of the agents that had this name: see [clientID]; empty of others
	State    string
	Reason   string
	Result   []byte // encoded; empty while there is none

	devices []notebook.DeviceID // whose text it is, sources of moved text included; not kept
	stale   bool                // an agent asked for other bytes than are there; not kept
}

const (
	runVersion   = 2
	maxRunRecord = notebook.MaxResult + 16<<10

	stateRunning = "running"
	stateDone    = "done"
	stateRefused = "refused"
)

func (r *runRecord) info() (*notebook.RunInfo, error) {
	info := &notebook.RunInfo{
		Number: r.Number, Page: r.Page, Title: r.Title, Fence: r.Fence, Language: r.Language,
		Standing: r.Standing, Client: r.Client, State: r.State, Reason: r.Reason,
		Result: notebook.Result{Fence: r.Fence, Closure: r.Closure, Started: r.Time},
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

func openRun(b []byte) (*runRecord, error) {
	r := new(runRecord)
	if err := notebook.Unmarshal(b, r, maxRunRecord); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if r.Version != runVersion {
		return nil, fmt.Errorf("run %d was kept by a newer noted: update noted", r.Number)
	}
	return r, nil
}

// outcomeWindow is for how many records of the ledger a run is kept with its
// output: some thousand runs, of which each takes two or three. The ledger keeps
// the rest for ever, without.
const outcomeWindow = 3000

// keepRun keeps a run under its number, and as the newest of its fence unless an
// agent asked for bytes that are not there.
func (d *Daemon) keepRun(b *batch, r runRecord) {
	r.Version = runVersion
	// A page may name a language, and a reason repeat it, that no record has room for.
	r.Language, r.Standing, r.Reason = clip(r.Language), clip(r.Standing), clip(r.Reason)
	b.write(func(tx *store.Tx) error {
		value, err := notebook.Marshal(&r)
		if err != nil {
			return err
		}
		if err := tx.Put(store.Outcomes, store.Number(r.Number), value); err != nil {
			return err
		}
		if r.stale {
			return pruneOutcomes(tx, r.Number)
		}
		if err := tx.Put(store.Results, resultKey(r.Fence, d.signer.Device()), value); err != nil {
			return err
		}
		return pruneOutcomes(tx, r.Number)
	})
}

// pruneOutcomes forgets what is older than the last number's window.
func pruneOutcomes(tx *store.Tx, last uint64) error {
	for r, err := range tx.All(store.Outcomes, nil) {
		if err != nil {
			return err
		}
		if r.Number()+outcomeWindow > last {
			return nil
		}
		if err := tx.Delete(store.Outcomes, r.Key); err != nil {
			return err
		}
	}
	return nil
}

// lastRun is the newest run of a fence on this device that c is shown, nil if
// there is none. What came of a strict run has nothing that the page has not.
func (d *Daemon) lastRun(c caller, tx *store.Tx, fence notebook.FenceID) (*notebook.RunInfo, error) {
	b, err := tx.Get(store.Results, resultKey(fence, d.signer.Device()))
	if err != nil || b == nil {
		return nil, err
	}
	r, err := openRun(b)
	if err != nil {
		return nil, err
	}
	info, err := r.info()
	if err != nil || !c.sees(r) && info.Result.Rung != notebook.Strict {
		return nil, err
	}
	return info, nil
}

// sees reports whether a run is this caller's business: an agent sees its own,
// and not those of an agent that had its name before.
func (c caller) sees(r *runRecord) bool {
	return c.role != roleAgent || r.Client == c.label() && r.By == c.id
}

// runs are the newest runs that c sees.
func (d *Daemon) runs(c caller, most int) (all []notebook.RunInfo, err error) {
	d.mu.Lock()
	last := d.ledger.Number
	d.mu.Unlock()
	records, err := d.newestRuns(last, most, c.sees)
	for _, r := range records {
		info, wrong := r.info()
		if wrong != nil {
			return nil, wrong
		}
		all = append(all, *info)
	}
	return all, err
}

// newestRuns are the runs whose numbers are up to last.
func (d *Daemon) newestRuns(last uint64, most int, sees func(*runRecord) bool) (all []*runRecord, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		for n := last; n > 0 && n+outcomeWindow > last && len(all) < most; n-- {
			b, err := tx.Get(store.Outcomes, store.Number(n))
			if err != nil {
				return err
			}
			if b == nil {
				continue // of the ledger's other records
			}
			r, err := openRun(b)
			if err != nil {
				return err
			}
			if sees(r) {
				all = append(all, r)
			}
		}
		return nil
	})
	return all, err
}

func (d *Daemon) runInfo(c caller, number uint64) (info *notebook.RunInfo, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		b, err := tx.Get(store.Outcomes, store.Number(number))
		if err != nil {
			return err
		}
		none := notebook.Errorf(notebook.CodeNotFound, "there is no run %d, or its output is kept no longer", number).With("noted run list shows those that are")
		if b == nil {
			return none
		}
		r, err := openRun(b)
		if err != nil {
			return err
		}
		if !c.sees(r) {
			return none
		}
		info, err = r.info()
		return err
	})
	return info, err
}
