package trust

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"noted/notebook"
)

// maxApprovals bounds the approvals that are kept, dead ones included; the
// oldest dead ones go first.
const maxApprovals = 4096

// pins is everything that an approval holds fast. Whatever differs in any of
// it was not approved.
type pins struct {
	notebook     notebook.NotebookID
	page         notebook.PageID
	fence        notebook.FenceID
	closure      notebook.Closure
	engine       notebook.Hash
	rung         notebook.Rung
	capabilities []notebook.Capability // sorted; the values are those at the run, whoever wrote them
	identities   [][]byte              // what those that are outside of the notebook stand for, one for each of capabilities
	args         map[string]string
	anyArgs      bool
	limits       notebook.Limits
	requester    string // "owner", "agent:NAME"
	client       string // which of those that had the name: see Requester.Client
	origin       notebook.Origin
	own, closed  bool
	included     []Included // of the closure's other parts, as origin, own and closed are of the fence itself
	scope        notebook.Scope
	expires      int64 // Unix milliseconds; 0: never
}

func (p *pins) digest() notebook.Hash {
	var parts [][]byte
	put := func(b []byte) { parts = append(parts, b) }
	number := func(n int64) { put(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	flag := func(b bool) {
		if b {
			number(1)
		} else {
			number(0)
		}
	}
	put(p.notebook[:])
	put(p.page[:])
	put(p.fence[:])
	closure := p.closure.Hash() // of every delimiter, language, info string and code, in order
	put(closure[:])
	put(p.engine[:])
	number(int64(p.rung))
	number(int64(len(p.capabilities)))
	for _, c := range p.capabilities {
		put([]byte(c))
	}
	number(int64(len(p.identities)))
	for _, id := range p.identities {
		put(id)
	}
	if p.anyArgs {
		put([]byte("any args"))
	} else {
		put([]byte("these args"))
		number(int64(len(p.args)))
		for _, key := range slices.Sorted(maps.Keys(p.args)) {
			put([]byte(key))
			put([]byte(p.args[key]))
		}
	}
	number(int64(p.limits.Time))
	number(p.limits.Memory)
	number(int64(p.limits.Output))
	number(int64(p.limits.Source))
	put([]byte(p.requester))
	put([]byte(p.client))
	stands := func(origin notebook.Origin, own, closed bool) {
		number(int64(len(origin)))
		for _, a := range origin {
			put(a.Device[:])
			number(int64(a.Class))
			put([]byte(a.Label))
			put(a.Source.Device[:])
			number(int64(a.Source.Class))
			put([]byte(a.Source.Label))
		}
		flag(own)
		flag(closed)
	}
	stands(p.origin, p.own, p.closed)
	number(int64(len(p.included)))
	for _, in := range p.included {
		put(in.Page[:])
		put(in.Fence[:])
		stands(notebook.NewOrigin(in.Origin...), in.Own, in.Closed)
	}
	put([]byte(p.scope))
	number(p.expires)
	return notebook.Digest("noted/approval/v2", parts...)
}

// approval is a person's yes as it is stored.
type approval struct {
	_            struct{} `cbor:",toarray"`
	ID           uint64
	Page         notebook.PageID
	Fence        notebook.FenceID
	Digest       notebook.Hash
	Closure      notebook.Hash
	Part         notebook.Hash     // of the fence alone, without what it includes
	Includes     []notebook.PageID // where what it includes is
	Text         string            // of the closure that was approved, for showing what changed since
	Rung         notebook.Rung
	Capabilities []notebook.Capability
	Identities   [][]byte // as in [pins]
	AnyArgs      bool
	Scope        notebook.Scope
	Requester    string
	Client       string
	Rests        []notebook.DeviceID // the devices whose text it approved, sources of moved text included
	Given        int64               // Unix milliseconds
	Expires      int64               // 0: never
	Spent        bool
	Void         string
}

func (a *approval) dead() bool { return a.Spent || a.Void != "" }

func (a *approval) view() notebook.Approval {
	v := notebook.Approval{
		ID: a.ID, Page: a.Page, Fence: a.Fence, Digest: a.Digest, Closure: a.Closure,
		Rung: a.Rung, Capabilities: slices.Clone(a.Capabilities), Scope: a.Scope,
		Given: time.UnixMilli(a.Given), Spent: a.Spent, Void: a.Void, For: a.Requester,
	}
	if a.Expires > 0 {
		v.Expires = time.UnixMilli(a.Expires)
	}
	return v
}

// Approvals are the approvals given on this device. They are never synced. It
// is used from one goroutine at a time.
type Approvals struct {
	byID       map[uint64]*approval
	byPage     map[notebook.PageID][]*approval
	byIncluded map[notebook.PageID][]*approval // by the pages of what their fences include
	next       uint64
	highest    int64 // the latest time ever seen, Unix milliseconds
	changed    map[uint64]bool
	moved      bool // next or highest changed since the last flush
}

// NewApprovals returns an empty set.
func NewApprovals() *Approvals {
	return &Approvals{byID: make(map[uint64]*approval), byPage: make(map[notebook.PageID][]*approval), byIncluded: make(map[notebook.PageID][]*approval), next: 1, changed: make(map[uint64]bool), moved: true}
}

// The first byte of the keys of approvals.
const (
	keyApproval = 'a' // number, eight bytes
	keyClock    = 't'
)

type clockRecord struct {
	_       struct{} `cbor:",toarray"`
	Next    uint64
	Highest int64
}

// OpenApprovals reads what [Approvals.Flush] returned.
func OpenApprovals(records iter.Seq2[[]byte, []byte]) (*Approvals, error) {
	a := NewApprovals()
	for key, value := range records {
		switch {
		case len(key) == 1 && key[0] == keyClock:
			var r clockRecord
			if err := readRecord(value, &r); err != nil {
				return nil, fmt.Errorf("approvals: %w", err)
			}
			a.next, a.highest = max(a.next, r.Next), max(a.highest, r.Highest)
		case len(key) == 9 && key[0] == keyApproval:
			r := new(approval)
			if err := readRecord(value, r); err != nil {
				return nil, fmt.Errorf("approval: %w", err)
			}
			a.add(r)
			a.next = max(a.next, r.ID+1)
		default:
			return nil, fmt.Errorf("approvals: unknown key %x", key)
		}
	}
	a.moved = false
	return a, nil
}

// Flush returns the records that changed since the last flush.
func (a *Approvals) Flush() []Record {
	var records []Record
	put := func(key []byte, v any) {
		r, err := newRecord(key, v)
		if err != nil {
			panic("trust: an approval of checked text does not encode: " + err.Error())
		}
		records = append(records, r)
	}
	if a.moved {
		put([]byte{keyClock}, &clockRecord{Next: a.next, Highest: a.highest})
	}
	for _, id := range slices.Sorted(maps.Keys(a.changed)) {
		key := binary.BigEndian.AppendUint64([]byte{keyApproval}, id)
		if p := a.byID[id]; p != nil {
			put(key, p)
		} else {
			records = append(records, Record{Key: key})
		}
	}
	a.moved, a.changed = false, make(map[uint64]bool)
	return records
}

// clock is the time against which approvals expire: now, or the highest time
// ever seen where the clock was turned back.
func (a *Approvals) clock(now time.Time) int64 { return max(a.highest, now.UnixMilli()) }

// See raises the highest time ever seen. The caller does so from time to time
// and stores the records, so that a clock turned back revives nothing.
func (a *Approvals) See(now time.Time) {
	if t := now.UnixMilli(); t > a.highest {
		a.highest, a.moved = t, true
	}
}

// Ahead is how far the highest time ever seen is ahead of now.
func (a *Approvals) Ahead(now time.Time) time.Duration {
	return time.Duration(max(0, a.highest-now.UnixMilli())) * time.Millisecond
}

// Rewind makes now the highest time ever seen, although a later one was: a clock
// was wrong. What had expired by then is void, so that it does not come back.
func (a *Approvals) Rewind(now time.Time) []uint64 {
	expired := a.void("expired", maps.Values(a.byID), func(p *approval) bool { return a.expired(p, a.clock(now)) })
	a.highest, a.moved = now.UnixMilli(), true
	return expired
}

func (a *Approvals) add(p *approval) {
	a.byID[p.ID] = p
	a.byPage[p.Page] = append(a.byPage[p.Page], p)
	for _, page := range p.Includes {
		a.byIncluded[page] = append(a.byIncluded[page], p)
	}
}

func (a *Approvals) drop(id uint64) {
	p := a.byID[id]
	delete(a.byID, id)
	a.changed[id] = true
	forget(a.byPage, p.Page, p)
	for _, page := range p.Includes {
		forget(a.byIncluded, page, p)
	}
}

func forget(by map[notebook.PageID][]*approval, page notebook.PageID, p *approval) {
	rest := slices.DeleteFunc(by[page], func(q *approval) bool { return q == p })
	if by[page] = rest; len(rest) == 0 {
		delete(by, page)
	}
}

// Give records a person's yes to proposals, to all of them or to none. Shown
// are the digests that the person saw, in the same order; present proves that it
// was a person.
func (a *Approvals) Give(all []Proposal, shown []notebook.Hash, present Present, now time.Time) ([]notebook.Approval, error) {
	if !present.valid {
		return nil, notebook.Errorf(notebook.CodeRefused, "an approval needs a person")
	}
	if len(all) == 0 || len(all) != len(shown) {
		return nil, notebook.Errorf(notebook.CodeInvalid, "there is nothing to approve")
	}
	a.See(now)
	for i, p := range all {
		switch {
		case p.view.Digest.IsZero():
			return nil, notebook.Errorf(notebook.CodeInvalid, "there is nothing to approve")
		case shown[i] != p.view.Digest:
			return nil, notebook.Errorf(notebook.CodeStale, "the fence, or what it may do, is no longer what was shown").
				With("look at it again, then approve what you see")
		case p.pins.expires > 0 && p.pins.expires <= a.highest:
			return nil, notebook.Errorf(notebook.CodeInvalid, "the approval would have expired already").
				With("choose a later time, or set the clock of this device right: it is behind a time that was seen here, which noted doctor --clock forgets")
		}
	}
	if !a.makeRoom(len(all)) {
		return nil, notebook.Errorf(notebook.CodeExhausted, "there are %d approvals already", maxApprovals).
			With("revoke some that are no longer needed: noted fence approvals lists them")
	}
	var views []notebook.Approval
	for _, p := range all {
		given := &approval{
			ID: a.next, Page: p.pins.page, Fence: p.pins.fence, Digest: p.view.Digest, Closure: p.pins.closure.Hash(),
			Part: notebook.Closure{p.pins.closure.Main()}.Hash(), Text: p.pins.closure.Text(), Rung: p.pins.rung, Capabilities: p.pins.capabilities, Identities: p.pins.identities,
			AnyArgs: p.pins.anyArgs, Scope: p.pins.scope, Requester: p.pins.requester, Client: p.pins.client,
			Rests: everyone(p.pins.origin, p.pins.included).Devices(), Given: a.highest, Expires: p.pins.expires,
		}
		for _, in := range p.pins.included {
			if !slices.Contains(given.Includes, in.Page) {
				given.Includes = append(given.Includes, in.Page)
			}
		}
		a.next++
		a.moved = true
		a.add(given)
		a.changed[given.ID] = true
		views = append(views, given.view())
	}
	return views, nil
}

// makeRoom forgets as many of the oldest dead approvals as n more need, or
// none if that is not enough.
func (a *Approvals) makeRoom(n int) bool {
	excess := len(a.byID) + n - maxApprovals
	if excess <= 0 {
		return true
	}
	var dead []uint64
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		if len(dead) >= excess {
			break
		}
		if a.byID[id].dead() || a.expired(a.byID[id], a.highest) {
			dead = append(dead, id)
		}
	}
	if len(dead) < excess {
		return false
	}
	for _, id := range dead {
		a.drop(id)
	}
	return true
}

func (a *Approvals) expired(p *approval, at int64) bool { return p.Expires > 0 && p.Expires <= at }

// Spend uses up an approval that a grant rests on, if it was given for once.
// The caller stores the records together with that of the run, before the run
// begins.
func (a *Approvals) Spend(id uint64) error {
	p := a.byID[id]
	switch {
	case p == nil:
		return notebook.Errorf(notebook.CodeNotFound, "there is no approval %d", id)
	case p.dead():
		return notebook.Errorf(notebook.CodeRefused, "approval %d counts no longer", id).With("approve the fence again")
	}
	if p.Scope == notebook.ScopeOnce {
		p.Spent = true
		a.changed[id] = true
	}
	return nil
}

// Revoke takes an approval back.
func (a *Approvals) Revoke(id uint64) error {
	p := a.byID[id]
	if p == nil {
		return notebook.Errorf(notebook.CodeNotFound, "there is no approval %d", id).With("noted fence show lists a fence's approvals")
	}
	if !p.dead() {
		p.Void = "revoked"
		a.changed[id] = true
	}
	return nil
}

// Of lists the approvals of a fence, newest first, dead ones included.
func (a *Approvals) Of(page notebook.PageID, fence notebook.FenceID, now time.Time) []notebook.Approval {
	return a.views(a.of(page, fence), now)
}

// List lists all approvals that are kept, newest first, dead ones included.
func (a *Approvals) List(now time.Time) []notebook.Approval {
	return a.views(newestFirst(slices.Collect(maps.Values(a.byID))), now)
}

func (a *Approvals) views(all []*approval, now time.Time) []notebook.Approval {
	var list []notebook.Approval
	for _, p := range all {
		v := p.view()
		if !p.dead() && a.expired(p, a.clock(now)) {
			v.Void = expired
		}
		list = append(list, v)
	}
	return list
}

func (a *Approvals) of(page notebook.PageID, fence notebook.FenceID) (list []*approval) {
	if a == nil {
		return nil
	}
	for _, p := range a.byPage[page] {
		if p.Fence == fence {
			list = append(list, p)
		}
	}
	return newestFirst(list)
}

func newestFirst(list []*approval) []*approval {
	slices.SortFunc(list, func(p, q *approval) int { return cmp.Compare(q.ID, p.ID) })
	return list
}
