package crdt

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

var someTime = time.UnixMilli(1_700_000_000_123)

// TestDevicesConverge lets three devices write one page while they are apart
// and at once, and compares them byte for byte.
func TestDevicesConverge(t *testing.T) {
	group := devices(t, "laptop", "phone", "tablet")
	laptop, phone, tablet := group[0], group[1], group[2]
	laptop.types("", "# Shopping\n\n- milk\n")
	phone.types("", "# From the phone\n") // the same page, created twice
	phone.pull(laptop)
	tablet.pull(phone)
	tablet.types("milk", "oat milk")
	laptop.types("milk", "milk and honey")
	laptop.as(notebook.Agent, "helper", "", "- bread\n")
	phone.types("Shopping", "To buy")
	for range 2 {
		for _, a := range group {
			for _, b := range group {
				a.pull(b)
			}
		}
	}
	for _, d := range group {
		if got, want := d.page.Text(), laptop.page.Text(); got != want {
			t.Errorf("%s has %q, the laptop %q", d.name, got, want)
		}
		if len(d.voids) > 0 {
			t.Errorf("%s found void: %q", d.name, d.voids)
		}
		w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
		must(t, err)
		must(t, w.compare())
	}
	if got := laptop.page.Text(); !strings.Contains(got, "oat milk and honey") || !strings.Contains(got, "- bread") || !strings.Contains(got, "To buy") {
		t.Errorf("an edit got lost: %q", got)
	}
}

// TestWriterPassesTheGate has a writer make changes of several authors, and
// finds that the gate's own encoder writes the same bytes.
func TestWriterPassesTheGate(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "one\n漢字 😀\n")
	d.as(notebook.Agent, "helper", "one", "two")
	d.as(notebook.Import, "notes", "", "three\n")
	moved := notebook.Author{Device: d.signer.Device(), Class: notebook.Moved, Source: notebook.Source{Device: notebook.DeviceID{9}, Class: notebook.Typed}}
	d.change(moved, []notebook.Splice{{At: 0, Insert: "from elsewhere "}, {At: 3, Delete: 2}})
	d.types("字", "")
	for i, body := range d.bodies {
		c := decoded(t, body)
		if !bytes.Equal(encoded(c), body) {
			t.Errorf("change %d is encoded differently", i)
		}
		if c.time != 1 {
			t.Errorf("change %d has the time %d", i, c.time)
		}
	}
}

// TestWriterOnAWrongClock: what the clock says does not cost an edit.
func TestWriterOnAWrongClock(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "x")
	for _, at := range []time.Time{{}, time.Unix(-1, 0), time.UnixMilli(notebook.MaxTime + 1), someTime} {
		body, err := d.writer.Splice(d.author(), d.epoch, at, []notebook.Splice{{Insert: "x"}})
		must(t, err)
		must(t, d.page.Apply(d.append(notebook.KindText, d.author(), body)))
		if got := decoded(t, body).time; at == someTime && got != someTime.UnixMilli() {
			t.Errorf("%v was written as %d", at, got)
		}
	}
}

// TestWriterAndPage holds the writer to the page's revision.
func TestWriterAndPage(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	m.pull(v)
	splice := []notebook.Splice{{At: 0, Insert: "x"}}

	body, err := v.writer.Splice(v.author(), v.epoch, someTime, splice)
	must(t, err)
	if v.page.Text() != "hello" {
		t.Fatal("the page has a change that nobody applied")
	}
	if _, err := v.writer.Splice(v.author(), v.epoch, someTime, splice); !errors.Is(err, ErrBehind) {
		t.Fatalf("a second change before the first was applied: %v", err)
	}
	must(t, v.page.Apply(v.append(notebook.KindText, v.author(), body)))
	v.bodies = append(v.bodies, body)
	v.types("xhello", "hello")

	m.types("hello", "hallo")
	taken, err := v.log.Take(notebook.DeviceID{}, m.entries)
	must(t, err)
	foreign := taken[len(taken)-1]
	if err := v.writer.Load(foreign.Entry().Body); err == nil || errors.Is(err, ErrQuarantined) {
		t.Fatalf("automerge got a change that the page had not taken: %v", err)
	}
	must(t, v.page.Apply(foreign))
	if _, err := v.writer.Splice(v.author(), v.epoch, someTime, splice); !errors.Is(err, ErrBehind) {
		t.Fatalf("a change on a document that lacks one: %v", err)
	}
	must(t, v.writer.Load(foreign.Entry().Body))
	v.bodies = append(v.bodies, foreign.Entry().Body)
	v.types("hallo", "hallo again,")

	for _, bad := range [][]byte{nil, {0}, v.bodies[0][:20], flip(v.bodies[0], 5), flip(v.bodies[0], 40)} {
		if err := v.writer.known(bad); err == nil {
			t.Errorf("%d damaged bytes would reach automerge", len(bad))
		}
	}
}

// TestQuarantine opens writers on models that fail, and takes the ground from
// under one: nothing is written any more where they and the shadow do not agree.
func TestQuarantine(t *testing.T) {
	d := devices(t, "V")[0]
	d.types("", "hello")
	splice := []notebook.Splice{{At: 0, Insert: "x"}}
	but := func(m mistaken) Model {
		m.Model = Native(d.page)
		return m
	}
	empty := NewPage(storyPage)
	evil, err := Native(d.page).Splice(notebook.ActorID{1}, 0, splice)
	must(t, err)
	for name, m := range map[string]Model{
		"an error":    but(mistaken{err: errors.New("as a model may fail")}),
		"a panic":     panicking{},
		"other heads": but(mistaken{heads: empty.Revision()}),
		"other text":  but(mistaken{text: "hallo"}),
	} {
		if _, err := OpenWriter(d.page, m, d.stored()); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%s at opening: %v", name, err)
		}
		w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
		must(t, err)
		w.model = m
		if err := w.Load(d.bodies[0]); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%s at a load: %v", name, err)
		}
		if _, err := w.Splice(d.author(), d.epoch, someTime, splice); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%s: a write to a quarantined page: %v", name, err)
		}
	}
	for name, m := range map[string]Model{
		"an error":                  but(mistaken{err: errors.New("as a model may fail")}),
		"a panic":                   panicking{},
		"another author's change":   but(mistaken{change: evil}),
		"a change that was there":   but(mistaken{change: d.bodies[0]}),
		"what is not even a change": but(mistaken{change: []byte("hello")}),
	} {
		w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
		must(t, err)
		w.model = m
		for range 2 {
			if _, err := w.Splice(d.author(), d.epoch, someTime, splice); !errors.Is(err, ErrQuarantined) {
				t.Errorf("%s for an edit: %v", name, err)
			}
		}
		if err := w.Load(d.bodies[0]); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%s: a load into a quarantined page: %v", name, err)
		}
	}
	w, err := OpenWriter(d.page, NewModel(d.page), d.stored())
	must(t, err)
	d.writer = w
	d.types("hello", "hello again")
}

// mistaken is a write model that says or makes something else than it should.
type mistaken struct {
	Model
	heads  notebook.Revision
	text   string
	change []byte
	err    error
}

func (m mistaken) Load(changes []byte) (notebook.Revision, error) {
	if m.heads != nil || m.err != nil {
		return m.heads, m.err
	}
	return m.Model.Load(changes)
}

func (m mistaken) Text() (string, error) {
	if m.text != "" {
		return m.text, nil
	}
	return m.Model.Text()
}

func (m mistaken) Splice(notebook.ActorID, int64, []notebook.Splice) ([]byte, error) {
	return m.change, m.err
}

// panicking is a write model that does what automerge's binding may do.
type panicking struct{}

func (panicking) Load([]byte) (notebook.Revision, error) { panic("as the binding does") }
func (panicking) Text() (string, error)                  { panic("as the binding does") }
func (panicking) Close() error                           { panic("as the binding does") }

func (panicking) Splice(notebook.ActorID, int64, []notebook.Splice) ([]byte, error) {
	panic("as the binding does")
}

// TestPageSize keeps own edits within a page's size, and large ones whole.
func TestPageSize(t *testing.T) {
	d := devices(t, "V")[0]
	var e *notebook.Error
	fill := func(s []notebook.Splice) {
		t.Helper()
		for _, piece := range Split(s) {
			d.change(d.author(), piece)
		}
	}
	fill([]notebook.Splice{{Insert: strings.Repeat("😀", maxPieceOps+5)}})
	if d.page.Len() != maxPieceOps+5 || len(d.bodies) != 2 {
		t.Fatalf("%d characters came in %d changes", d.page.Len(), len(d.bodies))
	}
	fill([]notebook.Splice{{At: 3, Insert: strings.Repeat("😀", (notebook.MaxBody-d.page.Size())/4)}})
	if d.page.Size() != notebook.MaxBody {
		t.Fatalf("the page has %d bytes", d.page.Size())
	}
	if _, err := d.writer.Splice(d.author(), d.epoch, someTime, []notebook.Splice{{Insert: "x"}}); !errors.As(err, &e) || !strings.Contains(e.Message, "larger") {
		t.Fatalf("one byte more: %v", err)
	}
	if _, err := d.writer.Splice(d.author(), d.epoch, someTime, []notebook.Splice{{Insert: strings.Repeat("x", maxPieceOps+1)}}); !errors.As(err, &e) {
		t.Fatalf("more than one change can hold: %v", err)
	}
	fill([]notebook.Splice{{At: 0, Delete: 1, Insert: "abcd"}})
	opened, err := OpenPage(storyPage, d.page.Record())
	must(t, err)
	if !bytes.Equal(opened.Record(), d.page.Record()) {
		t.Fatal("a full page opens as another one")
	}
	w, err := OpenWriter(opened, NewModel(opened), d.stored())
	must(t, err)
	d.page, d.writer = opened, w
	fill([]notebook.Splice{{At: 0, Delete: 3}})
	if d.page.Text()[0] != 'd' || d.page.Size() != notebook.MaxBody-3 {
		t.Fatalf("the page has %d bytes", d.page.Size())
	}
}

// TestApplyAsksForAVerifiedTextEntry is about what the daemon could do wrong.
func TestApplyAsksForAVerifiedTextEntry(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	var void *trust.Void
	if err := m.page.Apply(trust.Verified{}); err == nil || errors.As(err, &void) {
		t.Errorf("the zero entry: %v", err)
	}
	if err := m.registers.Apply(trust.Verified{}); err == nil || errors.As(err, &void) {
		t.Errorf("the zero entry: %v", err)
	}
	taken, err := m.log.Take(notebook.DeviceID{}, v.entries)
	must(t, err)
	text := taken[len(taken)-1]
	if err := NewPage(notebook.PageID{1}).Apply(text); err == nil || errors.As(err, &void) {
		t.Errorf("an entry of another page: %v", err)
	}
	if err := NewRegisters(notebook.PageID{1}).Apply(text); err == nil || errors.As(err, &void) {
		t.Errorf("an entry of another page: %v", err)
	}
	must(t, m.page.Apply(text))
	if err := m.page.Apply(text); !errors.As(err, &void) {
		t.Errorf("the same change in a second entry: %v", err)
	}
	if m.page.Text() != "hello" {
		t.Errorf("the page has %q", m.page.Text())
	}
}

// TestVoidEntriesAreSkipped has a hostile device sign what the gate refuses: the
// chain goes on, what rests on a void is void, and both devices agree.
func TestVoidEntriesAreSkipped(t *testing.T) {
	group := devices(t, "V", "M", "A")
	v, m, a := group[0], group[1], group[2]
	v.types("", "hello")
	m.pull(v)
	m.types("hello", "hello!")

	body, err := m.writer.Splice(m.author(), m.epoch, someTime, []notebook.Splice{{At: 0, Insert: "evil"}})
	must(t, err)
	hostile := decoded(t, body)
	hostile.ops[0].char = '\r'
	m.append(notebook.KindText, m.author(), encoded(hostile))
	rests := decoded(t, body)
	rests.deps, rests.seq, rests.start = []notebook.Hash{ChangeHash(encoded(hostile))}, 3, rests.start+4
	for i := range rests.ops[1:] {
		rests.ops[i+1].counter += 4
	}
	m.append(notebook.KindText, m.author(), encoded(rests))
	m.append(notebook.KindText, m.author(), body)
	borrowed := notebook.Author{Device: m.signer.Device(), Class: notebook.Agent, Label: "x"}
	m.append(notebook.KindText, borrowed, body)
	m.append(notebook.KindText, m.author(), []byte("not a change"))

	v.pull(m)
	a.pull(v)
	for _, d := range []*device{v, a} {
		if got := d.page.Text(); got != "evilhello!" {
			t.Errorf("%s has %q", d.name, got)
		}
		if len(d.voids) != 4 || !strings.Contains(d.voids[0], "U+000D") || !strings.Contains(d.voids[1], "not a change of this page") ||
			!strings.Contains(d.voids[2], "another actor") || !strings.Contains(d.voids[3], "not an automerge change") {
			t.Errorf("%s found void %q", d.name, d.voids)
		}
	}
}

// TestDependencyOutsideSeen has a device depend on what its entry does not name.
func TestDependencyOutsideSeen(t *testing.T) {
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	v.types("", "hello")
	secret := newNotebookView(t, m, v) // M gets V's change past its log
	body, err := secret.Splice(m.author(), m.epoch, someTime, []notebook.Splice{{At: 5, Insert: "!"}})
	must(t, err)
	m.append(notebook.KindText, m.author(), body)
	v.pull(m)
	if len(v.voids) != 1 || !strings.Contains(v.voids[0], "had not seen") || v.page.Text() != "hello" {
		t.Fatalf("V has %q and found void %q", v.page.Text(), v.voids)
	}
	m.pull(v)
	m.append(notebook.KindText, m.author(), body)
	v.pull(m)
	if v.page.Text() != "hello!" {
		t.Fatalf("the same change in an entry that has seen what it rests on: %q, void %q", v.page.Text(), v.voids)
	}
}

// newNotebookView is a writer of M's on V's page.
func newNotebookView(t testing.TB, m, v *device) *Writer {
	t.Helper()
	p, err := OpenPage(storyPage, v.page.Record())
	must(t, err)
	w, err := OpenWriter(p, NewModel(p), v.stored())
	must(t, err)
	return w
}
