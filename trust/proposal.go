package trust

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"noted/notebook"
)

// Proposal is what an approval would pin. Only [Propose] makes one that can be given.
type Proposal struct {
	pins pins
	view notebook.Proposal
}

// View is the proposal for a person to read.
func (p Proposal) View() notebook.Proposal { return p.view }

// Digest names everything that the approval would pin; approving takes it.
func (p Proposal) Digest() notebook.Hash { return p.view.Digest }

// Propose says what approving a fence would mean. The request is as for
// [Decide]: its client is who would run the fence, whoever approves it; args
// and the fence's address are taken from the proposal request. A fence that
// policy refuses, or that nobody can run, cannot be approved.
func Propose(r Request, ask notebook.ProposalRequest) (Proposal, *Refusal) {
	if ask.Page != r.Page || ask.Fence != r.Fence {
		return Proposal{}, &Refusal{Code: notebook.CodeInvalid, Reason: "the proposal is about another fence"}
	}
	r.Shown, r.Args = ask.Shown, ask.Args
	if ask.AnyArgs {
		r.Suppose()
	}
	wants, no := r.examine()
	if no != nil {
		return Proposal{}, no
	}
	o := r.unapproved(wants)
	if o.rule == ruleRefuse {
		return Proposal{}, o.refusal
	}
	if ask.Rung == notebook.NoRung {
		if o.refusal == nil {
			return Proposal{}, invalid("the fence runs %v without approval", o.rung).with("run it; to let it reach more, say what")
		}
		ask.Rung = notebook.Strict
		if len(wants) > 0 || len(ask.Capabilities) > 0 {
			ask.Rung = notebook.Granted
		}
	}
	if ask.Rung == notebook.Host {
		if no := r.noHost(); no != nil {
			return Proposal{}, no
		}
	}
	if no := complete(&ask, wants); no != nil {
		return Proposal{}, no
	}
	if no := r.shut(ask.Capabilities); no != nil {
		return Proposal{}, no
	}
	for _, c := range ask.Capabilities {
		if !r.available(c) {
			return Proposal{}, r.unavailable(c)
		}
	}
	expires := milliseconds(ask.Expires)
	if expires > 0 && r.Approvals != nil && expires <= r.Approvals.clock(r.Now) {
		return Proposal{}, invalid("the approval would have expired already").with("choose a later time")
	}

	p := r.basics()
	p.rung, p.capabilities, p.identities, p.scope, p.expires = ask.Rung, ask.Capabilities, r.identities(ask.Capabilities), ask.Scope, expires
	if !ask.AnyArgs {
		ask.Args = maps.Clone(r.args) // defaults too: they are what is approved
	}
	p.args, p.anyArgs, p.requester, p.client = maps.Clone(ask.Args), ask.AnyArgs, r.By.String(), r.By.Client
	standing := r.Standing()
	view := notebook.Proposal{
		ProposalRequest: ask, Digest: p.digest(), Closure: slices.Clone(r.Closure), Included: r.Parts(),
		Standing: standing.String(), Limits: p.limits, Notes: r.notes(&ask),
		Origin: r.chain(standing),
	}
	if before := r.Approvals.of(r.Page, r.Fence); len(before) > 0 {
		view.Previous = before[0].Text
	}
	return Proposal{pins: *p, view: view}, nil
}

// chain is who wrote the fence and by which way it came here, an author a line.
// What other devices say of their text is said to be theirs to say.
func (r *Request) chain(s Standing) (lines []string) {
	device := func(d notebook.DeviceID) string { return "device:" + word(r.Roster.Shown(d)) }
	name := func(d notebook.DeviceID, class notebook.Class, label string) string {
		by := map[notebook.Class]string{notebook.Agent: "agent:" + word(label), notebook.Import: "import:" + word(label)}[class]
		switch {
		case d == r.Self && class == notebook.Typed:
			return "typed here"
		case d == r.Self:
			return cmp.Or(by, "this device")
		case by != "":
			return device(d) + ", as it says by " + by
		}
		return device(d)
	}
	for _, a := range r.Everyone() {
		switch {
		case a.Class != notebook.Moved:
			lines = append(lines, name(a.Device, a.Class, a.Label))
		case a.Device == r.Self:
			lines = append(lines, name(a.Source.Device, a.Source.Class, a.Source.Label)+", moved here")
		default:
			lines = append(lines, device(a.Device)+", as it says moved from "+name(a.Source.Device, a.Source.Class, a.Source.Label))
		}
	}
	slices.Sort(lines)
	if slices.Contains(s.parties(), structure) {
		lines = append(lines, structure.String())
	}
	return lines
}

func invalid(format string, args ...any) *Refusal {
	return &Refusal{Code: notebook.CodeInvalid, Reason: fmt.Sprintf(format, args...)}
}

func (r *Refusal) with(hint string) *Refusal {
	r.Hint = hint
	return r
}

// complete fills in what the request leaves to the fence, and refuses what
// makes no sense.
func complete(ask *notebook.ProposalRequest, wants []notebook.Capability) *Refusal {
	if ask.Scope == "" {
		ask.Scope = notebook.ScopeOnce
	}
	switch {
	case ask.Scope != notebook.ScopeOnce && ask.Scope != notebook.ScopeContent:
		return invalid("the scope %s is unknown", quote(string(ask.Scope))).with("it is once or content")
	case ask.Rung < notebook.Strict || ask.Rung > notebook.Host:
		return invalid("nothing can be approved at %v", ask.Rung).with("it is strict, granted or host")
	case ask.AnyArgs && len(ask.Args) > 0:
		return invalid("these args and any args at once").with("choose one")
	}
	if ask.Rung > notebook.Strict && len(ask.Capabilities) == 0 {
		ask.Capabilities = wants
	}
	all, err := notebook.ParseCapabilities(names(ask.Capabilities))
	if err != nil {
		no := unreadable(err)
		no.Code = notebook.CodeInvalid
		return no
	}
	ask.Capabilities = all
	if ask.Rung == notebook.Strict && len(ask.Capabilities) > 0 {
		return invalid("strict has no capabilities").with("approve it at granted, or without them")
	}
	for _, c := range wants {
		if !slices.Contains(ask.Capabilities, c) {
			return invalid("the fence wants %s, and would not have it", c).with("approve what it wants, or change the fence")
		}
	}
	return nil
}

// hostNotes say what nobody should approve without knowing it.
var hostNotes = []string{
	"it runs with your own powers, outside of any jail: it can read, change, delete and send everything that you can",
	"noted does not claim of such a run that nothing of it is alive afterwards (I7), that it reaches no further than its grant (I8), or that it cannot forge what you see (I9)",
}

// reachNotes say what a capability lets a run do, by its kind.
var reachNotes = map[notebook.Capability]string{
	notebook.CapPage:    "it reads its page as it is at each run, whoever wrote that",
	notebook.CapQuery:   "it reads what it finds in your pages at each run, whoever wrote that",
	notebook.CapDir:     "it reads what is in NAME at each run, whoever put it there",
	notebook.CapProgram: "it starts NAME with arguments of its own making",
	notebook.CapNet:     "it talks to NAME, and can send there whatever it is given",
}

// notes are what a person should not overlook.
func (r *Request) notes(ask *notebook.ProposalRequest) []string {
	var notes []string
	if ask.Rung == notebook.Host {
		notes = append(notes, hostNotes...)
	}
	for _, part := range r.Closure {
		if text := part.Info + part.Code; notebook.Escape(text) != text {
			notes = append(notes, "it holds invisible or confusing characters, shown as \\u{…}")
			break
		}
	}
	if !r.Closed {
		notes = append(notes, "no closing line of its own ends it")
	}
	for _, in := range r.Included {
		if !in.Closed {
			notes = append(notes, fmt.Sprintf("no closing line of its own ends the included fence %v", address{in.Page, in.Fence}))
		}
	}
	for _, c := range ask.Capabilities {
		if note := reachNotes[c.Kind()]; c.Writable() {
			notes = append(notes, fmt.Sprintf("it reads, changes and deletes what is in %s at each run", quote(c.Path())))
		} else if note != "" {
			notes = append(notes, strings.ReplaceAll(note, "NAME", quote(cmp.Or(c.Path(), c.Address()))))
		}
		if in, _ := r.input(c); in.Words != "" {
			notes = append(notes, fmt.Sprintf("%s is %s here", c, notebook.EscapeLine(in.Words)))
		}
		if c == notebook.CapQuery {
			continue // what that is now is not looked for
		}
		if foreign := r.foreign(c); len(foreign) > 0 {
			notes = append(notes, fmt.Sprintf("%s holds text by %v now", c, Standing{foreign: foreign}))
		}
	}
	if ask.AnyArgs {
		notes = append(notes, "it takes any arguments")
	}
	if ask.Scope == notebook.ScopeContent && ask.Expires.IsZero() {
		notes = append(notes, "the approval holds until the fence changes")
	}
	return notes
}
