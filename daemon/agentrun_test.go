package daemon_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestI11AgentSeesNoOutputOfGrantedRuns: what a fence that was granted more put
// out is for the person. What runs strict has nothing that is not on the page.
func TestI11AgentSeesNoOutputOfGrantedRuns(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	laptop.Types("Mine", lua("return 'for the person'"))
	scribe.Types("Agents", sums)
	ctx := context.Background()
	for _, c := range []struct {
		title string
		rung  notebook.Rung
		sees  bool
	}{
		{"Mine", notebook.Granted, false},
		{"Agents", notebook.Strict, true},
	} {
		run := laptop.Runs(c.title, 1)
		if run.Result.Rung != c.rung || run.Result.Output == "" {
			t.Fatalf("%s: %+v", c.title, run.Result)
		}
		for _, h := range []*daemontest.Hand{laptop, scribe} {
			shown := h.Fence(c.title, 1)
			why, err := h.Client.Why(ctx, shown.Page, shown.ID)
			if err != nil {
				t.Fatal(err)
			}
			for where, last := range map[string]*notebook.RunInfo{"the page": shown.Last, "why": why.Fence.Last} {
				switch sees := h == laptop || c.sees; {
				case sees && (last == nil || last.Result.Output != run.Result.Output):
					t.Errorf("%s shows the %s of %s the last run %+v", where, h.Client.Role(), c.title, last)
				case !sees && last != nil:
					t.Errorf("%s shows the %s of %s %q", where, h.Client.Role(), c.title, last.Result.Output)
				}
			}
		}
	}
	// Nor does asking for an approval of it show that.
	laptop.Types("Wants", "```lua {wants=\"clock\"}\nreturn 'for the person'\n```\n")
	laptop.Runs("Wants", 1)
	told := scribe.Watches()
	ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence("Wants", 1))}, "please")
	if err != nil {
		t.Fatal(err)
	}
	asks, err := scribe.Client.Asks(ctx)
	if err != nil || len(asks) != 1 {
		t.Fatalf("%+v %v", asks, err)
	}
	if _, err := laptop.Client.Answer(ctx, []notebook.Answer{{Ask: ask.ID}}, false, notebook.Presence{}); err != nil {
		t.Fatal(err)
	}
	told.Has("ask", "ask denied")
	seen := []*notebook.Ask{ask, &asks[0]}
	for _, e := range told.All() {
		if e.Ask != nil {
			seen = append(seen, e.Ask)
		}
	}
	for _, a := range seen {
		if a.Fence.Last != nil {
			t.Errorf("an ask shows the agent %q", a.Fence.Last.Result.Output)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d views of the ask", len(seen))
	}
	if shown := laptop.Fence("Wants", 1).Last; shown == nil || shown.Result.Output != "for the person\n" {
		t.Errorf("the person sees %+v", shown)
	}
	// Its own run of the same bytes is strict, and it sees that.
	if run := scribe.Runs("Mine", 1); run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run.Result)
	}
	if last := scribe.Fence("Mine", 1).Last; last == nil || last.Client != "agent:scribe" {
		t.Errorf("an agent is not shown its own run: %+v", last)
	}
}

// TestI11AgentClearsNoScreen: what an agent asks to run that is not there is
// recorded, and does not take the place of what the person looks at.
func TestI11AgentClearsNoScreen(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	laptop.Types("Mine", sums)
	laptop.Runs("Mine", 1)
	f := laptop.Fence("Mine", 1)
	f.Hash = notebook.Hash{1}

	_, err := scribe.TryRun(f)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	if last := laptop.Fence("Mine", 1).Last; last == nil || last.State != "done" || last.Result.Output != "42\n" {
		t.Errorf("the person is shown %+v", last)
	}
	runs, err := laptop.Client.Runs(context.Background(), 1)
	if err != nil || len(runs) != 1 || runs[0].Client != "agent:scribe" || runs[0].State != "refused" {
		t.Errorf("the newest run is %+v %v", runs, err)
	}

	_, err = laptop.TryRun(f)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	if last := laptop.Fence("Mine", 1).Last; last == nil || last.State != "refused" {
		t.Errorf("after the person's own request the fence is shown with %+v", last)
	}
}

// TestI11AgentsRunsAreCounted: an agent asks for 120 runs a minute and no more.
// Another agent, and the person, are not held up by it.
func TestI11AgentsRunsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop")
		d := w.Device("laptop")
		laptop, scribe, clerk := d.Owner(), d.Agent("scribe"), d.Agent("clerk")
		laptop.Types("Shell", "```zsh\nid\n```\n")
		f := laptop.Fence("Shell", 1)
		records := func() int {
			t.Helper()
			report, err := laptop.Client.VerifyLedger(context.Background())
			if err != nil || report.Problem != "" {
				t.Fatalf("%+v %v", report, err)
			}
			return report.Records
		}
		refused := func(h *daemontest.Hand) {
			t.Helper()
			_, err := h.TryRun(f)
			daemontest.Refusal(t, err, notebook.CodeRefused, "no runtime")
		}
		for range 2 {
			for range 120 {
				refused(scribe)
			}
			before := records()
			for range 3 {
				_, err := scribe.TryRun(f)
				daemontest.Refusal(t, err, notebook.CodeExhausted, "agent:scribe asked for more than 120 runs and approvals in a minute")
				if !strings.Contains(hint(err), "wait") {
					t.Errorf("what to do next is %q", hint(err))
				}
			}
			if n := records(); n != before {
				t.Errorf("%d requests too many were recorded", n-before)
			}
			refused(clerk)
			refused(laptop)
			time.Sleep(time.Minute)
		}
		for range 121 {
			refused(laptop)
		}
	})
}
