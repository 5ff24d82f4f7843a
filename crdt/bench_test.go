package crdt

import (
	"math/rand"
	"strings"
	"testing"
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
