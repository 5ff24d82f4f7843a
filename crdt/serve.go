package crdt

import (
	"errors"
	"fmt"
	"io"
)

// Serve holds write models for the [Remote] at the other end of in and out,
// until in ends. What empty makes is asked for each new page. A request that is
// malformed is an error, after which nothing more is answered; one that a model
// refuses, or at which it panics, is answered so.
func Serve(in io.Reader, out io.Writer, empty func() Model) error {
	var models []Model
	for {
		b, err := readFrame(in, maxRequest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := decodeOrder(b)
		if err != nil {
			return err
		}
		if o.document == len(models) && o.op == opLoad {
			models = append(models, empty())
		}
		if o.document >= len(models) {
			return fmt.Errorf("there is no document %d", o.document)
		}
		if err := writeFrame(out, reply(models[o.document], o)); err != nil {
			return err
		}
	}
}

// reply answers one request, with a frame.
func reply(m Model, o order) (frame []byte) {
	refuse := func(why any) []byte {
		text := fmt.Sprint(why)
		return append(newFrame(outRefused, maxRefusal), text[:min(len(text), maxRefusal)]...)
	}
	defer func() {
		if r := recover(); r != nil {
			frame = refuse(fmt.Sprint("it panicked: ", r))
		}
	}()
	switch o.op {
	case opLoad:
		heads, err := m.Load(o.changes)
		if err != nil {
			return refuse(err)
		}
		frame = newFrame(outOK, len(heads)*len(firstHash))
		for _, h := range heads {
			frame = append(frame, h[:]...)
		}
		return frame
	case opText:
		text, err := m.Text()
		if err != nil {
			return refuse(err)
		}
		return append(newFrame(outOK, len(text)), text...)
	}
	change, err := m.Splice(o.actor, o.at, o.splices)
	if err != nil {
		return refuse(err)
	}
	return append(newFrame(outOK, len(change)), change...)
}
