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
	laptop.Types("Sh", strings.Replace(reads(data), "lua", "wasm", 1))

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
	laptop.Refused("Sh", 1, notebook.CodeRefused, "wasm here has no way to be given it")
	scribe := w.Device("laptop").Agent("scribe")
	scribe.Refused("Mine", 1, notebook.CodeRefused, "an agent runs fences strict only")
}
