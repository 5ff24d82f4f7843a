//go:build !linux

package store

// holder is 0: how this system tells who has locked a file is not known here.
func holder(string) int { return 0 }
