package notebook

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Result is the typed outcome of one run. It is an entry of its own and never
// part of a body, so output can never become a fence.
type Result struct {
	_       struct{} `cbor:",toarray"`
	Fence   FenceID
	Closure Hash // of the closure that ran
	Inputs  Hash // of args and inputs
	Rung    Rung
	Verdict Verdict
	Output  string // head and tail; see Dropped
	Dropped int64  // bytes of output that were not kept, between head and tail
	Head    int    // bytes of Output that are the head; the rest is the tail
	Error   string // message and line of a failed fence, in the fence's own lines
	Started int64  // Unix milliseconds
	Took    int64  // microseconds from the request to the dead worker
	Peak    int64  // bytes of the worker's peak resident memory, 0 where not known
	Limits  Limits

	Sent     int64 // bytes that went to hosts which it was granted
	Received int64 // and that came from them

	Layers []string // names of the jail's layers that held; kept here, not trusted from others
}

const (
	maxError  = 4 << 10 // bytes of Result.Error
	maxLayers = 32
)

// EncodeResult encodes r as a body of an entry of [KindResult].
func EncodeResult(r *Result) ([]byte, error) { return encodeBody(r, MaxResult) }

// DecodeResult reads what [EncodeResult] writes, and nothing else.
func DecodeResult(b []byte) (*Result, error) { return decodeBody[Result](b, MaxResult) }

func (r *Result) check() error {
	switch {
	case r.Fence.IsZero():
		return errors.New("no fence")
	case r.Closure.IsZero():
		return errors.New("no closure")
	case r.Rung == NoRung || r.Rung > Host:
		return fmt.Errorf("nothing runs at rung %v", r.Rung)
	case r.Verdict == NoVerdict || int(r.Verdict) >= len(verdicts):
		return fmt.Errorf("no outcome is %v", r.Verdict)
	case r.Head < 0 || r.Head > len(r.Output) || !utf8.ValidString(r.Output[:r.Head]):
		return fmt.Errorf("head of %d bytes in an output of %d", r.Head, len(r.Output))
	case len(r.Error) > maxError:
		return fmt.Errorf("error message of %d bytes where at most %d are allowed", len(r.Error), maxError)
	case r.Started < 0 || r.Started > MaxTime:
		return fmt.Errorf("started at %d, outside the years 1970 to 9999", r.Started)
	case r.Dropped < 0 || r.Took < 0 || r.Peak < 0 || r.Sent < 0 || r.Received < 0:
		return errors.New("a negative size or time")
	case r.Limits.Time <= 0 || r.Limits.Memory <= 0 || r.Limits.Output <= 0 || r.Limits.Source <= 0:
		return errors.New("a run without a limit")
	case len(r.Layers) > maxLayers:
		return fmt.Errorf("%d layers where at most %d are allowed", len(r.Layers), maxLayers)
	}
	for _, l := range r.Layers {
		if err := CheckLabel(l); err != nil {
			return fmt.Errorf("layer: %w", err)
		}
	}
	return nil
}
