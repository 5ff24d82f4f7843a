//go:build !cgo

package crdt

// WriteModel names what makes the changes of local edits in this build.
const WriteModel = "native"

// NewModel returns the write model of this build for a page: the page itself.
func NewModel(p *Page) Model { return Native(p) }
