package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// folder makes a directory with a file in it.
func folder(t *testing.T, at, text string) string {
	t.Helper()
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "note"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func reads(dir string) string {
	c := string(notebook.Dir(dir, false))
	return "```lua {wants=\"" + c + "\"}\nreturn dir.read('" + dir + "/note')\n```\n"
}

// TestI5WhatIsOutsideIsPinned: a directory is approved as the one that it is.
// What takes its name later is another one, and is asked about.
func TestI5WhatIsOutsideIsPinned(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	data := folder(t, filepath.Join(base, "data"), "mine")
	w, laptop, phone := paired(t, map[string]string{"Reads": reads(data)})

	laptop.Refused("Reads", 1, notebook.CodeRefused, "strict only")
	f := laptop.Fence("Reads", 1)
	proposal := laptop.Proposes(f, notebook.ScopeContent)
	if notes := strings.Join(proposal.Notes, "\n"); !strings.Contains(notes, "it reads what is in \""+data+"\" at each run") ||
		!strings.Contains(notes, data+", inode ") {
		t.Errorf("a person is told %q", notes)
	}
	if _, err := laptop.TryApprove(proposal); err != nil {
		t.Fatal(err)
	}
	laptop.Decides("Reads", 1, "granted")
	if run := laptop.Runs("Reads", 1); run.Result.Output != "mine\n" || run.Result.Rung != notebook.Granted {
		t.Errorf("%+v", run.Result)
	}

	// Another directory of the same name, a link, a file, nothing, and the one again.
	away := filepath.Join(base, "away")
	if err := os.Rename(data, away); err != nil {
		t.Fatal(err)
	}
	folder(t, filepath.Join(base, "secret"), "secret")
	for name, step := range map[string]struct {
		put  func() error
		code notebook.Code
		why  string
	}{
		"another":              {func() error { folder(t, data, "other"); return nil }, notebook.CodeRefused, "is not what it was when it was approved"},
		"a link to a secret":   {func() error { return os.Symlink(filepath.Join(base, "secret"), data) }, notebook.CodeRefused, "is not what it was when it was approved"},
		"a link to the one":    {func() error { return os.Symlink(away, data) }, notebook.CodeRefused, "is not what it was when it was approved"},
		"a file":               {func() error { return os.WriteFile(data, nil, 0o600) }, notebook.CodeRefused, "it was approved for dir:" + data + ", and"},
		"nothing":              {func() error { return nil }, notebook.CodeRefused, "is not there"},
		"noted's own, by link": {func() error { return os.Symlink(w.Device("laptop").Home.Data, data) }, notebook.CodeRefused, "it was approved for dir:" + data + ", and"},
	} {
		if err := step.put(); err != nil {
			t.Fatal(err)
		}
		laptop.Decides("Reads", 1, "ask")
		laptop.Refused("Reads", 1, step.code, step.why)
		if run := laptop.Fence("Reads", 1).Last; run == nil || run.State != "refused" {
			t.Errorf("%s: %+v", name, run)
		}
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	}
	// What was shown before it changed is not approved after.
	folder(t, data, "other")
	proposal = laptop.Proposes(laptop.Fence("Reads", 1), notebook.ScopeContent)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, data); err != nil {
		t.Fatal(err)
	}
	_, err := laptop.TryApprove(proposal)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	if run := laptop.Runs("Reads", 1); run.Result.Output != "mine\n" {
		t.Errorf("the one again: %+v", run.Result)
	}
	// Its own author has approved nothing.
	phone.Decides("Reads", 1, "ask")
	if report, err := laptop.Client.VerifyLedger(ctx); err != nil || report.Problem != "" {
		t.Errorf("%+v %v", report, err)
	}
}

// TestPolicyGrantsADirectory: to what was typed here and asks for it, and to
// nobody and nothing else.
func TestPolicyGrantsADirectory(t *testing.T) {
	base := t.TempDir()
	data, other := folder(t, filepath.Join(base, "data"), "mine"), folder(t, filepath.Join(base, "other"), "other")
	w, laptop, _ := paired(t, map[string]string{"Theirs": strings.Replace(reads(data), "return", "return 1,", 1)})
	home := w.Device("laptop").Home
	policy(t, laptop, "[local]\ncapabilities = [\"clock\", \"dir:"+data+"\", \"dir:"+filepath.Join(base, "gone")+"\", \"dir:"+home.Data+"\", \"dir:"+filepath.Dir(home.Data)+"\"]\n")
	laptop.Types("Mine", reads(data))
	laptop.Types("Unasked", "```lua\nreturn dir == nil\n```\n")
	laptop.Types("Other", reads(other))
	laptop.Types("Below", reads(filepath.Join(data, "below")))
	laptop.Types("Writes", strings.Replace(reads(data), data, data+":rw", 1))
	laptop.Types("Gone", reads(filepath.Join(base, "gone")))
	laptop.Types("Own", reads(home.Data))
	laptop.Types("Holds", reads(filepath.Dir(home.Data)))
	laptop.Types("Asks", strings.Replace(reads(data), "lua", "query", 1))

	if run := laptop.Runs("Mine", 1); run.Result.Output != "mine\n" {
		t.Errorf("%+v", run.Result)
	}
	if run := laptop.Runs("Unasked", 1); run.Result.Output != "true\n" {
		t.Errorf("without asking: %+v", run.Result)
	}
	laptop.Refused("Theirs", 1, notebook.CodeRefused, "strict only")
	laptop.Refused("Other", 1, notebook.CodeRefused, "does not grant")
	laptop.Refused("Below", 1, notebook.CodeRefused, "does not grant")
	laptop.Refused("Writes", 1, notebook.CodeRefused, "does not grant")
	laptop.Refused("Gone", 1, notebook.CodeNotFound, "is not there")
	laptop.Refused("Own", 1, notebook.CodeRefused, "noted")
	laptop.Refused("Holds", 1, notebook.CodeRefused, "noted")
	laptop.Refused("Asks", 1, notebook.CodeRefused, "query here has no way to be given it")
	scribe := w.Device("laptop").Agent("scribe")
	scribe.Refused("Mine", 1, notebook.CodeRefused, "an agent runs fences strict only")
}

// TestI1NothingOutsideHoldsTheDaemonUp: whatever a disk does while it is asked,
// the daemon answers others meanwhile, whoever made it ask and why.
func TestI1NothingOutsideHoldsTheDaemonUp(t *testing.T) {
	ctx := context.Background()
	data := folder(t, filepath.Join(t.TempDir(), "data"), "mine")
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	policy(t, laptop, "[local]\ncapabilities = [\"dir:"+data+"\"]\n")
	laptop.Types("Mine", reads(data))
	scribe.Types("Theirs", reads(data))
	looked := 0
	w.Device("laptop").Daemon.LooksOutside(func() { // as slow as the daemon is
		looked++
		if _, err := laptop.Client.Pages(ctx); err != nil {
			t.Error(err)
		}
	})
	looks := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if looked == 0 {
			t.Errorf("%s looked at nothing", what)
		}
		looked = 0
	}
	laptop.Decides("Mine", 1, "granted")
	looks("a page", nil)
	_, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(laptop.Fence("Mine", 1))})
	looks("a run", err)
	f := laptop.Fence("Theirs", 1)
	proposal, err := laptop.Client.Propose(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Scope: notebook.ScopeContent})
	looks("a proposal", err)
	_, err = laptop.TryApprove(proposal)
	looks("an approval", err)
	why, err := laptop.Client.Why(ctx, f.Page, f.ID)
	looks("why", err)
	if why.Fence.Decision != "granted" {
		t.Errorf("it would run %s: %s", why.Fence.Decision, why.Fence.Reason)
	}
	if err := laptop.Client.Revoke(ctx, 1); err != nil {
		t.Fatal(err)
	}
	looked = 0
	ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(f)}, "please")
	if err != nil || looked != 0 {
		t.Fatalf("for an agent noted looked %d times: %v", looked, err)
	}
	asks, err := laptop.Client.Asks(ctx)
	looks("the asks", err)
	if len(asks) != 1 || asks[0].ID != ask.ID {
		t.Fatalf("%+v", asks)
	}
	digest := asks[0].Proposal.Digest
	_, err = laptop.Client.Answer(ctx, []notebook.Answer{{Ask: ask.ID, Digest: digest}}, true, laptop.Presence("approve "+digest.String()[:12]))
	looks("an answer", err)
}

// TestI11AgentLearnsNothingOfTheDisk: an agent may ask for a directory or a
// program, and is not told whether it is there, where its name leads or what is
// in it. The person who reads the ask is.
func TestI11AgentLearnsNothingOfTheDisk(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	data := folder(t, filepath.Join(base, "data"), "mine")
	link, gone := filepath.Join(base, "link"), filepath.Join(base, "gone")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	told := scribe.Watches()
	scribe.Types("Link", reads(link))
	scribe.Types("Gone", reads(gone))
	scribe.Types("Own", reads(w.Device("laptop").Home.Data))
	for _, title := range []string{"Link", "Gone", "Own"} {
		ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence(title, 1))}, "please")
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		asks, err := scribe.Client.Asks(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mine := asks[len(asks)-1]
		for where, a := range map[string]*notebook.Ask{"what it asks": ask, "the list": &mine} {
			if notes := strings.Join(a.Proposal.Notes, "\n"); strings.Contains(notes, "inode") || !a.Proposal.Digest.IsZero() || a.Proposal.Rung != notebook.Granted {
				t.Errorf("%s of %s tells an agent %q, %s", where, title, notes, a.Proposal.Digest)
			}
		}
	}
	asks, err := laptop.Client.Asks(ctx)
	if err != nil || len(asks) != 3 {
		t.Fatalf("%+v %v", asks, err)
	}
	seen := map[string]notebook.Ask{}
	for _, a := range asks {
		seen[a.Title] = a
	}
	if notes := strings.Join(seen["Link"].Proposal.Notes, "\n"); !strings.Contains(notes, data+", inode") || seen["Link"].Proposal.Digest.IsZero() {
		t.Errorf("the person is told %q", notes)
	}
	if a := seen["Gone"]; !a.Proposal.Digest.IsZero() || !strings.Contains(a.Fence.Reason, "is not there") {
		t.Errorf("the person is told %q of what is not there", a.Fence.Reason)
	}
	// What it is told when the person answers has no more in it.
	a := seen["Link"]
	if _, err := laptop.Client.Answer(ctx, []notebook.Answer{{Ask: a.ID, Digest: a.Proposal.Digest}}, true, laptop.Presence("approve "+a.Proposal.Digest.String()[:12])); err != nil {
		t.Fatal(err)
	}
	told.Has("ask", "ask approved")
	for _, e := range told.All() {
		if e.Ask != nil && (strings.Contains(strings.Join(e.Ask.Proposal.Notes, "\n"), "inode") || strings.Contains(e.Ask.Fence.Reason, data)) {
			t.Errorf("an agent that watches is told %+v", e.Ask)
		}
	}
}
