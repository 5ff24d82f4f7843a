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
