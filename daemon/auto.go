package daemon

import (
	"context"
	"time"

	"noted/notebook"
	"noted/trust"
)

// autorun is what the daemon remembers between triggers. It is guarded by d.mu.
type autorun struct {
	fired  *trust.Fired
	opened map[notebook.PageID]bool // by a person's client, since the daemon started
	seen   map[trust.AutoRule]sighting
	shown  map[trust.AutoRule]notebook.Hash // the closure that was there when its page was opened
	wake   chan struct{}                    // holds a value when there may be something to do
}

// sighting is when the bytes of a fence were last noticed to be other ones.
type sighting struct {
	closure notebook.Hash // that a trigger found; zero before
	part    notebook.Hash // of the fence alone, which every change of its page looks at
	since   time.Time
}

func newAutorun() autorun {
	return autorun{opened: map[notebook.PageID]bool{}, seen: map[trust.AutoRule]sighting{}, shown: map[trust.AutoRule]notebook.Hash{}, wake: make(chan struct{}, 1)}
}

// openedBy notes that a client was shown a page. Only a person's is a trigger:
// not an agent, not a viewer, and nothing that comes in from outside. It is
// called under d.mu.
func (d *Daemon) openedBy(c caller, page notebook.PageID) {
	if (c.role != roleOwner && c.role != roleBrowser) || d.auto.opened[page] {
		return
	}
	d.auto.opened[page] = true
	d.lookAgain()
}

// lookAgain wakes the goroutine that runs what is due.
func (d *Daemon) lookAgain() {
	select {
	case d.auto.wake <- struct{}{}:
	default:
	}
}

// noticeAuto notes when the fences of a page that run by themselves change. It
// causes no run, and makes none come sooner. It is called under d.mu.
func (d *Daemon) noticeAuto(p *page) {
	for _, rule := range d.policy.Auto() {
		if rule.Page != p.id {
			continue
		}
		was := d.auto.seen[rule]
		var part notebook.Hash
		if _, i, err := d.ruleFence(rule); err == nil {
			part = notebook.Closure{p.fences[i].Part}.Hash()
		}
		if part != was.part {
			d.auto.seen[rule] = sighting{part: part, since: time.Now()}
		}
	}
}

// ruleFence finds the fence of a rule. Two of one short form are neither.
func (d *Daemon) ruleFence(rule trust.AutoRule) (*page, int, error) {
	p, err := d.livePage(rule.Page)
	if err != nil {
		return nil, 0, err
	}
	fences, err := p.readFences()
	if err != nil {
		return nil, 0, err
	}
	found := -1
	for i := range fences {
		if fences[i].ID.Short() == rule.Fence {
			if found >= 0 {
				return nil, 0, notebook.Errorf(notebook.CodeAmbiguous, "two fences of the page are called %s", rule.Fence)
			}
			found = i
		}
	}
	if found < 0 {
		return nil, 0, notebook.Errorf(notebook.CodeNotFound, "the page has no fence %s", rule.Fence)
	}
	return p, found, nil
}

// runByItself runs what policy lets run by itself, one after the other, until
// ctx ends.
func (d *Daemon) runByItself(ctx context.Context) {
	for {
		wait := time.Hour // a policy that is accepted wakes it
		for {
			rule, ref, until, err := d.due(time.Now())
			if err != nil {
				d.logger.Warn("what runs by itself was not looked at", "error", err)
				break
			}
			if ref == nil {
				if !until.IsZero() {
					wait = min(wait, max(time.Second, time.Until(until)))
				}
				break
			}
			by := caller{d: d, role: roleOwner, trigger: rule.Automatic()}
			if _, err := d.run(ctx, by, order{RunRequest: notebook.RunRequest{FenceRef: *ref}}); err != nil && ctx.Err() == nil {
				d.logger.Info("a fence did not run by itself", "fence", ref.Fence, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.auto.wake:
		case <-time.After(wait):
		}
	}
}

// due is the next rule whose trigger is there now, with the fence as it reads,
// or nil and the time at which to look again. That the trigger is used is on the
// disk before it is returned: what a crash cuts off is not run again.
func (d *Daemon) due(now time.Time) (rule trust.AutoRule, ref *notebook.FenceRef, until time.Time, err error) {
	err = d.step(func(b *batch) error {
		sooner := func(t time.Time) {
			if until.IsZero() || t.Before(until) {
				until = t
			}
		}
		for _, r := range d.policy.Auto() {
			slot := r.Slot(now)
			if r.Trigger == trust.TriggerOpen {
				slot = trust.OpenSlot(d.epoch)
			} else {
				sooner(r.Next(now))
			}
			at, known := d.auto.fired.At(r)
			switch {
			case !known && r.Trigger != trust.TriggerOpen:
				d.auto.fired.Use(r, slot, notebook.Hash{}) // the period in which it was accepted is over
				continue
			case r.Trigger == trust.TriggerOpen && (!d.auto.opened[r.Page] || known && at.Slot == slot):
				continue
			case r.Trigger != trust.TriggerOpen && slot <= at.Slot:
				continue
			}
			p, i, err := d.ruleFence(r)
			if err != nil {
				d.auto.fired.Use(r, slot, notebook.Hash{})
				b.tell(notebook.Event{Kind: "note", Page: r.Page, Text: "a fence that runs by itself is not there: " + notebook.EscapeLine(err.Error())})
				continue
			}
			req := d.closer(nil).request(caller{d: d}, p, i, nil)
			if r.Trigger == trust.TriggerOpen {
				shown, waits := d.auto.shown[r]
				if d.auto.shown[r] = req.Shown; waits && shown != req.Shown {
					d.auto.fired.Use(r, slot, notebook.Hash{}) // an edit since is no trigger
					continue
				}
			}
			seen := d.auto.seen[r]
			if seen.closure != req.Shown {
				if seen.since.IsZero() || !seen.closure.IsZero() {
					seen.since = now // what changed it, and when, is not known
				}
				seen.closure, seen.part = req.Shown, notebook.Closure{p.fences[i].Part}.Hash()
				d.auto.seen[r] = seen
			}
			if quiet := seen.since.Add(trust.Quiet); now.Before(quiet) {
				sooner(quiet)
				continue
			}
			d.auto.fired.Use(r, slot, req.Shown)
			rule, ref = r, &notebook.FenceRef{Page: r.Page, Fence: p.fences[i].ID, Shown: req.Shown}
			break
		}
		d.keepDecisions(b)
		return nil
	})
	return rule, ref, until, err
}
