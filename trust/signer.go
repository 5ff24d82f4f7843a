package trust

import (
	"crypto/ed25519"
	"encoding/binary"

	"noted/notebook"
)

// Signer signs with one device's key.
type Signer struct {
	key    ed25519.PrivateKey
	device notebook.DeviceID
}

// NewSigner returns the signer of the device whose identity is key, which has
// [ed25519.PrivateKeySize] bytes.
func NewSigner(key ed25519.PrivateKey) *Signer {
	return &Signer{key: key, device: notebook.DeviceID(key.Public().(ed25519.PublicKey))}
}

// Device is whose signatures s makes.
func (s *Signer) Device() notebook.DeviceID { return s.device }

// sign signs the digest of parts under a domain, so that no signature of one
// purpose can be taken for one of another.
func (s *Signer) sign(domain string, parts ...[]byte) []byte {
	d := notebook.Digest(domain, parts...)
	return ed25519.Sign(s.key, d[:])
}

func signed(by notebook.DeviceID, sig []byte, domain string, parts ...[]byte) bool {
	d := notebook.Digest(domain, parts...)
	return len(sig) == ed25519.SignatureSize && ed25519.Verify(by[:], d[:], sig)
}

// The domains of what a device signs.
const (
	entryDomain = "noted/entry/v1" // over the header as it travels
	joinDomain  = "noted/join/v1"  // over notebook, inviter, joiner, number and name
)

// AcceptJoin is the joiner's signature in the add that takes its device in: it
// agrees to join nb at the invitation of inviter, for the number-th time, under
// name. Nobody can be added who did not ask for it, nor again by an old yes.
func AcceptJoin(s *Signer, nb notebook.NotebookID, inviter notebook.DeviceID, number uint32, name string) []byte {
	return s.sign(joinDomain, joinParts(nb, inviter, s.device, number, name)...)
}

func joinParts(nb notebook.NotebookID, inviter, joiner notebook.DeviceID, number uint32, name string) [][]byte {
	return [][]byte{nb[:], inviter[:], joiner[:], binary.BigEndian.AppendUint32(nil, number), []byte(name)}
}
