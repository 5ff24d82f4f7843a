package p2p

import "time"

// A device that does not answer is tried again after a second, then after twice
// as long each time, up to a minute.
const (
	firstDelay = time.Second
	lastDelay  = time.Minute
)

// backoff says when to try again.
type backoff struct{ failures int }

// next is the delay after one more failure. jitter, in [0, 1), spreads it over
// ±20 % so that two devices that lost each other do not dial in step.
func (b *backoff) next(jitter float64) time.Duration {
	d := lastDelay
	if b.failures < 6 { // 1 2 4 8 16 32
		d = firstDelay << b.failures
	}
	b.failures++
	return time.Duration(float64(d) * (0.8 + 0.4*jitter))
}

// last makes the next delay the longest: what is wrong will not change soon.
func (b *backoff) last() { b.failures = max(b.failures, 6) }

func (b *backoff) reset() { b.failures = 0 }

// bucket bounds a rate: rate units a second and burst at once. Its zero value
// is full.
type bucket struct {
	rate, burst float64
	used        float64
	at          time.Time
}

// take spends n units, which may put the bucket into debt, and returns how long
// the debt takes to pay.
func (b *bucket) take(n float64, now time.Time) time.Duration {
	b.used = max(0, b.used-now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	b.used += n
	if b.used <= b.burst {
		return 0
	}
	return time.Duration((b.used - b.burst) / b.rate * float64(time.Second))
}
