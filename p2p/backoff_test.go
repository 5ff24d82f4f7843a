package p2p

import (
	"testing"
	"time"
)

func TestBackoffDoublesToAMinute(t *testing.T) {
	var b backoff
	for k, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		want *= time.Second
		low, high := b, b
		if d := low.next(0); d != want*8/10 {
			t.Errorf("try %d: at least %v, want %v", k+1, d, want*8/10)
		}
		if d := high.next(1); d != want*12/10 {
			t.Errorf("try %d: at most %v, want %v", k+1, d, want*12/10)
		}
		b.next(0.5)
	}
	b.reset()
	if d := b.next(0.5); d != time.Second {
		t.Errorf("after a reset: %v", d)
	}
	b.last()
	if d := b.next(0.5); d != time.Minute {
		t.Errorf("what is lasting is tried again after %v", d)
	}
}

func TestBucket(t *testing.T) {
	at := time.Unix(1000, 0)
	b := bucket{rate: 2, burst: 3}
	for k, c := range []struct {
		n     float64
		after time.Duration
		want  time.Duration
	}{
		{3, 0, 0},
		{1, 0, 500 * time.Millisecond},
		{1, time.Second, 0}, // two paid, one spent
		{1, 0, 500 * time.Millisecond},
		{3, time.Hour, 0}, // never fuller than full
		{1, 0, 500 * time.Millisecond},
	} {
		at = at.Add(c.after)
		if got := b.take(c.n, at); got != c.want {
			t.Errorf("take %d: %v, want %v", k+1, got, c.want)
		}
	}
}
