package trust

import (
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

// Whatever policy says, text of a device in quarantine asks: its own, with own
// text beside it, moved here, and moved by another device that says so.
func TestQuarantineAsks(t *testing.T) {
	s := newScene(t)
	other := notebook.DeviceID{9}
	moved := func(by, from notebook.DeviceID) notebook.Author {
		return notebook.Author{Device: by, Class: notebook.Moved, Source: notebook.Source{Device: from, Class: notebook.Typed}}
	}
	for name, origin := range map[string]notebook.Origin{
		"typed there":              notebook.NewOrigin(s.typed(s.laptop)),
		"with own text":            notebook.NewOrigin(s.typed(s.laptop), s.typed(s.self)),
		"moved here":               notebook.NewOrigin(moved(s.self, s.laptop)),
		"moved by another device":  notebook.NewOrigin(moved(other, s.laptop)),
		"one of several authors":   notebook.NewOrigin(s.typed(other), s.typed(s.laptop)),
		"claimed to be an agent's": notebook.NewOrigin(notebook.Author{Device: s.laptop, Class: notebook.Agent, Label: "x"}),
	} {
		for _, says := range []string{"strict", "ask", "refuse"} {
			r := s.foreign("lua")
			r.Origin = origin
			r.Policy = policyOf(t, "[foreign]\nlua=\"strict\"\n[device."+s.laptop.String()+"]\nlua=\""+says+"\"")
			r.Quarantine = NewQuarantine()
			_, before := Decide(r)
			if says == "strict" && before != nil {
				t.Fatalf("%s: without quarantine: %v", name, before)
			}
			r.Quarantine.Hold(s.laptop, noon)
			_, no := Decide(r)
			switch {
			case no == nil:
				t.Errorf("%s, policy %s: runs out of quarantine", name, says)
			case before != nil && !before.Ask:
				if no.Ask {
					t.Errorf("%s, policy %s: quarantine widened a refusal", name, says)
				}
			case !no.Ask || !strings.Contains(no.Reason+no.Rule, "is in quarantine here"):
				t.Errorf("%s, policy %s: refused with %+v", name, says, no)
			}
			r.Quarantine.Release(s.laptop)
			if _, after := Decide(r); (after == nil) != (before == nil) {
				t.Errorf("%s, policy %s: after the release: %v", name, says, after)
			}
		}
	}
	// Nobody else is touched.
	r := s.local("lua")
	r.Quarantine = NewQuarantine()
	r.Quarantine.Hold(s.laptop, noon)
	if _, no := Decide(r); no != nil {
		t.Errorf("own text: %v", no)
	}
	r = s.foreign("lua")
	r.Origin = notebook.NewOrigin(s.typed(other))
	r.Quarantine = NewQuarantine()
	r.Quarantine.Hold(s.laptop, noon)
	if _, no := Decide(r); no != nil {
		t.Errorf("another device's text: %v", no)
	}
}

// A yes to exact bytes holds also in quarantine, if it was given in it.
func TestQuarantineIsApprovedAnew(t *testing.T) {
	s := newScene(t)
	for name, from := range map[string]notebook.Author{
		"own":   s.typed(s.laptop),
		"moved": {Device: s.self, Class: notebook.Moved, Source: notebook.Source{Device: s.laptop, Class: notebook.Typed}},
	} {
		r := s.foreign(wantsPage)
		r.Origin = notebook.NewOrigin(from)
		r.Quarantine = NewQuarantine()
		old := give(t, r, forContent)
		r.Quarantine.Hold(s.laptop, r.Now)
		if got := r.Approvals.VoidDevice(s.laptop, "quarantine"); len(got) != 1 || got[0] != old.ID {
			t.Errorf("%s: voided %v", name, got)
		}
		if _, no := Decide(r); no == nil {
			t.Errorf("%s: a void approval counts", name)
		}
		r.Now = r.Now.Add(time.Second)
		anew := give(t, r, forContent)
		if g, no := Decide(r); no != nil || g.Approval() != anew.ID {
			t.Errorf("%s: approved anew: %v", name, no)
		}
		r.Approvals.VoidDevice(s.laptop, "quarantine")
		r.Quarantine.Release(s.laptop)
		if _, no := Decide(r); no == nil {
			t.Errorf("%s: the release revives an approval", name)
		}
	}
}

// An approval that takes its page from anyone does not take it from who was
// put into quarantine after it.
func TestQuarantineReachesInputs(t *testing.T) {
	s := newScene(t)
	r := s.local(wantsPage)
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.self), s.typed(s.laptop))
	r.Quarantine = NewQuarantine()
	give(t, r, forContent)
	if _, no := Decide(r); no != nil {
		t.Fatal(no)
	}
	r.Quarantine.Hold(s.laptop, noon.Add(time.Second))
	if _, no := Decide(r); no == nil || !no.Ask {
		t.Errorf("the page of a device in quarantine is handed in: %v", no)
	}
	r.Inputs[0].Authors = notebook.NewOrigin(s.typed(s.self))
	if _, no := Decide(r); no != nil {
		t.Errorf("without its text: %v", no)
	}
}

func TestQuarantineIsKept(t *testing.T) {
	kept := store{}
	q := NewQuarantine()
	a, b := notebook.DeviceID{1}, notebook.DeviceID{2}
	if !q.Hold(a, noon) || q.Hold(a, noon.Add(time.Hour)) || !q.Hold(b, noon) || q.Release(notebook.DeviceID{3}) {
		t.Error("held wrongly")
	}
	kept.keep(q.Flush())
	if !q.Release(b) || q.Release(b) {
		t.Error("released wrongly")
	}
	kept.keep(q.Flush())
	again, err := OpenQuarantine(kept.all())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Devices(); len(got) != 1 || got[0] != a || !again.Since(a).Equal(noon) || !again.Since(b).IsZero() {
		t.Errorf("%v", got)
	}
	for _, key := range []string{"d", "dx", "x" + string(a[:])} {
		if _, err := OpenQuarantine(store{key: []byte{recordVersion}}.all()); err == nil {
			t.Errorf("a record %q was read", key)
		}
	}
}
