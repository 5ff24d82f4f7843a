package trust

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"noted/notebook"
)

// Requester is who asks for a run or an approval, by its token's role.
type Requester struct {
	Role string // "owner", "browser", "agent"; others run nothing
	Name string // an agent's
	// Client tells apart the agents that had one name, one after another: it is
	// bound to the agent's token. Of persons it is empty.
	Client string
}

// The roles that may run fences.
const (
	roleOwner   = "owner"
	roleBrowser = "browser"
	roleAgent   = "agent"
)

// String is the requester as it is shown and pinned: "owner", "agent:NAME".
func (r Requester) String() string {
	if r.Name == "" {
		return word(r.Role)
	}
	return word(r.Role) + ":" + word(r.Name)
}

// person reports whether a person may be behind the requester; everybody else
// is foreign here, and nobody's role stands for more than it says.
func (r Requester) person() bool {
	return r.Role == roleOwner || r.Role == roleBrowser || r.auto() // a rule that the person accepted
}

// Request is everything that a decision rests on.
type Request struct {
	Notebook notebook.NotebookID
	Self     notebook.DeviceID
	Roster   *Roster

	Page     notebook.PageID
	Fence    notebook.FenceID
	Closure  notebook.Closure // as it reads now; see [Request.Include]
	Origin   notebook.Origin  // of the fence itself
	Own      bool             // recorded as typed here with these bytes
	Closed   bool             // ended by its own closing line
	Included []Included       // the other parts of Closure, in its order
	Broken   *Refusal         // why Closure is not all of it
	Engine   notebook.Hash    // of the engine that would run it

	Shown  notebook.Hash // of the closure that the client was shown
	By     Requester
	Args   map[string]string // as the requester said them
	args   map[string]string // and as the run gets them; see [Request.takeArgs]
	Inputs []Input           // what could be handed in, one per capability

	Policy     *Policy     // nil: the default
	Approvals  *Approvals  // nil: none
	Quarantine *Quarantine // nil: no device is in it
	Now        time.Time
}

func (r *Request) policy() *Policy {
	if r.Policy == nil {
		return DefaultPolicy()
	}
	return r.Policy
}

// Decide says whether a fence may run as requested, and how. It reads nothing
// but the request and has an answer to every one. A local fence is granted what
// policy says, or of that what it asks for with wants. A foreign one runs strict
// where policy says so. Anything above is for an approval of these exact bytes,
// and nothing else makes a fence run with the person's own powers. An agent
// never gets more than strict.
func Decide(r Request) (Grant, *Refusal) {
	wants, no := r.examine()
	if no != nil {
		return Grant{}, no
	}
	o := r.unapproved(wants)
	if o.rule == ruleRefuse {
		return Grant{}, o.refusal
	}
	var given *approval
	if r.By.auto() {
		if no := r.automatic(o); no != nil {
			return Grant{}, no
		}
	} else {
		given = r.approved(o)
	}
	if given == nil && o.refusal != nil {
		if o.refusal.Ask {
			o.refusal.Reason += r.replaced()
		}
		return Grant{}, o.refusal
	}
	g := Grant{
		valid: true, page: r.Page, fence: r.Fence, closure: slices.Clone(r.Closure), included: slices.Clone(r.Included), rung: o.rung,
		capabilities: o.capabilities, args: maps.Clone(r.args), limits: r.policy().limits, local: o.local, rule: o.line,
	}
	if given != nil {
		g.rung, g.capabilities, g.approval = given.Rung, slices.Clone(given.Capabilities), given.ID
		g.rule = fmt.Sprintf("approval %d", given.ID)
	}
	for _, c := range g.capabilities {
		if in, found := r.input(c); found {
			g.inputs = append(g.inputs, in)
		}
	}
	return g, nil
}

// outcome is what policy alone says of a request.
type outcome struct {
	local        bool // the fence stands local
	rule         rule
	line         string // the line of the policy that says so
	rung         notebook.Rung
	capabilities []notebook.Capability
	refusal      *Refusal // nil: it may run so
}

// examine refuses what no policy and no approval allows, and reads what the
// fence asks for.
func (r *Request) examine() ([]notebook.Capability, *Refusal) {
	if len(r.Closure) == 0 || r.Page.IsZero() || r.Fence.IsZero() {
		return nil, &Refusal{Code: notebook.CodeNotFound, Reason: "there is no such fence", Hint: "noted fence list PAGE lists them"}
	}
	if r.Shown != r.Closure.Hash() {
		return nil, &Refusal{
			Code: notebook.CodeStale, Reason: "the fence is no longer what was shown",
			Hint: "look at it again: noted fence show " + r.reference(),
		}
	}
	switch r.By.Role {
	case roleOwner, roleBrowser, roleAgent, roleAuto:
	default:
		return nil, &Refusal{Code: notebook.CodeDenied, Reason: "this client may not run fences", Hint: "run it with the owner's token"}
	}
	if size, most := r.Closure.Size(), r.Closure.MaxSize(); len(r.Closure) > notebook.MaxClosure || size > most {
		return nil, &Refusal{
			Code: notebook.CodeExhausted, Reason: fmt.Sprintf("the fence and what it includes are %d fences of %d bytes, more than %d of %d", len(r.Closure), size, notebook.MaxClosure, most),
			Hint: "make it smaller",
		}
	}
	if no := checkArgs(r.Args); no != nil {
		return nil, no
	}
	if r.Broken != nil {
		return nil, r.Broken
	}
	for _, p := range r.Closure {
		if _, err := p.Includes(); err != nil {
			return nil, unreadable(err)
		}
		if !slices.Contains(Languages, notebook.Canonical(p.Language)) {
			return nil, &Refusal{
				Code: notebook.CodeRefused, Reason: fmt.Sprintf("there is no runtime for %s here", quote(p.Language)),
				Hint: "noted runs " + strings.Join(Languages, ", "),
			}
		}
	}
	if !r.whole() {
		return nil, &Refusal{
			Code: notebook.CodeRefused, Reason: "these are not the fence and what it includes",
			Hint: "look at it again: noted fence show " + r.reference(),
		}
	}
	wants, err := r.wanted()
	if err != nil {
		return nil, unreadable(err)
	}
	if no := r.shut(wants); no != nil {
		return nil, no
	}
	if no := r.subset(wants); no != nil {
		return nil, no
	}
	return wants, r.takeArgs()
}

func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return `"` + notebook.EscapeLine(s) + `"`
}

// reference is the fence as a person types it.
func (r *Request) reference() string {
	return "=" + r.Page.String()[:12] + "#" + r.Fence.Short()
}

// unapproved is the decision without any approval.
func (r *Request) unapproved(wants []notebook.Capability) outcome {
	policy, language, standing := r.policy(), r.language(), r.Standing()
	o := outcome{local: standing.local}
	o.rule, o.line = r.ruled(standing)
	no := func(refusal *Refusal) outcome {
		refusal.Rule = o.line
		o.refusal = refusal
		return o
	}
	if o.rule == ruleGranted {
		// Above strict, who wrote an input that is asked for has a hand in the fence.
		var tainted []party
		for _, c := range wants {
			if !essence(language, c) {
				tainted = append(tainted, r.foreign(c)...)
			}
		}
		if tainted = tidy(tainted); len(tainted) > 0 {
			standing = Standing{foreign: tainted}
			if o.rule, o.line = r.ruled(standing); o.rule == ruleStrict {
				return no(r.ask("the fence wants %s, which holds text by %v", listed(wants), standing))
			}
		}
	}
	switch {
	case o.rule == ruleRefuse:
		return no(&Refusal{
			Code: notebook.CodeRefused, Reason: fmt.Sprintf("policy refuses %s by %v", language, standing),
			Hint: "noted policy show tells which line does",
		})
	case o.rule == ruleAsk && len(r.Quarantine.of(r.Everyone())) > 0:
		return no(r.ask("the fence holds text of a device in quarantine: %s", o.line))
	case o.rule == ruleAsk:
		return no(r.ask("policy asks before %s by %v runs", language, standing))
	case o.rule == ruleGranted && r.By.person():
		o.capabilities = wants
		if len(wants) == 0 {
			o.capabilities = r.untainted(policy.capabilities)
		}
		for _, c := range o.capabilities {
			if !policy.grants(c) && !essence(language, c) {
				return no(r.ask("the fence wants %s, which policy does not grant", c))
			}
			if !r.available(c) {
				return no(r.unavailable(c))
			}
		}
		o.rung = notebook.Granted
	case len(wants) == 0:
		o.rung = notebook.Strict
	case !r.By.person():
		return no(r.ask("the fence wants %s, and an agent runs fences strict only", listed(wants)))
	default:
		return no(r.ask("the fence wants %s, and %s by %v runs strict only", listed(wants), language, standing))
	}
	return o
}

// untainted are the capabilities that can be handed in unasked and without text
// of others.
func (r *Request) untainted(all []notebook.Capability) (own []notebook.Capability) {
	for _, c := range all {
		if ambient(r.language(), c) && r.available(c) && len(r.foreign(c)) == 0 {
			own = append(own, c)
		}
	}
	return own
}

// ask refuses what a person may allow.
func (r *Request) ask(format string, args ...any) *Refusal {
	no := &Refusal{
		Code: notebook.CodeRefused, Reason: fmt.Sprintf(format, args...), Ask: true,
		Hint: "read it, then approve it: noted fence approve " + r.reference(),
	}
	if !r.By.person() {
		no.Hint = "ask for approval; a person can read, approve and run it"
	}
	return no
}

func listed(c []notebook.Capability) string { return strings.Join(names(c), ", ") }

// approved finds the newest approval of the highest rung for exactly this
// request, if it allows something that policy does not. Which one that is does
// not depend on who wrote the inputs: whoever takes part in them leaves no more
// than there was.
func (r *Request) approved(o outcome) *approval {
	var best *approval
	for _, a := range r.Approvals.of(r.Page, r.Fence) {
		switch {
		case a.dead() || r.Approvals.expired(a, r.Approvals.clock(r.Now)):
		case a.Rung <= notebook.NoRung || a.Rung > notebook.Host || best != nil && a.Rung <= best.Rung:
		case a.Rung == notebook.Host && (r.noHost() != nil || a.Requester != roleOwner):
		case !r.By.person() && (a.Rung > notebook.Strict || a.Requester != r.By.String() || a.Client != r.By.Client):
		case r.pins(a).digest() != a.Digest || r.held(a):
		case slices.ContainsFunc(a.Capabilities, func(c notebook.Capability) bool { return !r.available(c) }):
		default:
			best = a
		}
	}
	more := func(c notebook.Capability) bool { return !slices.Contains(o.capabilities, c) }
	if best == nil || best.Rung < o.rung || best.Rung == o.rung && !slices.ContainsFunc(best.Capabilities, more) {
		return nil
	}
	return best
}

// pins are what a must have pinned to allow r.
func (r *Request) pins(a *approval) *pins {
	p := r.basics()
	p.rung, p.capabilities, p.identities, p.anyArgs = a.Rung, a.Capabilities, r.identities(a.Capabilities), a.AnyArgs
	p.args, p.requester, p.client = r.args, a.Requester, a.Client
	p.scope, p.expires = a.Scope, a.Expires
	return p
}

// basics are the pins that do not depend on what is approved.
func (r *Request) basics() *pins {
	return &pins{
		notebook: r.Notebook, page: r.Page, fence: r.Fence, closure: slices.Clone(r.Closure), engine: r.Engine,
		limits: r.policy().limits, origin: notebook.NewOrigin(r.Origin...), own: r.Own, closed: r.Closed, included: slices.Clone(r.Included),
	}
}

// noHost says why a request is not one for the person's own powers: only a shell
// has any use for them, and nobody but the owner may be asked for them.
func (r *Request) noHost() *Refusal {
	switch language := r.language(); {
	case language != "sh":
		return invalid("%s does not run with your own powers, only sh does", language).with("approve it at strict or granted")
	case r.By != (Requester{Role: roleOwner}):
		return &Refusal{
			Code: notebook.CodeDenied, Reason: fmt.Sprintf("your own powers are not for %v", r.By),
			Hint: "approve it with your own token, for your own runs",
		}
	}
	return nil
}
