package rpc

import (
	"context"

	"noted/rpc/notedv1"
)

type runsService struct{}

func (runsService) List(ctx context.Context, q *notedv1.ListRunsRequest) (*notedv1.ListRunsResponse, error) {
	r := &reader{request: true}
	most := r.integer("most", q.GetMost())
	if err := r.refused(); err != nil {
		return nil, err
	}
	rs, err := backend(ctx).Runs(ctx, most)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListRunsResponse{Runs: all(rs, writeRunInfo)}, nil
}

func (runsService) Get(ctx context.Context, q *notedv1.GetRunRequest) (*notedv1.GetRunResponse, error) {
	run, err := backend(ctx).RunInfo(ctx, q.GetNumber())
	if err != nil {
		return nil, err
	}
	return &notedv1.GetRunResponse{Run: writeRunInfo(run)}, nil
}

func (runsService) Cancel(ctx context.Context, q *notedv1.CancelRunRequest) (*notedv1.CancelRunResponse, error) {
	run, err := backend(ctx).Cancel(ctx, q.GetNumber())
	if err != nil {
		return nil, err
	}
	return &notedv1.CancelRunResponse{Run: writeRunInfo(run)}, nil
}

func (runsService) Replay(ctx context.Context, q *notedv1.ReplayRunRequest) (*notedv1.ReplayRunResponse, error) {
	replay, err := backend(ctx).Replay(ctx, q.GetNumber())
	if err != nil {
		return nil, err
	}
	return &notedv1.ReplayRunResponse{Replay: writeReplay(replay)}, nil
}

func (runsService) Verify(ctx context.Context, _ *notedv1.VerifyLedgerRequest) (*notedv1.VerifyLedgerResponse, error) {
	report, err := backend(ctx).VerifyLedger(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.VerifyLedgerResponse{Report: writeLedgerReport(report)}, nil
}

func (runsService) Seal(ctx context.Context, q *notedv1.SealLedgerRequest) (*notedv1.SealLedgerResponse, error) {
	r := &reader{request: true}
	presence := within(r, "presence", q.GetPresence(), readPresence)
	if err := r.refused(); err != nil {
		return nil, err
	}
	report, err := backend(ctx).SealLedger(ctx, presence)
	if err != nil {
		return nil, err
	}
	return &notedv1.SealLedgerResponse{Report: writeLedgerReport(report)}, nil
}
