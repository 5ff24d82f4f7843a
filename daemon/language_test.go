package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// hint is what a failure says to do next.
func hint(err error) string {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e.Hint
	}
	return ""
}

// TestI14LongLanguagesAreRefusedOnTheRecord: no record has room for the name of
// a language that fills a page, which a peer may send. The refusal is recorded
// and told all the same, and can be read for ever after.
func TestI14LongLanguagesAreRefusedOnTheRecord(t *testing.T) {
	ctx := context.Background()
	refusals := []struct {
		letters int
		code    notebook.Code
		why     string
	}{
		{20_000, notebook.CodeRefused, "no runtime"},
		{400_000, notebook.CodeExhausted, "more than"},
	}
	pages := map[string]string{}
	for _, c := range refusals {
		pages[fmt.Sprint(c.letters)] = "```" + strings.Repeat("a", c.letters) + "\nreturn 1\n```\n"
	}
	w, laptop, _ := paired(t, pages)
	for _, c := range refusals {
		title := fmt.Sprint(c.letters)
		_, err := laptop.TryRun(laptop.Fence(title, 1))
		daemontest.Refusal(t, err, c.code, c.why)
		if hint(err) == "" {
			t.Errorf("%s letters: what to do next is not said", title)
		}
		runs, err := laptop.Client.Runs(ctx, 1)
		if err != nil || len(runs) != 1 || runs[0].Title != title || runs[0].State != "refused" || !strings.Contains(runs[0].Reason, c.why) {
			t.Fatalf("%s letters: the newest runs are %.200q %v", title, fmt.Sprint(runs), err)
		}
		if last := laptop.Fence(title, 1).Last; last == nil || last.State != "refused" {
			t.Errorf("%s letters: the fence is shown with %+v", title, last)
		}
		if report, err := laptop.Client.VerifyLedger(ctx); err != nil || report.Problem != "" {
			t.Errorf("%s letters: %+v %v", title, report, err)
		}
	}
	w.Device("laptop").Restarts()
	if runs, err := w.As("laptop").Client.Runs(ctx, 0); err != nil || len(runs) != len(refusals) {
		t.Errorf("after a restart there are %d runs: %v", len(runs), err)
	}
}
