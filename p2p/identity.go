package p2p

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"noted/notebook"
)

// A device's key is its libp2p identity, so each name of it gives the other.

func peerID(d notebook.DeviceID) (peer.ID, error) {
	key, err := crypto.UnmarshalEd25519PublicKey(d[:])
	if err != nil {
		return "", fmt.Errorf("device %s: %w", d.Short(), err)
	}
	return peer.IDFromPublicKey(key)
}

// deviceID is the device behind a peer id; false for peers whose key is of
// another kind or whose id does not hold it, which no noted has.
func deviceID(p peer.ID) (notebook.DeviceID, bool) {
	key, err := p.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return notebook.DeviceID{}, false
	}
	raw, err := key.Raw()
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return notebook.DeviceID{}, false
	}
	d := notebook.DeviceID(raw)
	if again, err := peerID(d); err != nil || again != p {
		return notebook.DeviceID{}, false
	}
	return d, true
}

func hostKey(key ed25519.PrivateKey) (crypto.PrivKey, notebook.DeviceID, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, notebook.DeviceID{}, errors.New("the device's key is not an ed25519 private key")
	}
	k, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, notebook.DeviceID{}, err
	}
	return k, notebook.DeviceID(key.Public().(ed25519.PublicKey)), nil
}
