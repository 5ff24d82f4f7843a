package daemon_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

// replays does a run again, which has to be possible.
func replays(t *testing.T, h *daemontest.Hand, number uint64) *notebook.Replay {
	t.Helper()
	replay, err := h.Client.Replay(context.Background(), number)
	if err != nil {
		t.Fatalf("run %d is not replayed: %v", number, err)
	}
	return replay
}

// TestReplayIsTheSameRun: with the page, the clock, the seed and the args of
// then, whatever they would be now; also of one that failed, and of one that
// wrote more than is kept.
func TestReplayIsTheSameRun(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	policy(t, laptop, "[limits]\noutput = \"4KiB\"\n")
	ctx := context.Background()
	body := "```lua {args=\"who\"}\nlocal t = {} for i = 1, 50 do t['k' .. i] = i end\nfor k, v in pairs(t) do print(k, v) end\n" +
		"print(page.text, clock.year, math.random(1e9), args.who, tostring(t))\n```\n\n" +
		"```lua\nprint('so far') error('no')\n```\n\n```lua\nfor i = 1, 2000 do print(i) end\n```\n"
	laptop.Types("Many", body)
	for n := 1; n <= 3; n++ {
		f := laptop.Fence("Many", n)
		for _, by := range []*daemontest.Hand{laptop, scribe} {
			if n == 1 && by == scribe {
				continue // it has no page at strict
			}
			var args map[string]string
			if n == 1 {
				args = map[string]string{"who": "Ada"}
			}
			run, err := by.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(f), Args: args})
			if err != nil {
				t.Fatal(err)
			}
			laptop.Types("Many", laptop.Body("Many")+"\nwritten since\n") // the page is another one now
			replay := replays(t, by, run.Number)
			if len(replay.Differs) > 0 || replay.Run.Result.Output != run.Result.Output || replay.Run.Number == run.Number {
				t.Errorf("fence %d: %q: %q is not %q", n, replay.Differs, replay.Run.Result.Output, run.Result.Output)
			}
			if replay.Of.Number != run.Number || replay.Run.Replays != run.Number || replay.Run.Result.Inputs != run.Result.Inputs || replay.Run.Engine.IsZero() {
				t.Errorf("fence %d: %+v", n, replay)
			}
			if last := by.Fence("Many", n).Last; last == nil || last.Number != run.Number {
				t.Errorf("the fence's last run is the replay: %+v", last)
			}
			if n == 1 && (run.Result.Verdict != notebook.OK || !strings.Contains(run.Result.Output, "Ada")) {
				t.Errorf("%+v", run.Result)
			}
			// The control: a new run has what there is now.
			if n == 1 {
				if now, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(f), Args: args}); err != nil || now.Result.Inputs == run.Result.Inputs || now.Result.Output == run.Result.Output {
					t.Errorf("a new run has what the old one had: %+v %v", now, err)
				}
			}
		}
	}
	if ledger, err := laptop.Client.VerifyLedger(ctx); err != nil || ledger.Problem != "" {
		t.Errorf("%+v %v", ledger, err)
	}
}

// TestReplayNamesWhatDiffers, and nothing else.
func TestReplayNamesWhatDiffers(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Long", lua("for i = 1, 2000 do print(i) end"))
	run := laptop.Runs("Long", 1)
	policy(t, laptop, "[limits]\noutput = \"1KiB\"\ntime = \"4s\"\n")
	said := strings.Join(replays(t, laptop, run.Number).Differs, "\n")
	for _, want := range []string{"the time limit: 5s then, 4s now", "the output limit: 65536 then, 1024 now", "the output: "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	for _, other := range []string{"the verdict", "the engine", "handed", "bytes", "the error", "memory"} {
		if strings.Contains(said, other) {
			t.Errorf("%q is in %q", other, said)
		}
	}
}

// TestReplayIsDecidedToday: a replay is no way around what was taken back, or
// what the fence has become. Before each, the same replay is possible.
func TestReplayIsDecidedToday(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name, body string
		changes    func(t *testing.T, w *daemontest.World, laptop, phone *daemontest.Hand, a *notebook.Approval)
		code       notebook.Code
		why        string
	}{
		{"the approval is revoked", wanting, func(t *testing.T, _ *daemontest.World, laptop, _ *daemontest.Hand, a *notebook.Approval) {
			if err := laptop.Client.Revoke(ctx, a.ID); err != nil {
				t.Fatal(err)
			}
		}, notebook.CodeRefused, "runs strict only"},
		{"the device is quarantined", wanting, func(t *testing.T, w *daemontest.World, laptop, _ *daemontest.Hand, _ *notebook.Approval) {
			if _, err := laptop.Client.Quarantine(ctx, w.Device("phone").ID); err != nil {
				t.Fatal(err)
			}
		}, notebook.CodeRefused, "quarantine"},
		{"its author edits it", wanting, func(_ *testing.T, w *daemontest.World, _, phone *daemontest.Hand, _ *notebook.Approval) {
			phone.Edits("Theirs", "2000", "2001")
			w.Settle()
		}, notebook.CodeStale, "no longer what was shown"},
		{"the page is deleted", wanting, func(t *testing.T, _ *daemontest.World, laptop, _ *daemontest.Hand, _ *notebook.Approval) {
			if err := laptop.Client.Delete(ctx, laptop.Page("Theirs").ID); err != nil {
				t.Fatal(err)
			}
		}, notebook.CodeNotFound, "there is no page"},
		{"policy refuses it", sums, func(t *testing.T, _ *daemontest.World, laptop, _ *daemontest.Hand, _ *notebook.Approval) {
			policy(t, laptop, "[foreign]\nlua = \"refuse\"\n")
		}, notebook.CodeRefused, "policy refuses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, laptop, phone := paired(t, map[string]string{"Theirs": c.body})
			var a *notebook.Approval
			if c.body == wanting {
				a = laptop.Approves("Theirs", 1, notebook.ScopeContent)
			}
			run := laptop.Runs("Theirs", 1)
			if r := replays(t, laptop, run.Number); len(r.Differs) > 0 {
				t.Errorf("%q", r.Differs)
			}
			c.changes(t, w, laptop, phone, a)
			_, err := laptop.Client.Replay(ctx, run.Number)
			daemontest.Refusal(t, err, c.code, c.why)
			if c.code == notebook.CodeNotFound {
				return
			}
			runs, err := laptop.Client.Runs(ctx, 1)
			if err != nil || runs[0].State != "refused" || runs[0].Replays != run.Number {
				t.Errorf("the refusal is kept as %+v %v", runs, err)
			}
			if last := laptop.Fence("Theirs", 1).Last; last == nil || last.Number != run.Number {
				t.Errorf("it took the place of the fence's last run: %+v", last)
			}
		})
	}
}

// TestReplayHasNoMoreThanTheRun, and no less: of what may be had today, a replay
// has what the run had, and an approval for once is not used twice.
func TestReplayHasNoMoreThanTheRun(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": sums, "Wants": wanting})
	scribe, ctx := w.Device("laptop").Agent("scribe"), context.Background()

	// Strict then, granted today: strict again.
	strict := scribe.Runs("Theirs", 1)
	laptop.Types("Mine", lua("return page == nil"))
	byAgent := scribe.Runs("Mine", 1)
	if r := replays(t, laptop, byAgent.Number); r.Run.Result.Rung != notebook.Strict || r.Run.Result.Output != "true\n" || len(r.Run.Capabilities) > 0 || len(r.Differs) > 0 {
		t.Errorf("%+v", r)
	}

	// An agent does its own runs again, not those of others.
	replays(t, scribe, strict.Number)
	mine := laptop.Runs("Theirs", 1)
	_, err := scribe.Client.Replay(ctx, mine.Number)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "there is no run")

	// Granted with the page then; others write on the page since.
	granted := laptop.Runs("Mine", 1)
	replays(t, laptop, granted.Number)
	phone.Types("Mine", phone.Body("Mine")+"\nby the phone\n")
	w.Settle()
	_, err = laptop.Client.Replay(ctx, granted.Number)
	daemontest.Refusal(t, err, notebook.CodeRefused, "and today the fence would run granted with")

	// Once is once.
	laptop.Approves("Wants", 1, notebook.ScopeOnce)
	once := laptop.Runs("Wants", 1)
	_, err = laptop.Client.Replay(ctx, once.Number)
	daemontest.Refusal(t, err, notebook.CodeRefused, "runs strict only")

	// What is no run that came to its end.
	runs, err := laptop.Client.Runs(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = laptop.Client.Replay(ctx, runs[0].Number)
	daemontest.Refusal(t, err, notebook.CodeUnavailable, "it was refused")
	_, err = laptop.Client.Replay(ctx, 1e9)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "there is no run")
}

// TestPurgeTakesWhatRunsHave: no store has text of a purged page, in what a run
// was handed, what it wrote, or under any other key.
func TestPurgeTakesWhatRunsHave(t *testing.T) {
	const secret = "the-word-nobody-may-keep"
	w := daemontest.Loopback(t, "laptop")
	laptop, d, ctx := w.As("laptop"), w.Device("laptop"), context.Background()
	laptop.Types("Secret", secret+"\n\n"+lua("return page.text"))
	laptop.Types("Other", lua("return page.text"))
	run, other := laptop.Runs("Secret", 1), laptop.Runs("Other", 1)
	replays(t, laptop, run.Number)
	d.Stops()
	if n := holding(t, d, secret); n < 3 {
		t.Errorf("only %d records hold the text before the purge: nothing is tested", n)
	}
	d.Starts()
	laptop = d.Owner()
	if err := laptop.Client.Delete(ctx, run.Page); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Purge(ctx, "="+run.Page.String(), laptop.Presence("purge Secret")); err != nil {
		t.Fatal(err)
	}
	_, err := laptop.Client.Replay(ctx, run.Number)
	daemontest.Refusal(t, err, notebook.CodeUnavailable, "is not kept any more")
	kept, err := laptop.Client.RunInfo(ctx, run.Number)
	if err != nil || kept.Result.Verdict != notebook.OK || kept.Result.Output != "" || kept.Result.Dropped != int64(len(run.Result.Output)) {
		t.Errorf("%+v %v", kept, err)
	}
	if r := replays(t, laptop, other.Number); len(r.Differs) > 0 { // the control
		t.Errorf("%q", r.Differs)
	}
	d.Stops()
	if n := holding(t, d, secret); n > 0 {
		t.Errorf("%d records hold the text after the purge", n)
	}
	d.Starts()
}

// holding counts the records of a home's store that hold a text.
func holding(t *testing.T, d *daemontest.Device, text string) (n int) {
	t.Helper()
	err := d.Reads(func(tx *store.Tx) error {
		for s, err := range tx.Entries(1) {
			if err != nil {
				return err
			}
			if bytes.Contains(s.Entry.Body, []byte(text)) {
				n++
			}
		}
		for space := store.Meta; space <= store.Kept; space++ {
			for r, err := range tx.All(space, nil) {
				if err != nil {
					return err
				}
				if bytes.Contains(r.Value, []byte(text)) {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPurgeTakesWhatReplaysHave: also of a page that the query found then, and
// would not find today.
func TestPurgeTakesWhatReplaysHave(t *testing.T) {
	const secret = "the-word-nobody-may-keep"
	w := daemontest.Loopback(t, "laptop")
	laptop, d, ctx := w.As("laptop"), w.Device("laptop"), context.Background()
	policy(t, laptop, "[local]\ncapabilities = [\"query\"]\n")
	laptop.Types("Found", "- #secret "+secret+"\n")
	laptop.Types("Asks", "```lua {wants=\"query\" query=\"#secret\"}\nfor _, r in ipairs(query) do print(r.text) end\n```\n")
	run := laptop.Runs("Asks", 1)
	laptop.Types("Found", "nothing any more\n")
	if again := replays(t, laptop, run.Number); !strings.Contains(again.Run.Result.Output, secret) {
		t.Fatalf("nothing is tested: %+v", again.Run.Result)
	}
	id := laptop.Page("Found").ID
	if err := laptop.Client.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Purge(ctx, "="+id.String(), laptop.Presence("purge Found")); err != nil {
		t.Fatal(err)
	}
	d.Stops()
	if n := holding(t, d, secret); n > 0 {
		t.Errorf("%d records hold the text after the purge", n)
	}
	d.Starts()
}

// TestPurgeTakesWhatWasApproved: the bytes of an approval are text of the page,
// also of one whose fence is included from another.
func TestPurgeTakesWhatWasApproved(t *testing.T) {
	const secret = "the-word-nobody-may-keep"
	w, laptop, _ := paired(t, map[string]string{"Secret": "```lua {wants=\"clock\"}\nreturn '" + secret + "'\n```\n", "Other": wanting})
	d, ctx := w.Device("laptop"), context.Background()
	laptop.Approves("Other", 1, notebook.ScopeContent)
	included := laptop.Fence("Secret", 1)
	laptop.Types("Includes", "```lua {wants=\"clock\" include=\"="+included.Page.String()+"#"+included.ID.Short()+"\"}\nreturn 1\n```\n")
	for _, title := range []string{"Secret", "Includes"} {
		laptop.Approves(title, 1, notebook.ScopeContent)
	}
	if err := laptop.Client.Delete(ctx, included.Page); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Purge(ctx, "="+included.Page.String(), laptop.Presence("purge Secret")); err != nil {
		t.Fatal(err)
	}
	laptop.Decides("Other", 1, "granted") // the control
	d.Stops()
	if n := holding(t, d, secret); n > 0 {
		t.Errorf("%d records hold the text after the purge", n)
	}
	d.Starts()
}

// TestNobodyPushesOutWhatThePersonRan: what others' fences are handed, and what
// agents run, makes room for itself among their own, also over restarts; what the
// person runs of their own is there until more of that comes. A replay that comes
// too late says that it was pushed out.
func TestNobodyPushesOutWhatThePersonRan(t *testing.T) {
	const size, share = 16 << 10, 8 // bytes of a page, and how many of them a share has room for
	large := func(letter string) string { return strings.Repeat(strings.Repeat(letter, 127)+"\n", size/128) }
	asks := func(what string) string { return "```lua {wants=\"page\"}\nreturn " + what + "\n```\n" }
	w, laptop, _ := paired(t, map[string]string{"Theirs": asks("#page.text, 'theirs'") + large("x")})
	laptop.Types("Mine", asks("#page.text, 'my own'")+large("z"))
	laptop.Types("Sums", sums)
	laptop.Approves("Theirs", 1, notebook.ScopeContent)
	w.Device("laptop").Daemon.Keeps(share * size)
	n := 0
	runs := func(title string) *notebook.RunInfo {
		t.Helper()
		n++
		p := laptop.Page(title)
		_, err := laptop.Client.Edit(context.Background(), notebook.Edit{Page: p.ID, Base: p.Revision, Splices: []notebook.Splice{{At: len(p.Body) - 1 - n, Insert: "y"}}})
		if err != nil {
			t.Fatal(err)
		}
		run := laptop.Runs(title, 1)
		if run.Result.Verdict != notebook.OK {
			t.Fatalf("%+v", run.Result)
		}
		return run
	}
	same := func(run *notebook.RunInfo) {
		t.Helper()
		if again := replays(t, laptop, run.Number); len(again.Differs) > 0 {
			t.Errorf("run %d of %s: %q", run.Number, run.Title, again.Differs)
		}
	}
	pushed := func(run *notebook.RunInfo, whose string) {
		t.Helper()
		_, err := laptop.Client.Replay(context.Background(), run.Number)
		daemontest.Refusal(t, err, notebook.CodeUnavailable, "later runs pushed out what it was handed: 16 MiB are kept of what "+whose)
		if !strings.Contains(hint(err), "noted fence run") {
			t.Errorf("the way out is %q", hint(err))
		}
	}

	mine, byAgent, theirs := runs("Mine"), w.Device("laptop").Agent("scribe").Runs("Sums", 1), runs("Theirs")
	for _, run := range []*notebook.RunInfo{mine, byAgent, theirs} {
		same(run) // the control
	}
	var last *notebook.RunInfo
	for i := range share {
		if i == share/2 {
			w.Device("laptop").Restarts()
			laptop = w.As("laptop")
			laptop.Daemon.Keeps(share * size)
		}
		last = runs("Theirs")
	}
	for _, run := range []*notebook.RunInfo{byAgent, theirs} {
		pushed(run, "agents run, and of others' fences")
	}
	same(last)
	same(mine)
	for range share {
		runs("Mine")
	}
	pushed(mine, "you run of your own")
	same(last)
}
