package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
)

// screen is one side of a pairing: a command that shows what a person would see.
type screen struct {
	device     *device
	cmd        *osexec.Cmd
	events     *bufio.Scanner
	compared   *os.File // takes the code that the person compared
	errs       bytes.Buffer
	invitation string
}

// pairing begins a pairing command, which asks for the code on fd 4.
func (d *device) pairing(ctx context.Context, args ...string) (*screen, error) {
	s := &screen{device: d}
	s.cmd = d.command(ctx, append(args, "--confirm-fd", "4")...)
	if err := secret(s.cmd, d.pin); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, r)
	defer closeExtra(s.cmd)
	s.compared = w
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.events = bufio.NewScanner(out)
	return s, s.cmd.Start()
}

func (d *device) pair(ctx context.Context) (*screen, error) {
	s, err := d.pairing(ctx, "device", "pair", "--pin-fd", "3")
	if err != nil {
		return nil, err
	}
	e, err := s.next("waiting")
	s.invitation = e.Invitation
	return s, err
}

func (d *device) join(ctx context.Context, uri string) (*screen, error) {
	return d.pairing(ctx, "device", "join", uri)
}

type pairEvent struct {
	State, Invitation, Code, Reason string
}

// next waits for the screen to show a state.
func (s *screen) next(state string) (pairEvent, error) {
	for s.events.Scan() {
		var e envelope
		var p pairEvent
		if err := json.Unmarshal(s.events.Bytes(), &e); err != nil {
			return p, err
		}
		if !e.OK {
			return p, fmt.Errorf("pairing on the %s: %s", s.device.name, e.Error.Message)
		}
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return p, err
		}
		if p.State == state {
			return p, nil
		}
		if p.State == "failed" {
			return p, fmt.Errorf("pairing on the %s: %s", s.device.name, p.Reason)
		}
	}
	return pairEvent{}, fmt.Errorf("the %s never showed %s: %s", s.device.name, state, strings.TrimSpace(s.errs.String()))
}

func (s *screen) code() (string, error) {
	e, err := s.next("compare")
	return e.Code, err
}

// confirm says that the other screen shows this code.
func (s *screen) confirm(code string) error {
	_, err := s.compared.WriteString(code + "\n")
	return errors.Join(err, s.compared.Close())
}

// done waits until the screen says that the two are paired.
func (s *screen) done() error {
	if _, err := s.next("done"); err != nil {
		return err
	}
	return s.cmd.Wait()
}
