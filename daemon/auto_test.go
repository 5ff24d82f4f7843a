package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// autoRule is a line of a policy that lets the first fence of a page run by itself.
func autoRule(h *daemontest.Hand, title, trigger string) string {
	f := h.Fence(title, 1)
	return fmt.Sprintf("\"=%s#%s\" = %q\n", f.Page, f.ID.Short(), trigger)
}

// runsOf are the clients of the runs and refusals of a page, oldest first.
func runsOf(t *testing.T, h *daemontest.Hand, title string) (all []string) {
	t.Helper()
	runs, err := h.Client.Runs(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Backward(runs) {
		if r.Title == title {
			all = append(all, r.Client+" "+r.State)
		}
	}
	return all
}

func expectRuns(t *testing.T, h *daemontest.Hand, title string, want ...string) {
	t.Helper()
	if got := runsOf(t, h, title); !slices.Equal(got, want) {
		t.Errorf("of %s ran %q, not %q", title, got, want)
	}
}

// TestAutoRunOnSchedule: what policy names runs once in each period, and not
// within 30 seconds of a change; nothing else runs.
func TestAutoRunOnSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop")
		laptop := w.As("laptop")
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		for _, title := range []string{"Named", "Unnamed", "Daily"} {
			laptop.Types(title, sums)
		}
		laptop.Pipes("Piped", sums)
		time.Sleep(time.Hour)
		policy(t, laptop, "[auto]\n"+autoRule(laptop, "Named", "every 30 minutes")+autoRule(laptop, "Piped", "every 30 minutes")+autoRule(laptop, "Daily", "daily"))
		time.Sleep(20 * time.Minute)
		expectRuns(t, laptop, "Named") // the period in which it was accepted has begun already

		time.Sleep(10 * time.Minute)
		const auto = `auto:"every 30 minutes" `
		expectRuns(t, laptop, "Named", auto+"done")
		expectRuns(t, laptop, "Piped", auto+"refused")
		if f := laptop.Fence("Piped", 1); f.Last == nil || !strings.Contains(f.Last.Reason, "only what was typed here runs by itself") {
			t.Errorf("%+v", f.Last)
		}
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Named", auto+"done", auto+"done", auto+"done")

		// A change 10 s before the hour: it runs when it was left alone for 30 s.
		time.Sleep(time.Until(time.Now().Truncate(30 * time.Minute).Add(30*time.Minute - 10*time.Second)))
		laptop.Edits("Named", "6*7", "6*8")
		time.Sleep(30*time.Second - time.Millisecond)
		expectRuns(t, laptop, "Named", auto+"done", auto+"done", auto+"done")
		time.Sleep(3 * time.Second)
		expectRuns(t, laptop, "Named", auto+"done", auto+"done", auto+"done", auto+"done")
		if f := laptop.Fence("Named", 1); f.Last.Result.Output != "48\n" || f.Stale {
			t.Errorf("%+v", f.Last)
		}
		// A restart in the same period does not run it again.
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		time.Sleep(5 * time.Minute)
		if n := len(runsOf(t, laptop, "Named")); n != 4 {
			t.Errorf("%d runs after a restart", n)
		}
		// An agent's edit makes it foreign, and it is refused from then on.
		w.Device("laptop").Agent("scribe").Edits("Named", "6*8", "'owned'")
		time.Sleep(time.Hour)
		got := runsOf(t, laptop, "Named")
		if got[4] != auto+"refused" || slices.Contains(got[4:], auto+"done") {
			t.Errorf("%q", got)
		}
		// Taken out of the policy, nothing comes any more.
		n := len(got)
		policy(t, laptop, "[auto]\n"+autoRule(laptop, "Daily", "daily"))
		time.Sleep(2 * 24 * time.Hour)
		if got := runsOf(t, laptop, "Named"); len(got) != n {
			t.Errorf("%q", got)
		}
		if got := runsOf(t, laptop, "Daily"); len(got) < 2 || len(got) > 3 || got[0] != "auto:daily done" {
			t.Errorf("daily ran %q", got)
		}
		expectRuns(t, laptop, "Unnamed")
	})
}

// TestNobodyElseCausesAnAutoRun: not an agent that reads and runs, not a peer that
// writes, not an import, not a list of the pages. A person who opens the page does.
func TestNobodyElseCausesAnAutoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone")
		w.Pair("laptop", "phone")
		laptop, phone := w.As("laptop"), w.As("phone")
		laptop.Types("Mine", sums)
		phone.Types("Theirs", sums)
		w.Settle()
		policy(t, laptop, "[auto]\n"+autoRule(laptop, "Mine", "open")+autoRule(laptop, "Theirs", "open"))
		w.Device("laptop").Restarts() // its pages were opened to write the policy
		laptop = w.As("laptop")
		scribe := w.Device("laptop").Agent("scribe")

		scribe.Page("Mine")
		scribe.Runs("Mine", 1)
		scribe.Page("Theirs")
		phone.Edits("Theirs", "# Sums", "# Open me")
		phone.Types("New", "[[Mine]]\n\n```lua {auto-run=open trust=local}\nreturn 1\n```\n")
		w.Settle()
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "Imported.md"), []byte("[[Mine]]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := laptop.Client.Import(context.Background(), "markdown", folder, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := laptop.Client.Pages(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine", "agent:scribe done")
		expectRuns(t, laptop, "Theirs")
		expectRuns(t, laptop, "New")

		laptop.Page("Mine")
		laptop.Page("Theirs")
		laptop.Page("New")
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine", "agent:scribe done", "auto:open done")
		expectRuns(t, laptop, "Theirs", "auto:open refused")
		expectRuns(t, laptop, "New")
		expectRuns(t, phone, "Mine")
	})
}

// TestAutoRunOnOpenWaits: the fence runs when it was left alone for 30 seconds,
// once, and not if it changed since its page was opened.
func TestAutoRunOnOpenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop")
		laptop := w.As("laptop")
		laptop.Types("Mine", sums)
		laptop.Types("Edited", sums)
		policy(t, laptop, "[auto]\n"+autoRule(laptop, "Mine", "open")+autoRule(laptop, "Edited", "open"))
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine") // nobody opened it

		for range 3 {
			laptop.Page("Mine")
			laptop.Page("Edited")
			time.Sleep(time.Second)
		}
		laptop.Edits("Edited", "6*7", "6*8")
		time.Sleep(20 * time.Second)
		expectRuns(t, laptop, "Mine") // what changed it last is not known
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine", "auto:open done")
		expectRuns(t, laptop, "Edited") // an edit is no trigger
		laptop.Page("Mine")
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine", "auto:open done")
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		laptop.Page("Mine")
		time.Sleep(time.Hour)
		expectRuns(t, laptop, "Mine", "auto:open done", "auto:open done")
		if run := laptop.Fence("Mine", 1).Last; run.Result.Rung != notebook.Granted || run.Standing != "local" {
			t.Errorf("%+v", run)
		}
	})
}
