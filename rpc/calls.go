package rpc

import (
	"context"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// The calls of [LocalClient], in the order of [Backend].

// Pages lists the pages.
func (c *LocalClient) Pages(ctx context.Context) ([]notebook.PageInfo, error) {
	return ask(ctx, c.pages.List, &notedv1.ListPagesRequest{}, func(r *reader, m *notedv1.ListPagesResponse) []notebook.PageInfo {
		return every(r, "pages", m.GetPages(), readPageInfo)
	})
}

// Page is one page with its body.
func (c *LocalClient) Page(ctx context.Context, ref string) (*notebook.PageView, error) {
	return ask(ctx, c.pages.Get, &notedv1.GetPageRequest{Ref: ref}, func(r *reader, m *notedv1.GetPageResponse) *notebook.PageView {
		return needed(r, "page", m.GetPage(), pointer(readPageView))
	})
}

// Query answers a query with blocks or pages.
func (c *LocalClient) Query(ctx context.Context, query string) (*notebook.Rows, error) {
	return ask(ctx, c.pages.Query, &notedv1.QueryRequest{Query: query}, func(r *reader, m *notedv1.QueryResponse) *notebook.Rows {
		v := readRows(r, m)
		return &v
	})
}

// NewPage makes an empty page.
func (c *LocalClient) NewPage(ctx context.Context, title string) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Create, &notedv1.CreatePageRequest{Title: title}, func(r *reader, m *notedv1.CreatePageResponse) *notebook.PageInfo {
		return needed(r, "page", m.GetPage(), pointer(readPageInfo))
	})
}

// Edit changes a page's body against the revision that e names.
func (c *LocalClient) Edit(ctx context.Context, e notebook.Edit) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Edit, &notedv1.EditPageRequest{Edit: writeEdit(&e)}, func(r *reader, m *notedv1.EditPageResponse) *notebook.PageInfo {
		return needed(r, "page", m.GetPage(), pointer(readPageInfo))
	})
}

// Put replaces a page's body against the revision that p names.
func (c *LocalClient) Put(ctx context.Context, p notebook.Put) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Put, &notedv1.PutPageRequest{Put: writePut(&p)}, func(r *reader, m *notedv1.PutPageResponse) *notebook.PageInfo {
		return needed(r, "page", m.GetPage(), pointer(readPageInfo))
	})
}

// Append adds text to the end of a page.
func (c *LocalClient) Append(ctx context.Context, page notebook.PageID, text, via string) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Append, &notedv1.AppendPageRequest{Page: idBytes(page), Text: text, Via: via}, func(r *reader, m *notedv1.AppendPageResponse) *notebook.PageInfo {
		return needed(r, "page", m.GetPage(), pointer(readPageInfo))
	})
}

// Rename gives a page another title.
func (c *LocalClient) Rename(ctx context.Context, page notebook.PageID, title string) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Rename, &notedv1.RenamePageRequest{Page: idBytes(page), Title: title}, func(r *reader, m *notedv1.RenamePageResponse) *notebook.PageInfo {
		return needed(r, "page", m.GetPage(), pointer(readPageInfo))
	})
}

// Purge lets go of a page's text for good.
func (c *LocalClient) Purge(ctx context.Context, ref string, presence notebook.Presence) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Purge, &notedv1.PurgePageRequest{Ref: ref, Presence: writePresence(presence)}, func(r *reader, m *notedv1.PurgePageResponse) *notebook.PageInfo {
		p := within(r, "page", m.GetPage(), readPageInfo)
		return &p
	})
}

// Rebuild makes a page anew from its log.
func (c *LocalClient) Rebuild(ctx context.Context, ref string) (*notebook.PageInfo, error) {
	return ask(ctx, c.pages.Rebuild, &notedv1.RebuildPageRequest{Ref: ref}, func(r *reader, m *notedv1.RebuildPageResponse) *notebook.PageInfo {
		p := within(r, "page", m.GetPage(), readPageInfo)
		return &p
	})
}

// Delete deletes a page.
func (c *LocalClient) Delete(ctx context.Context, page notebook.PageID) error {
	return tell(ctx, c.pages.Delete, &notedv1.DeletePageRequest{Page: idBytes(page)})
}

// Import has the daemon read dir.
func (c *LocalClient) Import(ctx context.Context, format, dir string, progress func(done int, path string)) (*notebook.ImportReport, error) {
	var report *notebook.ImportReport
	err := follow(ctx, c.pages.Import, &notedv1.ImportRequest{Format: format, Dir: dir}, func(r *reader, m *notedv1.ImportResponse) error {
		switch step := m.GetStep().(type) {
		case *notedv1.ImportResponse_Progress:
			done := r.integer("progress.done", step.Progress.GetDone())
			if progress != nil && r.problem == "" {
				progress(done, step.Progress.GetPath())
			}
		case *notedv1.ImportResponse_Report:
			report = within(r, "report", step.Report, pointer(readImportReport))
		}
		return r.garbled()
	})
	if err == nil && report == nil {
		err = notebook.Errorf(notebook.CodeFailed, "the import ended without a report")
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

// Why explains what noted thinks of a fence.
func (c *LocalClient) Why(ctx context.Context, page notebook.PageID, fence notebook.FenceID) (*notebook.Explanation, error) {
	return ask(ctx, c.fences.Why, &notedv1.WhyRequest{Page: idBytes(page), Fence: idBytes(fence)}, func(r *reader, m *notedv1.WhyResponse) *notebook.Explanation {
		return needed(r, "explanation", m.GetExplanation(), pointer(readExplanation))
	})
}

// Run runs a fence as it was shown.
func (c *LocalClient) Run(ctx context.Context, q notebook.RunRequest) (*notebook.RunInfo, error) {
	return ask(ctx, c.fences.Run, &notedv1.RunFenceRequest{Request: writeRunRequest(&q)}, func(r *reader, m *notedv1.RunFenceResponse) *notebook.RunInfo {
		return needed(r, "run", m.GetRun(), pointer(readRunInfo))
	})
}

// RunLive runs a fence as it was shown, and gives each what it writes as it comes.
func (c *LocalClient) RunLive(ctx context.Context, q notebook.RunRequest, each func(notebook.RunOutput) error) (*notebook.RunInfo, error) {
	var run *notebook.RunInfo
	err := follow(ctx, c.fences.RunLive, &notedv1.RunLiveRequest{Request: writeRunRequest(&q)}, func(r *reader, m *notedv1.RunLiveResponse) error {
		switch step := m.GetStep().(type) {
		case *notedv1.RunLiveResponse_Output:
			return oneEvent(r, step.Output, readRunOutput, each)
		case *notedv1.RunLiveResponse_Run:
			run = within(r, "run", step.Run, pointer(readRunInfo))
		}
		return r.garbled()
	})
	if err == nil && run == nil {
		err = notebook.Errorf(notebook.CodeFailed, "the run ended without an outcome")
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

// Propose shows what an approval would pin.
func (c *LocalClient) Propose(ctx context.Context, q notebook.ProposalRequest) (*notebook.Proposal, error) {
	return ask(ctx, c.fences.Propose, &notedv1.ProposeRequest{Request: writeProposalRequest(&q)}, func(r *reader, m *notedv1.ProposeResponse) *notebook.Proposal {
		return needed(r, "proposal", m.GetProposal(), pointer(readProposal))
	})
}

// Approve approves the proposal of that digest.
func (c *LocalClient) Approve(ctx context.Context, q notebook.ProposalRequest, digest notebook.Hash, presence notebook.Presence) (*notebook.Approval, error) {
	m := &notedv1.ApproveRequest{Request: writeProposalRequest(&q), Digest: idBytes(digest), Presence: writePresence(presence)}
	return ask(ctx, c.fences.Approve, m, func(r *reader, m *notedv1.ApproveResponse) *notebook.Approval {
		return needed(r, "approval", m.GetApproval(), pointer(readApproval))
	})
}

// Approvals lists what was approved on this device.
func (c *LocalClient) Approvals(ctx context.Context) ([]notebook.Approval, error) {
	return ask(ctx, c.fences.Approvals, &notedv1.ListApprovalsRequest{}, func(r *reader, m *notedv1.ListApprovalsResponse) []notebook.Approval {
		return every(r, "approvals", m.GetApprovals(), readApproval)
	})
}

// Revoke takes an approval back.
func (c *LocalClient) Revoke(ctx context.Context, approval uint64) error {
	return tell(ctx, c.fences.Revoke, &notedv1.RevokeRequest{Approval: approval})
}

// Asks lists the open requests for approval.
func (c *LocalClient) Asks(ctx context.Context) ([]notebook.Ask, error) {
	return ask(ctx, c.asks.List, &notedv1.ListAsksRequest{}, func(r *reader, m *notedv1.ListAsksResponse) []notebook.Ask {
		return every(r, "asks", m.GetAsks(), readAsk)
	})
}

// RequestApproval asks the person for an approval.
func (c *LocalClient) RequestApproval(ctx context.Context, q notebook.ProposalRequest, reason string) (*notebook.Ask, error) {
	m := &notedv1.RequestApprovalRequest{Request: writeProposalRequest(&q), Reason: reason}
	return ask(ctx, c.asks.Request, m, func(r *reader, m *notedv1.RequestApprovalResponse) *notebook.Ask {
		return needed(r, "ask", m.GetAsk(), pointer(readAsk))
	})
}

// Answer answers asks, all or none; a yes names the proposals that were shown.
func (c *LocalClient) Answer(ctx context.Context, answers []notebook.Answer, yes bool, presence notebook.Presence) ([]notebook.Ask, error) {
	m := &notedv1.AnswerRequest{Answers: all(answers, writeAnswer), Yes: yes, Presence: writePresence(presence)}
	return ask(ctx, c.asks.Answer, m, func(r *reader, m *notedv1.AnswerResponse) []notebook.Ask {
		return every(r, "asks", m.GetAsks(), readAsk)
	})
}

// Runs lists the newest runs and refusals.
func (c *LocalClient) Runs(ctx context.Context, most int) ([]notebook.RunInfo, error) {
	return ask(ctx, c.runs.List, &notedv1.ListRunsRequest{Most: int64(most)}, func(r *reader, m *notedv1.ListRunsResponse) []notebook.RunInfo {
		return every(r, "runs", m.GetRuns(), readRunInfo)
	})
}

// RunInfo is one record of the ledger.
func (c *LocalClient) RunInfo(ctx context.Context, number uint64) (*notebook.RunInfo, error) {
	return ask(ctx, c.runs.Get, &notedv1.GetRunRequest{Number: number}, func(r *reader, m *notedv1.GetRunResponse) *notebook.RunInfo {
		return needed(r, "run", m.GetRun(), pointer(readRunInfo))
	})
}

// Cancel stops a run, and returns how it ended once it is dead.
func (c *LocalClient) Cancel(ctx context.Context, number uint64) (*notebook.RunInfo, error) {
	return ask(ctx, c.runs.Cancel, &notedv1.CancelRunRequest{Number: number}, func(r *reader, m *notedv1.CancelRunResponse) *notebook.RunInfo {
		return needed(r, "run", m.GetRun(), pointer(readRunInfo))
	})
}

// Replay does a run again and compares.
func (c *LocalClient) Replay(ctx context.Context, number uint64) (*notebook.Replay, error) {
	return ask(ctx, c.runs.Replay, &notedv1.ReplayRunRequest{Number: number}, func(r *reader, m *notedv1.ReplayRunResponse) *notebook.Replay {
		return needed(r, "replay", m.GetReplay(), pointer(readReplay))
	})
}

// SealLedger begins a new chain after a broken one.
func (c *LocalClient) SealLedger(ctx context.Context, presence notebook.Presence) (*notebook.LedgerReport, error) {
	q := &notedv1.SealLedgerRequest{Presence: writePresence(presence)}
	return ask(ctx, c.runs.Seal, q, func(r *reader, m *notedv1.SealLedgerResponse) *notebook.LedgerReport {
		return needed(r, "report", m.GetReport(), pointer(readLedgerReport))
	})
}

// VerifyLedger checks the ledger's chain.
func (c *LocalClient) VerifyLedger(ctx context.Context) (*notebook.LedgerReport, error) {
	return ask(ctx, c.runs.Verify, &notedv1.VerifyLedgerRequest{}, func(r *reader, m *notedv1.VerifyLedgerResponse) *notebook.LedgerReport {
		return needed(r, "report", m.GetReport(), pointer(readLedgerReport))
	})
}

// Devices lists the members of the roster.
func (c *LocalClient) Devices(ctx context.Context) ([]notebook.DeviceInfo, error) {
	return ask(ctx, c.devices.List, &notedv1.ListDevicesRequest{}, func(r *reader, m *notedv1.ListDevicesResponse) []notebook.DeviceInfo {
		return every(r, "devices", m.GetDevices(), readDeviceInfo)
	})
}

// Pair invites a device.
func (c *LocalClient) Pair(ctx context.Context, each func(notebook.PairEvent) error) error {
	return follow(ctx, c.devices.Pair, &notedv1.PairRequest{}, func(r *reader, m *notedv1.PairResponse) error {
		return oneEvent(r, m.GetEvent(), readPairEvent, each)
	})
}

// Join takes an invitation.
func (c *LocalClient) Join(ctx context.Context, invitation, name string, each func(notebook.PairEvent) error) error {
	return follow(ctx, c.devices.Join, &notedv1.JoinRequest{Invitation: invitation, Name: name}, func(r *reader, m *notedv1.JoinResponse) error {
		return oneEvent(r, m.GetEvent(), readPairEvent, each)
	})
}

// Confirm answers whether both screens show the same code.
func (c *LocalClient) Confirm(ctx context.Context, session string, yes bool, presence notebook.Presence) error {
	return tell(ctx, c.devices.Confirm, &notedv1.ConfirmRequest{Session: session, Yes: yes, Presence: writePresence(presence)})
}

// RemoveDevice shuts a device out.
func (c *LocalClient) RemoveDevice(ctx context.Context, device notebook.DeviceID, presence notebook.Presence) error {
	return tell(ctx, c.devices.Remove, &notedv1.RemoveDeviceRequest{Device: idBytes(device), Presence: writePresence(presence)})
}

// Quotas are what is kept of each device's log, and may be.
func (c *LocalClient) Quotas(ctx context.Context) ([]notebook.DeviceQuota, error) {
	return ask(ctx, c.devices.Quotas, &notedv1.QuotasRequest{}, func(r *reader, m *notedv1.QuotasResponse) []notebook.DeviceQuota {
		return every(r, "quotas", m.GetQuotas(), readDeviceQuota)
	})
}

// SetQuota changes how much of a device's log is kept.
func (c *LocalClient) SetQuota(ctx context.Context, device notebook.DeviceID, change notebook.Quota, presence notebook.Presence) (*notebook.DeviceQuota, error) {
	q := &notedv1.SetQuotaRequest{Device: idBytes(device), Change: writeQuota(&change), Presence: writePresence(presence)}
	return ask(ctx, c.devices.SetQuota, q, func(r *reader, m *notedv1.SetQuotaResponse) *notebook.DeviceQuota {
		quota := within(r, "quota", m.GetQuota(), readDeviceQuota)
		return &quota
	})
}

// Quarantine distrusts a device's text on this device.
func (c *LocalClient) Quarantine(ctx context.Context, device notebook.DeviceID) (*notebook.QuarantineReport, error) {
	return ask(ctx, c.devices.Quarantine, &notedv1.QuarantineRequest{Device: idBytes(device)}, pointer(readQuarantineReport))
}

// Release ends a device's quarantine.
func (c *LocalClient) Release(ctx context.Context, device notebook.DeviceID, presence notebook.Presence) error {
	return tell(ctx, c.devices.Release, &notedv1.ReleaseRequest{Device: idBytes(device), Presence: writePresence(presence)})
}

// Contradiction shows the two histories that a device signed.
func (c *LocalClient) Contradiction(ctx context.Context, device notebook.DeviceID) (*notebook.Contradiction, error) {
	return ask(ctx, c.devices.Contradiction, &notedv1.ContradictionRequest{Device: idBytes(device)}, func(r *reader, m *notedv1.ContradictionResponse) *notebook.Contradiction {
		return needed(r, "contradiction", m.GetContradiction(), pointer(readContradiction))
	})
}

// Resolve lets a device that signed two histories go on.
func (c *LocalClient) Resolve(ctx context.Context, device notebook.DeviceID, as notebook.Resolution, presence notebook.Presence) (*notebook.Contradiction, error) {
	m := &notedv1.ResolveRequest{Device: idBytes(device), Resolution: string(as), Presence: writePresence(presence)}
	return ask(ctx, c.devices.Resolve, m, func(r *reader, m *notedv1.ResolveResponse) *notebook.Contradiction {
		return needed(r, "contradiction", m.GetContradiction(), pointer(readContradiction))
	})
}

// Agents lists the agents that have a token.
func (c *LocalClient) Agents(ctx context.Context) ([]notebook.AgentInfo, error) {
	return ask(ctx, c.agents.List, &notedv1.ListAgentsRequest{}, func(r *reader, m *notedv1.ListAgentsResponse) []notebook.AgentInfo {
		return every(r, "agents", m.GetAgents(), readAgentInfo)
	})
}

// AddAgent makes an agent's token.
func (c *LocalClient) AddAgent(ctx context.Context, name string, presence notebook.Presence) (token string, err error) {
	m := &notedv1.AddAgentRequest{Name: name, Presence: writePresence(presence)}
	return ask(ctx, c.agents.Add, m, func(_ *reader, m *notedv1.AddAgentResponse) string { return m.GetToken() })
}

// RemoveAgent ends an agent's token.
func (c *LocalClient) RemoveAgent(ctx context.Context, name string) error {
	return tell(ctx, c.agents.Remove, &notedv1.RemoveAgentRequest{Name: name})
}

// Status is the daemon in one look.
func (c *LocalClient) Status(ctx context.Context) (*notebook.Status, error) {
	return ask(ctx, c.daemon.Status, &notedv1.StatusRequest{}, func(r *reader, m *notedv1.StatusResponse) *notebook.Status {
		return needed(r, "status", m.GetStatus(), pointer(readStatus))
	})
}

// Policy is the policy in force.
func (c *LocalClient) Policy(ctx context.Context) (*notebook.PolicyView, error) {
	return ask(ctx, c.daemon.Policy, &notedv1.PolicyRequest{}, func(r *reader, m *notedv1.PolicyResponse) *notebook.PolicyView {
		return needed(r, "policy", m.GetPolicy(), pointer(readPolicyView))
	})
}

// TestPolicy is what the policy in force decides on fixtures.
func (c *LocalClient) TestPolicy(ctx context.Context, fixtures []byte) ([]notebook.PolicyCase, error) {
	return ask(ctx, c.daemon.TestPolicy, &notedv1.TestPolicyRequest{Fixtures: fixtures}, func(r *reader, m *notedv1.TestPolicyResponse) []notebook.PolicyCase {
		return every(r, "cases", m.GetCases(), readPolicyCase)
	})
}

// AcceptPolicy puts the policy file of that digest in force.
func (c *LocalClient) AcceptPolicy(ctx context.Context, digest notebook.Hash, presence notebook.Presence) (*notebook.PolicyView, error) {
	m := &notedv1.AcceptPolicyRequest{Digest: idBytes(digest), Presence: writePresence(presence)}
	return ask(ctx, c.daemon.AcceptPolicy, m, func(r *reader, m *notedv1.AcceptPolicyResponse) *notebook.PolicyView {
		return needed(r, "policy", m.GetPolicy(), pointer(readPolicyView))
	})
}

// Stop stops the daemon.
func (c *LocalClient) Stop(ctx context.Context) error {
	return tell(ctx, c.daemon.Stop, &notedv1.StopRequest{})
}

// Watch gives every event to each.
func (c *LocalClient) Watch(ctx context.Context, each func(notebook.Event) error) error {
	return follow(ctx, c.daemon.Watch, &notedv1.WatchRequest{}, func(r *reader, m *notedv1.WatchResponse) error {
		return oneEvent(r, m.GetEvent(), readEvent, each)
	})
}

// oneEvent reads an event and gives it to each.
func oneEvent[M, T any](r *reader, m *M, read func(*reader, *M) T, each func(T) error) error {
	e := needed(r, "event", m, read)
	if err := r.garbled(); err != nil {
		return err
	}
	return each(e)
}
