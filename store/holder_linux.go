package store

import (
	"bufio"
	"os"
	"syscall"
)

// holder is the pid of the process that holds a flock on the file at path, 0
// where that cannot be known. The kernel's own list cannot be out of date, as
// a pid file can.
func holder(path string) int {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	return parseLocks(bufio.NewScanner(f), major(st.Dev), minor(st.Dev), st.Ino)
}

// major and minor take a device number of the Linux kernel apart.
func major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }
func minor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }
