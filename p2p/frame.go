package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"noted/notebook"
)

// ProtocolVersion is the version of the sync exchange that this program speaks.
const ProtocolVersion = 1

// A frame is one byte of kind, four bytes of length, and that many bytes. Those
// five bytes, the version that begins a hello, and the farewell are the same in
// every version for ever, so that two versions can tell each other that they
// are two. Everything has a fixed layout, big-endian, with one encoding for
// each value.
type kind uint8

const (
	kindHello    kind = 1 + iota // version, notebook, run, serial, heads
	kindEntries                  // entries
	kindAck                      // bytes taken so far, heads
	kindPing                     // nothing
	kindFarewell                 // reason, version
	kindAgain                    // heads: what was sent and not taken is wanted once more
)

// Bounds of what travels, in bytes where nothing else is said.
const (
	maxHeads   = 4096 // of 88 bytes: devices × open epochs
	headSize   = 32 + 16 + 8 + 32
	headsSize  = 4 + maxHeads*headSize
	maxEntry   = 2 + notebook.MaxHeader + 64 + 4 + notebook.MaxText
	batchBytes = 256 << 10 // a batch closes before it would exceed this …
	maxBatch   = 256       // … or this many entries
	window     = 1 << 20   // entries that are sent and not acknowledged; one frame more if it is larger
)

// most is the largest body of a frame of the kind; false for kinds that do not exist.
func (k kind) most() (int, bool) {
	switch k {
	case kindHello:
		return 2 + 32 + 8 + 8 + headsSize, true
	case kindEntries:
		return 4 + max(batchBytes, maxEntry), true
	case kindAck:
		return 8 + headsSize, true
	case kindPing:
		return 0, true
	case kindFarewell:
		return 3, true
	case kindAgain:
		return headsSize, true
	}
	return 0, false
}

var errFrame = errors.New("not a frame of this protocol")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errFrame, fmt.Sprintf(format, args...))
}

// beginFrame appends a frame's head; endFrame fills in its length.
func beginFrame(b []byte, k kind) []byte { return append(b, byte(k), 0, 0, 0, 0) }

func endFrame(b []byte) []byte {
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-5))
	return b
}

// readHead reads kind and length, and checks both before anything is allocated.
func readHead(r io.Reader) (kind, int, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, err
	}
	k := kind(head[0])
	most, ok := k.most()
	if !ok {
		return 0, 0, malformed("kind %d", k)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(most) {
		return 0, 0, malformed("kind %d with %d bytes where at most %d are allowed", k, n, most)
	}
	return k, int(n), nil
}

// hello is what each side says first.
type hello struct {
	version  uint16
	notebook notebook.NotebookID
	run      uint64 // random, of one run of the program
	serial   uint64 // of the hellos of that run
	heads    []notebook.Head
}

func (h *hello) frame() []byte {
	b := beginFrame(nil, kindHello)
	b = binary.BigEndian.AppendUint16(b, h.version)
	b = append(b, h.notebook[:]...)
	b = binary.BigEndian.AppendUint64(b, h.run)
	b = binary.BigEndian.AppendUint64(b, h.serial)
	return endFrame(appendHeads(b, h.heads))
}

// readHello reads the version, and the rest if it is ours.
func readHello(b []byte) (h hello, err error) {
	r := reader{b: b}
	if h.version = r.uint16(); h.version != ProtocolVersion {
		return h, r.err
	}
	r.bytes(h.notebook[:])
	h.run, h.serial = r.uint64(), r.uint64()
	h.heads = r.heads()
	return h, r.end()
}

// appendHeads appends as many heads as a frame may hold. A peer that is told
// too few heads sends what is here already, which costs time and nothing else.
func appendHeads(b []byte, heads []notebook.Head) []byte {
	heads = heads[:min(len(heads), maxHeads)]
	b = binary.BigEndian.AppendUint32(b, uint32(len(heads)))
	for _, h := range heads {
		b = append(b, h.Position.Device[:]...)
		b = append(b, h.Position.Epoch[:]...)
		b = binary.BigEndian.AppendUint64(b, h.Position.Seq)
		b = append(b, h.Hash[:]...)
	}
	return b
}

// batch collects entries into one frame.
type batch struct {
	frame []byte
	n     int
}

func newBatch() *batch {
	return &batch{frame: append(beginFrame(nil, kindEntries), 0, 0, 0, 0)} // their number comes last
}

// full reports whether e belongs in another frame.
func (b *batch) full(e *notebook.Entry) bool {
	return b.n > 0 && (b.n >= maxBatch || b.size()+entrySize(e) > batchBytes)
}

func entrySize(e *notebook.Entry) int { return 2 + len(e.Header) + 64 + 4 + len(e.Body) }

// add appends an entry. One whose parts no reader would take is an error.
func (b *batch) add(e *notebook.Entry) error {
	if len(e.Header) == 0 || len(e.Header) > notebook.MaxHeader || len(e.Sig) != 64 || len(e.Body) > notebook.MaxText {
		return fmt.Errorf("an entry with a header of %d bytes, a signature of %d and a body of %d", len(e.Header), len(e.Sig), len(e.Body))
	}
	b.frame = binary.BigEndian.AppendUint16(b.frame, uint16(len(e.Header)))
	b.frame = append(b.frame, e.Header...)
	b.frame = append(b.frame, e.Sig...)
	b.frame = binary.BigEndian.AppendUint32(b.frame, uint32(len(e.Body)))
	b.frame = append(b.frame, e.Body...)
	b.n++
	return nil
}

// size is what the batch takes of the window.
func (b *batch) size() int { return len(b.frame) - 5 }

func (b *batch) end() []byte {
	binary.BigEndian.PutUint32(b.frame[5:], uint32(b.n))
	return endFrame(b.frame)
}

// readEntries reads a batch. The entries share b's memory.
func readEntries(b []byte) (entries []notebook.Entry, err error) {
	r := reader{b: b}
	n := int(r.uint32())
	if r.err == nil && (n == 0 || n > maxBatch) {
		return nil, malformed("a batch of %d entries", n)
	}
	for range n {
		e := notebook.Entry{Header: r.next(int(r.uint16()), notebook.MaxHeader), Sig: r.next(64, 64)}
		e.Body = r.next(int(r.uint32()), notebook.MaxText)
		if r.err == nil && len(e.Header) == 0 {
			r.err = malformed("an entry without a header")
		}
		if r.err != nil {
			return nil, r.err
		}
		entries = append(entries, e)
	}
	return entries, r.end()
}

func ackFrame(taken uint64, heads []notebook.Head) []byte {
	b := binary.BigEndian.AppendUint64(beginFrame(nil, kindAck), taken)
	return endFrame(appendHeads(b, heads))
}

func readAck(b []byte) (taken uint64, heads []notebook.Head, err error) {
	r := reader{b: b}
	taken = r.uint64()
	heads = r.heads()
	return taken, heads, r.end()
}

func againFrame(heads []notebook.Head) []byte {
	return endFrame(appendHeads(beginFrame(nil, kindAgain), heads))
}

func readAgain(b []byte) ([]notebook.Head, error) {
	r := reader{b: b}
	heads := r.heads()
	return heads, r.end()
}

func farewellFrame(f farewell) []byte {
	b := append(beginFrame(nil, kindFarewell), byte(f))
	return endFrame(binary.BigEndian.AppendUint16(b, ProtocolVersion))
}

func readFarewell(b []byte) (f farewell, version uint16, err error) {
	r := reader{b: b}
	f = farewell(r.uint8())
	version = r.uint16()
	return f, version, r.end()
}

// reader takes a frame's body apart and keeps its first error.
type reader struct {
	b   []byte
	err error
}

// next is the next n bytes, of which there may be at most most.
func (r *reader) next(n, most int) []byte {
	switch {
	case r.err != nil:
		return nil
	case n < 0 || n > most:
		r.err = malformed("%d bytes where at most %d are allowed", n, most)
		return nil
	case n > len(r.b):
		r.err = malformed("%d bytes where %d are left", n, len(r.b))
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) bytes(dst []byte) { copy(dst, r.next(len(dst), len(dst))) }

func (r *reader) uint8() uint8 {
	if p := r.next(1, 1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if p := r.next(2, 2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if p := r.next(4, 4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if p := r.next(8, 8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

func (r *reader) heads() []notebook.Head {
	n := int(r.uint32())
	if r.err == nil && (n > maxHeads || n*headSize > len(r.b)) {
		r.err = malformed("%d heads", n)
	}
	if r.err != nil || n == 0 {
		return nil
	}
	heads := make([]notebook.Head, n)
	for k := range heads {
		r.bytes(heads[k].Position.Device[:])
		r.bytes(heads[k].Position.Epoch[:])
		heads[k].Position.Seq = r.uint64()
		r.bytes(heads[k].Hash[:])
	}
	if err := notebook.CheckHeads(heads); err != nil && r.err == nil {
		r.err = malformed("%v", err)
	}
	return heads
}

// end says why the frame was not exactly what was read of it.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = malformed("%d bytes too many", len(r.b))
	}
	return r.err
}
