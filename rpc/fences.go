package rpc

import (
	"fmt"
	"maps"

	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeFenceInfo(f *notebook.FenceInfo) *notedv1.FenceInfo {
	return &notedv1.FenceInfo{
		Page:     idBytes(f.Page),
		Id:       idBytes(f.ID),
		Number:   int64(f.Number),
		Language: text(f.Language),
		Info:     text(f.Info),
		Code:     text(f.Code),
		Hash:     idBytes(f.Hash),
		Standing: text(f.Standing),
		Decision: text(f.Decision),
		Reason:   text(f.Reason),
		Approved: all(f.Approved, writeApproval),
		Last:     maybe(f.Last, writeRunInfo),
		Stale:    f.Stale,
		Includes: all(f.Includes, writeIncluded),
		Unseen:   f.Unseen,
	}
}

func readFenceInfo(r *reader, m *notedv1.FenceInfo) notebook.FenceInfo {
	return notebook.FenceInfo{
		Page:     id[notebook.PageID](r, "page", m.GetPage()),
		ID:       id[notebook.FenceID](r, "id", m.GetId()),
		Number:   r.integer("number", m.GetNumber()),
		Language: m.GetLanguage(),
		Info:     m.GetInfo(),
		Code:     m.GetCode(),
		Hash:     id[notebook.Hash](r, "hash", m.GetHash()),
		Standing: m.GetStanding(),
		Decision: m.GetDecision(),
		Reason:   m.GetReason(),
		Approved: every(r, "approved", m.GetApproved(), readApproval),
		Last:     within(r, "last", m.GetLast(), pointer(readRunInfo)),
		Stale:    m.GetStale(),
		Includes: every(r, "includes", m.GetIncludes(), readIncluded),
		Unseen:   m.GetUnseen(),
	}
}

func writeIncluded(i *notebook.Included) *notedv1.Included {
	return &notedv1.Included{Page: idBytes(i.Page), Title: text(i.Title), Fence: idBytes(i.Fence), Standing: text(i.Standing)}
}

func readIncluded(r *reader, m *notedv1.Included) notebook.Included {
	return notebook.Included{
		Page:     id[notebook.PageID](r, "page", m.GetPage()),
		Title:    m.GetTitle(),
		Fence:    id[notebook.FenceID](r, "fence", m.GetFence()),
		Standing: m.GetStanding(),
	}
}

func writeRange(g *notebook.Range) *notedv1.Range {
	return &notedv1.Range{
		From:    int64(g.From),
		To:      int64(g.To),
		Text:    text(g.Text),
		Author:  writeAuthor(&g.Author),
		Name:    text(g.Name),
		Deleted: g.Deleted,
	}
}

func readRange(r *reader, m *notedv1.Range) notebook.Range {
	return notebook.Range{
		From:    r.integer("from", m.GetFrom()),
		To:      r.integer("to", m.GetTo()),
		Text:    m.GetText(),
		Author:  within(r, "author", m.GetAuthor(), readAuthor),
		Name:    m.GetName(),
		Deleted: m.GetDeleted(),
	}
}

func writeExplanation(e *notebook.Explanation) *notedv1.Explanation {
	return &notedv1.Explanation{
		Fence:  writeFenceInfo(&e.Fence),
		Ranges: all(e.Ranges, writeRange),
		Rule:   text(e.Rule),
		Change: texts(e.Change),

		Closure: all(e.Closure, writePart),
	}
}

func readExplanation(r *reader, m *notedv1.Explanation) notebook.Explanation {
	return notebook.Explanation{
		Fence:  within(r, "fence", m.GetFence(), readFenceInfo),
		Ranges: every(r, "ranges", m.GetRanges(), readRange),
		Rule:   m.GetRule(),
		Change: m.GetChange(),

		Closure: every(r, "closure", m.GetClosure(), readPart),
	}
}

func writeFenceRef(f *notebook.FenceRef) *notedv1.FenceRef {
	return &notedv1.FenceRef{Page: idBytes(f.Page), Fence: idBytes(f.Fence), Shown: idBytes(f.Shown)}
}

func readFenceRef(r *reader, m *notedv1.FenceRef) notebook.FenceRef {
	return notebook.FenceRef{
		Page:  neededID[notebook.PageID](r, "page", m.GetPage()),
		Fence: neededID[notebook.FenceID](r, "fence", m.GetFence()),
		Shown: neededID[notebook.Hash](r, "shown", m.GetShown()),
	}
}

func writeRunRequest(q *notebook.RunRequest) *notedv1.RunRequest {
	return &notedv1.RunRequest{Ref: writeFenceRef(&q.FenceRef), Args: maps.Clone(q.Args)}
}

func readRunRequest(r *reader, m *notedv1.RunRequest) notebook.RunRequest {
	return notebook.RunRequest{
		FenceRef: needed(r, "ref", m.GetRef(), readFenceRef),
		Args:     r.args("args", m.GetArgs()),
	}
}

func writeProposalRequest(q *notebook.ProposalRequest) *notedv1.ProposalRequest {
	m := &notedv1.ProposalRequest{
		Ref:     writeFenceRef(&q.FenceRef),
		Rung:    notedv1.Rung(q.Rung),
		Scope:   string(q.Scope),
		Expires: timestamp(q.Expires),
		Args:    maps.Clone(q.Args),
		AnyArgs: q.AnyArgs,
	}
	for _, c := range q.Capabilities {
		m.Capabilities = append(m.Capabilities, string(c))
	}
	return m
}

func readProposalRequest(r *reader, m *notedv1.ProposalRequest) notebook.ProposalRequest {
	return notebook.ProposalRequest{
		FenceRef:     needed(r, "ref", m.GetRef(), readFenceRef),
		Rung:         enum(r, "rung", int32(m.GetRung()), notebook.Host),
		Capabilities: r.capabilities("capabilities", m.GetCapabilities()),
		Scope:        word(r, "scope", m.GetScope(), notebook.ScopeOnce, notebook.ScopeContent),
		Expires:      r.time("expires", m.GetExpires()),
		Args:         r.args("args", m.GetArgs()),
		AnyArgs:      m.GetAnyArgs(),
	}
}

// capabilities reads names; which of them exist is for trust to say.
func (r *reader) capabilities(field string, names []string) []notebook.Capability {
	if len(names) == 0 {
		return nil
	}
	if r.request && len(names) > notebook.MaxWants {
		r.wrong(field, "has %d entries and may have %d", len(names), notebook.MaxWants)
		return nil
	}
	cs := make([]notebook.Capability, 0, len(names))
	for i, n := range names {
		cs = append(cs, notebook.Capability(r.short(fmt.Sprintf("%s[%d]", field, i), n, notebook.MaxCapability)))
	}
	return cs
}

func writePart(p *notebook.Part) *notedv1.Part {
	return &notedv1.Part{Delimiter: text(p.Delimiter), Language: text(p.Language), Info: text(p.Info), Code: text(p.Code)}
}

func readPart(_ *reader, m *notedv1.Part) notebook.Part {
	return notebook.Part{Delimiter: m.GetDelimiter(), Language: m.GetLanguage(), Info: m.GetInfo(), Code: m.GetCode()}
}

func writeProposal(p *notebook.Proposal) *notedv1.Proposal {
	return &notedv1.Proposal{
		Request:  writeProposalRequest(&p.ProposalRequest),
		Digest:   idBytes(p.Digest),
		Closure:  all(p.Closure, writePart),
		Included: all(p.Included, writeIncluded),
		Standing: text(p.Standing),
		Origin:   texts(p.Origin),
		Limits:   writeLimits(&p.Limits),
		Notes:    texts(p.Notes),
		Previous: text(p.Previous),
	}
}

func readProposal(r *reader, m *notedv1.Proposal) notebook.Proposal {
	return notebook.Proposal{
		ProposalRequest: within(r, "request", m.GetRequest(), readProposalRequest),
		Digest:          id[notebook.Hash](r, "digest", m.GetDigest()),
		Closure:         every(r, "closure", m.GetClosure(), readPart),
		Included:        every(r, "included", m.GetIncluded(), readIncluded),
		Standing:        m.GetStanding(),
		Origin:          m.GetOrigin(),
		Limits:          within(r, "limits", m.GetLimits(), readLimits),
		Notes:           m.GetNotes(),
		Previous:        m.GetPrevious(),
	}
}

func writeApproval(a *notebook.Approval) *notedv1.Approval {
	return &notedv1.Approval{
		Id:           a.ID,
		Page:         idBytes(a.Page),
		Title:        text(a.Title),
		Fence:        idBytes(a.Fence),
		Digest:       idBytes(a.Digest),
		Closure:      idBytes(a.Closure),
		Rung:         notedv1.Rung(a.Rung),
		Capabilities: texts(a.Capabilities),
		Scope:        string(a.Scope),
		Given:        timestamp(a.Given),
		Expires:      timestamp(a.Expires),
		Spent:        a.Spent,
		Void:         text(a.Void),
		For:          text(a.For),
	}
}

func readApproval(r *reader, m *notedv1.Approval) notebook.Approval {
	return notebook.Approval{
		ID:           m.GetId(),
		Page:         id[notebook.PageID](r, "page", m.GetPage()),
		Title:        m.GetTitle(),
		Fence:        id[notebook.FenceID](r, "fence", m.GetFence()),
		Digest:       id[notebook.Hash](r, "digest", m.GetDigest()),
		Closure:      id[notebook.Hash](r, "closure", m.GetClosure()),
		Rung:         enum(r, "rung", int32(m.GetRung()), notebook.Host),
		Capabilities: r.capabilities("capabilities", m.GetCapabilities()),
		Scope:        word(r, "scope", m.GetScope(), notebook.ScopeOnce, notebook.ScopeContent),
		Given:        r.time("given", m.GetGiven()),
		Expires:      r.time("expires", m.GetExpires()),
		Spent:        m.GetSpent(),
		Void:         m.GetVoid(),
		For:          m.GetFor(),
	}
}
