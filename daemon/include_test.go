package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// ref is how a fence that is shown is named in another's include.
func ref(f notebook.FenceInfo) string {
	return notebook.Include{Page: f.Page, Fence: f.ID.Short()}.String()
}

// including is a page with a fence that includes what refs name.
func including(code string, refs ...string) string {
	return "```lua {include=\"" + strings.Join(refs, " ") + "\"}\n" + code + "\n```\n"
}

// TestOwnIncludesRunGranted is the control of all that follows: fences that this
// person typed on two pages run as one.
func TestOwnIncludesRunGranted(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Lib", lua("function twice(x) return 2 * x end")+"\n"+lua("function add(a, b) return a + b end"))
	one, two := laptop.Fence("Lib", 1), laptop.Fence("Lib", 2)
	laptop.Types("More", including("function quad(x) return twice(twice(x)) end", ref(one)))
	laptop.Types("Mine", "```lua\nbase = 2\n```\n")
	near := "#" + laptop.Fence("Mine", 1).ID.Short()
	laptop.Types("Mine", "```lua\nbase = 2\n```\n\n"+including("print(quad(base), add(20, 22))", near, ref(two), ref(laptop.Fence("More", 1)), ref(one)))
	laptop.Stands("Mine", 2, "local")
	laptop.Decides("Mine", 2, "granted")
	f := laptop.Fence("Mine", 2)
	var titles []string
	for _, i := range f.Includes {
		titles = append(titles, i.Title+" "+i.Standing)
	}
	if got := strings.Join(titles, ", "); got != "Mine local, Lib local, Lib local, More local" {
		t.Errorf("it includes %s", got)
	}
	run := laptop.Runs("Mine", 2)
	if run.Result.Output != "8\t42\n" || run.Result.Rung != notebook.Granted || run.Result.Closure != f.Hash {
		t.Errorf("%+v", run.Result)
	}
	why, err := laptop.Client.Why(context.Background(), f.Page, f.ID)
	if err != nil || why.Closure.Hash() != f.Hash || len(why.Closure) != 5 || !strings.Contains(why.Rule, "everything that it includes") {
		t.Errorf("%+v %v", why, err)
	}
	laptop.Edits("Lib", "return 2 * x", "return 3 * x")
	if f = laptop.Fence("Mine", 2); !f.Stale || f.Standing != "local" {
		t.Errorf("the result of other bytes is shown as if it were of these: %+v", f)
	}
	if run = laptop.Runs("Mine", 2); run.Result.Output != "18\t42\n" {
		t.Errorf("%+v", run.Result)
	}
	laptop.Edits("Lib", "return 3 * x", "error('no')")
	run, err = laptop.TryRun(laptop.Fence("Mine", 2))
	if want := one.ID.Short() + ":1: no\ncalled from line " + laptop.Fence("More", 1).ID.Short() + ":1"; err != nil || run.Result.Verdict != notebook.Failed || !strings.HasPrefix(run.Result.Error, want) {
		t.Errorf("%+v %v, want %q", run, err, want)
	}
}

// TestRoute03IncludesStandWithTheirParts: a fence of this person's that includes
// another's stands and runs as the other's does.
func TestRoute03IncludesStandWithTheirParts(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua("function f() return page == nil end")})
	scribe := w.Device("laptop").Agent("scribe")
	scribe.Types("Agents", lua("function g() return 1 end"))
	laptop.Types("Own", lua("function h() return 2 end"))
	theirs, agents, own := ref(laptop.Fence("Theirs", 1)), ref(laptop.Fence("Agents", 1)), ref(laptop.Fence("Own", 1))
	laptop.Types("Through", including("x = f()", theirs))
	for title, c := range map[string]struct {
		refs  []string
		info  string
		stand string
	}{
		"One":   {[]string{theirs}, "", "device:phone"},
		"Mixed": {[]string{own, theirs}, "", "device:phone"},
		"Last":  {[]string{theirs, own}, "", "device:phone"},
		"Both":  {[]string{theirs, agents}, "", "agent:scribe device:phone"},
		"Deep":  {[]string{own, ref(laptop.Fence("Through", 1))}, "", "device:phone"},
		"Agent": {[]string{agents}, "", "agent:scribe"},
		"Mine":  {[]string{own}, "", "local"},
	} {
		laptop.Types(title, including("return page == nil", c.refs...))
		laptop.Stands(title, 1, c.stand)
		want := map[bool]string{true: "granted", false: "strict"}[c.stand == "local"]
		laptop.Decides(title, 1, want)
		if run := laptop.Runs(title, 1); run.Result.Output != fmt.Sprintf("%v\n", want == "strict") || run.Result.Rung.String() != want || run.Standing != c.stand {
			t.Errorf("%s: %+v", title, run)
		}
		if run := scribe.Runs(title, 1); run.Result.Rung != notebook.Strict {
			t.Errorf("%s: an agent runs it %v", title, run.Result.Rung)
		}
	}
	// One that ends where others could make it end is not this person's alone.
	laptop.Types("Open", "```lua\nfunction o() return 3 end")
	laptop.Types("Of an open one", including("return o()", ref(laptop.Fence("Open", 1))))
	laptop.Stands("Of an open one", 1, "structure")
	laptop.Decides("Of an open one", 1, "strict")
	laptop.Types("Wants", "```lua {wants=\"clock\" include=\""+theirs+"\"}\nreturn clock.year > 2000\n```\n")
	laptop.Refused("Wants", 1, notebook.CodeRefused, "runs strict only")
	f := laptop.Fence("Wants", 1)
	why, err := laptop.Client.Why(context.Background(), f.Page, f.ID)
	if err != nil || !strings.Contains(why.Rule, "Theirs#") || !strings.Contains(why.Rule, "stands device:phone") {
		t.Errorf("%+v %v", why, err)
	}
	// To the phone the parts stand the other way round.
	w.Settle()
	phone.Stands("One", 1, "device:laptop")
	phone.Stands("Through", 1, "device:laptop")
	phone.Stands("Theirs", 1, "local")

	// What the phone wants for its own fence, this fence does not get.
	phone.Edits("Theirs", "lua\n", "lua {wants=\"page\"}\n")
	w.Settle()
	laptop.Refused("One", 1, notebook.CodeRefused, "wants page, which the fence itself does not ask for")
	laptop.Refused("Deep", 1, notebook.CodeRefused, "wants page")
}

// TestRoute03NoNameIsLookedUp: nothing in a page is found by title or number, so
// nothing that others make takes the place of what was meant.
func TestRoute03NoNameIsLookedUp(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua("f = 'phone'")})
	laptop.Types("Lib", lua("f = 'laptop'"))
	lib := laptop.Fence("Lib", 1)
	laptop.Types("Mine", including("return f", ref(lib)))
	for i, value := range []string{"Lib#1", "Lib#" + lib.ID.Short(), "#1", "=" + lib.Page.String()[:12] + "#" + lib.ID.Short(), "today#1"} {
		title := fmt.Sprintf("Named %d", i)
		laptop.Types(title, including("return f", value))
		laptop.Refused(title, 1, notebook.CodeRefused, "what the fence includes cannot be read")
		f := laptop.Fence(title, 1)
		_, err := laptop.Client.Propose(context.Background(), notebook.ProposalRequest{FenceRef: daemontest.Ref(f)})
		daemontest.Refusal(t, err, notebook.CodeRefused, "what the fence includes cannot be read")
	}
	laptop.Types("Mine 2", "```lua {call=Lib}\nreturn 1\n```\n\n```lua {include=\nreturn 1\n```\n")
	if run := laptop.Runs("Mine 2", 1); run.Result.Output != "1\n" { // a word that means nothing
		t.Errorf("%+v", run.Result)
	}
	laptop.Refused("Mine 2", 2, notebook.CodeRefused, "include has no value")

	// A fence before it, another page of its title, and its title taken away.
	w.Settle()
	phone.Edits("Lib", "# Sums", "~~~lua\nf = 'first in order'\n~~~\n\n# Sums")
	w.Settle()
	laptop.Stands("Mine", 1, "local")
	p := laptop.Page("Lib")
	if _, err := laptop.Client.Rename(context.Background(), p.ID, "Library"); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	phone.Types("Lib", lua("f = 'same title'"))
	w.Settle()
	if run := laptop.Runs("Mine", 1); run.Result.Output != "laptop\n" || run.Result.Rung != notebook.Granted {
		t.Errorf("%+v", run.Result)
	}
	if f := laptop.Fence("Mine", 1); f.Includes[0].Title != "Library" || f.Includes[0].Fence != lib.ID {
		t.Errorf("%+v", f.Includes)
	}
	// A short id counts on its own page only.
	laptop.Types("Elsewhere", including("return f", notebook.Include{Page: laptop.Fence("Theirs", 1).Page, Fence: lib.ID.Short()}.String()))
	laptop.Refused("Elsewhere", 1, notebook.CodeRefused, `there is no such fence on "Theirs" any more`)
}

// TestI5IncludedFencesArePartOfWhatWasShown: a change of an included fence, on
// another page and by another device, is a change of the fence.
func TestI5IncludedFencesArePartOfWhatWasShown(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua("function f() return 1 end") + lua("return 'untouched'")})
	scribe := w.Device("laptop").Agent("scribe")
	lib := ref(laptop.Fence("Theirs", 1))
	laptop.Types("Mine", "```lua {wants=\"clock\" include=\""+lib+"\"}\nreturn f(), clock ~= nil\n```\n")
	laptop.Types("Plain", including("return f()", lib))
	change := func(old, new string) {
		t.Helper()
		phone.Edits("Theirs", old, new)
		w.Settle()
	}
	ctx := context.Background()

	shown := laptop.Fence("Plain", 1)
	if run, err := laptop.TryRun(shown); err != nil || run.Result.Output != "1\n" {
		t.Fatalf("%+v %v", run, err)
	}
	change("return 1", "return 'owned'")
	_, err := laptop.TryRun(shown)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	if f := laptop.Fence("Plain", 1); f.Last.State != "refused" {
		t.Errorf("the refusal does not stand for what happened last: %+v", f.Last)
	}

	// Between propose and approve, between approve and run, and afterwards.
	p := laptop.Proposes(laptop.Fence("Mine", 1), notebook.ScopeContent)
	if len(p.Closure) != 2 || !strings.Contains(p.Closure[0].Code, "owned") || len(p.Included) != 1 || p.Included[0].Title != "Theirs" ||
		p.Included[0].Standing != "device:phone" || !slices.Contains(p.Origin, "device:phone") {
		t.Errorf("%+v", p)
	}
	change("'owned'", "2")
	_, err = laptop.TryApprove(p)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	a := laptop.Approves("Mine", 1, notebook.ScopeContent)
	shown = laptop.Fence("Mine", 1)
	if run := laptop.Runs("Mine", 1); run.Result.Output != "2\ttrue\n" || run.Result.Rung != notebook.Granted || a.Closure != run.Result.Closure {
		t.Errorf("%+v", run.Result)
	}
	change("return 2", "return 3")
	_, err = laptop.TryRun(shown)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	if f := laptop.Fence("Mine", 1); f.Approved[0].Void == "" {
		t.Errorf("the approval counts: %+v", f.Approved)
	}
	change("return 3", "return 2") // the same bytes later ask again
	laptop.Refused("Mine", 1, notebook.CodeRefused, "runs strict only")
	change("return 2", "return 3")
	p = laptop.Proposes(laptop.Fence("Mine", 1), notebook.ScopeOnce)
	if !strings.Contains(p.Previous, "return 2") || !strings.Contains(p.Previous, "return f(), clock") || strings.Contains(p.Previous, "return 3") {
		t.Errorf("what was approved before is %q", p.Previous)
	}
	change("'untouched'", "'touched'") // not a part of it
	if _, err := laptop.TryApprove(p); err != nil {
		t.Errorf("another fence of the page is part of what was shown: %v", err)
	}

	// An agent's ask is about what it saw.
	f := scribe.Fence("Mine", 1)
	if _, err := laptop.TryRun(laptop.Fence("Mine", 1)); err != nil { // spends it
		t.Fatal(err)
	}
	ask, err := scribe.Client.RequestApproval(ctx, notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Rung: notebook.Granted, Capabilities: []notebook.Capability{notebook.CapClock}}, "please")
	if err != nil {
		t.Fatal(err)
	}
	change("'touched'", "'again'")
	if asks, err := laptop.Client.Asks(ctx); err != nil || asks[0].ID != ask.ID || asks[0].State != "open" {
		t.Errorf("%+v %v", asks, err)
	}
	change("return 3", "return 4")
	if asks, err := laptop.Client.Asks(ctx); err != nil || asks[0].State != "void" {
		t.Errorf("%+v %v", asks, err)
	}
}

// TestI14BrokenIncludesSayWhy: what cannot be closed over does not run, and the
// part that is missing is named.
func TestI14BrokenIncludesSayWhy(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua("x = 1"), "Doomed": lua("x = 2")})
	laptop.Types("Gone", including("return x", ref(laptop.Fence("Theirs", 1))))
	laptop.Types("Deleted", including("return x", ref(laptop.Fence("Doomed", 1))))
	laptop.Runs("Gone", 1)
	laptop.Runs("Deleted", 1)
	phone.Types("Theirs", "nothing\n")
	if err := phone.Client.Delete(context.Background(), phone.Page("Doomed").ID); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	laptop.Refused("Gone", 1, notebook.CodeRefused, `there is no such fence on "Theirs" any more`)
	laptop.Refused("Deleted", 1, notebook.CodeRefused, `the page "Doomed" was deleted`)
	for _, title := range []string{"Gone", "Deleted"} {
		f := laptop.Fence(title, 1)
		if f.Decision != "refuse" || f.Last == nil || f.Last.State != "refused" || !strings.Contains(f.Last.Reason, "includes =") || len(f.Includes) > 0 {
			t.Errorf("%s: %+v", title, f)
		}
		_, err := laptop.Client.Propose(context.Background(), notebook.ProposalRequest{FenceRef: daemontest.Ref(f), Rung: notebook.Granted})
		daemontest.Refusal(t, err, notebook.CodeRefused, "the fence includes")
	}

	// Cycles, of one and of two, and another language.
	laptop.Types("Loop", "```lua\nx = 1\n```\n")
	self := "#" + laptop.Fence("Loop", 1).ID.Short()
	laptop.Edits("Loop", "lua\n", "lua {include=\""+self+"\"}\n")
	laptop.Refused("Loop", 1, notebook.CodeRefused, "in turn")
	laptop.Types("Ping", "```lua\nx = 1\n```\n")
	laptop.Types("Pong", including("x = 2", ref(laptop.Fence("Ping", 1))))
	laptop.Runs("Pong", 1)
	laptop.Edits("Ping", "lua\n", "lua {include=\""+ref(laptop.Fence("Pong", 1))+"\"}\n")
	laptop.Refused("Ping", 1, notebook.CodeRefused, "in turn")
	laptop.Refused("Pong", 1, notebook.CodeRefused, "in turn")
	laptop.Types("Other", "```python\nx = 1\n```\n")
	laptop.Types("Mixed", including("x = 2", ref(laptop.Fence("Other", 1))))
	laptop.Refused("Mixed", 1, notebook.CodeRefused, `is "python" and not "lua"`)

	// More than there may be, in number and in bytes.
	var many, refs []string
	for n := range 40 {
		many = append(many, fmt.Sprintf("```lua\nx = %d\n```\n", n))
	}
	laptop.Types("Many", strings.Join(many, "\n"))
	for _, f := range laptop.Page("Many").Fences {
		refs = append(refs, ref(f))
	}
	laptop.Types("Half", including("y = 1", refs[:16]...))
	laptop.Types("31", including("return x", refs[:31]...))
	laptop.Types("32", including("return x", append(refs[16:32:32], ref(laptop.Fence("Half", 1)))...))
	if run := laptop.Runs("31", 1); run.Result.Output != "30\n" {
		t.Errorf("%+v", run.Result)
	}
	laptop.Refused("32", 1, notebook.CodeExhausted, "more than 32 fences")
	laptop.Types("Big", "```lua\nx = '"+strings.Repeat("x", 40<<10)+"'\n```\n\n```lua\nx = '"+strings.Repeat("y", 30<<10)+"'\n```\n")
	laptop.Types("One of them", including("return #x", ref(laptop.Fence("Big", 1))))
	laptop.Types("Both of them", including("return #x", ref(laptop.Fence("Big", 1)), ref(laptop.Fence("Big", 2))))
	laptop.Runs("One of them", 1)
	laptop.Refused("Both of them", 1, notebook.CodeExhausted, "65536 bytes")
}

// TestIncludesWaitForTheirPage: what a fence includes may still be on its way.
func TestIncludesWaitForTheirPage(t *testing.T) {
	w, _, phone := paired(t, nil)
	w.Device("laptop").Stops()
	phone.Types("Theirs", lua("x = 'came'"))
	there := ref(phone.Fence("Theirs", 1))
	w.Device("phone").Stops()
	w.Device("laptop").Starts()
	laptop := w.As("laptop")
	laptop.Types("Mine", including("return x", there))
	laptop.Refused("Mine", 1, notebook.CodeRefused, "that page is not here, or not yet")
	before := laptop.Fence("Mine", 1)
	w.Device("phone").Starts()
	w.Settle()
	_, err := laptop.TryRun(before)
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
	laptop.Stands("Mine", 1, "device:phone")
	if run := laptop.Runs("Mine", 1); run.Result.Output != "came\n" || run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run.Result)
	}
}

// TestRoute03ExamplesAreNotIncluded: a fence within an example is no fence, and
// one that others bring to life is not this person's.
func TestRoute03ExamplesAreNotIncluded(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{"Theirs": lua("x = 'phone'")})
	laptop.Types("Lib", lua("x = 'laptop'"))
	lib := laptop.Fence("Lib", 1)
	laptop.Types("Mine", including("return x", ref(lib)))
	laptop.Stands("Mine", 1, "local")

	// An include in an example is text.
	laptop.Types("Manual", "How to include:\n\n````markdown\n"+including("return x", ref(laptop.Fence("Theirs", 1)))+"````\n")
	if p := laptop.Page("Manual"); len(p.Fences) != 1 || p.Fences[0].Language != "markdown" || len(p.Fences[0].Includes) > 0 {
		t.Errorf("%+v", p.Fences)
	}
	// The included fence becomes an example, and a peer takes the wrapping away.
	body := laptop.Body("Lib")
	laptop.Types("Lib", "````markdown\n"+body+"````\n")
	laptop.Refused("Mine", 1, notebook.CodeRefused, `there is no such fence on "Lib" any more`)
	w.Settle()
	phone.Types("Lib", body)
	w.Settle()
	if f := laptop.Fence("Lib", 1); f.ID != lib.ID || f.Standing == "local" {
		t.Errorf("%+v", f)
	}
	if f := laptop.Fence("Mine", 1); f.Standing == "local" || f.Decision != "strict" {
		t.Errorf("it stands %s and a run would be %s", f.Standing, f.Decision)
	}
}

// TestIncludesOfADeviceInQuarantine: its parts are held wherever they are included.
func TestIncludesOfADeviceInQuarantine(t *testing.T) {
	w, laptop, _ := paired(t, map[string]string{"Theirs": lua("function f() while true do end end")})
	laptop.Types("Mine", including("return 1", ref(laptop.Fence("Theirs", 1))))
	laptop.Runs("Mine", 1)
	laptop.Types("Endless", "```lua {include=\""+ref(laptop.Fence("Theirs", 1))+"\"}\nf()\n```\n")
	over := make(chan error, 1)
	running := laptop.Fence("Endless", 1)
	go func() {
		run, err := laptop.TryRun(running)
		if err == nil && run.Result.Verdict != notebook.Cancelled {
			err = fmt.Errorf("it ended with %v", run.Result.Verdict)
		}
		over <- err
	}()
	for end := time.Now().Add(daemontest.Patience); laptop.Status().Running == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	report, err := laptop.Client.Quarantine(context.Background(), w.Device("phone").ID)
	if err != nil || len(report.Stopped) != 1 {
		t.Errorf("%+v %v", report, err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	laptop.Decides("Mine", 1, "ask")
	laptop.Refused("Mine", 1, notebook.CodeRefused, "quarantine")
}

// TestI1PagesFullOfIncludes: a page whose fences include too much to look at all
// of them is shown with those that are left unseen, and each of them is seen alone.
func TestI1PagesFullOfIncludes(t *testing.T) {
	_, laptop, phone := paired(t, nil)
	var parts, page strings.Builder
	for n := range 31 {
		fmt.Fprintf(&parts, "```lua\nx = %d\n```\n", n)
	}
	phone.Types("Parts", parts.String())
	var refs []string
	for _, f := range phone.Page("Parts").Fences {
		refs = append(refs, ref(f))
	}
	const fences = 200
	for range fences {
		page.WriteString(including("return x", refs...))
	}
	phone.Types("Full", page.String())
	laptop.Sees("Full", page.String())
	view := laptop.Page("Full")
	if len(view.Fences) != fences {
		t.Fatalf("%d fences", len(view.Fences))
	}
	unseen := 0
	for _, f := range view.Fences {
		if f.Unseen != f.Hash.IsZero() || f.Unseen != (f.Decision == "refuse") || f.Unseen != strings.Contains(f.Reason, "too much to look at") || f.Unseen != (len(f.Includes) == 0) {
			t.Fatalf("%+v", f)
		}
		if f.Unseen {
			unseen++
		}
	}
	if unseen != fences-4096/31 {
		t.Errorf("%d of %d fences are unseen", unseen, fences)
	}
	last := view.Fences[fences-1]
	why, err := laptop.Client.Why(context.Background(), last.Page, last.ID)
	if err != nil || why.Fence.Unseen || len(why.Fence.Includes) != 31 {
		t.Fatalf("%+v %v", why, err)
	}
	if run, err := laptop.TryRun(why.Fence); err != nil || run.Result.Output != "30\n" {
		t.Errorf("%+v %v", run, err)
	}
	_, err = laptop.TryRun(last) // nobody was shown anything
	daemontest.Refusal(t, err, notebook.CodeStale, "no longer what was shown")
}
