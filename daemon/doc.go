// Package daemon wires the parts, owns every long-lived goroutine and walks a fence through its life.
//
// One mutex guards what the daemon knows of the notebook: the log, the roster,
// the pages that are open, approvals and the ledger. It is held while the
// daemon thinks and never while it waits for the disk, the network or a run. A
// step collects what it changes in a [batch]; sealing the batch hands its
// bytes to the store in the order of the steps, and only what the store has
// committed is sent, acknowledged or told.
package daemon
