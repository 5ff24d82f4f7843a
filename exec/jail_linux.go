package exec

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"noted/notebook"
)

// The layers of the jail, by the names that results carry.
const (
	layerLimits     = "rlimits"    // memory, processor time, files: mandatory
	layerSeccomp    = "seccomp"    // an allow-list of system calls: mandatory
	layerRoot       = "chroot"     // an empty directory that is already deleted
	layerNamespaces = "namespaces" // user, net, pid, mount, ipc, uts, cgroup
	layerLandlock   = "landlock"   // no file but the program itself
)

// closeInherited closes what the daemon itself was started with and could not
// know of: descriptors without the close-on-exec flag pass through every fork.
// The runtime's own poller stays, and so many descriptors of a granted run.
func closeInherited(granted int) { closeAbove(fdGrants + granted - 1) }

// closeAbove closes the descriptors above last, the runtime's poller apart.
func closeAbove(last int) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		_ = unix.CloseRange(uint(last)+1, math.MaxInt32, 0) // a runtime that loses its poller dies, which is safe
		return
	}
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= last {
			continue
		}
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to != "anon_inode:[eventpoll]" && to != "anon_inode:[eventfd]" {
			_ = unix.Close(fd)
		}
	}
}

// seal closes the jail around this process, for good, and says what holds. An
// engine that has to be loaded is loaded and started on the way: from before its
// file is looked at only a few calls more than later are let through, those that
// make memory executable among them; these end before any of the engine runs.
func seal(l notebook.Limits, granted *inherited, e engine) ready {
	var r ready
	clean := cleanSpans()
	fail := func(layer string, err error) ready {
		r.missing, r.reason = layer, err.Error()
		return r
	}
	p, err := openProc() // first: soon there is no /proc any more
	if err != nil {
		return fail(layerLimits, err)
	}
	if granted.refs != nil {
		p.refs.Close()
		p.refs = granted.refs
	}
	s, isStaged := e.(staged)
	if isStaged {
		if err := limitLoading(l, granted); err != nil {
			return fail(layerLimits, err)
		}
		if err := filter(slices.Concat(loadingCalls, startingCalls, granted.calls())...); err != nil {
			return fail(layerSeccomp, err)
		}
		if err := s.load(); err != nil {
			return fail(layerEngine, fmt.Errorf("it cannot be loaded: %w", err))
		}
	}
	if err := lockRoot(); err == nil {
		r.layers = append(r.layers, layerRoot)
	}
	_ = unix.Close(fdRoot)
	if isStaged {
		if err := filter(slices.Concat(startingCalls, granted.calls())...); err != nil {
			return fail(layerSeccomp, err)
		}
		if err := s.boot(); err != nil {
			return fail(layerEngine, err)
		}
		forget(clean) // what was run to get here, most of it once
		p.forgetPeak()
	}
	if err := limit(l, granted, p, e); errors.As(err, new(tooLittle)) {
		return fail(layerMemory, err)
	} else if err != nil {
		return fail(layerLimits, err)
	}
	r.layers = append(r.layers, layerLimits)
	p.close()
	if err := filter(granted.calls()...); err != nil {
		return fail(layerSeccomp, err)
	}
	r.layers = append(r.layers, layerSeccomp)
	forget(clean)
	return r
}

// limitLoading bounds what an engine may take while it is loaded and started,
// coarsely: see [limit] for what holds afterwards.
func limitLoading(l notebook.Limits, granted *inherited) error {
	for _, set := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_CPU", unix.RLIMIT_CPU, cpuSeconds(l.Time + readyWithin)},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, granted.fileSize()},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
	} {
		if err := lower(set.resource, set.value, true); err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return nil
}

// lockRoot makes the directory on fdRoot the root. It was deleted before this
// process was started, so nothing can ever be in it.
func lockRoot() error {
	if err := unix.Fchdir(fdRoot); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// limit sets the resource limits. Those of memory are relative to what the
// process has now.
func limit(l notebook.Limits, granted *inherited, p *proc, e engine) error {
	// One resident page of a huge page would otherwise count as all of it.
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	if err := limitMemory(l.Memory, p, e); err != nil {
		return err
	}
	var used unix.Timespec // what an engine took to come up is not the fence's
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		return err
	}
	for _, set := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_CPU", unix.RLIMIT_CPU, uint64(used.Sec) + cpuSeconds(l.Time)},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, granted.fileSize()},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, granted.openFiles()},
	} {
		if err := lower(set.resource, set.value, true); err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return nil
}

// lower sets a resource limit, for good or only the soft one. One that was lower
// already stays.
func lower(resource int, value uint64, forGood bool) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil {
		return err
	}
	l.Cur = min(value, l.Max)
	if forGood {
		l.Max = l.Cur
	}
	return unix.Setrlimit(resource, &l)
}

// cpuSeconds is the processor time that a fence cannot need within its
// deadline, whatever the collector does on the other processor.
func cpuSeconds(deadline time.Duration) uint64 {
	return uint64(math.Ceil(deadline.Seconds()))*workerThreads + 2
}
