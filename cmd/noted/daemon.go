package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
	"noted/rpc"
)

func (a *app) daemonCommand() *cobra.Command {
	return noun("daemon", "the process that keeps the notebook", a.daemonRun(), a.daemonStatus(), a.daemonStop())
}

func (a *app) daemonRun() *cobra.Command {
	var flags config
	cmd := verb("run", "keep the notebook, in the foreground", `
Syncs with the other devices and answers the other commands until it is stopped
by daemon stop or a signal. Its log goes to stderr; one line on stdout says when
it is ready.`, func(ctx context.Context, _ []string) error {
		home, err := a.paths()
		if err != nil {
			return err
		}
		if !home.Exists() {
			return noHome(home)
		}
		settings, err := a.config(home, flags)
		if err != nil {
			return err
		}
		level, err := settings.level()
		if err != nil {
			return err
		}
		logger := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
		d, err := daemon.Open(daemon.Config{Home: home, Listen: settings.Listen, Logger: logger})
		if err != nil {
			return err
		}
		return a.serve(ctx, home, d, logger)
	})
	cmd.Flags().StringArrayVar(&flags.Listen, "listen", nil, "a multi`address` for other devices, as /ip4/0.0.0.0/udp/4001/quic-v1; may be repeated (or NOTED_LISTEN)")
	cmd.Flags().StringVar(&flags.LogLevel, "log-level", "", "debug, info, warn or error (`level`, or NOTED_LOG_LEVEL)")
	return data("ready", cmd)
}

// serve opens the local door, says that it is open, and keeps daemon and door
// going until either ends. The door closes first, so that nobody talks to a
// daemon that is gone.
func (a *app) serve(ctx context.Context, home daemon.Home, d *daemon.Daemon, logger *slog.Logger) error {
	door, err := rpc.NewServer(opener{d}, rpc.ServerConfig{Log: logger})
	if err != nil {
		return errors.Join(err, leave(d))
	}
	socket, err := rpc.Listen(home.Socket())
	if err != nil {
		return errors.Join(err, leave(d))
	}
	open, closeDoor := context.WithCancel(ctx)
	defer closeDoor()
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- d.Serve(alive)
		closeDoor()
	}()
	err = a.ready(open, home, d)
	if err == nil {
		err = door.Serve(open, socket)
	} else {
		err = errors.Join(err, socket.Close())
	}
	end()
	return errors.Join(err, <-ended)
}

// leave closes a daemon that is to serve nobody: one whose time is over before it begins.
func leave(d *daemon.Daemon) error {
	over, end := context.WithCancel(context.Background())
	end()
	return d.Serve(over)
}

// ready says on one line where and what the daemon is.
func (a *app) ready(ctx context.Context, home daemon.Home, d *daemon.Daemon) error {
	token, err := daemon.ReadToken(home.OwnerToken())
	if err != nil {
		return badToken(home.OwnerToken(), err)
	}
	client, err := d.Open(token)
	if err != nil {
		return err
	}
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	return a.answer(readyJSON{PID: s.PID, Socket: home.Socket(), Device: s.Device.ID.String(), Notebook: s.Notebook.String()}, func(t *text) {
		t.line("ready: socket %s, device %s (%s), notebook %s", home.Socket(), s.Device.Name, s.Device.ID.Short(), s.Notebook)
	})
}

func (a *app) daemonStatus() *cobra.Command {
	return data("status", verb("status", "say whether the daemon runs, and where", "", func(ctx context.Context, _ []string) error {
		home, err := a.paths()
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		s, err := b.Status(ctx)
		if err != nil {
			return err
		}
		return a.answer(statusShape(s), func(t *text) {
			t.line("running: pid %d, since %s, on %s", s.PID, when(s.Started), home.Socket())
		})
	}))
}

// stopping is how long a daemon may take to end its runs and close its file.
const stopping = 20 * time.Second

func (a *app) daemonStop() *cobra.Command {
	return data("nothing", verb("stop", "stop the daemon and wait until it is gone", "", func(ctx context.Context, _ []string) error {
		home, err := a.paths()
		if err != nil {
			return err
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		if err := b.Stop(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, stopping, errors.New("still there"))
		defer cancel()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := os.Stat(home.InfoFile()); errors.Is(err, os.ErrNotExist) && !answers(home) {
				return a.answer(nil, func(t *text) { t.line("stopped") })
			}
			select {
			case <-ctx.Done():
				return notebook.Errorf(notebook.CodeTimeout, "the daemon was asked to stop, and is still there after %s", stopping).
					With("its log says what it waits for; %s names its pid", home.InfoFile())
			case <-tick.C:
			}
		}
	}))
}

// opener hands the daemon's clients to the local door.
type opener struct{ d *daemon.Daemon }

func (o opener) Open(token string) (rpc.Client, error) {
	c, err := o.d.Open(token)
	if err != nil {
		return rpc.Client{}, err
	}
	return rpc.Client{Role: rpc.Role(c.Role()), Name: c.Name(), Backend: c}, nil
}
