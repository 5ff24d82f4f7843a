package rpc

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	"noted/notebook"
	"noted/rpc/notedv1"
)

// The services read a request, ask the client's Backend, and write the answer.
// They hold nothing: whose Backend it is was decided before the body was read.

// clientKey is the context's key of the authenticated client.
type clientKey struct{}

// backend is the authority of the call's client. A call without one cannot
// come past the door; if it did it would end here, as a panic that the server
// answers with an error.
func backend(ctx context.Context) Backend { return ctx.Value(clientKey{}).(Client).Backend }

// stream sends the messages of one call; the first that could not be sent is the last.
type stream[M any] struct {
	to  *connect.ServerStream[M]
	mu  sync.Mutex
	err error
}

// open tells the client that the call was taken, before there is a message.
func open[M any](to *connect.ServerStream[M]) *stream[M] {
	return &stream[M]{to: to, err: to.Send(nil)}
}

func (s *stream[M]) send(m *M) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.to.Send(m)
	}
	return s.err
}

// end is the error of the call: that of the stream if it broke first.
func (s *stream[M]) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return err
}

type pagesService struct{}

func (pagesService) List(ctx context.Context, _ *notedv1.ListPagesRequest) (*notedv1.ListPagesResponse, error) {
	ps, err := backend(ctx).Pages(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListPagesResponse{Pages: all(ps, writePageInfo)}, nil
}

func (pagesService) Query(ctx context.Context, q *notedv1.QueryRequest) (*notedv1.QueryResponse, error) {
	r := &reader{request: true}
	query := r.short("query", q.GetQuery(), notebook.MaxQuery)
	if err := r.refused(); err != nil {
		return nil, err
	}
	rows, err := backend(ctx).Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return writeRows(rows), nil
}

func (pagesService) Get(ctx context.Context, q *notedv1.GetPageRequest) (*notedv1.GetPageResponse, error) {
	r := &reader{request: true}
	ref := r.short("ref", q.GetRef(), maxRef)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Page(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &notedv1.GetPageResponse{Page: writePageView(p)}, nil
}

func (pagesService) Create(ctx context.Context, q *notedv1.CreatePageRequest) (*notedv1.CreatePageResponse, error) {
	r := &reader{request: true}
	title := r.short("title", q.GetTitle(), notebook.MaxTitle)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).NewPage(ctx, title)
	if err != nil {
		return nil, err
	}
	return &notedv1.CreatePageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Edit(ctx context.Context, q *notedv1.EditPageRequest) (*notedv1.EditPageResponse, error) {
	r := &reader{request: true}
	e := needed(r, "edit", q.GetEdit(), readEdit)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Edit(ctx, e)
	if err != nil {
		return nil, err
	}
	return &notedv1.EditPageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Put(ctx context.Context, q *notedv1.PutPageRequest) (*notedv1.PutPageResponse, error) {
	r := &reader{request: true}
	put := needed(r, "put", q.GetPut(), readPut)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Put(ctx, put)
	if err != nil {
		return nil, err
	}
	return &notedv1.PutPageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Append(ctx context.Context, q *notedv1.AppendPageRequest) (*notedv1.AppendPageResponse, error) {
	r := &reader{request: true}
	page, via := neededID[notebook.PageID](r, "page", q.GetPage()), readVia(r, q.GetVia())
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Append(ctx, page, q.GetText(), via)
	if err != nil {
		return nil, err
	}
	return &notedv1.AppendPageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Rename(ctx context.Context, q *notedv1.RenamePageRequest) (*notedv1.RenamePageResponse, error) {
	r := &reader{request: true}
	page, title := neededID[notebook.PageID](r, "page", q.GetPage()), r.short("title", q.GetTitle(), notebook.MaxTitle)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Rename(ctx, page, title)
	if err != nil {
		return nil, err
	}
	return &notedv1.RenamePageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Delete(ctx context.Context, q *notedv1.DeletePageRequest) (*notedv1.DeletePageResponse, error) {
	r := &reader{request: true}
	page := neededID[notebook.PageID](r, "page", q.GetPage())
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).Delete(ctx, page); err != nil {
		return nil, err
	}
	return &notedv1.DeletePageResponse{}, nil
}

func (pagesService) Purge(ctx context.Context, q *notedv1.PurgePageRequest) (*notedv1.PurgePageResponse, error) {
	r := &reader{request: true}
	ref := r.short("ref", q.GetRef(), maxRef)
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Purge(ctx, ref, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.PurgePageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Rebuild(ctx context.Context, q *notedv1.RebuildPageRequest) (*notedv1.RebuildPageResponse, error) {
	r := &reader{request: true}
	ref := r.short("ref", q.GetRef(), maxRef)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Rebuild(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &notedv1.RebuildPageResponse{Page: writePageInfo(p)}, nil
}

func (pagesService) Import(ctx context.Context, q *notedv1.ImportRequest, to *connect.ServerStream[notedv1.ImportResponse]) error {
	r := &reader{request: true}
	format, dir := r.short("format", q.GetFormat(), maxWord), r.short("dir", q.GetDir(), maxPath)
	if err := r.refused(); err != nil {
		return err
	}
	s := open(to)
	report, err := backend(ctx).Import(ctx, format, dir, func(done int, path string) {
		// A client that is gone ends ctx, so its error need not be handed on.
		_ = s.send(&notedv1.ImportResponse{Step: &notedv1.ImportResponse_Progress{
			Progress: &notedv1.ImportProgress{Done: int64(done), Path: text(path)},
		}})
	})
	if err == nil {
		err = s.send(&notedv1.ImportResponse{Step: &notedv1.ImportResponse_Report{Report: writeImportReport(report)}})
	}
	return s.end(err)
}

type fencesService struct{}

func (fencesService) Why(ctx context.Context, q *notedv1.WhyRequest) (*notedv1.WhyResponse, error) {
	r := &reader{request: true}
	page, fence := neededID[notebook.PageID](r, "page", q.GetPage()), neededID[notebook.FenceID](r, "fence", q.GetFence())
	if err := r.refused(); err != nil {
		return nil, err
	}
	e, err := backend(ctx).Why(ctx, page, fence)
	if err != nil {
		return nil, err
	}
	return &notedv1.WhyResponse{Explanation: writeExplanation(e)}, nil
}

func (fencesService) Run(ctx context.Context, q *notedv1.RunFenceRequest) (*notedv1.RunFenceResponse, error) {
	r := &reader{request: true}
	run := needed(r, "request", q.GetRequest(), readRunRequest)
	if err := r.refused(); err != nil {
		return nil, err
	}
	info, err := backend(ctx).Run(ctx, run)
	if err != nil {
		return nil, err
	}
	return &notedv1.RunFenceResponse{Run: writeRunInfo(info)}, nil
}

func (fencesService) RunLive(ctx context.Context, q *notedv1.RunLiveRequest, to *connect.ServerStream[notedv1.RunLiveResponse]) error {
	r := &reader{request: true}
	run := needed(r, "request", q.GetRequest(), readRunRequest)
	if err := r.refused(); err != nil {
		return err
	}
	s := open(to)
	info, err := backend(ctx).RunLive(ctx, run, func(o notebook.RunOutput) error {
		return s.send(&notedv1.RunLiveResponse{Step: &notedv1.RunLiveResponse_Output{Output: writeRunOutput(&o)}})
	})
	if err == nil {
		err = s.send(&notedv1.RunLiveResponse{Step: &notedv1.RunLiveResponse_Run{Run: writeRunInfo(info)}})
	}
	return s.end(err)
}

func (fencesService) Propose(ctx context.Context, q *notedv1.ProposeRequest) (*notedv1.ProposeResponse, error) {
	r := &reader{request: true}
	wish := needed(r, "request", q.GetRequest(), readProposalRequest)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).Propose(ctx, wish)
	if err != nil {
		return nil, err
	}
	return &notedv1.ProposeResponse{Proposal: writeProposal(p)}, nil
}

func (fencesService) Approve(ctx context.Context, q *notedv1.ApproveRequest) (*notedv1.ApproveResponse, error) {
	r := &reader{request: true}
	wish := needed(r, "request", q.GetRequest(), readProposalRequest)
	digest := neededID[notebook.Hash](r, "digest", q.GetDigest())
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	a, err := backend(ctx).Approve(ctx, wish, digest, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.ApproveResponse{Approval: writeApproval(a)}, nil
}

func (fencesService) Approvals(ctx context.Context, _ *notedv1.ListApprovalsRequest) (*notedv1.ListApprovalsResponse, error) {
	as, err := backend(ctx).Approvals(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListApprovalsResponse{Approvals: all(as, writeApproval)}, nil
}

func (fencesService) Revoke(ctx context.Context, q *notedv1.RevokeRequest) (*notedv1.RevokeResponse, error) {
	if err := backend(ctx).Revoke(ctx, q.GetApproval()); err != nil {
		return nil, err
	}
	return &notedv1.RevokeResponse{}, nil
}

type asksService struct{}

func (asksService) List(ctx context.Context, _ *notedv1.ListAsksRequest) (*notedv1.ListAsksResponse, error) {
	as, err := backend(ctx).Asks(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListAsksResponse{Asks: all(as, writeAsk)}, nil
}

func (asksService) Request(ctx context.Context, q *notedv1.RequestApprovalRequest) (*notedv1.RequestApprovalResponse, error) {
	r := &reader{request: true}
	wish, reason := needed(r, "request", q.GetRequest(), readProposalRequest), r.short("reason", q.GetReason(), maxReason)
	if err := r.refused(); err != nil {
		return nil, err
	}
	a, err := backend(ctx).RequestApproval(ctx, wish, reason)
	if err != nil {
		return nil, err
	}
	return &notedv1.RequestApprovalResponse{Ask: writeAsk(a)}, nil
}

func (asksService) Answer(ctx context.Context, q *notedv1.AnswerRequest) (*notedv1.AnswerResponse, error) {
	r := &reader{request: true}
	answers := every(r, "answers", q.GetAnswers(), readAnswer)
	for _, a := range answers {
		if q.GetYes() && a.Digest.IsZero() {
			r.wrong("answers", "has a yes whose digest is missing")
		}
	}
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	as, err := backend(ctx).Answer(ctx, answers, q.GetYes(), presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.AnswerResponse{Asks: all(as, writeAsk)}, nil
}

type devicesService struct{}

func (devicesService) List(ctx context.Context, _ *notedv1.ListDevicesRequest) (*notedv1.ListDevicesResponse, error) {
	ds, err := backend(ctx).Devices(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListDevicesResponse{Devices: all(ds, writeDeviceInfo)}, nil
}

func (devicesService) Pair(ctx context.Context, _ *notedv1.PairRequest, to *connect.ServerStream[notedv1.PairResponse]) error {
	s := open(to)
	return s.end(backend(ctx).Pair(ctx, func(e notebook.PairEvent) error {
		return s.send(&notedv1.PairResponse{Event: writePairEvent(&e)})
	}))
}

func (devicesService) Join(ctx context.Context, q *notedv1.JoinRequest, to *connect.ServerStream[notedv1.JoinResponse]) error {
	r := &reader{request: true}
	invitation, name := r.short("invitation", q.GetInvitation(), maxInvitation), r.short("name", q.GetName(), maxName)
	if err := r.refused(); err != nil {
		return err
	}
	s := open(to)
	return s.end(backend(ctx).Join(ctx, invitation, name, func(e notebook.PairEvent) error {
		return s.send(&notedv1.JoinResponse{Event: writePairEvent(&e)})
	}))
}

func (devicesService) Confirm(ctx context.Context, q *notedv1.ConfirmRequest) (*notedv1.ConfirmResponse, error) {
	r := &reader{request: true}
	session, presence := r.short("session", q.GetSession(), maxName), within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).Confirm(ctx, session, q.GetYes(), presence); err != nil {
		return nil, err
	}
	return &notedv1.ConfirmResponse{}, nil
}

func (devicesService) Remove(ctx context.Context, q *notedv1.RemoveDeviceRequest) (*notedv1.RemoveDeviceResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).RemoveDevice(ctx, device, presence); err != nil {
		return nil, err
	}
	return &notedv1.RemoveDeviceResponse{}, nil
}

func (devicesService) Quotas(ctx context.Context, _ *notedv1.QuotasRequest) (*notedv1.QuotasResponse, error) {
	qs, err := backend(ctx).Quotas(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.QuotasResponse{Quotas: all(qs, writeDeviceQuota)}, nil
}

func (devicesService) SetQuota(ctx context.Context, q *notedv1.SetQuotaRequest) (*notedv1.SetQuotaResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	change := within(r, "change", q.GetChange(), readQuota)
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	quota, err := backend(ctx).SetQuota(ctx, device, change, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.SetQuotaResponse{Quota: writeDeviceQuota(quota)}, nil
}

func (devicesService) Quarantine(ctx context.Context, q *notedv1.QuarantineRequest) (*notedv1.QuarantineResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	if err := r.refused(); err != nil {
		return nil, err
	}
	report, err := backend(ctx).Quarantine(ctx, device)
	if err != nil {
		return nil, err
	}
	return writeQuarantineReport(report), nil
}

func (devicesService) Release(ctx context.Context, q *notedv1.ReleaseRequest) (*notedv1.ReleaseResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).Release(ctx, device, presence); err != nil {
		return nil, err
	}
	return &notedv1.ReleaseResponse{}, nil
}

func (devicesService) Contradiction(ctx context.Context, q *notedv1.ContradictionRequest) (*notedv1.ContradictionResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	if err := r.refused(); err != nil {
		return nil, err
	}
	c, err := backend(ctx).Contradiction(ctx, device)
	if err != nil {
		return nil, err
	}
	return &notedv1.ContradictionResponse{Contradiction: writeContradiction(c)}, nil
}

func (devicesService) Resolve(ctx context.Context, q *notedv1.ResolveRequest) (*notedv1.ResolveResponse, error) {
	r := &reader{request: true}
	device := neededID[notebook.DeviceID](r, "device", q.GetDevice())
	as := notebook.Resolution(r.short("resolution", q.GetResolution(), maxName))
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	c, err := backend(ctx).Resolve(ctx, device, as, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.ResolveResponse{Contradiction: writeContradiction(c)}, nil
}

type agentsService struct{}

func (agentsService) List(ctx context.Context, _ *notedv1.ListAgentsRequest) (*notedv1.ListAgentsResponse, error) {
	as, err := backend(ctx).Agents(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListAgentsResponse{Agents: all(as, writeAgentInfo)}, nil
}

func (agentsService) Add(ctx context.Context, q *notedv1.AddAgentRequest) (*notedv1.AddAgentResponse, error) {
	r := &reader{request: true}
	name, presence := r.short("name", q.GetName(), maxName), within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	token, err := backend(ctx).AddAgent(ctx, name, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.AddAgentResponse{Token: token}, nil
}

func (agentsService) Remove(ctx context.Context, q *notedv1.RemoveAgentRequest) (*notedv1.RemoveAgentResponse, error) {
	r := &reader{request: true}
	name := r.short("name", q.GetName(), maxName)
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).RemoveAgent(ctx, name); err != nil {
		return nil, err
	}
	return &notedv1.RemoveAgentResponse{}, nil
}

type daemonService struct{}

func (daemonService) Status(ctx context.Context, _ *notedv1.StatusRequest) (*notedv1.StatusResponse, error) {
	s, err := backend(ctx).Status(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.StatusResponse{Status: writeStatus(s)}, nil
}

func (daemonService) Policy(ctx context.Context, _ *notedv1.PolicyRequest) (*notedv1.PolicyResponse, error) {
	p, err := backend(ctx).Policy(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.PolicyResponse{Policy: writePolicyView(p)}, nil
}

func (daemonService) TestPolicy(ctx context.Context, q *notedv1.TestPolicyRequest) (*notedv1.TestPolicyResponse, error) {
	cases, err := backend(ctx).TestPolicy(ctx, q.GetFixtures())
	if err != nil {
		return nil, err
	}
	return &notedv1.TestPolicyResponse{Cases: all(cases, writePolicyCase)}, nil
}

func (daemonService) AcceptPolicy(ctx context.Context, q *notedv1.AcceptPolicyRequest) (*notedv1.AcceptPolicyResponse, error) {
	r := &reader{request: true}
	digest := neededID[notebook.Hash](r, "digest", q.GetDigest())
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	p, err := backend(ctx).AcceptPolicy(ctx, digest, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.AcceptPolicyResponse{Policy: writePolicyView(p)}, nil
}

func (daemonService) Stop(ctx context.Context, _ *notedv1.StopRequest) (*notedv1.StopResponse, error) {
	if err := backend(ctx).Stop(ctx); err != nil {
		return nil, err
	}
	return &notedv1.StopResponse{}, nil
}

func (daemonService) Watch(ctx context.Context, _ *notedv1.WatchRequest, to *connect.ServerStream[notedv1.WatchResponse]) error {
	s := open(to)
	return s.end(backend(ctx).Watch(ctx, func(e notebook.Event) error {
		return s.send(&notedv1.WatchResponse{Event: writeEvent(&e)})
	}))
}
