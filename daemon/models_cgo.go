//go:build cgo

package daemon

import (
	"io"

	"noted/crdt"
)

// modelsApart says that the write models are automerge's: C memory, in code that
// is not memory-safe, and so in a process of their own.
const modelsApart = true

// emptyModel makes the models of the process that holds them.
var emptyModel = crdt.Automerge

func serveModels(in io.Reader, out io.Writer) error { return crdt.Serve(in, out, emptyModel) }
