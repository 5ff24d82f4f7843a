package daemon

import (
	"fmt"
	"slices"
	"time"

	"noted/notebook"
	"noted/store"
	"noted/trust"
)

// maxRan is how many of the runs that a quarantine finds in the ledger are
// shown, the newest; all are counted.
const maxRan = 200

// quarantine distrusts the text of a device: what of it runs is stopped, the
// approvals that rest on it are void, and none of it runs any more before a
// person has looked at it. It lowers trust, so it asks for no proof. When it
// returns, the runs that it stopped are dead. Of a device that is in quarantine
// already it does the same again.
func (d *Daemon) quarantine(device notebook.DeviceID) (*notebook.QuarantineReport, error) {
	if device == d.signer.Device() {
		return nil, notebook.Errorf(notebook.CodeInvalid, "this device cannot be put into quarantine by itself").
			With("do it on another device of the notebook")
	}
	report := &notebook.QuarantineReport{}
	var stopping stopping
	err := d.step(func(b *batch) error {
		if err := d.knownDevice(device); err != nil {
			return err
		}
		if d.quarantined.Hold(device, time.Now()) {
			if _, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerQuarantine, Devices: []notebook.DeviceID{device}, Client: person.String()}); err != nil {
				return err
			}
		}
		report.Voided = d.approvals.VoidDevice(device, "a device whose text it allowed was put into quarantine")
		if err := d.recordVoids(b, report.Voided, "device in quarantine"); err != nil {
			return err
		}
		d.keepDecisions(b)
		stopping = d.stopRunsOf(device, "was put into quarantine")
		report.Stopped = stopping.numbers
		b.tell(notebook.Event{Kind: "device", Device: device, Text: d.name(device) + " was put into quarantine"})
		return nil
	})
	if err != nil {
		return nil, err
	}
	stopping.wait()
	report.Ran, report.Count, err = d.ranOf(device)
	return report, err
}

// stopRunsOf stops the runs of a device's text, for what happened to the device.
// It is called under d.mu.
func (d *Daemon) stopRunsOf(device notebook.DeviceID, what string) stopping {
	return d.stopRuns(stopped(d.name(device)+", whose text it runs, "+what), func(r *running) bool { return slices.Contains(r.devices, device) })
}

// knownDevice refuses a device of which the roster knows nothing. One that was
// removed is known: its text is still here. It is called under d.mu.
func (d *Daemon) knownDevice(device notebook.DeviceID) error {
	for _, m := range d.log.Roster().Members() {
		if m.Device == device {
			return nil
		}
	}
	return notebook.Errorf(notebook.CodeNotFound, "there is no device %s", device.Short()).With("noted device list shows them")
}

// release ends a quarantine. The approvals that it voided stay void.
func (d *Daemon) release(device notebook.DeviceID, presence notebook.Presence) error {
	if err := d.present(presence, "release "+d.deviceName(device)); err != nil {
		return err
	}
	return d.step(func(b *batch) error {
		if !d.quarantined.Release(device) {
			return notebook.Errorf(notebook.CodeNotFound, "%s is in no quarantine", d.name(device)).With("noted device list shows which device is")
		}
		d.keepDecisions(b)
		b.tell(notebook.Event{Kind: "device", Device: device, Text: d.name(device) + " was released from quarantine"})
		_, err := d.record(b, trust.LedgerRecord{Kind: trust.LedgerRelease, Devices: []notebook.DeviceID{device}, Client: person.String()})
		return err
	})
}

// ranOf lists what of a device's text ran here, newest first, as the ledger has
// it: also what is kept without output.
func (d *Daemon) ranOf(device notebook.DeviceID) (ran []notebook.RunInfo, count int, err error) {
	err = d.db.View(func(tx *store.Tx) error {
		at := map[uint64]int{} // of a run that is listed, by its number
		for r, err := range tx.All(store.Ledger, nil) {
			if err != nil {
				return err
			}
			line, err := trust.DecodeLedgerRecord(r.Value)
			if err != nil {
				return err
			}
			switch {
			case line.Kind == trust.LedgerRun && line.About(device):
				at[line.Number] = len(ran)
				ran = append(ran, notebook.RunInfo{
					Number: line.Number, Page: line.Page, Title: line.Title, Fence: line.Fence, Language: line.Language,
					Standing: line.Standing, Client: line.Client, State: stateRunning,
					Result: notebook.Result{Fence: line.Fence, Closure: line.Closure, Rung: line.Rung, Started: line.Time},
				})
			case line.Kind == trust.LedgerOutcome:
				if i, listed := at[line.Of]; listed {
					ran[i].State, ran[i].Reason, ran[i].Result.Verdict = stateDone, line.Reason, line.Verdict
				}
			}
		}
		return nil
	})
	count = len(ran)
	slices.Reverse(ran)
	return ran[:min(len(ran), maxRan)], count, err
}

// quarantineStatus says which devices are in quarantine. It is called under d.mu.
func (d *Daemon) quarantineStatus(s *notebook.Status) {
	for _, device := range d.quarantined.Devices() {
		s.Notes = append(s.Notes, fmt.Sprintf("%s (%s) is in quarantine since %s: noted device release ends it",
			d.name(device), device.Short(), d.quarantined.Since(device).UTC().Format(time.DateTime)))
	}
}
