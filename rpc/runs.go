package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeResult(v *notebook.Result) *notedv1.Result {
	output, head := text(v.Output), v.Head
	if output != v.Output && 0 <= head && head <= len(v.Output) {
		// Each part by itself, so that Head still ends where the head does.
		first := text(v.Output[:head])
		output, head = first+text(v.Output[head:]), len(first)
	}
	return &notedv1.Result{
		Fence:   idBytes(v.Fence),
		Closure: idBytes(v.Closure),
		Inputs:  idBytes(v.Inputs),
		Rung:    notedv1.Rung(v.Rung),
		Verdict: notedv1.Verdict(v.Verdict),
		Output:  output,
		Dropped: v.Dropped,
		Head:    int64(head),
		Error:   text(v.Error),
		Started: v.Started,
		Took:    v.Took,
		Peak:    v.Peak,
		Limits:  writeLimits(&v.Limits),
		Layers:  texts(v.Layers),

		Sent:     v.Sent,
		Received: v.Received,
	}
}

func readResult(r *reader, m *notedv1.Result) notebook.Result {
	return notebook.Result{
		Fence:   id[notebook.FenceID](r, "fence", m.GetFence()),
		Closure: id[notebook.Hash](r, "closure", m.GetClosure()),
		Inputs:  id[notebook.Hash](r, "inputs", m.GetInputs()),
		Rung:    enum(r, "rung", int32(m.GetRung()), notebook.Host),
		Verdict: enum(r, "verdict", int32(m.GetVerdict()), notebook.Cancelled),
		Output:  m.GetOutput(),
		Dropped: m.GetDropped(),
		Head:    r.integer("head", m.GetHead()),
		Error:   m.GetError(),
		Started: m.GetStarted(),
		Took:    m.GetTook(),
		Peak:    m.GetPeak(),
		Limits:  within(r, "limits", m.GetLimits(), readLimits),
		Layers:  m.GetLayers(),

		Sent:     m.GetSent(),
		Received: m.GetReceived(),
	}
}

func writeRunInfo(v *notebook.RunInfo) *notedv1.RunInfo {
	return &notedv1.RunInfo{
		Number:   v.Number,
		Page:     idBytes(v.Page),
		Title:    text(v.Title),
		Fence:    idBytes(v.Fence),
		Language: text(v.Language),
		Standing: text(v.Standing),
		Client:   text(v.Client),
		State:    text(v.State),
		Reason:   text(v.Reason),
		Result:   writeResult(&v.Result),

		Engine:       idBytes(v.Engine),
		Capabilities: texts(v.Capabilities),
		Rule:         text(v.Rule),
		Approval:     v.Approval,
		Replays:      v.Replays,
	}
}

func readRunInfo(r *reader, m *notedv1.RunInfo) notebook.RunInfo {
	return notebook.RunInfo{
		Number:   m.GetNumber(),
		Page:     id[notebook.PageID](r, "page", m.GetPage()),
		Title:    m.GetTitle(),
		Fence:    id[notebook.FenceID](r, "fence", m.GetFence()),
		Language: m.GetLanguage(),
		Standing: m.GetStanding(),
		Client:   m.GetClient(),
		State:    m.GetState(),
		Reason:   m.GetReason(),
		Result:   within(r, "result", m.GetResult(), readResult),

		Engine:       id[notebook.Hash](r, "engine", m.GetEngine()),
		Capabilities: r.capabilities("capabilities", m.GetCapabilities()),
		Rule:         m.GetRule(),
		Approval:     m.GetApproval(),
		Replays:      m.GetReplays(),
	}
}

func writeRunOutput(v *notebook.RunOutput) *notedv1.RunOutput {
	return &notedv1.RunOutput{Number: v.Number, Text: text(v.Text), Dropped: v.Dropped}
}

func readRunOutput(_ *reader, m *notedv1.RunOutput) notebook.RunOutput {
	return notebook.RunOutput{Number: m.GetNumber(), Text: m.GetText(), Dropped: m.GetDropped()}
}

func writeReplay(v *notebook.Replay) *notedv1.Replay {
	return &notedv1.Replay{Run: writeRunInfo(&v.Run), Of: writeRunInfo(&v.Of), Differs: texts(v.Differs)}
}

func readReplay(r *reader, m *notedv1.Replay) notebook.Replay {
	return notebook.Replay{
		Run:     within(r, "run", m.GetRun(), readRunInfo),
		Of:      within(r, "of", m.GetOf(), readRunInfo),
		Differs: m.GetDiffers(),
	}
}

func writeLedgerReport(v *notebook.LedgerReport) *notedv1.LedgerReport {
	return &notedv1.LedgerReport{
		Records: int64(v.Records), Head: idBytes(v.Head), Problem: text(v.Problem), Seals: all(v.Seals, writeLedgerSeal),
	}
}

func readLedgerReport(r *reader, m *notedv1.LedgerReport) notebook.LedgerReport {
	return notebook.LedgerReport{
		Records: r.integer("records", m.GetRecords()),
		Head:    id[notebook.Hash](r, "head", m.GetHead()),
		Problem: m.GetProblem(),
		Seals:   every(r, "seals", m.GetSeals(), readLedgerSeal),
	}
}

func writeLedgerSeal(v *notebook.LedgerSeal) *notedv1.LedgerSeal {
	return &notedv1.LedgerSeal{Number: v.Number, Reason: text(v.Reason)}
}

func readLedgerSeal(_ *reader, m *notedv1.LedgerSeal) notebook.LedgerSeal {
	return notebook.LedgerSeal{Number: m.GetNumber(), Reason: m.GetReason()}
}
