package daemon

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// replaying is a run that is to be done again: with what it was handed then, if
// the fence, as it stands now, may run now and may have at least that.
type replaying struct {
	of     *runRecord
	recipe *recipe
	values map[notebook.Hash][]byte
}

// inputs puts the values of then in the place of those of now. Whoever had a hand
// in them then or has one now has one in the replay.
func (y *replaying) inputs(now []trust.Input) []trust.Input {
	if y == nil {
		return now
	}
	for _, in := range y.recipe.Inputs {
		i := slices.IndexFunc(now, func(n trust.Input) bool { return n.Capability == in.Capability })
		if i < 0 {
			continue // it cannot be had here now, and so not again
		}
		now[i].Value, now[i].Authors = y.values[in.Value], now[i].Authors.Union(in.Authors)
	}
	return now
}

// pages are those of which the text of now is, and those of then.
func (y *replaying) pages(now []notebook.PageID) []notebook.PageID {
	if y != nil {
		now = append(now, y.of.Pages...)
	}
	slices.SortFunc(now, func(a, b notebook.PageID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(now)
}

// narrow makes of what the fence may have now what it had then.
func (y *replaying) narrow(now trust.Grant) (trust.Grant, *trust.Refusal) {
	g, ok := now.Narrow(y.of.Rung, y.of.Capabilities)
	if !ok {
		return g, &trust.Refusal{
			Code: notebook.CodeRefused, Rule: now.Rule(),
			Reason: fmt.Sprintf("run %d ran %s, and today the fence would run %s", y.of.Number, powers(y.of.Rung, y.of.Capabilities), powers(now.Rung(), now.Capabilities())),
			Hint:   "noted fence run runs it as it may run today",
		}
	}
	return g, nil
}

// powers is what a run has, in words.
func powers(rung notebook.Rung, capabilities []notebook.Capability) string {
	if len(capabilities) == 0 {
		return rung.String()
	}
	var names []string
	for _, c := range capabilities {
		names = append(names, string(c))
	}
	return rung.String() + " with " + strings.Join(names, " ")
}

// replay does a run again and compares.
func (d *Daemon) replay(ctx context.Context, c caller, number uint64) (*notebook.Replay, error) {
	y, err := d.replayable(c, number)
	if err != nil {
		return nil, err
	}
	run, err := d.run(ctx, c, order{
		RunRequest: notebook.RunRequest{
			FenceRef: notebook.FenceRef{Page: y.of.Page, Fence: y.of.Fence, Shown: y.of.Closure},
			Args:     y.recipe.Args,
		},
		replay: y,
	})
	if err != nil {
		return nil, err
	}
	of, err := y.of.info()
	if err != nil {
		return nil, err
	}
	return &notebook.Replay{Run: *run, Of: *of, Differs: differences(of, run)}, nil
}

// replayable finds a run that c sees, with what it was handed, or says why it
// cannot be done again.
func (d *Daemon) replayable(c caller, number uint64) (*replaying, error) {
	y := &replaying{}
	var err error
	if y.of, err = d.runRecord(c, number); err != nil {
		return nil, err
	}
	no := func(format string, args ...any) error {
		return notebook.Errorf(notebook.CodeUnavailable, "run %d cannot be replayed: %s", number, fmt.Sprintf(format, args...)).
			With("noted fence run runs the fence as it is now")
	}
	of, err := y.of.info()
	switch {
	case err != nil:
		return nil, err
	case of.State == stateRunning:
		return nil, no("it still runs")
	case of.State == stateRefused:
		return nil, no("it was refused")
	case of.Result.Verdict == notebook.Cancelled, of.Result.Verdict == notebook.Crash && of.Result.Took == 0:
		return nil, no("it came to no end of its own: %s", of.Result.Verdict)
	case of.Result.Rung > notebook.Granted:
		return nil, no("it ran at %s, with more than values", of.Result.Rung)
	}
	for _, has := range y.of.Capabilities {
		if !isValue(has) {
			return nil, no("it had %s, which is no value that can be handed in again", notebook.EscapeLine(string(has)))
		}
	}
	var pushed uint64
	err = d.db.View(func(tx *store.Tx) (err error) {
		if y.recipe, y.values, err = readKept(tx, y.of.share(), number); err == nil {
			pushed, err = y.of.share().number(tx, keptPushed)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case y.recipe == nil && number <= pushed:
		return nil, no("later runs pushed out what it was handed: %s", y.of.share().room())
	case y.recipe == nil:
		return nil, no("what it was handed is not kept any more")
	}
	return y, nil
}

// differences says how a run is not another one again. How long it took, how much
// memory it had and which layers held are no part of what it is.
func differences(of, run *notebook.RunInfo) (all []string) {
	differ := func(what string, then, now any) {
		if then != now {
			all = append(all, fmt.Sprintf("%s: %v then, %v now", what, then, now))
		}
	}
	was, is := &of.Result, &run.Result
	differ("the bytes", was.Closure, is.Closure)
	differ("the engine", of.Engine, run.Engine)
	differ("what it was handed", was.Inputs, is.Inputs)
	differ("the time limit", was.Limits.Time, is.Limits.Time)
	differ("the memory limit", was.Limits.Memory, is.Limits.Memory)
	differ("the output limit", was.Limits.Output, is.Limits.Output)
	differ("the source limit", was.Limits.Source, is.Limits.Source)
	differ("the verdict", was.Verdict, is.Verdict)
	differ("the error", was.Error, is.Error)
	differ("the output", outputDigest(was), outputDigest(is))
	return all
}

// outputDigest names what a run wrote, as far as it is kept, and how much more it was.
func outputDigest(r *notebook.Result) notebook.Hash {
	return notebook.Digest("noted/output/v1", []byte(r.Output[:r.Head]), []byte(r.Output[r.Head:]), store.Number(uint64(r.Dropped)))
}
