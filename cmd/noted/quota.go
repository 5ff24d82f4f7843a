package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) deviceQuota() *cobra.Command {
	var bytes string
	var change notebook.Quota
	cmd := verb("quota [DEVICE]", "show or set how much of a device's log is kept here", `
Without DEVICE, or without a flag, shows quota and use. A device whose quota is
used up is paused here: nothing more of it, and nothing that rests on it, is taken
until there is room. What it wrote is not lost, and its other copies go on. Raising
takes the PIN and lets it go on at once. It holds on this device only and is never
synced. DEVICE is a name or the beginning of an id.`, func(ctx context.Context, args []string) error {
		if bytes != "" {
			var err error
			if change.Bytes, err = parseBytes(bytes); err != nil {
				return err
			}
		}
		b, err := a.backend()
		if err != nil {
			return err
		}
		quotas, err := b.Quotas(ctx)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			if change != (notebook.Quota{}) {
				return notebook.Errorf(notebook.CodeInvalid, "which device?").With("noted device quota NAME --bytes N")
			}
			return a.answer(quotaShapes(quotas), func(t *text) { quotaTable(t, quotas) })
		}
		devices, err := b.Devices(ctx)
		if err != nil {
			return err
		}
		d, err := findDevice(devices, args[0])
		if err != nil {
			return err
		}
		var q *notebook.DeviceQuota
		for i := range quotas {
			if quotas[i].Device == d.ID {
				q = &quotas[i]
			}
		}
		if q == nil {
			return notebook.Errorf(notebook.CodeNotFound, "there is no device %s", d.ID.Short()).With("noted device list shows them")
		}
		if change != (notebook.Quota{}) {
			set := func(p notebook.Presence) error {
				q, err = b.SetQuota(ctx, d.ID, change, p)
				return err
			}
			if change.Bytes > q.Quota.Bytes || change.Pages > q.Quota.Pages || change.Actors > q.Quota.Actors || change.Epochs > q.Quota.Epochs {
				err = a.present(ctx, b, set)
			} else {
				err = set(notebook.Presence{})
			}
			if err != nil {
				return err
			}
		}
		one := []notebook.DeviceQuota{*q}
		return a.answer(quotaShapes(one), func(t *text) { quotaTable(t, one) })
	})
	cmd.Flags().StringVar(&bytes, "bytes", "", "keep this `many` bytes of its entries, as 500MiB or 2GiB")
	cmd.Flags().Uint64Var(&change.Pages, "pages", 0, "keep this many pages that it began")
	cmd.Flags().Uint64Var(&change.Actors, "actors", 0, "keep this many of its doors on one page")
	cmd.Flags().Uint64Var(&change.Epochs, "epochs", 0, "keep this many openings of its store")
	cmd.ValidArgsFunction = a.completeDevices
	return data("list of quota", a.pinFlag(cmd))
}

// quotaTable shows what is kept beside what may be.
func quotaTable(t *text, quotas []notebook.DeviceQuota) {
	rows := [][]string{{"DEVICE", "ID", "BYTES", "PAGES", "ACTORS", "EPOCHS"}}
	of := func(self bool, used, quota string) string {
		if self {
			return used
		}
		return used + " of " + quota
	}
	for _, q := range quotas {
		u, m := q.Used, q.Quota
		rows = append(rows, []string{
			q.Name, q.Device.Short(), of(q.Self, inBytes(u.Bytes), inBytes(m.Bytes)), of(q.Self, fmt.Sprint(u.Pages), fmt.Sprint(m.Pages)),
			of(q.Self, fmt.Sprint(u.Actors), fmt.Sprint(m.Actors)), of(q.Self, fmt.Sprint(u.Epochs), fmt.Sprint(m.Epochs)),
		})
	}
	t.table(rows...)
	for _, q := range quotas {
		if q.Paused != "" {
			t.line("%s %s: %s", t.paint(yellow, "paused:"), q.Name, q.Paused)
		}
	}
}

var byteUnits = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// inBytes writes a number of bytes with at most one digit behind the point.
func inBytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), 0
	for x >= 1<<10 && unit < len(byteUnits)-1 {
		x /= 1 << 10
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") + " " + byteUnits[unit]
}

// parseBytes reads a whole number of bytes, or of KiB, MiB, GiB or TiB.
func parseBytes(s string) (uint64, error) {
	number, shift := s, 0
	for i, unit := range byteUnits {
		if rest, found := strings.CutSuffix(s, unit); found && (i > 0 || !strings.HasSuffix(s, "iB")) {
			number, shift = strings.TrimSpace(rest), 10*i
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return 0, notebook.Errorf(notebook.CodeInvalid, "%q is not a number of bytes", notebook.EscapeLine(s)).With("write it as 1000000, 500MiB or 2GiB")
	}
	return n << shift, nil
}
