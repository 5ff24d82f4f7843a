package pairing

import (
	"context"
	"errors"
	"io"
	"time"
)

// How long each side waits. The joiner's program answers at once, so seconds
// are enough where no person is asked; a write that needs a disk gets longer.
const (
	networkWait = 10 * time.Second
	diskWait    = 30 * time.Second
	personWait  = 2 * time.Minute
	slack       = 5 * time.Second // so that the side where the person is tells first
	farewell    = 2 * time.Second // for the frame that says why it ended
)

// session is one side of a pairing: a goroutine that reads frames, and the
// caller's, which does everything else.
type session struct {
	rw     io.ReadWriteCloser
	frames chan frame
	gone   chan struct{} // closed when the reader has ended
	err    error         // why; read after gone
	done   chan struct{} // closed when nobody wants frames any more
}

func start(rw io.ReadWriteCloser, takes limits) *session {
	s := &session{rw: rw, frames: make(chan frame), gone: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.gone)
		for {
			f, err := readFrame(rw, takes)
			if err != nil {
				s.err = err
				return
			}
			select {
			case s.frames <- f:
			case <-s.done:
				s.err = io.ErrClosedPipe
				return
			}
		}
	}()
	return s
}

// finish tells the other side why the pairing ended, unless it told us, closes
// the connection and waits for the reader.
func (s *session) finish(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && !f.There && f.Reason != Lost {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		s.write(bye, endFrame(f))
		cancel()
	}
	close(s.done)
	s.rw.Close()
	<-s.gone
	return err
}

// write sends one frame, or gives up when ctx is done, after which the
// connection is closed.
func (s *session) write(ctx context.Context, f frame) error {
	sent := make(chan error, 1)
	go func() {
		_, err := s.rw.Write(appendFrame(nil, f))
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		s.rw.Close()
		<-sent
		return ctx.Err()
	}
}

// send is write as a step. When it cannot be sent because the other side has
// ended the pairing, its reason is what counts.
func (s *session) send(ctx context.Context, step Step, f frame) error {
	ctx, cancel := context.WithTimeout(ctx, networkWait)
	defer cancel()
	err := s.write(ctx, f)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		if end := s.lastWord(ctx); end != nil {
			return end
		}
		return &Failure{Reason: Lost, Step: step, Err: err}
	}
	return because(step, ctx.Err())
}

// lastWord looks for the other side's reason behind a failed write.
func (s *session) lastWord(ctx context.Context) *Failure {
	for {
		select {
		case f := <-s.frames:
			if f.kind == kindEnd {
				if end, ok := f.end(); ok {
					return end
				}
			}
		case <-s.gone:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// receive waits for a frame of one kind.
func (s *session) receive(ctx context.Context, step Step, wait time.Duration, want kind) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case f := <-s.frames:
		return f, judge(f, step, want)
	case <-s.gone:
		return frame{}, s.broken(step)
	case <-ctx.Done():
		return frame{}, because(step, ctx.Err())
	}
}

// judge says why f is not a frame of the wanted kind.
func judge(f frame, step Step, want kind) error {
	if f.kind == kindEnd {
		if end, ok := f.end(); ok {
			return end
		}
	} else if f.kind == want {
		return nil
	}
	return &Failure{Reason: Garbled, Step: step}
}

// broken is what the reader ended with, after it has.
func (s *session) broken(step Step) error {
	if errors.Is(s.err, errFrame) {
		return &Failure{Reason: Garbled, Step: step, Err: s.err}
	}
	return &Failure{Reason: Lost, Step: step, Err: s.err}
}

// confirm asks the person here and tells the other side, while it waits for the
// other person's answer. Both have to say yes. It returns after ask has.
func (s *session) confirm(ctx context.Context, ask func(context.Context) (bool, error)) error {
	asking, stop := context.WithTimeout(ctx, personWait)
	var yes bool
	var unasked error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		yes, unasked = ask(asking)
	}()
	defer func() { <-answered }()
	defer stop()

	late := time.NewTimer(personWait + slack)
	defer late.Stop()
	waiting, there := answered, false
	for waiting != nil || !there {
		select {
		case <-waiting:
			waiting = nil
			switch {
			case unasked != nil:
				return because(Confirmation, unasked)
			case !yes:
				return &Failure{Reason: Declined, Step: Confirmation}
			}
			if err := s.send(ctx, Confirmation, frame{kind: kindConfirm}); err != nil {
				return err
			}
		case f := <-s.frames:
			want := kindConfirm
			if there {
				want = kindEnd // it has said yes already: only an end may follow
			}
			if err := judge(f, Confirmation, want); err != nil {
				return err
			}
			there = true
		case <-s.gone:
			return s.broken(Confirmation)
		case <-late.C:
			return &Failure{Reason: Timeout, Step: Confirmation}
		case <-ctx.Done():
			return because(Confirmation, ctx.Err())
		}
	}
	return nil
}
