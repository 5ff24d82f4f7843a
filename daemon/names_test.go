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

// TestNamesThatLookAlike: a device that takes a name that could be taken for
// another's is shown with its fingerprint wherever it is shown, and so is the other.
func TestNamesThatLookAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone", "рhone", "tablet") // the third begins with a letter of Cyrillic
		w.Pair("laptop", "phone", "рhone", "tablet")
		laptop, phone, twin := w.As("laptop"), w.Device("phone"), w.Device("рhone")
		ctx := context.Background()
		w.As("phone").Types("Phone's", sums)
		w.As("рhone").Types("Twin's", sums)
		w.As("tablet").Types("Tablet's", sums)
		w.Settle()

		phones, twins := "phone~"+phone.ID.Short(), "рhone~"+twin.ID.Short()
		stands := map[string]string{
			"Phone's": "device:" + phones, "Twin's": `device:"` + twins + `"`, "Tablet's": "device:tablet",
		}
		check := func() {
			t.Helper()
			for title, want := range stands {
				laptop.Stands(title, 1, want)
				f := laptop.Fence(title, 1)
				why, err := laptop.Client.Why(ctx, f.Page, f.ID)
				if err != nil || why.Ranges[0].Name != want || !strings.Contains(why.Rule, want) {
					t.Errorf("%s: %+v %v", title, why, err)
				}
				if p := laptop.Proposes(f, notebook.ScopeOnce); p.Standing != want || p.Origin[0] != want {
					t.Errorf("%s: %q %q", title, p.Standing, p.Origin)
				}
				laptop.Refused(title, 1, notebook.CodeRefused, "policy asks before lua by "+want)
				if last := laptop.Fence(title, 1).Last; last == nil || last.Standing != want {
					t.Errorf("%s: %+v", title, last)
				}
			}
			names := map[notebook.DeviceID]string{phone.ID: phones, twin.ID: twins, laptop.ID: "laptop", w.Device("tablet").ID: "tablet"}
			for _, d := range laptop.Devices() {
				if d.Name != names[d.ID] {
					t.Errorf("%s is listed as %q", names[d.ID], d.Name)
				}
			}
			quotas, err := laptop.Client.Quotas(ctx)
			if err != nil || len(quotas) != len(names) {
				t.Fatal(quotas, err)
			}
			for _, q := range quotas {
				if q.Name != names[q.Device] {
					t.Errorf("%s has a quota as %q", names[q.Device], q.Name)
				}
			}
		}
		policy(t, laptop, "[foreign]\nlua = \"ask\"\n[device."+phone.ID.String()+"]\nlua = \"refuse\"\n")
		// The rule is of the phone's key, whatever the other is called.
		laptop.Decides("Phone's", 1, "refuse")
		laptop.Decides("Twin's", 1, "ask")
		policy(t, laptop, "[foreign]\nlua = \"ask\"\n")

		told := laptop.Watches()
		if _, err := laptop.Client.Quarantine(ctx, twin.ID); err != nil {
			t.Fatal(err)
		}
		told.Has("device", notebook.EscapeLine(twins)+" was put into quarantine")
		laptop.Refused("Twin's", 1, notebook.CodeRefused, twins)
		if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, notebook.EscapeLine(twins)) {
			t.Errorf("%q", notes)
		}
		if err := laptop.Client.Release(ctx, twin.ID, laptop.Presence("release "+notebook.EscapeLine(twins))); err != nil {
			t.Fatal(err)
		}
		check()
		w.Device("laptop").Restarts()
		laptop = w.As("laptop")
		check()
	})
}

// TestTwoPagesOfOneTitle: a title that two pages have names neither, for a run
// and for an approval, and what is approved on one is not on the other.
func TestTwoPagesOfOneTitle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone")
		w.Pair("laptop", "phone")
		laptop, phone := w.As("laptop"), w.As("phone")
		ctx := context.Background()
		laptop.Types("Draft", wanting)
		w.Settle()
		w.Cut("laptop", "phone")
		phone.Types("Plan", wanting)
		mine := laptop.Page("Draft")
		if _, err := laptop.Client.Rename(ctx, mine.ID, "Plan"); err != nil {
			t.Fatal(err)
		}
		laptop.Decides("Plan", 1, "granted") // while there is one
		w.Heal("laptop", "phone")
		time.Sleep(time.Minute)
		w.Settle()

		for _, ref := range []string{"Plan", "plan", " PLAN "} {
			_, err := laptop.Client.Page(ctx, ref)
			daemontest.Refusal(t, err, notebook.CodeAmbiguous, "names 2 pages")
			if !strings.Contains(err.Error(), "="+mine.ID.String()[:12]) {
				t.Errorf("%v", err)
			}
		}
		var theirs notebook.PageID
		pages, err := laptop.Client.Pages(ctx)
		if err != nil || len(pages) != 2 {
			t.Fatal(pages, err)
		}
		for _, p := range pages {
			if p.ID != mine.ID {
				theirs = p.ID
			}
		}
		// The same bytes under the same title: each stands as who wrote it, and
		// an approval of one allows nothing of the other.
		one, other := "="+mine.ID.String(), "="+theirs.String()
		laptop.Stands(one, 1, "local")
		laptop.Stands(other, 1, "device:phone")
		laptop.Decides(other, 1, "ask")
		f, g := laptop.Fence(one, 1), laptop.Fence(other, 1)
		if f.Hash != g.Hash {
			t.Error("the pages differ")
		}
		mixed := notebook.RunRequest{FenceRef: notebook.FenceRef{Page: mine.ID, Fence: g.ID, Shown: g.Hash}}
		_, err = laptop.Client.Run(ctx, mixed)
		daemontest.Refusal(t, err, notebook.CodeNotFound, "no such fence")
		_, err = laptop.Client.Propose(ctx, notebook.ProposalRequest{FenceRef: mixed.FenceRef})
		daemontest.Refusal(t, err, notebook.CodeNotFound, "no such fence")

		policy(t, laptop, "[local]\nlua = \"ask\"\n")
		laptop.Approves(one, 1, notebook.ScopeContent)
		laptop.Runs(one, 1)
		laptop.Refused(other, 1, notebook.CodeRefused, "policy asks")
		laptop.Approves(other, 1, notebook.ScopeContent)
		laptop.Runs(other, 1)
	})
}

// TestAgentNames: an agent's name is of letters that look like no others', so
// that what it wrote is nobody else's to a reader.
func TestAgentNames(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	ctx := context.Background()
	add := func(name string) error {
		_, err := laptop.Client.AddAgent(ctx, name, laptop.Presence("let "+name+" in"))
		return err
	}
	for _, name := range []string{"scribe", "a", "scribe-2", "0"} {
		if err := add(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "-scribe", "Scribe", "sсribe", "scribe ", " scribe", "scri\u200bbe", "ｓcribe", "scribé", "scribe_2", "scribe.", "a/b", "..", "a:b", "a\nb", strings.Repeat("a", 33),
	} {
		daemontest.Refusal(t, add(name), notebook.CodeInvalid, "no name for an agent")
	}
	daemontest.Refusal(t, add("scribe"), notebook.CodeInvalid, "already")
	if agents, err := laptop.Client.Agents(ctx); err != nil || len(agents) != 4 {
		t.Errorf("%+v %v", agents, err)
	}
}
