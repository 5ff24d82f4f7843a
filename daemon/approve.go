package daemon

import (
	"time"

	"noted/notebook"
	"noted/trust"
)

// proposal is what approving a fence for a requester would mean. It is called
// under d.mu.
func (d *Daemon) proposal(by trust.Requester, r notebook.ProposalRequest) (trust.Proposal, trust.Request, error) {
	p, i, err := d.findFence(r.Page, r.Fence)
	if err != nil {
		return trust.Proposal{}, trust.Request{}, err
	}
	req := d.request(caller{d: d}, p, i, p.inputs())
	req.By = by
	proposal, refused := trust.Propose(req, r)
	if refused != nil {
		return trust.Proposal{}, req, refused.Unwrap()
	}
	return proposal, req, nil
}

func (c caller) requester() trust.Requester {
	return trust.Requester{Role: c.role.String(), Name: c.name}
}

// the person is who runs what the owner approves.
var person = trust.Requester{Role: roleOwner.String()}

func (d *Daemon) propose(_ caller, r notebook.ProposalRequest) (*notebook.Proposal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	proposal, _, err := d.proposal(person, r)
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
	var approval notebook.Approval
	err = d.step(func(b *batch) error {
		approval, err = d.give(b, person, r, digest, present)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &approval, nil
}

// short is as much of a digest as a person compares.
func short(h notebook.Hash) string { return h.String()[:12] }

// give makes a proposal again and approves it, if it still is what was shown.
func (d *Daemon) give(b *batch, by trust.Requester, r notebook.ProposalRequest, digest notebook.Hash, present trust.Present) (notebook.Approval, error) {
	proposal, req, err := d.proposal(by, r)
	if err != nil {
		return notebook.Approval{}, err
	}
	approval, err := d.approvals.Give(proposal, digest, present, time.Now())
	if err != nil {
		return notebook.Approval{}, err
	}
	approval.Title = d.index.cards[r.Page].Title
	_, err = d.record(b, trust.LedgerRecord{
		Kind: trust.LedgerApproval, Page: r.Page, Title: clip(approval.Title), Fence: r.Fence, Language: clip(req.Closure[0].Language),
		Closure: approval.Closure, Rung: approval.Rung, Client: by.String(), Approval: approval.ID, Digest: approval.Digest,
		Standing: clip(proposal.View().Standing),
	})
	d.keepDecisions(b)
	return approval, err
}

func (d *Daemon) revoke(id uint64) error {
	return d.step(func(b *batch) error {
		if err := d.approvals.Revoke(id); err != nil {
			return err
		}
		d.keepDecisions(b)
		_, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerRevoked, Approval: id, Reason: "revoked by the person"})
		return err
	})
}

// requestApproval opens an ask.
func (d *Daemon) requestApproval(c caller, r notebook.ProposalRequest, reason string) (*notebook.Ask, error) {
	var view *notebook.Ask
	err := d.step(func(b *batch) error {
		if _, _, err := d.proposal(c.requester(), r); err != nil {
			return err
		}
		ask, err := d.asks.Open(c.requester(), r, reason, time.Now())
		if err != nil {
			return err
		}
		d.keepDecisions(b)
		if view, err = d.askView(ask); err != nil {
			return err
		}
		b.tell(notebook.Event{Kind: "ask", Page: r.Page, Title: view.Title, Fence: r.Fence, Ask: view, Text: notebook.EscapeLine(view.Client) + " asks for an approval: noted ask list"})
		return nil
	})
	return view, err
}

// voidAsks closes the asks about fences of a page that are no longer what was
// asked about. It is called under d.mu.
func (d *Daemon) voidAsks(b *batch, p *page) {
	void := false
	for _, a := range d.asks.List() {
		if a.State != trust.AskOpen || a.Request.Page != p.id {
			continue
		}
		var now notebook.Hash // zero: the fence is gone
		if _, i, err := d.findFence(p.id, a.Request.Fence); err == nil {
			now = notebook.Closure{p.fences[i].Part}.Hash()
		}
		void = len(d.asks.Changed(p.id, a.Request.Fence, now)) > 0 || void
	}
	if void {
		d.keepDecisions(b)
	}
}

// askView is an ask with what an approval of it would be now. It is called under d.mu.
func (d *Daemon) askView(a trust.Ask) (*notebook.Ask, error) {
	view := &notebook.Ask{ID: a.ID, Client: a.Client, Reason: a.Reason, Asked: a.Asked, State: a.State, Title: d.index.cards[a.Request.Page].Title}
	view.Fence = notebook.FenceInfo{Page: a.Request.Page, ID: a.Request.Fence, Hash: a.Request.Shown}
	p, i, err := d.findFence(a.Request.Page, a.Request.Fence)
	if err != nil {
		return view, nil // the fence is gone; the ask is still shown
	}
	info, err := d.oneFence(caller{d: d, role: roleOwner}, p, i)
	if err != nil {
		return nil, err
	}
	view.Fence = *info
	if a.State == trust.AskOpen {
		if proposal, _, err := d.proposal(a.By(), a.Request); err == nil {
			view.Proposal = proposal.View()
		}
	}
	return view, nil
}

// listAsks are all asks; an agent sees its own.
func (d *Daemon) listAsks(c caller) ([]notebook.Ask, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []notebook.Ask
	for _, a := range d.asks.List() {
		if c.role == roleAgent && a.By() != c.requester() {
			continue
		}
		view, err := d.askView(a)
		if err != nil {
			return nil, err
		}
		all = append(all, *view)
	}
	return all, nil
}

// answer is a person's answer to an ask. A yes takes presence, and the digest
// of what the person saw.
func (d *Daemon) answer(_ caller, id uint64, yes bool, digest notebook.Hash, presence notebook.Presence) (*notebook.Ask, error) {
	var present trust.Present
	var err error
	if yes {
		if present, err = d.proof(presence, "approve "+short(digest)); err != nil {
			return nil, err
		}
	}
	var view *notebook.Ask
	err = d.step(func(b *batch) error {
		ask, err := d.asks.Get(id)
		if err != nil {
			return err
		}
		if yes && ask.State == trust.AskOpen {
			if _, err := d.give(b, ask.By(), ask.Request, digest, present); err != nil {
				return err
			}
		}
		if ask, err = d.asks.Answer(id, yes); err != nil {
			return err
		}
		if !yes {
			if _, err := d.record(b, trust.LedgerRecord{
				Kind: trust.LedgerDenial, Page: ask.Request.Page, Title: d.index.cards[ask.Request.Page].Title,
				Fence: ask.Request.Fence, Closure: ask.Request.Shown, Client: ask.Client,
			}); err != nil {
				return err
			}
		}
		d.keepDecisions(b)
		if view, err = d.askView(ask); err != nil {
			return err
		}
		b.tell(notebook.Event{Kind: "ask", Page: ask.Request.Page, Title: view.Title, Fence: ask.Request.Fence, Ask: view, Text: "ask " + view.State})
		return nil
	})
	return view, err
}
