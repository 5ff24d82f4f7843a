package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

// A run's output is the data, alone on stdout; how it ended is talk, on stderr.
func TestOutputAndTalkAreApart(t *testing.T) {
	run := &notebook.RunInfo{Number: 7, State: "done", Result: notebook.Result{Verdict: notebook.OK, Rung: notebook.Strict, Output: "2\n", Took: 1500}}
	var out, errs bytes.Buffer
	a := newApp(nil, nil, &out, &errs)
	if err := a.ran(run, "Notes#1"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "2\n" || errs.String() != "ok at strict in 1.5ms, run 7\n" {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}

	out.Reset()
	errs.Reset()
	run.Result = notebook.Result{Verdict: notebook.Timeout, Output: "so far\n", Limits: notebook.Limits{Time: 5 * time.Second}}
	if code := a.finish(a.ran(run, "Notes#1")); code != 5 || out.String() != "so far\n" {
		t.Errorf("exit %d, stdout %q", code, out.String())
	}
	if want := "noted: killed at its deadline of 5s, run 7\nnext: noted run show 7\n"; errs.String() != want {
		t.Errorf("stderr %q, want %q", errs.String(), want)
	}
}

// What went to hosts is shown of a run that could reach one, and of no other.
func TestBytesOfHostsAreShown(t *testing.T) {
	for _, c := range []struct {
		has  []notebook.Capability
		show string
	}{
		{[]notebook.Capability{notebook.CapClock, notebook.Net("127.0.0.1:80")}, "6 bytes sent, 16 received"},
		{[]notebook.Capability{notebook.CapClock}, ""},
		{nil, ""},
	} {
		run := &notebook.RunInfo{State: "done", Capabilities: c.has, Result: notebook.Result{Verdict: notebook.OK, Rung: notebook.Granted, Sent: 6, Received: 16}}
		tx := &text{}
		renderRun(tx, run)
		out := tx.buf.String()
		if shown := strings.Contains(out, "bytes sent"); shown != (c.show != "") || !strings.Contains(out, c.show) {
			t.Errorf("%v: %q", c.has, out)
		}
		if j := runShape(*run); j.Result.Sent != 6 || j.Result.Received != 16 {
			t.Errorf("%v: %+v", c.has, j.Result)
		}
	}
}

func TestDroppedOutputIsCounted(t *testing.T) {
	got := output(notebook.Result{Output: "headtail", Head: 4, Dropped: 1000})
	if want := "head\n… 1000 bytes left out …\ntail"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, r := range []notebook.Result{
		{Output: "whole"},
		{Output: "whole", Head: -1, Dropped: 3},
		{Output: "whole", Head: 9, Dropped: 3}, // a result of another device says what it likes
	} {
		if got := output(r); got != "whole" {
			t.Errorf("%+v: %q", r, got)
		}
	}
}

// The end of an output that came too fast for a terminal is what the result has of
// it: no more than was missed, and nothing from before what was left out.
func TestTheEndOfAnOutput(t *testing.T) {
	for _, c := range []struct {
		r    notebook.Result
		most int64
		want string
	}{
		{notebook.Result{Output: "head and end"}, 3, "end"},
		{notebook.Result{Output: "head and end"}, 100, "head and end"},
		{notebook.Result{Output: "headtail", Head: 4, Dropped: 1000}, 2, "il"},
		{notebook.Result{Output: "headtail", Head: 4, Dropped: 1000}, 1004, "tail"},
		{notebook.Result{Output: "headtail", Head: 8, Dropped: 1000}, 1000, ""},
		{notebook.Result{Output: "end: é"}, 1, ""},
		{notebook.Result{Output: "end: é"}, 2, "é"},
		{notebook.Result{}, 5, ""},
	} {
		if got := lastOf(c.r, c.most); got != c.want {
			t.Errorf("the last %d bytes of %+v: %q, not %q", c.most, c.r, got, c.want)
		}
	}
}

func TestHintsQuoteTheReference(t *testing.T) {
	refused := &notebook.RunInfo{State: "refused", Reason: "no"}
	if f := failure(badEnd(refused, "Old notes#1")); !strings.HasSuffix(f.Hint, "'Old notes#1'") {
		t.Errorf("%q", f.Hint)
	}
}
