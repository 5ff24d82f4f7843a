package daemon

import (
	"time"

	"noted/notebook"
)

// Tire makes a device have used up its minute of this one's work, as of now.
func (d *Daemon) Tire(device notebook.DeviceID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.minutes[device] = &minute{began: time.Now(), steps: minuteWork}
}

// WaitForCalm lets nothing be overturned for a time.
func (d *Daemon) WaitForCalm(wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calmAt = time.Now().Add(wait)
}

// Rewrite writes again what is to be written again, as a peer's entries and a start do.
func (d *Daemon) Rewrite() { d.rewrite() }

// Unwritable makes a page one that its process died of, until the next start.
func (d *Daemon) Unwritable(id notebook.PageID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.models.killers[id] = true
	if p := d.open[id]; p != nil {
		p.closeWriter()
	}
}

// Keeps is how many bytes each share keeps for replays, until the next start.
func (d *Daemon) Keeps(most uint64) { d.keeps = most }

// AnswersQueries behaves as if queries were being answered, of persons or of
// agents, until it is told that they are not.
func (d *Daemon) AnswersQueries(agents bool) (done func()) {
	looking := d.looking
	if agents {
		looking = d.agentLooking
	}
	looking <- struct{}{}
	return func() { <-looking }
}

// LooksOutside makes each look at what is outside of the notebook begin with first.
func (d *Daemon) LooksOutside(first func()) {
	find := d.outside.find
	d.outside.find = func(c notebook.Capability, own []string) ([]byte, error) {
		first()
		return find(c, own)
	}
}
