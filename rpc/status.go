package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeStatus(s *notebook.Status) *notedv1.Status {
	return &notedv1.Status{
		Version:    text(s.Version),
		Pid:        int64(s.PID),
		Home:       text(s.Home),
		Notebook:   idBytes(s.Notebook),
		Device:     writeDeviceInfo(&s.Device),
		Pages:      int64(s.Pages),
		Entries:    s.Entries,
		Void:       int64(s.Void),
		Waiting:    int64(s.Waiting),
		Peers:      int64(s.Peers),
		Asks:       int64(s.Asks),
		Running:    int64(s.Running),
		Layers:     texts(s.Layers),
		Strict:     text(s.Strict),
		NoPin:      s.NoPIN,
		Started:    timestamp(s.Started),
		Notes:      texts(s.Notes),
		WriteModel: text(s.Model),
	}
}

func readStatus(r *reader, m *notedv1.Status) notebook.Status {
	return notebook.Status{
		Version:  m.GetVersion(),
		Model:    m.GetWriteModel(),
		PID:      r.integer("pid", m.GetPid()),
		Home:     m.GetHome(),
		Notebook: id[notebook.NotebookID](r, "notebook", m.GetNotebook()),
		Device:   within(r, "device", m.GetDevice(), readDeviceInfo),
		Pages:    r.integer("pages", m.GetPages()),
		Entries:  m.GetEntries(),
		Void:     r.integer("void", m.GetVoid()),
		Waiting:  r.integer("waiting", m.GetWaiting()),
		Peers:    r.integer("peers", m.GetPeers()),
		Asks:     r.integer("asks", m.GetAsks()),
		Running:  r.integer("running", m.GetRunning()),
		Layers:   m.GetLayers(),
		Strict:   m.GetStrict(),
		NoPIN:    m.GetNoPin(),
		Started:  r.time("started", m.GetStarted()),
		Notes:    m.GetNotes(),
	}
}

func writePolicyView(p *notebook.PolicyView) *notedv1.PolicyView {
	return &notedv1.PolicyView{
		Path:     text(p.Path),
		Digest:   idBytes(p.Digest),
		Accepted: p.Accepted,
		Lines:    all(p.Lines, writePolicyLine),
		Problem:  text(p.Problem),
	}
}

func readPolicyView(r *reader, m *notedv1.PolicyView) notebook.PolicyView {
	return notebook.PolicyView{
		Path:     m.GetPath(),
		Digest:   id[notebook.Hash](r, "digest", m.GetDigest()),
		Accepted: m.GetAccepted(),
		Lines:    every(r, "lines", m.GetLines(), readPolicyLine),
		Problem:  m.GetProblem(),
	}
}

func writePolicyLine(l *notebook.PolicyLine) *notedv1.PolicyLine {
	return &notedv1.PolicyLine{Rule: text(l.Rule), Value: text(l.Value), Source: text(l.Source)}
}

func readPolicyLine(_ *reader, m *notedv1.PolicyLine) notebook.PolicyLine {
	return notebook.PolicyLine{Rule: m.GetRule(), Value: m.GetValue(), Source: m.GetSource()}
}

func writePolicyCase(c *notebook.PolicyCase) *notedv1.PolicyCase {
	return &notedv1.PolicyCase{
		Name: text(c.Name), Line: int64(c.Line), Expected: text(c.Expected), Decided: text(c.Decided),
		Rule: text(c.Rule), Reason: text(c.Reason), Passed: c.Passed,
	}
}

func readPolicyCase(_ *reader, m *notedv1.PolicyCase) notebook.PolicyCase {
	return notebook.PolicyCase{
		Name: m.GetName(), Line: int(m.GetLine()), Expected: m.GetExpected(), Decided: m.GetDecided(),
		Rule: m.GetRule(), Reason: m.GetReason(), Passed: m.GetPassed(),
	}
}

func writeEvent(e *notebook.Event) *notedv1.Event {
	return &notedv1.Event{
		Time:   timestamp(e.Time),
		Kind:   text(e.Kind),
		Page:   idBytes(e.Page),
		Title:  text(e.Title),
		Fence:  idBytes(e.Fence),
		Run:    maybe(e.Run, writeRunInfo),
		Ask:    maybe(e.Ask, writeAsk),
		Device: idBytes(e.Device),
		Text:   text(e.Text),

		Output:  text(e.Output),
		Dropped: e.Dropped,
	}
}

func readEvent(r *reader, m *notedv1.Event) notebook.Event {
	return notebook.Event{
		Time:   r.time("time", m.GetTime()),
		Kind:   m.GetKind(),
		Page:   id[notebook.PageID](r, "page", m.GetPage()),
		Title:  m.GetTitle(),
		Fence:  id[notebook.FenceID](r, "fence", m.GetFence()),
		Run:    within(r, "run", m.GetRun(), pointer(readRunInfo)),
		Ask:    within(r, "ask", m.GetAsk(), pointer(readAsk)),
		Device: id[notebook.DeviceID](r, "device", m.GetDevice()),
		Text:   m.GetText(),

		Output:  m.GetOutput(),
		Dropped: m.GetDropped(),
	}
}
