package rpc

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Values of the notebook become messages by the write functions of this
// package. Text that is shown goes through [text]; text that a request carries
// does not, so that the codec refuses it instead of changing it.

// text is s as a message may carry it: what is not UTF-8, which only a foreign
// name or message can be, becomes U+FFFD, so that one bad byte does not hide
// the whole answer.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func texts[S ~string](ss []S) []string {
	if len(ss) == 0 {
		return nil
	}
	out := make([]string, 0, len(ss))
	for _, s := range ss {
		out = append(out, text(string(s)))
	}
	return out
}

// idBytes writes an identifier or hash; the zero value has no bytes.
func idBytes[A ~[16]byte | ~[32]byte](a A) []byte {
	var zero A
	if a == zero {
		return nil
	}
	b := make([]byte, len(a))
	for i := range b {
		b[i] = a[i]
	}
	return b
}

// all writes a list of values.
func all[T, M any](vs []T, write func(*T) *M) []*M {
	if len(vs) == 0 {
		return nil
	}
	ms := make([]*M, 0, len(vs))
	for i := range vs {
		ms = append(ms, write(&vs[i]))
	}
	return ms
}

// maybe writes a value that may be absent.
func maybe[T, M any](v *T, write func(*T) *M) *M {
	if v == nil {
		return nil
	}
	return write(v)
}

// The years that a timestamp can hold. A time that another device claims may
// lie outside, and is then shown as the nearest.
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
)

func timestamp(t time.Time) *timestamppb.Timestamp {
	switch {
	case t.IsZero():
		return nil
	case t.Before(firstTime):
		t = firstTime
	case t.After(lastTime):
		t = lastTime
	}
	return timestamppb.New(t)
}

func duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
