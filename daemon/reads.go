package daemon

import (
	"context"
	"os"
	"time"

	"noted/crdt"
	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// reads is what every client may see.
type reads struct{ caller }

func (c reads) Pages(context.Context) ([]notebook.PageInfo, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.d.index.list(), nil
}

func (c reads) Page(_ context.Context, ref string) (view *notebook.PageView, err error) {
	var end func() error
	c.d.see(func(s *sight) { view, end, err = c.page(s, ref) })
	if err == nil && end != nil {
		err = end()
	}
	return view, err
}

func (c reads) Query(ctx context.Context, text string) (*notebook.Rows, error) {
	return c.d.query(ctx, c.caller, text)
}

// page answers the page that ref names, and what remains to be done once it is
// shown. It is called under d.mu.
func (c reads) page(s *sight, ref string) (_ *notebook.PageView, end func() error, _ error) {
	id, err := c.d.index.resolve(ref, time.Now())
	if err != nil {
		return nil, nil, err
	}
	p, err := c.d.page(id)
	if err != nil {
		return nil, nil, err
	}
	view := &notebook.PageView{PageInfo: c.d.info(p), Body: p.shadow.Text()}
	if what := notebook.PolicyText(view.Title, view.Body); what != "" {
		view.Notes = append(view.Notes, "this page "+looksLikePolicy(what))
	}
	end = c.d.shownTo(c.caller, p.id)
	fences, err := p.readFences()
	if err != nil {
		view.Notes = append(view.Notes, "its fences cannot be read: "+notebook.EscapeLine(err.Error()))
		return view, end, nil
	}
	if len(fences) > maxListed {
		view.Notes = append(view.Notes, count(len(fences)-maxListed, "more fence is", "more fences are")+" not shown")
	}
	view.Fences, err = c.d.fenceInfos(c.caller, s, p, 0, min(len(fences), maxListed))
	c.d.openedBy(c.caller, p.id)
	return view, end, err
}

// info is a page's card as its shadow is now. It is called under d.mu.
func (d *Daemon) info(p *page) notebook.PageInfo {
	return d.index.info(p.id, d.index.cards[p.id])
}

func (c reads) Why(_ context.Context, id notebook.PageID, fence notebook.FenceID) (e *notebook.Explanation, err error) {
	c.d.see(func(s *sight) {
		var p *page
		var i int
		if p, i, err = c.d.findFence(id, fence); err == nil {
			e, err = c.d.explain(c.caller, s, p, i)
		}
	})
	return e, err
}

// maxRuns is how many runs are listed at once.
const maxRuns = 1000

func (c reads) Runs(_ context.Context, most int) ([]notebook.RunInfo, error) {
	if most <= 0 || most > maxRuns {
		most = maxRuns
	}
	return c.d.runs(c.caller, most)
}

func (c reads) RunInfo(_ context.Context, number uint64) (*notebook.RunInfo, error) {
	return c.d.runInfo(c.caller, number)
}

func (c reads) VerifyLedger(context.Context) (*notebook.LedgerReport, error) {
	return c.d.verifyLedger()
}

func (c reads) Devices(context.Context) ([]notebook.DeviceInfo, error) { return c.d.devices() }

func (c reads) Quotas(context.Context) ([]notebook.DeviceQuota, error) { return c.d.quotas() }

func (c reads) Status(context.Context) (*notebook.Status, error) {
	d := c.d
	devices, err := d.devices()
	if err != nil {
		return nil, err
	}
	s := &notebook.Status{
		Version: Version, Model: crdt.WriteModel, PID: os.Getpid(), Home: d.home.Data, Layers: d.runner.Layers(), Started: d.started,
	}
	if err := d.runner.Strict(); err != nil {
		s.Strict = err.Error()
	}
	for _, device := range devices {
		if device.Self {
			s.Device = device
		}
		if device.Connected {
			s.Peers++
		}
		if device.Problem != "" {
			s.Notes = append(s.Notes, notebook.EscapeLine(device.Name+": "+device.Problem))
		}
	}
	err = d.db.View(func(tx *store.Tx) error {
		s.Entries = tx.LastOrdinal()
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.presenceStatus(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Notebook, s.Pages, s.Void, s.Waiting = d.log.Notebook(), d.index.live(), d.void, d.log.Waiting()
	for _, device := range devices {
		if device.Paused != "" {
			s.Notes = append(s.Notes, d.pausedText(device.ID))
		}
	}
	d.gateStatus(s)
	s.Notes = append(s.Notes, d.notes...)
	s.Notes = append(s.Notes, d.policyNotices()...)
	return s, nil
}

func (c reads) Policy(context.Context) (*notebook.PolicyView, error) { return c.d.policyView() }

func (c reads) TestPolicy(_ context.Context, fixtures []byte) ([]notebook.PolicyCase, error) {
	c.d.mu.Lock()
	policy := c.d.policy
	c.d.mu.Unlock()
	return trust.TryPolicy(policy, fixtures)
}

func (c reads) Watch(ctx context.Context, each func(notebook.Event) error) error {
	w := c.d.events.join(c.label(), func(e *notebook.Event) bool {
		// While an agent has its name, what is told of that name is its own: see removeAgent.
		return c.role != roleAgent || (e.Ask == nil || e.Ask.Client == c.label()) && (e.Run == nil || e.Run.Client == c.label())
	})
	c.d.mu.Lock()
	err := c.d.stillIn(c.caller) // who goes from now on finds the watcher
	c.d.mu.Unlock()
	if err != nil {
		c.d.events.leave(w)
		return err
	}
	return c.d.events.watch(ctx, w, each)
}
