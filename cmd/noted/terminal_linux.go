package main

import "golang.org/x/sys/unix"

const noCTTY = unix.O_NOCTTY

// flushInput throws away what was typed and not read yet.
func flushInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
