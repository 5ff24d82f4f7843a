package exec

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// threadStarter is a role of this test binary, by argv[0]: it tells by how much its
// address space grows with a thread.
const threadStarter = "noted-test-thread-starter"

func beThreadStarter() int {
	const threads = 4 // of which some are there already
	before, _, err := readSizes()
	had, err1 := os.ReadDir("/proc/self/task")
	runtime.LockOSThread()
	for range threads {
		up := make(chan struct{})
		go func() {
			runtime.LockOSThread() // so the next one is on another
			close(up)
			select {}
		}()
		<-up
	}
	after, _, err2 := readSizes()
	has, err3 := os.ReadDir("/proc/self/task")
	if errors.Join(err, err1, err2, err3) != nil || len(has) <= len(had) {
		return 1
	}
	fmt.Println((int64(after) - int64(before)) / int64(len(has)-len(had)))
	return 0
}

// TestAThreadOfAWorkerHasRoomUnderItsLimit: what a thread takes of the address space
// when it starts is less than what a worker's may still grow by, whichever of them
// is first. The control is the same program without the environment of a worker:
// there the C library takes more, and the next thread would find no room.
func TestAThreadOfAWorkerHasRoomUnderItsLimit(t *testing.T) {
	ofTheWorker(t)
	grows := func(env []string) (bytes int64) {
		t.Helper()
		c := role(t, threadStarter)
		c.Env = env
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(out), &bytes); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		return bytes
	}
	// Two may start at once, and what else the runtime takes with them is not much.
	if n := grows(workerEnv); n > heapSlack/2 {
		t.Errorf("a thread of a worker takes %d KiB, and there is room for %d", n>>10, heapSlack>>10)
	}
	var without []string
	for _, v := range workerEnv {
		if !strings.HasPrefix(v, "MALLOC_") {
			without = append(without, v)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := grows(without); n <= heapSlack && strings.Contains(string(maps), "/libc.so.6") {
		t.Errorf("without its environment a thread takes no more than %d KiB", n>>10)
	}
}
