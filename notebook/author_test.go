package notebook

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anAuthor draws from few devices and names, so that authors are often equal or
// differ in one thing.
func anAuthor() *rapid.Generator[Author] {
	return rapid.Custom(func(t *rapid.T) Author {
		d := device(rapid.SampledFrom([]byte{1, 2}).Draw(t, "device"))
		c := rapid.SampledFrom([]Class{Typed, Agent, Import, Moved}).Draw(t, "class")
		name := rapid.SampledFrom([]string{"x", "y"})
		switch c {
		case Typed:
			return Author{Device: d, Class: c}
		case Moved:
			s := Source{Device: device(rapid.SampledFrom([]byte{1, 2}).Draw(t, "source")), Class: rapid.SampledFrom([]Class{Typed, Agent, Import}).Draw(t, "class")}
			if s.Class != Typed {
				s.Label = name.Draw(t, "name")
			}
			return Author{Device: d, Class: c, Source: s}
		}
		return Author{Device: d, Class: c, Label: name.Draw(t, "name")}
	})
}

func TestOriginIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(anAuthor(), 0, 6)
		a, b, c := some.Draw(t, "a"), some.Draw(t, "b"), some.Draw(t, "c")
		kept := slices.Clone(a)
		o, p, q := NewOrigin(a...), NewOrigin(b...), NewOrigin(c...)
		if !slices.Equal(a, kept) {
			t.Error("making an origin changed its input")
		}
		for _, x := range slices.Concat(a, b) {
			if !slices.Contains(o.Union(p), x) {
				t.Errorf("%v is missing", x)
			}
		}
		for _, x := range o.Union(p) {
			if !slices.Contains(a, x) && !slices.Contains(b, x) {
				t.Errorf("%v came from nowhere", x)
			}
		}
		slices.Reverse(a)
		if !slices.Equal(NewOrigin(a...), o) || !slices.Equal(o.Union(p), p.Union(o)) || !slices.Equal(o.Union(o), o) || !slices.Equal(o.Union(p).Union(q), o.Union(p.Union(q))) {
			t.Error("order or repetition counts")
		}
		if !slices.IsSortedFunc(o, Author.Compare) || len(slices.Compact(slices.Clone(o))) != len(o) {
			t.Errorf("%v is not sorted without repetition", o)
		}
		for _, x := range o {
			if o.Only(x) != (len(o) == 1) {
				t.Errorf("only %v in %v: %v", x, o, o.Only(x))
			}
			// More authors are never fewer.
			if o.Union(p).Only(x) && len(p) > 0 && !p.Only(x) {
				t.Errorf("only %v in %v and %v", x, o, p)
			}
		}
	})
	if (Origin{}).Only(Author{}) || Origin(nil).Only(Author{Device: device(1), Class: Typed}) {
		t.Error("of an empty origin something is known")
	}
}

func TestAuthorsDifferInOrderAndActor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anAuthor().Draw(t, "a"), anAuthor().Draw(t, "b")
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		if (a.Compare(b) == 0) != (a == b) || a.Compare(b) != -b.Compare(a) {
			t.Errorf("%v and %v compare as %d", a, b, a.Compare(b))
		}
		e, f := epoch(1), epoch(2)
		if (a.Actor(e) == b.Actor(e)) != (a == b) || a.Actor(e) == b.Actor(f) {
			t.Errorf("%v and %v share an actor", a, b)
		}
	})
}

func TestWhoCannotBeAnAuthor(t *testing.T) {
	d := device(1)
	clerk := Source{Device: d, Class: Agent, Label: "clerk"}
	for name, a := range map[string]Author{
		"nobody":                  {},
		"no device":               {Class: Typed},
		"agent of no device":      {Class: Agent, Label: "clerk"},
		"moved by no device":      {Class: Moved, Source: clerk},
		"no class":                {Device: d},
		"class of the future":     {Device: d, Class: 5},
		"typed with a label":      {Device: d, Class: Typed, Label: "x"},
		"typed with a source":     {Device: d, Class: Typed, Source: clerk},
		"agent with a source":     {Device: d, Class: Agent, Label: "x", Source: clerk},
		"nameless agent":          {Device: d, Class: Agent},
		"nameless import":         {Device: d, Class: Import},
		"moved from nothing":      {Device: d, Class: Moved},
		"moved with a label":      {Device: d, Class: Moved, Label: "x", Source: clerk},
		"moved from no device":    {Device: d, Class: Moved, Source: Source{Class: Typed}},
		"moved from moved":        {Device: d, Class: Moved, Source: Source{Device: d, Class: Moved}},
		"moved from a nameless":   {Device: d, Class: Moved, Source: Source{Device: d, Class: Import}},
		"moved from labelled":     {Device: d, Class: Moved, Source: Source{Device: d, Class: Typed, Label: "x"}},
		"moved from the future":   {Device: d, Class: Moved, Source: Source{Device: d, Class: 5}},
		"moved from no class":     {Device: d, Class: Moved, Source: Source{Device: d}},
		"agent with a hidden end": {Device: d, Class: Agent, Label: "clerk\x00"},
	} {
		if a.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, a := range []Author{
		{Device: d, Class: Typed},
		{Device: d, Class: Agent, Label: "clerk"},
		{Device: d, Class: Import, Label: "notes"},
		{Device: d, Class: Moved, Source: clerk},
		{Device: d, Class: Moved, Source: Source{Device: device(2), Class: Typed}},
	} {
		if err := a.Check(); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestCheckLabel(t *testing.T) {
	for label, want := range map[string]string{
		"": "empty", strings.Repeat("x", MaxLabel+1): "97 bytes", "a\xffb": "UTF-8", "a\nb": "control", "\x7f": "control", "\u0085": "control", "\x1b[2J": "control",
	} {
		if err := CheckLabel(label); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", label, err, want)
		}
	}
	for _, label := range []string{"x", "my laptop", "日記", strings.Repeat("ä", MaxLabel/2), "a\u202eb"} {
		if err := CheckLabel(label); err != nil {
			t.Errorf("%q: %v", label, err)
		}
	}
}

func TestActorIsForEver(t *testing.T) {
	a := Author{Device: device(0xd1), Class: Moved, Source: Source{Device: device(0xd2), Class: Agent, Label: "clerk"}}
	const want = "5193db91a6ee5eb453d77ccea9292f89"
	if got := a.Actor(epoch(0xe1)).String(); got != want {
		t.Errorf("actor %s, want %s", got, want)
	}
}

func TestNamesOfValues(t *testing.T) {
	for want, v := range map[string]interface{ String() string }{
		"typed": Typed, "agent": Agent, "import": Import, "moved": Moved, "class 9": Class(9),
		"text": KindText, "set": KindSet, "result": KindResult, "roster": KindRoster, "kind 9": Kind(9),
		"none": NoRung, "strict": Strict, "granted": Granted, "host": Host, "rung 9": Rung(9),
		"ok": OK, "error": Failed, "timeout": Timeout, "memory": Memory, "output": Output, "violation": Violation, "crash": Crash, "cancelled": Cancelled, "verdict 9": Verdict(9),
		"member": RoleMember, "hub": RoleHub, "role 9": Role(9),
		"genesis": RosterGenesis, "add": RosterAdd, "remove": RosterRemove, "cut": RosterCut, "rename": RosterRename, "act 9": RosterAct(9),
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
