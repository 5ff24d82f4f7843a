package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
	"noted/rpc"
)

// pinFlag lets a program that has a person before it hand over the PIN that the
// person gave it. It is a descriptor, because arguments and environments are
// for everybody to read.
func (a *app) pinFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().IntVar(&a.pinFD, "pin-fd", -1, "read the PIN from this file `descriptor` instead of the terminal")
	cmd.Flags().Lookup("pin-fd").DefValue = "0" // hides a default that is not one
	return cmd
}

// readPIN reads the PIN from --pin-fd.
func (a *app) readPIN() (string, error) {
	f := os.NewFile(uintptr(a.pinFD), "pin")
	if f == nil {
		return "", notebook.Errorf(notebook.CodeInvalid, "%d is not a file descriptor", a.pinFD)
	}
	pin, err := readLine(f)
	if err != nil {
		return "", notebook.Errorf(notebook.CodeInvalid, "cannot read the PIN from file descriptor %d: %v", a.pinFD, reason(err)).
			With("open it for the command, as in --pin-fd 3 3<FILE")
	}
	return pin, nil
}

// present calls act with the proof that a person is there: the PIN, or in a
// home without one the sentence that the refusal asks for, typed.
func (a *app) present(ctx context.Context, b rpc.Backend, act func(notebook.Presence) error) error {
	if a.pinFD >= 0 {
		pin, err := a.readPIN()
		if err != nil {
			return err
		}
		return act(notebook.Presence{PIN: pin})
	}
	tty, err := a.person()
	if err != nil {
		return err
	}
	defer tty.close()
	status, err := b.Status(ctx)
	if err != nil {
		return err
	}
	return a.prove(ctx, tty, !status.NoPIN, act)
}

// prove asks for the PIN, or where there is none for the sentence that the act
// wants typed, and acts with it.
func (a *app) prove(ctx context.Context, tty *terminal, hasPIN bool, act func(notebook.Presence) error) error {
	if hasPIN {
		pin, err := tty.secret(ctx, "PIN: ")
		if err != nil {
			return err
		}
		return act(notebook.Presence{PIN: pin})
	}
	err := act(notebook.Presence{})
	sentence, ok := asksFor(err)
	if !ok {
		return err
	}
	a.say("this home has no PIN; to go on, type: %s", sentence)
	typed, terr := tty.ask(ctx, "> ")
	if terr != nil {
		return terr
	}
	return act(notebook.Presence{Typed: typed})
}

// presentAt is [app.present] for an act on a home that no daemon serves.
func (a *app) presentAt(ctx context.Context, home daemon.Home, act func(notebook.Presence) error) error {
	if a.pinFD >= 0 {
		pin, err := a.readPIN()
		if err != nil {
			return err
		}
		return act(notebook.Presence{PIN: pin})
	}
	hasPIN, err := daemon.HasPIN(home)
	if err != nil {
		return err
	}
	tty, err := a.person()
	if err != nil {
		return err
	}
	defer tty.close()
	return a.prove(ctx, tty, hasPIN, act)
}

// asksFor is the sentence that a refusal wants typed, if it wants one.
func asksFor(err error) (sentence string, ok bool) {
	e, isOurs := errors.AsType[*notebook.Error](err)
	if !isOurs || e.Code != notebook.CodeRefused {
		return "", false
	}
	return strings.CutPrefix(e.Hint, "type exactly: ")
}
