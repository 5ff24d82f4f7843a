//go:build !unix

package rpc

import (
	"io/fs"
	"runtime"
)

// ownedByUser fails: whose a directory is cannot be asked here.
func ownedByUser(dir string, _ fs.FileInfo) (bool, error) {
	return false, unknownOwner(runtime.GOOS, dir)
}

// lockDir fails for the same reason: nothing is served from such a directory.
func lockDir(dir string) (unlock func(), err error) {
	return nil, unknownOwner(runtime.GOOS, dir)
}
