package crdt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"noted/notebook"
)

// What a [Remote] and [Serve] say to each other: frames, one request and one
// reply at a time. A frame is a big-endian length of four bytes and that many
// bytes, which are checked before anything is allocated.
//
//	request: operation, number of the document, and then
//	  load    changes, to the end
//	  text
//	  splice  actor, time, number of splices; of each where, how much it
//	          deletes, length of what it inserts; what they insert, to the end
//	reply: outcome, and then
//	  ok      heads | text | change, to the end
//	  refused why, to the end
const (
	opLoad   = 1
	opText   = 2
	opSplice = 3

	outOK      = 0
	outRefused = 1
)

const (
	// maxRequest has room for a batch of changes, which ends with the change that
	// makes it full, and for the splices of one edit with all that they insert.
	maxRequest = loadBatch + maxChunk + 1<<20

	// maxReply has room for the text of a page that is full of the longest code
	// points, and thereby for a change and for the heads of every actor.
	maxReply = 4*maxPageOps + 1<<10

	// maxRefusal bounds what the model says of an error.
	maxRefusal = 1 << 10

	// maxDocuments bounds how many documents are open behind one Serve. What
	// bounds their memory ends that process long before.
	maxDocuments = 1 << 16
)

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
	_, err := io.ReadFull(r, b)
	return b, err
}

// newFrame begins a frame whose length is not known yet.
func newFrame(first byte, size int) []byte {
	return append(make([]byte, 4, 5+binary.MaxVarintLen64+size), first)
}

func writeFrame(w io.Writer, b []byte) error {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err := w.Write(b)
	return err
}

// order is a decoded request.
type order struct {
	op       byte
	document int
	changes  []byte
	actor    notebook.ActorID
	at       int64
	splices  []notebook.Splice
}

func decodeOrder(b []byte) (order, error) {
	r := reader{b: b}
	op := r.bytes(1)
	o := order{document: r.count(maxDocuments)}
	if r.err != nil {
		return o, r.err
	}
	switch o.op = op[0]; o.op {
	case opLoad:
		o.changes, r.b = r.b, nil
	case opText:
	case opSplice:
		copy(o.actor[:], r.bytes(uint64(len(o.actor))))
		o.at = int64(r.uleb())
		o.splices = make([]notebook.Splice, r.count(maxSplices))
		sizes := make([]int, len(o.splices))
		for i := range o.splices {
			o.splices[i].At, o.splices[i].Delete, sizes[i] = r.count(math.MaxInt32), r.count(math.MaxInt32), r.count(notebook.MaxBody)
		}
		for i, n := range sizes {
			o.splices[i].Insert = string(r.bytes(uint64(n)))
		}
	default:
		return o, fmt.Errorf("there is no operation %d", o.op)
	}
	if len(r.b) > 0 {
		r.fail(errors.New("there is more of it than a request has"))
	}
	return o, r.err
}

func encodeSplice(document int, actor notebook.ActorID, at int64, s []notebook.Splice) []byte {
	size := 2*len(actor) + len(s)*3*binary.MaxVarintLen32
	for _, x := range s {
		size += len(x.Insert)
	}
	b := appendUleb(newFrame(opSplice, size), uint64(document))
	b = append(b, actor[:]...)
	b = appendUleb(b, uint64(at))
	b = appendUleb(b, uint64(len(s)))
	for _, x := range s {
		b = appendUleb(appendUleb(appendUleb(b, uint64(x.At)), uint64(x.Delete)), uint64(len(x.Insert)))
	}
	for _, x := range s {
		b = append(b, x.Insert...)
	}
	return b
}

func decodeHeads(b []byte) (notebook.Revision, error) {
	var one notebook.Hash
	if len(b)%len(one) != 0 || len(b)/len(one) > maxPageActors {
		return nil, fmt.Errorf("%d bytes are no heads", len(b))
	}
	heads := make(notebook.Revision, 0, len(b)/len(one))
	for ; len(b) > 0; b = b[len(one):] {
		heads = append(heads, notebook.Hash(b[:len(one)]))
	}
	return heads, nil
}
