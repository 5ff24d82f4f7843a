package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
	"noted/rpc"
)

func (a *app) devicePair() *cobra.Command {
	var o compareFlags
	cmd := verb("pair", "invite another device into this notebook", `
Shows an invitation as a QR code and a line of text, for "noted device join" on
the other device. Both devices then show six digits: confirm on both, and here
with the PIN, only if they are the same. An invitation works once and for two
minutes. What the other device writes is synced, and does not run here by being
paired.

With --json every step is one line. A program confirms with --pin-fd and either
--confirm-fd, a descriptor on which it writes the six digits that the other
device shows, or --yes.`, func(ctx context.Context, _ []string) error {
		if o.given() && a.pinFD < 0 {
			return notebook.Errorf(notebook.CodeInvalid, "--yes and --confirm-fd leave nobody to ask for the PIN").With("add --pin-fd N")
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		return a.pairing(ctx, func(ctx context.Context, each func(notebook.PairEvent) error) error {
			return b.Pair(ctx, each)
		}, func(ctx context.Context, e notebook.PairEvent) error {
			if err := a.compare(ctx, b, o, e); err != nil {
				return err
			}
			return a.present(ctx, b, func(p notebook.Presence) error { return b.Confirm(ctx, e.Session, true, p) })
		})
	})
	return data("pairing, one a line", a.pinFlag(o.add(cmd)))
}

func (a *app) deviceJoin() *cobra.Command {
	var o compareFlags
	var name string
	cmd := verb("join [INVITATION]", "join the notebook of another device", `
INVITATION is the line that "noted device pair" shows on the other device; left
out, it is read from stdin. Both devices then show six digits: confirm on both,
only if they are the same.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		invitation := ""
		if len(args) == 1 {
			invitation = args[0]
		} else {
			if isTerminal(a.stdin) {
				a.note("paste the invitation that the other device shows:")
			}
			if invitation, err = readLine(a.stdin); err != nil {
				return notebook.Errorf(notebook.CodeInvalid, "there is no invitation on stdin: %v", err).With("noted device pair, on the other device, shows one")
			}
		}
		return a.pairing(ctx, func(ctx context.Context, each func(notebook.PairEvent) error) error {
			return b.Join(ctx, invitation, name, each)
		}, func(ctx context.Context, e notebook.PairEvent) error {
			if err := a.compare(ctx, b, o, e); err != nil {
				return err
			}
			return b.Confirm(ctx, e.Session, true, notebook.Presence{}) // to go in with another device takes no PIN
		})
	})
	cmd.Flags().StringVar(&name, "name", "", "the `name` of this device in the notebook")
	return data("pairing, one a line", o.add(cmd))
}

// compareFlags say how it is known that both devices show the same code.
type compareFlags struct {
	yes bool
	fd  int
}

func (o *compareFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "confirm without comparing the six digits")
	cmd.Flags().IntVar(&o.fd, "confirm-fd", -1, "confirm if the six digits read from this file `descriptor` are the same")
	cmd.Flags().Lookup("confirm-fd").DefValue = "0" // hides a default that is not one
	return cmd
}

// given reports whether the person is left out.
func (o *compareFlags) given() bool { return o.yes || o.fd >= 0 }

// pairing follows a pairing to its end and shows each step. Once the codes are
// to be compared it calls confirm, beside the steps: the pairing may end, by
// the other side or its deadline, while a person still looks.
func (a *app) pairing(ctx context.Context, start func(context.Context, func(notebook.PairEvent) error) error,
	confirm func(context.Context, notebook.PairEvent) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan notebook.PairEvent)
	ended := make(chan error, 1)
	go func() {
		ended <- start(ctx, func(e notebook.PairEvent) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()

	confirmed := make(chan error, 1)
	count := a.countdown()
	defer count.stop()
	var last notebook.PairEvent
	for {
		select {
		case e := <-events:
			count.stop()
			last = e
			if err := a.pairStep(e); err != nil {
				return err
			}
			switch e.State {
			case notebook.PairWaiting:
				count.start(e.Expires)
			case notebook.PairCompare:
				go func() { confirmed <- confirm(ctx, e) }()
			}
		case <-count.tick():
			count.show()
		case err := <-confirmed:
			if err != nil {
				return err
			}
		case err := <-ended:
			return pairEnd(err, last)
		}
	}
}

// pairEnd is how a pairing ended whose last step is known.
func pairEnd(err error, last notebook.PairEvent) error {
	if last.State == notebook.PairFailed {
		if err == nil {
			err = notebook.Errorf(notebook.CodeFailed, "not paired: %s", last.Reason).With("noted device pair, once more")
		}
		return &outcome{data: pairShape(last), err: err}
	}
	if err == nil && last.State != notebook.PairDone {
		err = notebook.Errorf(notebook.CodeFailed, "the pairing ended before it was done").With("noted device pair, once more")
	}
	return err
}

// pairStep shows one step. A failure is shown by the error that ends the command.
func (a *app) pairStep(e notebook.PairEvent) error {
	if e.State == notebook.PairFailed {
		return nil
	}
	return a.answer(pairShape(e), func(t *text) {
		switch e.State {
		case notebook.PairWaiting:
			if code := qr(e.Invitation); code != "" && isTerminal(a.stdout) {
				t.buf.WriteString(code)
			}
			t.line("on the other device: noted device join %s", quoted(e.Invitation))
		case notebook.PairCompare:
			t.line("%s (%s) is there, and shows the code %s", t.paint(bold, e.Name), e.Peer.Short(), t.paint(bold, e.Code))
		case notebook.PairDone:
			t.line("%s %s (%s)", t.paint(green, "paired with"), e.Name, e.Peer)
			if e.Reason != "" {
				t.line("%s", e.Reason)
			}
			t.line("what it writes is synced; what may run here is decided for every fence")
		}
	})
}

// compare makes sure that both devices show the same code. Where they do not, or
// nobody says so, the other side is told at once.
func (a *app) compare(ctx context.Context, b rpc.Backend, o compareFlags, e notebook.PairEvent) error {
	err := a.sameCode(ctx, o, e)
	if err != nil {
		_ = b.Confirm(ctx, e.Session, false, notebook.Presence{}) // err says more than a failure of this
	}
	return err
}

func (a *app) sameCode(ctx context.Context, o compareFlags, e notebook.PairEvent) error {
	if o.yes {
		return nil
	}
	if o.fd >= 0 {
		f := os.NewFile(uintptr(o.fd), "confirm")
		if f == nil {
			return notebook.Errorf(notebook.CodeInvalid, "%d is not a file descriptor", o.fd)
		}
		code, err := readLine(f)
		if err != nil {
			return notebook.Errorf(notebook.CodeInvalid, "cannot read the code from file descriptor %d: %v", o.fd, reason(err))
		}
		if strings.TrimSpace(code) != e.Code {
			return notebook.Errorf(notebook.CodeRefused, "the codes differ: somebody else may be in between").
				With("noted device pair, once more, on a network that you trust")
		}
		return nil
	}
	tty, err := a.person()
	if err != nil {
		return failure(err).With("run it in a terminal, or give the code that the other device shows with --confirm-fd")
	}
	defer tty.close()
	yes, err := tty.confirm(ctx, "Does the other device show "+e.Code+", and is it yours?")
	if err == nil && !yes {
		err = notebook.Errorf(notebook.CodeRefused, "you did not agree: the devices are not paired")
	}
	return err
}

// countdown shows a person how long an invitation still holds, on one line that
// it writes anew. Without a terminal it does nothing.
type countdown struct {
	out    io.Writer
	until  time.Time
	ticker *time.Ticker
}

func (a *app) countdown() *countdown {
	if a.json || !isTerminal(a.stderr) {
		return &countdown{}
	}
	return &countdown{out: a.stderr}
}

func (c *countdown) start(until time.Time) {
	if c.out != nil {
		c.until, c.ticker = until, time.NewTicker(time.Second)
	}
}

func (c *countdown) tick() <-chan time.Time {
	if c.ticker == nil {
		return nil
	}
	return c.ticker.C
}

func (c *countdown) show() {
	if left := time.Until(c.until).Round(time.Second); left >= 0 {
		fmt.Fprintf(c.out, "\rthe invitation holds for %d:%02d \x1b[K", int(left.Minutes()), int(left.Seconds())%60)
	}
}

func (c *countdown) stop() {
	if c.ticker != nil {
		c.ticker.Stop()
		c.ticker = nil
		fmt.Fprint(c.out, "\r\x1b[K")
	}
}
