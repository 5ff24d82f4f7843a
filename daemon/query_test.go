package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// asks is what a query finds, row by row.
func asks(t *testing.T, h *daemontest.Hand, query string) (found []string) {
	t.Helper()
	rows, err := h.Client.Query(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %+v", query, err)
	}
	for _, r := range rows.List {
		found = append(found, fmt.Sprintf("%s:%d %s (%s)", r.Title, r.Line, r.Text, r.Standing))
	}
	return found
}

func finds(t *testing.T, h *daemontest.Hand, query string, want ...string) {
	t.Helper()
	if got := asks(t, h, query); !slices.Equal(got, want) {
		t.Errorf("%s: %s finds\n%q, not\n%q", h.Name, query, got, want)
	}
}

// TestQueriesSayWhoWrote: on every device the same rows, each with whose text it
// is there, titles and deletions included.
func TestQueriesSayWhoWrote(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	laptop := w.As("laptop")
	laptop.Types("Garden", "tags:: outside\n\n- [ ] buy seeds\n- [ ] dig\n- [x] water\n")
	laptop.Pipes("Inbox", "- [ ] piped\n")
	w.Pair("laptop", "phone")
	w.Settle()
	phone := w.As("phone")
	phone.Types("Phone", "- [ ] call\n")
	phone.Types("Garden", "tags:: outside\n\n- [ ] buy seeds\n- [ ] di\n- [x] water\n- [ ] added\n")
	w.Settle()
	if _, err := laptop.Client.Append(context.Background(), laptop.Page("Phone").ID, "- [ ] typed\n", ""); err != nil {
		t.Fatal(err)
	}
	finds(t, laptop, "task:todo",
		"Garden:3 buy seeds (local)", "Garden:4 di (device:phone)", "Garden:6 added (device:phone)",
		"Inbox:1 piped (import:stdin)", "Phone:1 call (device:phone)", "Phone:2 typed (device:phone)") // of a title that is the phone's
	finds(t, laptop, "#outside task:done", "Garden:5 water (local)")
	finds(t, laptop, "show:pages page:garden", "Garden:0  (device:phone)")
	w.Settle()
	finds(t, phone, "task:todo page:phone", "Phone:1 call (local)", "Phone:2 typed (device:laptop)")
	for _, bad := range []string{"", "colour:red", strings.Repeat("x", notebook.MaxQuery+1)} {
		_, err := laptop.Client.Query(context.Background(), bad)
		daemontest.Refusal(t, err, notebook.CodeInvalid, "the query cannot be read")
	}
}

// TestFencesThatAsk: a person's own query runs, whoever wrote what it finds; what
// others ask is asked about. A fence that computes with what is found has to be
// granted it, and is tainted by it.
func TestFencesThatAsk(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	laptop := w.As("laptop")
	laptop.Types("Tasks", "- [ ] mine\n")
	laptop.Types("Agenda", "```query\ntask:todo -page:agenda\n```\n\n```lua {wants=\"query\" query=\"task:todo -page:agenda\"}\nreturn #query, query[1].text\n```\n"+
		"\n```lua {wants=\"query\"}\nreturn 1\n```\n\n```query\ntask:never\n```\n\n```lua {query=\"task:todo\"}\nreturn query\n```\n")
	if run := laptop.Runs("Agenda", 1); run.Result.Output != "Tasks:1: [ ] mine\n" || run.Result.Rung != notebook.Granted {
		t.Errorf("the query: %+v", run.Result)
	}
	laptop.Decides("Agenda", 2, "ask")
	laptop.Refused("Agenda", 2, notebook.CodeRefused, "policy does not grant")
	laptop.Decides("Agenda", 3, "refuse")
	laptop.Refused("Agenda", 3, notebook.CodeRefused, "does not say which")
	laptop.Refused("Agenda", 4, notebook.CodeRefused, "no state of a task")
	if run := laptop.Runs("Agenda", 5); run.Result.Output != "nil\n" {
		t.Errorf("a query that nobody wants: %+v", run.Result)
	}
	policy(t, laptop, "[local]\ncapabilities = [\"page\", \"query\"]\n")
	laptop.Decides("Agenda", 2, "granted")
	if why := laptop.Fence("Agenda", 2).Reason; !strings.Contains(why, "finds nothing that others wrote") {
		t.Errorf("the reason does not say what it rests on: %s", why)
	}
	if run := laptop.Runs("Agenda", 2); run.Result.Output != "1\tmine\n" {
		t.Errorf("the rows: %+v", run.Result)
	}

	// Another device's text among the rows.
	w.Pair("laptop", "phone")
	w.Settle()
	phone := w.As("phone")
	phone.Types("Another", "- [ ] theirs\n")
	phone.Types("Asked", "```query\ntask:todo -page:agenda\n```\n")
	w.Settle()
	if run := laptop.Runs("Agenda", 1); run.Result.Output != "Another:1: [ ] theirs\nTasks:1: [ ] mine\n" {
		t.Errorf("with text of the phone: %+v", run.Result)
	}
	laptop.Refused("Agenda", 2, notebook.CodeRefused, "holds text by device:phone")

	// Another device's query.
	laptop.Decides("Asked", 1, "ask")
	laptop.Refused("Asked", 1, notebook.CodeRefused, "policy asks before query by device:phone runs")
	p := laptop.Proposes(laptop.Fence("Asked", 1), notebook.ScopeContent)
	if p.Rung != notebook.Granted || !slices.Equal(p.Capabilities, []notebook.Capability{notebook.CapQuery}) ||
		!slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "whoever wrote that") }) {
		t.Errorf("what is to be approved: %+v", p)
	}
	if _, err := laptop.TryApprove(p); err != nil {
		t.Fatal(err)
	}
	if run := laptop.Runs("Asked", 1); run.Result.Output != "Another:1: [ ] theirs\nTasks:1: [ ] mine\n" {
		t.Errorf("approved: %+v", run.Result)
	}
	// The approval is of these bytes, and what it finds is as of the run.
	laptop.Edits("Tasks", "mine", "mine, later")
	if run := laptop.Runs("Asked", 1); !strings.Contains(run.Result.Output, "mine, later") {
		t.Errorf("later: %+v", run.Result)
	}
	laptop.Approves("Agenda", 2, notebook.ScopeContent)
	if run := laptop.Runs("Agenda", 2); run.Result.Output != "2\ttheirs\n" {
		t.Errorf("accepted from anyone: %+v", run.Result)
	}
	phone.Edits("Asked", "task:todo", "task:any")
	w.Settle()
	laptop.Refused("Asked", 1, notebook.CodeRefused, "policy asks before")

	// Its output is others' text here, as far as what it was handed is: a fence
	// that is typed from it is not this person's.
	phone.Types("Code", "return theirs_and_long\n")
	laptop.Types("Look", "```query\ntheirs_and_long -page:look\n```\n")
	w.Settle()
	if run := laptop.Runs("Look", 1); !strings.Contains(run.Result.Output, "theirs_and_long") {
		t.Errorf("%+v", run.Result)
	}
	laptop.Types("Copy", "```lua\nreturn theirs_and_long\n```\n")
	laptop.Stands("Copy", 1, "device:phone")

	// An agent may look for what it may read; its runs are strict.
	helper := w.Device("laptop").Agent("helper")
	finds(t, helper, "mine", "Tasks:1 mine, later (local)")
	_, err := helper.TryRun(laptop.Fence("Agenda", 1))
	daemontest.Refusal(t, err, notebook.CodeRefused, "an agent runs fences strict only")
}

// TestADeviceInQuarantineTaintsQueries: also those that were approved before.
func TestADeviceInQuarantineTaintsQueries(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	laptop := w.As("laptop")
	laptop.Types("Agenda", "```lua {wants=\"query\" query=\"task:todo\"}\nreturn #query\n```\n")
	w.Pair("laptop", "phone")
	phone := w.As("phone")
	phone.Types("Another", "- [ ] theirs\n")
	w.Settle()
	laptop.Approves("Agenda", 1, notebook.ScopeContent)
	if run := laptop.Runs("Agenda", 1); run.Result.Output != "1\n" {
		t.Fatalf("%+v", run.Result)
	}
	if _, err := laptop.Client.Quarantine(context.Background(), w.Device("phone").ID); err != nil {
		t.Fatal(err)
	}
	if run, err := laptop.TryRun(laptop.Fence("Agenda", 1)); err == nil {
		t.Errorf("it ran on text of a device in quarantine: %+v", run.Result)
	}
}

// TestPurgedPagesNeverAppear: neither in queries, nor in what they found before.
func TestPurgedPagesNeverAppear(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Secret", "- [ ] the hidden thing\n```lua\nreturn 'hidden output'\n```\n")
	laptop.Types("Other", "- [ ] an open thing\n```query\nthing task:todo\n```\n```query\nopen task:todo\n```\n")
	laptop.Runs("Secret", 1)
	if run := laptop.Runs("Other", 1); !strings.Contains(run.Result.Output, "hidden thing") {
		t.Fatalf("%+v", run.Result)
	}
	laptop.Runs("Other", 2)
	kept := func() (found string) {
		w.Device("laptop").Stops()
		defer func() {
			w.Device("laptop").Starts()
			laptop = w.As("laptop")
		}()
		for _, space := range []store.Space{store.Results, store.Outcomes, store.Shadows} {
			err := w.Device("laptop").Reads(func(tx *store.Tx) error {
				for r, err := range tx.All(space, nil) {
					if err != nil {
						return err
					}
					if bytes.Contains(r.Value, []byte("hidden")) {
						found += fmt.Sprintf("%v %x\n", space, r.Key)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	if n := strings.Count(kept(), "\n"); n != 5 { // the page, two newest results, two runs
		t.Fatalf("%d records have the text", n)
	}
	id := laptop.Page("Secret").ID
	if err := laptop.Client.Delete(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	finds(t, laptop, "hidden")
	if run := laptop.Runs("Other", 1); strings.Contains(run.Result.Output, "hidden") {
		t.Errorf("a deleted page is found: %+v", run.Result)
	}
	if _, err := laptop.Client.Purge(context.Background(), "Secret", laptop.Presence("purge Secret")); err != nil {
		t.Fatal(err)
	}
	finds(t, laptop, "hidden")
	finds(t, laptop, "thing", "Other:1 an open thing (local)", "Other:2 ```query\nthing task:todo\n``` (local)")
	if run := laptop.Runs("Other", 1); strings.Contains(run.Result.Output, "hidden") {
		t.Errorf("a purged page is found: %+v", run.Result)
	}
	if found := kept(); found != "" {
		t.Errorf("the text is kept:\n%s", found)
	}
	if f := laptop.Fence("Other", 2); f.Last == nil || f.Last.Result.Output != "Other:1: [ ] an open thing\n" {
		t.Errorf("what had nothing to do with it is gone: %+v", f.Last)
	}
}

// TestAgentsQueriesHoldNobodyUp: whatever agents ask, and however long that takes,
// the person does not wait for it; nor an agent for the person.
func TestAgentsQueriesHoldNobodyUp(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe, d := w.As("laptop"), w.Device("laptop").Agent("scribe"), w.Device("laptop").Daemon
	laptop.Types("Tasks", "- [ ] water them\n")
	for agents, both := range map[bool][2]*daemontest.Hand{true: {laptop, scribe}, false: {scribe, laptop}} {
		goes, waits := both[0], both[1]
		done := d.AnswersQueries(agents)
		finds(t, goes, "water", "Tasks:1 water them (local)")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := waits.Client.Query(ctx, "water"); err == nil { // the control
			t.Errorf("with agents answered: %v, another query is", agents)
		}
		done()
		finds(t, waits, "water", "Tasks:1 water them (local)")
	}
}

// TestAQueryIsAnsweredBesideDamagedPages: with what the others hold, and with how
// many are missing, for whoever asks: a person, an agent, a fence of language
// query and one that is handed rows. What it is handed is other input then. Nothing
// of a page of which only the authors are lost is in it.
func TestAQueryIsAnsweredBesideDamagedPages(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, d, ctx := w.As("laptop"), w.Device("laptop"), context.Background()
	laptop.Types("Whole", "- [ ] a whole task\n")
	laptop.Types("Torn", "- [ ] a torn task\n")
	laptop.Types("Untitled", "- [ ] a task of nobody\n")
	laptop.Types("Gone", "- [ ] a deleted task\n")
	laptop.Types("Agenda", "```query\ntask:todo whole\n```\n\n```lua {wants=\"query\" query=\"task:todo whole\"}\nreturn #query, query.found, query.unread\n```\n")
	policy(t, laptop, "[local]\ncapabilities = [\"query\"]\n")
	gone := laptop.Page("Gone").ID
	if err := laptop.Client.Delete(ctx, gone); err != nil {
		t.Fatal(err)
	}
	finds(t, laptop, "task:todo", "Torn:1 a torn task (local)", "Untitled:1 a task of nobody (local)", "Whole:1 a whole task (local)")
	before := laptop.Runs("Agenda", 1)
	if run := laptop.Runs("Agenda", 2); before.Result.Output != "Whole:1: [ ] a whole task\n" || run.Result.Output != "1\t1\t0\n" {
		t.Fatalf("%+v\n%+v", before.Result, run.Result)
	}

	torn, untitled := laptop.Page("Torn").ID, laptop.Page("Untitled").ID
	d.Stops()
	damages(t, d, func(tx *store.Tx) error {
		for _, id := range []notebook.PageID{torn, gone} { // a deleted page is not missed
			record, err := tx.Get(store.Shadows, id[:])
			if err != nil {
				return err
			}
			if err := tx.Put(store.Shadows, id[:], record[:len(record)/2]); err != nil {
				return err
			}
		}
		return tx.Put(store.Registers, untitled[:], []byte{0x80})
	})
	d.Starts()
	laptop = d.Owner()
	for who, asks := range map[string]*daemontest.Hand{"the person": laptop, "an agent": d.Agent("scribe")} {
		rows, err := asks.Client.Query(ctx, "task:todo")
		if err != nil || rows.Found != 1 || len(rows.List) != 1 || rows.List[0].Title != "Whole" || rows.Unread != 2 ||
			!slices.Contains(rows.Damaged, torn) || !slices.Contains(rows.Damaged, untitled) {
			t.Errorf("for %s: %+v %v", who, rows, err)
		}
	}
	finds(t, laptop, "task:todo", "Whole:1 a whole task (local)")
	// Where nobody has to know who gave the page its title, it is not missed.
	if rows, err := laptop.Client.Query(ctx, "whole"); err != nil || rows.Unread != 1 || rows.Damaged[0] != torn {
		t.Errorf("%+v %v", rows, err)
	}
	after := laptop.Runs("Agenda", 1)
	if want := "Whole:1: [ ] a whole task\n… 1 page is damaged and was not read: noted doctor names it\n"; after.Result.Output != want || after.Result.Inputs == before.Result.Inputs {
		t.Errorf("the fence shows %q, of inputs %v and %v", after.Result.Output, before.Result.Inputs, after.Result.Inputs)
	}
	if run := laptop.Runs("Agenda", 2); run.Result.Output != "1\t1\t1\n" {
		t.Errorf("a program sees %q", run.Result.Output)
	}
	if replay := replays(t, laptop, before.Number); len(replay.Differs) > 0 {
		t.Errorf("what was handed in then is not handed in again: %q", replay.Differs)
	}

	for _, id := range []notebook.PageID{torn, untitled, gone} {
		if _, err := laptop.Client.Rebuild(ctx, "="+id.String()); err != nil {
			t.Fatal(err)
		}
	}
	finds(t, laptop, "task:todo", "Torn:1 a torn task (local)", "Untitled:1 a task of nobody (local)", "Whole:1 a whole task (local)")
	if rows, err := laptop.Client.Query(ctx, "task:todo"); err != nil || rows.Unread != 0 || len(rows.Damaged) > 0 {
		t.Errorf("%+v %v", rows, err)
	}
	if run := laptop.Runs("Agenda", 1); run.Result.Inputs != before.Result.Inputs || run.Result.Output != before.Result.Output {
		t.Errorf("once all is well: %+v", run.Result)
	}
}
