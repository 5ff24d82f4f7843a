package daemon

import (
	"context"

	"noted/notebook"
	"noted/trust"
)

// Client is the daemon as one token may use it. What a client may not do, its
// type does not do: every method that its role lacks comes from [denied].
type Client interface {
	backend
	Role() string
	Name() string // of an agent; empty otherwise
}

// Open turns a token into what its holder may do.
func (d *Daemon) Open(token string) (Client, error) {
	c, err := d.identify(token)
	if err != nil {
		return nil, err
	}
	who := caller{d: d, role: c.Role, name: c.Name}
	if c.Role == roleAgent {
		who.id = clientID(tokenKey(token))
	}
	viewer := viewer{reads{who}, denied{who}}
	switch c.Role {
	case roleOwner:
		return owner{browser{viewer, writes{who}, keeps{who}}, acts{who}}, nil
	case roleBrowser:
		return browser{viewer, writes{who}, keeps{who}}, nil
	case roleAgent:
		return agent{viewer, writes{who}}, nil
	case roleViewer:
		return viewer, nil
	}
	return nil, errToken
}

// backend is everything that any client may do; the local doors declare the
// same and are satisfied by it.
type backend interface {
	Pages(ctx context.Context) ([]notebook.PageInfo, error)
	Page(ctx context.Context, ref string) (*notebook.PageView, error)
	Query(ctx context.Context, text string) (*notebook.Rows, error)
	NewPage(ctx context.Context, title string) (*notebook.PageInfo, error)
	Edit(ctx context.Context, e notebook.Edit) (*notebook.PageInfo, error)
	Put(ctx context.Context, p notebook.Put) (*notebook.PageInfo, error)
	Append(ctx context.Context, page notebook.PageID, text, via string) (*notebook.PageInfo, error)
	Rename(ctx context.Context, page notebook.PageID, title string) (*notebook.PageInfo, error)
	Delete(ctx context.Context, page notebook.PageID) error
	Purge(ctx context.Context, ref string, presence notebook.Presence) (*notebook.PageInfo, error)
	Rebuild(ctx context.Context, ref string) (*notebook.PageInfo, error)
	Import(ctx context.Context, format, dir string, progress func(done int, path string)) (*notebook.ImportReport, error)
	Why(ctx context.Context, page notebook.PageID, fence notebook.FenceID) (*notebook.Explanation, error)
	Run(ctx context.Context, r notebook.RunRequest) (*notebook.RunInfo, error)
	RunLive(ctx context.Context, r notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error)
	Propose(ctx context.Context, r notebook.ProposalRequest) (*notebook.Proposal, error)
	Approve(ctx context.Context, r notebook.ProposalRequest, digest notebook.Hash, presence notebook.Presence) (*notebook.Approval, error)
	Approvals(ctx context.Context) ([]notebook.Approval, error)
	Revoke(ctx context.Context, approval uint64) error
	Asks(ctx context.Context) ([]notebook.Ask, error)
	RequestApproval(ctx context.Context, r notebook.ProposalRequest, reason string) (*notebook.Ask, error)
	Answer(ctx context.Context, answers []notebook.Answer, yes bool, presence notebook.Presence) ([]notebook.Ask, error)
	Runs(ctx context.Context, most int) ([]notebook.RunInfo, error)
	RunInfo(ctx context.Context, number uint64) (*notebook.RunInfo, error)
	Cancel(ctx context.Context, number uint64) (*notebook.RunInfo, error)
	Replay(ctx context.Context, number uint64) (*notebook.Replay, error)
	VerifyLedger(ctx context.Context) (*notebook.LedgerReport, error)
	SealLedger(ctx context.Context, presence notebook.Presence) (*notebook.LedgerReport, error)
	Devices(ctx context.Context) ([]notebook.DeviceInfo, error)
	Quotas(ctx context.Context) ([]notebook.DeviceQuota, error)
	SetQuota(ctx context.Context, device notebook.DeviceID, change notebook.Quota, presence notebook.Presence) (*notebook.DeviceQuota, error)
	Pair(ctx context.Context, each func(notebook.PairEvent) error) error
	Join(ctx context.Context, invitation, name string, each func(notebook.PairEvent) error) error
	Confirm(ctx context.Context, session string, yes bool, presence notebook.Presence) error
	RemoveDevice(ctx context.Context, device notebook.DeviceID, presence notebook.Presence) error
	Quarantine(ctx context.Context, device notebook.DeviceID) (*notebook.QuarantineReport, error)
	Release(ctx context.Context, device notebook.DeviceID, presence notebook.Presence) error
	Contradiction(ctx context.Context, device notebook.DeviceID) (*notebook.Contradiction, error)
	Resolve(ctx context.Context, device notebook.DeviceID, as notebook.Resolution, presence notebook.Presence) (*notebook.Contradiction, error)
	Agents(ctx context.Context) ([]notebook.AgentInfo, error)
	AddAgent(ctx context.Context, name string, presence notebook.Presence) (token string, err error)
	RemoveAgent(ctx context.Context, name string) error

	Engines(ctx context.Context) ([]notebook.EngineInfo, error)
	AddEngine(ctx context.Context, file string) (*notebook.EngineInfo, error)
	RemoveEngine(ctx context.Context, name string) error
	Status(ctx context.Context) (*notebook.Status, error)
	Policy(ctx context.Context) (*notebook.PolicyView, error)
	TestPolicy(ctx context.Context, fixtures []byte) ([]notebook.PolicyCase, error)
	AcceptPolicy(ctx context.Context, digest notebook.Hash, presence notebook.Presence) (*notebook.PolicyView, error)
	Stop(ctx context.Context) error
	Watch(ctx context.Context, each func(notebook.Event) error) error
}

// Who may do what: embedding says it, and what stands nearer wins.
type (
	viewer struct {
		reads
		denied
	}
	agent struct {
		viewer
		writes
	}
	browser struct {
		viewer
		writes
		keeps
	}
	owner struct {
		browser
		acts
	}
)

// caller is who holds a token.
type caller struct {
	d       *Daemon
	role    role
	name    string
	id      string          // of an agent, bound to its token: see clientID
	trigger trust.Requester // of a run that nobody asks for but a rule; no token has one
}

func (v viewer) Role() string { return v.reads.role.String() }
func (v viewer) Name() string { return v.reads.name }

// door is how this caller's text comes in.
func (c caller) door() door {
	if c.role == roleAgent {
		return door{class: notebook.Agent, label: c.name}
	}
	return typed
}

// label is how the ledger and other clients call this caller.
func (c caller) label() string {
	if c.trigger != (trust.Requester{}) {
		return c.trigger.String()
	}
	if c.role == roleAgent {
		return "agent:" + c.name
	}
	return c.role.String()
}

// denied refuses everything that changes anything.
type denied struct{ caller }

func (c denied) no(what string) error {
	return notebook.Errorf(notebook.CodeDenied, "the role %s may not %s", c.role, what).
		With("the person can, with the owner's token")
}

func (c denied) NewPage(context.Context, string) (*notebook.PageInfo, error) {
	return nil, c.no("make a page")
}

func (c denied) Edit(context.Context, notebook.Edit) (*notebook.PageInfo, error) {
	return nil, c.no("edit a page")
}

func (c denied) Put(context.Context, notebook.Put) (*notebook.PageInfo, error) {
	return nil, c.no("replace a page")
}

func (c denied) Append(context.Context, notebook.PageID, string, string) (*notebook.PageInfo, error) {
	return nil, c.no("append to a page")
}

func (c denied) Rename(context.Context, notebook.PageID, string) (*notebook.PageInfo, error) {
	return nil, c.no("rename a page")
}

func (c denied) Delete(context.Context, notebook.PageID) error { return c.no("delete a page") }

func (c denied) Purge(context.Context, string, notebook.Presence) (*notebook.PageInfo, error) {
	return nil, c.no("purge a page")
}

func (c denied) Rebuild(context.Context, string) (*notebook.PageInfo, error) {
	return nil, c.no("make a page anew")
}

func (c denied) SetQuota(context.Context, notebook.DeviceID, notebook.Quota, notebook.Presence) (*notebook.DeviceQuota, error) {
	return nil, c.no("set a quota")
}

func (c denied) Import(context.Context, string, string, func(int, string)) (*notebook.ImportReport, error) {
	return nil, c.no("import")
}

func (c denied) Run(context.Context, notebook.RunRequest) (*notebook.RunInfo, error) {
	return nil, c.no("run a fence")
}

func (c denied) RunLive(context.Context, notebook.RunRequest, func(notebook.RunOutput) error) (*notebook.RunInfo, error) {
	return nil, c.no("run a fence")
}

func (c denied) Propose(context.Context, notebook.ProposalRequest) (*notebook.Proposal, error) {
	return nil, c.no("propose an approval")
}

func (c denied) Approve(context.Context, notebook.ProposalRequest, notebook.Hash, notebook.Presence) (*notebook.Approval, error) {
	return nil, c.no("approve")
}

func (c denied) Approvals(context.Context) ([]notebook.Approval, error) {
	return nil, c.no("see what is approved")
}

func (c denied) Revoke(context.Context, uint64) error { return c.no("revoke an approval") }

func (c denied) Asks(context.Context) ([]notebook.Ask, error) { return nil, c.no("see what is asked") }

func (c denied) RequestApproval(context.Context, notebook.ProposalRequest, string) (*notebook.Ask, error) {
	return nil, c.no("ask for an approval")
}

func (c denied) Answer(context.Context, []notebook.Answer, bool, notebook.Presence) ([]notebook.Ask, error) {
	return nil, c.no("answer an ask")
}

func (c denied) Cancel(context.Context, uint64) (*notebook.RunInfo, error) {
	return nil, c.no("cancel a run")
}

func (c denied) Replay(context.Context, uint64) (*notebook.Replay, error) {
	return nil, c.no("replay a run")
}

func (c denied) SealLedger(context.Context, notebook.Presence) (*notebook.LedgerReport, error) {
	return nil, c.no("seal the ledger")
}

func (c denied) Pair(context.Context, func(notebook.PairEvent) error) error {
	return c.no("pair a device")
}

func (c denied) Join(context.Context, string, string, func(notebook.PairEvent) error) error {
	return c.no("join a notebook")
}

func (c denied) Confirm(context.Context, string, bool, notebook.Presence) error {
	return c.no("confirm a pairing")
}

func (c denied) RemoveDevice(context.Context, notebook.DeviceID, notebook.Presence) error {
	return c.no("remove a device")
}

func (c denied) Quarantine(context.Context, notebook.DeviceID) (*notebook.QuarantineReport, error) {
	return nil, c.no("put a device into quarantine")
}

func (c denied) Contradiction(context.Context, notebook.DeviceID) (*notebook.Contradiction, error) {
	return nil, c.no("see the proof against a device")
}

func (c denied) Resolve(context.Context, notebook.DeviceID, notebook.Resolution, notebook.Presence) (*notebook.Contradiction, error) {
	return nil, c.no("decide about a device that signed two histories")
}

func (c denied) Release(context.Context, notebook.DeviceID, notebook.Presence) error {
	return c.no("release a device")
}

func (c denied) Agents(context.Context) ([]notebook.AgentInfo, error) {
	return nil, c.no("see the agents")
}

func (c denied) AddAgent(context.Context, string, notebook.Presence) (string, error) {
	return "", c.no("add an agent")
}

func (c denied) RemoveAgent(context.Context, string) error { return c.no("remove an agent") }

func (c denied) Engines(context.Context) ([]notebook.EngineInfo, error) {
	return nil, c.no("see the engines")
}

func (c denied) AddEngine(context.Context, string) (*notebook.EngineInfo, error) {
	return nil, c.no("add an engine")
}

func (c denied) RemoveEngine(context.Context, string) error { return c.no("remove an engine") }

func (c denied) AcceptPolicy(context.Context, notebook.Hash, notebook.Presence) (*notebook.PolicyView, error) {
	return nil, c.no("accept a policy")
}

func (c denied) Stop(context.Context) error { return c.no("stop the daemon") }
