package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) fenceCommand() *cobra.Command {
	return noun("fence", "code fences: what they are, what they may do, and their runs",
		a.fenceList(), a.fenceShow(), a.fenceWhy(), a.fenceInclude(), a.fenceRun(), a.fenceApprove(), a.fenceApprovals(), a.fenceRevoke())
}

// aboutFences says how a fence is named; every command that takes one shows it.
const aboutFences = "FENCE is PAGE#N for the Nth fence of a page, or PAGE#fXXXXXXXXX by its id."

func (a *app) fenceList() *cobra.Command {
	cmd := verb("list [PAGE]", "list the fences of a page, or of all pages", aboutPages, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		var views []*notebook.PageView
		if len(args) == 1 {
			view, err := b.Page(ctx, args[0])
			if err != nil {
				return err
			}
			views = append(views, view)
		} else {
			pages, err := b.Pages(ctx)
			if err != nil {
				return err
			}
			for _, p := range pages {
				if p.Fences == 0 {
					continue
				}
				view, err := b.Page(ctx, "="+p.ID.String())
				if err != nil {
					if failure(err).Code == notebook.CodeNotFound {
						continue // deleted in between
					}
					return err
				}
				views = append(views, view)
			}
		}
		all := []fenceJSON{}
		for _, v := range views {
			all = append(all, shape(v.Fences, fenceShape)...)
		}
		return a.answer(all, func(t *text) { fenceTable(t, views) })
	})
	cmd.ValidArgsFunction = a.completePages()
	return data("list of fence", cmd)
}

func fenceTable(t *text, views []*notebook.PageView) {
	rows := [][]string{{"FENCE", "ID", "LANGUAGE", "STANDING", "DECISION", "LAST", "REASON"}}
	for _, v := range views {
		for _, f := range v.Fences {
			last := "-"
			if f.Last != nil {
				last = string(verdict(&text{}, *f.Last))
				if f.Stale {
					last += " (stale)"
				}
			}
			rows = append(rows, []string{
				fmt.Sprintf("%s#%d", clip(v.Title, 30), f.Number), f.ID.Short(), f.Language, f.Standing, f.Decision, last, f.Reason,
			})
		}
	}
	if len(rows) == 1 {
		t.line("no fences")
		return
	}
	t.table(rows...)
}

func (a *app) fenceShow() *cobra.Command {
	cmd := verb("show FENCE", "show a fence: its exact bytes, standing, decision and last run", aboutFences, func(ctx context.Context, args []string) error {
		b, page, f, err := a.fence(ctx, args[0])
		if err != nil {
			return err
		}
		var closure notebook.Closure
		if len(f.Includes) > 0 && !a.json {
			why, err := b.Why(ctx, page.ID, f.ID)
			if err != nil {
				return err
			}
			f, closure = &why.Fence, why.Closure
		}
		return a.answer(fenceShape(*f), func(t *text) { renderFence(t, page.Title, f, closure) })
	})
	cmd.ValidArgsFunction = a.completeFences
	return data("fence", cmd)
}

// takes are the arguments that a fence declares, each with its own value where it
// has one; empty where it declares none, or what cannot be read.
func takes(f *notebook.FenceInfo) string {
	declared, err := notebook.Part{Language: f.Language, Info: f.Info}.Arguments()
	if err != nil {
		return ""
	}
	return strings.Join(shape(declared, func(a notebook.Argument) string {
		if a.Optional {
			return a.Name + "=" + a.Default
		}
		return a.Name
	}), ", ")
}

func renderFence(t *text, title string, f *notebook.FenceInfo, closure notebook.Closure) {
	t.line("%s#%d %s", t.paint(bold, title), f.Number, f.ID.Short())
	renderParts(t, f.Includes, closure)
	t.block("  "+bar, "``` "+f.Info)
	t.block("  "+bar, f.Code)
	t.block("  "+bar, "```")
	rows := [][]string{{"standing", f.Standing}, {"decision", f.Decision}, {"because", f.Reason}}
	if args := takes(f); args != "" {
		rows = append(rows, []string{"takes", args})
	}
	t.table(append(rows, []string{"hash", f.Hash.String()})...)
	for _, p := range f.Approved {
		words := approvalWords(p)
		if p.Closure != f.Hash {
			words += "; of other bytes"
		}
		t.line("approval %d: %s", p.ID, words)
	}
	if f.Last == nil {
		t.line("never run here")
		return
	}
	if f.Stale {
		t.line("%s", t.paint(yellow, "the last run was of other bytes"))
	}
	renderRun(t, f.Last)
}

func approvalWords(p notebook.Approval) string {
	words := p.Rung.String()
	if len(p.Capabilities) > 0 {
		words += " with " + strings.Join(capabilities(p.Capabilities), " ")
	}
	if p.Scope == notebook.ScopeOnce {
		words += ", once"
	} else {
		words += ", until its bytes change"
	}
	if !p.Expires.IsZero() {
		words += ", not after " + when(p.Expires)
	}
	switch {
	case p.Void != "":
		words += "; void: " + p.Void
	case p.Spent:
		words += "; spent"
	}
	return words
}

func (a *app) fenceWhy() *cobra.Command {
	cmd := verb("why FENCE", "explain who wrote a fence, what decides about it, and what would change that", aboutFences, func(ctx context.Context, args []string) error {
		b, page, f, err := a.fence(ctx, args[0])
		if err != nil {
			return err
		}
		why, err := b.Why(ctx, page.ID, f.ID)
		if err != nil {
			return err
		}
		return a.answer(whyShape(why), func(t *text) { renderWhy(t, page.Title, why) })
	})
	cmd.ValidArgsFunction = a.completeFences
	return data("why", cmd)
}

func renderWhy(t *text, title string, why *notebook.Explanation) {
	f := why.Fence
	t.line("%s#%d %s stands %s, a request to run gets: %s", t.paint(bold, title), f.Number, f.ID.Short(), t.paint(bold, f.Standing), t.paint(bold, f.Decision))
	t.line("because %s", f.Reason)
	t.line("rule: %s", why.Rule)
	includeTable(t, f.Includes)
	by := authorColours(why.Ranges)
	if t.colour {
		pieces := make([]piece, len(why.Ranges))
		for i, r := range why.Ranges {
			pieces[i] = piece{text: r.Text, colour: by[r.Name]}
			if r.Deleted {
				pieces[i].colour += struck
			}
		}
		t.pieces("  "+bar, pieces)
	}
	rows := [][]string{{"AUTHOR", "WROTE"}}
	for _, r := range why.Ranges {
		wrote := fmt.Sprintf("%q", clip(r.Text, 60))
		if r.Deleted {
			wrote = "deleted " + wrote
		}
		rows = append(rows, []string{r.Name, wrote})
	}
	t.colouredTable(func(row int) colour {
		if row == 0 {
			return ""
		}
		return by[why.Ranges[row-1].Name]
	}, rows...)
	for _, c := range why.Change {
		t.line("to change it: %s", c)
	}
}

// authorColours gives every author of a fence a colour: what was typed here is
// green, and whoever comes after as many others as there are colours shares one.
func authorColours(ranges []notebook.Range) map[string]colour {
	others := []colour{yellow, magenta, cyan, blue}
	by := map[string]colour{"local": green}
	for _, r := range ranges {
		if _, known := by[r.Name]; !known {
			by[r.Name] = others[(len(by)-1)%len(others)]
		}
	}
	return by
}

func (a *app) fenceRun() *cobra.Command {
	var pairs []string
	var shown string
	cmd := verb("run FENCE", "run a fence, and write its output", `
Runs the bytes that the fence has now. On a terminal the output is written as it
comes, and where it comes faster than that its end at last; otherwise it is written
when the run is over. With --shown only the bytes of that hash
run, as fence show or page show --json gave it; if the fence reads otherwise by
then, it is refused. The exit code is 0 only for the verdict ok.

`+aboutFences, func(ctx context.Context, args []string) error {
		values, err := parseArgs(pairs)
		if err != nil {
			return err
		}
		b, page, f, err := a.fence(ctx, args[0])
		if err != nil {
			return err
		}
		request := notebook.RunRequest{FenceRef: notebook.FenceRef{Page: page.ID, Fence: f.ID, Shown: f.Hash}, Args: values}
		if shown != "" {
			if request.Shown, err = notebook.ParseHash(shown); err != nil {
				return notebook.Errorf(notebook.CodeInvalid, "--shown: %v", err).With("noted fence show %s", quoted(args[0]))
			}
		}
		if !a.json && isTerminal(a.stdout) {
			return a.runLive(ctx, b, request, args[0])
		}
		run, err := b.Run(ctx, request)
		if err != nil {
			return err
		}
		return a.ran(run, args[0])
	})
	cmd.Flags().StringArrayVar(&pairs, "arg", nil, "an argument that the fence declares in its words, as in {args=\"name age=30\"}: `name=value`; may be repeated")
	cmd.Flags().StringVar(&shown, "shown", "", "run only the bytes of this `hash`")
	cmd.ValidArgsFunction = a.completeFences
	return data("run", cmd)
}

// ran answers with a run: its output on stdout, how it ended on stderr.
func (a *app) ran(run *notebook.RunInfo, ref string) error {
	if a.json {
		if err := badEnd(run, ref); err != nil {
			return &outcome{data: runShape(*run), err: err}
		}
		return a.answer(runShape(*run), nil)
	}
	t := a.text()
	t.block("", output(run.Result))
	if err := t.flush(); err != nil {
		return err
	}
	return a.over(run, ref)
}

// over tells how a run ended whose output was written.
func (a *app) over(run *notebook.RunInfo, ref string) error {
	if err := badEnd(run, ref); err != nil {
		return err
	}
	a.say("%s at %s in %s, run %d", run.Result.Verdict, run.Result.Rung, took(run.Result), run.Number)
	return nil
}

// badEnd is the error of a run that did not end with ok.
func badEnd(run *notebook.RunInfo, ref string) error {
	res := run.Result
	if run.State == "refused" {
		return notebook.Errorf(notebook.CodeRefused, "refused: %s", run.Reason).With("noted fence why %s", quoted(ref))
	}
	show := fmt.Sprintf("noted run show %d", run.Number)
	switch res.Verdict {
	case notebook.OK:
		return nil
	case notebook.Timeout:
		return notebook.Errorf(notebook.CodeTimeout, "killed at its deadline of %s, run %d", res.Limits.Time, run.Number).With("%s", show)
	case notebook.Failed:
		return notebook.Errorf(notebook.CodeFailed, "the fence failed: %s", strings.ReplaceAll(res.Error, "\n", "; ")).With("%s", show)
	case notebook.Memory:
		return notebook.Errorf(notebook.CodeFailed, "killed for going past its %s of memory, run %d", size(res.Limits.Memory), run.Number).With("%s", show)
	case notebook.Output:
		return notebook.Errorf(notebook.CodeFailed, "killed for writing too much, run %d", run.Number).With("%s", show)
	case notebook.Violation:
		return notebook.Errorf(notebook.CodeFailed, "killed for a forbidden system call, run %d", run.Number).With("%s", show)
	case notebook.Cancelled:
		return notebook.Errorf(notebook.CodeFailed, "%s, run %d", cmp.Or(run.Reason, "cancelled"), run.Number).With("%s", show)
	}
	return notebook.Errorf(notebook.CodeFailed, "ended with %s, run %d%s", res.Verdict, run.Number, because(run.Reason)).With("%s", show)
}

// because is a reason that may be empty, behind what it is the reason of.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// output is what a run wrote, with a line where bytes were left out.
func output(r notebook.Result) string {
	if r.Dropped == 0 || r.Head < 0 || r.Head > len(r.Output) {
		return r.Output
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", r.Output[:r.Head], r.Dropped, r.Output[r.Head:])
}

// took is the time of a run as a person reads it.
func took(r notebook.Result) string {
	d := time.Duration(r.Took) * time.Microsecond
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
