package main

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

func (a *app) initCommand() *cobra.Command {
	var name string
	var noPIN bool
	cmd := verb("init", "make a new notebook on this device", `
Asks for a PIN. It is asked again for every act that raises trust: an approval, a
new device, a new agent, another policy. With --no-pin such acts only need a
sentence typed on a terminal, which a program that has yours can type too.`, func(ctx context.Context, _ []string) error {
		if noPIN && a.pinFD >= 0 {
			return notebook.Errorf(notebook.CodeInvalid, "--no-pin and --pin-fd contradict each other").With("give one of them")
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		if home.Exists() {
			return daemon.Init(home, daemon.InitOptions{}) // refuses, and says what to do; nobody thinks of a PIN for that
		}
		settings, err := a.config(home, config{Name: name})
		if err != nil {
			return err
		}
		o := daemon.InitOptions{Name: cmp.Or(settings.Name, hostName())}
		if !noPIN {
			if o.PIN, err = a.newPIN(ctx); err != nil {
				return err
			}
		}
		if err := daemon.Init(home, o); err != nil {
			return err
		}
		return a.answer(homeJSON{State: "stopped", Config: home.Config, Data: home.Data, Next: "noted daemon run"}, func(t *text) {
			t.line("%s has a notebook in %s", o.Name, home.Data)
			if noPIN {
				t.line("%s without a PIN, whoever has your terminal can approve anything", t.paint(yellow, "note:"))
			}
			t.line("next: noted daemon run")
		})
	})
	cmd.Flags().StringVar(&name, "name", "", "the `name` of this device; left out: that of the machine")
	cmd.Flags().BoolVar(&noPIN, "no-pin", false, "no PIN: a sentence typed on a terminal is proof enough")
	return data("home", a.pinFlag(cmd))
}

// newPIN gets a PIN that is not known yet: twice, since it is not shown.
func (a *app) newPIN(ctx context.Context) (string, error) {
	if a.pinFD >= 0 {
		pin, err := a.readPIN()
		if err == nil && pin == "" {
			err = notebook.Errorf(notebook.CodeInvalid, "the PIN on file descriptor %d is empty", a.pinFD).With("choose a PIN, or --no-pin")
		}
		return pin, err
	}
	tty, err := a.person()
	if err != nil {
		return "", failure(err).With("run it in a terminal, give the PIN with --pin-fd, or choose --no-pin")
	}
	defer tty.close()
	pin, err := tty.secret(ctx, "a PIN for acts that raise trust: ")
	if err != nil {
		return "", err
	}
	if pin == "" {
		return "", notebook.Errorf(notebook.CodeInvalid, "the PIN is empty").With("choose a PIN, or --no-pin")
	}
	again, err := tty.secret(ctx, "the same again: ")
	if err != nil {
		return "", err
	}
	if pin != again {
		return "", notebook.Errorf(notebook.CodeInvalid, "the two PINs differ").With("noted init, once more")
	}
	return pin, nil
}

// hostName is what this machine is called, without its domain.
func hostName() string {
	host, err := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	if err != nil || host == "" {
		return "device"
	}
	return notebook.EscapeLine(host)
}
