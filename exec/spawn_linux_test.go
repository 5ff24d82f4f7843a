package exec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestALargeStackIsNotTheWorkers: the limit of the stack with which the daemon was
// started does not become that of its workers, is a host shell's, and is the
// daemon's own again.
func TestALargeStackIsNotTheWorkers(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &own); err != nil {
		t.Fatal(err)
	}
	large := unix.Rlimit{Cur: min(64<<20, own.Max), Max: own.Max}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &large); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &own); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name string
		k    kind
		p    *profile
		want uint64
	}{
		{"a worker", kind{"lua", quick}, &profile{}, min(workerStack, large.Cur)},
		{"a shell at host", kind{"sh", quick}, &profile{host: true}, large.Cur},
	} {
		s, err := newSpawner(!c.p.host, true, c.p)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.worker(c.k, nil)
		if err != nil {
			t.Fatal(err)
		}
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", w.process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(limits), "Max stack size")
		var is uint64
		if _, err := fmt.Sscan(rest, &is); err != nil || is != c.want {
			t.Errorf("%s: %d %v, want %d", c.name, is, err, c.want)
		}
		w.discard()
		s.close()
	}
	var after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &after); err != nil || after != large {
		t.Errorf("the daemon has %+v, had %+v: %v", after, large, err)
	}
}
