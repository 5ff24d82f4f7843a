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

// TestI13RemovedDevice: it reads nothing more, is taken nothing more from, and
// does not come back by itself.
func TestI13RemovedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := daemontest.Bubble(t, "laptop", "phone", "tablet")
		w.Pair("laptop", "phone", "tablet")
		laptop, phone, tablet := w.As("laptop"), w.As("phone"), w.As("tablet")
		tablet.Types("Theirs", sums)
		w.Settle()
		laptop.Stands("Theirs", 1, "device:tablet")

		told := phone.Watches()
		laptop.Removes("tablet")
		for _, h := range []*daemontest.Hand{laptop, phone} {
			w.Eventually(h.Name+" has the removal", func() bool { return !h.Daemon.Member(w.Device("tablet").ID) })
		}
		told.Has("device", "tablet was removed from the notebook")
		laptop.Types("Secret", "for laptop and phone\n")
		phone.Sees("Secret", "for laptop and phone\n")
		tablet.Types("Late", "from the tablet\n")
		tablet.Types("Theirs", "changed by the tablet\n")
		time.Sleep(time.Hour) // it tries and tries
		if tablet.Body("Secret") != "" {
			t.Error("the removed device reads on")
		}
		for _, h := range []*daemontest.Hand{laptop, phone} {
			if h.Body("Late") != "" || h.Body("Theirs") != sums {
				t.Errorf("%s takes on from the removed device: %q %q", h.Name, h.Body("Late"), h.Body("Theirs"))
			}
			for _, d := range h.Devices() {
				if d.Name == "tablet" && (d.Connected || !d.Removed) {
					t.Errorf("%s shows the removed device as %+v", h.Name, d)
				}
			}
		}
		// What it wrote before stays, under its name, and so after restarts.
		w.Device("laptop").Restarts()
		w.Device("phone").Restarts()
		w.As("phone").Types("Secret", "still for laptop and phone\n")
		w.As("laptop").Sees("Secret", "still for laptop and phone\n")
		w.As("laptop").Stands("Theirs", 1, "device:tablet")
		if w.As("tablet").Body("Secret") != "" {
			t.Error("the removed device reads on after a restart")
		}
		w.Settle()
		w.Same("laptop", "phone")
	})
}

// TestI13RemovedKeysAreRefused: what a removed device signs is not taken from
// anybody, also not its own return.
func TestI13RemovedKeysAreRefused(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop := w.As("laptop")
	before := thief.Types(plan, "before it was removed\n")
	if err := thief.Gives(w.Device("laptop"), before); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	laptop.Removes("tablet")
	w.Settle()
	late := thief.Types(plan, "after it was removed\n")
	for _, name := range []string{"laptop", "phone"} {
		entries := w.As(name).Status().Entries
		if err := thief.Gives(w.Device(name), late); err != nil {
			t.Errorf("%s: who relays it does nothing wrong: %v", name, err)
		}
		h := w.As(name)
		if h.Body("Plan") != "before it was removed\n" || h.Status().Entries != entries {
			t.Errorf("%s took %q", name, h.Body("Plan"))
		}
		if notes := strings.Join(h.Status().Notes, "\n"); !strings.Contains(notes, "was removed from the notebook") {
			t.Errorf("%s: the person is told %q", name, notes)
		}
	}
	goesOn(t, w)
	w.Same("laptop", "phone")
	err := w.As("laptop").Client.RemoveDevice(context.Background(), thief.ID, laptop.Presence("remove tablet"))
	daemontest.Refusal(t, err, notebook.CodeNotFound, "is not in the notebook")
	err = w.As("laptop").Client.RemoveDevice(context.Background(), w.Device("laptop").ID, laptop.Presence("remove laptop"))
	daemontest.Refusal(t, err, notebook.CodeInvalid, "does not remove itself")
	err = w.As("laptop").Client.RemoveDevice(context.Background(), w.Device("phone").ID, notebook.Presence{Typed: "yes"})
	daemontest.Refusal(t, err, notebook.CodeRefused, "this needs a person")
	goesOn(t, w)
}

// TestI13RemovalsMeetLateWriting: the phone took something from the tablet while
// it did not know of the removal. When it does, laptop and phone agree.
func TestI13RemovalsMeetLateWriting(t *testing.T) {
	for _, writes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := daemontest.Bubble(t, "laptop", "phone", "tablet")
			w.Pair("phone", "laptop", "tablet")
			w.Cut("laptop", "phone")
			w.As("laptop").Removes("tablet")
			w.As("tablet").Types("Late", "from the tablet\n")
			w.As("phone").Sees("Late", "from the tablet\n")
			if writes {
				w.As("phone").Types("Late", "from the tablet, and the phone\n")
			}
			w.Heal("laptop", "phone")
			w.Settle()
			if w.As("phone").Daemon.Member(w.Device("tablet").ID) {
				t.Error("the phone has not heard of the removal")
			}
			w.As("tablet").Types("Later", "from the tablet\n")
			time.Sleep(time.Hour)
			for _, name := range []string{"laptop", "phone"} {
				if w.As(name).Body("Later") != "" {
					t.Errorf("%s takes on from the removed device", name)
				}
			}
			w.Same("laptop", "phone")
		})
	}
}

// TestI13RemovalCutsOff: when the removal returns, the device is off.
func TestI13RemovalCutsOff(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	phone := func() notebook.DeviceInfo {
		for _, d := range w.As("laptop").Devices() {
			if d.Name == "phone" {
				return d
			}
		}
		return notebook.DeviceInfo{}
	}
	if d := phone(); !d.Connected || d.Removed {
		t.Fatalf("%+v", d)
	}
	w.As("laptop").Removes("phone")
	if d := phone(); d.Connected || !d.Removed || len(d.Addresses) > 0 {
		t.Errorf("%+v", d)
	}
}

// TestI13ComingBackTakesAPairing: by the same hands as the first time.
func TestI13ComingBackTakesAPairing(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	w.As("laptop").Types("Plan", "one\n")
	w.Settle()
	w.As("laptop").Removes("phone")
	w.As("laptop").Types("Plan", "two\n")
	w.Device("phone").Restarts()
	if body := w.As("phone").Body("Plan"); body != "one\n" {
		t.Errorf("the phone reads %q", body)
	}
	// Its home has pages, so it does not join with it, and says so on both sides.
	err := w.TryPair("laptop", "phone")
	if err == nil || !strings.Contains(err.Error(), "has pages") {
		t.Errorf("pairing a home with pages: %v", err)
	}
	if body := w.As("phone").Body("Plan"); body != "one\n" {
		t.Errorf("the phone reads %q", body)
	}
	w.Add("new phone")
	w.Pair("laptop", "new phone")
	w.As("new phone").Sees("Plan", "two\n")
}
