package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// TestQuarantineOfADevice: what of it runs is dead when the quarantine is
// answered, what rested on it is void, nothing of it runs any more, and what ran
// is told. It survives a restart, and stays on this device.
func TestQuarantineOfADevice(t *testing.T) {
	w, laptop, phone := paired(t, map[string]string{
		"Sums": sums, "Wants": wanting, "Long": lua("while true do end"),
	})
	ctx := context.Background()
	laptop.Types("Mine", lua("while 'mine' do end"))
	laptop.Types("Copied", sums)
	laptop.Types("Mixed", wanting)
	w.Settle()
	phone.Edits("Mixed", "> 2000", "> 2001")
	w.Settle()
	laptop.Pipes("Piped", strings.Replace(wanting, "> 2000", "> 1999", 1))
	before := laptop.Runs("Sums", 1)
	rests, mixed := laptop.Approves("Wants", 1, notebook.ScopeContent), laptop.Approves("Mixed", 1, notebook.ScopeOnce)
	laptop.Approves("Piped", 1, notebook.ScopeContent)
	laptop.Decides("Wants", 1, "granted")

	ended := make(chan error, 2)
	mine, stop := context.WithCancel(ctx)
	defer stop()
	long, own := laptop.Fence("Long", 1), laptop.Fence("Mine", 1)
	go func() {
		run, err := laptop.TryRun(long)
		if err == nil && run.Result.Verdict != notebook.Cancelled {
			err = fmt.Errorf("%+v", run)
		}
		ended <- err
	}()
	go func() { _, _ = laptop.Client.Run(mine, notebook.RunRequest{FenceRef: daemontest.Ref(own)}) }()
	w.Eventually("both run", func() bool { return laptop.Status().Running == 2 })
	told := laptop.Watches()

	report, err := laptop.Client.Quarantine(ctx, phone.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s := laptop.Status(); s.Running != 1 || !strings.Contains(strings.Join(s.Notes, "\n"), "phone ("+phone.ID.Short()+") is in quarantine since") {
		t.Errorf("when it is answered: %d run, %q", s.Running, s.Notes)
	}
	if err := within(t, ended); err != nil {
		t.Error(err)
	}
	told.Has("device", "phone was put into quarantine")
	if len(report.Stopped) != 1 || len(report.Voided) != 2 || report.Voided[0] != rests.ID || report.Voided[1] != mixed.ID {
		t.Errorf("%+v", report)
	}
	if report.Count != 2 || report.Ran[0].Number != report.Stopped[0] || report.Ran[0].Result.Verdict != notebook.Cancelled ||
		report.Ran[1].Number != before.Number || report.Ran[1].Result.Verdict != notebook.OK || report.Ran[1].Title != "Sums" {
		t.Errorf("what ran: %+v", report.Ran)
	}

	check := func(h *daemontest.Hand) {
		t.Helper()
		for _, title := range []string{"Sums", "Wants", "Mixed", "Long", "Copied"} {
			h.Decides(title, 1, "ask")
			h.Refused(title, 1, notebook.CodeRefused, "phone is in quarantine here")
		}
		h.Decides("Piped", 1, "granted")
		if e, err := h.Client.Why(ctx, long.Page, long.ID); err != nil || !strings.Contains(e.Fence.Reason, "phone is in quarantine here") {
			t.Errorf("why: %+v %v", e, err)
		}
		for _, d := range h.Devices() {
			if d.Quarantined.IsZero() == (d.Name == "phone") {
				t.Errorf("%+v", d)
			}
		}
	}
	check(laptop)
	stop()
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	check(laptop)
	laptop.Runs("Piped", 1)
	phone.Stands("Sums", 1, "local")
	phone.Runs("Sums", 1)
	for _, d := range phone.Devices() {
		if !d.Quarantined.IsZero() {
			t.Errorf("the quarantine came to the phone: %+v", d)
		}
	}
	// What comes from it later is held too, and no policy lets it out.
	phone.Types("Later", sums)
	w.Settle()
	policy(t, laptop, "[device."+phone.ID.String()+"]\nlua = \"strict\"\n")
	laptop.Decides("Later", 1, "ask")
	// A person who has read it may let it run.
	laptop.Approves("Later", 1, notebook.ScopeOnce)
	if run := laptop.Runs("Later", 1); run.Result.Rung != notebook.Strict {
		t.Errorf("%+v", run)
	}
	laptop.Refused("Later", 1, notebook.CodeRefused, "in quarantine")

	// The release takes a person, and revives nothing.
	daemontest.Refusal(t, laptop.Client.Release(ctx, phone.ID, notebook.Presence{}), notebook.CodeRefused, "this needs a person")
	daemontest.Refusal(t, laptop.Client.Release(ctx, phone.ID, laptop.Presence("release laptop")), notebook.CodeRefused, "this needs a person")
	laptop.Decides("Sums", 1, "ask")
	if err := laptop.Client.Release(ctx, phone.ID, laptop.Presence("release phone")); err != nil {
		t.Fatal(err)
	}
	laptop.Decides("Sums", 1, "strict")
	laptop.Runs("Sums", 1)
	laptop.Refused("Wants", 1, notebook.CodeRefused, "runs strict only")
	if a := laptop.Fence("Wants", 1).Approved; len(a) != 1 || !strings.Contains(a[0].Void, "quarantine") {
		t.Errorf("%+v", a)
	}
	daemontest.Refusal(t, laptop.Client.Release(ctx, phone.ID, laptop.Presence("release phone")), notebook.CodeNotFound, "in no quarantine")

	_, err = laptop.Client.Quarantine(ctx, laptop.ID)
	daemontest.Refusal(t, err, notebook.CodeInvalid, "cannot be put into quarantine by itself")
	_, err = laptop.Client.Quarantine(ctx, notebook.DeviceID{7})
	daemontest.Refusal(t, err, notebook.CodeNotFound, "there is no device")
	// One that was removed can be, for its text is still here.
	laptop.Removes("phone")
	if _, err := laptop.Client.Quarantine(ctx, phone.ID); err != nil {
		t.Error(err)
	}
	laptop.Decides("Sums", 1, "ask")
}
