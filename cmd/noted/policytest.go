package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

// mostFixtures is how much of a file of fixtures, or of a policy, is read: more
// is refused by who parses it.
const mostFixtures = 1 << 20

func (a *app) policyTest() *cobra.Command {
	var file string
	cmd := verb("test FILE", "try the policy on requests that somebody could make", `
FILE says what is expected, in TOML:

    [[fixture]]
    name = "the phone asks"
    standing = "device:FINGERPRINT"
    language = "lua"
    decision = "ask"

standing is local, device:FINGERPRINT (all of it: noted device list --json),
agent:NAME, import:SOURCE or structure, or a list of them. decision is granted,
strict, ask or refuse; host takes an approval. These may be added:

    by = "agent:scribe"            who asks to run it, owner where left out
    wants = ["page", "clock"]      what the fence asks for
    args = true                    it takes an argument and is run with one
    page = ["import:vault"]        who else wrote in its page
    query = ["import:vault"]       who else wrote what its query finds
    capabilities = ["clock"]       exactly these are to be handed in

Nothing runs and nothing changes. What is tried is the policy in force, or with
--policy a file that need not be, for which no daemon has to run. Approvals and
quarantine play no part.`, func(ctx context.Context, args []string) error {
		cases, err := a.tryPolicy(ctx, file, args[0])
		if err != nil {
			return err
		}
		return a.tested(cases)
	})
	cmd.Flags().StringVar(&file, "policy", "", "the policy `file` to try instead of the one in force")
	return data("list of policy case", cmd)
}

// tryPolicy holds the fixtures of a file against a policy's file, or where none
// is given against the policy in force.
func (a *app) tryPolicy(ctx context.Context, file, fixtures string) ([]notebook.PolicyCase, error) {
	if file == "" {
		b, err := a.backend()
		if err != nil {
			return nil, err
		}
		cases, err := readUpTo(fixtures, mostFixtures)
		if err != nil {
			return nil, err
		}
		return b.TestPolicy(ctx, cases)
	}
	policy, err := readUpTo(file, mostFixtures)
	if err != nil {
		return nil, err
	}
	cases, err := readUpTo(fixtures, mostFixtures)
	if err != nil {
		return nil, err
	}
	return daemon.TryPolicy(policy, cases)
}

// tested shows what came of fixtures, and fails if one of them did.
func (a *app) tested(cases []notebook.PolicyCase) error {
	failed := 0
	for _, c := range cases {
		if !c.Passed {
			failed++
		}
	}
	all := shape(cases, func(c notebook.PolicyCase) policyCaseJSON { return policyCaseJSON(c) })
	show := func(t *text) { policyCases(t, cases) }
	if failed == 0 {
		return a.answer(all, show)
	}
	if !a.json {
		t := a.text()
		show(t)
		if err := t.flush(); err != nil {
			return err
		}
	}
	return &outcome{data: all, err: notebook.Errorf(notebook.CodeFailed, "%d of %d fixtures failed", failed, len(cases)).
		With("noted policy show tells what is in force")}
}

func policyCases(t *text, cases []notebook.PolicyCase) {
	rows := [][]string{{"", "FIXTURE", "EXPECTED", "DECIDED", "BY"}}
	for _, c := range cases {
		mark := "ok"
		if !c.Passed {
			mark = "FAILED"
		}
		by := c.Rule
		if by == "" {
			by = c.Reason
		}
		rows = append(rows, []string{mark, c.Name, c.Expected, c.Decided, by})
	}
	t.table(rows...)
	for _, c := range cases {
		if !c.Passed && c.Reason != "" {
			t.line("%s %s (line %d): %s", t.paint(red, "failed:"), c.Name, c.Line, c.Reason)
		}
	}
}

// readUpTo reads a file that the person named, and at most a byte more than most.
func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, notebook.Errorf(notebook.CodeNotFound, "cannot read %s: %v", path, reason(err)).With("name a file that is there")
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
