package exec

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A program of fifty megabytes has touched much of its text before a worker is
// ready, and a fence needs little of it. What is mapped has to be unmapped when
// the worker dies, and the answer waits for that: letting go of it first takes a
// fifth off the time of a trivial fence. What is needed comes back, unread, from
// the kernel's cache.

// span is a range of addresses.
type span struct{ from, to uintptr }

// cleanSpans are the mappings of files that hold no page of this process's own:
// the text and the constants of the program and of the C library.
func cleanSpans() (all []span) {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil // all stays mapped, which is slower and nothing else
	}
	var mapped span
	for l := range bytes.Lines(smaps) {
		f := bytes.Fields(l)
		switch {
		case len(f) >= 5 && len(f[1]) == 4: // FROM-TO rwxp OFFSET DEVICE INODE [NAME]
			mapped = span{}
			if len(f) == 6 && f[5][0] == '/' && f[1][1] == '-' {
				mapped = parseSpan(string(f[0]))
			}
		case len(f) == 3 && string(f[0]) == "Anonymous:" && string(f[1]) == "0" && mapped.to > mapped.from:
			all = append(all, mapped)
		}
	}
	return all
}

func parseSpan(s string) span {
	from, to, _ := strings.Cut(s, "-")
	a, err1 := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil {
		return span{}
	}
	return span{uintptr(a), uintptr(b)}
}

// forget lets go of the pages of clean mappings.
func forget(all []span) {
	for _, s := range all {
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}
