// Package trust signs and verifies entries, keeps the log's heads and its waiting set, folds the roster, parses policy, holds approvals and decides what may run.
//
// It is pure: no goroutine, no context, no file, no clock of its own. What it
// has verified or allowed leaves it as a type that nobody else can make:
// [Verified] for an entry, [Grant] for a run. The zero value of either means
// "no", and every door that takes one refuses it.
package trust
