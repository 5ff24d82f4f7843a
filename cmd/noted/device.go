package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"noted/notebook"
	"noted/rpc"
)

func (a *app) deviceCommand() *cobra.Command {
	return noun("device", "devices that share this notebook", a.deviceList(), a.devicePair(), a.deviceJoin(), a.deviceRemove(),
		a.deviceQuarantine(), a.deviceRelease(), a.deviceResolve(), a.deviceQuota())
}

func (a *app) deviceList() *cobra.Command {
	return data("list of device", verb("list", "list the devices of the notebook", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		devices, err := b.Devices(ctx)
		if err != nil {
			return err
		}
		return a.answer(shape(devices, deviceShape), func(t *text) { deviceTable(t, devices) })
	}))
}

func deviceTable(t *text, devices []notebook.DeviceInfo) {
	rows := [][]string{{"DEVICE", "ID", "ROLE", "STATE", "LAST SEEN", "BEHIND"}}
	for _, d := range devices {
		state := "away"
		switch {
		case d.Removed:
			state = "removed"
		case d.Self:
			state = "this device"
		case d.Connected:
			state = "connected"
		}
		if d.Paused != "" {
			state += ", paused"
		}
		if !d.Quarantined.IsZero() {
			state += ", in quarantine"
		}
		behind := "-"
		if !d.Self && !d.Removed {
			behind = fmt.Sprint(d.Behind)
		}
		rows = append(rows, []string{d.Name, d.ID.Short(), role(d.Role), state, when(d.LastSeen), behind})
	}
	t.table(rows...)
	for _, d := range devices {
		if d.Problem != "" {
			t.line("%s %s: %s", t.paint(red, "problem:"), d.Name, d.Problem)
		}
		if d.Paused != "" {
			t.line("%s %s: %s", t.paint(yellow, "paused:"), d.Name, d.Paused)
		}
	}
}

func (a *app) deviceRemove() *cobra.Command {
	var yes bool
	cmd := verb("remove DEVICE", "shut a device out of the notebook", `
From then on no device that knows of the removal takes anything from it or gives
it anything. What it already has, it keeps. DEVICE is a name or the beginning of
an id.`, func(ctx context.Context, args []string) error {
		b, d, err := a.device(ctx, args[0])
		if err != nil {
			return err
		}
		if !yes {
			if err := a.sure(ctx, fmt.Sprintf("Remove %s (%s) for good?", d.Name, d.ID.Short())); err != nil {
				return err
			}
		}
		err = a.present(ctx, b, func(p notebook.Presence) error { return b.RemoveDevice(ctx, d.ID, p) })
		if err != nil {
			return err
		}
		d.Removed = true
		return a.answer(deviceShape(*d), func(t *text) { t.line("removed %s (%s)", d.Name, d.ID) })
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask whether you are sure; the PIN is asked all the same")
	cmd.ValidArgsFunction = a.completeDevices
	return data("device", a.pinFlag(cmd))
}

// device finds a device by a name or the beginning of an id, for a command that
// is about it.
func (a *app) device(ctx context.Context, ref string) (rpc.Backend, *notebook.DeviceInfo, error) {
	b, err := a.backend()
	if err != nil {
		return nil, nil, err
	}
	devices, err := b.Devices(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := findDevice(devices, ref)
	return b, d, err
}

// sure asks a question that has to be answered with yes. A PIN that comes on a
// descriptor is an answer too.
func (a *app) sure(ctx context.Context, question string) error {
	if a.pinFD >= 0 {
		return nil
	}
	tty, err := a.person()
	if err != nil {
		return err
	}
	defer tty.close()
	yes, err := tty.confirm(ctx, question)
	if err != nil {
		return err
	}
	if !yes {
		return notebook.Errorf(notebook.CodeRefused, "you did not agree: nothing was done")
	}
	return nil
}
