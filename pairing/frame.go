package pairing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"noted/notebook"
)

// ProtocolVersion is the version of the exchange that this program speaks.
const ProtocolVersion = 1

// A frame is one byte of kind, four bytes of length, and that many bytes. Those
// five bytes, the version that begins the first frame of each side, and the
// frame that ends a pairing are the same in every version for ever, so that two
// versions can tell each other that they are two.
type kind uint8

const (
	kindGreet   kind = 1 + iota // joiner: version, notebook, commitment
	kindAnswer                  // inviter: version, nonce
	kindProof                   // joiner: nonce, proof, name
	kindReturn                  // inviter: number, proof, name
	kindConfirm                 // both: nothing
	kindAccept                  // joiner: signature
	kindWelcome                 // inviter: beginning of the log
	kindFirst                   // joiner: first entry
	kindDone                    // inviter: nothing
	kindEnd     kind = 255      // both: reason, step, version
)

// What the frames may hold, in bytes. A stranger can send the inviter at most
// maxSmall at a time before it is let go.
const (
	maxSmall   = 16 << 10
	MaxWelcome = 1 << 20 // what Commit may return
	MaxFirst   = maxSmall
	MaxAccept  = 1 << 10
)

// limits are the kinds that a side takes, and how long each may be.
type limits map[kind]int

var (
	inviterTakes = limits{kindGreet: 256, kindProof: 256, kindConfirm: 0, kindAccept: MaxAccept, kindFirst: MaxFirst, kindEnd: 4}
	joinerTakes  = limits{kindAnswer: 256, kindReturn: 256, kindConfirm: 0, kindWelcome: MaxWelcome, kindDone: 0, kindEnd: 4}
)

type frame struct {
	kind kind
	body []byte
}

var errFrame = errors.New("not a frame of this protocol")

func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.body)))
	return append(b, f.body...)
}

// readFrame reads one frame. Kind and length are checked before anything is
// allocated.
func readFrame(r io.Reader, takes limits) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	k := kind(head[0])
	most, ok := takes[k]
	if !ok {
		return frame{}, fmt.Errorf("%w: kind %d", errFrame, k)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(most) {
		return frame{}, fmt.Errorf("%w: kind %d with %d bytes where at most %d are allowed", errFrame, k, n, most)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return frame{}, err
	}
	return frame{k, body}, nil
}

func greetFrame(version uint16, nb notebook.NotebookID, commitment notebook.Hash) frame {
	b := binary.BigEndian.AppendUint16(nil, version)
	b = append(b, nb[:]...)
	return frame{kindGreet, append(b, commitment[:]...)}
}

func answerFrame(version uint16, n nonce) frame {
	return frame{kindAnswer, append(binary.BigEndian.AppendUint16(nil, version), n[:]...)}
}

// version reads what both sides' first frames begin with.
func (f frame) version() (uint16, bool) {
	if len(f.body) < 2 {
		return 0, false
	}
	return binary.BigEndian.Uint16(f.body), true
}

func (f frame) greet() (nb notebook.NotebookID, commitment notebook.Hash, ok bool) {
	if len(f.body) != 2+len(nb)+len(commitment) {
		return nb, commitment, false
	}
	copy(nb[:], f.body[2:])
	copy(commitment[:], f.body[2+len(nb):])
	return nb, commitment, true
}

func (f frame) answer() (n nonce, ok bool) {
	if len(f.body) != 2+len(n) {
		return n, false
	}
	copy(n[:], f.body[2:])
	return n, true
}

func proofFrame(n nonce, proof []byte, name string) frame {
	b := append(n[:len(n):len(n)], proof...)
	return frame{kindProof, append(b, name...)}
}

func (f frame) proof() (n nonce, proof []byte, name string, ok bool) {
	const fixed = len(n) + 32
	if len(f.body) < fixed {
		return n, nil, "", false
	}
	copy(n[:], f.body)
	proof, name = f.body[len(n):fixed], string(f.body[fixed:])
	return n, proof, name, notebook.CheckLabel(name) == nil
}

func returnFrame(number uint32, proof []byte, name string) frame {
	b := binary.BigEndian.AppendUint32(nil, number)
	b = append(b, proof...)
	return frame{kindReturn, append(b, name...)}
}

func (f frame) returned() (number uint32, proof []byte, name string, ok bool) {
	const fixed = 4 + 32
	if len(f.body) < fixed {
		return 0, nil, "", false
	}
	number = binary.BigEndian.Uint32(f.body)
	proof, name = f.body[4:fixed], string(f.body[fixed:])
	return number, proof, name, number > 0 && notebook.CheckLabel(name) == nil
}

func endFrame(f *Failure) frame {
	b := []byte{byte(f.Reason), byte(f.Step)}
	return frame{kindEnd, binary.BigEndian.AppendUint16(b, ProtocolVersion)}
}

// end reads the other side's reason. One that this version does not know is
// shown by its number.
func (f frame) end() (*Failure, bool) {
	if len(f.body) != 4 || f.body[0] == 0 {
		return nil, false
	}
	return &Failure{
		Reason: Reason(f.body[0]),
		Step:   Step(f.body[1]),
		There:  true,
		Theirs: binary.BigEndian.Uint16(f.body[2:]),
	}, true
}
