package daemon_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/trust"
)

// robbed is a laptop and a phone that share a notebook with a tablet, which a
// thief has. Plan is a page that all of them know.
func robbed(t *testing.T) (w *daemontest.World, thief *daemontest.Thief, plan notebook.PageID) {
	t.Helper()
	w = daemontest.Loopback(t, "laptop", "phone", "tablet")
	w.Pair("laptop", "phone", "tablet")
	w.As("laptop").Types("Plan", sums)
	w.Settle()
	return w, w.Device("tablet").Stolen(), w.As("laptop").Page("Plan").ID
}

// goesOn fails the test unless laptop and phone still share what they type.
func goesOn(t *testing.T, w *daemontest.World) {
	t.Helper()
	laptop, phone := w.As("laptop"), w.As("phone")
	title := fmt.Sprint("Goes on ", rand.Uint64())
	phone.Types(title, "from the phone\n")
	laptop.Sees(title, "from the phone\n")
	laptop.Types(title, "from both\n")
	phone.Sees(title, "from both\n")
	w.Settle()
}

// TestI1NobodyTakesWhatNobodyMaySend: the exchange with the thief ends, for a
// reason that is shown, and nothing is kept.
func TestI1NobodyTakesWhatNobodyMaySend(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop := w.Device("laptop")
	entries := func() uint64 { return w.As("laptop").Status().Entries }
	body := thief.Change(plan, thief.Self(), "owned")
	good := thief.Seals(thief.Next(plan), body)
	_, stranger, _ := ed25519.GenerateKey(nil)
	signed := func(h *notebook.Header, key ed25519.PrivateKey) notebook.Entry {
		e := thief.Seals(h, body)
		digest := notebook.Digest("noted/entry/v1", e.Header)
		e.Sig = ed25519.Sign(key, digest[:])
		return e
	}
	edit := func(change func(*notebook.Header)) *notebook.Header {
		h := thief.Next(plan)
		change(h)
		return h
	}
	for _, c := range []struct {
		name string
		e    notebook.Entry
		why  string
	}{
		{"nothing", notebook.Entry{}, "not an entry"},
		{"noise", notebook.Entry{Header: bytes.Repeat([]byte{0x9f}, 4096), Sig: make([]byte, 64), Body: body}, "not an entry"},
		{"a bad signature", notebook.Entry{Header: good.Header, Sig: make([]byte, 64), Body: body}, "signature does not hold"},
		{"a short signature", notebook.Entry{Header: good.Header, Sig: good.Sig[:63], Body: body}, "signature does not hold"},
		{"another body", notebook.Entry{Header: good.Header, Sig: good.Sig, Body: append([]byte{1}, body...)}, "not the one that was signed"},
		{"no body", notebook.Entry{Header: good.Header, Sig: good.Sig}, "not the one that was signed"},
		{"another notebook", thief.Seals(edit(func(h *notebook.Header) { h.Notebook[0] ^= 1 }), body), "another notebook"},
		{"in the phone's name", thief.Seals(edit(func(h *notebook.Header) { h.Device, h.Prev = w.Device("phone").ID, notebook.Head{} }), body), "signature does not hold"},
		{"in the laptop's name", thief.Seals(edit(func(h *notebook.Header) { h.Device, h.Prev = laptop.ID, notebook.Head{} }), body), "signature does not hold"},
		{"by nobody's device", signed(edit(func(h *notebook.Header) {
			h.Device, h.Prev = notebook.DeviceID(stranger.Public().(ed25519.PublicKey)), notebook.Head{}
		}), stranger), "was not in the notebook"},
	} {
		before := entries()
		err := thief.Gives(laptop, c.e)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := entries(); now != before {
			t.Errorf("%s: %d entries were kept", c.name, now-before)
		}
		if notes := strings.Join(w.As("laptop").Status().Notes, "\n"); !strings.Contains(notes, "from tablet: ") || !strings.Contains(notes, c.why) {
			t.Errorf("%s: the person is told %q", c.name, notes)
		}
	}
	goesOn(t, w)
	if err := thief.Gives(laptop, good); err != nil {
		t.Errorf("the honest entry that all of them were made from: %v", err)
	}
	w.As("laptop").Sees("Plan", "owned")
	w.Settle()
}

// TestI1VoidEntriesAreKeptAndSkipped sends what is signed and does not hold. Both
// devices skip it for the same reason, and the chain goes on behind it.
func TestI1VoidEntriesAreKeptAndSkipped(t *testing.T) {
	w, thief, plan := robbed(t)
	laptop, phone := w.As("laptop"), w.As("phone")
	told := laptop.Watches()
	agent := notebook.Author{Device: thief.ID, Class: notebook.Agent, Label: "scribe"}
	phones := notebook.Author{Device: w.Device("phone").ID, Class: notebook.Typed}
	text := func(body []byte) trust.Draft {
		return trust.Draft{Kind: notebook.KindText, Page: plan, Class: notebook.Typed, Body: body}
	}
	encode := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	fence := laptop.Fence("Plan", 1)
	granted := encode(notebook.EncodeResult(&notebook.Result{Fence: fence.ID, Closure: fence.Hash, Rung: notebook.Granted, Verdict: notebook.OK, Output: "forged", Head: 6, Limits: notebook.DefaultLimits}))
	cases := []struct {
		name  string
		draft trust.Draft
	}{
		{"noise", text(bytes.Repeat([]byte{0xff}, 100))},
		{"two mebibytes of noise", text(bytes.Repeat([]byte("\x85\x6f\x4a\x83"), notebook.MaxText/4))},
		{"a change in the name of an agent", text(thief.Change(plan, agent, "owned"))},
		{"a change in the name of the phone", text(thief.Change(plan, phones, "owned"))},
		{"a change of another page", trust.Draft{Kind: notebook.KindText, Page: notebook.PageID{9}, Class: notebook.Typed, Body: thief.Change(plan, thief.Self(), "owned")}},
		{"a register of noise", trust.Draft{Kind: notebook.KindSet, Page: plan, Class: notebook.Typed, Body: []byte{0x80}}},
		{"a result of noise", trust.Draft{Kind: notebook.KindResult, Page: plan, Class: notebook.Typed, Body: []byte{0x80}}},
		{"a result above strict", trust.Draft{Kind: notebook.KindResult, Page: plan, Class: notebook.Typed, Body: granted}},
	}
	for i, c := range cases {
		began := time.Now()
		if err := thief.Gives(w.Device("laptop"), thief.Appends(c.draft)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
		if s := laptop.Status(); s.Void != i+1 {
			t.Errorf("%s: %d entries are void, not %d", c.name, s.Void, i+1)
		}
	}
	// Changes of the roster that do not hold are refused by an honest log before
	// they are signed; the thief signs them all the same.
	_, other, _ := ed25519.GenerateKey(nil)
	newcomer := notebook.DeviceID(other.Public().(ed25519.PublicKey))
	for _, change := range []notebook.RosterChange{
		{Act: notebook.RosterAdd, Device: newcomer, Name: "mine", Role: notebook.RoleMember, Number: 1, Joiner: make([]byte, 64)},
		{Act: notebook.RosterRename, Device: w.Device("phone").ID, Name: "not a phone"},
	} {
		h := thief.Next(notebook.PageID{})
		h.Kind = notebook.KindRoster
		e := thief.Seals(h, encode(notebook.EncodeRosterChange(&change)))
		if err := thief.Gives(w.Device("laptop"), e); err != nil {
			t.Errorf("%v: %v", change.Act, err)
		}
		if v := thief.Keeps(e); v.Void() == "" {
			t.Errorf("%v is not void", change.Act)
		}
		if s := laptop.Status(); !strings.Contains(strings.Join(names(laptop), " "), "phone") || s.Void <= len(cases) {
			t.Errorf("%v: %d void, devices %v", change.Act, s.Void, names(laptop))
		}
	}
	told.Has("note", "was refused and is kept as void")
	w.Settle()
	for _, h := range []*daemontest.Hand{laptop, phone} {
		if h.Body("Plan") != sums || h.Status().Void != len(cases)+2 {
			t.Errorf("%s: %d void, and Plan reads %q", h.Name, h.Status().Void, h.Body("Plan"))
		}
		h.Stands("Plan", 1, map[string]string{"laptop": "local", "phone": "device:laptop"}[h.Name])
	}
	// The chain goes on.
	if err := thief.Gives(w.Device("laptop"), thief.Types(plan, "honest at last\n")); err != nil {
		t.Error(err)
	}
	laptop.Sees("Plan", "honest at last\n")
	goesOn(t, w)
	w.Same("laptop", "phone")
}

func names(h *daemontest.Hand) (names []string) {
	for _, d := range h.Devices() {
		names = append(names, d.Name)
	}
	return names
}

// TestRoute08ClaimsOfOthersAreClaims: whatever class, label and name a device
// gives itself, its text is the device's.
func TestRoute08ClaimsOfOthersAreClaims(t *testing.T) {
	w, thief, _ := robbed(t)
	laptop := w.As("laptop")
	claims := []notebook.Author{
		thief.Self(),
		{Device: thief.ID, Class: notebook.Agent, Label: "scribe"},
		{Device: thief.ID, Class: notebook.Import, Label: "local"},
		{Device: thief.ID, Class: notebook.Moved, Source: notebook.Source{Device: w.Device("laptop").ID, Class: notebook.Typed}},
	}
	for i, a := range claims {
		id := notebook.PageID{0xc1, byte(i)}
		d := trust.Draft{Kind: notebook.KindText, Page: id, Class: a.Class, Label: a.Label, Body: thief.Change(id, a, sums)}
		if a.Class == notebook.Moved {
			d.Source = []notebook.Source{a.Source}
		}
		if err := thief.Gives(w.Device("laptop"), thief.Appends(d)); err != nil {
			t.Fatal(err)
		}
		title, err := notebook.EncodeSet(&notebook.Set{Register: notebook.RegisterTitle, Text: fmt.Sprint("Claim ", i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := thief.Gives(w.Device("laptop"), thief.Appends(trust.Draft{Kind: notebook.KindSet, Page: id, Class: notebook.Typed, Body: title})); err != nil {
			t.Fatal(err)
		}
		if stands := laptop.Fence(fmt.Sprint("Claim ", i), 1).Standing; !strings.Contains(stands, "device:tablet") || stands == "local" {
			t.Errorf("%v: stands %q", a, stands)
		}
		laptop.Decides(fmt.Sprint("Claim ", i), 1, "strict")
	}
	// A name that would read as a standing is quoted.
	rename, err := notebook.EncodeRosterChange(&notebook.RosterChange{Act: notebook.RosterRename, Device: thief.ID, Name: "x local"})
	if err != nil {
		t.Fatal(err)
	}
	if err := thief.Gives(w.Device("laptop"), thief.Appends(trust.Draft{Kind: notebook.KindRoster, Class: notebook.Typed, Body: rename})); err != nil {
		t.Fatal(err)
	}
	if stands := laptop.Fence("Claim 0", 1).Standing; stands != `device:"x local"` {
		t.Errorf("stands %q", stands)
	}
	goesOn(t, w)
}

// TestI1FloodOfWaitingEntries: what waits for entries that never come has a
// bound, and so has what it costs.
func TestI1FloodOfWaitingEntries(t *testing.T) {
	w, thief, plan := robbed(t)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	body := bytes.Repeat([]byte("x"), 64<<10)
	for range 20 {
		var flood []notebook.Entry
		for range 50 {
			h := thief.Next(plan)
			h.Seq, h.Prev = 2+rand.Uint64N(1<<40), notebook.Head{Position: notebook.Position{Device: thief.ID, Epoch: thief.Epoch}, Hash: notebook.Hash{1}}
			h.Prev.Position.Seq, h.Seen = h.Seq-1, nil
			flood = append(flood, thief.Seals(h, body))
		}
		if err := thief.Gives(w.Device("laptop"), flood...); err != nil {
			t.Fatal(err)
		}
	}
	s := w.As("laptop").Status()
	if s.Waiting == 0 || s.Waiting > 512 {
		t.Errorf("%d entries wait", s.Waiting)
	}
	if grown := int64(heap()) - int64(before); grown > 24<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	goesOn(t, w)
}

// TestI1ShapesOfPages: pages that are hard to read are read in bounded time, or
// said to be unreadable, and nobody else waits for them.
func TestI1ShapesOfPages(t *testing.T) {
	w, thief, _ := robbed(t)
	laptop := w.As("laptop")
	for i, c := range []struct{ name, body, note string }{
		{"quotes", strings.Repeat(">", 60_000) + " x", "cannot be read"},
		{"lists", strings.Repeat("- ", 30_000) + "x", "cannot be read"},
		{"fences", strings.Repeat("```lua\n```\n", 8_000), "more fences are not shown"},
		{"links", strings.Repeat("[a]: b\n", 25_000), ""},
		{"one line", strings.Repeat("x", 120_000), ""},
	} {
		id := notebook.PageID{0xd1, byte(i)}
		title, err := notebook.EncodeSet(&notebook.Set{Register: notebook.RegisterTitle, Text: c.name})
		if err != nil {
			t.Fatal(err)
		}
		entries := append(thief.Fills(id, c.body), thief.Appends(trust.Draft{Kind: notebook.KindSet, Page: id, Class: notebook.Typed, Body: title}))
		began := time.Now()
		if err := thief.Gives(w.Device("laptop"), entries...); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p := laptop.Page(c.name)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
		if notes := strings.Join(p.Notes, "\n"); p.Body != c.body || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %d bytes, %q", c.name, len(p.Body), notes)
		}
		if c.note == "cannot be read" && len(p.Fences) > 0 {
			t.Errorf("%s: %d fences", c.name, len(p.Fences))
		}
	}
	goesOn(t, w)
	w.Same("laptop", "phone")
}

// TestI1OverTheNetwork: a node under the tablet's key that sends poison over a
// real connection is turned away with a reason, and the phone's exchange goes on.
func TestI1OverTheNetwork(t *testing.T) {
	w, thief, plan := robbed(t)
	good := thief.Seals(thief.Next(plan), thief.Change(plan, thief.Self(), "owned"))
	good.Sig = make([]byte, 64)
	thief.Serves(w, w.Device("laptop"), good)
	problem := func() string {
		for _, d := range w.As("laptop").Devices() {
			if d.ID == thief.ID {
				return d.Problem
			}
		}
		return ""
	}
	w.Eventually("the laptop says what is wrong with the tablet", func() bool {
		return strings.Contains(problem(), "sent an entry that is not accepted here")
	})
	if notes := strings.Join(w.As("laptop").Status().Notes, "\n"); !strings.Contains(notes, "signature does not hold") {
		t.Errorf("the person is told %q", notes)
	}
	goesOn(t, w)
	w.As("laptop").Sees("Plan", sums)
}
