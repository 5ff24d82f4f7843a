package trust

import (
	"errors"
	"fmt"
	"testing"

	"noted/notebook"
)

// TestPausedLogWaits: what there is no room for is held, and with it what rests
// on it and nothing else, until there is room.
func TestPausedLogWaits(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone, tablet := laptop.invite(newDev(t, "phone")), laptop.invite(newDev(t, "tablet"))
	exchange(laptop, phone, tablet)
	full := true
	asked := 0
	laptop.log.Room(func(v Verified) error {
		asked++
		if full && v.Header().Device == tablet.id() && v.Header().Kind == notebook.KindText {
			return fmt.Errorf("%w: full", ErrPaused)
		}
		return nil
	})
	first, second := tablet.writes("one"), tablet.writes("two")
	aside := phone.writes("seen nothing")
	phone.pull(tablet)
	rests := phone.writes("seen both")

	// The phone's log goes on to where it has seen the tablet's.
	if vs := laptop.takes(first.Entry(), second.Entry(), aside.Entry(), rests.Entry()); len(vs) != 1 || vs[0].Hash() != aside.Hash() {
		t.Fatalf("took %d entries while the tablet is paused", len(vs))
	}
	if vs := laptop.log.Retry(); len(vs) != 0 {
		t.Fatalf("took %d entries, and there is no more room", len(vs))
	}
	if vs := laptop.takes(first.Entry()); len(vs) != 0 {
		t.Fatal("what is held is taken because it was sent again")
	}
	own := laptop.writes("own entries go on")
	full = false
	vs := laptop.log.Retry()
	if len(vs) != 3 || vs[0].Hash() != first.Hash() || vs[1].Hash() != second.Hash() || vs[2].Hash() != rests.Hash() {
		t.Fatalf("took %d entries where there is room", len(vs))
	}
	laptop.keep(vs...)
	if laptop.log.Waiting() != 0 || len(laptop.log.Retry()) != 0 {
		t.Error("something is left")
	}
	if vs[2].Saw(own.Header().Position()) {
		t.Error("an entry has seen what came later")
	}
	if asked < 6 {
		t.Errorf("asked %d times", asked)
	}
	exchange(laptop, phone, tablet)
	if dumpHeads(laptop.log) != dumpHeads(tablet.log) {
		t.Error("the devices differ")
	}
}

func dumpHeads(l *Log) string { return fmt.Sprint(l.Heads()) }

// TestRoomIsAskedWithThePast: whoever is asked sees the entry as it will be.
func TestRoomIsAskedWithThePast(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	hub := laptop.inviteAs(newDev(t, "hub"), notebook.RoleHub)
	exchange(laptop, phone, hub)
	seen := laptop.writes("seen")
	phone.pull(laptop)
	later := laptop.writes("not seen")
	first, second := phone.writes("first"), phone.writes("second")
	n := 0
	laptop.log.Room(func(v Verified) error {
		n++
		if !v.Valid() || !v.Saw(seen.Header().Position()) || v.Saw(later.Header().Position()) {
			t.Error("the past is not the entry's")
		}
		if v.Header().Seq == second.Header().Seq && !v.Saw(first.Header().Position()) {
			t.Error("the second has not seen the first")
		}
		return nil
	})
	laptop.pull(phone)
	if n != 2 {
		t.Errorf("asked %d times", n)
	}
	var void string
	laptop.log.Room(func(v Verified) error {
		void = v.Void()
		return nil
	})
	h := hub.text(1, notebook.Head{}, hub.log.Heads()...)
	h.Epoch = epochOf("hub", 9)
	laptop.takes(sealed(t, hub.signer, h, []byte("a hub writes")))
	if void == "" {
		t.Error("what is void was asked for as if it did something")
	}
}

// TestBodyIsExcusedByAPurgeOnly: an entry of a purged page comes without its
// body, before the purge itself, if a member has signed that.
func TestBodyIsExcusedByAPurgeOnly(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	exchange(laptop, phone)
	text := phone.writes("secret")
	purge := func(d *dev, page byte, class notebook.Class, s notebook.Set) notebook.Entry {
		body, err := notebook.EncodeSet(&s)
		if err != nil {
			t.Fatal(err)
		}
		h := d.text(1, notebook.Head{})
		h.Epoch, h.Kind, h.Page, h.Class = epochOf(d.name, 77), notebook.KindSet, notebook.PageID{page}, class
		if class == notebook.Agent {
			h.Label = "scribe"
		}
		return sealed(t, d.signer, h, body)
	}
	purged := notebook.Set{Register: notebook.RegisterPurged, Flag: true}
	excuse := func(purge notebook.Entry) []byte {
		b, err := notebook.EncodeExcuse(purge)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	bodiless := func(e notebook.Entry, instead []byte) notebook.Entry {
		return notebook.Entry{Header: e.Header, Sig: e.Sig, Body: instead}
	}
	good := excuse(purge(phone, 1, notebook.Typed, purged))
	if _, err := laptop.take(bodiless(text.Entry(), good)); !errors.Is(err, ErrBody) {
		t.Errorf("a log that excuses nothing: %v", err)
	}
	laptop.log.Excuse(func(page notebook.PageID, by notebook.DeviceID) bool {
		return page == notebook.PageID{1} && laptop.log.Roster().Has(by)
	})
	forged := purge(phone, 1, notebook.Typed, purged)
	forged.Sig = laptop.signer.sign(entryDomain, forged.Header)
	stranger := newDev(t, "stranger")
	stranger.log = laptop.log
	roster := phone.renames("pixel")
	for _, c := range []struct {
		name string
		e    notebook.Entry
		want error
	}{
		{"nothing", bodiless(text.Entry(), nil), ErrBody},
		{"noise", bodiless(text.Entry(), []byte("noise")), ErrBody},
		{"a byte more", bodiless(text.Entry(), append(excuse(purge(phone, 1, notebook.Typed, purged)), 0)), ErrBody},
		{"another page's purge", bodiless(text.Entry(), excuse(purge(phone, 2, notebook.Typed, purged))), ErrBody},
		{"a deletion", bodiless(text.Entry(), excuse(purge(phone, 1, notebook.Typed, notebook.Set{Register: notebook.RegisterDeleted, Flag: true}))), ErrBody},
		{"an agent's purge", bodiless(text.Entry(), excuse(purge(phone, 1, notebook.Agent, purged))), ErrBody},
		{"a purge with another's signature", bodiless(text.Entry(), excuse(forged)), ErrBody},
		{"a stranger's purge", bodiless(text.Entry(), excuse(purge(stranger, 1, notebook.Typed, purged))), ErrUnexcused},
		{"a roster entry", bodiless(roster.Entry(), good), ErrBody},
	} {
		state := dump(laptop.log)
		if vs, err := laptop.take(c.e); len(vs) != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: took %d, error %v, want %v", c.name, len(vs), err, c.want)
		}
		if dump(laptop.log) != state {
			t.Errorf("%s: changed the log", c.name)
		}
	}
	vs := laptop.takes(bodiless(text.Entry(), good))
	if len(vs) != 1 || vs[0].Entry().Body != nil || vs[0].Hash() != text.Hash() {
		t.Fatalf("the excused entry was not taken: %v", vs)
	}
	if vs := laptop.takes(text.Entry()); len(vs) != 0 {
		t.Error("it is taken once more with its body")
	}
	if vs := laptop.takes(roster.Entry()); len(vs) != 1 {
		t.Error("the chain does not go on behind it")
	}
}
