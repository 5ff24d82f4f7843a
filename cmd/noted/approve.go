package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) fenceApprove() *cobra.Command {
	var o approveFlags
	cmd := verb("approve FENCE", "allow the exact bytes of a fence more than it has", `
Shows everything that the approval would pin, asks, and takes the PIN. It holds
on this device only, and until one of the bytes changes, or a directory, a
program or a host that it may use is another one. With --host the fence runs
with your own powers; for that there is no other way. Without a terminal the
digest of the proposal, from --propose --json, says what was seen, and the PIN
comes on a descriptor.

`+aboutFences, func(ctx context.Context, args []string) error {
		b, page, f, err := a.fence(ctx, args[0])
		if err != nil {
			return err
		}
		request, err := o.request(notebook.FenceRef{Page: page.ID, Fence: f.ID, Shown: f.Hash}, time.Now())
		if err != nil {
			return err
		}
		proposal, err := b.Propose(ctx, request)
		if err != nil {
			return err
		}
		if o.propose {
			return a.answer(proposalShape(proposal), func(t *text) { renderProposal(t, page.Title, proposal) })
		}
		digest, err := a.agreed(ctx, page.Title, proposal, o.digest)
		if err != nil {
			return err
		}
		var approval *notebook.Approval
		err = a.present(ctx, b, func(p notebook.Presence) (err error) {
			approval, err = b.Approve(ctx, request, digest, p)
			return err
		})
		if err != nil {
			return err
		}
		return a.answer(approvalShape(*approval), func(t *text) {
			t.line("approval %d: %s", approval.ID, approvalWords(*approval))
			t.line("next: noted fence run %s", quoted(args[0]))
		})
	})
	fl := cmd.Flags()
	fl.StringVar(&o.rung, "rung", "", "strict or granted (`rung`); left out: what the fence asks for")
	fl.BoolVar(&o.host, "host", false, "let a shell fence run with your own powers, outside of any jail")
	fl.StringArrayVar(&o.caps, "cap", nil, "a `capability`: page, clock, args, seed, query, dir:PATH, dir:PATH:rw, program:PATH or net:HOST:PORT; may be repeated")
	fl.BoolVar(&o.once, "once", false, "for one run only")
	fl.StringVar(&o.expires, "expires", "", "how long it holds, as 12h or 2026-12-31T23:59:00Z (`time`)")
	fl.StringArrayVar(&o.args, "arg", nil, "an argument that it pins, as `name=value`; may be repeated")
	fl.BoolVar(&o.anyArgs, "any-args", false, "whatever the arguments are")
	fl.StringVar(&o.digest, "digest", "", "`digest` of the proposal that was seen")
	fl.BoolVar(&o.propose, "propose", false, "show the proposal and stop")
	cmd.ValidArgsFunction = a.completeFences
	return data("approval; with --propose: proposal", a.pinFlag(cmd))
}

type approveFlags struct {
	rung, expires, digest  string
	caps, args             []string
	once, anyArgs, propose bool
	host                   bool
}

// request is what the flags ask for.
func (o approveFlags) request(ref notebook.FenceRef, now time.Time) (notebook.ProposalRequest, error) {
	r := notebook.ProposalRequest{FenceRef: ref, Scope: notebook.ScopeContent, AnyArgs: o.anyArgs}
	switch o.rung {
	case "":
	case notebook.Strict.String():
		r.Rung = notebook.Strict
	case notebook.Granted.String():
		r.Rung = notebook.Granted
	default:
		return r, notebook.Errorf(notebook.CodeInvalid, "--rung %s is not possible", o.rung).With("--rung strict or --rung granted, or --host for your own powers")
	}
	if o.host {
		if o.rung != "" {
			return r, notebook.Errorf(notebook.CodeInvalid, "--rung and --host contradict each other").With("give one of them")
		}
		r.Rung = notebook.Host
	}
	var err error
	if r.Capabilities, err = notebook.ParseCapabilities(o.caps); err != nil {
		return r, failure(err).With("--cap with page, clock, args, seed, query, dir:PATH, dir:PATH:rw, program:PATH or net:HOST:PORT")
	}
	if o.once {
		r.Scope = notebook.ScopeOnce
	}
	if o.expires != "" {
		at, err := parseExpiry(o.expires, now)
		if err != nil {
			return r, err
		}
		r.Expires = at
	}
	if o.anyArgs && len(o.args) > 0 {
		return r, notebook.Errorf(notebook.CodeInvalid, "--any-args and --arg contradict each other").With("give one of them")
	}
	r.Args, err = parseArgs(o.args)
	return r, err
}

// parseExpiry reads a duration from now or a time, to the second: what a person
// reads is what is pinned.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		d, derr := time.ParseDuration(s)
		if derr != nil {
			return time.Time{}, notebook.Errorf(notebook.CodeInvalid, "--expires %q is neither a duration nor a time", s).
				With("write 12h, or 2026-12-31T23:59:00Z")
		}
		at = now.Add(d)
	}
	if !at.After(now) {
		return time.Time{}, notebook.Errorf(notebook.CodeInvalid, "--expires %s is in the past", s).With("write 12h, or a time to come")
	}
	return at.UTC().Truncate(time.Second), nil
}

// agreed is the digest that the person agrees to: the one that was seen
// elsewhere and is given, or that of the proposal once it was shown and
// confirmed here.
func (a *app) agreed(ctx context.Context, title string, p *notebook.Proposal, given string) (notebook.Hash, error) {
	if given != "" {
		digest, err := notebook.ParseHash(given)
		if err != nil {
			return digest, notebook.Errorf(notebook.CodeInvalid, "--digest: %v", err).With("take it from --propose --json")
		}
		return digest, nil
	}
	question := "Allow exactly this?"
	if p.Rung == notebook.Host {
		question = "Let exactly this run with your own powers?"
	}
	err := a.agree(ctx, question, func(t *text) { renderProposal(t, title, p) })
	if err != nil {
		return notebook.Hash{}, err
	}
	return p.Digest, nil
}

// agree shows something to the person on the terminal and asks whether they
// want exactly that.
func (a *app) agree(ctx context.Context, question string, show func(*text)) error {
	tty, err := a.person()
	if err != nil {
		return failure(err).With("look at it with --propose or ask list --json, then give its digest with --digest and the PIN with --pin-fd")
	}
	defer tty.close()
	t := a.text()
	t.out, t.colour = a.stderr, isTerminal(a.stderr) && a.env["NO_COLOR"] == ""
	show(t)
	if err := t.flush(); err != nil {
		return err
	}
	yes, err := tty.confirm(ctx, question)
	if err != nil {
		return err
	}
	if !yes {
		return notebook.Errorf(notebook.CodeRefused, "you did not agree: nothing was approved")
	}
	return nil
}

func rungWords(r notebook.Rung) string {
	if r == notebook.Host {
		return "host: your own powers, no jail"
	}
	return r.String()
}

// renderProposal shows everything that an approval would pin.
func renderProposal(t *text, title string, p *notebook.Proposal) {
	rows := [][]string{
		{"page", title},
		{"fence", p.Fence.Short()},
		{"standing", p.Standing},
	}
	for _, o := range p.Origin {
		rows = append(rows, []string{"written by", o})
	}
	may := cmp.Or(strings.Join(capabilities(p.Capabilities), " "), "nothing")
	if p.Rung == notebook.Host {
		may = "everything that you may"
	}
	args := "none"
	if p.AnyArgs {
		args = "any"
	} else if len(p.Args) > 0 {
		var all []string
		for _, k := range slices.Sorted(maps.Keys(p.Args)) {
			all = append(all, k+"="+p.Args[k])
		}
		args = strings.Join(all, " ")
	}
	scope := "these bytes, until one changes"
	if p.Scope == notebook.ScopeOnce {
		scope = "one run"
	}
	if !p.Expires.IsZero() {
		scope += ", not after " + when(p.Expires)
	}
	rows = append(rows,
		[]string{"rung", rungWords(p.Rung)},
		[]string{"may use", may},
		[]string{"arguments", args},
		[]string{"limits", fmt.Sprintf("%s, %s memory, %s output, %s source", p.Limits.Time, size(p.Limits.Memory), size(int64(p.Limits.Output)), size(int64(p.Limits.Source)))},
		[]string{"holds for", scope},
		[]string{"digest", p.Digest.String()},
	)
	t.table(rows...)
	renderParts(t, p.Included, p.Closure)
	if len(p.Closure) > 1 {
		t.line("and then, the fence itself")
	}
	if len(p.Closure) > 0 {
		renderPart(t, p.Closure.Main())
	}
	if now := p.Closure.Text(); p.Previous == now {
		t.line("the same bytes were approved before")
	} else if p.Previous != "" {
		t.line("changed since the last approval:")
		for _, d := range diffLines(p.Previous, now) {
			switch d.op {
			case '-':
				t.line("  %s", t.paint(red, "- "+d.line))
			case '+':
				t.line("  %s", t.paint(green, "+ "+d.line))
			default:
				t.line("    %s", d.line)
			}
		}
	}
	for _, n := range p.Notes {
		t.line("%s %s", t.paint(yellow, "note:"), n)
	}
}
