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

// TestCases are the numbered things that must not happen, of docs/security.md, as
// far as they are about who may have what run.
func TestCases(t *testing.T) {
	ctx := context.Background()
	w, laptop, phone := paired(t, map[string]string{
		"Claims":  "---\norigin: local\nauthor: laptop\n---\n\n```lua {origin=\"local\" class=\"typed\" author=\"laptop\" standing=\"local\"}\n-- origin: local; typed on laptop\nreturn page == nil\n```\n",
		"Foreign": lua("local secret = 'of the phone'\nreturn secret"),
		"Moved":   wanting,
		"Other":   wanting,
		"Libs":    lua("function twice(x) return x * 2 end\nreturn twice(21)"),
	})
	scribe := w.Device("laptop").Agent("scribe")

	t.Run("78 a fence that claims to be local", func(t *testing.T) {
		laptop.Stands("Claims", 1, "device:phone")
		if run := laptop.Runs("Claims", 1); run.Result.Rung != notebook.Strict || run.Result.Output != "true\n" {
			t.Errorf("%+v", run.Result)
		}
		laptop.Types("Own", lua("return page ~= nil"))
		laptop.Stands("Own", 1, "local")
		if run := laptop.Runs("Own", 1); run.Result.Rung != notebook.Granted || run.Result.Output != "true\n" {
			t.Errorf("the control: %+v", run.Result)
		}
	})
	t.Run("79 a foreign fence that is copied, moved and edited", func(t *testing.T) {
		for title, body := range map[string]string{
			"Copied":   laptop.Body("Foreign"),
			"In a row": "Mine\n\n" + laptop.Body("Foreign"),
			"By one":   strings.Replace(laptop.Body("Foreign"), "return secret", "return secret .. ''", 1),
		} {
			laptop.Types(title, body)
			laptop.Stands(title, 1, "device:phone")
			laptop.Decides(title, 1, "strict")
		}
		// An approval is of these bytes and of this place.
		laptop.Approves("Moved", 1, notebook.ScopeContent)
		laptop.Runs("Moved", 1)
		laptop.Types("Moved too", laptop.Body("Moved"))
		laptop.Refused("Moved too", 1, notebook.CodeRefused, "runs strict only")
		laptop.Edits("Moved", "> 2000", "> 2001")
		laptop.Refused("Moved", 1, notebook.CodeRefused, "runs strict only")
		laptop.Edits("Moved", "```lua", "```python")
		laptop.Refused("Moved", 1, notebook.CodeRefused, "")
	})
	t.Run("80 an approval that is used again", func(t *testing.T) {
		p := laptop.Proposes(laptop.Fence("Other", 1), notebook.ScopeOnce)
		if _, err := laptop.TryApprove(p); err != nil {
			t.Fatal(err)
		}
		laptop.Runs("Other", 1)
		laptop.Refused("Other", 1, notebook.CodeRefused, "runs strict only") // spent
		other := *p
		other.ProposalRequest.FenceRef = daemontest.Ref(laptop.Fence("Moved too", 1))
		_, err := laptop.TryApprove(&other) // its yes for another fence
		daemontest.Refusal(t, err, notebook.CodeStale, "")
		other = *p
		other.ProposalRequest.Scope = notebook.ScopeContent // and for longer
		_, err = laptop.TryApprove(&other)
		daemontest.Refusal(t, err, notebook.CodeStale, "")
		phone.Stands("Other", 1, "local") // on another device it is nothing
		if a := phone.Fence("Other", 1).Approved; len(a) != 0 {
			t.Errorf("the phone has %+v", a)
		}
	})
	t.Run("81 an agent that has a fence run", func(t *testing.T) {
		for _, title := range []string{"Foreign", "Own", "Libs"} {
			if run := scribe.Runs(title, 1); run.Result.Rung != notebook.Strict {
				t.Errorf("%s: %+v", title, run.Result)
			}
		}
		scribe.Refused("Moved too", 1, notebook.CodeRefused, "")
		p := laptop.Proposes(laptop.Fence("Moved too", 1), notebook.ScopeOnce)
		_, err := scribe.TryApprove(p)
		daemontest.Refusal(t, err, notebook.CodeDenied, "")
		scribe.Refused("Moved too", 1, notebook.CodeRefused, "")
		// An own fence that includes a foreign one is foreign.
		libs := laptop.Fence("Libs", 1)
		laptop.Types("Includes", "```lua {include=\"="+libs.Page.String()+"#"+libs.ID.Short()+"\"}\nreturn page == nil, twice(4)\n```\n")
		if run := laptop.Runs("Includes", 1); run.Result.Rung != notebook.Strict || run.Result.Output != "true\t8\n" {
			t.Errorf("%+v", run.Result)
		}
	})
	t.Run("82 an import that brings trust along", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "vault")
		if err := os.MkdirAll(filepath.Join(folder, ".noted", "agents"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"page.md": wanting, "policy.toml": "[foreign]\nlua = \"refuse\"\n", "config.toml": "log = \"debug\"\n",
			"approvals.json": `[{"scope":"content","fence":"*"}]`, "noted.db": "store", "owner.token": "token", ".noted/policy.toml": "[local]\nlua = \"refuse\"\n", ".noted/agents/x.token": "token",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := laptop.Client.Policy(ctx)
		if err != nil {
			t.Fatal(err)
		}
		given, err := laptop.Client.Approvals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		report, err := laptop.Client.Import(ctx, "markdown", folder, nil)
		if err != nil || report.Pages != 1 {
			t.Fatalf("%+v %v", report, err)
		}
		after, err := laptop.Client.Policy(ctx)
		if err != nil || after.Digest != before.Digest || after.Accepted != before.Accepted {
			t.Errorf("the policy was %+v and is %+v %v", before, after, err)
		}
		if now, err := laptop.Client.Approvals(ctx); err != nil || len(now) != len(given) {
			t.Errorf("%d approvals became %d %v", len(given), len(now), err)
		}
		if agents, err := laptop.Client.Agents(ctx); err != nil || len(agents) != 1 {
			t.Errorf("the agents are %+v %v", agents, err)
		}
		laptop.Refused("page", 1, notebook.CodeRefused, "runs strict only")
	})
	t.Run("83 wants that nobody knows", func(t *testing.T) {
		for n, info := range []string{`{wants="everything"}`, `{wants="clock everything"}`, `{wants="clock"`, `{wants=clock wants=page}`, `{wants="dir:../x"}`, `{wants="net:*"}`} {
			title := "Wants " + string(rune('a'+n))
			laptop.Types(title, "```lua "+info+"\nreturn "+strings.Repeat("1 + ", n)+"1\n```\n")
			laptop.Refused(title, 1, notebook.CodeRefused, "cannot be read")
		}
		laptop.Types("Wants", "```lua {wants=\"clock\"}\nreturn clock ~= nil and page == nil\n```\n")
		if run := laptop.Runs("Wants", 1); run.Result.Output != "true\n" {
			t.Errorf("the control: %+v", run.Result)
		}
	})
	t.Run("84 an approval for once, asked for many times at once", func(t *testing.T) {
		scribe.Types("Once", strings.Replace(wanting, "clock.year", "clock.year + 0", 1))
		f := laptop.Fence("Once", 1)
		stale := f
		stale.Hash = notebook.Hash{1}
		laptop.Approves("Once", 1, notebook.ScopeOnce)
		if _, err := laptop.TryRun(stale); daemontest.CodeOf(err) != notebook.CodeStale { // what is refused costs nothing
			t.Errorf("another text: %v", err)
		}
		answers := make(chan error, 6)
		for range cap(answers) {
			go func() { _, err := laptop.TryRun(f); answers <- err }()
		}
		ran := 0
		for range cap(answers) {
			if err := within(t, answers); err == nil {
				ran++
			} else if code := daemontest.CodeOf(err); code != notebook.CodeRefused {
				t.Errorf("%s: %v", code, err)
			}
		}
		if ran != 1 {
			t.Errorf("it ran %d times", ran)
		}
		w.Device("laptop").Restarts()
		laptop, scribe = w.As("laptop"), w.Device("laptop").Agent("scribe")
		laptop.Refused("Once", 1, notebook.CodeRefused, "runs strict only")
	})
	t.Run("85 a policy that comes from a peer", func(t *testing.T) {
		const wide = "[foreign]\nlua = \"granted\"\nsh = \"granted\"\n"
		before, err := laptop.Client.Policy(ctx)
		if err != nil {
			t.Fatal(err)
		}
		phone.Types("policy.toml", wide+"\n```toml\n"+wide+"```\n")
		policy(t, phone, "[local]\nlua = \"strict\"\n")
		w.Settle()
		after, err := laptop.Client.Policy(ctx)
		if err != nil || after.Digest != before.Digest || after.Accepted != before.Accepted {
			t.Errorf("the policy was %+v and is %+v %v", before, after, err)
		}
		laptop.Decides("Foreign", 1, "strict")
		laptop.Decides("Own", 1, "granted")
		// Nor can a person write a foreign rule that gives more.
		writePolicy(t, laptop, wide)
		if err := accept(laptop); err == nil {
			t.Error("a foreign rule that grants is accepted")
		}
		laptop.Decides("Foreign", 1, "strict")
		// Less it can be made, and is.
		policy(t, laptop, "[foreign]\nlua = \"refuse\"\n")
		laptop.Refused("Foreign", 1, notebook.CodeRefused, "policy refuses")
	})
}
