//go:build cgo

package crdt

// WriteModel names what makes the changes of local edits in this build.
const WriteModel = "automerge"

// NewModel returns the write model of this build for a page: an automerge document.
func NewModel(*Page) Model { return Automerge() }
