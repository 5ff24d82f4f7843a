//go:build !linux

package exec

import (
	"runtime"

	"noted/notebook"
)

// Resolve refuses: outside of Linux nothing runs that could be given a
// directory, a program or the network.
func Resolve(c notebook.Capability, own []string) ([]byte, error) {
	return nil, notebook.Errorf(notebook.CodeUnavailable, "%s cannot be granted here: %s", c, noJail(runtime.GOOS).reason).
		With("run the fence on a Linux device of the notebook")
}
