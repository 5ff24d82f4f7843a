package main

import (
	"context"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) policyCommand() *cobra.Command {
	return noun("policy", "this device's own rules for what may run", a.policyShow(), a.policyTest(), a.policyAccept())
}

func (a *app) policyShow() *cobra.Command {
	return data("policy", verb("show", "show the rules in force and where each comes from", `
The file is read when it is accepted, and at no other time: until then the rules
that were accepted last are in force.`, func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		p, err := b.Policy(ctx)
		if err != nil {
			return err
		}
		return a.answer(policyShape(p), func(t *text) { renderPolicy(t, p) })
	}))
}

func renderPolicy(t *text, p *notebook.PolicyView) {
	rows := [][]string{{"RULE", "VALUE", "FROM"}}
	for _, l := range p.Lines {
		rows = append(rows, []string{l.Rule, l.Value, l.Source})
	}
	t.table(rows...)
	switch {
	case p.Problem != "":
		t.line("%s %s: %s", t.paint(red, "cannot be accepted:"), p.Path, p.Problem)
	case !p.Accepted:
		t.line("%s %s differs from what is in force (digest %s)", t.paint(yellow, "note:"), p.Path, p.Digest)
		t.line("next: noted policy accept")
	}
}

func (a *app) policyAccept() *cobra.Command {
	var given string
	cmd := verb("accept", "put the policy file as it is now in force", `
Takes the PIN. Without a terminal the digest of the file, from policy show
--json, says what was seen.`, func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		p, err := b.Policy(ctx)
		if err != nil {
			return err
		}
		digest := p.Digest
		if given != "" {
			if digest, err = notebook.ParseHash(given); err != nil {
				return notebook.Errorf(notebook.CodeInvalid, "--digest: %v", err).With("noted policy show --json")
			}
		} else {
			if a.pinFD >= 0 {
				return notebook.Errorf(notebook.CodeInvalid, "--pin-fd needs --digest, so that what is accepted is what was seen").With("noted policy show --json")
			}
			if p.Problem != "" {
				return notebook.Errorf(notebook.CodeInvalid, "%s: %s", p.Path, p.Problem).With("correct the file")
			}
			if err := a.sure(ctx, "Put "+p.Path+" (digest "+p.Digest.String()[:16]+"…) in force?"); err != nil {
				return err
			}
		}
		var accepted *notebook.PolicyView
		err = a.present(ctx, b, func(pr notebook.Presence) (err error) {
			accepted, err = b.AcceptPolicy(ctx, digest, pr)
			return err
		})
		if err != nil {
			return err
		}
		return a.answer(policyShape(accepted), func(t *text) {
			t.line("in force now:")
			renderPolicy(t, accepted)
		})
	})
	cmd.Flags().StringVar(&given, "digest", "", "`digest` of the file that was seen")
	return data("policy", a.pinFlag(cmd))
}
