package exec

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
)

// address is how Lua and Go show one; a byte of a module has two digits at most.
var address = regexp.MustCompile(`: 0x[0-9a-f]{3}`)

var attacksFile = flag.String("attacks", "", "one file of hostile scripts for TestAttacks, LANGUAGE.txtar, relative to the repository's root or to this package; without it all of testdata/attacks are run")

var everyAttack = flag.Bool("every", false, "run every script of every language")

// attackStep: make attacks takes the time for every script, make test for each
// tenth. The race detector, which has ten times as long with each, finds in few
// what there is to find.
var attackStep = map[bool]int{false: 10, true: 15}[raceDetector]

// warmed waits for a spare of the kind that a job needs, where it takes longer to
// start one than the rules of time allow, and tells its pid; otherwise 0.
func warmed(t testing.TB, r *Runner, j job) int {
	t.Helper()
	if !isFile(j.language) {
		return 0
	}
	r.mu.Lock()
	r.wanted[j.language] = j.limits
	r.mu.Unlock()
	r.refillAll()
	r.mu.Lock()
	i := slices.IndexFunc(r.spares, func(s *spare) bool { return s.kind == j.kind() })
	s := r.spares[i]
	r.mu.Unlock()
	<-s.done
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.worker.process.Pid
}

// The rules of the file, see its header.
var attackLimits = notebook.Limits{Time: 200 * time.Millisecond, Memory: 128 << 20, Output: 64 << 10, Source: 64 << 10}

const (
	attackLate   = 250 * time.Millisecond
	attackMemory = 8 << 20
	attackHonest = 50 * time.Millisecond
)

// TestAttacks is what make attacks runs: the scripts of every language.
func TestAttacks(t *testing.T) {
	strict := newRunner(t, Config{Limits: attackLimits})
	open := newRunner(t, Config{Limits: allLibraries(attackLimits)})
	var s summary
	for _, file := range attackFiles(t) {
		for i, a := range readAttacks(t, file) {
			if *attacksFile == "" && !*everyAttack && i%attackStep != 0 {
				continue
			}
			s.attack(t, strict, attackLimits, a)
			if strings.HasPrefix(a.name, "full-") {
				a.name += " (all libraries)"
				s.attack(t, open, allLibraries(attackLimits), a)
			}
		}
	}
	s.print()
	// A worker that died by itself leaves its rusage, which starts at what this
	// process has resident: below that a peak is not known, only bounded by it.
	if own, err := readStatus("/proc/self/status", "VmHWM"); err != nil || !raceDetector && int64(own[0]) > attackLimits.Memory+attackMemory {
		t.Errorf("the test itself needed %d MiB: peaks below are not seen (%v)", own[0]>>20, err)
	}
}

// TestAttacksAgainstTheJailAlone runs every script with every library of the
// engine: what the allow-list keeps out otherwise, the jail has to hold.
func TestAttacksAgainstTheJailAlone(t *testing.T) {
	ofTheWorker(t)
	limits := allLibraries(attackLimits)
	limits.Time /= 2 // half the time: the same rules, and the suite stays quick
	open := newRunner(t, Config{Limits: limits})
	var s summary
	for _, language := range openable {
		for i, a := range readAttacks(t, "testdata/attacks/"+language+".txtar") {
			if *everyAttack || i%attackStep == 0 {
				s.attack(t, open, limits, a)
			}
		}
	}
	s.print()
}

type script struct{ language, name, source string }

type summary struct {
	run, alive int
	worst      time.Duration
	peak       int64
}

func (s *summary) print() {
	fmt.Printf("attacks: %d run, %d alive, worst %d ms, max %d MiB\n", s.run, s.alive, s.worst.Milliseconds(), s.peak>>20)
}

// attack runs one script and checks every rule. The two rules of time are about
// noted, not about a machine on which other programs queue for the processors:
// there, and only there, a breach is measured again when they have become fewer,
// four times at most, and the line is printed again.
func (s *summary) attack(t *testing.T, r *Runner, limits notebook.Limits, a script) {
	t.Helper()
	s.run++
	for try := 0; ; try++ {
		late, res, slow := s.measure(t, r, limits, a)
		if slow != "" && !raceDetector && try < 4 && crowded() {
			fmt.Printf("%-48s again: %s while other programs wait for a processor\n", a.name, slow)
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && crowded(); {
			}
			continue
		}
		s.worst, s.peak = max(s.worst, late), max(s.peak, res.Peak)
		if slow != "" && !raceDetector {
			t.Errorf("%s: %s", a.name, slow)
		}
		return
	}
}

// measure runs a script once. It returns how long after the deadline the answer
// came, and which rule of time was broken.
func (s *summary) measure(t *testing.T, r *Runner, limits notebook.Limits, a script) (late time.Duration, res notebook.Result, slow string) {
	t.Helper()
	type answer struct {
		res notebook.Result
		pid int
		err error
	}
	answered := make(chan answer, 1)
	j := a.job(limits, a.source)
	warmed(t, r, j)
	start := time.Now()
	go func() {
		var w answer
		w.res, w.pid, w.err = r.run(context.Background(), j)
		answered <- w
	}()
	var w answer
	select {
	case w = <-answered:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: no answer after 30 s", a.name)
	}
	late = max(0, time.Since(start)-limits.Time) // the worker's start is counted too
	fmt.Printf("%-48s %-9s %4d ms %4d MiB\n", a.name, w.res.Verdict, late.Milliseconds(), w.res.Peak>>20)
	if w.err != nil || w.res.Verdict == notebook.NoVerdict {
		t.Errorf("%s: no verdict: %v", a.name, w.err)
	}
	if err := syscall.Kill(w.pid, 0); !errors.Is(err, syscall.ESRCH) {
		s.alive++
		t.Errorf("%s: the worker %d is still there when the answer is: %v", a.name, w.pid, err)
	}
	if !raceDetector && w.res.Peak > limits.Memory+attackMemory {
		t.Errorf("%s: %d MiB resident where %d are allowed", a.name, w.res.Peak>>20, limits.Memory>>20)
	}
	if claim := falseClaim(w.res, limits == allLibraries(limits)); claim != "" {
		t.Errorf("%s: %s: %.200q", a.name, claim, w.res.Output)
	}
	after := a
	if isFile(after.language) {
		after.language = luaLanguage.name // another worker with an engine is only just starting
	}
	start = time.Now()
	res, _, err := r.run(context.Background(), after.job(limits, conformance[after.language].honest))
	honest := time.Since(start)
	if err != nil || res.Output != conformance[after.language].shows {
		t.Errorf("%s: the honest fence after it: %v %q %v", a.name, res.Verdict, res.Output, err)
	}
	switch {
	case late > attackLate:
		slow = fmt.Sprintf("answered %v after the deadline", late)
	case honest > attackHonest:
		slow = fmt.Sprintf("the honest fence after it took %v", honest)
	}
	return late, w.res, slow
}

// crowded reports whether more processes want a processor than there are, for
// most of a moment in which this one does nothing.
func crowded() bool {
	seen, more := 20, 0
	for range seen {
		time.Sleep(5 * time.Millisecond)
		b, _ := os.ReadFile("/proc/stat")
		_, rest, _ := strings.Cut(string(b), "procs_running ")
		var running int
		if _, err := fmt.Sscan(rest, &running); err == nil && running-1 >= runtime.NumCPU() { // one is this reader
			more++
		}
	}
	return more*2 > seen
}

// falseClaim says what an output pretends that cannot have happened: that a
// killed fence came to its return, or that one reached something outside. With
// all libraries the engine's own functions show addresses, which are its own.
func falseClaim(r notebook.Result, all bool) string {
	if r.Verdict != notebook.OK {
		for _, returned := range []string{"esc", "escaped", "ok", "printed"} {
			if strings.TrimSpace(r.Output) == returned {
				return "a fence that did not end well shows what it returned"
			}
		}
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 && strings.Contains(r.Output, host) {
		return "the output knows the name of the machine"
	}
	for _, outside := range []string{"root:x:", "root:*:", "/root"} {
		if strings.Contains(r.Output, outside) || strings.Contains(r.Error, outside) {
			return "the output shows something from outside of the fence"
		}
	}
	if !all && address.MatchString(r.Output+r.Error) {
		return "the output shows an address"
	}
	return ""
}

func (a script) job(l notebook.Limits, source string) job {
	j := strictJob(l, source)
	j.language = a.language
	return j
}

// attackFiles are the files to run: the test runs in its package's folder, and is
// called from the root.
func attackFiles(t *testing.T) []string {
	t.Helper()
	if *attacksFile == "" {
		files, err := filepath.Glob("testdata/attacks/*.txtar")
		if err != nil || len(files) < len(openable) {
			t.Fatalf("%q %v", files, err)
		}
		return files
	}
	for _, dir := range []string{"", ".."} {
		if p := filepath.Join(dir, *attacksFile); !filepath.IsAbs(*attacksFile) {
			if _, err := os.Stat(p); err == nil {
				return []string{p}
			}
		}
	}
	return []string{*attacksFile}
}

// readAttacks reads a txtar file, whose name is that of a language: a comment,
// then files behind "-- NAME --".
func readAttacks(t *testing.T, file string) []script {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	language := strings.TrimSuffix(filepath.Base(file), ".txtar")
	if _, found := languageOf(language); !found {
		t.Fatalf("%s is named after no language that runs here", file)
	}
	var scripts []script
	for l := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimRight(l, "\n"), "-- "); ok && strings.HasSuffix(name, " --") {
			scripts = append(scripts, script{language: language, name: strings.TrimSuffix(name, " --")})
		} else if len(scripts) > 0 {
			scripts[len(scripts)-1].source += l
		}
	}
	if len(scripts) == 0 {
		t.Fatalf("%s holds no scripts", file)
	}
	return scripts
}
