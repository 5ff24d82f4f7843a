package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"noted/notebook"
)

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("plain"), 1},
		{notebook.Errorf(notebook.CodeFailed, "x"), 1},
		{notebook.Errorf(notebook.CodeExhausted, "x"), 1},
		{notebook.Errorf(notebook.CodeUnavailable, "the peer is away"), 1},
		{notebook.Errorf("a code of the future", "x"), 1},
		{context.Canceled, 1},
		{notebook.Errorf(notebook.CodeInvalid, "x"), 2},
		{notebook.Errorf(notebook.CodeNotFound, "x"), 3},
		{notebook.Errorf(notebook.CodeAmbiguous, "x"), 3},
		{notebook.Errorf(notebook.CodeRefused, "x"), 4},
		{notebook.Errorf(notebook.CodeDenied, "x"), 4},
		{notebook.Errorf(notebook.CodeStale, "x"), 4},
		{notebook.Errorf(notebook.CodeTimeout, "x"), 5},
		{context.DeadlineExceeded, 5},
		{unreachableError{notebook.Errorf(notebook.CodeUnavailable, "x")}, 6},
		{fmt.Errorf("wrapped: %w", notebook.Errorf(notebook.CodeStale, "x")), 4},
		{&outcome{err: notebook.Errorf(notebook.CodeTimeout, "x")}, 5},
		{kept("/draft", unreachableError{notebook.Errorf(notebook.CodeUnavailable, "x")}), 6},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v exits with %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestEveryCodeHasOneExit(t *testing.T) {
	codes := []notebook.Code{
		notebook.CodeInvalid, notebook.CodeNotFound, notebook.CodeAmbiguous, notebook.CodeStale, notebook.CodeRefused,
		notebook.CodeDenied, notebook.CodeExhausted, notebook.CodeTimeout, notebook.CodeUnavailable, notebook.CodeFailed,
	}
	var listed []notebook.Code
	for i, e := range exits() {
		if e.code != i {
			t.Errorf("row %d of the table is exit code %d", i, e.code)
		}
		listed = append(listed, e.codes...)
	}
	slices.Sort(codes)
	slices.Sort(listed)
	if !slices.Equal(codes, listed) {
		t.Errorf("the table lists %v, the codes are %v", listed, codes)
	}
}

func TestVerdictsExit(t *testing.T) {
	for verdict, want := range map[notebook.Verdict]int{
		notebook.OK: 0, notebook.Failed: 1, notebook.Timeout: 5, notebook.Memory: 1, notebook.Output: 1, notebook.Violation: 1,
		notebook.Crash: 1, notebook.Cancelled: 1, notebook.NoVerdict: 1, 200: 1,
	} {
		run := &notebook.RunInfo{State: "done", Result: notebook.Result{Verdict: verdict}}
		if got := exitCode(badEnd(run, "Notes#1")); got != want {
			t.Errorf("verdict %s exits with %d, want %d", verdict, got, want)
		}
	}
	refused := &notebook.RunInfo{State: "refused", Reason: "no", Result: notebook.Result{Verdict: notebook.OK}}
	if got := exitCode(badEnd(refused, "Notes#1")); got != 4 {
		t.Errorf("a refusal exits with %d, want 4", got)
	}
}

// invoke runs the program in this process, without a terminal and in an empty home.
func invoke(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := []string{"HOME=" + t.TempDir(), "NOTED_HOME=" + t.TempDir()}
	code = run(t.Context(), args, env, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for _, tt := range []struct{ args, next string }{
		{"nosuch", "noted --help"},
		{"pag list", "noted page"},
		{"page", "noted page --help"},
		{"page shwo Notes", "noted page show"},
		{"page show", "noted page show PAGE"},
		{"page show a b", "noted page show PAGE"},
		{"page list --nosuch", "noted page list --help"},
		{"page put Notes --as agent", "--as typed"},
		{"fence run Notes#1 --arg x", "--arg name=value"},
		{"fence run", "noted fence run FENCE"},
		{"ask answer 1", "--yes or --no"},
		{"ask answer 1 --yes --no", "--yes or --no"},
		{"ask answer x --yes", "noted ask list"},
		{"run show 0", "noted run list"},
		{"run show seven", "noted run list"},
		{"run list -n 0", "from 1"},
		{"device pair --yes", "--pin-fd"},
		{"device pair --confirm-fd 3", "--pin-fd"},
		{"watch --kind rumours", "--kind"},
		{"completion", "noted completion bash"},
		{"completion tcsh", "noted completion bash"},
		{"help nosuch", "noted --help"},
	} {
		code, stdout, stderr := invoke(t, "", strings.Fields(tt.args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "noted: ") || !strings.Contains(stderr, "next: ") || !strings.Contains(stderr, tt.next) {
			t.Errorf("noted %s: exit %d, stdout %q, stderr %q; want exit 2 and the next step %q", tt.args, code, stdout, stderr, tt.next)
		}
		code, stdout, stderr = invoke(t, "", append(strings.Fields(tt.args), "--json")...)
		if code != 2 || stderr != "" || !strings.HasPrefix(stdout, `{"ok":false,"error":{"code":"invalid"`) {
			t.Errorf("noted %s --json: exit %d, stdout %q, stderr %q; want the envelope alone", tt.args, code, stdout, stderr)
		}
	}
}

// Without a notebook every command that needs one says how to make it.
func TestNoHome(t *testing.T) {
	a := newApp(nil, nil, nil, nil)
	for _, noun := range a.root().Commands() {
		for _, cmd := range append(noun.Commands(), noun) {
			if cmd.HasSubCommands() || cmd.Annotations["data"] == "" || cmd.Name() == "init" {
				continue
			}
			args := strings.Fields(cmd.CommandPath())[1:]
			if least, _ := arity(cmd.Use); least > 0 {
				arg := "Notes#1"
				if noun.Name() == "ask" || noun.Name() == "run" {
					arg = "1"
				}
				args = append(args, []string{arg, "Title"}[:least]...)
			}
			if cmd.CommandPath() == "noted ask answer" {
				args = append(args, "--no")
			}
			code, stdout, stderr := invoke(t, "", args...)
			if code != 6 || stdout != "" || !strings.Contains(stderr, "next: noted init\n") {
				t.Errorf("noted %q: exit %d, stdout %q, stderr %q; want exit 6 and noted init", args, code, stdout, stderr)
			}
		}
	}
}
