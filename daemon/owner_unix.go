//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser reports whether a file is this user's own.
func ownedByUser(_ string, info fs.FileInfo) (bool, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid(), nil
}
