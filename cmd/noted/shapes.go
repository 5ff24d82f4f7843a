package main

import (
	"slices"
	"time"

	"noted/notebook"
)

// What --json writes as data. Names are snake_case, ids and digests lower case
// hexadecimal digits, device ids fingerprints, times RFC 3339 in UTC, durations
// and sizes whole numbers in the unit that the name says. A time that is not
// known is left out. The doc tags are the reference that docs/cli.md prints.

type pageJSON struct {
	ID         string    `json:"id"`
	Title      string    `json:"title"`
	Revision   []string  `json:"revision" doc:"heads of the state that was shown"`
	Bytes      int       `json:"bytes" doc:"size of the body"`
	FenceCount int       `json:"fence_count"`
	Changed    time.Time `json:"changed,omitzero" doc:"of the newest entry, as its author claims"`
	Deleted    bool      `json:"deleted"`
	Notes      []string  `json:"notes" doc:"what a person should know"`
}

type rowsJSON struct {
	Rows  []rowJSON `json:"rows"`
	Found int       `json:"found" doc:"how many there are, also those that are not in rows"`

	Unread  int      `json:"unread" doc:"pages that are damaged and could not be read: what they hold is not in rows"`
	Damaged []string `json:"damaged" doc:"ids of these pages, 20 at most"`
}

type rowJSON struct {
	Page     string   `json:"page" doc:"id of the page"`
	Title    string   `json:"title" doc:"of the page"`
	Line     int      `json:"line" doc:"of the block's first line, from 1; 0 of a page"`
	Text     string   `json:"text" doc:"of the block, or its beginning; empty of a page"`
	Tags     []string `json:"tags"`
	Task     string   `json:"task,omitempty" doc:"todo or done"`
	Date     string   `json:"date,omitempty" doc:"as 2006-01-02"`
	Standing string   `json:"standing" doc:"of the text and the title: local, or the foreign authors"`
}

type pageViewJSON struct {
	pageJSON
	Body   string      `json:"body"`
	Fences []fenceJSON `json:"fences"`
}

type fenceJSON struct {
	Page      string         `json:"page" doc:"id of the page"`
	ID        string         `json:"id"`
	Ref       string         `json:"ref" doc:"what to write after the # of a reference"`
	Number    int            `json:"number" doc:"the Nth fence of its page, from 1"`
	Language  string         `json:"language"`
	Info      string         `json:"info"`
	Code      string         `json:"code"`
	Hash      string         `json:"hash" doc:"of the exact bytes; see --shown"`
	Standing  string         `json:"standing" doc:"local, or the foreign authors"`
	Decision  string         `json:"decision" doc:"what a request to run would get: strict, granted, host, ask or refuse"`
	Reason    string         `json:"reason"`
	Approvals []approvalJSON `json:"approvals"`
	Last      *runJSON       `json:"last,omitempty" doc:"the newest run here"`
	Stale     bool           `json:"stale" doc:"the newest run was of other bytes"`
	Includes  []includedJSON `json:"includes" doc:"what runs before it, in order"`
	Unseen    bool           `json:"unseen,omitempty" doc:"its page includes too much to look at all at once: fence show looks at it alone"`
}

type includedJSON struct {
	Page     string `json:"page" doc:"id of its page"`
	Title    string `json:"title"`
	ID       string `json:"id"`
	Ref      string `json:"ref"`
	Standing string `json:"standing" doc:"of this fence alone"`
}

type rangeJSON struct {
	From    int    `json:"from" doc:"code points from the start of the body"`
	To      int    `json:"to"`
	Text    string `json:"text"`
	Device  string `json:"device"`
	Class   string `json:"class" doc:"typed, agent, import or moved"`
	Label   string `json:"label,omitempty"`
	Name    string `json:"name" doc:"the author as this device calls it"`
	Deleted bool   `json:"deleted" doc:"the author deleted this text"`
}

type whyJSON struct {
	Fence  fenceJSON   `json:"fence"`
	Ranges []rangeJSON `json:"ranges" doc:"who wrote what"`
	Rule   string      `json:"rule" doc:"what decided"`
	Change []string    `json:"change" doc:"what would change it"`

	Closure []partJSON `json:"closure" doc:"the exact bytes, what it includes first"`
}

type limitsJSON struct {
	TimeMS int64 `json:"time_ms"`
	Memory int64 `json:"memory_bytes"`
	Output int   `json:"output_bytes"`
	Source int   `json:"source_bytes"`
}

type approvalJSON struct {
	ID           uint64    `json:"id"`
	Page         string    `json:"page"`
	Title        string    `json:"title"`
	Fence        string    `json:"fence"`
	Digest       string    `json:"digest"`
	Closure      string    `json:"closure"`
	Rung         string    `json:"rung"`
	Capabilities []string  `json:"capabilities"`
	Scope        string    `json:"scope" doc:"once or content"`
	Given        time.Time `json:"given,omitzero"`
	Expires      time.Time `json:"expires,omitzero"`
	Spent        bool      `json:"spent"`
	Void         string    `json:"void,omitempty" doc:"why it no longer counts"`
	For          string    `json:"for" doc:"whose runs it allows: owner, agent:NAME"`
}

type partJSON struct {
	Delimiter string `json:"delimiter"`
	Language  string `json:"language"`
	Info      string `json:"info"`
	Code      string `json:"code"`
}

type proposalJSON struct {
	Page         string            `json:"page"`
	Fence        string            `json:"fence"`
	Ref          string            `json:"ref"`
	Digest       string            `json:"digest" doc:"what an approval takes"`
	Hash         string            `json:"hash"`
	Rung         string            `json:"rung"`
	Capabilities []string          `json:"capabilities"`
	Scope        string            `json:"scope"`
	Expires      time.Time         `json:"expires,omitzero"`
	Args         map[string]string `json:"args,omitempty"`
	AnyArgs      bool              `json:"any_args"`
	Closure      []partJSON        `json:"closure" doc:"the exact bytes, in the order in which they run"`
	Included     []includedJSON    `json:"included" doc:"where the parts but the last are"`
	Standing     string            `json:"standing"`
	Origin       []string          `json:"origin"`
	Limits       limitsJSON        `json:"limits"`
	Notes        []string          `json:"notes" doc:"what is unusual"`
	Previous     string            `json:"previous,omitempty" doc:"text of what was approved last"`
}

type askJSON struct {
	ID       uint64       `json:"id"`
	Client   string       `json:"client"`
	Reason   string       `json:"reason" doc:"the client's words"`
	Title    string       `json:"title"`
	Fence    fenceJSON    `json:"fence"`
	Proposal proposalJSON `json:"proposal"`
	Asked    time.Time    `json:"asked,omitzero"`
	State    string       `json:"state" doc:"open, approved, denied or void"`
}

type deviceJSON struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Role        string    `json:"role" doc:"member or hub"`
	Self        bool      `json:"self"`
	Removed     bool      `json:"removed"`
	AddedBy     string    `json:"added_by,omitempty"`
	Connected   bool      `json:"connected"`
	Addresses   []string  `json:"addresses"`
	Behind      uint64    `json:"behind" doc:"entries of this device that it has not acknowledged"`
	LastSeen    time.Time `json:"last_seen,omitzero"`
	Problem     string    `json:"problem,omitempty"`
	Quarantined time.Time `json:"quarantined,omitzero" doc:"since when nothing of it runs here unasked"`
	Paused      string    `json:"paused,omitempty" doc:"why its log is paused here, and what ends that"`
}

type quotaJSON struct {
	Device string     `json:"device"`
	Name   string     `json:"name"`
	Self   bool       `json:"self" doc:"its own entries never pause"`
	Quota  boundsJSON `json:"quota"`
	Used   boundsJSON `json:"used"`
	Paused string     `json:"paused,omitempty" doc:"why its log is paused here, and what ends that"`
}

type boundsJSON struct {
	Bytes  uint64 `json:"bytes" doc:"of its entries"`
	Pages  uint64 `json:"pages" doc:"that it began"`
	Actors uint64 `json:"actors" doc:"its doors on one page, in each opening of its store; of use: the most on any page so far"`
	Epochs uint64 `json:"epochs" doc:"openings of its store"`
}

type quarantineJSON struct {
	Device  deviceJSON `json:"device"`
	Stopped []uint64   `json:"stopped" doc:"numbers of the runs that were under way"`
	Voided  []uint64   `json:"voided" doc:"numbers of the approvals that rested on its text"`
	Ran     []runJSON  `json:"ran" doc:"what of it ran here before, newest first, without output"`
	Count   int        `json:"count" doc:"how many ran, also those that are not listed"`
}

type contradictionJSON struct {
	Device string           `json:"device"`
	Open   bool             `json:"open" doc:"nothing new of the device is taken until a person decides"`
	Epoch  string           `json:"epoch"`
	Seq    uint64           `json:"seq" doc:"the place in the epoch for which there are two entries"`
	Stands signedHeaderJSON `json:"stands" doc:"the entry that stands: the one with the lower hash"`
	Other  signedHeaderJSON `json:"other" doc:"the one that is void"`
	Lost   []lostEntryJSON  `json:"lost" doc:"entries of the device that do not stand, newest first"`
	Count  int              `json:"count" doc:"how many there are, also those that are not listed"`
}

type signedHeaderJSON struct {
	Hash      string `json:"hash"`
	Header    []byte `json:"header" doc:"as it was signed, in base64"`
	Signature []byte `json:"signature" doc:"by the device, in base64"`
}

type lostEntryJSON struct {
	Page  string    `json:"page,omitempty"`
	Title string    `json:"title,omitempty"`
	Kind  string    `json:"kind"`
	Time  time.Time `json:"time,omitzero" doc:"as the device claims"`
	Text  string    `json:"text" doc:"what it inserts or sets, at most its beginning"`
}

type pairJSON struct {
	Session    string    `json:"session"`
	State      string    `json:"state" doc:"waiting, compare, done or failed"`
	Invitation string    `json:"invitation,omitempty" doc:"the URI for the other device"`
	Expires    time.Time `json:"expires,omitzero"`
	Peer       string    `json:"peer,omitempty"`
	Name       string    `json:"name,omitempty" doc:"of the other device, its claim"`
	Notebook   string    `json:"notebook,omitempty"`
	Code       string    `json:"code,omitempty" doc:"six digits, the same on both screens"`
	Reason     string    `json:"reason,omitempty"`
}

type agentJSON struct {
	Name      string    `json:"name"`
	Created   time.Time `json:"created,omitzero"`
	OpenAsks  int       `json:"open_asks"`
	TokenFile string    `json:"token_file,omitempty"`
}

type importJSON struct {
	Source string           `json:"source"`
	Files  int              `json:"files"`
	Pages  int              `json:"pages"`
	Fences int              `json:"fences"`
	Bytes  int64            `json:"bytes"`
	Lines  []importLineJSON `json:"lines" doc:"what was left out or changed"`
}

type importLineJSON struct {
	Path   string `json:"path"`
	Taken  bool   `json:"taken"`
	Reason string `json:"reason"`
}

type policyJSON struct {
	Path     string           `json:"path"`
	Digest   string           `json:"digest" doc:"of the file as it is now"`
	Accepted bool             `json:"accepted" doc:"the file is the one in force"`
	Lines    []policyLineJSON `json:"lines" doc:"what is in force"`
	Problem  string           `json:"problem,omitempty" doc:"why the file cannot be read"`
}

type policyLineJSON struct {
	Rule   string `json:"rule"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

type policyCaseJSON struct {
	Name     string `json:"name"`
	Line     int    `json:"line" doc:"of the file of fixtures"`
	Expected string `json:"expected"`
	Decided  string `json:"decided"`
	Rule     string `json:"rule,omitempty" doc:"the line of the policy that decided"`
	Reason   string `json:"reason,omitempty"`
	Passed   bool   `json:"passed"`
}

type ledgerJSON struct {
	Records int    `json:"records"`
	Head    string `json:"head"`
	Problem string `json:"problem,omitempty"`

	Seals []ledgerSealJSON `json:"seals,omitempty"`
}

type ledgerSealJSON struct {
	Number uint64 `json:"number"`
	Reason string `json:"reason"`
}

type statusJSON struct {
	Version  string     `json:"version"`
	Model    string     `json:"write_model"`
	PID      int        `json:"pid"`
	Home     string     `json:"home"`
	Notebook string     `json:"notebook"`
	Device   deviceJSON `json:"device"`
	Pages    int        `json:"pages"`
	Entries  uint64     `json:"entries"`
	Void     int        `json:"void"`
	Waiting  int        `json:"waiting"`
	Peers    int        `json:"peers" doc:"devices connected now"`
	Asks     int        `json:"asks" doc:"open"`
	Running  int        `json:"running"`
	Layers   []string   `json:"layers" doc:"of the jail"`
	Strict   string     `json:"strict,omitempty" doc:"why no fence can run here"`
	NoPIN    bool       `json:"no_pin"`
	Started  time.Time  `json:"started,omitzero"`
	Notes    []string   `json:"notes" doc:"what wants a person's attention"`
}

type eventJSON struct {
	Time   time.Time `json:"time,omitzero"`
	Kind   string    `json:"kind" doc:"page, run, output, ask, device, sync or note"`
	Page   string    `json:"page,omitempty"`
	Title  string    `json:"title,omitempty"`
	Fence  string    `json:"fence,omitempty"`
	Run    *runJSON  `json:"run,omitempty"`
	Ask    *askJSON  `json:"ask,omitempty"`
	Device string    `json:"device,omitempty"`
	Text   string    `json:"text"`

	Output  string `json:"output,omitempty" doc:"what the run wrote since its last event"`
	Dropped int64  `json:"dropped_bytes,omitempty" doc:"bytes of output before that which are not told: this watcher did not keep up"`
}

type homeJSON struct {
	State  string `json:"state" doc:"new, stopped or running"`
	Config string `json:"config"`
	Data   string `json:"data"`
	Next   string `json:"next" doc:"the next command"`
}

type readyJSON struct {
	PID      int    `json:"pid"`
	Socket   string `json:"socket"`
	Device   string `json:"device"`
	Notebook string `json:"notebook"`
}

// shape makes the JSON form of every element of a list; an empty list is [].
func shape[V, J any](all []V, one func(V) J) []J {
	out := make([]J, 0, len(all))
	for _, v := range all {
		out = append(out, one(v))
	}
	return out
}

func list(all []string) []string { return append([]string{}, all...) }

// id is the text of an id, empty for none.
func id[T interface {
	IsZero() bool
	String() string
}](v T,
) string {
	if v.IsZero() {
		return ""
	}
	return v.String()
}

func pageShape(p notebook.PageInfo) pageJSON {
	return pageJSON{
		ID: p.ID.String(), Title: p.Title, Revision: shape(p.Revision, notebook.Hash.String), Bytes: p.Size,
		FenceCount: p.Fences, Changed: p.Changed.UTC(), Deleted: p.Deleted, Notes: list(p.Notes),
	}
}

func rowsShape(rows *notebook.Rows) rowsJSON {
	return rowsJSON{Found: rows.Found, Unread: rows.Unread, Damaged: shape(rows.Damaged, notebook.PageID.String), Rows: shape(rows.List, func(r notebook.Row) rowJSON {
		return rowJSON{
			Page: r.Page.String(), Title: r.Title, Line: r.Line, Text: r.Text, Tags: list(r.Tags),
			Task: string(r.Task), Date: r.Date, Standing: r.Standing,
		}
	})}
}

func pageViewShape(p *notebook.PageView) pageViewJSON {
	return pageViewJSON{pageJSON: pageShape(p.PageInfo), Body: p.Body, Fences: shape(p.Fences, fenceShape)}
}

func fenceShape(f notebook.FenceInfo) fenceJSON {
	j := fenceJSON{
		Page: f.Page.String(), ID: f.ID.String(), Ref: f.ID.Short(), Number: f.Number, Language: f.Language, Info: f.Info,
		Code: f.Code, Hash: f.Hash.String(), Standing: f.Standing, Decision: f.Decision, Reason: f.Reason,
		Approvals: shape(f.Approved, approvalShape), Stale: f.Stale,
		Includes: shape(f.Includes, includedShape), Unseen: f.Unseen,
	}
	if f.Last != nil {
		r := runShape(*f.Last)
		j.Last = &r
	}
	return j
}

func includedShape(i notebook.Included) includedJSON {
	return includedJSON{Page: i.Page.String(), Title: i.Title, ID: i.Fence.String(), Ref: i.Fence.Short(), Standing: i.Standing}
}

func partShape(p notebook.Part) partJSON {
	return partJSON{Delimiter: p.Delimiter, Language: p.Language, Info: p.Info, Code: p.Code}
}

func whyShape(e *notebook.Explanation) whyJSON {
	return whyJSON{Fence: fenceShape(e.Fence), Rule: e.Rule, Change: list(e.Change), Closure: shape(e.Closure, partShape), Ranges: shape(e.Ranges, func(r notebook.Range) rangeJSON {
		return rangeJSON{
			From: r.From, To: r.To, Text: r.Text, Device: r.Author.Device.String(), Class: r.Author.Class.String(),
			Label: r.Author.Label, Name: r.Name, Deleted: r.Deleted,
		}
	})}
}

func limitsShape(l notebook.Limits) limitsJSON {
	return limitsJSON{TimeMS: l.Time.Milliseconds(), Memory: l.Memory, Output: l.Output, Source: l.Source}
}

func capabilities(all []notebook.Capability) []string {
	return shape(all, func(c notebook.Capability) string { return string(c) })
}

func approvalShape(p notebook.Approval) approvalJSON {
	return approvalJSON{
		ID: p.ID, Page: id(p.Page), Title: p.Title, Fence: id(p.Fence), Digest: p.Digest.String(), Closure: p.Closure.String(),
		Rung: p.Rung.String(), Capabilities: capabilities(p.Capabilities), Scope: string(p.Scope),
		Given: p.Given.UTC(), Expires: p.Expires.UTC(), Spent: p.Spent, Void: p.Void, For: p.For,
	}
}

func proposalShape(p *notebook.Proposal) proposalJSON {
	return proposalJSON{
		Page: id(p.Page), Fence: id(p.Fence), Ref: p.Fence.Short(), Digest: p.Digest.String(), Hash: p.Shown.String(),
		Rung: p.Rung.String(), Capabilities: capabilities(p.Capabilities), Scope: string(p.Scope), Expires: p.Expires.UTC(),
		Args: p.Args, AnyArgs: p.AnyArgs, Standing: p.Standing, Origin: list(p.Origin), Limits: limitsShape(p.Limits),
		Notes: list(p.Notes), Previous: p.Previous,
		Closure: shape(p.Closure, partShape), Included: shape(p.Included, includedShape),
	}
}

func askShape(k notebook.Ask) askJSON {
	return askJSON{
		ID: k.ID, Client: k.Client, Reason: k.Reason, Title: k.Title, Fence: fenceShape(k.Fence),
		Proposal: proposalShape(&k.Proposal), Asked: k.Asked.UTC(), State: k.State,
	}
}

func role(r notebook.Role) string {
	switch r {
	case notebook.RoleMember:
		return "member"
	case notebook.RoleHub:
		return "hub"
	}
	return "unknown"
}

func deviceShape(d notebook.DeviceInfo) deviceJSON {
	return deviceJSON{
		ID: d.ID.String(), Name: d.Name, Role: role(d.Role), Self: d.Self, Removed: d.Removed, AddedBy: id(d.AddedBy),
		Connected: d.Connected, Addresses: list(d.Addresses), Behind: d.Behind, LastSeen: d.LastSeen.UTC(), Problem: d.Problem,
		Quarantined: d.Quarantined.UTC(), Paused: d.Paused,
	}
}

func quotaShapes(quotas []notebook.DeviceQuota) []quotaJSON { return shape(quotas, quotaShape) }

func quotaShape(q notebook.DeviceQuota) quotaJSON {
	return quotaJSON{Device: q.Device.String(), Name: q.Name, Self: q.Self, Quota: boundsJSON(q.Quota), Used: boundsJSON(q.Used), Paused: q.Paused}
}

func quarantineShape(d *notebook.DeviceInfo, r *notebook.QuarantineReport) quarantineJSON {
	return quarantineJSON{Device: deviceShape(*d), Stopped: append([]uint64{}, r.Stopped...), Voided: append([]uint64{}, r.Voided...), Ran: shape(r.Ran, runShape), Count: r.Count}
}

func contradictionShape(c *notebook.Contradiction) contradictionJSON {
	signed := func(h notebook.SignedHeader) signedHeaderJSON {
		return signedHeaderJSON{Hash: h.Hash.String(), Header: h.Header, Signature: h.Sig}
	}
	return contradictionJSON{
		Device: c.Device.String(), Open: c.Open, Epoch: c.Epoch.String(), Seq: c.Seq, Stands: signed(c.Stands), Other: signed(c.Other),
		Lost: shape(c.Lost, func(e notebook.LostEntry) lostEntryJSON {
			return lostEntryJSON{Page: id(e.Page), Title: e.Title, Kind: e.Kind, Time: e.Time.UTC(), Text: e.Text}
		}), Count: c.Count,
	}
}

func pairShape(e notebook.PairEvent) pairJSON {
	return pairJSON{
		Session: e.Session, State: string(e.State), Invitation: e.Invitation, Expires: e.Expires.UTC(), Peer: id(e.Peer),
		Name: e.Name, Notebook: id(notebook.Hash(e.Notebook)), Code: e.Code, Reason: e.Reason,
	}
}

func agentShape(g notebook.AgentInfo) agentJSON {
	return agentJSON{Name: g.Name, Created: g.Created.UTC(), OpenAsks: g.Open}
}

func importShape(r *notebook.ImportReport) importJSON {
	return importJSON{
		Source: r.Source, Files: r.Files, Pages: r.Pages, Fences: r.Fences, Bytes: r.Bytes,
		Lines: shape(r.Lines, func(l notebook.ImportLine) importLineJSON { return importLineJSON(l) }),
	}
}

func policyShape(p *notebook.PolicyView) policyJSON {
	return policyJSON{
		Path: p.Path, Digest: p.Digest.String(), Accepted: p.Accepted, Problem: p.Problem,
		Lines: shape(p.Lines, func(l notebook.PolicyLine) policyLineJSON { return policyLineJSON(l) }),
	}
}

func ledgerShape(l *notebook.LedgerReport) ledgerJSON {
	return ledgerJSON{Records: l.Records, Head: l.Head.String(), Problem: l.Problem, Seals: shape(l.Seals, func(s notebook.LedgerSeal) ledgerSealJSON { return ledgerSealJSON(s) })}
}

func statusShape(s *notebook.Status) statusJSON {
	return statusJSON{
		Version: s.Version, Model: s.Model, PID: s.PID, Home: s.Home, Notebook: s.Notebook.String(), Device: deviceShape(s.Device), Pages: s.Pages,
		Entries: s.Entries, Void: s.Void, Waiting: s.Waiting, Peers: s.Peers, Asks: s.Asks, Running: s.Running,
		Layers: list(s.Layers), Strict: s.Strict, NoPIN: s.NoPIN, Started: s.Started.UTC(), Notes: list(s.Notes),
	}
}

func eventShape(e notebook.Event) eventJSON {
	j := eventJSON{
		Time: e.Time.UTC(), Kind: e.Kind, Page: id(e.Page), Title: e.Title, Fence: id(e.Fence), Device: id(e.Device), Text: e.Text,
		Output: e.Output, Dropped: e.Dropped,
	}
	if e.Run != nil {
		r := runShape(*e.Run)
		j.Run = &r
	}
	if e.Ask != nil {
		k := askShape(*e.Ask)
		j.Ask = &k
	}
	return j
}

// shapes names every form of data, for the reference.
func shapes() map[string]any {
	return map[string]any{
		"page": pageJSON{}, "page view": pageViewJSON{}, "rows": rowsJSON{}, "fence": fenceJSON{}, "why": whyJSON{}, "range": rangeJSON{},
		"limits": limitsJSON{}, "run": runJSON{}, "replay": replayJSON{}, "result": resultJSON{}, "approval": approvalJSON{}, "part": partJSON{}, "included": includedJSON{},
		"proposal": proposalJSON{}, "ask": askJSON{}, "device": deviceJSON{}, "quarantine": quarantineJSON{},
		"contradiction": contradictionJSON{}, "signed header": signedHeaderJSON{}, "lost entry": lostEntryJSON{}, "quota": quotaJSON{}, "pairing": pairJSON{}, "agent": agentJSON{}, "engine": engineJSON{},
		"import": importJSON{}, "import line": importLineJSON{}, "policy": policyJSON{}, "policy line": policyLineJSON{}, "policy case": policyCaseJSON{},
		"ledger": ledgerJSON{}, "status": statusJSON{}, "event": eventJSON{}, "home": homeJSON{}, "ready": readyJSON{},
		"reset": resetJSON{}, "doctor": doctorJSON{}, "ledger seal": ledgerSealJSON{},
	}
}

// shapeNames are the names in the order of the reference.
func shapeNames() []string {
	var names []string
	for name := range shapes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
