package crdt

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
	"noted/trust"
)

func (d *device) titles(title string) {
	d.t.Helper()
	d.set(notebook.Set{Register: notebook.RegisterTitle, Text: title})
}

func (d *device) deletes(yes bool) {
	d.t.Helper()
	d.set(notebook.Set{Register: notebook.RegisterDeleted, Flag: yes})
}

func sync(group ...*device) {
	for range 2 {
		for _, a := range group {
			for _, b := range group {
				a.pull(b)
			}
		}
	}
}

func TestTitle(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	if v.registers.Title() != "" {
		t.Fatal("a page has a title before it got one")
	}
	v.titles("Notes")
	m.pull(v)
	m.titles("Better notes")
	v.pull(m)
	if got := v.registers.Title(); got != "Better notes" {
		t.Fatalf("the later title lost: %q", got)
	}
	if n := len(v.registers.Values(notebook.RegisterTitle)); n != 1 {
		t.Fatalf("%d titles are in force after one replaced the other", n)
	}
	v.titles("From V")
	m.titles("From M")
	sync(v, m)
	both := v.registers.Values(notebook.RegisterTitle)
	if len(both) != 2 || compareHashes(both[0].Head.Hash, both[1].Head.Hash) < 0 {
		t.Fatalf("two titles at once leave %+v", both)
	}
	if v.registers.Title() != m.registers.Title() || v.registers.Title() != both[0].Set.Text {
		t.Fatalf("V says %q, M says %q", v.registers.Title(), m.registers.Title())
	}
	v.titles("Settled")
	m.pull(v)
	if got := m.registers.Title(); got != "Settled" || len(m.registers.Values(notebook.RegisterTitle)) != 1 {
		t.Fatalf("a title that has seen both leaves %q", got)
	}
}

func TestDeletion(t *testing.T) {
	state := func(d *device) string {
		switch {
		case d.registers.Deleted() && d.registers.Undeleted():
			return "both"
		case d.registers.Deleted():
			return "deleted"
		case d.registers.Undeleted():
			return "undeleted"
		}
		return "there"
	}
	for _, c := range []struct {
		name string
		do   func(v, m *device)
		want string
	}{
		{"nobody deletes", func(v, m *device) {}, "there"},
		{"V deletes", func(v, m *device) { v.deletes(true) }, "deleted"},
		{"M writes at once", func(v, m *device) { v.deletes(true); m.types("hello", "hello!") }, "undeleted"},
		{"M had written, and V knows", func(v, m *device) { m.types("hello", "hello!"); v.pull(m); v.deletes(true) }, "deleted"},
		{"M writes after it knows", func(v, m *device) { v.deletes(true); m.pull(v); m.types("hello", "hello!") }, "undeleted"},
		{"V deletes again when it knows", func(v, m *device) {
			v.deletes(true)
			m.types("hello", "hello!")
			v.pull(m)
			v.deletes(true)
		}, "deleted"},
		{"V takes it back", func(v, m *device) { v.deletes(true); v.deletes(false) }, "there"},
		{"a title at once is not text", func(v, m *device) { v.deletes(true); m.titles("Other") }, "deleted"},
		{"both delete", func(v, m *device) { v.deletes(true); m.deletes(true) }, "deleted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			group := devices(t, "V", "M")
			v, m := group[0], group[1]
			v.types("", "hello")
			m.pull(v)
			c.do(v, m)
			sync(v, m)
			if state(v) != c.want || state(m) != c.want {
				t.Fatalf("on V the page is %s, on M %s, want %s", state(v), state(m), c.want)
			}
		})
	}
}

// TestVoidTextDoesNotUndelete: what the gate refuses is no text.
func TestVoidTextDoesNotUndelete(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	m.pull(v)
	v.deletes(true)
	draft := trust.Draft{Kind: notebook.KindText, Page: storyPage, Class: notebook.Typed, Time: 1, Body: []byte("hostile")}
	hostile, err := m.log.Append(m.signer, m.epoch, draft)
	must(t, err)
	v.take([]notebook.Entry{hostile.Entry()})
	if len(v.voids) != 1 || !v.registers.Deleted() {
		t.Fatalf("deleted %v after void text %q", v.registers.Deleted(), v.voids)
	}
}

// TestRegistersDoNotDependOnTheOrder delivers the same entries of three devices
// in several causal orders and compares the outcome.
func TestRegistersDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		group := devices(t, "A", "B", "C")
		group[0].types("", "hello")
		sync(group...)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			d := group[rapid.IntRange(0, 2).Draw(rt, "who")]
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				d.titles(rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "title"))
			case 1:
				d.deletes(rapid.Bool().Draw(rt, "deleted"))
			case 2:
				d.types("hello", "hello!")
			default:
				d.pull(group[rapid.IntRange(0, 2).Draw(rt, "from")])
			}
		}
		for range rapid.IntRange(0, 3).Draw(rt, "exchanges") { // in an order of their own
			a, b := rapid.IntRange(0, 2).Draw(rt, "a"), rapid.IntRange(0, 2).Draw(rt, "b")
			group[a].pull(group[b])
		}
		sync(group...)
		want, err := group[0].registers.Record()
		must(t, err)
		for _, d := range group[1:] {
			got, err := d.registers.Record()
			must(t, err)
			if string(got) != string(want) {
				t.Fatalf("%+v and %+v", d.registers, group[0].registers)
			}
			opened, err := OpenRegisters(storyPage, got)
			must(t, err)
			if opened.Title() != d.registers.Title() || opened.Deleted() != d.registers.Deleted() || opened.Undeleted() != d.registers.Undeleted() {
				t.Fatalf("a record of %+v opens as %+v", d.registers, opened)
			}
		}
	})
}

func TestRegistersRefuse(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.titles("Notes")
	m.pull(v)
	for _, body := range [][]byte{[]byte("x"), {0x83, 0x09, 0x60, 0xf4}, {0x83, 0x01, 0x60, 0xf4}, {0x83, 0x01, 0x61, 'x', 0xf5}, {0x83, 0x02, 0x61, 'x', 0xf5}} {
		signed, err := m.log.Append(m.signer, m.epoch, trust.Draft{Kind: notebook.KindSet, Page: storyPage, Class: notebook.Typed, Time: 1, Body: body})
		must(t, err)
		var void *trust.Void
		if err := v.registers.Apply(signed); !errors.As(err, &void) || !strings.Contains(void.Reason, "value was refused") {
			t.Errorf("%x: %v", body, err)
		}
	}
	if got := v.registers.Title(); got != "Notes" {
		t.Errorf("refused entries left %q", got)
	}
	record, err := v.registers.Record()
	must(t, err)
	for i := range record {
		if _, err := OpenRegisters(storyPage, record[:i]); err == nil {
			t.Fatalf("a record cut at byte %d was read", i)
		}
	}
	if _, err := OpenRegisters(notebook.PageID{1}, record); err == nil {
		t.Error("another page's record was read")
	}
}

// TestPurgeIsForGood: whatever the order in which a purge, a deletion and text
// meet, the page is gone, and its registers are the same everywhere.
func TestPurgeIsForGood(t *testing.T) {
	group := devices(t, "V", "M", "S")
	v, m, s := group[0], group[1], group[2]
	v.titles("Notes")
	sync(v, m, s)
	m.types("", "late text")
	v.deletes(true)
	s.pull(m)
	s.pull(v) // M's text comes first here
	if !s.registers.Undeleted() {
		t.Fatal("the text does not undelete the page, so the story shows nothing")
	}
	v.set(notebook.Set{Register: notebook.RegisterPurged, Flag: true})
	if !v.registers.Purged() || !v.registers.Deleted() {
		t.Fatal("the page is not gone")
	}
	m.types("", "and more")
	m.deletes(false)
	sync(v, m, s)
	want, err := v.registers.Record()
	must(t, err)
	for _, d := range group {
		if !d.registers.Purged() || !d.registers.Deleted() || d.registers.Undeleted() || d.registers.Title() != "Notes" {
			t.Errorf("%s: purged %v, deleted %v, title %q", d.name, d.registers.Purged(), d.registers.Deleted(), d.registers.Title())
		}
		got, err := d.registers.Record()
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s keeps other registers than V", d.name)
		}
		back, err := OpenRegisters(storyPage, got)
		must(t, err)
		if !back.Purged() {
			t.Errorf("%s forgets that the page was purged", d.name)
		}
	}
}

// TestOnlyAPersonPurges: an agent's token cannot, whatever a device claims.
func TestOnlyAPersonPurges(t *testing.T) {
	v := devices(t, "V")[0]
	body, err := notebook.EncodeSet(&notebook.Set{Register: notebook.RegisterPurged, Flag: true})
	must(t, err)
	draft := trust.Draft{Kind: notebook.KindSet, Page: storyPage, Class: notebook.Agent, Label: "scribe", Time: 1, Body: body}
	entry, err := v.log.Append(v.signer, v.epoch, draft)
	must(t, err)
	if err := v.registers.Apply(entry); err == nil || !strings.Contains(err.Error(), "only a person") || v.registers.Purged() {
		t.Fatalf("an agent purges a page: %v", err)
	}
	v.set(notebook.Set{Register: notebook.RegisterPurged, Flag: true})
	if !v.registers.Purged() {
		t.Fatal("a person does not")
	}
}
