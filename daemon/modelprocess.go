package daemon

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"noted/crdt"
	"noted/exec"
)

// modelName is argv[0] of the process that holds the write models.
const modelName = "noted-page-models"

// modelMemory is how much more than at its start that process may hold, in
// bytes. A page of one mebibyte takes 530 MiB there when it is written, and
// 1,050 MiB once it was deleted and written again.
const modelMemory = 3 << 30

var dispatched atomic.Bool

// Child turns this process into what a daemon starts its own program as, a fence
// worker or the process that holds the write models, if it was started as one,
// and then never returns. It must be the first statement of main and of
// TestMain: without it such a child would run the whole program again, and
// [Open] refuses in a process that did not call it.
func Child() {
	exec.Worker()
	dispatched.Store(true)
	if os.Args[0] != modelName {
		return
	}
	// What is left of an automerge document is freed by finalizers, on a thread
	// of their own, although it shares counters that are not atomic with the
	// documents in use. So nothing is collected: this process is replaced.
	debug.SetGCPercent(-1)
	debug.SetTraceback("none")
	// A layer that this machine does not have is no reason not to write pages:
	// no byte comes here that the gate has not admitted.
	_ = exec.Confine(modelMemory)
	if err := serveModels(os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// modelProcess is a running process that holds write models. It is used under d.mu.
type modelProcess struct {
	*crdt.Remote
	process  *os.Process
	requests *os.File
	replies  *os.File
	patience time.Duration // how long a reply may take
	asked    int           // requests so far
}

// startModelProcess starts this program once more.
func startModelProcess(patience time.Duration) (*modelProcess, error) {
	program, err := modelProgram()
	if err != nil {
		return nil, err
	}
	var files []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files...)
			return nil, err
		}
		files = append(files, r, w)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeAll(files...)
		return nil, err
	}
	in, requests, replies, out := files[0], files[1], files[2], files[3]
	defer closeAll(in, out, null)
	process, err := os.StartProcess(program, []string{modelName}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{in, out, null}, Sys: modelAttributes(),
	})
	if err != nil {
		closeAll(requests, replies)
		return nil, err
	}
	m := &modelProcess{process: process, requests: requests, replies: replies, patience: patience}
	m.Remote = crdt.NewRemote(m)
	return m, nil
}

// Write sends a request, whose reply has to come in time.
func (m *modelProcess) Write(b []byte) (int, error) {
	m.asked++
	late := time.Now().Add(m.patience)
	if err := errors.Join(m.requests.SetWriteDeadline(late), m.replies.SetReadDeadline(late)); err != nil {
		return 0, err
	}
	return m.requests.Write(b)
}

func (m *modelProcess) Read(b []byte) (int, error) {
	n, err := m.replies.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %v", m.patience)
	}
	return n, err
}

// end ends the process, and returns once it is gone, with how it had ended if
// it had.
func (m *modelProcess) end() string {
	_ = m.requests.Close()
	_ = m.process.Kill()
	how := "unknown"
	if state, err := m.process.Wait(); err == nil {
		how = state.String()
	}
	_ = m.replies.Close()
	return how
}
