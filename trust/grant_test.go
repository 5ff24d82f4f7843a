package trust

import (
	"slices"
	"testing"

	"noted/notebook"
)

// A grant can be made less, never more or other.
func TestNarrow(t *testing.T) {
	s := newScene(t)
	r := s.local(`lua {wants="clock page"}`)
	whole, no := Decide(r)
	if no != nil {
		t.Fatal(no)
	}
	page, clock := notebook.CapPage, notebook.CapClock
	for _, c := range []struct {
		of   Grant
		rung notebook.Rung
		has  []notebook.Capability
		may  bool
	}{
		{whole, notebook.Granted, []notebook.Capability{clock, page}, true},
		{whole, notebook.Granted, []notebook.Capability{clock}, true},
		{whole, notebook.Granted, nil, true},
		{whole, notebook.Strict, nil, true},
		{whole, notebook.Granted, []notebook.Capability{clock, notebook.CapSeed}, false},
		{whole, notebook.Granted, []notebook.Capability{"dir:/tmp/x"}, false},
		{whole, notebook.Strict, []notebook.Capability{clock}, false},
		{whole, notebook.Host, nil, false},
		{whole, notebook.NoRung, nil, false},
		{Grant{}, notebook.Strict, nil, false},
	} {
		g, ok := c.of.Narrow(c.rung, c.has)
		if ok != c.may || g.Valid() != c.may {
			t.Errorf("%v with %v: %v", c.rung, c.has, ok)
		}
		if !ok {
			continue
		}
		if g.Rung() != c.rung || !slices.Equal(g.Capabilities(), c.has) || g.Closure().Hash() != whole.Closure().Hash() || g.Limits() != whole.Limits() {
			t.Errorf("it is %+v", g)
		}
		for _, in := range g.Inputs() {
			if !slices.Contains(c.has, in.Capability) {
				t.Errorf("%v with %v hands in %v", c.rung, c.has, in.Capability)
			}
		}
	}
	if len(whole.Inputs()) != 2 || len(whole.Capabilities()) != 2 {
		t.Errorf("the grant itself is less now: %+v", whole)
	}
}
