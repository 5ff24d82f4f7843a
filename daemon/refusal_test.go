package daemon_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/trust"
)

// TestI14NoRefusedRunIsSilent: who asked is told why and what to do next; the
// ledger, the list of runs and every watcher say the same.
func TestI14NoRefusedRunIsSilent(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{
		"Wants": wanting, "Stale": sums, "Shell": "```zsh\nid\n```\n", "Broken": "```lua {wants=\"everything\"}\nreturn 1\n```\n",
		"Unclosed": "```lua {wants=\"clock\"}\nreturn 1\n", "Large": lua("return '" + strings.Repeat("x", 70<<10) + "'"), "Fine": sums,
	})
	scribe := w.Device("laptop").Agent("scribe")
	laptop.Types("Mine", wanting)
	policy(t, phone, "[foreign]\nlua = \"refuse\"\n")
	laptop.Types("Laptops", sums)
	w.Settle()
	stale := laptop.Fence("Stale", 1)
	phone.Edits("Stale", "6*7", "6*8")
	w.Settle()
	for _, c := range []struct {
		name string
		by   *daemontest.Hand
		f    notebook.FenceInfo
		code notebook.Code
		why  string
	}{
		{"wants more", laptop, laptop.Fence("Wants", 1), notebook.CodeRefused, "runs strict only"},
		{"no runtime", laptop, laptop.Fence("Shell", 1), notebook.CodeRefused, "no runtime"},
		{"malformed", laptop, laptop.Fence("Broken", 1), notebook.CodeRefused, "everything"},
		{"unclosed", laptop, laptop.Fence("Unclosed", 1), notebook.CodeRefused, "runs strict only"},
		{"too large", laptop, laptop.Fence("Large", 1), notebook.CodeExhausted, "more than"},
		{"changed", laptop, stale, notebook.CodeStale, "no longer what was shown"},
		{"an agent", scribe, scribe.Fence("Mine", 1), notebook.CodeRefused, "an agent runs fences strict only"},
		{"policy", phone, phone.Fence("Laptops", 1), notebook.CodeRefused, "policy refuses lua by device:laptop"},
	} {
		before, err := c.by.Client.VerifyLedger(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		told := c.by.Watches()
		_, err = c.by.TryRun(c.f)
		daemontest.Refusal(t, err, c.code, c.why)
		if e, ok := errors.AsType[*notebook.Error](err); !ok || e.Hint == "" {
			t.Errorf("%s: what to do next is not said: %v", c.name, err)
		}
		runs, err := c.by.Owner().Client.Runs(context.Background(), 1)
		if err != nil || len(runs) != 1 || runs[0].State != "refused" || !strings.Contains(runs[0].Reason, c.why) || runs[0].Fence != c.f.ID {
			t.Errorf("%s: the newest run is %+v %v", c.name, runs, err)
		}
		after, err := c.by.Client.VerifyLedger(context.Background())
		if err != nil || after.Records != before.Records+1 || after.Problem != "" {
			t.Errorf("%s: the ledger went from %+v to %+v %v", c.name, before, after, err)
		}
		told.Has("run", "was refused: ")
		if last := c.by.Owner().Page("=" + c.f.Page.String()).Fences[0].Last; last == nil || last.State != "refused" {
			t.Errorf("%s: the fence is shown with %+v", c.name, last)
		}
	}
	// What runs is told as well.
	told := laptop.Watches()
	laptop.Runs("Fine", 1)
	told.Has("run", "began")
	told.Has("run", ": ok")
}

// TestI14WhatIsAnsweredSaysWhatNext: each request that cannot be done says why,
// and most say how it could.
func TestI14WhatIsAnsweredSaysWhatNext(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Page", sums)
	laptop.Types("Page two", "two\n")
	ctx := context.Background()
	p := laptop.Page("Page")
	unknown := notebook.Revision{{1}}
	edit := func(base notebook.Revision, s ...notebook.Splice) error {
		_, err := laptop.Client.Edit(ctx, notebook.Edit{Page: p.ID, Base: base, Splices: s})
		return err
	}
	second := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		code notebook.Code
	}{
		"no such page":        {second(laptop.Client.Page(ctx, "Nothing")), notebook.CodeNotFound},
		"no such id":          {second(laptop.Client.Page(ctx, "=0123456789")), notebook.CodeNotFound},
		"a short id":          {second(laptop.Client.Page(ctx, "=01")), notebook.CodeInvalid},
		"a title twice":       {second(laptop.Client.NewPage(ctx, "  pAGE ")), notebook.CodeInvalid},
		"no title":            {second(laptop.Client.NewPage(ctx, " ")), notebook.CodeInvalid},
		"a control title":     {second(laptop.Client.NewPage(ctx, "a\x1bb")), notebook.CodeInvalid},
		"rename onto another": {second(laptop.Client.Rename(ctx, p.ID, "Page two")), notebook.CodeInvalid},
		"no base":             {edit(nil, notebook.Splice{Insert: "x"}), notebook.CodeInvalid},
		"an unknown base":     {edit(unknown, notebook.Splice{Insert: "x"}), notebook.CodeStale},
		"outside the page":    {edit(p.Revision, notebook.Splice{At: 9999, Insert: "x"}), notebook.CodeInvalid},
		"negative":            {edit(p.Revision, notebook.Splice{At: -1, Delete: -1}), notebook.CodeInvalid},
		"overlapping":         {edit(p.Revision, notebook.Splice{At: 3, Delete: 3}, notebook.Splice{At: 4, Delete: 1}), notebook.CodeInvalid},
		"an escape":           {edit(p.Revision, notebook.Splice{Insert: "\x1b[2J"}), notebook.CodeInvalid},
		"not UTF-8":           {edit(p.Revision, notebook.Splice{Insert: "\xff"}), notebook.CodeInvalid},
		"too large":           {edit(p.Revision, notebook.Splice{Insert: strings.Repeat("x", notebook.MaxBody)}), notebook.CodeInvalid},
		"nothing to append":   {second(laptop.Client.Append(ctx, p.ID, "", "")), notebook.CodeInvalid},
		"a page that is gone": {laptop.Client.Delete(ctx, notebook.PageID{1}), notebook.CodeNotFound},
		"no such fence":       {second(laptop.Client.Why(ctx, p.ID, notebook.FenceID{1})), notebook.CodeNotFound},
		"no such run":         {second(laptop.Client.RunInfo(ctx, 99)), notebook.CodeNotFound},
		"no such ask":         {second(laptop.Client.Answer(ctx, []notebook.Answer{{Ask: 99}}, false, notebook.Presence{})), notebook.CodeNotFound},
		"no such agent":       {laptop.Client.RemoveAgent(ctx, "nobody"), notebook.CodeNotFound},
		"a bad agent name":    {second(laptop.Client.AddAgent(ctx, "../x", notebook.Presence{})), notebook.CodeInvalid},
		"no such pairing":     {laptop.Client.Confirm(ctx, "x", false, notebook.Presence{}), notebook.CodeNotFound},
		"no invitation":       {laptop.Client.Join(ctx, "noted:x", "x", nil), notebook.CodeInvalid},
		"no such format":      {second(laptop.Client.Import(ctx, "word", "/", nil)), notebook.CodeInvalid},
		"a relative folder":   {second(laptop.Client.Import(ctx, "markdown", "x", nil)), notebook.CodeInvalid},
		"no such folder":      {second(laptop.Client.Import(ctx, "markdown", "/nonexistent", nil)), notebook.CodeNotFound},
	} {
		if code := daemontest.CodeOf(c.err); code != c.code {
			t.Errorf("%s: %q %v, not %q", name, code, c.err, c.code)
		}
	}
	if body := laptop.Body("Page"); body != sums {
		t.Errorf("what was refused left %q", body)
	}
	if pages, err := laptop.Client.Pages(ctx); err != nil || len(pages) != 2 {
		t.Errorf("%+v %v", pages, err)
	}
	if err := edit(p.Revision, notebook.Splice{At: 2, Delete: 4, Insert: "Fine"}); err != nil {
		t.Error(err)
	}
	laptop.Stands("Page", 1, "local")
}

// TestI14WhatPeersSendIsTold: what was not taken from a peer is in status, and
// is told when it happens.
func TestI14WhatPeersSendIsTold(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop := w.As("laptop")
	told := laptop.Watches()
	bad := thief.Seals(thief.Next(plan), []byte("x"))
	bad.Sig = make([]byte, 64)
	if err := thief.Gives(w.Device("laptop"), bad); err == nil {
		t.Fatal("it was taken")
	}
	told.Has("note", "from tablet: ")
	void := thief.Appends(trust.Draft{Kind: notebook.KindText, Page: plan, Class: notebook.Typed, Body: []byte("noise")})
	if err := thief.Gives(w.Device("laptop"), void); err != nil {
		t.Fatal(err)
	}
	told.Has("note", "a text entry of tablet was refused and is kept as void: ")
	if s := laptop.Status(); s.Void != 1 || !strings.Contains(strings.Join(s.Notes, "\n"), "from tablet: ") {
		t.Errorf("%+v", s)
	}
	w.Device("laptop").Restarts()
	if s := w.As("laptop").Status(); s.Void != 1 {
		t.Errorf("after a restart %d entries are void", s.Void)
	}
}
