//go:build !linux && !darwin

package main

import (
	"errors"
	"runtime"
)

const noCTTY = 0

// flushInput fails: without it what was typed before a question could answer it.
func flushInput(int) error {
	return errors.New("noted does not know how on " + runtime.GOOS + "; use --pin-fd")
}
