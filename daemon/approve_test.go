package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/exec"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// ledgerOf reads a stopped device's ledger.
func ledgerOf(t *testing.T, d *daemontest.Device) (all []*trust.LedgerRecord) {
	t.Helper()
	readStore(t, d, func(tx *store.Tx) error {
		for r, err := range tx.All(store.Ledger, nil) {
			if err != nil {
				return err
			}
			line, err := trust.DecodeLedgerRecord(r.Value)
			if err != nil {
				return err
			}
			all = append(all, line)
		}
		return nil
	})
	return all
}

// readStore reads the store of a stopped device.
func readStore(t *testing.T, d *daemontest.Device, read func(tx *store.Tx) error) {
	t.Helper()
	db, err := store.Open(d.Home.Database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(read); err != nil {
		t.Fatal(err)
	}
}

// TestI5AddressesNameTheFence: a request is about the fence that was shown, not
// about a place in a page; what took its place is not run in its stead.
func TestI5AddressesNameTheFence(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Sums": wanting, "Other": "text\n"})
	ctx := context.Background()
	shown := laptop.Fence("Sums", 1)
	laptop.Approves("Sums", 1, notebook.ScopeContent)

	// Another fence before it: it is the second now, and still the one.
	phone.Edits("Sums", "# Sums\n", "# Sums\n\n```lua {wants=\"clock\"}\nreturn 'owned'\n```\n")
	w.Settle()
	if run, err := laptop.TryRun(shown); err != nil || run.Result.Output != "true\n" || run.Fence != shown.ID {
		t.Errorf("%+v %v", run, err)
	}
	// The same hash for another fence, and the hash of another fence for it.
	first := laptop.Fence("Sums", 1)
	for name, ref := range map[string]notebook.FenceRef{
		"another fence": {Page: shown.Page, Fence: first.ID, Shown: shown.Hash},
		"another hash":  {Page: shown.Page, Fence: shown.ID, Shown: first.Hash},
		"no hash":       {Page: shown.Page, Fence: shown.ID},
	} {
		_, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: ref})
		if daemontest.CodeOf(err) != notebook.CodeStale {
			t.Errorf("%s: run: %v", name, err)
		}
		if _, err := laptop.Client.Propose(ctx, notebook.ProposalRequest{FenceRef: ref}); daemontest.CodeOf(err) != notebook.CodeStale {
			t.Errorf("%s: propose: %v", name, err)
		}
	}
	other := laptop.Page("Other")
	gone := func(when string, ref notebook.FenceRef) {
		t.Helper()
		_, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: ref})
		daemontest.Refusal(t, err, notebook.CodeNotFound, "no such fence")
		p := laptop.Presence("approve " + shown.Hash.String()[:12])
		if _, err := laptop.Client.Approve(ctx, notebook.ProposalRequest{FenceRef: ref}, shown.Hash, p); daemontest.CodeOf(err) != notebook.CodeNotFound {
			t.Errorf("%s: approve: %v", when, err)
		}
	}
	gone("another page", notebook.FenceRef{Page: other.ID, Fence: shown.ID, Shown: shown.Hash})

	// Replaced by the same bytes, and moved to another page: another fence.
	text := "```lua {wants=\"clock\"}\nreturn clock.year > 2000\n```\n"
	phone.Edits("Sums", text, "")
	phone.Edits("Sums", "return 'owned'\n```\n", "return 'owned'\n```\n\n"+text)
	phone.Edits("Other", "text\n", "text\n\n"+text)
	w.Settle()
	if now := laptop.Fence("Sums", 2); now.Hash != shown.Hash || now.ID == shown.ID {
		t.Fatalf("%+v", now)
	}
	gone("replaced", daemontest.Ref(shown))
	laptop.Refused("Sums", 2, notebook.CodeRefused, "runs strict only")
	laptop.Refused("Other", 1, notebook.CodeRefused, "runs strict only")
}

// TestI5ApprovalsAreInTheLedger: each yes, each use, and each end of one.
func TestI5ApprovalsAreInTheLedger(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	ctx := context.Background()
	for _, title := range []string{"Content", "Once", "Revoked", "Expires", "Deleted"} {
		laptop.Pipes(title, wanting)
	}
	content := laptop.Approves("Content", 1, notebook.ScopeContent)
	first, second := laptop.Runs("Content", 1), laptop.Runs("Content", 1)
	laptop.Edits("Content", "> 2000", "> 2001")
	once := laptop.Approves("Once", 1, notebook.ScopeOnce)
	spent := laptop.Runs("Once", 1)
	revoked := laptop.Approves("Revoked", 1, notebook.ScopeContent)
	if err := laptop.Client.Revoke(ctx, revoked.ID); err != nil {
		t.Fatal(err)
	}
	deleted := laptop.Approves("Deleted", 1, notebook.ScopeContent)
	if err := laptop.Client.Delete(ctx, laptop.Page("Deleted").ID); err != nil {
		t.Fatal(err)
	}
	soon := notebook.ProposalRequest{FenceRef: daemontest.Ref(laptop.Fence("Expires", 1)), Scope: notebook.ScopeContent, Expires: time.Now().Add(time.Hour)}
	p, err := laptop.Client.Propose(ctx, soon)
	if err != nil {
		t.Fatal(err)
	}
	expires, err := laptop.TryApprove(p)
	if err != nil {
		t.Fatal(err)
	}
	policy(t, laptop, "[foreign]\nlua = \"ask\"\n")
	scribe.Types("Asked", sums)
	ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence("Asked", 1)), Scope: notebook.ScopeContent}, "")
	if err != nil {
		t.Fatal(err)
	}
	yes := []notebook.Answer{{Ask: ask.ID, Digest: ask.Proposal.Digest}}
	if _, err := laptop.Client.Answer(ctx, yes, true, laptop.Presence(daemon.Agreement(yes))); err != nil {
		t.Fatal(err)
	}
	agents := scribe.Runs("Asked", 1)
	if err := laptop.Client.RemoveAgent(ctx, "scribe"); err != nil {
		t.Fatal(err)
	}

	all, err := laptop.Client.Approvals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]string{}
	for _, a := range all {
		ends[a.Title] = fmt.Sprint(a.For, " ", a.Spent, " ", a.Void)
	}
	for title, want := range map[string]string{
		"Content": "owner false the fence changed", "Once": "owner true ", "Revoked": "owner false revoked",
		"Deleted": "owner false the fence changed", "Expires": "owner false ",
		"Asked": "agent:scribe false its agent's token was taken away",
	} {
		if ends[title] != want {
			t.Errorf("%s is listed as %q", title, ends[title])
		}
	}
	w.Device("laptop").Stops()
	var lines []string
	for _, r := range ledgerOf(t, w.Device("laptop")) {
		switch {
		case r.Kind == trust.LedgerRun && r.Approval > 0:
			lines = append(lines, fmt.Sprintf("run %d uses %d", r.Number, r.Approval))
		case r.Kind == trust.LedgerSpent:
			lines = append(lines, fmt.Sprintf("%d is spent by %d", r.Approval, r.Of))
		case r.Approval > 0 && (r.Kind == trust.LedgerApproval || r.Kind == trust.LedgerRevoked):
			lines = append(lines, fmt.Sprintf("%v %d %s", r.Kind, r.Approval, r.Reason))
		}
	}
	for _, want := range []string{
		fmt.Sprintf("approval %d ", content.ID), fmt.Sprintf("run %d uses %d", first.Number, content.ID), fmt.Sprintf("run %d uses %d", second.Number, content.ID),
		fmt.Sprintf("revocation %d the fence changed", content.ID), fmt.Sprintf("%d is spent by %d", once.ID, spent.Number),
		fmt.Sprintf("revocation %d revoked by the person", revoked.ID), fmt.Sprintf("revocation %d the fence changed", deleted.ID),
		fmt.Sprintf("approval %d ", expires.ID), fmt.Sprintf("run %d uses %d", agents.Number, expires.ID+1), fmt.Sprintf("revocation %d agent removed", expires.ID+1),
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the ledger lacks %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// TestI5ExpiryIsKept: an approval ends in its time though nobody runs anything,
// and stays ended when the clock is turned back while noted is stopped.
func TestI5ExpiryIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop")
		laptop, d := w.As("laptop"), w.Device("laptop")
		laptop.Pipes("Sums", wanting)
		f := laptop.Fence("Sums", 1)
		given := time.Now()
		p, err := laptop.Client.Propose(context.Background(), notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Scope: notebook.ScopeContent, Expires: given.Add(90 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := laptop.TryApprove(p)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(89 * time.Second)
		laptop.Decides("Sums", 1, "granted")
		time.Sleep(2 * time.Second) // and nothing is asked for
		d.Stops()
		ended := slices.ContainsFunc(ledgerOf(t, d), func(r *trust.LedgerRecord) bool {
			return r.Kind == trust.LedgerRevoked && r.Approval == a.ID && r.Reason == "expired" && r.Time <= given.Add(91*time.Second).UnixMilli()
		})
		if !ended {
			t.Error("the ledger does not say that it expired")
		}
		readStore(t, d, func(tx *store.Tx) error {
			approvals, err := trust.OpenApprovals(func(yield func([]byte, []byte) bool) {
				for r, err := range tx.All(store.Decisions, nil) {
					if err != nil || (r.Key[0] == 'a' || r.Key[0] == 't') && !yield(r.Key, r.Value) {
						return
					}
				}
			})
			if err != nil {
				return err
			}
			if of := approvals.Of(f.Page, f.ID, given); len(of) != 1 || of[0].Void != "expired" {
				t.Errorf("with the clock turned back: %+v", of)
			}
			return nil
		})
		d.Starts()
		w.As("laptop").Decides("Sums", 1, "ask")
	})
}

// TestI11NewAgentOfAnOldName: it inherits nothing that was approved for the old one.
func TestI11NewAgentOfAnOldName(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, d := w.As("laptop"), w.Device("laptop")
	ctx := context.Background()
	policy(t, laptop, "[foreign]\nlua = \"ask\"\n")
	scribe := d.Agent("scribe")
	scribe.Types("Sums", sums)
	approve := func(h *daemontest.Hand) *notebook.Ask {
		t.Helper()
		ask, err := h.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(h.Fence("Sums", 1)), Scope: notebook.ScopeContent}, "")
		if err != nil {
			t.Fatal(err)
		}
		yes := []notebook.Answer{{Ask: ask.ID, Digest: ask.Proposal.Digest}}
		if _, err := laptop.Client.Answer(ctx, yes, true, laptop.Presence(daemon.Agreement(yes))); err != nil {
			t.Fatal(err)
		}
		return ask
	}
	approve(scribe)
	scribe.Runs("Sums", 1)
	scribe.Runs("Sums", 1)
	scribe.Types("Other", lua("return 7"))
	scribe.Refused("Other", 1, notebook.CodeRefused, "policy asks")
	if err := laptop.Client.RemoveAgent(ctx, "scribe"); err != nil {
		t.Fatal(err)
	}
	again := d.Agent("scribe")
	if last := again.Fence("Other", 1).Last; last != nil {
		t.Errorf("it sees what became of the old one's request: %+v", last)
	}
	again.Refused("Sums", 1, notebook.CodeRefused, "policy asks")
	if asks, err := again.Client.Asks(ctx); err != nil || len(asks) != 0 {
		t.Errorf("it sees the old one's asks: %+v %v", asks, err)
	}
	all, err := laptop.Client.Runs(ctx, 0)
	if err != nil || len(all) != 4 {
		t.Fatalf("the person sees %+v %v", all, err)
	}
	seen := func(h *daemontest.Hand, want ...uint64) {
		t.Helper()
		runs, err := h.Client.Runs(ctx, 0)
		var got []uint64
		for _, r := range runs {
			got = append(got, r.Number)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("an agent sees the runs %v %v, not %v", got, err, want)
		}
	}
	seen(again, all[0].Number) // its own refusal
	for _, r := range all[1:] {
		_, err := again.Client.RunInfo(ctx, r.Number)
		daemontest.Refusal(t, err, notebook.CodeNotFound, "there is no run")
	}
	if _, err := again.Client.RunInfo(ctx, all[0].Number); err != nil {
		t.Error(err)
	}
	approve(again) // it has to ask for itself
	mine := again.Runs("Sums", 1)
	d.Restarts()
	seen(d.Agent("scribe"), mine.Number, all[0].Number) // the token is the same, and so is the agent
	d.Agent("scribe").Runs("Sums", 1)
}

// TestI11SeveralAsksInOneAct: a person says yes to the digests that they saw,
// to all or to none.
func TestI11SeveralAsksInOneAct(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	ctx := context.Background()
	policy(t, laptop, "[foreign]\nlua = \"ask\"\n")
	titles := []string{"One", "Two", "Three"}
	var all []notebook.Answer
	for _, title := range titles {
		scribe.Types(title, sums)
		ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence(title, 1)), Scope: notebook.ScopeContent}, title)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, notebook.Answer{Ask: ask.ID, Digest: ask.Proposal.Digest})
	}
	if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "3 requests for approval wait") {
		t.Errorf("status says %q", notes)
	}
	if agents, err := laptop.Client.Agents(ctx); err != nil || len(agents) != 1 || agents[0].Open != 3 {
		t.Errorf("%+v %v", agents, err)
	}
	swapped := []notebook.Answer{{Ask: all[0].Ask, Digest: all[1].Digest}, {Ask: all[1].Ask, Digest: all[0].Digest}, all[2]}
	wrong := append(slices.Clone(all[:2]), notebook.Answer{Ask: all[2].Ask, Digest: notebook.Hash{1}})
	many := make([]notebook.Answer, 33)
	for i := range many {
		many[i].Ask = uint64(i + 1)
	}
	for name, c := range map[string]struct {
		answers []notebook.Answer
		act     string // that the person agreed to
		code    notebook.Code
	}{
		"nobody there":               {all, "", notebook.CodeRefused},
		"the person agreed to one":   {all, daemon.Agreement(all[:1]), notebook.CodeRefused},
		"the person agreed to fewer": {all, daemon.Agreement(all[:2]), notebook.CodeRefused},
		"in another order":           {[]notebook.Answer{all[1], all[0], all[2]}, daemon.Agreement(all), notebook.CodeRefused},
		"one digest is another's":    {swapped, daemon.Agreement(swapped), notebook.CodeStale},
		"the last was not shown":     {wrong, daemon.Agreement(wrong), notebook.CodeStale},
		"one twice":                  {append(slices.Clone(all), all[0]), "", notebook.CodeInvalid},
		"one that is not there":      {append(slices.Clone(all), notebook.Answer{Ask: 99}), daemon.Agreement(append(slices.Clone(all), notebook.Answer{Ask: 99})), notebook.CodeNotFound},
		"none":                       {nil, "", notebook.CodeInvalid},
		"more than a person reads":   {many, "", notebook.CodeInvalid},
	} {
		_, err := laptop.Client.Answer(ctx, c.answers, true, laptop.Presence(c.act))
		if daemontest.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		for _, title := range titles {
			scribe.Refused(title, 1, notebook.CodeRefused, "policy asks")
		}
	}
	// One of them changes: none is approved, and the others are still open.
	scribe.Edits("Three", "6*7", "'owned'")
	_, err := laptop.Client.Answer(ctx, all, true, laptop.Presence(daemon.Agreement(all)))
	daemontest.Refusal(t, err, notebook.CodeStale, "void already")
	scribe.Refused("One", 1, notebook.CodeRefused, "policy asks")
	answered, err := laptop.Client.Answer(ctx, all[:2], true, laptop.Presence(daemon.Agreement(all[:2])))
	if err != nil || len(answered) != 2 || answered[0].State != "approved" || answered[1].State != "approved" {
		t.Fatalf("%+v %v", answered, err)
	}
	scribe.Runs("One", 1)
	scribe.Runs("Two", 1)
	scribe.Refused("Three", 1, notebook.CodeRefused, "policy asks")
	if approvals, err := laptop.Client.Approvals(ctx); err != nil || len(approvals) != 2 {
		t.Errorf("%+v %v", approvals, err)
	}

	// An agent that asks on and on is stopped before it is a nuisance.
	limited := false
	for range 200 {
		_, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence("One", 1))}, "")
		limited = limited || daemontest.CodeOf(err) == notebook.CodeExhausted && strings.Contains(err.Error(), "in a minute")
	}
	if !limited {
		t.Error("200 requests in a row were looked at")
	}
}

// spenderVariable names the home that this program serves as another process,
// to be killed when an approval is spent and its run has not begun.
const spenderVariable = "NOTED_TEST_SPENDER"

// beSpender keeps the only slot for fences of others busy, and asks for the run
// that an approval allows: it is recorded, and waits for its turn.
func beSpender(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: dir, Runtime: dir}
	d, err := daemon.Open(daemon.Config{Home: home, Listen: []string{}, Exec: exec.Config{Slots: 1, Spares: -1}})
	must(err)
	go func() { must(d.Serve(context.Background())) }()
	token, err := daemon.ReadToken(home.OwnerToken())
	must(err)
	c, err := d.Open(token)
	must(err)
	ctx := context.Background()
	begin := func(title string, running int) {
		p, err := c.Page(ctx, title)
		must(err)
		go func() { _, _ = c.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(p.Fences[0])}) }()
		for {
			s, err := c.Status(ctx)
			must(err)
			if s.Running == running {
				return
			}
		}
	}
	begin("Busy", 1)
	time.Sleep(100 * time.Millisecond) // it has the slot
	begin("Sums", 2)
	_, err = c.NewPage(ctx, "Mark") // on the disk, and so is what was written before it
	must(err)
	p, err := c.Page(ctx, "Sums")
	must(err)
	fmt.Println("spent", p.Fences[0].Approved[0].Spent)
	select {}
}

// TestI5OnceIsSpentBeforeItRuns kills a daemon with -9 between the record of a
// run and its worker's first byte: the approval is spent all the same.
func TestI5OnceIsSpentBeforeItRuns(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, d := w.As("laptop"), w.Device("laptop")
	laptop.Pipes("Busy", lua("while true do end"))
	laptop.Pipes("Sums", wanting)
	policy(t, laptop, "[limits]\ntime = \"1m\"\n")
	approved := laptop.Approves("Sums", 1, notebook.ScopeOnce)
	d.Stops()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), spenderVariable+"="+laptop.Home.Data)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "spent true" {
		t.Errorf("it said %q", lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	var run, spent uint64
	for _, r := range ledgerOf(t, d) {
		switch {
		case r.Kind == trust.LedgerRun && r.Approval == approved.ID:
			run = r.Number
		case r.Kind == trust.LedgerSpent && r.Approval == approved.ID:
			spent = r.Of
		case r.Kind == trust.LedgerOutcome && run > 0 && r.Of == run:
			t.Errorf("it ran: %+v", r)
		}
	}
	if run == 0 || spent != run {
		t.Errorf("run %d, and the approval is spent by %d", run, spent)
	}
	d.Starts()
	laptop = d.Owner()
	if a := laptop.Fence("Sums", 1).Approved; len(a) != 1 || !a[0].Spent {
		t.Errorf("%+v", a)
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
}
