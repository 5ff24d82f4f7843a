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

// offered are [page.inputs] and, where nothing is run, that a query could be
// answered, with text by some authors: what it would find is looked for when it is.
func (p *page) offered(found notebook.Origin) []trust.Input {
	return append(p.inputs(), trust.Input{Capability: notebook.CapQuery, Authors: found})
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
	grant, refused := trust.Decide(r)
	info.Decision, info.Reason = trust.Decision(grant, refused)
	if slices.Contains(grant.Capabilities(), notebook.CapQuery) && grant.Approval() == 0 && notebook.Canonical(f.Part.Language) != "query" {
		info.Reason += ", as long as its query finds nothing that others wrote"
	}
	return info
}

// maxListed is how many fences of a page are shown at once: more than anybody
// looks through, few enough that a page whose every line is a fence costs little.
const maxListed = 1000

// fenceInfos are the fences of a page, the first maxListed of them, with their
// newest runs here.
func (d *Daemon) fenceInfos(c caller, s *sight, p *page, from, to int) (all []notebook.FenceInfo, err error) {
	inputs, closer := p.offered(nil), d.closer(s)
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
func (d *Daemon) oneFence(c caller, s *sight, p *page, i int) (*notebook.FenceInfo, error) {
	all, err := d.fenceInfos(c, s, p, i, i+1)
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// explain answers why a fence stands as it does, and what would change it.
func (d *Daemon) explain(c caller, s *sight, p *page, i int) (*notebook.Explanation, error) {
	info, err := d.oneFence(c, s, p, i)
	if err != nil {
		return nil, err
	}
	f := &p.fences[i]
	r := d.closer(nil).request(c, p, i, nil)
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
