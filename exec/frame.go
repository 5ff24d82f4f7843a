package exec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"noted/notebook"
)

// A frame is a big-endian length of four bytes and that many bytes. Three kinds
// cross the two pipes, each once and in this order: the worker says that it is
// ready and which layers hold; the parent sends the request; the worker sends
// the outcome. Lengths are checked before anything is allocated.
const (
	maxReadyFrame   = 4 << 10
	maxOutcomeFrame = 8 << 10
	maxErrorText    = 4 << 10
	maxFields       = 1 << 10 // layers, inputs, args
)

// ready is what a worker says of its jail.
type ready struct {
	layers  []string // that hold
	missing string   // the first mandatory layer that could not be had; empty when the worker is usable
	reason  string   // why it could not
}

// request is a fence and the values that were granted to it.
type request struct {
	before []field // what the fence includes, in the order in which it runs: chunk name and source
	source string
	inputs []field // by capability
	args   []field // sorted by name; nil where args were not granted
}

// outcome is what a fence came to, as far as it came to its own end.
type outcome struct {
	failed    bool
	exhausted bool   // it could not have the memory that it wanted; said by how the worker ends
	text      string // the error of a failed fence
}

type field struct{ name, value string }

var errFrame = errors.New("the frame is malformed")

func readFrame(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(most) {
		return nil, fmt.Errorf("a frame of %d bytes where %d is the most", n, most)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return b, nil
}

// frame finishes what an encoder wrote behind four reserved bytes.
func frame(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFields(b []byte, fs []field) []byte {
	b = binary.AppendUvarint(b, uint64(len(fs)))
	for _, f := range fs {
		b = appendText(appendText(b, f.name), f.value)
	}
	return b
}

func (r *ready) encode() []byte {
	b := make([]byte, 4, 64)
	b = binary.AppendUvarint(b, uint64(len(r.layers)))
	for _, l := range r.layers {
		b = appendText(b, l)
	}
	return frame(appendText(appendText(b, r.missing), r.reason))
}

func (r *request) encode() []byte {
	n := len(r.source) + 64
	for _, fs := range [][]field{r.before, r.inputs} {
		n += size(fs) + 20*len(fs)
	}
	b := make([]byte, 4, n)
	b = appendFields(appendText(appendFields(b, r.before), r.source), r.inputs)
	if r.args == nil {
		return frame(append(b, 0))
	}
	return frame(appendFields(append(b, 1), r.args))
}

func (o *outcome) encode() []byte {
	b := make([]byte, 4, 64)
	if o.failed {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return frame(appendText(b, o.text))
}

// scan reads what the encoders wrote; after a first mistake it yields nothing more.
type scan struct {
	b   []byte
	bad bool
}

func (s *scan) number(most int) int {
	n, size := binary.Uvarint(s.b)
	if size <= 0 || n > uint64(most) || size > 1 && s.b[size-1] == 0 {
		s.b, s.bad = nil, true
		return 0
	}
	s.b = s.b[size:]
	return int(n)
}

func (s *scan) text() string {
	n := s.number(len(s.b))
	if n > len(s.b) {
		s.b, s.bad = nil, true
		return ""
	}
	t := string(s.b[:n])
	s.b = s.b[n:]
	return t
}

// wide reads a number of 64 bits that [appendWide] wrote.
func (s *scan) wide() uint64 {
	if len(s.b) < 8 {
		s.b, s.bad = nil, true
		return 0
	}
	n := binary.BigEndian.Uint64(s.b)
	s.b = s.b[8:]
	return n
}

func appendWide(b []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(b, n) }

func (s *scan) flag() bool { return s.number(1) == 1 }

func (s *scan) fields() []field {
	n := s.number(maxFields)
	fs := []field{}
	for range n {
		f := field{name: s.text(), value: s.text()}
		if s.bad {
			return nil
		}
		fs = append(fs, f)
	}
	return fs
}

// end is nil if everything was well formed and nothing is left over.
func (s *scan) end() error {
	if s.bad || len(s.b) > 0 {
		return errFrame
	}
	return nil
}

func decodeReady(b []byte) (ready, error) {
	s := scan{b: b}
	var r ready
	for range s.number(maxFields) {
		l := s.text()
		if s.bad {
			break
		}
		r.layers = append(r.layers, l)
	}
	r.missing, r.reason = s.text(), s.text()
	if err := s.end(); err != nil {
		return ready{}, err
	}
	return r, nil
}

func decodeRequest(b []byte) (request, error) {
	s := scan{b: b}
	r := request{before: s.fields(), source: s.text(), inputs: s.fields()}
	if s.flag() {
		r.args = s.fields()
	}
	if err := s.end(); err != nil {
		return request{}, err
	}
	return r, nil
}

func decodeOutcome(b []byte) (outcome, error) {
	s := scan{b: b}
	o := outcome{failed: s.flag(), text: s.text()}
	if err := s.end(); err != nil {
		return outcome{}, err
	}
	if len(o.text) > maxErrorText {
		return outcome{}, errFrame
	}
	return o, nil
}

// size is how much the names and values of fields come to.
func size(fs []field) int {
	n := 0
	for _, f := range fs {
		n += len(f.name) + len(f.value)
	}
	return n
}

// digest names the values that the fence was given, and what it was granted to
// reach; it is the same on every device that gives it the same ones.
func (r *request) digest(pins ...field) notebook.Hash {
	var parts [][]byte
	for i, fs := range [][]field{r.inputs, r.args, pins} {
		for _, f := range fs {
			parts = append(parts, []byte{byte(i)}, []byte(f.name), []byte(f.value))
		}
	}
	return notebook.Digest("noted/inputs/v1", parts...)
}
