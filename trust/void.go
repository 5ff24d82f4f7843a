package trust

import (
	"iter"
	"maps"
	"slices"
	"time"

	"noted/notebook"
)

// VoidAll voids every approval that counts, for a reason that is shown: the
// owner's PIN was lost.
func (a *Approvals) VoidAll(reason string) []uint64 {
	return a.void(reason, maps.Values(a.byID), func(*approval) bool { return true })
}

// VoidDevice voids the approvals that rest on text of a device, also on moved
// text, and returns their numbers.
func (a *Approvals) VoidDevice(d notebook.DeviceID, reason string) []uint64 {
	return a.void(reason, maps.Values(a.byID), func(p *approval) bool { return slices.Contains(p.Rests, d) })
}

// VoidRequester voids the approvals that were given for runs by a client whose
// token was taken away.
func (a *Approvals) VoidRequester(by Requester, reason string) []uint64 {
	return a.void(reason, maps.Values(a.byID), func(p *approval) bool { return p.Requester == by.String() && p.Client == by.Client })
}

// Why an approval counts no longer.
const (
	expired = "expired"
	changed = "the fence changed"
)

// VoidChanged voids the approvals of fences of a page that are no longer what
// was approved. Part names the bytes of a fence as they are now, without what it
// includes; zero where it is gone. An approval is of its bytes until they
// change: the same bytes later ask again.
func (a *Approvals) VoidChanged(page notebook.PageID, part func(notebook.FenceID) notebook.Hash) []uint64 {
	return a.void(changed, slices.Values(a.byPage[page]), func(p *approval) bool { return part(p.Fence) != p.Part })
}

// VoidIncluding voids the approvals of fences that include one of a page, where
// they are no longer what was approved. Closure names the bytes of a fence and
// all that it includes as they are now.
func (a *Approvals) VoidIncluding(included notebook.PageID, closure func(notebook.PageID, notebook.FenceID) notebook.Hash) []uint64 {
	return a.void(changed, slices.Values(a.byIncluded[included]), func(p *approval) bool { return closure(p.Page, p.Fence) != p.Closure })
}

// Forget takes the bytes of a page's fences out of what is kept of approvals of
// them, and of those that include one. What they allowed they allow no less: that
// is pinned by its digest.
func (a *Approvals) Forget(page notebook.PageID) {
	for _, p := range slices.Concat(a.byPage[page], a.byIncluded[page]) {
		if p.Text != "" {
			p.Text = ""
			a.changed[p.ID] = true
		}
	}
}

// Expire voids the approvals whose time is over, by the latest time ever seen.
func (a *Approvals) Expire() []uint64 {
	return a.void(expired, maps.Values(a.byID), func(p *approval) bool { return a.expired(p, a.highest) })
}

// Next is when the next approval expires; the zero time if none does.
func (a *Approvals) Next() time.Time {
	next := int64(0)
	for _, p := range a.byID {
		if !p.dead() && p.Expires > 0 && (next == 0 || p.Expires < next) {
			next = p.Expires
		}
	}
	if next == 0 {
		return time.Time{}
	}
	return time.UnixMilli(next)
}

func (a *Approvals) void(reason string, among iter.Seq[*approval], rests func(*approval) bool) (voided []uint64) {
	for p := range among {
		if !p.dead() && rests(p) {
			p.Void = reason
			a.changed[p.ID] = true
			voided = append(voided, p.ID)
		}
	}
	slices.Sort(voided)
	return voided
}
