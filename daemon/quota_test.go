package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/store"
)

func setQuota(t *testing.T, h *daemontest.Hand, of string, change notebook.Quota) error {
	t.Helper()
	for _, d := range h.Devices() {
		if d.Name == of {
			_, err := h.Client.SetQuota(context.Background(), d.ID, change, h.Presence("keep more of "+of))
			return err
		}
	}
	t.Fatalf("there is no device %s", of)
	return nil
}

func paused(h *daemontest.Hand, of string) string {
	for _, d := range h.Devices() {
		if d.Name == of {
			return d.Paused
		}
	}
	return ""
}

// TestI1AFloodingMemberPauses: what there is no room for waits, and what rests on
// it, here and on whoever has another quota. Nothing is lost, and all are equal
// when there is room.
func TestI1AFloodingMemberPauses(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet")
	w.Pair("laptop", "phone")
	w.Pair("phone", "tablet") // what comes to the laptop from the tablet comes through the phone
	laptop, phone, tablet := w.As("laptop"), w.As("phone"), w.As("tablet")
	if err := setQuota(t, laptop, "tablet", notebook.Quota{Bytes: 20_000}); err != nil {
		t.Fatal(err)
	}
	told := laptop.Watches()
	for i := range 12 {
		tablet.Types(fmt.Sprint("Flood ", i), strings.Repeat("water ", 1000))
	}
	phone.Sees("Flood 11", strings.Repeat("water ", 1000))
	phone.Types("Rests on it", "the phone has seen the flood\n")
	w.Eventually("the tablet is paused on the laptop", func() bool { return paused(laptop, "tablet") != "" })
	why := paused(laptop, "tablet")
	if !strings.Contains(why, "of the 20000 bytes") || !strings.Contains(why, "noted device quota tablet --bytes") {
		t.Errorf("the person is told %q", why)
	}
	if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "tablet is paused here: "+why) {
		t.Errorf("status says %q", notes)
	}
	told.Has("note", "tablet is paused here")
	if paused(phone, "tablet") != "" {
		t.Error("the quota of the laptop counts on the phone")
	}

	// The person goes on meanwhile, also after a restart, which learns of it again.
	laptop.Types("Mine", "my own work\n")
	phone.Sees("Mine", "my own work\n")
	w.Device("laptop").Restarts()
	laptop = w.As("laptop")
	w.Eventually("the tablet is paused again", func() bool { return paused(laptop, "tablet") != "" })
	laptop.Types("Mine", "and more\n")
	phone.Sees("Mine", "and more\n")
	pages, err := laptop.Client.Pages(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.Title == "Flood 11" || p.Title == "Rests on it" {
			t.Errorf("%s came, and there is no room for it", p.Title)
		}
	}

	// Raising takes the person, and all of it comes.
	device := w.Device("tablet").ID
	if _, err := laptop.Client.SetQuota(context.Background(), device, notebook.Quota{Bytes: 1 << 30}, notebook.Presence{Typed: "no"}); err == nil {
		t.Fatal("a quota is raised without presence")
	}
	if paused(laptop, "tablet") == "" {
		t.Fatal("a refused raise lets it go on")
	}
	if err := setQuota(t, laptop, "tablet", notebook.Quota{Bytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	laptop.Sees("Rests on it", "the phone has seen the flood\n")
	if why := paused(laptop, "tablet"); why != "" {
		t.Errorf("it is paused still: %s", why)
	}
	if err := setQuota(t, laptop, "laptop", notebook.Quota{Bytes: 1}); err == nil {
		t.Error("this device's own log has a quota")
	}
}

// TestQuotasOfEachKind: pages, epochs and actors pause as bytes do.
func TestQuotasOfEachKind(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  notebook.Quota
		floods func(w *daemontest.World)
		why    string
		raised notebook.Quota
	}{
		{"pages", notebook.Quota{Pages: 2}, func(w *daemontest.World) {
			for i := range 4 {
				w.As("phone").Types(fmt.Sprint("Page ", i), "text\n")
			}
		}, "began 2 pages", notebook.Quota{Pages: 5}},
		{"epochs", notebook.Quota{Epochs: 2}, func(w *daemontest.World) {
			for i := range 3 {
				w.As("phone").Types("Page 0", fmt.Sprintln("line", i))
				w.Device("phone").Restarts()
			}
			w.As("phone").Types("Page 0", "last\n")
		}, "opened its store 2 times", notebook.Quota{Epochs: 9}},
		{"actors", notebook.Quota{Actors: 1}, func(w *daemontest.World) {
			w.As("phone").Types("Page 0", "text\n")
			scribe := w.Device("phone").Agent("scribe")
			if _, err := scribe.Client.Append(context.Background(), scribe.Page("Page 0").ID, "by the scribe\n", ""); err != nil {
				t.Fatal(err)
			}
		}, "through 1 doors", notebook.Quota{Actors: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := daemontest.Loopback(t, "laptop", "phone")
			w.Pair("laptop", "phone")
			if err := setQuota(t, w.As("laptop"), "phone", c.quota); err != nil {
				t.Fatal(err)
			}
			c.floods(w)
			w.Eventually("the phone is paused", func() bool { return strings.Contains(paused(w.As("laptop"), "phone"), c.why) })
			if err := setQuota(t, w.As("laptop"), "phone", c.raised); err != nil {
				t.Fatal(err)
			}
			w.Settle()
		})
	}
}

// bodies are how many texts and results of a page a device keeps.
func bodies(t *testing.T, d *daemontest.Device, id notebook.PageID) (n int) {
	t.Helper()
	err := d.Reads(func(tx *store.Tx) error {
		for s, err := range tx.PageEntries(id) {
			if err != nil {
				return err
			}
			if h, err := notebook.DecodeHeader(s.Entry.Header); err != nil {
				return err
			} else if h.Kind != notebook.KindSet && s.Entry.Body != nil {
				n++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPurgeReachesEveryDevice: also one that is paired afterwards, by a member
// that did not purge, and before it knows the one that did.
func TestPurgeReachesEveryDevice(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "tablet", "desktop")
	laptop := w.As("laptop")
	laptop.Types("Secret", "the secret\n```lua\nreturn 1\n```\n")
	laptop.Runs("Secret", 1)
	laptop.Types("Before", "a page before\n")
	id := laptop.Page("Secret").ID
	w.Pair("laptop", "phone")
	phone := w.As("phone")
	phone.Types("Secret", "and more of it\n")
	w.Settle()
	if _, err := phone.Client.Purge(context.Background(), "Secret", phone.Presence("purge Secret")); err == nil {
		t.Fatal("a live page is purged")
	}
	if err := phone.Client.Delete(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := phone.Client.Purge(context.Background(), "Secret", notebook.Presence{Typed: "no"}); err == nil {
		t.Fatal("a page is purged without presence")
	}
	if _, err := phone.Client.Purge(context.Background(), "Secret", phone.Presence("purge Secret")); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	w.Pair("laptop", "tablet")
	w.Pair("tablet", "desktop")
	w.As("desktop").Types("Secret", "another page of that title\n")
	w.As("laptop").Sees("Secret", "another page of that title\n")
	if p := w.As("laptop").Page("Secret"); p.ID == id {
		t.Error("the id of a purged page is used again")
	}
	w.Settle()
	w.Device("tablet").Restarts()
	w.Settle()
	names := []string{"laptop", "phone", "tablet", "desktop"}
	w.Same(names...)
	for _, name := range names {
		d := w.Device(name)
		d.Stops()
		if n := bodies(t, d, id); n != 0 {
			t.Errorf("%s keeps %d bodies of the purged page", name, n)
		}
	}
}

// TestRebuildOfADamagedPage: its shadow was damaged on the disk.
func TestRebuildOfADamagedPage(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop := w.As("laptop")
	laptop.Types("Sums", sums)
	laptop.Types("Plan", "a plan\n")
	id := laptop.Page("Sums").ID
	d := w.Device("laptop")
	d.Stops()
	db, err := store.Open(d.Home.Database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *store.Tx) error {
		r, err := tx.Get(store.Shadows, id[:])
		if err != nil {
			return err
		}
		return tx.Put(store.Shadows, id[:], r[:len(r)/2])
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	d.Starts()
	laptop = w.As("laptop")
	if _, err := laptop.Client.Page(context.Background(), "Sums"); err == nil || !strings.Contains(fmt.Sprintf("%+v", err), "cannot be opened") {
		t.Fatalf("a damaged page is shown: %v", err)
	}
	if _, err := laptop.Client.Rebuild(context.Background(), "Sums"); err != nil {
		t.Fatal(err)
	}
	if p := laptop.Page("Sums"); p.Body != sums || !slices.ContainsFunc(p.Fences, func(f notebook.FenceInfo) bool { return f.Standing == "local" }) {
		t.Errorf("the page that was made anew is %q with %+v", p.Body, p.Fences)
	}
	laptop.Types("Sums", sums+"more\n")
	if _, err := laptop.Client.Rebuild(context.Background(), "Nowhere"); err == nil {
		t.Error("a page that is not there is made anew")
	}
}

// TestTooMuchWorkWaitsForTheMinute: a device that made more work than it may
// goes on by itself when its minute is over, and nobody else waits for it.
func TestTooMuchWorkWaitsForTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone", "tablet")
		w.Pair("laptop", "phone", "tablet")
		laptop := w.As("laptop")
		w.Device("laptop").Daemon.Tire(w.Device("phone").ID)
		w.As("phone").Types("Busy", "from the phone\n")
		w.As("tablet").Types("Calm", "from the tablet\n")
		laptop.Sees("Calm", "from the tablet\n")
		if why := paused(laptop, "phone"); !strings.Contains(why, "goes on by itself at") {
			t.Errorf("the phone is paused for %q", why)
		}
		time.Sleep(time.Minute)
		laptop.Sees("Busy", "from the phone\n")
		w.Settle()
		if why := paused(laptop, "phone"); why != "" {
			t.Errorf("it is paused still: %s", why)
		}
	})
}
