package main

import (
	"context"

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
	if l.run != o.Number || o.Dropped > 0 {
		l.end(t)
	}
	l.run = o.Number
	if o.Dropped > 0 {
		t.buf.WriteString(prefix)
		t.line("… %d bytes left out …", o.Dropped)
	}
	l.open = t.flow(prefix, o.Text, l.open)
	return t.flush()
}

// end ends the last line, so that something else can follow.
func (l *live) end(t *text) {
	if l.open {
		t.buf.WriteByte('\n')
		l.open = false
	}
}

// runLive runs a fence and writes its output to the terminal as it comes.
func (a *app) runLive(ctx context.Context, b rpc.Backend, r notebook.RunRequest, ref string) error {
	l := &live{a: a}
	run, err := b.RunLive(ctx, r, func(o notebook.RunOutput) error { return l.write("", o) })
	t := a.text()
	l.end(t)
	if ferr := t.flush(); ferr != nil {
		return ferr
	}
	if err != nil {
		return err
	}
	return a.over(run, ref)
}
