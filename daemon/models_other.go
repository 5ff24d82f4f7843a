//go:build !cgo

package daemon

import (
	"errors"
	"io"
)

// modelsApart says that the write models are Go, and in this process.
const modelsApart = false

func serveModels(io.Reader, io.Writer) error { return errors.New("the write models are not apart") }
