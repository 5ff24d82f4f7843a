package daemon_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// hint is what a failure says to do next.
func hint(err error) string {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e.Hint
	}
	return ""
}

// TestI14LongLanguagesAreRefusedOnTheRecord: no record has room for the name of
// a language that fills a page, which a peer may send. The refusal is recorded
// and told all the same, and can be read for ever after.
func TestI14LongLanguagesAreRefusedOnTheRecord(t *testing.T) {
	ctx := context.Background()
	refusals := []struct {
		letters int
		code    notebook.Code
		why     string
	}{
		{20_000, notebook.CodeRefused, "no runtime"},
		{400_000, notebook.CodeExhausted, "more than"},
	}
	pages := map[string]string{}
	for _, c := range refusals {
		pages[fmt.Sprint(c.letters)] = "```" + strings.Repeat("a", c.letters) + "\nreturn 1\n```\n"
	}
	w, laptop, _ := paired(t, pages)
	for _, c := range refusals {
		title := fmt.Sprint(c.letters)
		_, err := laptop.TryRun(laptop.Fence(title, 1))
		daemontest.Refusal(t, err, c.code, c.why)
		if hint(err) == "" {
			t.Errorf("%s letters: what to do next is not said", title)
		}
		runs, err := laptop.Client.Runs(ctx, 1)
		if err != nil || len(runs) != 1 || runs[0].Title != title || runs[0].State != "refused" || !strings.Contains(runs[0].Reason, c.why) {
			t.Fatalf("%s letters: the newest runs are %.200q %v", title, fmt.Sprint(runs), err)
		}
		if last := laptop.Fence(title, 1).Last; last == nil || last.State != "refused" {
			t.Errorf("%s letters: the fence is shown with %+v", title, last)
		}
		if report, err := laptop.Client.VerifyLedger(ctx); err != nil || report.Problem != "" {
			t.Errorf("%s letters: %+v %v", title, report, err)
		}
	}
	w.Device("laptop").Restarts()
	if runs, err := w.As("laptop").Client.Runs(ctx, 0); err != nil || len(runs) != len(refusals) {
		t.Errorf("after a restart there are %d runs: %v", len(runs), err)
	}
}

// TestTheLargestModuleRuns: a module has a bound of its own, on every way that a
// fence goes until it has run.
func TestTheLargestModuleRuns(t *testing.T) {
	fence := func(bytes int) string {
		const program = "\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x02\x01\x00" + "\x07\x07\x01\x03run\x00\x00" + "\x0a\x06\x01\x04\x00\x41\x2a\x0b"
		rest := bytes - len("\x00asm\x01\x00\x00\x00") - len(program) - 4 // a section of the author's own fills it
		own := append([]byte{0}, binary.AppendUvarint(nil, uint64(rest))...)
		own = append(own, make([]byte, rest)...)
		module := append([]byte("\x00asm\x01\x00\x00\x00"), own...)
		text := base64.StdEncoding.EncodeToString(append(module, program...))
		var b strings.Builder
		for line := range slices.Chunk([]byte(text), 76) {
			b.Write(append(line[:len(line):len(line)], '\n'))
		}
		return "```wasm\n" + b.String() + "```\n"
	}
	_, laptop, phone := paired(t, map[string]string{
		"Largest": fence(notebook.MaxModule), "Larger": fence(notebook.MaxModule + 1), "Text": "```wasm\n" + strings.Repeat("A\n", notebook.MaxModuleText/2) + "```\n",
	})
	_, err := laptop.TryRun(laptop.Fence("Largest", 1))
	daemontest.Refusal(t, err, notebook.CodeRefused, "policy asks before wasm")
	laptop.Approves("Largest", 1, notebook.ScopeContent)
	for name, d := range map[string]*daemontest.Hand{"laptop": laptop, "phone": phone} {
		if run := d.Runs("Largest", 1); run.Result.Verdict != notebook.OK || run.Result.Output != "42\n" {
			t.Errorf("%s: %+v", name, run.Result)
		}
	}
	if run := phone.Runs("Larger", 1); run.Result.Verdict != notebook.Failed || !strings.Contains(run.Result.Error, "the limit is 262144") {
		t.Errorf("%+v", run.Result)
	}
	_, err = phone.TryRun(phone.Fence("Text", 1))
	daemontest.Refusal(t, err, notebook.CodeExhausted, "more than")
}
