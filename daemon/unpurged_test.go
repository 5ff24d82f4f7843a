package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"noted/notebook"
	"noted/trust"
)

// TestAReplayOfWhatIsPurgedMeanwhile: what a run was handed was read, and a page that
// it has text of is purged before the replay is decided on. Nobody is shown it again.
func TestAReplayOfWhatIsPurgedMeanwhile(t *testing.T) {
	d, person := alone(t, "laptop")
	ctx := context.Background()
	write := func(title, body string) *notebook.PageView {
		t.Helper()
		info, err := person.NewPage(ctx, title)
		if err == nil {
			_, err = person.Append(ctx, info.ID, body, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := person.Page(ctx, title)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	found := write("Found", "- #word that nobody may see again\n")
	asks := write("Asks", "```query\n#word page:found\n```\n").Fences[0]
	request := notebook.RunRequest{FenceRef: notebook.FenceRef{Page: asks.Page, Fence: asks.ID, Shown: asks.Hash}}
	run, err := person.Run(ctx, request)
	if err != nil || !strings.Contains(run.Result.Output, "nobody may see") {
		t.Fatalf("%+v %v", run, err)
	}
	by := caller{d: d, role: roleOwner}
	again := func() (*notebook.RunInfo, error) {
		y, err := d.replayable(by, run.Number)
		if err != nil {
			t.Fatal(err)
		}
		if err := person.Delete(ctx, found.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := person.Purge(ctx, "="+found.ID.String(), notebook.Presence{Typed: trust.Sentence("purge Found")}); err != nil {
			t.Fatal(err)
		}
		return d.run(ctx, by, order{RunRequest: request, replay: y})
	}
	if again, err := person.Replay(ctx, run.Number); err != nil || len(again.Differs) > 0 { // the control
		t.Fatalf("%+v %v", again, err)
	}
	replay, err := again()
	if e, ok := errors.AsType[*notebook.Error](err); !ok || e.Code != notebook.CodeStale || !strings.Contains(e.Message, "purged meanwhile") {
		t.Errorf("%+v %v", replay, err)
	}
}
