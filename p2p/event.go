package p2p

import (
	"time"

	"noted/notebook"
)

// EventKind says what happened between this device and another.
type EventKind string

const (
	Connected    EventKind = "connected"    // an exchange with the device began; what was the problem is over
	Disconnected EventKind = "disconnected" // it ended; Text says why
	Problem      EventKind = "problem"      // what keeps the two from syncing changed; Text says it
	Addresses    EventKind = "addresses"    // the device's addresses changed; all are in Addresses
	Stranger     EventKind = "stranger"     // a device that is not in the notebook was turned away
)

// Event is one thing that happened. Text is a sentence without its subject,
// which is the device: "speaks sync version 2, this noted speaks 1: update noted here".
type Event struct {
	Kind      EventKind
	Device    notebook.DeviceID
	Text      string
	Addresses []string
}

// PeerInfo is a device as this node knows it.
type PeerInfo struct {
	Device    notebook.DeviceID
	Connected bool
	Addresses []string
	Since     time.Time // of the last change between connected and not
	Retry     time.Time // when it is dialed next; zero while connected or without an address
	Problem   string    // a sentence whose subject is the device; empty if there is none
}
