package daemon_test

import (
	"context"
	"strings"
	"testing"

	"noted/daemon/daemontest"
	"noted/notebook"
)

// outputOf is what of a run's output a watcher was told, and how much it was
// told that it missed.
func outputOf(events []notebook.Event, number uint64) (text string, dropped int64) {
	var b strings.Builder
	for _, e := range events {
		if e.Kind == "output" && e.Run.Number == number || e.Kind == "note" {
			b.WriteString(e.Output)
			dropped += e.Dropped
		}
	}
	return b.String(), dropped
}

// TestLiveOutputIsToldWhileItComes: to the person and to the agent whose run it
// is, with the run and the fence, and to no other agent.
func TestLiveOutputIsToldWhileItComes(t *testing.T) {
	w, laptop := lonely(t)
	scribe, other, ctx := w.Device("laptop").Agent("scribe"), w.Device("laptop").Agent("other"), context.Background()
	laptop.Types("Long", endless)
	person, own, others := laptop.Watches(), scribe.Watches(), other.Watches()
	for _, by := range []*daemontest.Hand{laptop, scribe} {
		number, ended := begins(t, w, ctx, by, "Long")
		said := func(told *daemontest.Told) string {
			text, _ := outputOf(told.All(), number)
			return text
		}
		w.Eventually("the person is told", func() bool { return said(person) == "begun\n" })
		if by == scribe {
			w.Eventually("the agent is told", func() bool { return said(own) == "begun\n" })
		}
		if _, err := laptop.Client.Cancel(ctx, number); err != nil {
			t.Fatal(err)
		}
		within(t, ended)
		person.Has("run", "cancelled by owner")
		if by == laptop && said(own) != "" || said(others) != "" {
			t.Errorf("an agent is told of another's run: %q %q", said(own), said(others))
		}
	}
	last := -1
	for i, e := range person.All() {
		if e.Kind == "output" {
			if last = i; e.Run.Number == 0 || e.Fence != laptop.Fence("Long", 1).ID || e.Title != "Long" || e.Run.Client == "" {
				t.Errorf("the output is told as %+v", e)
			}
		}
	}
	if last < 0 {
		t.Error("nothing was told")
	}
	for _, e := range others.All() {
		if e.Run != nil {
			t.Errorf("another agent is told of run %+v", e.Run)
		}
	}
}

// TestCase39_StalledWatcher: who does not read what it is told holds nobody up,
// and is told of every byte that it lost.
func TestCase39_StalledWatcher(t *testing.T) {
	_, laptop := lonely(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const lines, line = 4096, 128 // 512 KiB
	laptop.Types("Flood", lua("local s = ('é'):rep(63) .. 'x' for i = 1, 4096 do print(s) end"))
	stalled, goOn, seen := make(chan struct{}), make(chan struct{}), make(chan []notebook.Event, 1)
	go func() {
		var all []notebook.Event
		_ = laptop.Client.Watch(ctx, func(e notebook.Event) error {
			if e.Kind == "run" && e.Run.State == "running" {
				close(stalled)
				<-goOn
			}
			all = append(all, e)
			if e.Kind == "run" && e.Run.State == "done" {
				seen <- all
			}
			return nil
		})
	}()
	prompt := laptop.Watches() // who reads misses nothing of what is said to both
	run := laptop.Runs("Flood", 1)
	if run.Result.Verdict != notebook.OK || int64(len(run.Result.Output))+run.Result.Dropped != lines*line {
		t.Errorf("%v: %d bytes and %d dropped", run.Result.Verdict, len(run.Result.Output), run.Result.Dropped)
	}
	within(t, stalled)
	close(goOn)
	text, dropped := outputOf(within(t, seen), run.Number)
	if int64(len(text))+dropped != lines*line || dropped == 0 || len(text) == 0 {
		t.Errorf("the stalled one has %d bytes and %d dropped, of %d", len(text), dropped, lines*line)
	}
	prompt.Has("run", "ok")
	text, dropped = outputOf(prompt.All(), run.Number)
	if int64(len(text))+dropped != lines*line {
		t.Errorf("the prompt one has %d bytes and %d dropped, of %d", len(text), dropped, lines*line)
	}
}

// TestLiveOutputOfOthersIsKnownAgain: what a foreign fence writes is in the record
// of foreign text before anybody sees it, also while the run goes on.
func TestLiveOutputOfOthersIsKnownAgain(t *testing.T) {
	const line = "print('written by a fence of the phone')"
	_, laptop, _ := paired(t, map[string]string{"Theirs": lua("print([[" + line[:20] + "]] .. [[" + line[20:] + "]]) while true do end")})
	f := laptop.Fence("Theirs", 1)
	heard, ended := make(chan string, 1), make(chan ending, 1)
	go func() {
		text := ""
		run, err := laptop.Client.RunLive(context.Background(), notebook.RunRequest{FenceRef: daemontest.Ref(f)}, func(o notebook.RunOutput) error {
			if text += o.Text; strings.HasSuffix(text, "\n") {
				heard <- text
			}
			return nil
		})
		ended <- ending{run, err}
	}()
	text := within(t, heard)
	if text != line+"\n" {
		t.Fatalf("heard %q", text)
	}
	laptop.Types("Pasted", lua(strings.TrimSuffix(text, "\n")))
	laptop.Types("Own", lua("print('in my own words, of my own')"))
	laptop.Stands("Pasted", 1, "device:phone")
	laptop.Stands("Own", 1, "local")
	runs, err := laptop.Client.Runs(context.Background(), 1)
	if err != nil || runs[0].State != "running" {
		t.Fatalf("the run was over: %+v %v", runs, err)
	}
	if _, err := laptop.Client.Cancel(context.Background(), runs[0].Number); err != nil {
		t.Fatal(err)
	}
	if e := within(t, ended); e.err != nil || e.run.Result.Output != text {
		t.Errorf("%+v %v", e.run, e.err)
	}
}

// TestCase90_EveryResultNamesItsRun: two runs of one fence are told apart by
// number, bytes, standing and what held them, wherever they are shown.
func TestCase90_EveryResultNamesItsRun(t *testing.T) {
	w := daemontest.Loopback(t, "laptop")
	laptop, scribe, ctx := w.As("laptop"), w.Device("laptop").Agent("scribe"), context.Background()
	laptop.Types("Sums", lua("return 'first'"))
	first := laptop.Runs("Sums", 1)
	laptop.Edits("Sums", "first", "second")
	second := scribe.Runs("Sums", 1)
	if first.Number == second.Number || first.Result.Closure == second.Result.Closure {
		t.Errorf("%d and %d", first.Number, second.Number)
	}
	for _, run := range []*notebook.RunInfo{first, second} {
		kept, err := laptop.Client.RunInfo(ctx, run.Number)
		if err != nil {
			t.Fatal(err)
		}
		res := kept.Result
		if kept.Standing != "local" || kept.Client != run.Client || kept.Rule == "" || kept.Engine.IsZero() || res.Closure != run.Result.Closure ||
			res.Inputs.IsZero() || len(res.Layers) == 0 || res.Limits != notebook.DefaultLimits || res.Output != run.Result.Output {
			t.Errorf("run %d is kept as %+v", run.Number, kept)
		}
	}
	if second.Result.Rung != notebook.Strict || len(second.Capabilities) > 0 || len(first.Capabilities) == 0 {
		t.Errorf("%+v\n%+v", first, second)
	}
	if last := laptop.Fence("Sums", 1).Last; last.Number != second.Number || last.Result.Closure != laptop.Fence("Sums", 1).Hash {
		t.Errorf("the fence shows %+v", last)
	}
}
