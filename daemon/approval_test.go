package daemon_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/daemon"
	"noted/daemon/daemontest"
	"noted/notebook"
)

// wanting is a page with a fence that asks for more than strict.
const wanting = "# Sums\n\n```lua {wants=\"clock\"}\nreturn clock.year > 2000\n```\n"

// paired are a laptop with what the phone typed.
func paired(t *testing.T, pages map[string]string) (w *daemontest.World, laptop, phone *daemontest.Hand) {
	t.Helper()
	w = daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	for title, body := range pages {
		w.As("phone").Types(title, body)
	}
	w.Settle()
	return w, w.As("laptop"), w.As("phone")
}

// TestI5ShownIsApprovedIsRun has a sync land at every point between what a
// person is shown and what runs.
func TestI5ShownIsApprovedIsRun(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Plain": sums, "Sums": wanting})
	change := func(title, old, new string) {
		t.Helper()
		phone.Edits(title, old, new)
		w.Settle()
	}

	// Between show and run.
	shown := laptop.Fence("Plain", 1)
	if run, err := laptop.TryRun(shown); err != nil || run.Result.Closure != shown.Hash || run.Result.Output != "42\n" {
		t.Fatalf("%+v %v", run, err)
	}
	change("Plain", "6*7", "'owned'")
	_, err := laptop.TryRun(shown)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")

	// Between show and propose.
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	shown = laptop.Fence("Sums", 1)
	change("Sums", "> 2000", "> 2001")
	_, err = laptop.Client.Propose(context.Background(), notebook.ProposalRequest{FenceRef: daemontest.Ref(shown)})
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")

	// Between propose and approve.
	proposal := laptop.Proposes(laptop.Fence("Sums", 1), notebook.ScopeOnce)
	change("Sums", "> 2001", "> 2002")
	_, err = laptop.TryApprove(proposal)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")

	// With the new hash and the old digest.
	proposal.Shown = laptop.Fence("Sums", 1).Hash
	_, err = laptop.TryApprove(proposal)
	daemontest.Refusal(t, err, notebook.CodeStale, "")

	// Between approve and run.
	laptop.Approves("Sums", 1, notebook.ScopeOnce)
	laptop.Decides("Sums", 1, "granted")
	change("Sums", "> 2002", "> 2003")
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	change("Sums", "> 2003", "> 2002")
	// The same bytes again: the approval was of them until they changed.
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	if a := laptop.Fence("Sums", 1).Approved; len(a) != 1 || a[0].Void != "the fence changed" {
		t.Errorf("%+v", a)
	}
	laptop.Approves("Sums", 1, notebook.ScopeOnce)

	// Nothing in between: it runs, once, what was shown.
	shown = laptop.Fence("Sums", 1)
	run := laptop.Runs("Sums", 1)
	if run.Result.Closure != shown.Hash || run.Result.Output != "true\n" || run.Result.Rung != notebook.Granted {
		t.Errorf("%+v", run)
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
}

// TestI5EveryPinCounts: an approval is of a fence, its bytes, its rung, its
// args, its requester. Each other request asks again.
func TestI5EveryPinCounts(t *testing.T) {
	taking := strings.Replace(wanting, "clock\"", "clock\" args=\"who=\"", 1)
	_, laptop, phone := paired(t, map[string]string{"Sums": taking, "Copy": taking})
	laptop.Approves("Sums", 1, notebook.ScopeContent)
	laptop.Runs("Sums", 1)
	laptop.Runs("Sums", 1) // until it changes

	laptop.Refused("Copy", 1, notebook.CodeRefused, "runs strict only") // another fence of the same bytes
	_, err := laptop.Client.Run(context.Background(), notebook.RunRequest{FenceRef: daemontest.Ref(laptop.Fence("Sums", 1)), Args: map[string]string{"who": "me"}})
	daemontest.Refusal(t, err, notebook.CodeRefused, "runs strict only")
	_, err = laptop.Client.Run(context.Background(), notebook.RunRequest{FenceRef: daemontest.Ref(laptop.Fence("Sums", 1)), Args: map[string]string{"whom": "me"}})
	daemontest.Refusal(t, err, notebook.CodeInvalid, "takes no argument")
	laptop.Agent("scribe").Refused("Sums", 1, notebook.CodeRefused, "an agent")

	// Approvals stay where they were given.
	phone.Stands("Sums", 1, "local")
	if a := phone.Fence("Sums", 1).Approved; len(a) != 0 {
		t.Errorf("the phone has %+v", a)
	}
	// And can be taken back.
	id := laptop.Fence("Sums", 1).Approved[0].ID
	if err := laptop.Client.Revoke(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	daemontest.Refusal(t, laptop.Client.Revoke(context.Background(), 99), notebook.CodeNotFound, "no approval 99")
}

func TestI5ApprovalExpires(t *testing.T) {
	_, laptop, _ := paired(t, map[string]string{"Sums": wanting})
	f := laptop.Fence("Sums", 1)
	ask := notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Scope: notebook.ScopeContent, Expires: time.Now().Add(600 * time.Millisecond)}
	p, err := laptop.Client.Propose(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.TryApprove(p); err != nil {
		t.Fatal(err)
	}
	laptop.Runs("Sums", 1)
	time.Sleep(time.Until(ask.Expires) + 10*time.Millisecond)
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	ask.Expires = time.Now().Add(-time.Second)
	_, err = laptop.Client.Propose(context.Background(), ask)
	daemontest.Refusal(t, err, notebook.CodeInvalid, "would have expired already")
}

// TestI5OnceIsOnce: an approval for once is spent before the worker starts, so
// a run that is cut off has used it, and so has one of two at the same time.
func TestI5OnceIsOnce(t *testing.T) {
	w, laptop, _ := paired(t, map[string]string{"Sums": strings.Replace(wanting, "return clock", "while true do end return clock", 1)})
	f := laptop.Fence("Sums", 1)
	laptop.Approves("Sums", 1, notebook.ScopeOnce)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			run, err := laptop.Client.Run(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(f)})
			if err == nil && run.Result.Verdict != notebook.Cancelled {
				err = fmt.Errorf("%+v", run)
			}
			ended <- err
		}()
	}
	// One of them is refused at once, while the other runs.
	daemontest.Refusal(t, within(t, ended), notebook.CodeRefused, "runs strict only")
	if a := laptop.Fence("Sums", 1).Approved; len(a) != 1 || !a[0].Spent {
		t.Errorf("while it runs: %+v", a)
	}
	cancel()
	if err := within(t, ended); err != nil {
		t.Error(err)
	}
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	if a := laptop.Fence("Sums", 1).Approved; len(a) != 1 || !a[0].Spent {
		t.Errorf("after a restart: %+v", a)
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
}

// TestPresence: five tries, which no restart renews, and nothing without one.
func TestPresence(t *testing.T) {
	w := daemontest.Loopback(t)
	w.Init("laptop", "1234")
	laptop := w.As("laptop")
	laptop.Pipes("Sums", wanting)
	approve := func(pin string) error {
		p := laptop.Proposes(laptop.Fence("Sums", 1), notebook.ScopeOnce)
		_, err := laptop.Client.Approve(context.Background(), p.ProposalRequest, p.Digest, notebook.Presence{PIN: pin, Typed: "yes, approve " + p.Digest.String()[:12]})
		return err
	}
	daemontest.Refusal(t, approve(""), notebook.CodeRefused, "this needs the PIN")
	for _, left := range []string{"4 tries", "3 tries", "2 tries", "one try"} {
		daemontest.Refusal(t, approve("0000"), notebook.CodeRefused, left)
	}
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	if err := approve("1234"); err != nil { // the right one restores the tries
		t.Fatal(err)
	}
	for _, left := range []string{"4 tries", "3 tries", "2 tries"} {
		daemontest.Refusal(t, approve("0000"), notebook.CodeRefused, left)
	}
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	for _, left := range []string{"one try", "that was the last try"} {
		daemontest.Refusal(t, approve("0000"), notebook.CodeRefused, left)
	}
	daemontest.Refusal(t, approve("1234"), notebook.CodeRefused, "the PIN is locked")
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	daemontest.Refusal(t, approve("1234"), notebook.CodeRefused, "the PIN is locked")
	if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "the PIN is locked") {
		t.Errorf("status says %q", notes)
	}
	laptop.Types("Free", sums) // what needs no presence goes on
	laptop.Runs("Free", 1)
}

// TestPresenceWithoutPIN: the sentence names what is done, so one act's is no other's.
func TestPresenceWithoutPIN(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Pipes("Sums", wanting)
	p := laptop.Proposes(laptop.Fence("Sums", 1), notebook.ScopeOnce)
	for _, typed := range []string{"", "yes", "yes, approve", "yes, let scribe in", "yes, approve 000000000000"} {
		_, err := laptop.Client.Approve(context.Background(), p.ProposalRequest, p.Digest, notebook.Presence{Typed: typed})
		daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
	if _, err := laptop.TryApprove(p); err != nil {
		t.Fatal(err)
	}
	laptop.Runs("Sums", 1)
	if s := laptop.Status(); !s.NoPIN || !strings.Contains(strings.Join(s.Notes, "\n"), "there is no PIN") {
		t.Errorf("status says %+v", s)
	}
}

// TestI11AgentCannotApprove tries every method of a client as an agent and as a
// viewer. A new method has to be placed here.
func TestI11AgentCannotApprove(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	laptop.Pipes("Sums", wanting)
	f := laptop.Fence("Sums", 1)

	may := []string{ // what anybody may
		"Role", "Name", "Pages", "Page", "Query", "Why", "Runs", "RunInfo", "VerifyLedger", "Devices", "Quotas", "Status", "Policy", "TestPolicy", "Watch",
	}
	agentMay := []string{"NewPage", "Edit", "Put", "Append", "Run", "RunLive", "Asks", "RequestApproval", "Cancel", "Replay"}
	noone := []string{ // but the person
		"Rename", "Delete", "Purge", "Rebuild", "SetQuota", "Import", "Propose", "Approve", "Approvals", "Revoke", "Answer", "Pair", "Join", "Confirm",
		"RemoveDevice", "Quarantine", "Release", "Contradiction", "Resolve", "SealLedger", "Agents", "AddAgent", "RemoveAgent",
		"Engines", "AddEngine", "RemoveEngine", "AcceptPolicy", "Stop",
	}
	all := reflect.TypeFor[daemon.Client]()
	proof := reflect.ValueOf(laptop.Presence("approve " + f.Hash.String()[:12]))
	call := func(h *daemontest.Hand, name string) error {
		m := reflect.ValueOf(h.Client).MethodByName(name)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		var args []reflect.Value
		for i := range m.Type().NumIn() {
			switch in := m.Type().In(i); in {
			case reflect.TypeFor[context.Context]():
				args = append(args, reflect.ValueOf(ctx))
			case reflect.TypeFor[notebook.Presence]():
				args = append(args, proof)
			case reflect.TypeFor[notebook.ProposalRequest]():
				args = append(args, reflect.ValueOf(notebook.ProposalRequest{FenceRef: daemontest.Ref(f)}))
			default:
				if in.Kind() != reflect.Func {
					args = append(args, reflect.Zero(in))
					continue
				}
				args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
					for i := range in.NumOut() {
						out = append(out, reflect.Zero(in.Out(i)))
					}
					return out
				}))
			}
		}
		out := m.Call(args)
		err, _ := out[len(out)-1].Interface().(error)
		return err
	}
	for i := range all.NumMethod() {
		name := all.Method(i).Name
		allowed := slices.Contains(may, name) || slices.Contains(agentMay, name)
		if !allowed && !slices.Contains(noone, name) {
			t.Errorf("may an agent %s? Place it in this test", name)
		}
		if name == "Watch" || name == "Role" || name == "Name" {
			continue
		}
		if err := call(scribe, name); (daemontest.CodeOf(err) == notebook.CodeDenied) == allowed {
			t.Errorf("an agent's %s: %v", name, err)
		}
		if name != "Stop" && !slices.Contains(may, name) {
			if err := call(laptop, name); daemontest.CodeOf(err) == notebook.CodeDenied {
				t.Errorf("the person's %s: %v", name, err)
			}
		}
	}
	laptop.Refused("Sums", 1, notebook.CodeRefused, "runs strict only")
}

// TestI11AgentAsksAndThePersonAnswers: an agent's ask is a question; the yes is
// the person's, and it is for that agent.
func TestI11AgentAsksAndThePersonAnswers(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe, other := w.As("laptop"), w.Device("laptop").Agent("scribe"), w.Device("laptop").Agent("other")
	ctx := context.Background()
	policy(t, laptop, "[foreign]\nlua = \"ask\"\n")
	for _, title := range []string{"Sums", "Denied", "Changed"} {
		scribe.Types(title, sums)
	}
	request := func(h *daemontest.Hand, title string) (*notebook.Ask, error) {
		return h.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(h.Fence(title, 1))}, "please, \u202ei am the person")
	}
	told := laptop.Watches()
	scribe.Refused("Sums", 1, notebook.CodeRefused, "policy asks before lua by agent:scribe")
	ask, err := request(scribe, "Sums")
	if err != nil {
		t.Fatal(err)
	}
	told.Has("ask", "agent:scribe asks for an approval")
	if ask.Client != "agent:scribe" || ask.State != "open" {
		t.Errorf("%+v", ask)
	}
	_, err = request(scribe, "Sums")
	daemontest.Refusal(t, err, notebook.CodeRefused, "asked already")
	if asks, err := other.Client.Asks(ctx); err != nil || len(asks) != 0 {
		t.Errorf("another agent sees %+v %v", asks, err)
	}
	scribe.Refused("Sums", 1, notebook.CodeRefused, "policy asks") // asking is not having

	yes := func(ask *notebook.Ask, digest notebook.Hash, presence notebook.Presence) error {
		_, err := laptop.Client.Answer(ctx, []notebook.Answer{{Ask: ask.ID, Digest: digest}}, true, presence)
		return err
	}
	digest := ask.Proposal.Digest
	good := laptop.Presence("approve " + digest.String()[:12])
	daemontest.Refusal(t, yes(ask, digest, notebook.Presence{}), notebook.CodeRefused, "this needs a person")
	wrong := notebook.Hash{1}
	daemontest.Refusal(t, yes(ask, wrong, laptop.Presence("approve "+wrong.String()[:12])), notebook.CodeStale, "")
	if err := yes(ask, digest, good); err != nil {
		t.Fatal(err)
	}
	daemontest.Refusal(t, yes(ask, digest, good), notebook.CodeStale, "approved already")
	other.Refused("Sums", 1, notebook.CodeRefused, "policy asks") // it was the scribe's
	if run := scribe.Runs("Sums", 1); run.Result.Rung != notebook.Strict || run.Client != "agent:scribe" {
		t.Errorf("%+v", run)
	}
	scribe.Refused("Sums", 1, notebook.CodeRefused, "policy asks") // once

	// A no holds until the fence changes.
	if ask, err = request(scribe, "Denied"); err != nil {
		t.Fatal(err)
	}
	if _, err := laptop.Client.Answer(ctx, []notebook.Answer{{Ask: ask.ID}}, false, notebook.Presence{}); err != nil {
		t.Fatal(err)
	}
	_, err = request(scribe, "Denied")
	daemontest.Refusal(t, err, notebook.CodeRefused, "a person said no")
	_, err = request(other, "Denied")
	daemontest.Refusal(t, err, notebook.CodeRefused, "a person said no")
	scribe.Edits("Denied", "6*7", "6*8")
	if _, err := request(scribe, "Denied"); err != nil {
		t.Fatal(err)
	}

	// What is changed after it was asked cannot be approved any more.
	if ask, err = request(scribe, "Changed"); err != nil {
		t.Fatal(err)
	}
	scribe.Edits("Changed", "6*7", "'owned'")
	if asks, err := scribe.Client.Asks(ctx); err != nil || asks[0].ID != ask.ID || asks[0].State != "void" {
		t.Errorf("%+v %v", asks[0], err)
	}
	digest = ask.Proposal.Digest
	daemontest.Refusal(t, yes(ask, digest, laptop.Presence("approve "+digest.String()[:12])), notebook.CodeStale, "")
	scribe.Refused("Changed", 1, notebook.CodeRefused, "policy asks")

	// Eight at a time.
	for n := range 9 {
		title := fmt.Sprint("Many ", n)
		scribe.Types(title, sums)
		_, err = request(scribe, title)
	}
	daemontest.Refusal(t, err, notebook.CodeExhausted, "asks of this client are open")
	if _, err = other.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(other.Fence("Many 8", 1))}, ""); err != nil {
		t.Errorf("another client's ask: %v", err)
	}
}

// TestRoute10AgentWritesAndRuns: an agent may run what it wrote, strict, and
// raise nothing by asking for it in the fence.
func TestRoute10AgentWritesAndRuns(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	laptop.Types("Mine", sums)
	laptop.Types("Mine wants", wanting)
	scribe.Types("Sums", sums)
	if run := scribe.Runs("Sums", 1); run.Result.Rung != notebook.Strict || run.Standing != "agent:scribe" {
		t.Errorf("%+v", run)
	}
	scribe.Types("More", wanting)
	scribe.Refused("More", 1, notebook.CodeRefused, "an agent runs fences strict only")
	laptop.Refused("More", 1, notebook.CodeRefused, "runs strict only")

	// The person's own fence in an agent's hands is strict too.
	if run := laptop.Runs("Mine", 1); run.Result.Rung != notebook.Granted {
		t.Errorf("%+v", run)
	}
	if run := scribe.Runs("Mine", 1); run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run)
	}
	scribe.Refused("Mine wants", 1, notebook.CodeRefused, "an agent runs fences strict only")
	// And is no longer the person's once the agent wrote in it.
	scribe.Edits("Mine", "6*7", "6*8")
	laptop.Stands("Mine", 1, "agent:scribe")
}

// TestI11AgentSeesItsOwnRuns: what others run is not an agent's business.
func TestI11AgentSeesItsOwnRuns(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe := w.As("laptop"), w.Device("laptop").Agent("scribe")
	ctx := context.Background()
	laptop.Types("Sums", sums)
	told := scribe.Watches()
	theirs, mine := laptop.Runs("Sums", 1), scribe.Runs("Sums", 1)
	told.Has("run", ": ok")
	for _, e := range told.All() {
		if e.Run != nil && e.Run.Client != "agent:scribe" {
			t.Errorf("an agent is told %+v", e.Run)
		}
	}
	if runs, err := scribe.Client.Runs(ctx, 0); err != nil || len(runs) != 1 || runs[0].Number != mine.Number {
		t.Errorf("an agent sees %+v %v", runs, err)
	}
	_, err := scribe.Client.RunInfo(ctx, theirs.Number)
	daemontest.Refusal(t, err, notebook.CodeNotFound, "there is no run")
	if runs, err := laptop.Client.Runs(ctx, 0); err != nil || len(runs) != 2 {
		t.Errorf("the person sees %+v %v", runs, err)
	}
	if _, err := laptop.Client.RunInfo(ctx, mine.Number); err != nil {
		t.Error(err)
	}
}

// TestI11TakenTokensAreGone: an agent whose token was taken away is told nothing
// more, runs nothing more, and asks for nothing more.
func TestI11TakenTokensAreGone(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe, other := w.As("laptop"), w.Device("laptop").Agent("scribe"), w.Device("laptop").Agent("other")
	ctx := context.Background()
	scribe.Types("Sums", sums)
	scribe.Types("Wants", wanting)
	scribe.Types("Long", lua("while true do end"))
	if _, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(scribe.Fence("Wants", 1))}, "please"); err != nil {
		t.Fatal(err)
	}
	token, err := daemon.ReadToken(laptop.Home.AgentToken("scribe"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- scribe.Client.Watch(ctx, func(notebook.Event) error { return nil }) }()
	go func() {
		run, err := scribe.TryRun(scribe.Fence("Long", 1))
		if err == nil && run.Result.Verdict != notebook.Cancelled {
			err = fmt.Errorf("%+v", run)
		}
		ended <- err
	}()
	w.Eventually("the run has begun", func() bool { return laptop.Status().Running == 1 })
	told := other.Watches()

	if err := laptop.Client.RemoveAgent(ctx, "scribe"); err != nil {
		t.Fatal(err)
	}
	watch, run := within(t, ended), within(t, ended)
	if run != nil {
		watch, run = run, watch
	}
	if daemontest.CodeOf(watch) != notebook.CodeDenied || run != nil {
		t.Errorf("its watch ended with %v and its run with %v", watch, run)
	}
	if asks, err := laptop.Client.Asks(ctx); err != nil || len(asks) != 1 || asks[0].State != "void" {
		t.Errorf("its ask: %+v %v", asks, err)
	}
	if _, err := laptop.Client.AddAgent(ctx, "third", notebook.Presence{Typed: "yes"}); daemontest.CodeOf(err) != notebook.CodeRefused {
		t.Errorf("an agent was let in by nobody: %v", err)
	}
	// What it had asked for a moment before, and what came to its turn only now.
	before := laptop.Body("Sums")
	for what, does := range map[string]func() error{
		"run": func() error { _, err := scribe.TryRun(laptop.Fence("Sums", 1)); return err },
		"ask": func() error {
			_, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(laptop.Fence("Wants", 1))}, "please")
			return err
		},
		"append":  func() error { _, err := scribe.Client.Append(ctx, laptop.Page("Sums").ID, "more", ""); return err },
		"make":    func() error { _, err := scribe.Client.NewPage(ctx, "New"); return err },
		"be told": func() error { return scribe.Client.Watch(ctx, func(notebook.Event) error { return nil }) },
		"run slowly": func() error {
			_, err := scribe.Client.RunLive(ctx, notebook.RunRequest{FenceRef: daemontest.Ref(laptop.Fence("Sums", 1))}, func(notebook.RunOutput) error { return nil })
			return err
		},
	} {
		done := make(chan error, 1)
		go func() { done <- does() }()
		if err := within(t, done); daemontest.CodeOf(err) != notebook.CodeDenied {
			t.Errorf("without its token it could %s: %v", what, err)
		}
	}
	if laptop.Body("Sums") != before {
		t.Error("it wrote")
	}
	for _, bad := range []string{token, "", "nonsense", strings.Repeat("0", 64)} {
		_, err := laptop.Open(bad)
		daemontest.Refusal(t, err, notebook.CodeDenied, "the token is not known")
	}
	laptop.Stands("Sums", 1, "agent:scribe") // what it wrote stays its own
	laptop.Types("Later", "text\n")
	told.Has("page", "") // the other one's watch goes on
	// One of the same name is another one.
	if again := w.Device("laptop").Agent("scribe"); again.Client.Name() != "scribe" {
		t.Error(again.Client.Name())
	}
	_, err = laptop.Open(token)
	daemontest.Refusal(t, err, notebook.CodeDenied, "the token is not known")
}
