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

// writePolicy writes the policy file at a device.
func writePolicy(t *testing.T, h *daemontest.Hand, text string) {
	t.Helper()
	if err := os.WriteFile(h.Home.PolicyFile(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// policy puts a policy in force at a device.
func policy(t *testing.T, h *daemontest.Hand, text string) {
	t.Helper()
	writePolicy(t, h, text)
	if err := accept(h); err != nil {
		t.Fatal(err)
	}
}

func accept(h *daemontest.Hand) error {
	view, err := h.Client.Policy(context.Background())
	if err != nil {
		return err
	}
	_, err = h.Client.AcceptPolicy(context.Background(), view.Digest, h.Presence("accept the policy "+view.Digest.String()[:12]))
	return err
}

// TestI6ContentSetsNoPolicy puts policy wherever somebody else can put text.
func TestI6ContentSetsNoPolicy(t *testing.T) {
	const wide = "[foreign]\nlua = \"granted\"\n\n[limits]\ntime = \"1h\"\n"
	page := "---\npolicy: |\n  [foreign]\n  lua = \"granted\"\ntrust: local\nauto-run: true\n---\n" + wide + "\n```toml\n" + wide + "```\n\n" +
		"```lua {policy=granted trust=local auto-run=true approve=\"all\"}\nreturn 1\n```\n"
	w, laptop, phone := paired(t, map[string]string{"policy.toml": page, "Policy": page})
	scribe := w.Device("laptop").Agent("scribe")
	before, err := laptop.Client.Policy(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	scribe.Types("Config", page)
	folder := filepath.Join(t.TempDir(), "noted")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"policy.toml", "policy.md", "config.toml", ".policy.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(wide), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := laptop.Client.Import(context.Background(), "markdown", folder, nil); err != nil {
		t.Fatal(err)
	}
	// A phone's own policy is the phone's.
	policy(t, phone, "[foreign]\nlua = \"refuse\"\n")
	w.Settle()

	after, err := laptop.Client.Policy(context.Background())
	if err != nil || len(after.Lines) != len(before.Lines) || after.Digest != before.Digest {
		t.Errorf("policy was\n%+v\nand is\n%+v %v", before, after, err)
	}
	for i := range after.Lines {
		if after.Lines[i] != before.Lines[i] {
			t.Errorf("%+v became %+v", before.Lines[i], after.Lines[i])
		}
	}
	laptop.Stands("Policy", 2, "device:phone")
	laptop.Decides("Policy", 2, "strict")
	if run := laptop.Runs("Policy", 2); run.Result.Limits != notebook.DefaultLimits || run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run.Result)
	}
	if runs, _ := laptop.Client.Runs(context.Background(), 0); len(runs) != 1 {
		t.Errorf("%d runs where one was asked for", len(runs))
	}
}

// TestI6PolicyTakesThePerson: the file, the digest that was seen, and presence.
func TestI6PolicyTakesThePerson(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	ctx := context.Background()
	laptop.Pipes("Sums", sums)
	const stricter = "[foreign]\nlua = \"refuse\"\n"
	laptop.Decides("Sums", 1, "strict")

	// A file that is there is not in force.
	writePolicy(t, laptop, stricter)
	laptop.Decides("Sums", 1, "strict")
	view, err := laptop.Client.Policy(ctx)
	if err != nil || view.Accepted {
		t.Errorf("%+v %v", view, err)
	}
	_, err = laptop.Client.AcceptPolicy(ctx, view.Digest, notebook.Presence{})
	daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
	writePolicy(t, laptop, stricter+"# changed since it was shown\n")
	_, err = laptop.Client.AcceptPolicy(ctx, view.Digest, laptop.Presence("accept the policy "+view.Digest.String()[:12]))
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")

	for text, why := range map[string]string{
		"[foreign]\nlua = \"granted\"\n":                "line 2",
		"[foreign]\nlua = \"strict\"\nplua = \"ask\"\n": "line 3",
		"[local]\nlua = \"host\"\n":                     "line 2",
		"[foreign\n":                                    "line 1",
	} {
		writePolicy(t, laptop, text)
		view, err := laptop.Client.Policy(ctx)
		if err != nil || !strings.Contains(view.Problem, why) {
			t.Errorf("%q: %+v %v", text, view, err)
		}
		if _, err := laptop.Client.AcceptPolicy(ctx, notebook.Hash{}, laptop.Presence("")); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}

	// Others could have written it.
	writePolicy(t, laptop, stricter)
	if err := os.Chmod(laptop.Home.PolicyFile(), 0o622); err != nil {
		t.Fatal(err)
	}
	if view, err := laptop.Client.Policy(ctx); err != nil || !strings.Contains(view.Problem, "not this user's alone") {
		t.Errorf("%+v %v", view, err)
	}
	if err := os.Remove(laptop.Home.PolicyFile()); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(elsewhere, []byte(stricter), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, laptop.Home.PolicyFile()); err != nil {
		t.Fatal(err)
	}
	if view, err := laptop.Client.Policy(ctx); err != nil || !strings.Contains(view.Problem, "not this user's alone") {
		t.Errorf("%+v %v", view, err)
	}
	laptop.Decides("Sums", 1, "strict") // nothing of all that counts
	if err := os.Remove(laptop.Home.PolicyFile()); err != nil {
		t.Fatal(err)
	}

	policy(t, laptop, stricter)
	laptop.Decides("Sums", 1, "refuse")
	laptop.Refused("Sums", 1, notebook.CodeRefused, "policy refuses lua by import:stdin")
	// It stays in force, whatever becomes of the file.
	writePolicy(t, laptop, "[foreign]\nlua = \"strict\"\n")
	w.Device("laptop").Restarts()
	w.As("laptop").Decides("Sums", 1, "refuse")
}
