package rpc

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"noted/notebook"
)

// reader turns messages into values of the notebook. It keeps the first thing
// that is wrong, under the name of its field, so that a conversion reads as a
// plain list of fields and its caller asks once, at the end.
type reader struct {
	request bool // mandatory fields must be there and bounds hold; an answer is read as it is
	path    []string
	problem string
}

// wrong records that field is not what it must be.
func (r *reader) wrong(field, format string, args ...any) {
	if r.problem == "" {
		r.problem = strings.Join(append(r.path[:len(r.path):len(r.path)], field), ".") + " " + fmt.Sprintf(format, args...)
	}
}

// refused is the error of a request that is not right; nil if it is.
func (r *reader) refused() error {
	if r.problem == "" {
		return nil
	}
	return notebook.Errorf(notebook.CodeInvalid, "the request is not valid: %s", r.problem)
}

// garbled is the error of an answer that is not right; nil if it is.
func (r *reader) garbled() error {
	if r.problem == "" {
		return nil
	}
	return notebook.Errorf(notebook.CodeFailed, "the daemon's answer is not understood: %s", r.problem).
		With("the daemon may be of another version: noted daemon stop, then noted daemon run")
}

// within reads the message of a field; a message that is not there is the zero value.
func within[M, T any](r *reader, field string, m *M, read func(*reader, *M) T) T {
	var zero T
	if m == nil {
		return zero
	}
	r.path = append(r.path, field)
	v := read(r, m)
	r.path = r.path[:len(r.path)-1]
	return v
}

// needed reads the message of a field that has to be there.
func needed[M, T any](r *reader, field string, m *M, read func(*reader, *M) T) T {
	if m == nil {
		r.wrong(field, "is missing")
	}
	return within(r, field, m, read)
}

// pointer makes a reader of values one of pointers, which are nil where there is no message.
func pointer[M, T any](read func(*reader, *M) T) func(*reader, *M) *T {
	return func(r *reader, m *M) *T {
		v := read(r, m)
		return &v
	}
}

// every reads a list of messages.
func every[M, T any](r *reader, field string, ms []*M, read func(*reader, *M) T) []T {
	if len(ms) == 0 {
		return nil
	}
	vs := make([]T, 0, len(ms))
	for i, m := range ms {
		vs = append(vs, within(r, fmt.Sprintf("%s[%d]", field, i), m, read))
	}
	return vs
}

// id reads an identifier or hash: all its bytes, or none for the zero value.
func id[A ~[16]byte | ~[32]byte](r *reader, field string, b []byte) A {
	var zero A
	switch len(b) {
	case 0:
		return zero
	case len(zero):
		return A(b)
	}
	r.wrong(field, "has %d bytes instead of %d", len(b), len(zero))
	return zero
}

// neededID reads an identifier or hash that a request may not leave out.
func neededID[A ~[16]byte | ~[32]byte](r *reader, field string, b []byte) A {
	if r.request && len(b) == 0 {
		r.wrong(field, "is missing")
	}
	return id[A](r, field, b)
}

// heads reads a page's state. A request has to name one: an edit without
// the state that it was made against would overwrite what its author never saw.
func (r *reader) heads(bs [][]byte) notebook.Revision {
	v := make(notebook.Revision, 0, len(bs))
	for i, b := range bs {
		if len(b) != len(notebook.Hash{}) {
			r.wrong(fmt.Sprintf("heads[%d]", i), "has %d bytes instead of %d", len(b), len(notebook.Hash{}))
			return nil
		}
		v = append(v, notebook.Hash(b))
	}
	return v
}

// integer reads a number that has to fit an int.
func (r *reader) integer(field string, n int64) int {
	if n > math.MaxInt || n < math.MinInt {
		r.wrong(field, "is %d, too large for this machine", n)
		return 0
	}
	if r.request && n < 0 {
		r.wrong(field, "is %d, less than 0", n)
		return 0
	}
	return int(n)
}

// enum reads one of the values that a notebook type has, by the number that
// both sides share.
func enum[T ~uint8](r *reader, field string, n int32, last T) T {
	if n < 0 || n > int32(last) {
		r.wrong(field, "has the unknown value %d", n)
		return 0
	}
	return T(n)
}

// word reads a string that is one of a few; the empty one is always allowed.
func word[T ~string](r *reader, field, s string, known ...T) T {
	if s == "" {
		return ""
	}
	names := make([]string, 0, len(known))
	for _, k := range known {
		if T(s) == k {
			return k
		}
		names = append(names, string(k))
	}
	r.wrong(field, "is %q and has to be one of: %s", clip(s), strings.Join(names, ", "))
	return ""
}

// short reads a string of a request that has at most so many bytes.
func (r *reader) short(field, s string, most int) string {
	if r.request && len(s) > most {
		r.wrong(field, "has %d bytes and may have %d", len(s), most)
		return ""
	}
	return s
}

// args reads what a person passes to a fence.
func (r *reader) args(field string, m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	size := 0
	for k, v := range m {
		size += len(k) + len(v)
	}
	if r.request && (len(m) > maxArgs || size > maxArgsSize) {
		r.wrong(field, "has %d entries of %d bytes and may have %d of %d", len(m), size, maxArgs, maxArgsSize)
		return nil
	}
	return m
}

// time reads a point in time, in UTC; none is the zero time.
func (r *reader) time(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if !t.IsValid() {
		r.wrong(field, "is not a time")
		return time.Time{}
	}
	return t.AsTime()
}

// duration reads a length of time of at most 292 years, which is what Go's holds.
func (r *reader) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	v := d.AsDuration()
	if !d.IsValid() || v == math.MaxInt64 || v == math.MinInt64 {
		r.wrong(field, "is not a length of time")
		return 0
	}
	return v
}

// clip keeps hostile input out of error messages beyond a recognisable length.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
