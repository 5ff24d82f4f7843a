package trust

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

func TestTwoDevicesBecomeEqual(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	laptop.writes("from the laptop")
	phone.writes("from the phone")
	phone.writes("more from the phone")
	exchange(laptop, phone)

	if a, b := laptop.log.Heads(), phone.log.Heads(); !reflect.DeepEqual(a, b) || len(a) != 2 {
		t.Errorf("heads differ:\n%v\n%v", a, b)
	}
	if a, b := laptop.log.Roster().Members(), phone.log.Roster().Members(); !reflect.DeepEqual(a, b) || len(a) != 2 {
		t.Errorf("rosters differ:\n%v\n%v", a, b)
	}
	if len(laptop.entries) != 5 {
		t.Errorf("the laptop has %d entries, want genesis, add and three texts", len(laptop.entries))
	}
	if got := laptop.missing(phone.log.Heads()); len(got) != 0 {
		t.Errorf("equal devices would exchange %d entries", len(got))
	}
}

func TestSawIsTheCausalPast(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	l1 := laptop.writes("l1")
	p1 := phone.writes("p1") // concurrent with l1
	laptop.pull(phone)
	l2 := laptop.writes("l2")
	laptop.restarts(2)
	l3 := laptop.writes("l3") // another epoch
	phone.pull(laptop)
	p2 := phone.writes("p2")

	at := func(v Verified) notebook.Position { return v.Header().Position() }
	for _, c := range []struct {
		name string
		v    Verified
		p    notebook.Position
		want bool
	}{
		{"the next sees the one before", l2, at(l1), true},
		{"the one before does not see the next", l1, at(l2), false},
		{"nobody sees itself", l1, at(l1), false},
		{"what was merged is seen", l2, at(p1), true},
		{"what was written at the same time is not", l1, at(p1), false},
		{"nor the other way round", p1, at(l1), false},
		{"a new epoch sees what it continues", l3, at(l2), true},
		{"and what that had merged", l3, at(p1), true},
		{"another device sees the epoch", p2, at(l3), true},
		{"and through it what it continues", p2, at(l1), true},
		{"its own entries", p2, at(p1), true},
		{"the future of an old epoch is not seen", p2, notebook.Position{Device: laptop.id(), Epoch: epochOf("laptop", 1), Seq: 99}, false},
		{"an unknown epoch is not seen", p2, notebook.Position{Device: laptop.id(), Epoch: epochOf("laptop", 9), Seq: 1}, false},
		{"place 0 is no entry", p2, notebook.Position{Device: laptop.id(), Epoch: epochOf("laptop", 1)}, false},
		{"the zero value has seen nothing", Verified{}, at(l1), false},
	} {
		if got := c.v.Saw(c.p); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A device that was restored from a backup writes beside what it forgot, and
// gets that back from its peers.
func TestRestoredBackupIsNoFork(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	laptop.writes("kept")
	backup := laptop.backup()
	lost := laptop.writes("lost with the disk")
	phone.pull(laptop)

	backup.restarts(2)
	again := backup.writes("after the restore")
	got := backup.pull(phone)
	if len(got) != 1 || got[0].Hash() != lost.Hash() || got[0].Header().Device != backup.id() {
		t.Errorf("came back: %v", got)
	}
	phone.pull(backup)
	if len(phone.log.Frozen()) > 0 {
		t.Error("a restored backup was taken for a contradiction")
	}
	exchange(backup, phone)
	if a, b := backup.log.Heads(), phone.log.Heads(); !reflect.DeepEqual(a, b) || len(a) != 2 {
		t.Errorf("heads %v and %v: want both logs of the laptop, the phone having written nothing", a, b)
	}
	next := backup.writes("goes on")
	if !next.Saw(lost.Header().Position()) || !next.Saw(again.Header().Position()) {
		t.Error("the next entry does not name both logs of its device")
	}
	// From now on the one log continues both in what it has seen.
	backup.restarts(3)
	if v := backup.writes("third epoch"); !v.Saw(lost.Header().Position()) || !v.Saw(next.Header().Position()) {
		t.Error("a new epoch forgets what the one before had seen")
	}
	phone.pull(backup)
}

func TestEntriesWaitForTheirPast(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	phone.pull(laptop)
	a := laptop.writes("a").Entry()
	b := laptop.writes("b").Entry()
	phone.pull(laptop)
	c := phone.writes("c").Entry() // has seen b
	d := phone.writes("d").Entry()

	if vs := tablet.takes(d, c, b); len(vs) != 0 || tablet.log.Waiting() != 3 {
		t.Fatalf("took %d, %d wait", len(vs), tablet.log.Waiting())
	}
	if vs := tablet.takes(d, c, b); len(vs) != 0 || tablet.log.Waiting() != 3 {
		t.Fatalf("again: took %d, %d wait", len(vs), tablet.log.Waiting())
	}
	before := tablet.log.Heads()
	vs := tablet.takes(a)
	if len(vs) != 4 || tablet.log.Waiting() != 0 {
		t.Fatalf("took %d, %d wait", len(vs), tablet.log.Waiting())
	}
	for i, want := range []notebook.Entry{a, b, c, d} {
		if got := vs[i].Entry(); got.Hash() != want.Hash() {
			t.Errorf("entry %d came in another order", i)
		}
	}
	if reflect.DeepEqual(before, tablet.log.Heads()) {
		t.Error("heads did not advance")
	}
	if vs := tablet.takes(a, b, c, d); len(vs) != 0 {
		t.Errorf("duplicates gave %d entries", len(vs))
	}
}

func TestRefusals(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	v := phone.writes("honest")
	other := newDev(t, "other").found()
	stranger := newDev(t, "stranger")
	stranger.log = laptop.log
	tip := headOf(v)
	add := laptop.log.Heads()[0]

	laptop.pull(phone)
	good := sealed(t, phone.signer, phone.text(2, tip), []byte("next"))
	edit := func(f func(*notebook.Entry)) notebook.Entry {
		e := notebook.Entry{Header: slices.Clone(good.Header), Sig: slices.Clone(good.Sig), Body: slices.Clone(good.Body)}
		f(&e)
		return e
	}
	foreign := phone.text(2, tip)
	foreign.Notebook = other.log.Notebook()
	for _, c := range []struct {
		name string
		e    notebook.Entry
		want error
	}{
		{"no header", edit(func(e *notebook.Entry) { e.Header = nil }), ErrMalformed},
		{"header with a byte more", edit(func(e *notebook.Entry) { e.Header = append(e.Header, 0) }), ErrMalformed},
		{"changed header", edit(func(e *notebook.Entry) { e.Header[len(e.Header)-1] ^= 1 }), ErrSignature},
		{"changed signature", edit(func(e *notebook.Entry) { e.Sig[10] ^= 1 }), ErrSignature},
		{"no signature", edit(func(e *notebook.Entry) { e.Sig = nil }), ErrSignature},
		{"longer signature", edit(func(e *notebook.Entry) { e.Sig = append(e.Sig, 0) }), ErrSignature},
		{"signed by another", edit(func(e *notebook.Entry) { e.Sig = laptop.signer.sign(entryDomain, e.Header) }), ErrSignature},
		{"signed for another purpose", edit(func(e *notebook.Entry) { e.Sig = phone.signer.sign(joinDomain, e.Header) }), ErrSignature},
		{"changed body", edit(func(e *notebook.Entry) { e.Body[0] ^= 1 }), ErrBody},
		{"longer body", edit(func(e *notebook.Entry) { e.Body = append(e.Body, 0) }), ErrBody},
		{"no body of a text", edit(func(e *notebook.Entry) { e.Body = nil }), ErrBody},
		{"another notebook", sealed(t, phone.signer, foreign, []byte("x")), ErrNotebook},
		{"another genesis", other.genesis(), ErrNotebook},
		{"nobody's device", sealed(t, stranger.signer, stranger.text(1, notebook.Head{}), []byte("x")), ErrStranger},
		{"nobody's device that has seen everything", sealed(t, stranger.signer, stranger.text(1, notebook.Head{}, add), []byte("x")), ErrStranger},
		{"a member that has not seen its own add", func() notebook.Entry {
			h := phone.text(1, notebook.Head{})
			h.Epoch = epochOf("phone", 7)
			return sealed(t, phone.signer, h, []byte("x"))
		}(), ErrStranger},
	} {
		state := dump(laptop.log)
		vs, err := laptop.take(c.e)
		if len(vs) != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: took %d, error %v, want %v", c.name, len(vs), err, c.want)
		}
		if dump(laptop.log) != state {
			t.Errorf("%s: changed the log", c.name)
		}
	}
	if vs := laptop.takes(good); len(vs) != 1 {
		t.Error("the entry that all of them were made from was not taken")
	}
	if _, err := laptop.take(notebook.Entry{Header: []byte{0x82, 9, 9}, Sig: make([]byte, 64)}); !errors.Is(err, ErrNewer) {
		t.Errorf("an entry of the future: %v", err)
	}
}

func TestWhatCameBeforeTheOffenderIsTaken(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	a, b := phone.writes("a").Entry(), phone.writes("b").Entry()
	bad := b
	bad.Sig = make([]byte, 64)
	c := phone.writes("c").Entry()
	vs, err := laptop.take(a, bad, c)
	if len(vs) != 1 || !errors.Is(err, ErrSignature) {
		t.Errorf("took %d, %v", len(vs), err)
	}
	if vs := laptop.takes(b, c); len(vs) != 2 {
		t.Errorf("then took %d", len(vs))
	}
}

func TestNewerEntryHoldsUpNobodyElse(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	a := phone.writes("a").Entry()
	future := notebook.Entry{Header: []byte{0x82, 2, 2}, Sig: make([]byte, 64), Body: []byte("?")}
	b := tablet.writes("b").Entry()
	vs, err := laptop.take(a, future, b)
	if len(vs) != 2 || !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "update noted here") {
		t.Errorf("took %d, %v", len(vs), err)
	}
}

func TestOwnEpochFromElsewhere(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	v := laptop.writes("here")
	thief := sealed(t, laptop.signer, laptop.text(3, headOf(v)), []byte("elsewhere"))
	if vs, err := laptop.take(thief); len(vs) != 1 || !errors.Is(err, ErrCloned) || !Innocent(err) {
		t.Errorf("an entry of the epoch it is writing in: took %d, %v", len(vs), err)
	}
	if vs, err := laptop.take(thief); len(vs) != 0 || err != nil {
		t.Errorf("the same again: took %d, %v", len(vs), err)
	}
	other := laptop.text(1, headOf(v))
	other.Epoch = epochOf("laptop", 8)
	if vs := laptop.takes(sealed(t, laptop.signer, other, []byte("clone"))); len(vs) != 1 {
		t.Error("refused its own device under another epoch")
	}
}

func TestWaitingIsBounded(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	patient := tablet.writes("1")
	waits := tablet.writes("2").Entry()
	laptop.takes(waits)

	phone.writes("missing")
	prev := headOf(phone.writes("first that waits"))
	var sent int
	for i := range 3 * maxWaitingDevice {
		body := make([]byte, 1+i%50000)
		e := sealed(t, phone.signer, phone.text(prev.Position.Seq+1, prev), body)
		prev = notebook.Head{Position: notebook.Position{Device: phone.id(), Epoch: phone.epoch, Seq: prev.Position.Seq + 1}, Hash: e.Hash()}
		laptop.takes(e)
		sent++
		w := laptop.log.waiting
		if n := w.all.entries.Len(); n > maxWaitingDevice+1 || w.all.bytes > maxDeviceBytes+4096 {
			t.Fatalf("after %d: %d entries of %d bytes wait", sent, n, w.all.bytes)
		}
	}
	if laptop.log.Waiting() < 100 {
		t.Errorf("only %d wait: the bound was not reached", laptop.log.Waiting())
	}
	for i := range 3 * maxWaitingStrangers {
		s := newDev(t, "stranger"+string(rune('a'+i)))
		s.log = laptop.log
		laptop.takes(sealed(t, s.signer, s.text(1, notebook.Head{}, notebook.Head{
			Position: notebook.Position{Device: phone.id(), Epoch: phone.epoch, Seq: 1 << 30}, Hash: notebook.Hash{1},
		}), []byte("x")))
	}
	if n := laptop.log.waiting.owners[notebook.DeviceID{}].entries.Len(); n != maxWaitingStrangers {
		t.Errorf("%d entries of strangers wait", n)
	}
	if vs := laptop.takes(patient.Entry()); len(vs) != 2 {
		t.Errorf("a flood pushed out what another device had waiting: took %d", len(vs))
	}
	w := laptop.log.waiting
	for _, p := range w.byHash {
		w.remove(p)
	}
	if len(w.byNeed)+len(w.owners)+w.all.bytes+w.all.entries.Len() != 0 {
		t.Errorf("something is left of an empty waiting set: %d %d %d", len(w.byNeed), len(w.owners), w.all.bytes)
	}
}

// What waited and then could not come in is no fault of who sent what it waited for.
func TestDroppedIsToldApart(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	v := phone.writes("a")
	s := newDev(t, "stranger")
	s.log = laptop.log
	laptop.takes(sealed(t, s.signer, s.text(1, notebook.Head{}, headOf(v)), []byte("x")))
	if vs := laptop.takes(v.Entry()); len(vs) != 1 {
		t.Fatalf("took %d", len(vs))
	}
	if d := laptop.log.Dropped(); len(d) != 1 || !errors.Is(d[0], ErrStranger) {
		t.Errorf("dropped %v", d)
	}
	if d := laptop.log.Dropped(); len(d) != 0 {
		t.Errorf("told twice: %v", d)
	}
}

// A peer that has not heard of a device's newest epochs is not sent everything
// that it has of the older ones.
func TestLocatorSkipsWhatIsShared(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	for range 50 {
		laptop.writes("long ago")
	}
	phone.pull(laptop)
	laptop.restarts(2)
	laptop.writes("new")
	laptop.restarts(3)
	laptop.writes("newer")
	if got := len(phone.missing(laptop.log.Locator())); got != 0 {
		t.Errorf("the phone would send %d entries that the laptop wrote itself", got)
	}
	if got := len(laptop.missing(phone.log.Locator())); got != 2 {
		t.Errorf("the laptop would send %d entries, want 2", got)
	}
	if err := notebook.CheckHeads(laptop.log.Locator()); err != nil {
		t.Error(err)
	}
}

func TestMoreMergedThanOneEntryNames(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	base := laptop.log.Heads()[0]
	laptop.writes("on")
	var last []notebook.Head
	for i := range 50 { // as many logs of one device, as from 50 restored backups
		h := laptop.text(1, base)
		h.Epoch = epochOf("laptop", 100+i)
		e := sealed(t, laptop.signer, h, []byte("x"))
		phone.takes(e)
		last = append(last, notebook.Head{Position: notebook.Position{Device: laptop.id(), Epoch: h.Epoch, Seq: 1}, Hash: e.Hash()})
	}
	if _, err := phone.log.Append(phone.signer, phone.epoch, textDraft("x")); !errors.Is(err, ErrUndeclared) {
		t.Fatalf("named %d logs in one entry: %v", len(last), err)
	}
	for i := 0; ; i++ {
		v, more, err := phone.log.Declare(phone.signer, phone.epoch, 1)
		if err != nil || i > 3 {
			t.Fatal(i, err)
		}
		if !more {
			break
		}
		phone.keep(v)
	}
	v := phone.writes("x")
	for _, h := range last {
		if !v.Saw(h.Position) {
			t.Errorf("has not seen %v", h.Position)
		}
	}
	if got := phone.log.Roster().Name(phone.id()); got != "phone" {
		t.Errorf("declaring renamed it to %q", got)
	}
	laptop.pull(phone)
}

// A device with more logs than anybody has honestly gets no more of them in,
// unless the entry of a member rests on one.
func TestTooManyLogsOfOneDevice(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := laptop.invite(newDev(t, "phone"))
	tablet := laptop.invite(newDev(t, "tablet"))
	added := laptop.log.Heads()[0]
	base := headOf(phone.writes("base"))
	laptop.pull(phone)
	tablet.pull(phone)
	leaf := func(i int) notebook.Entry {
		h := phone.text(1, base, added)
		h.Epoch = epochOf("phone", 100+i)
		return sealed(t, phone.signer, h, []byte("x"))
	}
	for i := range maxLeaves {
		laptop.takes(leaf(i))
	}
	if vs, err := laptop.take(leaf(200)); len(vs) != 0 || !errors.Is(err, ErrLeaves) {
		t.Errorf("took %d, %v", len(vs), err)
	}
	tablet.takes(leaf(200))
	if vs := laptop.takes(tablet.writes("rests on it").Entry()); len(vs) != 2 {
		t.Errorf("took %d, want the tablet's and what it rests on", len(vs))
	}
}

// history drives a few devices through random acts and delivers in random order.
func history(t *rapid.T) []*dev {
	laptop := newDev(t, "laptop").found()
	devices := []*dev{laptop}
	for _, name := range []string{"phone", "tablet"} {
		devices = append(devices, laptop.invite(newDev(t, name)))
	}
	exchange(devices...)
	restarts := 1
	for range rapid.IntRange(3, 20).Draw(t, "acts") {
		d := rapid.SampledFrom(devices).Draw(t, "who")
		switch rapid.IntRange(0, 9).Draw(t, "act") {
		case 0:
			restarts++
			d.restarts(restarts)
		case 1:
			d.renames(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
		case 2:
			if n := newDev(t, "extra"+string(rune('a'+len(devices)))); len(devices) < 6 {
				devices = append(devices, d.invite(n))
			}
		case 3, 4, 5:
			from := rapid.SampledFrom(devices).Draw(t, "from")
			entries := from.missing(d.log.Heads())
			shuffle(t, entries)
			d.takes(entries...)
		default:
			d.writes("text")
		}
	}
	return devices
}

func shuffle(t *rapid.T, entries []notebook.Entry) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 1))
	r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
}

func TestShuffledHistoriesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := history(t)
		for range 2 {
			for _, a := range devices {
				for _, b := range devices {
					entries := b.missing(a.log.Locator())
					shuffle(t, entries)
					a.takes(entries...)
				}
			}
		}
		first := devices[0]
		for _, d := range devices {
			if w := d.log.Waiting(); w != 0 {
				t.Errorf("%s: %d still wait", d.name, w)
			}
			if len(d.entries) != len(first.entries) {
				t.Errorf("%s has %d entries, %s %d", d.name, len(d.entries), first.name, len(first.entries))
			}
			if a, b := first.log.Heads(), d.log.Heads(); !reflect.DeepEqual(a, b) {
				t.Errorf("heads of %s and %s:\n%v\n%v", first.name, d.name, a, b)
			}
			if a, b := first.log.Roster().Members(), d.log.Roster().Members(); !reflect.DeepEqual(a, b) {
				t.Errorf("rosters of %s and %s:\n%v\n%v", first.name, d.name, a, b)
			}
		}
	})
}

func TestReopenedLogIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, d := range history(t) {
			for _, p := range d.log.waiting.byHash {
				d.log.waiting.remove(p) // waiting entries are not kept
			}
			again, err := OpenLog(d.id(), sorted(d.records))
			if err != nil {
				t.Fatal(err)
			}
			if a, b := dump(d.log), dump(again); a != b {
				t.Fatalf("%s: reopened log differs:\n%s\n%s", d.name, a, b)
			}
			if !reflect.DeepEqual(d.log.Locator(), again.Locator()) {
				t.Error("another locator")
			}
		}
	})
}

// What an entry has seen is decided by its header and what that rests on: every
// device says the same of every two entries, and it is an order.
func TestAllDevicesAgreeOnThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := history(t)
		exchange(devices...)
		var said map[[2]notebook.Position]bool
		for _, d := range devices {
			replayed, first, err := JoinLog(d.id(), d.genesis())
			if err != nil {
				t.Fatal(err)
			}
			entries := slices.Clone(d.entries[1:])
			shuffle(t, entries)
			vs, err := replayed.Take(notebook.DeviceID{}, entries)
			if err != nil || len(vs) != len(entries) {
				t.Fatalf("replayed %d of %d: %v", len(vs), len(entries), err)
			}
			vs = append([]Verified{first}, vs...)
			says := make(map[[2]notebook.Position]bool)
			for i, v := range vs {
				for j, w := range vs {
					saw := v.Saw(w.Header().Position())
					if saw && j >= i {
						t.Fatalf("%v has seen %v and came before it", v.Header().Position(), w.Header().Position())
					}
					says[[2]notebook.Position{v.Header().Position(), w.Header().Position()}] = saw
				}
			}
			if said != nil && !reflect.DeepEqual(said, says) {
				t.Fatalf("%s disagrees", d.name)
			}
			said = says
		}
	})
}

func TestOpenLogRefuses(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	laptop.invite(newDev(t, "phone"))
	laptop.restarts(2)
	laptop.writes("x")
	if _, err := OpenLog(laptop.id(), sorted(laptop.records)); err != nil {
		t.Fatal(err)
	}
	edit := func(f func(map[string][]byte)) map[string][]byte {
		b := laptop.backup().records
		f(b)
		return b
	}
	chainKey := func(n int) string {
		e := epochOf("laptop", n)
		id := laptop.id()
		return "c" + string(id[:]) + string(e[:])
	}
	for name, records := range map[string]map[string][]byte{
		"nothing":            {},
		"no self":            edit(func(m map[string][]byte) { delete(m, "s") }),
		"unknown key":        edit(func(m map[string][]byte) { m["zz"] = []byte{1} }),
		"empty value":        edit(func(m map[string][]byte) { m["s"] = nil }),
		"newer record":       edit(func(m map[string][]byte) { m["s"] = slices.Concat([]byte{2}, m["s"][1:]) }),
		"broken record":      edit(func(m map[string][]byte) { m["s"] = m["s"][:20] }),
		"missing base epoch": edit(func(m map[string][]byte) { delete(m, chainKey(1)) }),
	} {
		if _, err := OpenLog(laptop.id(), sorted(records)); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := OpenLog(newDev(t, "phone").id(), sorted(laptop.records)); err == nil || !strings.Contains(err.Error(), "do not belong together") {
		t.Errorf("opened with another device's key: %v", err)
	}
}

func TestAppendRefuses(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	phone := newDev(t, "phone")
	l, _, err := JoinLog(phone.id(), laptop.genesis())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(phone.signer, phone.epoch, textDraft("x")); err == nil || !strings.Contains(err.Error(), "not in the notebook yet") {
		t.Errorf("a device wrote before it was added: %v", err)
	}
	if _, err := laptop.log.Append(phone.signer, phone.epoch, textDraft("x")); err == nil {
		t.Error("wrote with another's key")
	}
	for name, d := range map[string]Draft{
		"no kind":       {Page: notebook.PageID{1}, Class: notebook.Typed, Body: []byte("x")},
		"no page":       {Kind: notebook.KindText, Class: notebook.Typed, Body: []byte("x")},
		"no body":       {Kind: notebook.KindText, Page: notebook.PageID{1}, Class: notebook.Typed},
		"too large":     {Kind: notebook.KindText, Page: notebook.PageID{1}, Class: notebook.Typed, Body: make([]byte, notebook.MaxText+1)},
		"no class":      {Kind: notebook.KindText, Page: notebook.PageID{1}, Body: []byte("x")},
		"broken roster": {Kind: notebook.KindRoster, Class: notebook.Typed, Body: []byte("x")},
		"second genesis": rosterDraft(t, &notebook.RosterChange{
			Act: notebook.RosterGenesis, Device: laptop.id(), Name: "x", Role: notebook.RoleMember,
		}),
	} {
		before := dump(laptop.log)
		if _, err := laptop.log.Append(laptop.signer, laptop.epoch, d); err == nil {
			t.Errorf("%s: appended", name)
		}
		if dump(laptop.log) != before {
			t.Errorf("%s: changed the log", name)
		}
	}
	laptop.writes("x")
}

// Many devices together reach the bound of all: who uses most is pushed out.
func TestAllWaitingIsBounded(t *testing.T) {
	laptop := newDev(t, "laptop").found()
	var devices []*dev
	for i := range 6 {
		devices = append(devices, laptop.invite(newDev(t, "device "+string(rune('a'+i)))))
	}
	quiet := devices[5]
	first := quiet.writes("1")
	laptop.takes(quiet.writes("2").Entry())
	for _, d := range devices[:5] {
		prev := headOf(d.writes("missing"))
		for range maxWaitingDevice {
			prev = notebook.Head{Position: notebook.Position{Device: d.id(), Epoch: d.epoch, Seq: prev.Position.Seq + 1}, Hash: notebook.Hash{1}}
			laptop.takes(sealed(t, d.signer, d.text(prev.Position.Seq+1, prev), []byte("x")))
		}
		if n := laptop.log.Waiting(); n > maxWaiting {
			t.Fatalf("%d entries wait", n)
		}
	}
	if n := laptop.log.Waiting(); n != maxWaiting {
		t.Errorf("%d entries wait: the bound was not reached", n)
	}
	if vs := laptop.takes(first.Entry()); len(vs) != 2 {
		t.Errorf("a flood by others pushed out what a quiet device had waiting: took %d", len(vs))
	}
}
