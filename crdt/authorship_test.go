//go:build cgo

package crdt

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

var histories = flag.Int("histories", 200, "of three honest devices and a hostile one, see TestAuthorship")

// TestAuthorship holds random histories of three honest devices and a hostile
// one, all through the log and the gate, against a model that knows nothing but
// the definitions: on every honest device, after every commit, each fence has the
// model's authors and stands local exactly where the model says so.
func TestAuthorship(t *testing.T) {
	s := newSociety(t)
	var all counts
	if raceDetector {
		*histories = min(*histories, 40)
	}
	for n := range *histories {
		c := s.history(rand.New(rand.NewSource(*campaignSeed+int64(n))), n)
		all.add(c)
		if t.Failed() {
			t.Fatalf("seed %d, history %d", *campaignSeed, n)
		}
	}
	fmt.Printf("authorship: %d histories, %d commits, %d void, %d verdicts on fences, %d of them local, 0 disagreements\n",
		*histories, all.commits, all.void, all.verdicts, all.local)
	if all.local*50 < all.verdicts || all.local*2 > all.verdicts || all.void*100 < all.commits {
		t.Errorf("histories of this kind test little: %+v", all)
	}
}

type counts struct{ commits, void, verdicts, local int }

func (c *counts) add(d counts) {
	c.commits += d.commits
	c.void += d.void
	c.verdicts += d.verdicts
	c.local += d.local
}

// society is three honest devices, and a hostile one at the end.
type society struct {
	t       *testing.T
	devices []*device
	members []*member
	counts  counts
}

// member is a device in one history.
type member struct {
	*device
	model *naive
	seen  []notebook.Revision // states that this device had
}

func newSociety(t *testing.T) *society {
	return &society{t: t, devices: devices(t, "laptop", "phone", "tablet", "mallory")}
}

// history is one page's.
func (s *society) history(r *rand.Rand, n int) counts {
	s.members, s.counts = nil, counts{}
	for _, d := range s.devices {
		d.id = notebook.PageID{0xbb, byte(n >> 16), byte(n >> 8), byte(n)}
		d.page, d.own, d.registers, d.writer = NewPage(d.id), NewOwnFences(), NewRegisters(d.id), nil
		d.bodies, d.entries, d.voids = nil, nil, nil
		s.members = append(s.members, &member{device: d, model: newNaive(d.author()), seen: []notebook.Revision{d.page.Revision()}})
	}
	first := s.members[r.Intn(3)]
	s.types(first, first.page.Revision(), []notebook.Splice{{Insert: tours[r.Intn(len(tours))]}})
	for range 14 + r.Intn(12) {
		// Two devices at a time write most, as only then much happens at one place.
		m := s.members[[]int{0, 0, 1, 2, 3, 3}[r.Intn(6)]]
		switch {
		case r.Intn(3) == 0:
			s.deliver(m, s.members[r.Intn(len(s.members))])
		case m == s.members[3]:
			s.attack(r, m)
		default:
			s.edit(r, m)
		}
		if s.t.Failed() {
			return s.counts
		}
	}
	for range 2 {
		for _, m := range s.members {
			for _, from := range s.members {
				s.deliver(m, from)
			}
		}
	}
	for _, m := range s.members[1:] {
		if got, want := m.page.Text(), s.members[0].page.Text(); got != want {
			s.t.Errorf("%s reads %q, %s %q", m.name, got, s.members[0].name, want)
		}
	}
	return s.counts
}

// snippets are what fences are made of and taken apart with.
var snippets = []string{
	"```lua\nprint(1)\n```\n", "```\n", "```", "``", "`", "~~~\n", "~~~ lua\nx\n~~~\n", "````\n", "````md\n```lua\nx = 1\n```\n````\n",
	"\n", "\n\n", " ", "    ", "> ", "> ```\n> a\n> ```\n", "- ", "- ```\n  a\n  ```\n", "x", "print(2)", "<!--\n", "-->\n", "<div>\n", "lua", " {a=b}", "漢😀", "\t",
}

// tours are what pages begin with: fences, an example of one, prose that is nearly one.
var tours = []string{
	"```lua\na\n```\ntext\n~~~\nb\n~~~\n",
	"````md\n```lua\nx\n```\n````\nafter\n",
	"``\nlua\n``\n\n> ```\n> q\n> ```\n",
	"```lua\na\nb\n",
	"text ```lua\na\n```\n",
}

// splices is a random edit of a text: mostly at the lines that make fences,
// often one that takes such a line away, or gives it back.
func splices(r *rand.Rand, text string) []notebook.Splice {
	runes := []rune(text)
	var starts, delimiters []int
	for i := range len(runes) + 1 {
		if i > 0 && runes[i-1] != '\n' {
			continue
		}
		starts = append(starts, i)
		if rest := strings.TrimLeft(string(runes[i:]), "> -"); strings.HasPrefix(rest, "``") || strings.HasPrefix(rest, "~~") {
			delimiters = append(delimiters, i)
		}
	}
	x := notebook.Splice{At: r.Intn(len(runes) + 1)}
	if r.Intn(3) > 0 {
		x.At = starts[r.Intn(len(starts))]
	}
	if len(delimiters) == 0 || r.Intn(3) == 0 {
		if r.Intn(3) == 0 {
			x.Delete = min(len(runes)-x.At, []int{1, 1, 1, 2, 3, 4, 8, 20}[r.Intn(8)])
		}
		if x.Delete == 0 || r.Intn(3) == 0 {
			x.Insert = snippets[r.Intn(len(snippets))]
		}
		return []notebook.Splice{x}
	}
	x.At = delimiters[r.Intn(len(delimiters))]
	line := 0
	for x.At+line < len(runes) && runes[x.At+line] != '\n' {
		line++
	}
	switch r.Intn(8) {
	case 0: // the line goes
		x.Delete = min(line+1, len(runes)-x.At)
	case 1: // and is another
		x.Delete, x.Insert = line, []string{"```", "```lua", "~~~", "````", "```x"}[r.Intn(5)]
	case 2: // it is put into a line before
		if x.At > 0 {
			x.At, x.Delete = x.At-1, 1
		} else {
			x.Insert = "x"
		}
	case 3: // one letter of it goes
		x.At, x.Delete = x.At+r.Intn(max(1, line)), min(1, line)
	case 4:
		x.Insert = []string{"`", "x", " ", "\n", "> ", "```\n", "````\n", "~~~\n", "    "}[r.Intn(9)]
	case 5: // something behind its delimiter
		x.At, x.Insert = x.At+line, []string{"x", " ", "\n", "`", "\nprint(3)"}[r.Intn(5)]
	case 6: // it is typed anew
		x.Delete, x.Insert = line, string(runes[x.At:x.At+line])
	case 7: // in the line behind it
		x.At = min(x.At+line+1, len(runes))
		x.Insert = []string{"```\n", "y", "\n", "~~~\n", "y\n"}[r.Intn(5)]
	}
	return []notebook.Splice{x}
}

// edit is one edit at an honest device, through one of its doors.
func (s *society) edit(r *rand.Rand, m *member) {
	if r.Intn(4) > 0 {
		base := m.page.Revision()
		if r.Intn(2) == 0 { // another client of the person, which is behind
			base = m.seen[len(m.seen)-1-r.Intn(min(4, len(m.seen)))]
		}
		text, err := m.page.TextAt(base)
		must(s.t, err)
		edit := splices(r, text)
		switch r.Intn(6) {
		case 0: // undo, or a file that is saved as it was
			was, err := m.page.TextAt(m.seen[r.Intn(len(m.seen))])
			must(s.t, err)
			edit = Diff(text, was)
		case 1: // at two places
			if more := splices(r, text)[0]; more.At > edit[0].At+edit[0].Delete {
				edit = append(edit, more)
			}
		}
		s.types(m, base, edit)
	} else {
		edit := splices(r, m.page.Text())
		if isNothing(edit) {
			return
		}
		a := s.claim(r, m)
		m.change(a, edit)
		m.own.Other(m.page)
		m.took(a)
		m.model.other()
		s.check(m)
	}
}

// types is an edit by the person at the keys.
func (s *society) types(m *member, base notebook.Revision, edit []notebook.Splice) {
	if rebased, err := m.page.Rebase(base, edit); err != nil || isNothing(rebased) {
		return
	}
	m.typesAt(base, edit...)
	m.took(m.author())
	m.model.typed(base)
	s.check(m)
}

func isNothing(edit []notebook.Splice) bool {
	return !slices.ContainsFunc(edit, func(x notebook.Splice) bool { return x.Delete > 0 || x.Insert != "" })
}

// claim is an author that is not this person at the keys: agents, imports, and
// moved text of anybody, the persons themselves included.
func (s *society) claim(r *rand.Rand, m *member) notebook.Author {
	a := notebook.Author{Device: m.signer.Device()}
	switch r.Intn(3) {
	case 0:
		a.Class, a.Label = notebook.Agent, "scribe"
	case 1:
		a.Class, a.Label = notebook.Import, "stdin"
	default:
		a.Class = notebook.Moved
		a.Source = notebook.Source{Device: s.members[r.Intn(4)].signer.Device(), Class: notebook.Typed}
	}
	return a
}

// took tells the model of the newest commit, which this device made.
func (m *member) took(a notebook.Author) {
	m.model.take(m.bodies[len(m.bodies)-1], a)
	m.seen = append(m.seen, m.page.Revision())
}

// attack is a commit of the hostile device: an edit under any claim, or a change
// that lies about what it rests on and what it does.
func (s *society) attack(r *rand.Rand, m *member) {
	a := m.author()
	if r.Intn(3) == 0 {
		a = s.claim(r, m)
	}
	w, err := OpenWriter(m.page, NewModel(m.page), m.stored())
	must(s.t, err)
	defer func() { must(s.t, w.Close()) }()
	edit := splices(r, m.page.Text())
	if isNothing(edit) {
		return
	}
	body, err := w.Splice(a, m.epoch, time.UnixMilli(1), edit)
	must(s.t, err)
	if r.Intn(3) == 0 {
		c := new(change)
		must(s.t, c.decode(body, new(encoder)))
		distort(r, m.page, c)
		body = encoded(c)
	}
	draft := trust.Draft{Kind: notebook.KindText, Page: m.id, Class: a.Class, Label: a.Label, Time: 1, Body: body}
	if a.Class == notebook.Moved {
		draft.Source = []notebook.Source{a.Source}
	}
	v, err := m.log.Append(m.signer, m.epoch, draft)
	must(s.t, err)
	m.entries = append(m.entries, v.Entry())
	s.counts.commits++
	var void *trust.Void
	if err := m.page.Apply(v); errors.As(err, &void) {
		s.counts.void++
		return
	} else if err != nil {
		s.t.Fatal(err)
	}
	m.bodies = append(m.bodies, body)
	m.took(a)
}

// deliver brings what one device has to another, entry by entry.
func (s *society) deliver(to, from *member) {
	if to == from {
		return
	}
	taken, err := to.log.Take(from.signer.Device(), from.entries)
	must(s.t, err)
	for _, v := range taken {
		to.entries = append(to.entries, v.Entry())
		if v.Header().Kind != notebook.KindText || v.Header().Page != to.id {
			continue
		}
		var void *trust.Void
		if err := to.page.Apply(v); errors.As(err, &void) {
			continue
		} else if err != nil {
			s.t.Fatal(err)
		}
		body := v.Entry().Body
		to.bodies = append(to.bodies, body)
		if to.writer != nil {
			must(s.t, to.writer.Load(body))
		}
		to.own.Other(to.page)
		to.took(v.Author())
		to.model.other()
		s.check(to)
	}
}

// check compares an honest device with its model.
func (s *society) check(m *member) {
	s.t.Helper()
	if m == s.members[3] {
		return
	}
	s.counts.commits++
	got, err := m.page.Fences()
	if err != nil {
		got = nil
	}
	want := m.model.fences(m.model.everything())
	if text, _ := m.model.text(m.model.everything()); text != m.page.Text() {
		s.t.Errorf("%s reads %q, the model %q", m.name, m.page.Text(), text)
		return
	}
	if len(got) != len(want) {
		s.t.Errorf("%s has %d fences, the model %d", m.name, len(got), len(want))
		return
	}
	for i := range got {
		f, w := &got[i], &want[i]
		local := trust.Stand(m.signer.Device(), m.log.Roster(), f.Origin, m.own.Has(f), f.Closed()).Local()
		s.counts.verdicts++
		if local {
			s.counts.local++
		}
		if !slices.Equal(f.Origin, w.origin) || local != m.model.local(w) {
			s.t.Errorf("%s: fence %d of %q:\norigin %v, local %v\nthe model says %v, local %v", m.name, i+1, m.page.Text(), f.Origin, local, w.origin, m.model.local(w))
		}
	}
}
