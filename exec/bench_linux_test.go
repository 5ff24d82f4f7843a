package exec

import (
	"context"
	"slices"
	"testing"
	"time"

	"noted/notebook"
)

// report gives the middle and the slowest hundredth of what was measured.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	ms := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(ms(1), "max-ms")
	b.ReportMetric(0, "ns/op")
}

// rested waits until every spare is ready and the processors are free of their start.
func (r *Runner) rested() {
	r.refill()
	r.mu.Lock()
	spares := slices.Clone(r.spares)
	r.mu.Unlock()
	for _, s := range spares {
		<-s.done
	}
}

func benchRun(b *testing.B, c Config, l notebook.Limits, source string, want notebook.Verdict) []time.Duration {
	b.Helper()
	r := newRunner(b, c)
	var took []time.Duration
	for b.Loop() {
		r.rested()
		start := time.Now()
		res, _, err := r.run(context.Background(), strictJob(l, source))
		took = append(took, time.Since(start))
		if err != nil || res.Verdict != want {
			b.Fatalf("%v %q %v", res.Verdict, res.Error, err)
		}
	}
	return took
}

// BenchmarkStrictWarm is a trivial fence from the request to the dead worker,
// with a spare that is ready.
func BenchmarkStrictWarm(b *testing.B) {
	report(b, benchRun(b, Config{}, notebook.DefaultLimits, "return 1 + 1", notebook.OK))
}

// BenchmarkStrictCold is the same without a spare.
func BenchmarkStrictCold(b *testing.B) {
	c := Config{Spares: -1}
	r := newRunner(b, c)
	r.mu.Lock()
	first := r.spares
	r.spares = nil
	r.mu.Unlock()
	for _, s := range first {
		s.discard()
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		res, _, err := r.run(context.Background(), strictJob(notebook.DefaultLimits, "return 1 + 1"))
		took = append(took, time.Since(start))
		if err != nil || res.Verdict != notebook.OK {
			b.Fatalf("%v %q %v", res.Verdict, res.Error, err)
		}
	}
	report(b, took)
}

// BenchmarkDeadline is how long after its deadline an endless fence is dead.
func BenchmarkDeadline(b *testing.B) {
	l := notebook.DefaultLimits
	l.Time = 50 * time.Millisecond
	took := benchRun(b, Config{Limits: l}, l, "while true do end", notebook.Timeout)
	for i := range took {
		took[i] -= l.Time
	}
	report(b, took)
}
