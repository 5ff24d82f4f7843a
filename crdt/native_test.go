//go:build cgo

package crdt

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

// twin is a page with both write models: every edit is made by both, and the
// page takes it once.
type twin struct {
	page      *Page
	automerge Model
	native    Model
	device    notebook.DeviceID
	made      int
	entry     uint64
}

func newTwin(t testing.TB, device byte) *twin {
	t.Helper()
	w := &twin{page: NewPage(notebook.PageID{7}), automerge: Automerge(), device: notebook.DeviceID{device}}
	w.native = Native(w.page)
	_, err := w.automerge.Load(firstChange)
	must(t, err)
	return w
}

// author is one of the doors of the twin's device.
func (w *twin) author(door int) (notebook.Author, notebook.Epoch) {
	a := notebook.Author{Device: w.device, Class: notebook.Typed}
	if door > 0 {
		a.Class, a.Label = notebook.Agent, fmt.Sprint("agent", door)
	}
	return a, notebook.Epoch{w.device[0]}
}

// edit has both models make one change and finds the same bytes.
func (w *twin) edit(t testing.TB, door int, at int64, s ...notebook.Splice) []byte {
	t.Helper()
	a, e := w.author(door)
	must(t, checkSplices(s, w.page.Len()))
	want, err := w.automerge.Splice(a.Actor(e), at, s)
	must(t, err)
	got, err := w.native.Splice(a.Actor(e), at, s)
	must(t, err)
	w.made++
	if !bytes.Equal(got, want) {
		t.Fatalf("change %d, of %.200q: automerge makes\n%x\nand the page\n%x", w.made, fmt.Sprint(s), want, got)
	}
	w.take(t, a, e, got)
	return got
}

func (w *twin) take(t testing.TB, a notebook.Author, e notebook.Epoch, change []byte) {
	t.Helper()
	arrival, err := w.page.check(change, a, e, sawAll)
	must(t, err)
	w.entry++
	w.page.take(arrival, w.entry)
}

// agree holds both models and the page against each other.
func (w *twin) agree(t testing.TB) {
	t.Helper()
	for _, m := range []Model{w.automerge, w.native} {
		heads, err := m.Load(nil)
		must(t, err)
		text, err := m.Text()
		must(t, err)
		if text != w.page.Text() || !slices.Equal(heads, w.page.Revision()) {
			t.Fatalf("%T has %q at %v, the page %q at %v", m, text, heads, w.page.Text(), w.page.Revision())
		}
	}
}

// TestNativeMakesTheSameChanges lets devices with several doors each edit a page
// apart and together, and compares what both write models make of every edit.
func TestNativeMakesTheSameChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { sameChanges(t, rt) })
}

// FuzzNative is the same property with the fuzzer's choices.
func FuzzNative(f *testing.F) {
	f.Fuzz(func(t *testing.T, choices []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { sameChanges(t, rt) })(t, choices)
	})
}

func sameChanges(t testing.TB, rt *rapid.T) {
	type made struct {
		by     *twin
		door   int
		change []byte
	}
	group := make([]*twin, rapid.IntRange(1, 4).Draw(rt, "devices"))
	for i := range group {
		group[i] = newTwin(t, byte(i+1))
	}
	var log []made // in an order in which every change follows what it knows
	taken := make([]int, len(group))
	pull := func(i, upTo int) {
		for _, m := range log[taken[i]:upTo] {
			if m.by != group[i] {
				a, e := m.by.author(m.door)
				group[i].take(t, a, e, m.change)
				_, err := group[i].automerge.Load(m.change)
				must(t, err)
			}
		}
		taken[i] = max(taken[i], upTo)
		group[i].agree(t)
	}
	for range rapid.IntRange(1, 30).Draw(rt, "steps") {
		i := rapid.IntRange(0, len(group)-1).Draw(rt, "who")
		w := group[i]
		if rapid.IntRange(0, 2).Draw(rt, "what") == 0 {
			pull(i, rapid.IntRange(taken[i], len(log)).Draw(rt, "up to"))
			continue
		}
		s := drawEdit(rt, w.page.Len())
		door := rapid.IntRange(0, 2).Draw(rt, "door")
		log = append(log, made{w, door, w.edit(t, door, int64(rapid.IntRange(0, maxTime).Draw(rt, "time")), s...)})
	}
	for i := range group {
		pull(i, len(log))
		wholeTree(t, group[i].page)
	}
}

// drawEdit draws an edit of a text of length characters that changes something.
func drawEdit(rt *rapid.T, length int) []notebook.Splice {
	var s []notebook.Splice
	at := 0
	for range rapid.IntRange(1, 5).Draw(rt, "splices") {
		at = rapid.IntRange(at, length).Draw(rt, "at")
		x := notebook.Splice{At: at, Delete: rapid.IntRange(0, min(length-at, 8)).Draw(rt, "delete")}
		x.Insert = rapid.StringOfN(rapid.SampledFrom([]rune("aab`\n é漢😀")), 0, 6, -1).Draw(rt, "insert")
		if len(s) == 0 && x.Delete == 0 && x.Insert == "" {
			x.Insert = "x"
		}
		at += x.Delete
		s = append(s, x)
	}
	return s
}

// TestNativeOnALongTrace writes more than a quarter of a million operations: key
// by key, as changes of one operation, in the first third, then in commits of
// edits at up to thirty places. So long a page has every depth of its tree.
func TestNativeOnALongTrace(t *testing.T) {
	ops := traceOps
	if testing.Short() {
		ops /= 10
	}
	w := newTwin(t, 1)
	keys := &writing{random: rand.New(rand.NewSource(3))}
	for i := 0; len(w.page.chars) < ops; i++ {
		if len(w.page.chars) < ops/3 {
			for s := range oneByOne(keys.next()) {
				w.edit(t, 0, int64(i), s)
			}
			continue
		}
		w.edit(t, i%3, int64(i), slices.Collect(keys.several)...)
	}
	w.agree(t)
	wholeTree(t, w.page)
	t.Logf("%d changes of %d operations, the text has %d characters", w.made, len(w.page.chars), w.page.Len())
}

// TestNativePastes replaces pages as large as they can be.
func TestNativePastes(t *testing.T) {
	w := newTwin(t, 1)
	random := rand.New(rand.NewSource(5))
	for i := range 6 {
		at, size := random.Intn(w.page.Len()+1), 1+random.Intn(2*maxPieceOps)
		s := notebook.Splice{At: at, Delete: random.Intn(w.page.Len() - at + 1), Insert: strings.Repeat("pasted é漢😀\n", size/12+1)}
		for _, piece := range Split([]notebook.Splice{s}) {
			w.edit(t, i%2, int64(i), piece...)
		}
	}
	w.agree(t)
}
