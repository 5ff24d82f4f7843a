package rpc

import (
	"context"

	"noted/notebook"
)

// Opener turns a client's token into what that client may do. It answers an
// error of code denied for a token that it does not know.
type Opener interface {
	Open(token string) (Client, error)
}

// Role is what a token is for. The roles that may call a route are an option
// of the route in the proto.
type Role string

const (
	RoleOwner   Role = "owner"
	RoleBrowser Role = "browser" // types; no acts that need presence
	RoleAgent   Role = "agent"
	RoleViewer  Role = "viewer"
)

// Client is an authenticated caller: the Backend it gets is its authority, and
// holds also where a route's role was set too wide.
type Client struct {
	Role    Role
	Name    string // the agent's name; empty otherwise
	Backend Backend
}

// Backend is the daemon as one client may use it. Errors that a person should
// read are *[notebook.Error]. References to pages are a title, "=IDPREFIX" or
// "today"; everything else is addressed by id. The functions that a call takes
// are called by one goroutine at a time, and not after the call has returned; a
// slow one slows its own call alone. The client of this package implements
// Backend, so a command does not know on which side of the socket it is.
type Backend interface {
	// Pages
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

	// Fences
	Why(ctx context.Context, page notebook.PageID, fence notebook.FenceID) (*notebook.Explanation, error)
	Run(ctx context.Context, r notebook.RunRequest) (*notebook.RunInfo, error)
	RunLive(ctx context.Context, r notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error)
	Propose(ctx context.Context, r notebook.ProposalRequest) (*notebook.Proposal, error)
	Approve(ctx context.Context, r notebook.ProposalRequest, digest notebook.Hash, presence notebook.Presence) (*notebook.Approval, error)
	Approvals(ctx context.Context) ([]notebook.Approval, error)
	Revoke(ctx context.Context, approval uint64) error

	// Asks
	Asks(ctx context.Context) ([]notebook.Ask, error)
	RequestApproval(ctx context.Context, r notebook.ProposalRequest, reason string) (*notebook.Ask, error)
	Answer(ctx context.Context, answers []notebook.Answer, yes bool, presence notebook.Presence) ([]notebook.Ask, error)

	// Runs
	Runs(ctx context.Context, most int) ([]notebook.RunInfo, error)
	RunInfo(ctx context.Context, number uint64) (*notebook.RunInfo, error)
	Cancel(ctx context.Context, number uint64) (*notebook.RunInfo, error)
	Replay(ctx context.Context, number uint64) (*notebook.Replay, error)
	VerifyLedger(ctx context.Context) (*notebook.LedgerReport, error)
	SealLedger(ctx context.Context, presence notebook.Presence) (*notebook.LedgerReport, error)

	// Devices
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

	// Agents
	Agents(ctx context.Context) ([]notebook.AgentInfo, error)
	AddAgent(ctx context.Context, name string, presence notebook.Presence) (token string, err error)
	RemoveAgent(ctx context.Context, name string) error

	// Engines
	Engines(ctx context.Context) ([]notebook.EngineInfo, error)
	AddEngine(ctx context.Context, file string) (*notebook.EngineInfo, error)
	RemoveEngine(ctx context.Context, name string) error

	// Daemon
	Status(ctx context.Context) (*notebook.Status, error)
	Policy(ctx context.Context) (*notebook.PolicyView, error)
	TestPolicy(ctx context.Context, fixtures []byte) ([]notebook.PolicyCase, error)
	AcceptPolicy(ctx context.Context, digest notebook.Hash, presence notebook.Presence) (*notebook.PolicyView, error)
	Stop(ctx context.Context) error
	Watch(ctx context.Context, each func(notebook.Event) error) error
}
