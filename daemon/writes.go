package daemon

import (
	"context"
	"path/filepath"

	"noted/crdt"
	"noted/notebook"
)

// writes is what a client may do that writes under its own name: everybody but
// a viewer.
type writes struct{ caller }

// change runs a step on one live page and returns what the page is then.
func (c caller) change(id notebook.PageID, do func(b *batch, p *page) error) (*notebook.PageInfo, error) {
	err := c.d.step(func(b *batch) error {
		if err := c.d.stillIn(c); err != nil {
			return err
		}
		p, err := c.d.livePage(id)
		if err != nil {
			return err
		}
		return do(b, p)
	})
	if err != nil {
		return nil, err
	}
	return c.d.pageInfo(id), nil
}

// pageInfo is a page's card as it is now.
func (d *Daemon) pageInfo(id notebook.PageID) *notebook.PageInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	info := d.index.info(id, d.index.cards[id])
	return &info
}

// livePage opens a page that exists and is not deleted. It is called under d.mu.
func (d *Daemon) livePage(id notebook.PageID) (*page, error) {
	if card, known := d.index.cards[id]; !known || card.Deleted {
		return nil, notebook.Errorf(notebook.CodeNotFound, "there is no page %s", id).With("noted page list shows all pages")
	}
	return d.page(id)
}

func (c writes) NewPage(_ context.Context, title string) (*notebook.PageInfo, error) {
	var id notebook.PageID
	err := c.d.step(func(b *batch) error {
		if err := c.d.stillIn(c.caller); err != nil {
			return err
		}
		p, err := c.d.newPage(b, c.door(), title)
		if err == nil {
			id = p.id
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.d.pageInfo(id), nil
}

func (c writes) Edit(_ context.Context, e notebook.Edit) (*notebook.PageInfo, error) {
	door, err := c.door().lower(e.Via)
	if err != nil {
		return nil, err
	}
	return c.change(e.Page, func(b *batch, p *page) error { return c.d.edit(b, door, p, e.Base, e.Splices) })
}

// Put replaces the body: the difference to the base is what the client wrote,
// and everything that both have keeps its authors.
func (c writes) Put(_ context.Context, put notebook.Put) (*notebook.PageInfo, error) {
	door, err := c.door().lower(put.Via)
	if err != nil {
		return nil, err
	}
	if put.AsTyped && door != typed {
		if c.role != roleOwner {
			return nil, denied(c).no("vouch for text as typed")
		}
		if err := c.d.present(put.Presence, "the text I put is mine as if typed"); err != nil {
			return nil, err
		}
		door = typed
	}
	body, err := notebook.NormalizeText(put.Body)
	if err != nil {
		return nil, err
	}
	if len(put.Base) == 0 {
		return nil, errNoBase
	}
	return c.change(put.Page, func(b *batch, p *page) error {
		base, err := p.shadow.TextAt(put.Base)
		if err != nil {
			return err
		}
		return c.d.edit(b, door, p, put.Base, crdt.Diff(base, body))
	})
}

// Append adds text at the end of the page, on a line of its own.
func (c writes) Append(_ context.Context, id notebook.PageID, text, via string) (*notebook.PageInfo, error) {
	door, err := c.door().lower(via)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, notebook.Errorf(notebook.CodeInvalid, "there is nothing to append")
	}
	return c.change(id, func(b *batch, p *page) error {
		body := p.shadow.Text()
		if body != "" && body[len(body)-1] != '\n' {
			text = "\n" + text
		}
		if text[len(text)-1] != '\n' {
			text += "\n"
		}
		return c.d.edit(b, door, p, p.shadow.Revision(), []notebook.Splice{{At: p.shadow.Len(), Insert: text}})
	})
}

func (c writes) Run(ctx context.Context, r notebook.RunRequest) (*notebook.RunInfo, error) {
	return c.d.run(ctx, c.caller, order{RunRequest: r})
}

func (c writes) RunLive(ctx context.Context, r notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error) {
	return c.d.runLive(ctx, c.caller, r, each)
}

func (c writes) Replay(ctx context.Context, number uint64) (*notebook.Replay, error) {
	return c.d.replay(ctx, c.caller, number)
}

func (c writes) Asks(context.Context) ([]notebook.Ask, error) { return c.d.listAsks(c.caller) }

func (c writes) RequestApproval(_ context.Context, r notebook.ProposalRequest, reason string) (*notebook.Ask, error) {
	return c.d.requestApproval(c.caller, r, reason)
}

func (c writes) Cancel(ctx context.Context, number uint64) (*notebook.RunInfo, error) {
	return c.d.cancelRun(ctx, c.caller, number)
}

// keeps is what a person's clients may do with pages.
type keeps struct{ caller }

func (c keeps) Rename(_ context.Context, id notebook.PageID, title string) (*notebook.PageInfo, error) {
	if err := notebook.CheckTitle(title); err != nil {
		return nil, notebook.Errorf(notebook.CodeInvalid, "%v", err)
	}
	return c.change(id, func(b *batch, p *page) error {
		if same := c.d.index.titles[notebook.TitleKey(title)]; len(same) > 0 && (len(same) > 1 || same[0] != id) {
			return notebook.Errorf(notebook.CodeInvalid, "there is a page %q already", notebook.EscapeLine(title)).With("choose another title")
		}
		return c.d.setRegister(b, typed, p, notebook.Set{Register: notebook.RegisterTitle, Text: title})
	})
}

func (c keeps) Delete(_ context.Context, id notebook.PageID) error {
	_, err := c.change(id, func(b *batch, p *page) error {
		return c.d.setRegister(b, typed, p, notebook.Set{Register: notebook.RegisterDeleted, Flag: true})
	})
	return err
}

func (c keeps) Propose(_ context.Context, r notebook.ProposalRequest) (*notebook.Proposal, error) {
	return c.d.propose(c.caller, r)
}

func (c keeps) Approvals(context.Context) ([]notebook.Approval, error) {
	return c.d.allApprovals(), nil
}

func (c keeps) Revoke(_ context.Context, approval uint64) error { return c.d.revoke(approval) }

// acts is what takes the owner's token, and mostly presence too.
type acts struct{ caller }

func (c acts) Import(ctx context.Context, format, dir string, progress func(int, string)) (*notebook.ImportReport, error) {
	if !filepath.IsAbs(dir) {
		return nil, notebook.Errorf(notebook.CodeInvalid, "a folder to import is named by its whole path")
	}
	return c.d.importFolder(ctx, format, dir, progress)
}

func (c acts) Approve(_ context.Context, r notebook.ProposalRequest, digest notebook.Hash, presence notebook.Presence) (*notebook.Approval, error) {
	return c.d.approve(c.caller, r, digest, presence)
}

func (c acts) Answer(_ context.Context, answers []notebook.Answer, yes bool, presence notebook.Presence) ([]notebook.Ask, error) {
	return c.d.answer(c.caller, answers, yes, presence)
}

func (c acts) SealLedger(_ context.Context, presence notebook.Presence) (*notebook.LedgerReport, error) {
	return c.d.sealLedger(presence)
}

func (c acts) Pair(ctx context.Context, each func(notebook.PairEvent) error) error {
	return c.d.pair(ctx, each)
}

func (c acts) Join(ctx context.Context, invitation, name string, each func(notebook.PairEvent) error) error {
	return c.d.join(ctx, invitation, name, each)
}

// Confirm answers a pairing. Taking a device in needs presence; going in with
// a home that has nothing yet does not.
func (c acts) Confirm(_ context.Context, session string, yes bool, presence notebook.Presence) error {
	if yes && c.d.takesIn(session) {
		if err := c.d.present(presence, "the codes are the same"); err != nil {
			return err
		}
	}
	return c.d.confirmPairing(session, yes)
}

func (c acts) RemoveDevice(_ context.Context, device notebook.DeviceID, presence notebook.Presence) error {
	if err := c.d.present(presence, "remove "+c.d.deviceName(device)); err != nil {
		return err
	}
	return c.d.removeDevice(device)
}

func (c acts) Quarantine(_ context.Context, device notebook.DeviceID) (*notebook.QuarantineReport, error) {
	return c.d.quarantine(device)
}

func (c acts) Contradiction(_ context.Context, device notebook.DeviceID) (*notebook.Contradiction, error) {
	return c.d.contradiction(device)
}

func (c acts) Resolve(_ context.Context, device notebook.DeviceID, as notebook.Resolution, presence notebook.Presence) (*notebook.Contradiction, error) {
	return c.d.resolve(device, as, presence)
}

func (c acts) Release(_ context.Context, device notebook.DeviceID, presence notebook.Presence) error {
	return c.d.release(device, presence)
}

func (c acts) SetQuota(_ context.Context, device notebook.DeviceID, change notebook.Quota, presence notebook.Presence) (*notebook.DeviceQuota, error) {
	return c.d.setQuota(device, change, presence)
}

func (c acts) Purge(_ context.Context, ref string, presence notebook.Presence) (*notebook.PageInfo, error) {
	return c.d.purge(ref, presence)
}

func (c acts) Rebuild(_ context.Context, ref string) (*notebook.PageInfo, error) {
	return c.d.rebuild(ref)
}

func (c acts) Agents(context.Context) ([]notebook.AgentInfo, error) { return c.d.agents() }

func (c acts) AddAgent(_ context.Context, name string, presence notebook.Presence) (string, error) {
	if err := checkAgentName(name); err != nil {
		return "", err
	}
	if err := c.d.present(presence, "let "+name+" in"); err != nil {
		return "", err
	}
	return c.d.addAgent(name)
}

func (c acts) RemoveAgent(_ context.Context, name string) error { return c.d.removeAgent(name) }

func (c acts) Engines(context.Context) ([]notebook.EngineInfo, error) {
	return c.d.engines.List(), nil
}

func (c acts) AddEngine(ctx context.Context, file string) (*notebook.EngineInfo, error) {
	if !filepath.IsAbs(file) {
		return nil, notebook.Errorf(notebook.CodeInvalid, "a file to add is named by its whole path")
	}
	return c.d.addEngine(ctx, file)
}

func (c acts) RemoveEngine(ctx context.Context, name string) error {
	return c.d.engines.Remove(ctx, name)
}

func (c acts) AcceptPolicy(_ context.Context, digest notebook.Hash, presence notebook.Presence) (*notebook.PolicyView, error) {
	return c.d.acceptPolicy(digest, presence)
}

func (c acts) Stop(context.Context) error {
	c.d.Stop()
	return nil
}
