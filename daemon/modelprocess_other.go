//go:build !linux

package daemon

import (
	"os"
	"syscall"
)

func modelProgram() (string, error) { return os.Executable() }

func modelAttributes() *syscall.SysProcAttr { return nil }

// resident is what the process holds of memory, in bytes. It is not known here,
// so every document counts as what one of 2 KiB takes on Linux.
func (m *modelProcess) resident() int64 { return int64(m.Documents()) << 20 }
