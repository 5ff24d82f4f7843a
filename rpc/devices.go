package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeDeviceInfo(d *notebook.DeviceInfo) *notedv1.DeviceInfo {
	return &notedv1.DeviceInfo{
		Id:          idBytes(d.ID),
		Name:        text(d.Name),
		Role:        notedv1.Role(d.Role),
		Self:        d.Self,
		Removed:     d.Removed,
		AddedBy:     idBytes(d.AddedBy),
		Connected:   d.Connected,
		Addresses:   texts(d.Addresses),
		Behind:      d.Behind,
		LastSeen:    timestamp(d.LastSeen),
		Problem:     text(d.Problem),
		Quarantined: timestamp(d.Quarantined),
		Paused:      text(d.Paused),
	}
}

func readDeviceInfo(r *reader, m *notedv1.DeviceInfo) notebook.DeviceInfo {
	return notebook.DeviceInfo{
		ID:          id[notebook.DeviceID](r, "id", m.GetId()),
		Name:        m.GetName(),
		Role:        enum(r, "role", int32(m.GetRole()), notebook.RoleHub),
		Self:        m.GetSelf(),
		Removed:     m.GetRemoved(),
		AddedBy:     id[notebook.DeviceID](r, "added_by", m.GetAddedBy()),
		Connected:   m.GetConnected(),
		Addresses:   m.GetAddresses(),
		Behind:      m.GetBehind(),
		LastSeen:    r.time("last_seen", m.GetLastSeen()),
		Problem:     m.GetProblem(),
		Quarantined: r.time("quarantined", m.GetQuarantined()),
		Paused:      m.GetPaused(),
	}
}

func writeQuota(q *notebook.Quota) *notedv1.Quota {
	return &notedv1.Quota{Bytes: q.Bytes, Pages: q.Pages, Actors: q.Actors, Epochs: q.Epochs}
}

func readQuota(_ *reader, m *notedv1.Quota) notebook.Quota {
	return notebook.Quota{Bytes: m.GetBytes(), Pages: m.GetPages(), Actors: m.GetActors(), Epochs: m.GetEpochs()}
}

func writeDeviceQuota(q *notebook.DeviceQuota) *notedv1.DeviceQuota {
	return &notedv1.DeviceQuota{
		Device: idBytes(q.Device), Name: text(q.Name), Self: q.Self, Quota: writeQuota(&q.Quota), Used: writeQuota(&q.Used), Paused: text(q.Paused),
	}
}

func readDeviceQuota(r *reader, m *notedv1.DeviceQuota) notebook.DeviceQuota {
	return notebook.DeviceQuota{
		Device: id[notebook.DeviceID](r, "device", m.GetDevice()), Name: m.GetName(), Self: m.GetSelf(),
		Quota: within(r, "quota", m.GetQuota(), readQuota), Used: within(r, "used", m.GetUsed(), readQuota), Paused: m.GetPaused(),
	}
}

func writeQuarantineReport(q *notebook.QuarantineReport) *notedv1.QuarantineResponse {
	return &notedv1.QuarantineResponse{Stopped: q.Stopped, Voided: q.Voided, Ran: all(q.Ran, writeRunInfo), Count: int64(q.Count)}
}

func readQuarantineReport(r *reader, m *notedv1.QuarantineResponse) notebook.QuarantineReport {
	return notebook.QuarantineReport{
		Stopped: m.GetStopped(), Voided: m.GetVoided(), Ran: every(r, "ran", m.GetRan(), readRunInfo), Count: r.integer("count", m.GetCount()),
	}
}

func writeContradiction(c *notebook.Contradiction) *notedv1.Contradiction {
	return &notedv1.Contradiction{
		Device: idBytes(c.Device), Open: c.Open, Epoch: idBytes(c.Epoch), Seq: c.Seq,
		Stands: writeSignedHeader(&c.Stands), Other: writeSignedHeader(&c.Other), Lost: all(c.Lost, writeLostEntry), Count: int64(c.Count),
	}
}

func readContradiction(r *reader, m *notedv1.Contradiction) notebook.Contradiction {
	return notebook.Contradiction{
		Device: id[notebook.DeviceID](r, "device", m.GetDevice()), Open: m.GetOpen(), Epoch: id[notebook.Epoch](r, "epoch", m.GetEpoch()), Seq: m.GetSeq(),
		Stands: within(r, "stands", m.GetStands(), readSignedHeader), Other: within(r, "other", m.GetOther(), readSignedHeader),
		Lost: every(r, "lost", m.GetLost(), readLostEntry), Count: r.integer("count", m.GetCount()),
	}
}

func writeSignedHeader(h *notebook.SignedHeader) *notedv1.SignedHeader {
	return &notedv1.SignedHeader{Hash: idBytes(h.Hash), Header: h.Header, Signature: h.Sig}
}

func readSignedHeader(r *reader, m *notedv1.SignedHeader) notebook.SignedHeader {
	return notebook.SignedHeader{Hash: id[notebook.Hash](r, "hash", m.GetHash()), Header: m.GetHeader(), Sig: m.GetSignature()}
}

func writeLostEntry(e *notebook.LostEntry) *notedv1.LostEntry {
	return &notedv1.LostEntry{Page: idBytes(e.Page), Title: text(e.Title), Kind: text(e.Kind), Time: timestamp(e.Time), Text: text(e.Text)}
}

func readLostEntry(r *reader, m *notedv1.LostEntry) notebook.LostEntry {
	return notebook.LostEntry{
		Page: id[notebook.PageID](r, "page", m.GetPage()), Title: m.GetTitle(), Kind: m.GetKind(), Time: r.time("time", m.GetTime()), Text: m.GetText(),
	}
}

func writePairEvent(e *notebook.PairEvent) *notedv1.PairEvent {
	return &notedv1.PairEvent{
		Session:    text(e.Session),
		State:      string(e.State),
		Invitation: text(e.Invitation),
		Expires:    timestamp(e.Expires),
		Peer:       idBytes(e.Peer),
		Name:       text(e.Name),
		Notebook:   idBytes(e.Notebook),
		Code:       text(e.Code),
		Reason:     text(e.Reason),
	}
}

func readPairEvent(r *reader, m *notedv1.PairEvent) notebook.PairEvent {
	return notebook.PairEvent{
		Session:    m.GetSession(),
		State:      word(r, "state", m.GetState(), notebook.PairWaiting, notebook.PairCompare, notebook.PairDone, notebook.PairFailed),
		Invitation: m.GetInvitation(),
		Expires:    r.time("expires", m.GetExpires()),
		Peer:       id[notebook.DeviceID](r, "peer", m.GetPeer()),
		Name:       m.GetName(),
		Notebook:   id[notebook.NotebookID](r, "notebook", m.GetNotebook()),
		Code:       m.GetCode(),
		Reason:     m.GetReason(),
	}
}

func writeAgentInfo(a *notebook.AgentInfo) *notedv1.AgentInfo {
	return &notedv1.AgentInfo{Name: text(a.Name), Created: timestamp(a.Created), Open: int64(a.Open)}
}

func readAgentInfo(r *reader, m *notedv1.AgentInfo) notebook.AgentInfo {
	return notebook.AgentInfo{
		Name:    m.GetName(),
		Created: r.time("created", m.GetCreated()),
		Open:    r.integer("open", m.GetOpen()),
	}
}
