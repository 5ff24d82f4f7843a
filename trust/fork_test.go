package trust

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// liar signs what it likes with its device's key: entries after any that it
// has signed, on as many branches as it likes.
type liar struct {
	*dev
	signed []notebook.Entry // all that it signed
	heads  []notebook.Head  // of all that it signed
	added  []notebook.Head  // the entry that added it, which its epochs begin with
	n      int
}

// after signs a text entry that follows head, in an epoch of its own if that is new.
func (x *liar) after(head notebook.Head, epoch notebook.Epoch, body string) notebook.Entry {
	h := x.text(1, head, x.added...)
	h.Epoch = epoch
	if epoch == head.Position.Epoch {
		h.Seq, h.Seen = head.Position.Seq+1, nil
	}
	return x.signs(h, []byte(body))
}

// adds signs an entry that adds a device.
func (x *liar) addsAfter(head notebook.Head, e *dev) notebook.Entry {
	h := x.text(head.Position.Seq+1, head)
	h.Epoch, h.Kind, h.Page = head.Position.Epoch, notebook.KindRoster, notebook.PageID{}
	draft := rosterDraft(x.t, &notebook.RosterChange{
		Act: notebook.RosterAdd, Device: e.id(), Name: e.name, Role: notebook.RoleMember, Number: 1,
		Joiner: AcceptJoin(e.signer, x.log.Notebook(), x.id(), 1, e.name),
	})
	return x.signs(h, draft.Body)
}

func (x *liar) signs(h notebook.Header, body []byte) notebook.Entry {
	e := sealed(x.t, x.signer, h, body)
	x.signed = append(x.signed, e)
	x.heads = append(x.heads, headOfEntry(x.t, e))
	return e
}

func headOfEntry(t tester, e notebook.Entry) notebook.Head {
	h, err := notebook.DecodeHeader(e.Header)
	if err != nil {
		t.Fatal(err)
	}
	return notebook.Head{Position: h.Position(), Hash: e.Hash()}
}

// sides returns a and b with the one first that stands.
func sides(a, b notebook.Entry) (stands, lost notebook.Entry) {
	x, y := a.Hash(), b.Hash()
	if bytes.Compare(x[:], y[:]) < 0 {
		return a, b
	}
	return b, a
}

// household is a laptop, a phone and a tablet, of which the tablet lies.
func household(t tester) (laptop, phone *dev, tablet *liar) {
	laptop = newDev(t, "laptop").found()
	phone = laptop.invite(newDev(t, "phone"))
	tablet = &liar{dev: laptop.invite(newDev(t, "tablet")), added: laptop.log.Heads()}
	exchange(laptop, phone, tablet.dev)
	return laptop, phone, tablet
}

func TestTheLowerHashStands(t *testing.T) {
	for _, c := range []struct {
		name  string
		forks func(x *liar, a, b Verified) (mine, other notebook.Entry) // other contends with mine, which is a or b
	}{
		{"at the tip", func(x *liar, a, b Verified) (notebook.Entry, notebook.Entry) {
			return b.Entry(), x.after(headOf(a), x.epoch, "another b")
		}},
		{"before the tip", func(x *liar, a, b Verified) (notebook.Entry, notebook.Entry) {
			return a.Entry(), x.signs(x.text(1, notebook.Head{}, a.Header().Seen...), []byte("another a"))
		}},
	} {
		for _, lower := range []bool{true, false} { // the one that comes first
			t.Run(fmt.Sprint(c.name, ", first is lower ", lower), func(t *testing.T) {
				for try := 0; ; try++ {
					laptop, _, tablet := household(t)
					a, b := tablet.writes(fmt.Sprint("a", try)), tablet.writes("b")
					mine, other := c.forks(tablet, a, b)
					if stands, _ := sides(mine, other); (stands.Hash() == mine.Hash()) != lower {
						continue
					}
					laptop.takes(a.Entry(), b.Entry())
					laptop.restarts(2)
					vs, err := laptop.take(other)
					e, found := errors.AsType[*Equivocation](err)
					if len(vs) != 1 || !found || !Innocent(err) {
						t.Fatalf("took %d, %v", len(vs), err)
					}
					stands, lost := sides(mine, other)
					if e.Hashes != [2]notebook.Hash{stands.Hash(), lost.Hash()} || e.Proof[0].Hash() != stands.Hash() || e.Proof[1].Hash() != lost.Hash() {
						t.Errorf("the proof is %+v", e)
					}
					for _, v := range []Verified{a, b} {
						want := ""
						if !lower && (mine.Hash() == v.Hash() || mine.Hash() == a.Hash()) {
							want = VoidLost
						}
						if got := laptop.void[v.Hash()]; got != want {
							t.Errorf("%v is void for %q, not %q", v.Header().Position(), got, want)
						}
					}
					if got := laptop.void[other.Hash()]; (got == "") == lower {
						t.Errorf("the other one is void for %q", got)
					}
					if got := laptop.log.Frozen(); !slices.Equal(got, []notebook.DeviceID{tablet.id()}) {
						t.Fatalf("frozen %v", got)
					}
					before := len(laptop.entries)
					if vs, err := laptop.take(tablet.after(headOfEntry(t, stands), tablet.epoch, "goes on")); len(vs) != 0 || !errors.Is(err, ErrFrozen) {
						t.Errorf("the frozen device went on: %d, %v", len(vs), err)
					}
					laptop.restarts(3)
					if got := laptop.log.Proof(tablet.id()); !reflect.DeepEqual(got, e) {
						t.Errorf("reopened, the proof is %+v", got)
					}
					laptop.writes("goes on")
					if len(laptop.entries) != before+1 {
						t.Error("an honest device is stopped by another's lies")
					}
					return
				}
			})
		}
	}
}

// The first entry of a notebook is its name: nothing that its founder signs takes its place.
func TestTheGenesisAlwaysStands(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	x := &liar{dev: laptop}
	first := laptop.genesis()
	genesis := first.Hash()
	for i := 0; ; i++ {
		e := x.signs(x.text(1, notebook.Head{}), []byte(fmt.Sprint(i)))
		if h := e.Hash(); bytes.Compare(h[:], genesis[:]) > 0 {
			continue
		}
		if vs, err := phone.take(e); len(vs) != 0 || !errors.Is(err, ErrStranger) {
			t.Errorf("an entry that cannot have seen its device's add: %d, %v", len(vs), err)
		}
		if phone.log.lower(e.Hash(), genesis) || !phone.log.lower(genesis, e.Hash()) {
			t.Error("it would stand against the genesis")
		}
		break
	}
	if !phone.log.Roster().Has(laptop.id()) || phone.log.Overturned() {
		t.Error("the founder is gone")
	}
}

// Two honest devices that were given different sides become equal, whichever stands.
func TestTwoHistoriesForTwoDevices(t *testing.T) {
	stood := map[bool]int{}
	for try := range 8 {
		laptop, phone, tablet := household(t)
		root := headOf(tablet.writes(fmt.Sprint("root", try)))
		exchange(laptop, phone, tablet.dev)
		one, two := tablet.after(root, tablet.epoch, "one"), tablet.after(root, tablet.epoch, "two")
		laptop.takes(one, tablet.after(headOfEntry(t, one), tablet.epoch, "one more"))
		phone.takes(two, tablet.after(headOfEntry(t, two), tablet.epoch, "two more"))
		l, p := laptop.writes("on one"), phone.writes("on two")
		exchange(laptop, phone)
		alike(t, laptop, phone)
		stands, lost := sides(one, two)
		if laptop.void[stands.Hash()] != "" || laptop.void[lost.Hash()] != VoidLost {
			t.Errorf("void: %q and %q", laptop.void[stands.Hash()], laptop.void[lost.Hash()])
		}
		stood[stands.Hash() == one.Hash()]++
		// What honest devices wrote stands; what it may rest on is for the pages to say.
		if laptop.void[l.Hash()]+laptop.void[p.Hash()] != "" {
			t.Error("an honest entry is void because of what it has seen")
		}
		at := headOfEntry(t, one).Position
		if l.Saw(at) != (stands.Hash() == one.Hash()) || p.Saw(at) != (stands.Hash() == two.Hash()) {
			t.Errorf("which saw the one that stands: %v, %v", l.Saw(at), p.Saw(at))
		}
		for _, d := range []*dev{laptop, phone} {
			d.writes("goes on")
		}
		exchange(laptop, phone)
		alike(t, laptop, phone)
	}
	if len(stood) != 2 {
		t.Errorf("only one order was tried: %v", stood)
	}
}

// alike fails the test unless the devices hold the same entries with the same
// verdicts, the same heads and the same roster, and a replay changes nothing.
func alike(t tester, devices ...*dev) {
	t.Helper()
	first := devices[0]
	for _, d := range devices {
		if a, b := first.log.Heads(), d.log.Heads(); !reflect.DeepEqual(a, b) {
			t.Errorf("heads of %s and %s:\n%v\n%v", first.name, d.name, a, b)
		}
		if a, b := first.log.Roster().Members(), d.log.Roster().Members(); !reflect.DeepEqual(a, b) {
			t.Errorf("rosters of %s and %s:\n%v\n%v", first.name, d.name, a, b)
		}
		if !maps.Equal(first.void, d.void) {
			for h, void := range first.void {
				if other, found := d.void[h]; !found || other != void {
					t.Errorf("entry %.8s is void for %q on %s and for %q (%v) on %s", h, void, first.name, other, found, d.name)
				}
			}
			t.Errorf("%s has %d entries and %s %d", first.name, len(first.void), d.name, len(d.void))
		}
		if !slices.Equal(first.log.Frozen(), d.log.Frozen()) {
			t.Errorf("frozen on %s: %v, on %s: %v", first.name, first.log.Frozen(), d.name, d.log.Frozen())
		}
		kept := dump(d.log)
		if n := d.replays(); n != len(d.entries) {
			t.Errorf("%s: replayed %d of %d", d.name, n, len(d.entries))
		}
		if again := dump(d.log); again != kept {
			t.Errorf("%s: a replay changed the log:\n%s\n%s", d.name, kept, again)
		}
		reopened, err := OpenLog(d.id(), sorted(d.records))
		if err != nil {
			t.Fatal(err)
		}
		reopened.waiting = d.log.waiting
		if got := dump(reopened); got != kept {
			t.Errorf("%s: reopened, the log differs:\n%s\n%s", d.name, kept, got)
		}
	}
}

// The liar adds two devices, one on each side. Only the one of the side that
// stands is a member, on every device, and what the other wrote is void.
func TestTwoHistoriesOfTheRoster(t *testing.T) {
	for try := range 8 {
		laptop, phone, tablet := household(t)
		root := headOf(tablet.writes(fmt.Sprint("root", try)))
		exchange(laptop, phone, tablet.dev)
		ann, bob := newDev(t, "ann"), newDev(t, "bob")
		one, two := tablet.addsAfter(root, ann), tablet.addsAfter(root, bob)
		laptop.takes(one)
		phone.takes(two)
		write := func(d, host *dev) Verified {
			l, v, err := JoinLog(d.id(), laptop.genesis())
			if err != nil {
				t.Fatal(err)
			}
			d.log = l
			l.Recall(d.look)
			d.keep(v)
			d.pull(host)
			w := d.writes("from " + d.name)
			host.pull(d)
			return w
		}
		a, b := write(ann, laptop), write(bob, phone)
		laptop.writes("on ann's")
		phone.writes("on bob's")
		exchange(laptop, phone)
		alike(t, laptop, phone)
		stands, _ := sides(one, two)
		in, out, kept, void := ann, bob, a, b
		if stands.Hash() == two.Hash() {
			in, out, kept, void = bob, ann, b, a
		}
		if r := laptop.log.Roster(); !r.Has(in.id()) || r.Has(out.id()) {
			t.Errorf("%s in: %v, %s in: %v", in.name, r.Has(in.id()), out.name, r.Has(out.id()))
		}
		if laptop.void[kept.Hash()] != "" || laptop.void[void.Hash()] != voidUnadded {
			t.Errorf("void for %q and %q", laptop.void[kept.Hash()], laptop.void[void.Hash()])
		}
		// Who is not in by what stands comes in no further by itself.
		if vs, err := laptop.take(out.writes("more").Entry()); len(vs) != 0 || !errors.Is(err, ErrUnadded) {
			t.Errorf("took %d of who is out: %v", len(vs), err)
		}
		if vs := laptop.takes(in.writes("more").Entry()); len(vs) != 1 {
			t.Errorf("took %d of who is in", len(vs))
		}
	}
}

// Who was added by the side that falls is no stranger to an entry that comes in
// the same batch, which nobody can be blamed for.
func TestUnaddedInOneBatch(t *testing.T) {
	for try := 0; ; try++ {
		laptop, phone, tablet := household(t)
		root := headOf(tablet.writes(fmt.Sprint("root", try)))
		exchange(laptop, phone, tablet.dev)
		ann := newDev(t, "ann")
		one, two := tablet.addsAfter(root, ann), tablet.after(root, tablet.epoch, "two")
		if stands, _ := sides(one, two); stands.Hash() == one.Hash() {
			continue
		}
		laptop.takes(one)
		ann.log = laptop.log
		a := sealed(t, ann.signer, ann.text(1, notebook.Head{}, headOfEntry(t, one)), []byte("from ann"))
		if vs, err := laptop.takeFrom(phone.id(), two, a); len(vs) != 2 || !Innocent(err) {
			t.Errorf("took %d, %v", len(vs), err)
		}
		if got := laptop.void[a.Hash()]; got != voidUnadded {
			t.Errorf("void for %q", got)
		}
		return
	}
}

// A removal that the lost side contained has not happened, and what was judged
// by it is judged anew.
func TestALostRemovalDidNotHappen(t *testing.T) {
	for try := 0; ; try++ {
		laptop, phone, tablet := household(t)
		root := headOf(tablet.writes(fmt.Sprint("root", try)))
		exchange(laptop, phone, tablet.dev)
		removal := rosterDraft(t, &notebook.RosterChange{Act: notebook.RosterRemove, Device: phone.id()})
		h := tablet.text(root.Position.Seq+1, root)
		h.Kind, h.Page = notebook.KindRoster, notebook.PageID{}
		one, two := tablet.signs(h, removal.Body), tablet.after(root, tablet.epoch, "two")
		if stands, _ := sides(one, two); stands.Hash() == one.Hash() {
			continue
		}
		laptop.takes(one)
		if laptop.log.Roster().Has(phone.id()) {
			t.Fatal("the removal did nothing")
		}
		again := laptop.roster(laptop.adds(phone, notebook.RoleMember)) // void as soon as the phone was never removed
		laptop.take(two)
		r := laptop.log.Roster()
		if !r.Has(phone.id()) || r.Number(phone.id()) != 1 {
			t.Errorf("the phone is in: %v, pairings %d", r.Has(phone.id()), r.Number(phone.id()))
		}
		if got := laptop.void[again.Hash()]; got != "adds a device that is a member already" {
			t.Errorf("the add is void for %q", got)
		}
		exchange(laptop, phone)
		alike(t, laptop, phone)
		return
	}
}

// A person may let the device go on: in a new epoch, not in the torn one.
func TestKeep(t *testing.T) {
	laptop, phone, tablet := household(t)
	a := tablet.writes("a")
	laptop.takes(a.Entry())
	root := headOf(a)
	one, two := tablet.after(root, tablet.epoch, "one"), tablet.after(root, tablet.epoch, "two")
	laptop.take(one, two)
	stands, lost := sides(one, two)
	next := epochOf("tablet", 7)
	onStanding := tablet.after(headOfEntry(t, stands), next, "goes on")
	onLost := tablet.after(headOfEntry(t, lost), epochOf("tablet", 8), "goes on elsewhere")
	inTorn := tablet.after(headOfEntry(t, stands), tablet.epoch, "as if nothing had been")
	for _, e := range []notebook.Entry{onStanding, onLost, inTorn} {
		if vs, err := laptop.take(e); len(vs) != 0 || !errors.Is(err, ErrFrozen) {
			t.Errorf("while it is frozen: %d, %v", len(vs), err)
		}
	}
	if laptop.log.Keep(phone.id()) {
		t.Error("kept a device that is not frozen")
	}
	if !laptop.log.Keep(tablet.id()) || laptop.log.Keep(tablet.id()) {
		t.Error("kept once it should be, and not twice")
	}
	laptop.keep()
	laptop.restarts(2)
	if len(laptop.log.Frozen()) != 0 || laptop.log.Proof(tablet.id()) == nil {
		t.Errorf("frozen %v, proof %v", laptop.log.Frozen(), laptop.log.Proof(tablet.id()))
	}
	if vs := laptop.takes(onStanding); len(vs) != 1 || vs[0].Void() != "" {
		t.Errorf("after the history that stands: %v", vs)
	}
	if vs := laptop.takes(onLost); len(vs) != 1 || vs[0].Void() != VoidLost {
		t.Errorf("after the one that does not: %v", vs)
	}
	if vs, err := laptop.take(inTorn); len(vs) != 0 || !errors.Is(err, ErrFrozen) {
		t.Errorf("in the torn epoch: %d, %v", len(vs), err)
	}
	// Others take it from here.
	exchange(laptop, phone)
	if phone.void[onStanding.Hash()] != "" || !maps.Equal(laptop.void, phone.void) {
		t.Error("what one person let through does not reach the others")
	}
	// Another lie freezes it again.
	if _, err := laptop.take(tablet.after(headOfEntry(t, stands), next, "another lie")); !slices.Equal(laptop.log.Frozen(), []notebook.DeviceID{tablet.id()}) {
		t.Errorf("after another lie: %v, frozen %v", err, laptop.log.Frozen())
	}
}

// A device whose key somebody else writes with stops, and goes on in a new
// epoch once its person says so.
func TestOwnDeviceContradicted(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	first := laptop.writes("here")
	elsewhere := &liar{dev: laptop.backup()}
	elsewhere.log = laptop.log
	var lower, higher notebook.Entry
	mine := laptop.writes("mine")
	for i := 0; len(lower.Header)*len(higher.Header) == 0; i++ {
		e := elsewhere.after(headOf(first), laptop.epoch, fmt.Sprint("elsewhere", i))
		if stands, _ := sides(mine.Entry(), e); stands.Hash() == e.Hash() {
			lower = e
		} else {
			higher = e
		}
	}
	for _, other := range []notebook.Entry{higher, lower} {
		d := laptop.backup()
		d.epoch = laptop.epoch
		d.restarts(2)
		d.takeFrom(phone.id(), other)
		if _, err := d.log.Append(d.signer, d.epoch, textDraft("x")); !errors.Is(err, ErrFrozen) {
			t.Errorf("it writes on: %v", err)
		}
		d.log.Keep(d.id())
		if _, err := d.log.Append(d.signer, laptop.epoch, textDraft("x")); !errors.Is(err, ErrFrozen) {
			t.Errorf("it writes on in the torn epoch: %v", err)
		}
		v := d.writes("after the decision")
		stands, _ := sides(mine.Entry(), other)
		if v.Header().Prev.Hash != stands.Hash() || v.Void() != "" {
			t.Errorf("it goes on after %.8s, not %.8s, which stands", v.Header().Prev.Hash, stands.Hash())
		}
	}
}

// A device with more histories than the members can have found has accomplices,
// and gets no more of them in.
func TestForksAreBounded(t *testing.T) {
	laptop, phone, tablet := household(t)
	root := headOf(tablet.writes("root"))
	exchange(laptop, phone, tablet.dev)
	entries := make([]notebook.Entry, maxForks+20)
	for i := range entries {
		entries[i] = tablet.after(root, tablet.epoch, fmt.Sprint(i))
	}
	// The worst order: each makes another one stand.
	slices.SortFunc(entries, func(a, b notebook.Entry) int {
		x, y := a.Hash(), b.Hash()
		return bytes.Compare(y[:], x[:])
	})
	overturned := 0
	for _, e := range entries {
		if _, err := laptop.log.Take(phone.id(), []notebook.Entry{e}); err != nil && !Innocent(err) {
			t.Fatal(err)
		}
		if laptop.log.Overturned() {
			overturned++
			laptop.log.overturned = false
		}
	}
	if n := laptop.log.forks(tablet.id()); n != maxForks || overturned != maxForks {
		t.Errorf("%d forks were taken, and what stands changed %d times", n, overturned)
	}
	if vs := laptop.takes(phone.writes("honest").Entry()); len(vs) != 1 {
		t.Errorf("an honest device is held up")
	}
}

// lies drives a household in which the tablet signs histories as it likes and
// gives each to whom it likes.
func lies(t *rapid.T) []*dev {
	laptop, phone, tablet := household(t)
	desk := laptop.invite(newDev(t, "desk"))
	honest := []*dev{laptop, phone, desk}
	root := headOf(tablet.writes("root"))
	exchange(append(slices.Clone(honest), tablet.dev)...)
	tablet.heads = append(tablet.heads, root)
	restarts := 1
	for range rapid.IntRange(3, 24).Draw(t, "acts") {
		d := honest[rapid.IntRange(0, len(honest)-1).Draw(t, "who")]
		switch rapid.IntRange(0, 9).Draw(t, "act") {
		case 0:
			restarts++
			d.restarts(restarts)
		case 1:
			d.renames(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
		case 2, 3:
			from := honest[rapid.IntRange(0, len(honest)-1).Draw(t, "from")]
			entries := from.missing(d.log.Locator())
			shuffle(t, entries)
			d.mostly(from, entries)
		case 4:
			d.writes("text")
		default: // the tablet signs after something, and gives somebody what it signed
			tablet.n++
			after := tablet.heads[rapid.IntRange(0, len(tablet.heads)-1).Draw(t, "after")]
			epoch := after.Position.Epoch
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				epoch = epochOf("tablet", 50+rapid.IntRange(0, 3).Draw(t, "epoch"))
				if epoch == after.Position.Epoch {
					epoch = epochOf("tablet", 60)
				}
				tablet.after(after, epoch, fmt.Sprint(tablet.n))
			case 1:
				tablet.addsAfter(after, newDev(t, "extra"+string(rune('a'+rapid.IntRange(0, 2).Draw(t, "extra")))))
			case 2:
				h := tablet.text(after.Position.Seq+1, after)
				h.Epoch, h.Kind, h.Page = epoch, notebook.KindRoster, notebook.PageID{}
				tablet.signs(h, rosterDraft(t, &notebook.RosterChange{Act: notebook.RosterRename, Device: tablet.id(), Name: fmt.Sprint(tablet.n)}).Body)
			default:
				tablet.after(after, epoch, fmt.Sprint(tablet.n))
			}
			d.mostly(tablet.dev, tablet.signed)
		}
	}
	return honest
}

// mostly takes what can be taken.
func (d *dev) mostly(from *dev, entries []notebook.Entry) {
	d.t.Helper()
	if _, err := d.takeFrom(from.id(), entries...); err != nil && !Innocent(err) {
		d.t.Fatalf("%s takes from %s: %v", d.name, from.name, err)
	}
}

// Whatever histories a device signs, whoever gets which and in whatever order
// they come, devices that exchange all that they have are equal in all.
func TestLiesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := lies(t)
		for range 3 {
			for _, a := range honest {
				for _, b := range honest {
					entries := b.missing(a.log.Locator())
					shuffle(t, entries)
					a.mostly(b, entries)
				}
			}
		}
		alike(t, honest...)
		// One that joins now, from one or another of them, agrees too.
		for _, host := range honest {
			d := &dev{t: t, name: "fresh", signer: newDev(t, "fresh").signer, at: map[notebook.Place]notebook.Entry{}, void: map[notebook.Hash]string{}, records: map[string][]byte{}}
			l, v, err := JoinLog(d.id(), host.genesis())
			if err != nil {
				t.Fatal(err)
			}
			d.log = l
			l.Recall(d.look)
			d.keep(v)
			d.mostly(host, host.entries[1:])
			alike(t, host, d)
		}
	})
}

// A replay that is given other entries than the log took says so.
func TestReplayWantsTheLogsEntries(t *testing.T) {
	laptop, phone, tablet := household(t)
	a := tablet.writes("a")
	one, two := tablet.after(headOf(a), tablet.epoch, "one"), tablet.after(headOf(a), tablet.epoch, "two")
	laptop.take(a.Entry(), one, two)
	laptop.pull(phone)
	replay := func(entries []notebook.Entry) (n int, failed error) {
		for _, err := range laptop.log.Replay(func(yield func(notebook.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	all := laptop.entries
	if n, err := replay(all); n != len(all) || err != nil {
		t.Fatalf("of %d entries %d are replayed: %v", len(all), n, err)
	}
	for name, entries := range map[string][]notebook.Entry{
		"one less":      all[:len(all)-1],
		"one twice":     append(slices.Clone(all), all[len(all)-1]),
		"one left out":  slices.Concat(all[:2], all[3:]),
		"another order": slices.Concat(all[:1], []notebook.Entry{all[2], all[1]}, all[3:]),
		"a body changed": append(slices.Clone(all[:len(all)-1]), notebook.Entry{
			Header: all[len(all)-1].Header, Sig: all[len(all)-1].Sig, Body: []byte("other"),
		}),
		"one that was never taken": append(slices.Clone(all), tablet.after(headOfEntry(t, one), tablet.epoch, "three")),
	} {
		state := dump(laptop.log)
		if _, err := replay(entries); err == nil {
			t.Errorf("%s: replayed", name)
		}
		if dump(laptop.log) != state {
			t.Errorf("%s: changed the log", name)
		}
	}
}

// What the author of an entry long ago had seen is found again.
func TestRewind(t *testing.T) {
	_, phone, tablet := household(t)
	var want []*vector
	for i := range 3*rewindStep + 100 {
		if i%100 == 0 {
			phone.writes("x")
			tablet.pull(phone)
		}
		v := tablet.writes(fmt.Sprint(i))
		want = append(want, v.past.seen)
	}
	tablet.keep()
	c := tablet.log.forest.find(chainID{epochID: epochID{tablet.id(), tablet.epoch}})
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		seq := 1 + r.Uint64N(uint64(len(want)))
		got, err := tablet.log.rewind(c, seq)
		if err != nil || !reflect.DeepEqual(got.devices, want[seq-1].devices) {
			t.Fatalf("at %d: %v", seq, err)
		}
	}
	if n := len(c.steps); n != 1+len(want)/rewindStep && n > 1+len(want)/rewindStep {
		t.Errorf("%d steps", n)
	}
}

// A device with more histories than the members can have found has accomplices,
// and gets no more of them in by itself. What one honest device has taken the
// others take with what it writes: two that were each given as many are not
// apart for ever.
func TestManyForksDoNotPart(t *testing.T) {
	laptop, phone, tablet := household(t)
	root := headOf(tablet.writes("root"))
	exchange(laptop, phone, tablet.dev)
	for i, d := range []*dev{laptop, phone} {
		entries := make([]notebook.Entry, maxForks+1)
		for n := range entries {
			entries[n] = tablet.after(root, tablet.epoch, fmt.Sprint(i, n))
		}
		if vs, err := d.takeFrom([]*dev{phone, laptop}[i].id(), entries...); len(vs) != maxForks+1 {
			t.Fatalf("took %d, %v", len(vs), err)
		}
	}
	// As many heads as an entry can name, until all are named.
	for _, d := range []*dev{laptop, phone} {
		for {
			v, declared, err := d.log.Declare(d.signer, d.epoch, 1)
			if err != nil {
				t.Fatal(err)
			}
			if !declared {
				break
			}
			d.keep(v)
		}
		d.writes("honest")
	}
	exchange(laptop, phone)
	alike(t, laptop, phone)
}

// However many adds are void, who was added by one that stood where its entries
// were taken is nobody's stranger.
func TestManyVoidAddsDoNotPart(t *testing.T) {
	laptop, phone, tablet := household(t)
	root := headOf(tablet.writes("root"))
	exchange(laptop, phone, tablet.dev)
	ann := newDev(t, "ann")
	one := tablet.addsAfter(root, ann)
	laptop.takes(one)
	ann.log = laptop.log
	laptop.takes(sealed(t, ann.signer, ann.text(1, notebook.Head{}, headOfEntry(t, one)), []byte("from ann")))
	// The phone hears of many adds that are void, and of ann's last.
	at := root
	for i := range maxUnaddedDevices {
		x := newDev(t, fmt.Sprint("x", i))
		h := tablet.text(at.Position.Seq+1, at)
		h.Kind, h.Page = notebook.KindRoster, notebook.PageID{}
		e := tablet.signs(h, rosterDraft(t, &notebook.RosterChange{
			Act: notebook.RosterAdd, Device: x.id(), Name: x.name, Role: notebook.RoleMember, Number: 7,
			Joiner: AcceptJoin(x.signer, tablet.log.Notebook(), tablet.id(), 7, x.name),
		}).Body)
		if i == 0 {
			// The side of the phone is the one that stands.
			for n := 0; ; n++ {
				if stands, _ := sides(e, one); stands.Hash() == e.Hash() {
					break
				}
				h.Time = int64(n + 1)
				e = tablet.signs(h, e.Body)
			}
		}
		phone.takes(e)
		at = headOfEntry(t, e)
	}
	laptop.writes("on ann's")
	exchange(laptop, phone)
	alike(t, laptop, phone)
}

// While another history may not come to stand it is held, with what rests on it.
// One that does not change what stands comes in, and so do others once one has.
func TestCalm(t *testing.T) {
	laptop, phone, tablet := household(t)
	root := headOf(tablet.writes("root"))
	exchange(laptop, phone, tablet.dev)
	entries := make([]notebook.Entry, 4)
	for i := range entries {
		entries[i] = tablet.after(root, tablet.epoch, fmt.Sprint(i))
	}
	slices.SortFunc(entries, func(a, b notebook.Entry) int {
		x, y := a.Hash(), b.Hash()
		return bytes.Compare(y[:], x[:])
	})
	calm, asked := false, 0
	laptop.log.Calm(func() bool { asked++; return calm })
	laptop.takes(entries[1])
	if vs, err := laptop.takeFrom(phone.id(), entries[0]); len(vs) != 1 || vs[0].Void() != VoidLost || asked != 0 {
		t.Errorf("one that does not stand: took %d, %v, asked %d times", len(vs), err, asked)
	}
	phone.takeFrom(laptop.id(), entries...)
	rests := phone.writes("rests on it").Entry()
	if vs, err := laptop.takeFrom(phone.id(), entries[2], entries[3], rests); len(vs) != 0 || err != nil && !Innocent(err) || asked == 0 {
		t.Fatalf("took %d, %v, asked %d times", len(vs), err, asked)
	}
	if len(laptop.log.Retry()) != 0 || laptop.log.Overturned() {
		t.Fatal("what is held came in")
	}
	calm, asked = true, 0
	vs := laptop.log.Retry()
	if len(vs) != 3 || asked != 1 {
		t.Fatalf("took %d, asked %d times", len(vs), asked)
	}
	laptop.keep(vs...)
	exchange(laptop, phone)
	alike(t, laptop, phone)
}

// Who was removed passes nothing on any more.
func TestARemovedDeviceIsNoWitness(t *testing.T) {
	laptop, phone, tablet := household(t)
	root := headOf(tablet.writes("root"))
	exchange(laptop, phone, tablet.dev)
	entries := []notebook.Entry{tablet.after(root, tablet.epoch, "one"), tablet.after(root, tablet.epoch, "two"), tablet.after(root, tablet.epoch, "three")}
	laptop.take(entries[:2]...)
	other := laptop.backup()
	other.restarts(2)
	if vs, _ := other.takeFrom(phone.id(), entries[2]); len(vs) != 1 {
		t.Errorf("of a member: took %d", len(vs))
	}
	laptop.removes(phone)
	if vs, err := laptop.takeFrom(phone.id(), entries[2]); len(vs) != 0 || !errors.Is(err, ErrFrozen) {
		t.Errorf("took %d, %v", len(vs), err)
	}
}
