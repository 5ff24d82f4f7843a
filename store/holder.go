package store

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"noted/notebook"
)

// held is the error for a file that another process has locked.
func held(path string) error {
	who := "another process"
	if pid := holder(path); pid != 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	return notebook.Errorf(notebook.CodeFailed, "the store %s is in use by %s", path, who).
		With("a home has one daemon: use the one that runs, or stop it first (noted daemon stop)")
}

// parseLocks finds the holder of a flock in lines such as
//
//	1: FLOCK  ADVISORY  WRITE 9739 fe:00:9977936 0 EOF
//
// where a line whose second field is "->" is a process that waits. Layered file
// systems show the inode under another device, so a line with the right inode
// alone counts where none has both.
func parseLocks(lines *bufio.Scanner, major, minor, inode uint64) int {
	byInode := 0
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		id := strings.Split(f[5], ":")
		if err != nil || len(id) != 3 || id[2] != strconv.FormatUint(inode, 10) {
			continue
		}
		if id[0] == fmt.Sprintf("%02x", major) && id[1] == fmt.Sprintf("%02x", minor) {
			return pid
		}
		byInode = pid
	}
	return byInode
}
