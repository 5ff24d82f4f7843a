package trust

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"noted/notebook"
)

// Bounds of asks.
const (
	maxOpenAsks = 8    // of one client
	maxAsks     = 1024 // kept in all; the oldest answered ones go first
	maxReason   = 1 << 10
)

// Ask is a client's request that a person approve a fence.
type Ask struct {
	ID        uint64
	Client    string // as it is shown: "agent:NAME"
	Reason    string // the client's words, hostile
	Request   notebook.ProposalRequest
	Asked     time.Time
	State     string // "open", "approved", "denied", "void"
	requester Requester
}

// By is who asked, in the role in which an approval would count.
func (a Ask) By() Requester { return a.requester }

// The states of an ask.
const (
	AskOpen     = "open"
	AskApproved = "approved"
	AskDenied   = "denied"
	AskVoid     = "void" // the closure changed before there was an answer
)

// Asks are the requests for approval on this device. A client has one open per
// closure and eight in all; a no to a closure holds for everybody until it
// changes. It is used from one goroutine at a time.
type Asks struct {
	byID    map[uint64]*Ask
	next    uint64
	changed map[uint64]bool
}

// NewAsks returns an empty set.
func NewAsks() *Asks {
	return &Asks{byID: make(map[uint64]*Ask), next: 1, changed: make(map[uint64]bool)}
}

// Open records an ask. The caller has made a [Proposal] of the request, so the
// fence exists and could be approved.
func (a *Asks) Open(by Requester, r notebook.ProposalRequest, reason string, now time.Time) (Ask, error) {
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return Ask{}, notebook.Errorf(notebook.CodeInvalid, "a reason is text of at most %d bytes", maxReason).With("say it shorter")
	}
	open := 0
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		x := a.byID[id]
		same := x.Request.Page == r.Page && x.Request.Fence == r.Fence && x.Request.Shown == r.Shown
		switch {
		case same && x.State == AskDenied:
			return Ask{}, notebook.Errorf(notebook.CodeRefused, "a person said no to this fence (ask %d)", id).
				With("the no holds until the fence changes")
		case x.State != AskOpen || x.requester != by:
		case same:
			return Ask{}, notebook.Errorf(notebook.CodeRefused, "this was asked already (ask %d)", id).With("wait for the answer")
		default:
			open++
		}
	}
	if open >= maxOpenAsks {
		return Ask{}, notebook.Errorf(notebook.CodeExhausted, "%d asks of this client are open", open).With("wait for an answer to one of them")
	}
	a.makeRoom()
	x := &Ask{ID: a.next, Client: by.String(), Reason: reason, Request: r, Asked: now, State: AskOpen, requester: by}
	a.next++
	a.byID[x.ID] = x
	a.changed[x.ID] = true
	return *x, nil
}

// makeRoom forgets the oldest answered ask where there are too many, or else
// the oldest of all, which its client may ask again.
func (a *Asks) makeRoom() {
	if len(a.byID) < maxAsks {
		return
	}
	ids := slices.Sorted(maps.Keys(a.byID))
	oldest := ids[0]
	for _, id := range ids {
		if s := a.byID[id].State; s == AskApproved || s == AskVoid {
			oldest = id
			break
		}
	}
	delete(a.byID, oldest)
	a.changed[oldest] = true
}

// Get returns an ask.
func (a *Asks) Get(id uint64) (Ask, error) {
	if x := a.byID[id]; x != nil {
		return *x, nil
	}
	return Ask{}, notebook.Errorf(notebook.CodeNotFound, "there is no ask %d", id).With("noted ask list lists them")
}

// List returns all asks, newest first.
func (a *Asks) List() []Ask {
	var list []Ask
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(a.byID))) {
		list = append(list, *a.byID[id])
	}
	return list
}

// Answerable says why an ask cannot be answered any more.
func (x Ask) Answerable() error {
	if x.State != AskOpen {
		return notebook.Errorf(notebook.CodeStale, "ask %d is %s already", x.ID, x.State).With("noted ask list lists those that are open")
	}
	return nil
}

// Answer closes an open ask. For a yes the caller gives the approval first.
func (a *Asks) Answer(id uint64, yes bool) (Ask, error) {
	x := a.byID[id]
	if x == nil {
		return a.Get(id)
	}
	if err := x.Answerable(); err != nil {
		return Ask{}, err
	}
	x.State = AskDenied
	if yes {
		x.State = AskApproved
	}
	a.changed[id] = true
	return *x, nil
}

// Changed voids the open asks about a fence whose closure is another now, or
// zero where the fence is gone, and returns them.
func (a *Asks) Changed(page notebook.PageID, fence notebook.FenceID, closure notebook.Hash) []Ask {
	var void []Ask
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		x := a.byID[id]
		if x.State == AskOpen && x.Request.Page == page && x.Request.Fence == fence && x.Request.Shown != closure {
			x.State = AskVoid
			a.changed[id] = true
			void = append(void, *x)
		}
	}
	return void
}

// Drop forgets the open asks of a client whose token was taken away.
func (a *Asks) Drop(by Requester) {
	for id, x := range a.byID {
		if x.requester == by && x.State == AskOpen {
			x.State = AskVoid
			a.changed[id] = true
		}
	}
}

const keyAsk = 'q' // number, eight bytes

type askRecord struct {
	_            struct{} `cbor:",toarray"`
	ID           uint64
	Role         string
	Name         string
	Reason       string
	Page         notebook.PageID
	Fence        notebook.FenceID
	Shown        notebook.Hash
	Rung         notebook.Rung
	Capabilities []notebook.Capability
	Scope        notebook.Scope
	Expires      int64 // Unix milliseconds; 0: never
	ArgNames     []string
	ArgValues    []string
	AnyArgs      bool
	Asked        int64 // Unix milliseconds
	State        string
	Client       string
}

// Flush returns the records that changed since the last flush.
func (a *Asks) Flush() []Record {
	var records []Record
	for _, id := range slices.Sorted(maps.Keys(a.changed)) {
		key := binary.BigEndian.AppendUint64([]byte{keyAsk}, id)
		x := a.byID[id]
		if x == nil {
			records = append(records, Record{Key: key})
			continue
		}
		r := askRecord{
			ID: id, Role: x.requester.Role, Name: x.requester.Name, Reason: x.Reason,
			Page: x.Request.Page, Fence: x.Request.Fence, Shown: x.Request.Shown, Rung: x.Request.Rung,
			Capabilities: x.Request.Capabilities, Scope: x.Request.Scope, Expires: milliseconds(x.Request.Expires),
			AnyArgs: x.Request.AnyArgs, Asked: x.Asked.UnixMilli(), State: x.State, Client: x.requester.Client,
		}
		for _, name := range slices.Sorted(maps.Keys(x.Request.Args)) {
			r.ArgNames, r.ArgValues = append(r.ArgNames, name), append(r.ArgValues, x.Request.Args[name])
		}
		record, err := newRecord(key, &r)
		if err != nil {
			panic("trust: an ask of checked text does not encode: " + err.Error())
		}
		records = append(records, record)
	}
	a.changed = make(map[uint64]bool)
	return records
}

// OpenAsks reads what [Asks.Flush] returned.
func OpenAsks(records iter.Seq2[[]byte, []byte]) (*Asks, error) {
	a := NewAsks()
	for key, value := range records {
		var r askRecord
		if len(key) != 9 || key[0] != keyAsk {
			return nil, fmt.Errorf("asks: unknown key %x", key)
		}
		if err := readRecord(value, &r); err != nil {
			return nil, fmt.Errorf("ask: %w", err)
		}
		if len(r.ArgNames) != len(r.ArgValues) {
			return nil, fmt.Errorf("ask: %d names for %d args", len(r.ArgNames), len(r.ArgValues))
		}
		by := Requester{Role: r.Role, Name: r.Name, Client: r.Client}
		x := &Ask{ID: r.ID, Client: by.String(), Reason: r.Reason, Asked: time.UnixMilli(r.Asked), State: r.State, requester: by}
		x.Request = notebook.ProposalRequest{
			FenceRef: notebook.FenceRef{Page: r.Page, Fence: r.Fence, Shown: r.Shown},
			Rung:     r.Rung, Capabilities: r.Capabilities, Scope: r.Scope, AnyArgs: r.AnyArgs,
		}
		if r.Expires > 0 {
			x.Request.Expires = time.UnixMilli(r.Expires)
		}
		for i, name := range r.ArgNames {
			if x.Request.Args == nil {
				x.Request.Args = make(map[string]string)
			}
			x.Request.Args[name] = r.ArgValues[i]
		}
		a.byID[r.ID] = x
		a.next = max(a.next, r.ID+1)
	}
	return a, nil
}

// milliseconds is a time as records have it; 0 for none.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
