package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeAsk(a *notebook.Ask) *notedv1.Ask {
	return &notedv1.Ask{
		Id:       a.ID,
		Client:   text(a.Client),
		Reason:   text(a.Reason),
		Fence:    writeFenceInfo(&a.Fence),
		Title:    text(a.Title),
		Proposal: writeProposal(&a.Proposal),
		Asked:    timestamp(a.Asked),
		State:    text(a.State),
	}
}

func readAsk(r *reader, m *notedv1.Ask) notebook.Ask {
	return notebook.Ask{
		ID:       m.GetId(),
		Client:   m.GetClient(),
		Reason:   m.GetReason(),
		Fence:    within(r, "fence", m.GetFence(), readFenceInfo),
		Title:    m.GetTitle(),
		Proposal: within(r, "proposal", m.GetProposal(), readProposal),
		Asked:    r.time("asked", m.GetAsked()),
		State:    m.GetState(),
	}
}

func writeAnswer(a *notebook.Answer) *notedv1.Answer {
	return &notedv1.Answer{Ask: a.Ask, Digest: idBytes(a.Digest)}
}

func readAnswer(r *reader, m *notedv1.Answer) notebook.Answer {
	return notebook.Answer{Ask: m.GetAsk(), Digest: id[notebook.Hash](r, "digest", m.GetDigest())}
}
