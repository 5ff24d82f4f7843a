package daemon

import (
	"errors"
	"fmt"
	"time"

	"noted/crdt"
	"noted/notebook"
)

// Bounds of the process that holds the write models.
const (
	// modelEnough is how much memory it may hold before it is replaced by a new
	// one, in bytes. A page of 2 KiB takes 0.9 MiB, a keystroke 6 KiB, and
	// starting it anew some ten milliseconds.
	modelEnough = 64 << 20

	// modelLook is after how many requests its memory is looked at.
	modelLook = 32

	// modelIdle is how long it stays without a request.
	modelIdle = time.Minute

	// modelPatience is how long one answer may take: forty times what the largest
	// piece of an edit takes.
	modelPatience = 10 * time.Second

	// modelStrikes is how many processes that were started for a page may die of it.
	modelStrikes = 2

	// maxKillers bounds how many pages are remembered that killed their processes.
	maxKillers = 1 << 10
)

// models gives pages their write models. It is used under d.mu.
type models struct {
	process  *modelProcess // nil while no page is written
	started  int           // processes so far
	used     time.Time     // when a model was asked for last
	base     int64         // what the process held when its newest document was open
	settled  bool          // base is known
	looked   int           // requests of the process when its memory was last looked at
	idle     *time.Timer
	patience time.Duration
	killers  map[notebook.PageID]bool // pages that killed one process after the other
	closed   bool
}

// model returns an empty write model for a page.
func (d *Daemon) model(p *page) (crdt.Model, error) {
	m := &d.models
	if !modelsApart {
		return crdt.NewModel(p.shadow), nil
	}
	if m.closed {
		return nil, notebook.Errorf(notebook.CodeUnavailable, "the daemon is stopping, nothing is written any more")
	}
	if m.process != nil && m.process.resident() > modelEnough {
		d.endModels()
	}
	if m.process == nil {
		process, err := startModelProcess(m.patience)
		if err != nil {
			d.logger.Error("the process that holds the write models cannot be started", "error", err)
			return nil, notebook.Errorf(notebook.CodeUnavailable, "a page cannot be written now: the process for that cannot be started: %v", err).
				With("this machine may have too little memory, or too many processes")
		}
		m.process, m.looked, m.used = process, 0, time.Now()
		m.started++
		if m.idle == nil {
			m.idle = time.AfterFunc(modelIdle, d.endIdleModels)
		} else {
			m.idle.Reset(modelIdle)
		}
	}
	m.settled = false
	return m.process.Model(), nil
}

// tendModels replaces the process where what it holds is mostly left over, and
// puts off its end. It is called before each use of a writer.
func (d *Daemon) tendModels() {
	m := &d.models
	if m.process == nil {
		return
	}
	m.used = time.Now()
	if m.process.asked-m.looked < modelLook {
		return
	}
	m.looked = m.process.asked
	now := m.process.resident()
	if !m.settled {
		m.base, m.settled = now, true
	}
	if now > modelEnough && now > 2*m.base {
		d.endModels()
	}
}

// endModels ends the process, if there is one. The pages that have a writer open
// another when they need it.
func (d *Daemon) endModels() {
	m := &d.models
	if m.process == nil {
		return
	}
	for _, p := range d.open {
		p.closeWriter()
	}
	how := m.process.end()
	d.logger.Debug("the process that held the write models is gone", "pid", m.process.process.Pid, "end", how, "documents", m.process.Documents())
	m.process = nil
}

// endIdleModels ends the process when it was not used for long, and looks again
// later otherwise.
func (d *Daemon) endIdleModels() {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &d.models
	if m.process == nil {
		return
	}
	if left := modelIdle - time.Since(m.used); left > 0 {
		m.idle.Reset(left)
		return
	}
	d.endModels()
}

// closeModels ends the process for good.
func (d *Daemon) closeModels() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.models.closed = true
	if d.models.idle != nil {
		d.models.idle.Stop()
	}
	d.endModels()
}

var errKiller = fmt.Errorf("%w: each process that was to write it died", crdt.ErrQuarantined)

// change makes one change of a page by splices of its present text. A process
// that dies is replaced, and the change is made there: it was not signed, so
// that nothing is lost. A page of which two die that were started for it is not
// written any more until the daemon starts again.
func (d *Daemon) change(p *page, a notebook.Author, splices []notebook.Splice) ([]byte, error) {
	m := &d.models
	if m.killers[p.id] {
		return nil, errKiller
	}
	for strikes := 0; ; {
		started := m.started
		change, err := d.tryChange(p, a, splices)
		if err == nil {
			return change, nil
		}
		p.closeWriter() // it may hold what the page does not
		if !errors.Is(err, crdt.ErrGone) {
			return nil, err
		}
		d.logger.Warn("the process that holds the write models is gone", "page", p.id, "error", err)
		d.endModels()
		if m.started == started {
			continue // it was there before, and died of something else perhaps
		}
		if strikes++; strikes == modelStrikes {
			if len(m.killers) < maxKillers {
				m.killers[p.id] = true
			}
			return nil, errKiller
		}
	}
}

func (d *Daemon) tryChange(p *page, a notebook.Author, splices []notebook.Splice) ([]byte, error) {
	d.tendModels()
	w, err := d.writer(p)
	if err != nil {
		return nil, err
	}
	return w.Splice(a, d.epoch, time.Now(), splices)
}
