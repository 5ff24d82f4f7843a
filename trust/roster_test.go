package trust

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"noted/notebook"
)

// A change of the roster that does not hold is kept as void, on every device
// for the same reason, and its chain goes on.
func TestRosterChangesThatDoNotHold(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	hub := laptop.inviteAs(newDev(t, "hub"), notebook.RoleHub)
	phone.pull(laptop)
	newcomer := newDev(t, "newcomer")
	consent := func(by *dev, number uint32, name string) []byte {
		return AcceptJoin(newcomer.signer, laptop.log.Notebook(), by.id(), number, name)
	}
	add := notebook.RosterChange{
		Act: notebook.RosterAdd, Device: newcomer.id(), Name: "newcomer", Role: notebook.RoleMember,
		Number: 1, Joiner: consent(phone, 1, "newcomer"),
	}
	with := func(f func(*notebook.RosterChange)) *notebook.RosterChange {
		c := add
		f(&c)
		return &c
	}
	for _, c := range []struct {
		name   string
		by     *dev
		change *notebook.RosterChange
		want   string
	}{
		{"consent to another name", phone, with(func(c *notebook.RosterChange) { c.Name = "other" }), "consent"},
		{"consent given to another", phone, with(func(c *notebook.RosterChange) { c.Joiner = consent(laptop, 1, "newcomer") }), "consent"},
		{"consent to another notebook", phone, with(func(c *notebook.RosterChange) {
			c.Joiner = AcceptJoin(newcomer.signer, notebook.NotebookID{9}, phone.id(), 1, "newcomer")
		}), "consent"},
		{"consent to another time", phone, with(func(c *notebook.RosterChange) { c.Joiner = consent(phone, 2, "newcomer") }), "consent"},
		{"consent of the inviter", phone, with(func(c *notebook.RosterChange) {
			c.Joiner = AcceptJoin(phone.signer, laptop.log.Notebook(), phone.id(), 1, "newcomer")
		}), "consent"},
		{"consent of nobody", phone, with(func(c *notebook.RosterChange) { c.Joiner = make([]byte, 64) }), "consent"},
		{"second pairing before the first", phone, with(func(c *notebook.RosterChange) { c.Number, c.Joiner = 2, consent(phone, 2, "newcomer") }), "count"},
		{"adds a member again", phone, &notebook.RosterChange{
			Act: notebook.RosterAdd, Device: laptop.id(), Name: "laptop", Role: notebook.RoleMember, Number: 2,
			Joiner: AcceptJoin(laptop.signer, laptop.log.Notebook(), phone.id(), 2, "laptop"),
		}, "member already"},
		{"removes nobody", phone, &notebook.RosterChange{Act: notebook.RosterRemove, Device: newcomer.id()}, "no member"},
		{"renames another", phone, &notebook.RosterChange{Act: notebook.RosterRename, Device: laptop.id(), Name: "pwned"}, "another device"},
		{"cuts nobody", phone, &notebook.RosterChange{Act: notebook.RosterCut, Device: newcomer.id()}, "never a member"},
		{"founds again", phone, &notebook.RosterChange{Act: notebook.RosterGenesis, Device: phone.id(), Name: "x", Role: notebook.RoleMember}, "founds"},
		{"hub adds", hub, with(func(c *notebook.RosterChange) { c.Joiner = consent(hub, 1, "newcomer") }), "hub"},
		{"hub removes", hub, &notebook.RosterChange{Act: notebook.RosterRemove, Device: phone.id()}, "hub"},
		{"hub cuts", hub, &notebook.RosterChange{Act: notebook.RosterCut, Device: phone.id()}, "hub"},
	} {
		draft := rosterDraft(t, c.change)
		var void *Void
		if _, err := c.by.log.Append(c.by.signer, c.by.epoch, draft); !errors.As(err, &void) || !strings.Contains(void.Reason, c.want) {
			t.Errorf("%s: signed by an honest device: %v", c.name, err)
		}
		// A hostile device signs it all the same.
		before := laptop.log.Roster().Members()
		chain, seen := c.by.log.next(c.by.epoch)
		h := c.by.text(chain.last+1, notebook.Head{}, c.by.log.merged(chain, seen)...)
		if chain.last > 0 {
			h.Prev = chain.tip()
		}
		h.Kind, h.Page = notebook.KindRoster, notebook.PageID{}
		e := sealed(t, c.by.signer, h, draft.Body)
		for _, d := range []*dev{laptop, phone, hub} {
			vs, err := d.take(e)
			if d == c.by && errors.Is(err, ErrCloned) {
				err = nil // as it is
			}
			if err != nil || len(vs) != 1 || !strings.Contains(vs[0].Void(), c.want) {
				t.Fatalf("%s: at %s: %d, %v", c.name, d.name, len(vs), err)
			}
		}
		if after := laptop.log.Roster().Members(); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: changed the roster: %v", c.name, after)
		}
	}
	if v := phone.roster(&add); v.Void() != "" || !phone.log.Roster().Has(newcomer.id()) {
		t.Errorf("the add that they were made from: %q", v.Void())
	}
	if v := phone.writes("the chain goes on"); v.Void() != "" {
		t.Error(v.Void())
	}
	if v := hub.renames("harbour"); v.Void() != "" || hub.log.Roster().Name(hub.id()) != "harbour" {
		t.Errorf("a hub may rename itself: %q", v.Void())
	}
	exchange(laptop, phone, hub)
}

func TestHubWritesNothing(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	hub := laptop.inviteAs(newDev(t, "hub"), notebook.RoleHub)
	var void *Void
	if _, err := hub.log.Append(hub.signer, hub.epoch, textDraft("x")); !errors.As(err, &void) {
		t.Errorf("appended: %v", err)
	}
	e := sealed(t, hub.signer, hub.text(1, notebook.Head{}, laptop.log.Heads()...), []byte("x"))
	if vs := laptop.takes(e); len(vs) != 1 || vs[0].Void() == "" {
		t.Errorf("%v", vs)
	}
}

func TestUnreadableRosterChangeIsVoid(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	h := phone.text(1, notebook.Head{}, laptop.log.Heads()...)
	h.Kind, h.Page = notebook.KindRoster, notebook.PageID{}
	first := sealed(t, phone.signer, h, []byte("not a change"))
	if vs := laptop.takes(first); len(vs) != 1 || !strings.Contains(vs[0].Void(), "read") {
		t.Fatal(vs)
	}
	next := phone.text(2, notebook.Head{Position: notebook.Position{Device: phone.id(), Epoch: phone.epoch, Seq: 1}, Hash: first.Hash()})
	if vs := laptop.takes(sealed(t, phone.signer, next, []byte("x"))); len(vs) != 1 || vs[0].Void() != "" {
		t.Error("the chain does not go on")
	}
}

func TestRemovedDevice(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	phone.writes("before")
	exchange(laptop, phone, tablet)

	laptop.removes(phone)
	late := phone.writes("after").Entry()
	if vs, err := laptop.take(late); len(vs) != 0 || !errors.Is(err, ErrRemoved) {
		t.Errorf("took %d of the removed device: %v", len(vs), err)
	}
	other := tablet.writes("a member's").Entry()
	if vs, err := laptop.take(late, other); len(vs) != 1 || !errors.Is(err, ErrRemoved) {
		t.Errorf("the rest of the batch was not taken: %d, %v", len(vs), err)
	}
	if laptop.log.Roster().Has(phone.id()) || !laptop.log.Roster().Has(tablet.id()) {
		t.Error("roster wrong")
	}
	if got := laptop.log.Roster().Name(phone.id()); got != "phone" {
		t.Errorf("a removed device is called %q", got)
	}
	// The phone cannot bring itself back, nor anybody else, nor by an old add.
	accomplice := newDev(t, "accomplice")
	phone.roster(phone.adds(accomplice, notebook.RoleMember))
	if vs, err := laptop.take(phone.missing(laptop.log.Heads())...); len(vs) != 0 || !errors.Is(err, ErrRemoved) {
		t.Errorf("took %d: %v", len(vs), err)
	}
	old := laptop.entries[1] // the add of the phone
	if vs := laptop.takes(old); len(vs) != 0 || laptop.log.Roster().Has(phone.id()) {
		t.Error("an old add brought it back")
	}
	// When it learns of it, it writes no more.
	phone.pull(laptop)
	if _, err := phone.log.Append(phone.signer, phone.epoch, textDraft("x")); !errors.Is(err, ErrRemoved) {
		t.Errorf("a removed device that knows it still writes: %v", err)
	}
	// A new pairing, with the next number, does.
	laptop.roster(laptop.adds(phone, notebook.RoleMember))
	if got := laptop.log.Roster().Number(phone.id()); got != 2 {
		t.Errorf("paired %d times", got)
	}
	phone.pull(laptop)
	laptop.takes(phone.missing(laptop.log.Heads())...)
	exchange(laptop, phone, tablet)
	v := phone.writes("back")
	if vs := laptop.pull(phone); len(vs) != 1 || vs[0].Hash() != v.Hash() {
		t.Errorf("took %d after the new pairing", len(vs))
	}
}

// A member that had taken entries of the removed device before it knew is not
// cut off: what its own entries rest on comes in, and nothing beyond.
func TestWhatMembersRestOnComesIn(t *testing.T) {
	for name, deliver := range map[string]func(laptop *dev, phones []notebook.Entry, tablets []notebook.Entry) int{
		"in causal order, one batch": func(l *dev, p, m []notebook.Entry) int {
			return len(l.takes(slices.Concat(p[:2], m)...))
		},
		"in causal order, entry by entry": func(l *dev, p, m []notebook.Entry) (n int) {
			if vs, err := l.take(p[0]); len(vs) != 0 || !errors.Is(err, ErrRemoved) {
				l.t.Errorf("taken by itself: %d, %v", len(vs), err)
			}
			n += len(l.takes(p[1])) // waits for the one before
			return n + len(l.takes(m...))
		},
		"backwards": func(l *dev, p, m []notebook.Entry) (n int) {
			n += len(l.takes(m...))
			n += len(l.takes(p[1]))
			n += len(l.takes(p[0]))
			return n
		},
		"with a gap": func(l *dev, p, m []notebook.Entry) (n int) {
			if _, err := l.take(p[0]); !errors.Is(err, ErrRemoved) {
				l.t.Errorf("taken by itself: %v", err)
			}
			n += len(l.takes(m...))
			n += len(l.takes(p[1]))
			return n
		},
	} {
		t.Run(name, func(t *testing.T) {
			laptop := newDev(t, "laptop").found()
			phone := laptop.invite(newDev(t, "phone"))
			tablet := laptop.invite(newDev(t, "tablet"))
			exchange(laptop, phone, tablet)
			p1, p2 := phone.writes("p1"), phone.writes("p2")
			tablet.takes(p1.Entry(), p2.Entry())
			m := tablet.writes("rests on p2")
			p3 := phone.writes("p3")
			laptop.removes(phone)

			if n := deliver(laptop, []notebook.Entry{p1.Entry(), p2.Entry()}, []notebook.Entry{m.Entry()}); n != 3 {
				t.Errorf("took %d of 3", n)
			}
			if vs, err := laptop.take(p3.Entry()); len(vs) != 0 || !errors.Is(err, ErrRemoved) {
				t.Errorf("took what nobody rests on: %d, %v", len(vs), err)
			}
		})
	}
}

// The removed device's own word, or a stranger's, opens nothing.
func TestRemovedDeviceVouchesForNothing(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	p1 := phone.writes("p1")
	laptop.removes(phone)
	p2 := phone.writes("p2")
	phone.restarts(2)
	p3 := phone.writes("another epoch, resting on p2")
	stranger := newDev(t, "stranger")
	stranger.log = laptop.log
	s := sealed(t, stranger.signer, stranger.text(1, notebook.Head{}, headOf(p3)), []byte("x"))
	for range 2 {
		vs, err := laptop.take(s, p3.Entry(), p2.Entry(), p1.Entry())
		if len(vs) != 0 || !errors.Is(err, ErrRemoved) {
			t.Fatalf("took %d: %v", len(vs), err)
		}
	}
}

// Two devices rename and add at the same time: all agree in the end.
func TestConcurrentRosterChanges(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	guest := newDev(t, "guest")
	byLaptop := laptop.roster(laptop.adds(guest, notebook.RoleMember))
	byPhone := phone.roster(phone.adds(guest, notebook.RoleMember))
	exchange(laptop, phone)
	for _, d := range []*dev{laptop, phone} {
		if !d.log.Roster().Has(guest.id()) {
			t.Errorf("%s: two adds at the same time cancel out", d.name)
		}
	}
	if byLaptop.Void()+byPhone.Void() != "" {
		t.Error("an add is void for one that it had not seen")
	}
	// A removal ends what its author had seen, and so both.
	laptop.removes(guest)
	exchange(laptop, phone)
	if phone.log.Roster().Has(guest.id()) {
		t.Error("still a member")
	}
	if a, b := laptop.log.Roster().Members(), phone.log.Roster().Members(); !reflect.DeepEqual(a, b) {
		t.Errorf("%v\n%v", a, b)
	}
}

func TestRosterIsAValue(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	before := laptop.log.Roster()
	phone := laptop.invite(newDev(t, "phone"))
	if before.Has(phone.id()) || !laptop.log.Roster().Has(phone.id()) {
		t.Error("an old roster changed")
	}
	if got := before.Name(phone.id()); got != phone.id().Short() {
		t.Errorf("an unknown device is called %q", got)
	}
	m := laptop.log.Roster().Members()
	if len(m) != 2 || !slices.ContainsFunc(m, func(m Member) bool {
		return m == Member{Device: phone.id(), Name: "phone", Role: notebook.RoleMember, AddedBy: laptop.id(), Number: 1}
	}) {
		t.Errorf("%+v", m)
	}
}

func TestJoinLogRefuses(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := newDev(t, "phone")
	text := laptop.writes("x").Entry()
	genesis := laptop.genesis()
	unsigned := genesis
	unsigned.Sig = make([]byte, 64)
	h := notebook.Header{Epoch: laptop.epoch, Seq: 1, Kind: notebook.KindRoster, Class: notebook.Typed}
	foreign := rosterDraft(t, &notebook.RosterChange{Act: notebook.RosterGenesis, Device: phone.id(), Name: "x", Role: notebook.RoleMember})
	rename := rosterDraft(t, &notebook.RosterChange{Act: notebook.RosterRename, Device: laptop.id(), Name: "x"})
	for name, e := range map[string]notebook.Entry{
		"nothing":           {},
		"a text":            text,
		"not signed":        unsigned,
		"founds for others": sealed(t, laptop.signer, h, foreign.Body),
		"a rename":          sealed(t, laptop.signer, h, rename.Body),
		"unreadable":        sealed(t, laptop.signer, h, []byte("x")),
	} {
		if _, _, err := JoinLog(phone.id(), e); err == nil {
			t.Errorf("%s: joined", name)
		}
	}
	l, v, err := JoinLog(phone.id(), genesis)
	if err != nil || l.Notebook() != laptop.log.Notebook() || !v.Valid() || v.Hash() != notebook.Hash(l.Notebook()) {
		t.Errorf("%v", err)
	}
}

func TestFullNotebook(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	for i := range maxMembers - 1 {
		laptop.roster(laptop.adds(newDev(t, fmt.Sprint("device ", i)), notebook.RoleMember))
	}
	one := newDev(t, "one too many")
	var void *Void
	if _, err := laptop.log.Append(laptop.signer, laptop.epoch, rosterDraft(t, laptop.adds(one, notebook.RoleMember))); !errors.As(err, &void) || !strings.Contains(void.Reason, "full") {
		t.Errorf("added: %v", err)
	}
	laptop.removes(newDev(t, "device 3"))
	laptop.roster(laptop.adds(one, notebook.RoleMember))
}

// A device stays what it was added for.
func TestRoleIsForGood(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	hub := laptop.inviteAs(newDev(t, "hub"), notebook.RoleHub)
	laptop.removes(hub)
	var void *Void
	draft := rosterDraft(t, laptop.adds(hub, notebook.RoleMember))
	if _, err := laptop.log.Append(laptop.signer, laptop.epoch, draft); !errors.As(err, &void) || !strings.Contains(void.Reason, "is for") {
		t.Errorf("a hub became a member: %v", err)
	}
	laptop.roster(laptop.adds(hub, notebook.RoleHub))
}
