package crdt

import (
	"math/rand"
	"strings"
	"testing"

	"noted/notebook"
)

// keystrokes is a page that was typed key by key: n changes of one operation,
// one in eight a deletion, the cursor moving now and then. Most of a page that
// long is typed in the middle of something.
func keystrokes(t testing.TB, n int) [][]byte {
	t.Helper()
	r := newReplica(t, 1)
	r.edit(t, func(text editor) { must(t, text.Insert(0, strings.Repeat("A line of the page.\n", 20))) })
	random := rand.New(rand.NewSource(1))
	at := 0
	for i := range n - 1 {
		if i%40 == 0 {
			at = random.Intn(r.page.Len())
		}
		r.edit(t, func(text editor) {
			if at > 0 && random.Intn(8) == 0 {
				at--
				must(t, text.Delete(at, 1))
				return
			}
			must(t, text.Insert(at, "x"))
			at++
		})
	}
	r.agree(t)
	return r.made
}

// BenchmarkKeystroke is the gate and the shadow for one change of one key.
func BenchmarkKeystroke(b *testing.B) {
	changes := keystrokes(b, 10_000)
	r := newReplica(b, 1)
	p := NewPage(r.page.id)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if i%len(changes) == 0 {
			p = NewPage(p.id)
		}
		a, err := p.check(changes[i%len(changes)], r.author, r.epoch, sawAll)
		if err != nil {
			b.Fatal(err)
		}
		p.take(a, uint64(i%len(changes)+1))
	}
}

// BenchmarkOpenPage10k opens a page with ten thousand changes from its record.
func BenchmarkOpenPage10k(b *testing.B) {
	r := newReplica(b, 1)
	for i, c := range keystrokes(b, 10_000) {
		a, err := r.page.check(c, r.author, r.epoch, sawAll)
		must(b, err)
		r.page.take(a, uint64(i+1))
	}
	record := r.page.Record()
	b.ReportAllocs()
	b.ReportMetric(float64(len(record)), "bytes")
	b.ResetTimer()
	for b.Loop() {
		if _, err := OpenPage(r.page.id, record); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord10k writes the record of the same page.
func BenchmarkRecord10k(b *testing.B) {
	r := newReplica(b, 1)
	for i, c := range keystrokes(b, 10_000) {
		a, err := r.page.check(c, r.author, r.epoch, sawAll)
		must(b, err)
		r.page.take(a, uint64(i+1))
	}
	b.ReportAllocs()
	for b.Loop() {
		r.page.Record()
	}
}

// BenchmarkInsert2KiB is a page of two kibibytes that arrives as one change.
func BenchmarkInsert2KiB(b *testing.B) {
	r := newReplica(b, 1)
	change := r.edit(b, func(text editor) {
		must(b, text.Insert(0, strings.Repeat("A line of thirty-one characters\n", 64)))
	})
	b.ReportAllocs()
	for b.Loop() {
		p := NewPage(r.page.id)
		a, err := p.check(change, r.author, r.epoch, sawAll)
		if err != nil {
			b.Fatal(err)
		}
		p.take(a, 1)
	}
}

// traced is what trace returns, once it was made.
var traced [][]byte

// trace is traceOps changes of one operation each.
func trace(b *testing.B) [][]byte {
	b.Helper()
	if traced != nil {
		return traced
	}
	r := newReplica(b, 1)
	m := Native(r.page)
	keys := &writing{random: rand.New(rand.NewSource(3))}
	for len(r.made) < traceOps {
		for s := range oneByOne(keys.next()) {
			c, err := m.Splice(r.author.Actor(r.epoch), 0, []notebook.Splice{s})
			must(b, err)
			a, err := r.page.check(c, r.author, r.epoch, sawAll)
			must(b, err)
			r.made = append(r.made, c)
			r.page.take(a, uint64(len(r.made)))
		}
	}
	traced = r.made[:traceOps]
	return traced
}

// BenchmarkTrace260k is the gate and the shadow for a long trace of one
// operation per change.
func BenchmarkTrace260k(b *testing.B) {
	changes := trace(b)
	r := newReplica(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		p := NewPage(r.page.id)
		for i, c := range changes {
			a, err := p.check(c, r.author, r.epoch, sawAll)
			if err != nil {
				b.Fatal(err)
			}
			p.take(a, uint64(i+1))
		}
	}
}

// BenchmarkNativeKeystroke is what the native write model takes for one key
// anywhere in a page of 260,000 operations, without the gate.
func BenchmarkNativeKeystroke(b *testing.B) {
	r := newReplica(b, 1)
	for i, c := range trace(b) {
		a, err := r.page.check(c, r.author, r.epoch, sawAll)
		must(b, err)
		r.page.take(a, uint64(i+1))
	}
	m := Native(r.page)
	random := rand.New(rand.NewSource(1))
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if _, err := m.Splice(r.author.Actor(r.epoch), 0, []notebook.Splice{{At: random.Intn(r.page.Len()), Insert: "x"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNativePaste1MiB pastes a mebibyte into an empty page, in pieces, from
// the edit to the shadow.
func BenchmarkNativePaste1MiB(b *testing.B) {
	r := newReplica(b, 1)
	text := strings.Repeat("A line of thirty-one characters\n", notebook.MaxBody/32)
	pieces := Split([]notebook.Splice{{Insert: text}})
	b.ReportAllocs()
	for b.Loop() {
		p := NewPage(r.page.id)
		w, err := OpenWriter(p, Native(p), nil)
		must(b, err)
		for i, s := range pieces {
			c, err := w.Splice(r.author, r.epoch, someTime, s)
			must(b, err)
			a, err := p.check(c, r.author, r.epoch, sawAll)
			must(b, err)
			p.take(a, uint64(i+1))
		}
		if p.Size() != len(text) {
			b.Fatalf("the page has %d bytes", p.Size())
		}
	}
}
