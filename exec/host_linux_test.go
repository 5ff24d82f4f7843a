package exec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
	"noted/trust"
)

func hostJob(l notebook.Limits, source string) job {
	j := strictJob(l, source)
	j.rung, j.language = notebook.Host, "sh"
	return j
}

// TestAShellOfThePerson: at host a fence has the person's files, a clean
// environment, no input, no terminal, and its own exit status.
func TestAShellOfThePerson(t *testing.T) {
	home := tree(t, map[string]string{"x": "the person's"})
	t.Setenv("HOME", home)
	t.Setenv("NOTED_HOME", "SECRET")
	t.Setenv("LC_TIME", "C")
	t.Setenv("SSH_AUTH_SOCK", "SECRET")
	t.Setenv("LC_TOKEN", "SECRET")
	held, err := os.Open(home + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct {
		name, source, output string
		verdict              notebook.Verdict
		err                  string
	}{
		{"a file", "cat x", "the person's", notebook.OK, ""},
		{"where it is", "pwd", home + "\n", notebook.OK, ""},
		{"its environment", "env | cut -d= -f1 | grep -vx -e PWD -e OLDPWD -e SHLVL -e _ -e GORACE -e USER -e LOGNAME -e LANG -e TZ | sort | tr '\\n' ' '", "HOME LC_TIME PATH SHELL TERM ", notebook.OK, ""},
		{"its input", "cat; read x || echo end", "end\n", notebook.OK, ""},
		{"its descriptors", "for i in 3 4 5 6 7 8 9; do (: <&$i) 2>/dev/null && echo open $i; done; echo end", "end\n", notebook.OK, ""},
		{"its terminal", "(: < /dev/tty) 2>/dev/null || echo none", "none\n", notebook.OK, ""},
		{"its processes", "[ $$ -lt 100 ] && ls -d /proc/[0-9]* | wc -l | { read n; [ $n -lt 10 ] && echo few; }", "few\n", notebook.OK, ""},
		{"what it was passed", `printf '%s|' "$@"`, "a=1; exit 9|b=$(echo x)|", notebook.OK, ""},
		{"an error", "echo out; echo err >&2; exit 3", "out\nerr\n", notebook.Failed, "the shell ended with 3"},
		{"a signal", "kill -9 $$", "", notebook.Failed, "the shell was ended by signal 9"},
		{"the code of a deadline", "exit 124", "", notebook.Failed, "the shell ended with 124"},
		{"a program that may not be run", "/dev/null", "", notebook.Failed, "the shell ended with 126"},
		{"a program that is not", "no-such-program", "", notebook.Failed, "the shell ended with 127"},
		{"the code of a signal", "exit 137", "", notebook.Failed, "the shell ended with 137"},
		{"a signal to itself that says late", "kill -XCPU $$", "", notebook.Failed, "the shell was ended by signal 24"},
		{"a signal to itself of a filter", "kill -SYS $$", "", notebook.Failed, "the shell was ended by signal 31"},
		{"signals to what started it", "for s in HUP INT QUIT ABRT USR1 SEGV TERM SYS XCPU KILL; do kill -$s $PPID; done; sleep 0.1; echo still here", "still here\n", notebook.OK, ""},
		// But for 32 and 33, the C library's own: what it starts by posix_spawn, as make
		// starts these tests, ignores them, and so does all that comes of it.
		{"what is ignored", "grep SigIgn: /proc/self/status | tr -d '\\t' | sed 's/:0000000[01][08]/:000000000/'", "SigIgn:0000000000000000\n", notebook.OK, ""},
		{"a code of the worker's", "exit 72", "", notebook.Failed, "the shell ended with 72"},
		{"a line that cannot be read", "echo 'open", "", notebook.Failed, "the shell ended with 2"},
	} {
		j := hostJob(quick, c.source)
		j.request.args = []field{{"a", "1; exit 9"}, {"b", "$(echo x)"}}
		res := runJob(t, r, j)
		if res.Verdict != c.verdict || !strings.HasPrefix(res.Output, c.output) || c.verdict == notebook.OK && res.Output != c.output || res.Error != c.err || strings.Contains(res.Output, "SECRET") {
			t.Errorf("%s: %v %q %q, want %q %q", c.name, res.Verdict, res.Output, res.Error, c.output, c.err)
		}
		if res.Rung != notebook.Host || !slices.Equal(res.Layers, []string{layerProcesses}) {
			t.Errorf("%s: %v %v", c.name, res.Rung, res.Layers)
		}
	}
	strange := hostJob(quick, `printf '%s|' "$@"`)
	strange.request.args = []field{{"-a", "--help"}, {"b", "two\nlines 'and' \"quotes\""}, {"c", ""}}
	if res := runJob(t, r, strange); res.Output != "-a=--help|b=two\nlines 'and' \"quotes\"|c=|" {
		t.Errorf("strange arguments: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	inSource, inArgument := hostJob(quick, "echo \x00"), hostJob(quick, "echo x")
	inArgument.request.args = []field{{"a", "\x00"}}
	for name, j := range map[string]job{"in the source": inSource, "in an argument": inArgument} {
		if res := runJob(t, r, j); res.Verdict != notebook.Failed || res.Output != "" {
			t.Errorf("NUL %s: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
	longest := hostJob(quick, "echo whole #"+strings.Repeat("x", maxHostSource-len("echo whole #")))
	if res := runJob(t, r, longest); res.Output != "whole\n" {
		t.Errorf("the longest source: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	j := hostJob(quick, "echo $x $y")
	j.request.before = []field{{"faaaaaaaaa", "x=1"}, {"fbbbbbbbbb", "y=2 # no more"}}
	if res := runJob(t, r, j); res.Output != "1 2\n" {
		t.Errorf("what it includes: %v %q %q", res.Verdict, res.Output, res.Error)
	}
	long := hostJob(quick, strings.Repeat("#", maxHostSource+1))
	if res := runJob(t, r, long); res.Verdict != notebook.Failed || !strings.Contains(res.Error, "a shell takes") {
		t.Errorf("a long source: %v %q", res.Verdict, res.Error)
	}
	flood := hostJob(quick, "yes")
	if res := runJob(t, r, flood); res.Verdict != notebook.Output || res.Dropped == 0 {
		t.Errorf("a flood: %v", res.Verdict)
	}
}

// TestNothingOfAShellIsLeft: whatever a shell of the person's starts is dead when
// the answer is there, with a namespace of processes and without.
func TestNothingOfAShellIsLeft(t *testing.T) {
	short := quick
	short.Time = 500 * time.Millisecond
	for _, c := range []struct {
		name, script string
		limits       notebook.Limits
		verdict      notebook.Verdict
	}{
		{"outlives the deadline", "touch START; sleep 1; touch LATE", short, notebook.Timeout},
		{"in the background", "(touch START; sleep 1; touch LATE)& sleep 0.2; echo done", quick, notebook.OK},
		{"in a session of its own", "setsid sh -c 'touch START; sleep 1; touch LATE' & wait", short, notebook.Timeout},
		{"twice forked", "(setsid sh -c '(touch START; sleep 1; touch LATE) & exit' & exit); sleep 0.3; echo done", quick, notebook.OK},
		{"holding nothing", "setsid sh -c 'exec <&- >&- 2>&-; touch START; sleep 1; touch LATE' & sleep 0.3", quick, notebook.OK},
		{"deaf to signals", "trap '' TERM INT HUP QUIT; touch START; sleep 1; sleep 1; touch LATE", short, notebook.Timeout},
		{"stopped", "sh -c 'touch START; kill -STOP $$; touch LATE' & sleep 0.3", quick, notebook.OK},
		{"stopped itself", "(touch START; sleep 1; touch LATE)& sleep 0.2; kill -STOP $$", short, notebook.Timeout},
		{"ended itself", "(touch START; sleep 1; touch LATE)& sleep 0.2; kill -9 $$", quick, notebook.Failed},
		{"ends what started it", "(touch START; sleep 1; touch LATE)& sleep 0.2; kill $PPID; kill -QUIT $PPID; echo done", quick, notebook.OK},
		{"has stopped what started it", "(touch START; sleep 1; touch LATE)& sleep 0.2; kill -STOP $PPID; sleep 1", short, notebook.Timeout},
		{"the control: it may end by itself", "touch START; sleep 0.1; touch LATE", quick, notebook.OK},
	} {
		for _, namespaces := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", in a namespace", false: ", without"}[namespaces], func(t *testing.T) {
				t.Parallel()
				m := newMarks(t)
				s, w, err := startHost(c.limits, namespaces)
				if err != nil {
					t.Fatal(err)
				}
				defer s.close()
				script := strings.NewReplacer("START", filepath.Join(m.dir, "START"), "LATE", filepath.Join(m.dir, "LATE")).Replace(c.script)
				answer := make(chan ran, 1)
				go func() { answer <- w.run(t.Context(), &request{source: script}) }()
				var res ran
				select {
				case res = <-answer:
				case <-time.After(20 * time.Second):
					t.Fatal("no answer")
				}
				if res.verdict != c.verdict || !m.there("START") {
					text, _, _ := res.output.text()
					t.Fatalf("%v, started %v: %q %q", res.verdict, m.there("START"), text, res.outcome.text)
				}
				if !slices.Equal(res.layers, []string{map[bool]string{true: layerProcesses, false: layerTree}[namespaces]}) {
					t.Errorf("it says that %v held", res.layers)
				}
				m.tail()
				if control := strings.HasPrefix(c.name, "the control"); m.there("LATE") != control {
					t.Errorf("afterwards something was alive: %v", m.there("LATE"))
				}
			})
		}
	}
}

// Roles of this test binary: a daemon with runs that outlive much, which is going
// to be killed, and one of a user who is not root.
const (
	doomedRuns = "noted-test-doomed-runs"
	hostAsked  = "noted-test-host-asked"
)

// lingering starts processes of three kinds that last a minute.
const lingering = "setsid sleep 71 & (setsid sleep 72 &); nohup sleep 73 >/dev/null & trap '' TERM HUP; sleep 74; sleep 75"

// startHost starts what runs a fence at host, with a namespace of processes or
// without, on a thread that stays.
func startHost(l notebook.Limits, namespaces bool) (*spawner, *worker, error) {
	s, err := newSpawner(false, namespaces, &profile{host: true})
	if err != nil {
		return nil, nil, err
	}
	w, err := s.worker(kind{language: "sh", limits: l}, nil)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	w.tree = !namespaces
	return s, w, nil
}

// beDoomedRuns runs a shell at host, one without a namespace, and a program that
// was granted, until it is killed.
func beDoomedRuns() int {
	l := quick
	l.Time = time.Minute
	for _, namespaces := range []bool{true, false} {
		_, w, err := startHost(l, namespaces)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go w.run(context.Background(), &request{source: lingering})
	}
	r, err := New(Config{Limits: l})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return 1
	}
	program := notebook.Program(sleep)
	pin, err := Resolve(program, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	j := strictJob(l, sleep+" 70")
	j.rung, j.language = notebook.Granted, "sh"
	if _, err := j.grants.add(trust.Input{Capability: program, Value: pin}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _, err = r.run(context.Background(), j)
	fmt.Fprintln(os.Stderr, "the granted run ended:", err)
	return 1
}

// TestCase24NoProcessOfARunOutlivesTheDaemon: a second after the daemon was killed
// all that granted and host runs had started is dead, wherever it had put itself.
func TestCase24NoProcessOfARunOutlivesTheDaemon(t *testing.T) {
	c := role(t, doomedRuns)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	const sleepers = 1 + 2*4
	var all []int
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all = descendants(c.Process.Pid)
		seen := 0
		for _, pid := range all {
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(line), "sleep\x007") || strings.HasSuffix(string(line), "/sleep\x0070\x00") {
				seen++
			}
		}
		if seen == sleepers {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d of %d were running", seen, sleepers)
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	within := time.Second
	if raceDetector {
		within *= 10
	}
	for killed := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		for _, pid := range all {
			if s := processState(pid); s != "" && s != "Z" && s != "X" {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Since(killed) > within {
			t.Fatalf("%d of %d are left: %q", len(left), len(all), left)
		}
	}
}

// beHostAsked runs a source at host and tells the outcome.
func beHostAsked() int {
	s, w, err := startHost(quick, os.Args[1] == "namespaces")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.close()
	res := w.run(context.Background(), &request{source: os.Args[2]})
	text, _, _ := res.output.text()
	fmt.Printf("%v %s: %s", res.verdict, res.outcome.text, text)
	return 0
}

// TestAShellOfSomebody: what is not root's runs as who it is, with no right that
// was needed to start it, and cannot reach what tells how it ended.
func TestAShellOfSomebody(t *testing.T) {
	ofTheWorker(t)
	const forged = `printf '\0\0\0\002\0\0'`
	for _, kind := range []string{"namespaces", "tree"} {
		for _, c := range []struct{ name, source, says string }{
			{"who it is", "id -u", fmt.Sprintf("ok : %d\n", somebody())},
			{"its rights", "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status | tr -d 'CapPrmEfAb:\\t0\\n'", "ok : "},
			{"its outcome", forged + " 2>/dev/null >/proc/$PPID/fd/3; sleep 0.3; exit 3", "error the shell ended with 3: "},
			{"the control: what it has itself it can open so", "echo x >/proc/$$/fd/1", "ok : x\n"},
		} {
			cmd := role(t, hostAsked, kind, c.source)
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(somebody()), Gid: uint32(somebody())}}
			}
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), "HOME=/")
			out, err := cmd.Output()
			if got := string(out); err != nil || got != c.says {
				t.Errorf("%s, %s: %q %v, want %q", kind, c.name, got, err, c.says)
			}
		}
	}
}

// somebody is a user who is not root.
func somebody() int {
	if id := os.Getuid(); id != 0 {
		return id
	}
	return 65534
}
