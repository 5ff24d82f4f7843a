package exec

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"noted/notebook"
	"noted/trust"
)

// Roles of this test binary, by argv[0], besides its own and the worker's.
const (
	faultyParent = "noted-test-faulty-parent" // a daemon on a machine that lacks something
	doomedParent = "noted-test-doomed-parent" // a daemon that is going to be killed
)

// fault makes a system call fail, for some values of an argument, as a kernel
// or container would that does not have it.
type fault struct {
	call     uint32
	argument int
	test     uint16 // 0: whatever the argument is
	value    uint32
	errno    syscall.Errno
}

var faults = map[string][]fault{
	"none":       nil,
	"landlock":   {{call: unix.SYS_LANDLOCK_CREATE_RULESET, errno: unix.ENOSYS}},
	"namespaces": {{call: unix.SYS_CLONE, test: unix.BPF_JSET, value: unix.CLONE_NEWUSER, errno: unix.EPERM}, {call: unix.SYS_CLONE3, errno: unix.ENOSYS}},
	"chroot":     {{call: unix.SYS_CHROOT, errno: unix.EPERM}},
	"mounts":     {{call: unix.SYS_FSOPEN, errno: unix.EPERM}},
	"seccomp":    {{call: unix.SYS_SECCOMP, errno: unix.EINVAL}},
	"address":    {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_AS, errno: unix.EPERM}},
	"data":       {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_DATA, errno: unix.EPERM}},
	"processor":  {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_CPU, errno: unix.EPERM}},
	"files":      {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_FSIZE, errno: unix.EPERM}},
	"cores":      {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_CORE, errno: unix.EPERM}},
	"locks":      {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_MEMLOCK, errno: unix.EPERM}},
	"open files": {{call: unix.SYS_PRLIMIT64, argument: 1, test: unix.BPF_JEQ, value: unix.RLIMIT_NOFILE, errno: unix.EPERM}},
	"privileges": {{call: unix.SYS_PRCTL, test: unix.BPF_JEQ, value: unix.PR_SET_NO_NEW_PRIVS, errno: unix.EINVAL}},
}

// install puts this process and all that it starts under the faults.
func install(list []fault) error {
	var p []unix.SockFilter
	add := func(code uint16, k uint32, jt, jf uint8) {
		p = append(p, unix.SockFilter{Code: code, K: k, Jt: jt, Jf: jf})
	}
	for _, f := range list {
		add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offCall, 0, 0)
		if f.test == 0 {
			add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, f.call, 0, 1)
		} else {
			add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, f.call, 0, 3)
			add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offArgs+8*uint32(f.argument), 0, 0)
			add(unix.BPF_JMP|f.test|unix.BPF_K, f.value, 0, 1)
		}
		add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(f.errno), 0, 0)
	}
	add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0, 0)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	return nil
}

// machine is what a faulty parent reports.
type machine struct {
	Layers  []string
	Strict  string
	Results map[string]notebook.Result // of an honest fence of each language
	Errors  map[string]string
	Left    int // processes when all of them are answered

	Granted, NotGranted string // what a run with a directory put out, or why it was refused
}

func beFaulty() int {
	m := machine{Results: map[string]notebook.Result{}, Errors: map[string]string{}}
	engines, err := openedEngines()
	for _, l := range languages {
		if l.file != "" && err == nil {
			_, err = engines.files(context.Background(), l.file) // what is open stays so
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := install(faults[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := New(Config{Limits: quick, Spares: -1, Engines: engines})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	m.Layers = r.Layers()
	if err := r.Strict(); err != nil {
		m.Strict = err.Error()
	}
	for _, l := range languages {
		j := strictJob(quick, conformance[l.name].honest)
		j.language, j.local = l.name, false
		res, _, err := r.run(context.Background(), j)
		if m.Results[l.name] = res; err != nil {
			m.Errors[l.name] = err.Error()
		}
	}
	if m.Granted, err = runGranted(r); err != nil {
		m.NotGranted = err.Error()
	}
	r.Close()
	m.Left = len(children(os.Getpid()))
	if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
		return 1
	}
	return 0
}

// runGranted has a fence read a file in a directory that it was granted.
func runGranted(r *Runner) (string, error) {
	dir, err := os.MkdirTemp("", "noted-test-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/x", []byte("seen"), 0o600); err != nil {
		return "", err
	}
	in := notebook.Dir(dir, false)
	pin, err := Resolve(in, nil)
	if err != nil {
		return "", err
	}
	j := strictJob(quick, fmt.Sprintf("return dir.read(%q)", dir+"/x"))
	j.rung = notebook.Granted
	if _, err := j.grants.add(trust.Input{Capability: in, Value: pin}); err != nil {
		return "", err
	}
	res, _, err := r.run(context.Background(), j)
	return res.Output, err
}

// TestNothingIsGrantedWithoutItsLayers: what a run could be given needs the whole
// jail, and where a layer is missing it is refused by the layer's name.
func TestNothingIsGrantedWithoutItsLayers(t *testing.T) {
	ofTheWorker(t)
	if whole := on(t, "none"); whole.Granted != "seen\n" || whole.NotGranted != "" {
		t.Fatalf("nothing is missing: %+v", whole)
	}
	for missing, layer := range map[string]string{
		"landlock": layerLandlock, "namespaces": layerNamespaces, "chroot": layerRoot, "mounts": layerNamespaces, "seccomp": layerSeccomp, "data": layerLimits,
	} {
		if m := on(t, missing); m.Granted != "" || !strings.Contains(m.NotGranted, "layer "+layer+" is missing") {
			t.Errorf("without %s: %q %q", missing, m.Granted, m.NotGranted)
		}
	}
}

func role(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = name
	c.Stderr = os.Stderr
	return c
}

var machines = map[string]machine{}

// on is what a machine without a layer does: asked once, it takes some seconds.
func on(t *testing.T, missing string) machine {
	t.Helper()
	if m, asked := machines[missing]; asked {
		return m
	}
	out, err := role(t, faultyParent, missing).Output()
	if err != nil {
		t.Fatalf("%s: %v", missing, err)
	}
	var m machine
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatalf("%s: %v in %q", missing, err, out)
	}
	machines[missing] = m
	return m
}

// TestCase88ALayerThatIsMissing: without a mandatory layer no fence of any language
// starts, and the layer is named; without another one they run, and their results
// name what held and nothing else.
func TestCase88ALayerThatIsMissing(t *testing.T) {
	ofTheWorker(t)
	whole := on(t, "none")
	if whole.Strict != "" || whole.Left != 0 {
		t.Fatalf("nothing is missing: %+v", whole)
	}
	ran := func(missing string, m machine, absent string) {
		t.Helper()
		for _, l := range languages {
			res := m.Results[l.name]
			if m.Strict != "" || m.Errors[l.name] != "" || res.Output != conformance[l.name].shows {
				t.Errorf("without %s, %s: %+v", missing, l.name, m)
			}
			if !slices.Equal(res.Layers, m.Layers) || slices.Contains(res.Layers, absent) ||
				!slices.Contains(res.Layers, layerSeccomp) || !slices.Contains(res.Layers, layerLimits) {
				t.Errorf("without %s, %s: the result names %v, and there are %v", missing, l.name, res.Layers, m.Layers)
			}
		}
	}
	ran("nothing", whole, "nothing")
	for _, layer := range []string{layerLandlock, layerNamespaces, layerRoot} {
		m := on(t, layer)
		ran(layer, m, layer)
		for _, other := range whole.Layers {
			// Without a user namespace only root can lock itself in.
			if other != layer && !slices.Contains(m.Layers, other) && (layer != layerNamespaces || other != layerRoot) {
				t.Errorf("without %s there is no %s either", layer, other)
			}
		}
	}
	mandatory := map[string]string{"seccomp": layerSeccomp, "privileges": layerSeccomp}
	for _, limit := range []string{"address", "data", "processor", "files", "cores", "locks", "open files"} {
		mandatory[limit] = layerLimits
	}
	for missing, layer := range mandatory {
		m := on(t, missing)
		if !strings.Contains(m.Strict, "layer "+layer+" is missing") || len(m.Layers) > 0 || m.Left != 0 {
			t.Errorf("without %s: %+v", missing, m)
		}
		for _, l := range languages {
			if res := m.Results[l.name]; m.Errors[l.name] != m.Strict || res.Verdict != notebook.NoVerdict || res.Output != "" || len(res.Layers) > 0 {
				t.Errorf("without %s, %s: %q %+v", missing, l.name, m.Errors[l.name], res)
			}
		}
	}
}

// TestASystemWithoutAJail is what a device with another system does: it refuses
// every run, names what is missing and says where fences run.
func TestASystemWithoutAJail(t *testing.T) {
	for _, missing := range []bool{false, true} {
		open := openJail
		if missing {
			open = func(kind) (*spawner, *worker, error) { return nil, nil, noJail("windows") }
		}
		r, err := openRunner(Config{Limits: quick}, open)
		if err != nil {
			t.Fatal(err)
		}
		res, _, err := r.run(t.Context(), strictJob(quick, "return 6 * 7"))
		if !missing {
			if err != nil || r.Strict() != nil || res.Output != "42\n" {
				t.Errorf("with a jail: %+v, %v", res, err)
			}
			r.Close()
			continue
		}
		var e *notebook.Error
		if !errors.As(err, &e) || e.Code != notebook.CodeUnavailable || err.Error() != r.Strict().Error() ||
			!strings.Contains(e.Message, "layer seccomp is missing: noted has no jail for windows yet") || !strings.Contains(e.Hint, "Linux device") {
			t.Errorf("without a jail: %+v, %v; strict says %v", res, err, r.Strict())
		}
		if res.Verdict != notebook.NoVerdict || len(r.Layers()) > 0 {
			t.Errorf("without a jail: %+v, layers %v", res, r.Layers())
		}
		r.Close()
	}
}

// beDoomed runs a fence that does not end, of every language that has such, tells its children,
// and waits to be killed.
func beDoomed() int {
	engines, err := openedEngines()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := New(Config{Limits: quick, Slots: len(languages) + 1, Spares: 2, Engines: engines})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, l := range programs() {
		j := strictJob(quick, endless(l.name))
		j.language, j.limits.Time = l.name, time.Minute
		go func() { _, _, _ = r.run(context.Background(), j) }()
	}
	// Each has a worker that computes.
	first, until := map[int]int{}, time.Now().Add(time.Minute)
	for busy := map[string]bool{}; len(busy) < len(programs()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			fmt.Fprintln(os.Stderr, "only these compute:", busy)
			return 1
		}
		for _, pid := range children(os.Getpid()) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			args := strings.Split(string(line), "\x00")
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, rest, _ := strings.Cut(string(stat), ") ")
			f := strings.Fields(rest)
			if len(args) < 2 || args[0] != workerName || len(f) < 12 {
				continue
			}
			ticks, err := strconv.Atoi(f[11])
			if err != nil {
				return 1
			}
			if before, seen := first[pid]; !seen {
				first[pid] = ticks
			} else if ticks-before >= 10 { // a tenth of a second
				busy[args[1]] = true
			}
		}
	}
	fmt.Println(strings.Trim(fmt.Sprint(children(os.Getpid())), "[]"))
	time.Sleep(time.Minute)
	return 0
}

// TestCase24NoWorkerOutlivesItsParent kills a process that is running a fence of
// every language.
func TestCase24NoWorkerOutlivesItsParent(t *testing.T) {
	c := role(t, doomedParent)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range strings.Fields(line) {
		var pid int
		if _, err := fmt.Sscan(f, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) < len(programs())+1 {
		t.Fatalf("only %d workers were there: %v", len(pids), pids)
	}
	for _, pid := range pids {
		if s := processState(pid); s == "" || s == "Z" {
			t.Errorf("worker %d was not running: %q", pid, s)
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	within := time.Second
	if raceDetector {
		within *= 10 // the detector's shadow takes its time to go
	}
	killed := time.Now()
	for _, pid := range pids {
		// A zombie is dead; whether it is gone is up to this machine's init.
		for s := processState(pid); s != "" && s != "Z" && s != "X"; s = processState(pid) {
			if time.Since(killed) > within {
				t.Fatalf("worker %d is %s %v after its parent was killed", pid, s, within)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// TestASpareThatDied is replaced, and the fence that would have got it runs.
func TestASpareThatDied(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	r.mu.Lock()
	s := r.spares[0]
	r.mu.Unlock()
	<-s.done
	if err := s.worker.process.Kill(); err != nil {
		t.Fatal(err)
	}
	for s.worker.alive() {
		time.Sleep(time.Millisecond)
	}
	if res := runSource(t, r, quick, "return 1"); res.Verdict != notebook.OK || res.Output != "1\n" {
		t.Errorf("%v %q", res.Verdict, res.Output)
	}
}

// TestSparesFollowTheLimits: a spare has the limits of the last run.
func TestSparesFollowTheLimits(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	other := quick
	other.Time = time.Second
	if res := runSource(t, r, other, "return 1"); res.Verdict != notebook.OK || res.Limits != other {
		t.Errorf("%+v", res)
	}
	var have []kind
	for range 1000 { // it comes by itself, soon after
		r.mu.Lock()
		have = nil
		for _, s := range r.spares {
			have = append(have, s.kind)
		}
		r.mu.Unlock()
		if slices.Equal(have, []kind{{"lua", other}}) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("the spares are of %+v", have)
}
