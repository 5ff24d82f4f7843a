package store_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/store/storetest"
)

func reportQuantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e6, "p99-ms")
}

// One entry of a keystroke and the page's records, durable.
func BenchmarkUpdate(b *testing.B) {
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d at once", goroutines), func(b *testing.B) {
			db := storetest.Open(b)
			took := make([][]time.Duration, goroutines)
			var wg sync.WaitGroup
			b.ResetTimer()
			for g := range goroutines {
				wg.Go(func() {
					for i := g; i < b.N; i += goroutines {
						start := time.Now()
						pos, e := entry(byte(g+1), uint64(i+1), "a change of one character")
						if err := db.Update(func(tx *store.Tx) error {
							if _, err := tx.PutEntry(pos, notebook.PageID{byte(g)}, e, ""); err != nil {
								return err
							}
							return tx.Put(store.Shadows, page(g), bytes.Repeat([]byte("s"), 2000))
						}); err != nil {
							b.Error(err)
						}
						took[g] = append(took[g], time.Since(start))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
			reportQuantiles(b, slices.Concat(took...))
		})
	}
}

// A first sync: 10,000 pages, two entries each, and what a page keeps besides.
func BenchmarkFirstSync(b *testing.B) {
	const pages, batch = 10_000, 250
	body := string(bytes.Repeat([]byte("x"), 2<<10))
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "noted.db")
		db, err := store.Open(path, store.Options{})
		must(b, err)
		seq := uint64(0)
		for from := 0; from < pages; from += batch {
			must(b, db.Update(func(tx *store.Tx) error {
				for n := from; n < from+batch; n++ {
					h := notebook.Digest("page", page(n))
					id := notebook.PageID(h[:16])
					for range 2 {
						seq++
						pos, e := entry(1, seq, body)
						if _, err := tx.PutEntry(pos, id, e, ""); err != nil {
							return err
						}
					}
					for space, value := range map[store.Space]string{
						store.Infos: body[:120], store.Shadows: body, store.Registers: body[:120], store.OwnFences: body[:40],
					} {
						if err := tx.Put(space, id[:], []byte(value)); err != nil {
							return err
						}
					}
				}
				return nil
			}))
		}
		b.StopTimer()
		must(b, db.Close())
		b.ReportMetric(float64(size(b, path))/1e6, "MB")
		start := time.Now()
		db, err = store.Open(path, store.Options{})
		must(b, err)
		b.ReportMetric(float64(time.Since(start).Microseconds()), "open-µs")
		start = time.Now()
		n := 0
		must(b, db.View(func(tx *store.Tx) error {
			for _, err := range tx.All(store.Infos, nil) {
				if n++; err != nil {
					return err
				}
			}
			return nil
		}))
		b.ReportMetric(float64(time.Since(start).Microseconds()), "list-µs")
		start = time.Now()
		storetest.Check(b, db)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "check-ms")
		must(b, db.Close())
		if n != pages {
			b.Fatalf("%d pages", n)
		}
		b.StartTimer()
	}
}
