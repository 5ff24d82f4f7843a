package main

import "golang.org/x/sys/unix"

const noCTTY = unix.O_NOCTTY

// flushInput throws away what was typed and not read yet.
func flushInput(fd int) error {
	const input = 1 // FREAD
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input)
}
