package daemon_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// lower reports whether the first of two entries for one place stands.
func lower(a, b notebook.Entry) bool {
	x, y := a.Hash(), b.Hash()
	return bytes.Compare(x[:], y[:]) < 0
}

// twoFaced seals two texts for one place, of which the first stands, or the
// second.
func twoFaced(thief *daemontest.Thief, page notebook.PageID, first bool, one, two string) (a, b notebook.Entry) {
	for i := 0; ; i++ {
		h := thief.Next(page)
		h.Time = int64(i)
		a = thief.Seals(h, thief.Change(page, thief.Self(), one))
		b = thief.Seals(thief.Next(page), thief.Change(page, thief.Self(), two))
		if lower(a, b) == first {
			return a, b
		}
	}
}

// frozen fails the test unless the device is shown as one that signed two histories.
func frozen(t *testing.T, h *daemontest.Hand, id notebook.DeviceID, want bool) {
	t.Helper()
	i := slices.IndexFunc(h.Devices(), func(d notebook.DeviceInfo) bool { return d.ID == id })
	if got := strings.Contains(h.Devices()[i].Problem, "two histories"); got != want {
		t.Errorf("%s: two histories: %v, shown is %q", h.Name, got, h.Devices()[i].Problem)
	}
}

// TestI1TwoHistories: of two entries for one place the one with the lower hash
// stands, whichever came first; nothing new is taken of who signed them, on both
// devices, and everybody else goes on.
func TestI1TwoHistories(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("first stands ", first), func(t *testing.T) {
			w, thief, plan := robbed(t)
			laptop := w.As("laptop")
			told := laptop.Watches()
			one, two := twoFaced(thief, plan, first, "one\n", "two\n")
			stands := map[bool]string{true: "one\n", false: "two\n"}[first]
			if err := thief.Gives(w.Device("laptop"), one); err != nil {
				t.Fatal(err)
			}
			laptop.Sees("Plan", "one\n")
			if err := thief.Gives(w.Device("laptop"), two); err != nil {
				t.Error(err)
			}
			told.Has("note", "signed two entries")
			laptop.Sees("Plan", stands)
			w.As("phone").Sees("Plan", stands)
			frozen(t, laptop, thief.ID, true)
			if s := laptop.Status(); s.Void != 1 {
				t.Errorf("%d entries are void", s.Void)
			}
			before := laptop.Status().Entries
			thief.Keeps(one)
			if err := thief.Gives(w.Device("laptop"), thief.Seals(thief.Next(plan), []byte("later"))); err != nil || laptop.Status().Entries != before {
				t.Errorf("%d entries after %d: %v", laptop.Status().Entries, before, err)
			}
			w.Device("laptop").Restarts()
			laptop = w.As("laptop")
			if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "two histories") {
				t.Errorf("after a restart the person is told %q", notes)
			}
			laptop.Sees("Plan", stands)
			goesOn(t, w)
			w.Same("laptop", "phone")
		})
	}
}

// TestI1TwoHistoriesForTwoDevices: the tablet tells laptop and phone two
// different things for one place. Both stop listening to it, and go on with
// each other; who had built on the side that does not stand has its own words
// written again, and they are no more the person's fences than before.
func TestI1TwoHistoriesForTwoDevices(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("the laptop's side stands ", first), func(t *testing.T) {
			w, thief, plan := robbed(t)
			one, two := twoFaced(thief, plan, first, sums+"one\n", sums+"two\n")
			laptop, phone := w.Device("laptop"), w.Device("phone")
			// Each hears its side, and types on top of it, before they hear of the other's.
			phone.Stops()
			if err := thief.Gives(laptop, one); err != nil {
				t.Fatal(err)
			}
			w.As("laptop").Types("Plan", sums+"one\nand the laptop's\n\n```lua\nreturn 'laptop'\n```\n")
			w.As("laptop").Types("Mine", "of the laptop alone\n")
			laptop.Stops()
			phone.Starts()
			if err := thief.Gives(phone, two); err != nil {
				t.Fatal(err)
			}
			w.As("phone").Types("Plan", sums+"two\nand the phone's\n\n```lua\nreturn 'phone'\n```\n")
			w.As("phone").Types("Yours", "of the phone alone\n")
			laptop.Starts()
			w.Settle()
			w.Eventually("what is lost is written again", func() bool {
				for _, name := range []string{"laptop", "phone"} {
					body := w.As(name).Body("Plan")
					for _, text := range []string{"and the laptop's\n", "and the phone's\n", "return 'laptop'", "return 'phone'"} {
						if strings.Count(body, text) != 1 {
							return false
						}
					}
				}
				return true
			})
			w.Settle()
			winner, loser := "laptop", "phone"
			if !first {
				winner, loser = loser, winner
			}
			for _, name := range []string{"laptop", "phone"} {
				h := w.As(name)
				body := h.Body("Plan")
				if got := strings.Contains(body, "one\n"); got != first {
					t.Errorf("%s: one stands %v: %q", name, got, body)
				}
				if got := strings.Contains(body, "two\n"); got == first {
					t.Errorf("%s: two stands %v: %q", name, got, body)
				}
				h.Sees("Mine", "of the laptop alone\n")
				h.Sees("Yours", "of the phone alone\n")
				frozen(t, h, thief.ID, true)
			}
			if notes := strings.Join(w.As(loser).Status().Notes, "\n"); !strings.Contains(notes, "written again") {
				t.Errorf("%s tells %q", loser, notes)
			}
			if notes := strings.Join(w.As(winner).Status().Notes, "\n"); strings.Contains(notes, "written again") {
				t.Errorf("%s, which lost nothing, tells %q", winner, notes)
			}
			// The fence is still its author's text; it is no own fence of anybody.
			fence := func(name, code string) notebook.FenceInfo {
				for _, f := range w.As(name).Page("Plan").Fences {
					if strings.Contains(f.Code, code) {
						return f
					}
				}
				t.Fatalf("%s: no fence has %s", name, code)
				return notebook.FenceInfo{}
			}
			if f := fence(loser, loser); f.Standing == "local" {
				t.Errorf("what was written again stands %q", f.Standing)
			}
			if f := fence(winner, winner); f.Standing != "local" {
				t.Errorf("what was never lost stands %q", f.Standing)
			}
			goesOn(t, w)
			w.Same("laptop", "phone")
		})
	}
}

// TestI1TwoHistoriesAtOnce is the same while everybody is connected.
func TestI1TwoHistoriesAtOnce(t *testing.T) {
	w, thief, plan := robbed(t)
	one, two := twoFaced(thief, plan, true, "one\n", "two\n")
	given := make(chan error, 2)
	go func() { given <- thief.Gives(w.Device("laptop"), one) }()
	go func() { given <- thief.Gives(w.Device("phone"), two) }()
	for range 2 {
		if err := within(t, given); err != nil {
			t.Error(err)
		}
	}
	goesOn(t, w)
	w.As("laptop").Sees("Plan", "one\n")
	w.As("phone").Sees("Plan", "one\n")
	w.Same("laptop", "phone")
}

// TestI1ALostHistoryTakesItsPages: a page that the history that does not stand
// had made is gone; what others had written in it is written again, under a
// title that says so.
func TestI1ALostHistoryTakesItsPages(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop := w.As("laptop")
	title, err := notebook.EncodeSet(&notebook.Set{Register: notebook.RegisterTitle, Text: "Gone"})
	if err != nil {
		t.Fatal(err)
	}
	gone := notebook.PageID{0xaa}
	var one, two notebook.Entry
	for i := 0; ; i++ {
		h := thief.Next(gone)
		h.Kind, h.Time = notebook.KindSet, int64(i)
		one, two = thief.Seals(h, title), thief.Seals(thief.Next(plan), thief.Change(plan, thief.Self(), "two\n"))
		if !lower(one, two) {
			break
		}
	}
	if err := thief.Gives(w.Device("laptop"), one); err != nil {
		t.Fatal(err)
	}
	thief.Keeps(one)
	if err := thief.Gives(w.Device("laptop"), thief.Types(gone, "theirs\n")); err != nil {
		t.Fatal(err)
	}
	laptop.Sees("Gone", "theirs\n")
	laptop.Types("Gone", "theirs\nand mine\n")
	if err := thief.Gives(w.Device("laptop"), two); err != nil {
		t.Fatal(err)
	}
	laptop.Sees("Plan", "two\n")
	if body := laptop.Body("Gone"); body != "" {
		t.Errorf("the page still reads %q", body)
	}
	again := "Written again " + gone.String()[:8]
	laptop.Sees(again, "and mine\n")
	w.As("phone").Sees(again, "and mine\n")
	goesOn(t, w)
	w.Same("laptop", "phone")
}

// TestI12ThreeSides: three devices that were given three sides, each of which
// typed on its own, are equal once they have met.
func TestI12ThreeSides(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone", "desk", "tablet")
	w.Pair("laptop", "phone", "desk", "tablet")
	w.As("laptop").Types("Plan", "plan\n")
	w.Settle()
	thief, plan := w.Device("tablet").Stolen(), w.As("laptop").Page("Plan").ID
	names := []string{"laptop", "phone", "desk"}
	for _, name := range names {
		w.Device(name).Stops()
	}
	for _, name := range names {
		d := w.Device(name)
		d.Starts()
		side := thief.Seals(thief.Next(plan), thief.Change(plan, thief.Self(), "plan\nfor "+name+"\n"))
		if err := thief.Gives(d, side); err != nil {
			t.Fatal(err)
		}
		w.As(name).Sees("Plan", "plan\nfor "+name+"\n")
		w.As(name).Types("Plan", "plan\nfor "+name+"\nof "+name+"\n")
		d.Stops()
	}
	for _, name := range names {
		w.Device(name).Starts()
	}
	w.Settle()
	w.Eventually("everybody has everybody's text once", func() bool {
		for _, at := range names {
			body := w.As(at).Body("Plan")
			for _, name := range names {
				if strings.Count(body, "of "+name+"\n") != 1 {
					return false
				}
			}
			if strings.Count(body, "for ") != 1 {
				return false
			}
		}
		return true
	})
	goesOn(t, w)
	w.Settle()
	w.Same(names...)
}

// TestI12HistoriesOfTheRoster: of two names that the tablet gave itself in one
// place everybody reads the one that stands.
func TestI12HistoriesOfTheRoster(t *testing.T) {
	w, thief, _ := robbed(t)
	laptop := w.As("laptop")
	seal := func(name string, at int64) notebook.Entry {
		body, err := notebook.EncodeRosterChange(&notebook.RosterChange{Act: notebook.RosterRename, Device: thief.ID, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		h := thief.Next(notebook.PageID{})
		h.Kind, h.Time = notebook.KindRoster, at
		return thief.Seals(h, body)
	}
	one, two := seal("one", 0), seal("two", 0)
	for i := int64(1); lower(one, two); i++ {
		one = seal("one", i)
	}
	if err := thief.Gives(w.Device("laptop"), one); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	if !slices.Contains(names(laptop), "one") {
		t.Fatalf("the devices are %v", names(laptop))
	}
	if err := thief.Gives(w.Device("phone"), two); err != nil {
		t.Fatal(err)
	}
	goesOn(t, w)
	for _, h := range []*daemontest.Hand{laptop, w.As("phone")} {
		if got := names(h); !slices.Contains(got, "two") || slices.Contains(got, "one") {
			t.Errorf("%s: the devices are %v", h.Name, got)
		}
	}
	w.Same("laptop", "phone")
}

// TestI1HistoriesWaitForCalm: after the log was overturned the next history of a
// liar waits, and what rests on it; then it is taken without being sent again.
func TestI1HistoriesWaitForCalm(t *testing.T) {
	w, thief, plan := robbed(t)
	w.Device("phone").Stops()
	laptop := w.As("laptop")
	one, two := twoFaced(thief, plan, false, "one\n", "two\n")
	if err := thief.Gives(w.Device("laptop"), one); err != nil {
		t.Fatal(err)
	}
	w.Device("laptop").Daemon.WaitForCalm(time.Second)
	if err := thief.Gives(w.Device("laptop"), two); err != nil {
		t.Error(err)
	}
	laptop.Types("Plan", "one\nand mine\n")
	if body := laptop.Body("Plan"); body != "one\nand mine\n" {
		t.Errorf("before it is calm the page reads %q", body)
	}
	laptop.Sees("Plan", "two\nand mine\n")
	frozen(t, laptop, thief.ID, true)
	w.Device("phone").Starts()
	goesOn(t, w)
	w.Same("laptop", "phone")
}

// TestI12TwoDevicesAdded: the tablet tells the laptop that it took ann in, and
// the phone that it took bob in. One of them is in the notebook in the end, and
// what laptop and phone wrote on what either said is there once.
func TestI12TwoDevicesAdded(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("ann is in ", first), func(t *testing.T) {
			w, thief, plan := robbed(t)
			laptop, phone := w.Device("laptop"), w.Device("phone")
			ann, bob := thief.Invents("ann"), thief.Invents("bob")
			seal := func(x *daemontest.Thief, name string, at int64) notebook.Entry {
				h := thief.Next(notebook.PageID{})
				h.Kind, h.Time = notebook.KindRoster, at
				return thief.Seals(h, thief.Adds(x, name))
			}
			one, two := seal(ann, "ann", 0), seal(bob, "bob", 0)
			for i := int64(1); lower(one, two) != first; i++ {
				one = seal(ann, "ann", i)
			}
			phone.Stops()
			for i, side := range []struct {
				at, other *daemontest.Device
				added     *daemontest.Thief
				entry     notebook.Entry
				name      string
			}{{laptop, phone, ann, one, "ann"}, {phone, laptop, bob, two, "bob"}} {
				if i > 0 {
					side.other.Stops()
					side.at.Starts()
				}
				h := w.As(side.at.Name)
				if err := thief.Gives(side.at, side.entry); err != nil {
					t.Fatal(err)
				}
				side.added.Keeps(side.entry)
				if err := side.added.Gives(side.at, side.added.Types(plan, sums+"of "+side.name+"\n")); err != nil {
					t.Fatal(err)
				}
				h.Sees("Plan", sums+"of "+side.name+"\n")
				if !slices.Contains(names(h), side.name) {
					t.Errorf("%s knows %v", h.Name, names(h))
				}
				h.Types("Plan", sums+"of "+side.name+"\nand of the "+h.Name+"\n")
			}
			laptop.Starts()
			w.Eventually("what honest devices wrote is there once", func() bool {
				for _, at := range []string{"laptop", "phone"} {
					body := w.As(at).Body("Plan")
					if strings.Count(body, "and of the laptop\n") != 1 || strings.Count(body, "and of the phone\n") != 1 || strings.Count(body, "\nof ") != 1 {
						return false
					}
				}
				return true
			})
			goesOn(t, w)
			in, out := "ann", "bob"
			if !first {
				in, out = out, in
			}
			for _, at := range []string{"laptop", "phone"} {
				h := w.As(at)
				if got := names(h); !slices.Contains(got, in) || slices.Contains(got, out) {
					t.Errorf("%s knows %v", at, got)
				}
				if body := h.Body("Plan"); !strings.Contains(body, "of "+in+"\n") || strings.Contains(body, "of "+out+"\n") {
					t.Errorf("%s reads %q", at, body)
				}
			}
			w.Same("laptop", "phone")
		})
	}
}

// TestI12AContinuedEpochFalls: the tablet signs another history of an epoch that
// it had gone on from. With the lower hash, all that came after falls with it,
// on every device.
func TestI12AContinuedEpochFalls(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("the first stands ", first), func(t *testing.T) {
			w, thief, plan := robbed(t)
			laptop := w.As("laptop")
			one, two := twoFaced(thief, plan, first, sums+"one\n", sums+"two\n")
			thief.Keeps(one)
			thief.Epoch = notebook.Epoch{0xbe}
			next := thief.Types(plan, sums+"one\nand next\n")
			thief.Epoch = notebook.Epoch{0xc0}
			last := thief.Types(plan, sums+"one\nand next\nand last\n")
			if err := thief.Gives(w.Device("laptop"), one, next, last); err != nil {
				t.Fatal(err)
			}
			w.As("phone").Sees("Plan", sums+"one\nand next\nand last\n")
			w.As("phone").Types("Plan", sums+"one\nand next\nand last\nof the phone\n")
			laptop.Sees("Plan", sums+"one\nand next\nand last\nof the phone\n")
			if err := thief.Gives(w.Device("laptop"), two); err != nil {
				t.Fatal(err)
			}
			want, void := sums+"one\nand next\nand last\nof the phone\n", 1
			if !first {
				want, void = sums+"of the phone\ntwo\n", 4 // one, next, last, and the phone's
				if notes := strings.Join(laptop.Status().Notes, "\n"); !strings.Contains(notes, "1 entry of phone rested on a history") {
					t.Errorf("the laptop's person is told %q", notes)
				}
			}
			for _, at := range []string{"laptop", "phone"} {
				w.As(at).Sees("Plan", want)
				w.Eventually(fmt.Sprint(void, " entries are void"), func() bool { return w.As(at).Status().Void == void })
				frozen(t, w.As(at), thief.ID, true)
			}
			goesOn(t, w)
			w.Same("laptop", "phone")
		})
	}
}

// TestI1ACopyThatIsAhead: somebody with the laptop's key goes on in the epoch in
// which the laptop writes, and the phone passes that on. The person is told, who
// passed it on is not blamed, and the laptop goes on in another epoch, so that
// its device does not contradict itself.
func TestI1ACopyThatIsAhead(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	w.Pair("laptop", "phone")
	w.As("laptop").Types("Plan", "plan\n")
	w.Settle()
	plan, laptop, phone := w.As("laptop").Page("Plan").ID, w.Device("laptop"), w.Device("phone")
	clone := laptop.Stolen()
	laptop.Starts()
	w.As("laptop").Types("Plan", "plan\nhere\n")
	w.As("phone").Sees("Plan", "plan\nhere\n")
	phone.Stops()
	mine := newestOf(t, phone, plan)
	phone.Starts()
	h, err := notebook.DecodeHeader(mine.Header)
	if err != nil {
		t.Fatal(err)
	}
	clone.Epoch = h.Epoch
	clone.Keeps(mine)
	ahead := clone.Types(plan, "plan\nhere\nahead\n")
	if err := clone.Gives(phone, ahead); err != nil {
		t.Fatal(err)
	}
	w.As("laptop").Sees("Plan", "plan\nhere\nahead\n")
	if notes := strings.Join(w.As("laptop").Status().Notes, "\n"); !strings.Contains(notes, "another program writes with this device's key") {
		t.Errorf("the person is told %q", notes)
	}
	w.As("laptop").Types("Plan", "plan\nhere\nahead\nand on\n")
	// The copy goes on as well, in the epoch that it took.
	if err := clone.Gives(phone, clone.Types(plan, "plan\nhere\nahead\nagain\n")); err != nil {
		t.Fatal(err)
	}
	goesOn(t, w)
	for _, at := range []string{"laptop", "phone"} {
		if body := w.As(at).Body("Plan"); !strings.Contains(body, "and on\n") || !strings.Contains(body, "again\n") {
			t.Errorf("%s reads %q", at, body)
		}
		frozen(t, w.As(at), laptop.ID, false)
	}
	w.Same("laptop", "phone")
}
