package main

import (
	"context"
	"unicode/utf8"

	"noted/notebook"
	"noted/rpc"
)

// live writes what runs write, as it comes.
type live struct {
	a    *app
	open bool   // the last line has not ended
	run  uint64 // whose it is
}

// write writes a piece of a run's output, with prefix before each line.
func (l *live) write(prefix string, o notebook.RunOutput) error {
	t := l.a.text()
	l.put(t, prefix, o)
	return t.flush()
}

func (l *live) put(t *text, prefix string, o notebook.RunOutput) {
	if l.run != o.Number || o.Dropped > 0 {
		l.end(t)
	}
	l.run = o.Number
	if o.Dropped > 0 {
		t.buf.WriteString(prefix)
		t.line("… %d bytes left out …", o.Dropped)
	}
	l.open = t.flow(prefix, o.Text, l.open)
}

// end ends the last line, so that something else can follow.
func (l *live) end(t *text) {
	if l.open {
		t.buf.WriteByte('\n')
		l.open = false
	}
}

// runLive runs a fence and writes its output to the terminal as it comes. Of an
// output that comes faster than the terminal takes it, the end is written all the
// same: the result has it.
func (a *app) runLive(ctx context.Context, b rpc.Backend, r notebook.RunRequest, ref string) error {
	l := &live{a: a}
	var lost int64 // bytes since the last that was written
	run, err := b.RunLive(ctx, r, func(o notebook.RunOutput) error {
		if lost += o.Dropped; o.Text == "" {
			return nil
		}
		o.Dropped, lost = lost, 0
		return l.write("", o)
	})
	t := a.text()
	if lost > 0 {
		o := notebook.RunOutput{Number: l.run, Dropped: lost}
		if err == nil {
			o.Text = lastOf(run.Result, lost)
			o.Dropped -= int64(len(o.Text))
		}
		l.put(t, "", o)
	}
	l.end(t)
	if ferr := t.flush(); ferr != nil {
		return ferr
	}
	if err != nil {
		return err
	}
	return a.over(run, ref)
}

// lastOf is what a result has of the last bytes of the output, whole characters.
func lastOf(r notebook.Result, most int64) string {
	end := r.Output
	if r.Dropped > 0 && r.Head >= 0 && r.Head <= len(end) {
		end = end[r.Head:]
	}
	from := int(max(0, int64(len(end))-most))
	for from < len(end) && !utf8.RuneStart(end[from]) {
		from++
	}
	return end[from:]
}
