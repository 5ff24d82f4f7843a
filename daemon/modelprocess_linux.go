package daemon

import (
	"fmt"
	"os"
	"syscall"
)

// modelProgram is this program, also where its file was replaced since it started.
func modelProgram() (string, error) { return "/proc/self/exe", nil }

// modelAttributes make the process die with the daemon's thread that started
// it, and keep the terminal's signals from it. What ends it early costs one
// more start; what it misses, the end of its requests tells it.
func modelAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
}

// resident is what the process holds of memory of its own now, in bytes, without
// the program itself, which it shares with the daemon; 0 if that cannot be known.
func (m *modelProcess) resident() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.process.Pid))
	if err != nil {
		return 0
	}
	var size, resident, shared int64 // in memory pages
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
