package exec

import (
	"testing"

	"noted/notebook"
)

// TestAShellAndItsPrograms: programs stand in a shell as commands do anywhere.
func TestAShellAndItsPrograms(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	at := tree(t, map[string]string{"in/lines": "a\nb\nc\n"})
	for _, c := range []shellCase{
		okShell("in a loop, each of them leaves the input alone", `printf 'a\nb\nc\n' | while read -r l; do /bin/sh -c 'echo "$0"' "$l"; done`, "a\nb\nc\n"),
		okShell("in a loop over a file", `while read -r l; do /bin/sh -c 'echo "$0"' "$l"; done < `+at+"/in/lines", "a\nb\nc\n"),
		okShell("one that reads a line", `{ /bin/sh -c 'read x; echo "<$x>"'; read -r y; echo "$y"; cat; } <<< $'a\nb\nc'`, "<a>\nb\nc\n"),
		okShell("one that reads what the next would have read", `printf 'a\nb\n' | { cat; read -r x; echo "<$x>"; }`, "a\nb\n<>\n"),
		okShell("one that waits for its input", `{ /bin/sh -c 'exec 0<&-; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; echo late; } | cat`, "late\n"),
		okShell("without any input", "cat; echo end", "end\n"),
		failedShell("beside a denial that is not its own", "/bin/sh -c 'read x' | eval x | /bin/sh -c 'read x'; echo on", "", "fence:1: the command eval is not here"),
	} {
		j := granting(t, quick, c.source, notebook.Program(shell), notebook.Program(cat), notebook.Dir(at+"/in", false))
		j.language = shellLanguage.name
		if res := runJob(t, r, j); res.Verdict != c.verdict || res.Output != c.output || res.Error != c.err {
			t.Errorf("%s: %v %q %q, want %v %q %q", c.name, res.Verdict, res.Output, res.Error, c.verdict, c.output, c.err)
		}
	}
}
