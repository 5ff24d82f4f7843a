package trust

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// The devices of the tables: self, and two others that the roster names.
func tableRoster(t tester) (self, laptop, phone notebook.DeviceID, roster *Roster) {
	a := newDev(t, "self").found()
	b := a.invite(newDev(t, "laptop"))
	c := a.invite(newDev(t, "my phone"))
	return a.id(), b.id(), c.id(), a.log.Roster()
}

func TestStanding(t *testing.T) {
	self, laptop, phone, roster := tableRoster(t)
	stranger := notebook.DeviceID{0xee}
	typed := func(d notebook.DeviceID) notebook.Author { return notebook.Author{Device: d, Class: notebook.Typed} }
	agent := func(d notebook.DeviceID, label string) notebook.Author {
		return notebook.Author{Device: d, Class: notebook.Agent, Label: label}
	}
	imported := func(d notebook.DeviceID, label string) notebook.Author {
		return notebook.Author{Device: d, Class: notebook.Import, Label: label}
	}
	moved := func(d notebook.DeviceID, from notebook.Author) notebook.Author {
		return notebook.Author{Device: d, Class: notebook.Moved, Source: notebook.Source{Device: from.Device, Class: from.Class, Label: from.Label}}
	}
	for _, c := range []struct {
		name   string
		origin []notebook.Author
		own    bool
		open   bool // not closed
		want   string
	}{
		{"typed here", []notebook.Author{typed(self)}, true, false, "local"},

		{"typed here, but never as a fence", []notebook.Author{typed(self)}, false, false, "structure"},
		{"typed here, not closed", []notebook.Author{typed(self)}, true, true, "structure"},
		{"nobody", nil, true, false, "structure"},
		{"nobody, not own, not closed", nil, false, true, "structure"},

		{"another device says typed", []notebook.Author{typed(laptop)}, true, false, "device:laptop"},
		{"another device says agent", []notebook.Author{agent(laptop, "clerk")}, true, false, "device:laptop"},
		{"another device says import", []notebook.Author{imported(laptop, "stdin")}, true, false, "device:laptop"},
		{"another device says it moved what was typed here", []notebook.Author{moved(laptop, typed(self))}, true, false, "device:laptop"},
		{"another device says a class that there is not", []notebook.Author{{Device: laptop, Class: 9}}, true, false, "device:laptop"},
		{"one character of another device", []notebook.Author{typed(self), typed(laptop)}, true, false, "device:laptop"},
		{"two others", []notebook.Author{typed(laptop), typed(phone)}, false, false, `device:laptop device:"my phone"`},
		{"a device that the roster does not know", []notebook.Author{typed(stranger)}, true, false, "device:" + stranger.Short()},
		{"no device at all", []notebook.Author{typed(notebook.DeviceID{})}, true, false, "structure"},
		{"another device, not closed", []notebook.Author{typed(laptop)}, false, true, "device:laptop structure"},

		{"an agent of this device", []notebook.Author{agent(self, "clerk")}, true, false, "agent:clerk"},
		{"an agent and a person", []notebook.Author{typed(self), agent(self, "clerk")}, true, false, "agent:clerk"},
		{"an import", []notebook.Author{imported(self, "old vault")}, true, false, `import:"old vault"`},
		{"all of them", []notebook.Author{imported(self, "vault"), agent(self, "clerk"), typed(laptop), typed(self)}, true, false, "agent:clerk device:laptop import:vault"},

		{"moved from another device", []notebook.Author{moved(self, typed(laptop))}, true, false, "device:laptop"},
		{"moved from another device's agent", []notebook.Author{moved(self, agent(laptop, "clerk"))}, true, false, "device:laptop"},
		{"moved from an import", []notebook.Author{moved(self, imported(self, "vault"))}, true, false, "import:vault"},
		{"moved from what was typed here: not typed here", []notebook.Author{moved(self, typed(self))}, true, false, "structure"},
		{"moved among what was typed here", []notebook.Author{typed(self), moved(self, typed(self))}, true, false, "structure"},
		{"moved from nowhere", []notebook.Author{{Device: self, Class: notebook.Moved}}, true, false, "structure"},

		{"typed with a label", []notebook.Author{{Device: self, Class: notebook.Typed, Label: "x"}}, true, false, "structure"},
		{"typed with a source", []notebook.Author{{Device: self, Class: notebook.Typed, Source: notebook.Source{Device: self, Class: notebook.Typed}}}, true, false, "structure"},
		{"no class", []notebook.Author{{Device: self}}, true, false, "structure"},

		{"a label that forges an author", []notebook.Author{agent(self, "x local")}, true, false, `agent:"x local"`},
		{"a label that draws over the line", []notebook.Author{imported(self, "a\u202eb")}, true, false, `import:"a\\u{202e}b"`},
	} {
		s := Stand(self, roster, notebook.NewOrigin(c.origin...), c.own, !c.open)
		if got := s.String(); got != c.want {
			t.Errorf("%s: stands %s, want %s", c.name, got, c.want)
		}
		if s.Local() != (c.want == "local") {
			t.Errorf("%s: local %v", c.name, s.Local())
		}
	}
	if s := (Standing{}); s.Local() || s.String() != "structure" {
		t.Errorf("the zero standing is %v", s)
	}
	if s := Stand(self, nil, notebook.NewOrigin(typed(laptop)), true, true); s.Local() || s.String() != "device:"+laptop.Short() {
		t.Errorf("without a roster: %v", s)
	}
}

// A name that could be taken for another device's is shown with its fingerprint,
// as is the other's: whichever was there first, also after it was removed.
func TestNamesThatTwoDevicesShare(t *testing.T) {
	self := newDev(t, "self").found()
	phone := self.invite(newDev(t, "phone"))
	tablet := self.invite(newDev(t, "tablet"))
	thief := self.invite(newDev(t, "thief"))
	stands := func(d *dev, want string) {
		t.Helper()
		for _, roster := range []*Roster{self.log.Roster(), must(OpenLog(self.id(), sorted(self.records))).Roster()} {
			s := Stand(self.id(), roster, notebook.NewOrigin(notebook.Author{Device: d.id(), Class: notebook.Typed}), false, true)
			if s.String() != want {
				t.Errorf("%s stands %v, want %s", d.name, s, want)
			}
			if shown := roster.Shown(d.id()); !strings.Contains(want, word(shown)) {
				t.Errorf("%s is shown as %q", d.name, shown)
			}
		}
	}
	fingerprinted := func(d *dev, name string) string { return "device:" + word(name+"~"+d.id().Short()) }
	stands(phone, "device:phone")
	for _, name := range []string{
		"phone", "Phone", "PHONE", "phone ", "рhone", "phοne", "РНОΝЕ", "pho\u200bne", "phone\u00ad", "ｐｈｏｎｅ", "𝐩hone", "phone\u3164",
	} {
		thief.renames(name)
		self.pull(thief)
		stands(thief, fingerprinted(thief, name))
		stands(phone, fingerprinted(phone, "phone"))
		stands(tablet, "device:tablet") // no other is touched
	}
	// A name cannot bring its own fingerprint, or be none.
	for _, name := range []string{"tablet~" + tablet.id().Short(), "tablet∼" + tablet.id().Short(), "\u200b", "~"} {
		thief.renames(name)
		self.pull(thief)
		stands(thief, fingerprinted(thief, name))
	}
	stands(phone, "device:phone")
	thief.renames("phonograph")
	self.pull(thief)
	stands(thief, "device:phonograph")
	self.removes(tablet)
	thief.renames("Tablet")
	self.pull(thief)
	stands(thief, fingerprinted(thief, "Tablet"))
	stands(tablet, fingerprinted(tablet, "tablet"))
}

// What another device says of itself and of its text chooses no line of the
// policy: its key does.
func TestClaimsChooseNoRule(t *testing.T) {
	self := newDev(t, "self").found()
	phone := self.invite(newDev(t, "phone"))
	thief := self.invite(newDev(t, "thief"))
	p := policyOf(t, "[foreign]\nlua = \"ask\"\n[device."+phone.id().String()+"]\nlua = \"strict\"\n")
	rules := func(d *dev, want rule) {
		t.Helper()
		var claims []notebook.Author
		for _, label := range []string{"", "phone", phone.id().String(), "device:phone", "local", "clerk"} {
			for class := range notebook.Class(7) {
				claims = append(claims, notebook.Author{Device: d.id(), Class: class, Label: label})
				for _, from := range []notebook.DeviceID{self.id(), phone.id(), thief.id(), {}} {
					claims = append(claims, notebook.Author{Device: d.id(), Class: class, Label: label, Source: notebook.Source{Device: from, Class: notebook.Typed, Label: label}})
				}
			}
		}
		for _, a := range claims {
			s := Stand(self.id(), self.log.Roster(), notebook.NewOrigin(a), true, true)
			if r, line := p.of(s, "lua"); r != want || s.Local() {
				t.Errorf("%+v of %s stands %v: %s", a, d.name, s, line)
			}
		}
	}
	rules(phone, ruleStrict)
	rules(thief, ruleAsk)
	for _, name := range []string{"phone", phone.id().String(), phone.id().Short(), "device." + phone.id().String(), "local", "foreign", "self"} {
		thief.renames(name)
		self.pull(thief)
		rules(thief, ruleAsk)
	}
	phone.renames("thief")
	self.pull(phone)
	rules(phone, ruleStrict)
	// This device's own agents and imports are no device, whatever they are called.
	p = policyOf(t, "[foreign]\nlua = \"ask\"\n[device."+phone.id().String()+"]\nlua = \"strict\"\n[device."+notebook.DeviceID{}.String()+"]\nlua = \"strict\"\n")
	for _, class := range []notebook.Class{notebook.Agent, notebook.Import} {
		s := Stand(self.id(), self.log.Roster(), notebook.NewOrigin(notebook.Author{Device: self.id(), Class: class, Label: phone.id().String()}), true, true)
		if r, line := p.of(s, "lua"); r != ruleAsk {
			t.Errorf("%v: %s", s, line)
		}
	}
}

// drawAuthor is any author, mostly a likely one.
func drawAuthor(t *rapid.T, devices []notebook.DeviceID) notebook.Author {
	device := rapid.SampledFrom(devices)
	label := rapid.SampledFrom([]string{"", "clerk", "vault", "a b", "\x00"})
	class := rapid.Custom(func(t *rapid.T) notebook.Class { return notebook.Class(rapid.IntRange(0, 5).Draw(t, "class")) })
	a := notebook.Author{Device: device.Draw(t, "device"), Class: class.Draw(t, "class")}
	if rapid.Bool().Draw(t, "labelled") {
		a.Label = label.Draw(t, "label")
	}
	if a.Class == notebook.Moved || rapid.IntRange(0, 9).Draw(t, "sourced") == 0 {
		a.Source = notebook.Source{Device: device.Draw(t, "source"), Class: class.Draw(t, "of"), Label: label.Draw(t, "as")}
	}
	return a
}

func TestMoreAuthorsNeverStandHigher(t *testing.T) {
	self, laptop, phone, roster := tableRoster(t)
	devices := []notebook.DeviceID{self, self, laptop, phone, {}, {0xee}}
	rapid.Check(t, func(t *rapid.T) {
		var authors []notebook.Author
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			authors = append(authors, drawAuthor(t, devices))
		}
		if rapid.Bool().Draw(t, "typed") {
			authors = []notebook.Author{{Device: self, Class: notebook.Typed}}
		}
		own, closed := rapid.Bool().Draw(t, "own"), rapid.Bool().Draw(t, "closed")
		before := Stand(self, roster, notebook.NewOrigin(authors...), own, closed)
		after := Stand(self, roster, notebook.NewOrigin(append(authors, drawAuthor(t, devices))...), own, closed)
		if len(authors) > 0 && after.Local() && !before.Local() {
			t.Fatalf("%v became local by one author more", authors)
		}
		if before.Local() && (!own || !closed) {
			t.Fatal("local without being own and closed")
		}
		for _, p := range before.parties() {
			if p != structure && !slices.Contains(after.parties(), p) {
				t.Fatalf("%v is no longer among %v", p, after)
			}
		}
		if n := len(strings.Fields(before.String())); before.String() == "" || n < 1 {
			t.Fatal("no words")
		}
	})
}
