package exec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"noted/notebook"
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
		{"the control: it may end by itself", "touch START; sleep 0.1; touch LATE", quick, notebook.OK},
	} {
		for _, namespaces := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", in a namespace", false: ", without"}[namespaces], func(t *testing.T) {
				t.Parallel()
				m := newMarks(t)
				s, err := newSpawner(false, namespaces, &profile{host: true})
				if err != nil {
					t.Fatal(err)
				}
				defer s.close()
				w, err := s.worker(kind{language: "sh", limits: c.limits}, nil)
				if err != nil {
					t.Fatal(err)
				}
				w.tree = !namespaces
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
