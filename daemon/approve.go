package daemon

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"noted/notebook"
	"noted/trust"
)

// proposal is what approving a fence for a requester would mean. It is called
// under d.mu.
func (d *Daemon) proposal(s *sight, by trust.Requester, r notebook.ProposalRequest) (trust.Proposal, trust.Request, error) {
	p, i, err := d.findFence(r.Page, r.Fence)
	if err != nil {
		return trust.Proposal{}, trust.Request{}, err
	}
	closer := d.closer(s)
	req := closer.request(caller{d: d}, p, i, nil)
	// A query is approved whoever wrote what it finds, so that may be anybody.
	req.By, req.Inputs = by, p.offered(notebook.NewOrigin(notebook.Author{}))
	closer.reach(&req, &r)
	proposal, refused := trust.Propose(req, r)
	if refused != nil {
		return trust.Proposal{}, req, refused.Unwrap()
	}
	return proposal, req, nil
}

func (c caller) requester() trust.Requester {
	if c.trigger != (trust.Requester{}) {
		return c.trigger
	}
	return trust.Requester{Role: c.role.String(), Name: c.name, Client: c.id}
}

// the person is who runs what the owner approves.
var person = trust.Requester{Role: roleOwner.String()}

func (d *Daemon) propose(_ caller, r notebook.ProposalRequest) (*notebook.Proposal, error) {
	var proposal trust.Proposal
	var err error
	d.see(func(s *sight) { proposal, _, err = d.proposal(s, person, r) })
	if err != nil {
		return nil, err
	}
	view := proposal.View()
	return &view, nil
}

// approve records a person's yes to what they were shown.
func (d *Daemon) approve(_ caller, r notebook.ProposalRequest, digest notebook.Hash, presence notebook.Presence) (*notebook.Approval, error) {
	present, err := d.proof(presence, "approve "+short(digest))
	if err != nil {
		return nil, err
	}
	var given []notebook.Approval
	s := d.see(func(s *sight) { _, _, _ = d.proposal(s, person, r) })
	err = d.step(func(b *batch) error {
		given, err = d.give(b, s, []wish{{person, r, digest}}, present)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &given[0], nil
}

// short is as much of a digest as a person compares.
func short(h notebook.Hash) string { return h.String()[:12] }

// wish is an approval that a person wants to give.
type wish struct {
	by     trust.Requester // whose runs it allows
	r      notebook.ProposalRequest
	digest notebook.Hash // that the person saw
}

// give makes proposals again and approves them, if all still are what was shown.
func (d *Daemon) give(b *batch, s *sight, all []wish, present trust.Present) ([]notebook.Approval, error) {
	var proposals []trust.Proposal
	var shown []notebook.Hash
	var requests []trust.Request
	for _, w := range all {
		proposal, req, err := d.proposal(s, w.by, w.r)
		if err != nil {
			return nil, err
		}
		proposals, shown, requests = append(proposals, proposal), append(shown, w.digest), append(requests, req)
	}
	given, err := d.approvals.Give(proposals, shown, present, time.Now())
	if err != nil {
		return nil, err
	}
	defer d.keepDecisions(b)
	for i := range given {
		a := &given[i]
		a.Title = d.index.cards[a.Page].Title
		_, err := d.record(b, trust.LedgerRecord{
			Kind: trust.LedgerApproval, Page: a.Page, Title: clip(a.Title), Fence: a.Fence, Language: clip(requests[i].Closure.Main().Language),
			Closure: a.Closure, Rung: a.Rung, Client: all[i].by.String(), Approval: a.ID, Digest: a.Digest,
			Standing: clip(proposals[i].View().Standing),
		})
		if err != nil {
			return nil, err
		}
	}
	return given, nil
}

// allApprovals are the approvals that are kept, newest first.
func (d *Daemon) allApprovals() []notebook.Approval {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.approvals.List(time.Now())
	for i := range all {
		all[i].Title = d.index.cards[all[i].Page].Title
	}
	return all
}

// revoke takes an approval back. When it returns, the runs that rested on it are
// dead, also one for which it was spent.
func (d *Daemon) revoke(id uint64) error {
	var stopping stopping
	err := d.step(func(b *batch) error {
		if err := d.approvals.Revoke(id); err != nil {
			return err
		}
		stopping = d.stopRuns(stopped(fmt.Sprintf("approval %d was revoked", id)), func(r *running) bool { return r.approval == id })
		d.keepDecisions(b)
		_, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerRevoked, Approval: id, Reason: "revoked by the person"})
		return err
	})
	stopping.wait()
	return err
}

// requestApproval opens an ask. An agent is told nothing of what is outside of
// the notebook, not even whether it is there: the person is, who reads the ask.
func (d *Daemon) requestApproval(c caller, r notebook.ProposalRequest, reason string) (*notebook.Ask, error) {
	s := &sight{blind: true}
	if c.role != roleAgent {
		s = d.see(func(s *sight) { _, _, _ = d.proposal(s, c.requester(), r) })
	}
	var view *notebook.Ask
	err := d.step(func(b *batch) error {
		if err := d.stillIn(c); err != nil {
			return err
		}
		if !d.mayAsk(c, time.Now()) {
			return tooMany(c)
		}
		if _, _, err := d.proposal(s, c.requester(), r); err != nil {
			return err
		}
		ask, err := d.asks.Open(c.requester(), r, reason, time.Now())
		if err != nil {
			return err
		}
		d.keepDecisions(b)
		if view, err = d.askView(c, s, ask); err != nil {
			return err
		}
		b.tell(notebook.Event{Kind: "ask", Page: r.Page, Title: view.Title, Fence: r.Fence, Ask: view, Text: notebook.EscapeLine(view.Client) + " asks for an approval: noted ask list"})
		return nil
	})
	return view, err
}

// voidAsks closes the asks about fences that are no longer what was asked about,
// where a changed page may be why: the fence's own, or one that it includes. It
// is called under d.mu, when the changed pages are saved.
func (d *Daemon) voidAsks(b *batch) {
	void := false
	for _, a := range d.asks.List() {
		if a.State != trust.AskOpen || len(b.dirty)+len(b.gone) == 0 {
			continue
		}
		now, parts := d.closureOf(a.Request.Page, a.Request.Fence)
		if b.dirty[a.Request.Page] != nil || slices.Contains(b.gone, a.Request.Page) || parts {
			void = len(d.asks.Changed(a.Request.Page, a.Request.Fence, now)) > 0 || void
		}
	}
	if void {
		d.keepDecisions(b)
	}
}

// closureOf is the hash of what a fence is now, zero if it is gone, and whether
// it includes others.
func (d *Daemon) closureOf(id notebook.PageID, fence notebook.FenceID) (now notebook.Hash, includes bool) {
	p, i, err := d.findFence(id, fence)
	if err != nil {
		return now, false
	}
	part := p.fences[i].Part
	if names, err := part.Includes(); err != nil || len(names) == 0 {
		return notebook.Closure{part}.Hash(), false
	}
	return d.closer(nil).request(caller{d: d}, p, i, nil).Shown, true
}

// askView is an ask as c sees it, with what an approval of it would be now. It is
// called under d.mu.
func (d *Daemon) askView(c caller, s *sight, a trust.Ask) (*notebook.Ask, error) {
	s.room += lookThings // of its own: no ask takes that of another
	view := &notebook.Ask{ID: a.ID, Client: a.Client, Reason: a.Reason, Asked: a.Asked, State: a.State, Title: d.index.cards[a.Request.Page].Title}
	view.Fence = notebook.FenceInfo{Page: a.Request.Page, ID: a.Request.Fence, Hash: a.Request.Shown}
	p, i, err := d.findFence(a.Request.Page, a.Request.Fence)
	if err != nil {
		return view, nil // the fence is gone; the ask is still shown
	}
	info, err := d.oneFence(c, s, p, i)
	if err != nil {
		return nil, err
	}
	view.Fence = *info
	if a.State == trust.AskOpen {
		proposal, _, err := d.proposal(s, a.By(), a.Request)
		if err != nil {
			view.Fence.Decision, view.Fence.Reason = "refuse", "it cannot be approved now: "+err.Error()
			return view, nil
		}
		view.Proposal = proposal.View()
		if s.blind && slices.ContainsFunc(view.Proposal.Capabilities, notebook.Capability.Outside) {
			view.Proposal.Digest = notebook.Hash{} // it is not that of the person's proposal
		}
	}
	return view, nil
}

// asker is who made an ask, to see what they may.
func (d *Daemon) asker(a trust.Ask) caller {
	by := a.By()
	c := caller{d: d, name: by.Name, id: by.Client}
	for c.role = roleOwner; c.role < roleViewer && c.role.String() != by.Role; c.role++ {
	}
	return c
}

// listAsks are all asks; an agent sees its own.
func (d *Daemon) listAsks(c caller) (all []notebook.Ask, err error) {
	if c.role == roleAgent {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.askViews(c, &sight{blind: true})
	}
	d.see(func(s *sight) { all, err = d.askViews(c, s) })
	return all, err
}

// askViews are the asks that c sees. It is called under d.mu.
func (d *Daemon) askViews(c caller, s *sight) (all []notebook.Ask, err error) {
	for _, a := range d.asks.List() {
		if c.role == roleAgent && a.By() != c.requester() {
			continue
		}
		view, err := d.askView(c, s, a)
		if err != nil {
			return nil, err
		}
		all = append(all, *view)
	}
	return all, nil
}

// maxAnswers is how many asks are answered in one act: more than a person reads
// with care.
const maxAnswers = 32

// answered names what a yes to several asks is to: each of them and what was
// shown of it.
func answered(answers []notebook.Answer) notebook.Hash {
	var parts [][]byte
	for _, a := range answers {
		parts = append(parts, binary.BigEndian.AppendUint64(nil, a.Ask), a.Digest[:])
	}
	return notebook.Digest("noted/answers/v1", parts...)
}

// Agreement is the act that a person proves to be there for who says yes to
// asks: it names the digest that was shown, or one over all of them.
func Agreement(answers []notebook.Answer) string {
	if len(answers) == 1 {
		return "approve " + short(answers[0].Digest)
	}
	return fmt.Sprintf("approve these %d: %s", len(answers), short(answered(answers)))
}

// answer is a person's answer to asks, to all of them or to none. A yes takes
// presence, and the digest of what the person saw of each.
func (d *Daemon) answer(c caller, answers []notebook.Answer, yes bool, presence notebook.Presence) ([]notebook.Ask, error) {
	if len(answers) == 0 || len(answers) > maxAnswers {
		return nil, notebook.Errorf(notebook.CodeInvalid, "%d asks where 1 to %d are answered at once", len(answers), maxAnswers).
			With("noted ask list lists those that are open")
	}
	for i, a := range answers {
		if slices.ContainsFunc(answers[:i], func(b notebook.Answer) bool { return b.Ask == a.Ask }) {
			return nil, notebook.Errorf(notebook.CodeInvalid, "ask %d is named twice", a.Ask).With("name each ask once")
		}
	}
	var present trust.Present
	var err error
	if yes {
		if present, err = d.proof(presence, Agreement(answers)); err != nil {
			return nil, err
		}
	}
	s := d.see(func(s *sight) {
		for _, a := range answers {
			if ask, err := d.asks.Get(a.Ask); err == nil {
				_, _ = d.askView(c, s, ask)
			}
		}
	})
	var views []notebook.Ask
	err = d.step(func(b *batch) error {
		var wishes []wish
		for _, a := range answers {
			ask, err := d.asks.Get(a.Ask)
			if err != nil {
				return err
			}
			if err := ask.Answerable(); err != nil {
				return err
			}
			wishes = append(wishes, wish{ask.By(), ask.Request, a.Digest})
		}
		if yes {
			if _, err := d.give(b, s, wishes, present); err != nil {
				return err
			}
		}
		for _, a := range answers {
			view, err := d.settle(b, c, s, a.Ask, yes)
			if err != nil {
				return err
			}
			views = append(views, *view)
		}
		d.keepDecisions(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return views, nil
}

// settle closes one ask.
func (d *Daemon) settle(b *batch, c caller, s *sight, id uint64, yes bool) (*notebook.Ask, error) {
	ask, err := d.asks.Answer(id, yes)
	if err != nil {
		return nil, err
	}
	if !yes {
		if _, err := d.record(b, trust.LedgerRecord{
			Kind: trust.LedgerDenial, Page: ask.Request.Page, Title: d.index.cards[ask.Request.Page].Title,
			Fence: ask.Request.Fence, Closure: ask.Request.Shown, Client: ask.Client,
		}); err != nil {
			return nil, err
		}
	}
	// Who asked is told what they may see.
	told, err := d.askView(d.asker(ask), &sight{blind: true}, ask)
	if err != nil {
		return nil, err
	}
	b.tell(notebook.Event{Kind: "ask", Page: ask.Request.Page, Title: told.Title, Fence: ask.Request.Fence, Ask: told, Text: "ask " + told.State})
	return d.askView(c, s, ask)
}
