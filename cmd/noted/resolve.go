package main

import (
	"context"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) deviceResolve() *cobra.Command {
	var keep, remove, clone, show bool
	cmd := verb("resolve DEVICE", "decide about a device that signed two histories", `
Without a decision it shows the proof, and what of the device does not stand. Of
the two histories the one with the lower hash stands on every device; nothing new
of the device is taken until a person decides. A decision takes the PIN.

--keep lets the device go on: what it writes from its next start on, after the
history that stands, is taken again. --clone does the same and says that a copy
of the device wrote too: on the device itself, what is lost is not written again,
but shown here, to be copied by hand. --remove shuts the device out of the
notebook for good. DEVICE is a name or the beginning of an id.`, func(ctx context.Context, args []string) error {
		n := 0
		for _, chosen := range []bool{show, keep, clone, remove} {
			if chosen {
				n++
			}
		}
		if n > 1 {
			return notebook.Errorf(notebook.CodeInvalid, "--show, --keep, --clone and --remove are one choice").With("noted device resolve --help says what each does")
		}
		b, d, err := a.device(ctx, args[0])
		if err != nil {
			return err
		}
		c, err := b.Contradiction(ctx, d.ID)
		if err != nil {
			return err
		}
		did := ""
		switch as := notebook.ResolveKeep; {
		case remove:
			err = a.present(ctx, b, func(p notebook.Presence) error { return b.RemoveDevice(ctx, d.ID, p) })
			c.Open, did = false, "removed"
		case clone:
			as = notebook.ResolveClone
			fallthrough
		case keep:
			err = a.present(ctx, b, func(p notebook.Presence) error {
				c, err = b.Resolve(ctx, d.ID, as, p)
				return err
			})
			did = "kept"
		}
		if err != nil {
			return err
		}
		return a.answer(contradictionShape(c), func(t *text) { renderContradiction(t, d, c, did, did == "" || clone) })
	})
	cmd.Flags().BoolVar(&show, "show", false, "show the proof and what does not stand, and decide nothing (as without a flag)")
	cmd.Flags().BoolVar(&keep, "keep", false, "trust the device again")
	cmd.Flags().BoolVar(&clone, "clone", false, "trust the device again: a copy of it wrote the other history")
	cmd.Flags().BoolVar(&remove, "remove", false, "shut the device out of the notebook")
	cmd.ValidArgsFunction = a.completeDevices
	return data("contradiction", a.pinFlag(cmd))
}

func renderContradiction(t *text, d *notebook.DeviceInfo, c *notebook.Contradiction, did string, lost bool) {
	switch did {
	case "removed":
		t.line("removed %s (%s)", d.Name, d.ID)
	case "kept":
		t.line("%s (%s) may go on, in a new epoch", d.Name, d.ID.Short())
	}
	if !lost {
		return
	}
	t.line("%s (%s) signed two entries for place %d of its epoch %.8s", d.Name, d.ID.Short(), c.Seq, c.Epoch)
	t.line("  stands  %s", c.Stands.Hash)
	t.line("  void    %s", c.Other.Hash)
	t.line("of it does not stand (%d):", c.Count)
	for _, e := range c.Lost {
		title := e.Title
		if title == "" {
			title = "=" + e.Page.String()[:12]
		}
		t.line("%s  %s  %s", when(e.Time), e.Kind, title)
		t.block("  │ ", e.Text)
	}
	if c.Open {
		t.line("next: noted device resolve %s --keep, --clone or --remove", quoted(d.Name))
	}
}
