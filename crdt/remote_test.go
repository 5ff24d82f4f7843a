//go:build cgo

package crdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"noted/notebook"
)

// conn is one end of a connection to a Serve.
type conn struct {
	io.Reader
	io.WriteCloser
}

// served is a Remote whose other end runs in this process.
func served(t testing.TB, empty func() Model) *Remote {
	t.Helper()
	requestsIn, requests := io.Pipe()
	replies, repliesOut := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Serve(requestsIn, repliesOut, empty)
		repliesOut.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		requests.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return NewRemote(conn{replies, requests})
}

func someModel() Model { return NewModel(nil) }

// TestRemoteIsTheModel writes two pages at once through one Remote, with
// foreign changes between: byte for byte what a model in this process makes.
func TestRemoteIsTheModel(t *testing.T) {
	remote := served(t, someModel)
	type pair struct{ near, far *Writer }
	group := devices(t, "V", "M")
	v, m := group[0], group[1]
	other := devices(t, "W")[0]
	v.types("", "one\n漢字 😀\n")
	other.types("", "another page")
	pairs := map[*device]pair{}
	for _, d := range []*device{v, other} {
		near, err := OpenWriter(d.page, NewModel(d.page), d.stored())
		must(t, err)
		far, err := OpenWriter(d.page, remote.Model(), d.stored())
		must(t, err)
		pairs[d], d.writer = pair{near, far}, nil
	}
	edit := func(d *device, a notebook.Author, s ...notebook.Splice) {
		t.Helper()
		want, err := pairs[d].near.Splice(a, d.epoch, someTime, s)
		must(t, err)
		got, err := pairs[d].far.Splice(a, d.epoch, someTime, s)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Fatalf("the far end made\n%x, the near one\n%x", got, want)
		}
		must(t, d.page.Apply(d.append(notebook.KindText, a, got)))
		d.bodies = append(d.bodies, got)
	}
	agent := notebook.Author{Device: v.signer.Device(), Class: notebook.Agent, Label: "helper"}
	edit(v, v.author(), notebook.Splice{At: 0, Delete: 1, Insert: "O"}, notebook.Splice{At: 4, Insert: "字"})
	edit(other, other.author(), notebook.Splice{At: 7, Insert: " fine"})
	edit(v, agent, notebook.Splice{At: 3, Insert: strings.Repeat("long ", 1000)})
	m.pull(v)
	m.types("One", "Eins")
	m.types("Eins", "Zwei")
	v.pull(m)
	late := m.bodies[len(m.bodies)-2:]
	must(t, pairs[v].near.Load(late...))
	must(t, pairs[v].far.Load(late...))
	edit(v, v.author(), notebook.Splice{At: 0, Delete: 4})
	if remote.Documents() != 2 {
		t.Errorf("%d documents", remote.Documents())
	}

	before := len(v.bodies)
	if _, err := pairs[v].far.model.Splice(v.author().Actor(v.epoch), 1, []notebook.Splice{{At: 1 << 20, Insert: "x"}}); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a splice beyond the end: %v", err)
	}
	edit(other, other.author(), notebook.Splice{At: 0, Insert: "still "}) // the others go on
	if before != len(v.bodies) {
		t.Error("the page got a change that was refused")
	}
}

// TestAPanicBehindARemote: the page is lost to writing, its neighbours are not.
func TestAPanicBehindARemote(t *testing.T) {
	first := true
	remote := served(t, func() Model {
		if first {
			first = false
			return panicking{}
		}
		return someModel()
	})
	d := devices(t, "V")[0]
	d.types("", "hello")
	if _, err := OpenWriter(d.page, remote.Model(), d.stored()); !errors.Is(err, ErrQuarantined) || errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "panicked") {
		t.Fatalf("a panic at the far end: %v", err)
	}
	w, err := OpenWriter(d.page, remote.Model(), d.stored())
	must(t, err)
	d.writer = w
	d.types("hello", "hello again")
}

// TestServeRefusesMalformedRequests: after each the process ends without a word.
func TestServeRefusesMalformedRequests(t *testing.T) {
	framed := func(b ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	load := append(framed(opLoad, 0), nil...)
	splice := encodeSplice(0, notebook.ActorID{1}, 7, []notebook.Splice{{At: 3, Insert: "abc"}})[4:]
	for name, c := range map[string]struct {
		in []byte
		ok bool
	}{
		"nothing":                                {nil, true},
		"a load":                                 {load, true},
		"a load and a text":                      {append(bytes.Clone(load), framed(opText, 0)...), true},
		"a frame that is too long":               {binary.BigEndian.AppendUint32(nil, maxRequest+1), false},
		"half a length":                          {[]byte{0, 0}, false},
		"half a frame":                           {framed(opLoad, 0, 1, 2)[:6], false},
		"an empty frame":                         {framed(), false},
		"no document":                            {framed(opText), false},
		"an operation from elsewhere":            {framed(9, 0), false},
		"a document that is not":                 {framed(opText, 0), false},
		"a load into the second one":             {framed(opLoad, 1), false},
		"a text that has something":              {append(bytes.Clone(load), framed(opText, 0, 1)...), false},
		"a splice without its text":              {append(bytes.Clone(load), framed(splice[:len(splice)-1]...)...), false},
		"a splice with more":                     {append(bytes.Clone(load), framed(append(bytes.Clone(splice), 'x')...)...), false},
		"more splices than are let":              {append(bytes.Clone(load), framed(append(append([]byte{opSplice, 0}, make([]byte, 16)...), 1, 0xff, 0xff, 0xff, 0x7f)...)...), false},
		"a load in the place of a huge document": {framed(opLoad, 0xff, 0xff, 0xff, 0xff, 0x0f), false},
	} {
		var out bytes.Buffer
		err := Serve(bytes.NewReader(c.in), &out, someModel)
		if c.ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "a frame that is too long" && out.Len() > 0 {
			t.Errorf("%s was answered", name)
		}
	}
}

// script is a far end that says what it is told to.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error) { return len(b), nil }

// TestRepliesThatAreNone: a far end that was taken over ends its own service and
// nothing else, and cannot make this process allocate.
func TestRepliesThatAreNone(t *testing.T) {
	framed := func(b ...byte) string {
		return string(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	hash := strings.Repeat("h", 32)
	for name, c := range map[string]struct {
		says string
		gone bool
	}{
		"heads":                {framed(append([]byte{outOK}, hash...)...), false},
		"a refusal":            {framed(append([]byte{outRefused}, "no"...)...), false},
		"nothing":              {"", true},
		"an empty frame":       {framed(), true},
		"half a length":        {"\x00\x00", true},
		"half a reply":         {framed(append([]byte{outOK}, hash...)...)[:20], true},
		"an outcome unknown":   {framed(2), true},
		"half a head":          {framed(append([]byte{outOK}, hash[1:]...)...), true},
		"a length of 4 GiB":    {"\xff\xff\xff\xff", true},
		"more than is allowed": {string(binary.BigEndian.AppendUint32(nil, maxReply+2)), true},
	} {
		r := NewRemote(script{strings.NewReader(c.says)})
		m := r.Model()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := m.Load([]byte("change"))
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%s made this process allocate %d bytes", name, grown)
		}
		if errors.Is(err, ErrGone) != c.gone || c.gone && err == nil {
			t.Errorf("%s: %v", name, err)
		}
		if !c.gone {
			continue
		}
		for what, err := range map[string]error{
			"text":             second(m.Text()),
			"splice":           second(m.Splice(notebook.ActorID{}, 1, nil)),
			"load":             second(m.Load([]byte("x"))),
			"another document": second(r.Model().Load([]byte("x"))),
		} {
			if err == nil {
				t.Errorf("after %s a %s was answered", name, what)
			}
		}
	}
	// A change that is larger than a change can be.
	long := append([]byte{outOK}, make([]byte, maxChunk+1)...)
	r := NewRemote(script{strings.NewReader(framed(append([]byte{outOK}, hash...)...) + framed(long...))})
	m := r.Model()
	if _, err := m.Load([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Splice(notebook.ActorID{}, 1, []notebook.Splice{{Insert: "x"}}); !errors.Is(err, ErrGone) {
		t.Errorf("a change of %d bytes: %v", len(long)-1, err)
	}
}

func second[T any](_ T, err error) error { return err }

// FuzzOrder: no request makes the decoder fail otherwise than by an error, and
// a splice that it takes is the one that was written.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{opLoad, 0, 1, 2, 3})
	f.Add([]byte{opText, 5})
	f.Add(encodeSplice(3, notebook.ActorID{1}, 7, []notebook.Splice{{At: 3, Delete: 2, Insert: "abc"}, {At: 9, Insert: "漢"}})[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOrder(b)
		if err != nil || o.op != opSplice {
			return
		}
		again, err := decodeOrder(encodeSplice(o.document, o.actor, o.at, o.splices)[4:])
		if err != nil || again.document != o.document || again.actor != o.actor || again.at != o.at || len(again.splices) != len(o.splices) {
			t.Fatalf("%+v was written and read as %+v: %v", o, again, err)
		}
		for i := range o.splices {
			if o.splices[i] != again.splices[i] {
				t.Fatalf("%+v was written and read as %+v", o.splices[i], again.splices[i])
			}
		}
	})
}
