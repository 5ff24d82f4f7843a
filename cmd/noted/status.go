package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
)

func (a *app) statusCommand() *cobra.Command {
	return data("status", verb("status", "show the notebook, this device and what wants your attention", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		s, err := b.Status(ctx)
		if err != nil {
			return err
		}
		return a.answer(statusShape(s), func(t *text) { renderStatus(t, s) })
	}))
}

func renderStatus(t *text, s *notebook.Status) {
	presence := "a PIN is asked for acts that raise trust"
	if s.NoPIN {
		presence = "no PIN: a sentence typed on a terminal is all that acts that raise trust ask for"
	}
	rows := [][]string{
		{"device", fmt.Sprintf("%s (%s)", s.Device.Name, s.Device.ID.Short())},
		{"notebook", s.Notebook.String()},
		{"home", s.Home},
		{"daemon", fmt.Sprintf("%s, write model %s, pid %d, since %s", s.Version, s.Model, s.PID, when(s.Started))},
		{"pages", fmt.Sprint(s.Pages)},
		{"log", fmt.Sprintf("%d entries, %d void, %d waiting", s.Entries, s.Void, s.Waiting)},
		{"devices", fmt.Sprintf("%d connected", s.Peers)},
		{"fences", fmt.Sprintf("%d running, %d open asks", s.Running, s.Asks)},
		{"presence", presence},
	}
	if s.Strict != "" {
		rows = append(rows, []string{"strict", "not possible here: " + s.Strict})
	} else {
		rows = append(rows, []string{"strict", "held by " + strings.Join(s.Layers, ", ")})
	}
	t.table(rows...)
	for _, n := range s.Notes {
		t.line("%s %s", t.paint(yellow, "note:"), n)
	}
}

// overview is what noted alone says: what it is, how things stand, and the next step.
func (a *app) overview(ctx context.Context) error {
	home, err := a.paths()
	if err != nil {
		return err
	}
	state := homeJSON{Config: home.Config, Data: home.Data}
	var status *notebook.Status
	switch {
	case !home.Exists():
		state.State, state.Next = "new", "noted init"
	case !answers(home):
		state.State, state.Next = "stopped", "noted daemon run"
	default:
		b, err := a.backend()
		if err != nil {
			return err
		}
		if status, err = b.Status(ctx); err != nil {
			return err
		}
		state.State, state.Next = "running", nextStep(status)
	}
	return a.answer(state, func(t *text) {
		t.line("noted keeps a notebook of markdown pages in sync between your devices, and\ndecides for every code fence in it what it may do.")
		t.line("")
		switch state.State {
		case "new":
			t.line("There is no notebook in %s yet.", home.Data)
		case "stopped":
			t.line("The notebook is in %s, and no daemon serves it.", home.Data)
		case "running":
			t.line("%s: %d pages, %d devices connected, %d open asks.", status.Device.Name, status.Pages, status.Peers, status.Asks)
			for _, n := range status.Notes {
				t.line("%s %s", t.paint(yellow, "note:"), n)
			}
			t.line("")
			t.line("  noted page list              all pages")
			t.line("  noted page edit PAGE         write")
			t.line("  noted fence list PAGE        what stands how, and why")
			t.line("  noted fence run PAGE#N       run the Nth fence of a page")
			t.line("  noted device pair            invite another device")
			t.line("  noted --help                 everything else")
			t.line("")
		}
		t.line("next: %s", state.Next)
	})
}

// nextStep is what a person most likely wants to do.
func nextStep(s *notebook.Status) string {
	switch {
	case s.Asks > 0:
		return "noted ask list"
	case s.Pages == 0:
		return "noted page new TITLE"
	}
	return "noted page list"
}

// answers reports whether somebody listens on the socket of home.
func answers(home daemon.Home) bool {
	c, err := net.Dial("unix", home.Socket())
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
