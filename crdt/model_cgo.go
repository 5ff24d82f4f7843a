//go:build cgo

package crdt

// NewModel returns the write model of this build for a page: an automerge document.
func NewModel(*Page) Model { return Automerge() }
