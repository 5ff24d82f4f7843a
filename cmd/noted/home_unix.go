//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser reports whether a directory is this user's own.
func ownedByUser(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
