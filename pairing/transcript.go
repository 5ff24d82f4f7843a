package pairing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"noted/notebook"
)

// transcript is all that the two sides must agree on before either proves
// anything. The device ids are those that the channel proved, not what a frame
// says.
type transcript struct {
	notebook    notebook.NotebookID
	inviter     notebook.DeviceID
	joiner      notebook.DeviceID
	commitment  notebook.Hash // of the joiner's nonce, sent before it saw the inviter's
	inviteNonce nonce
	joinNonce   nonce
	inviteName  string
	joinName    string
	number      uint32
}

type nonce [32]byte

// The roles keep one side's proof from being the other's.
const (
	roleJoiner  = "joiner"
	roleInviter = "inviter"
)

// commitTo binds the joiner to its nonce before the inviter's is known, so
// that nobody between the two can search for nonces that make two codes equal.
func commitTo(n nonce) notebook.Hash { return notebook.Digest("noted/pairing/commitment/v1", n[:]) }

func (t *transcript) digest() notebook.Hash {
	return notebook.Digest("noted/pairing/transcript/v1",
		t.notebook[:], t.inviter[:], t.joiner[:], t.commitment[:], t.inviteNonce[:], t.joinNonce[:],
		[]byte(t.inviteName), []byte(t.joinName), binary.BigEndian.AppendUint32(nil, t.number))
}

// proof is what a side that knows the secret can say about the transcript, and
// only in its own role. The joiner's comes before it knows the inviter's name
// and number, which are zero in what it proves; the inviter proves all.
func (t *transcript) proof(s Secret, role string) []byte {
	m := hmac.New(sha256.New, s[:])
	d := t.digest()
	said := notebook.Digest("noted/pairing/proof/v1", []byte(role), d[:])
	m.Write(said[:])
	return m.Sum(nil)
}

// code is the six digits that both people compare.
func (t *transcript) code() string {
	d := t.digest()
	h := notebook.Digest("noted/pairing/code/v1", d[:])
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(h[:])%1_000_000)
}
