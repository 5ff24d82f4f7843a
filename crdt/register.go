package crdt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"noted/notebook"
	"noted/trust"
)

// Registers are the single values of one page: its title, whether it is deleted,
// and whether its text was purged. Concurrent writers do not lose against a clock: of the entries that
// no other entry of the register had seen, the one with the highest hash wins,
// and the others stay to be shown. Every device that has taken the same entries
// finds the same, in whatever causal order they came.
type Registers struct {
	page    notebook.PageID
	values  []Value             // that no other one had seen, by register and then hash, highest first
	writers []notebook.Position // text entries that no other text entry had seen
	purged  bool
	excuse  []byte // what a purge was known by before its entry came; empty once one has
}

// Value is one entry of a register that no other one has replaced.
type Value struct {
	_         struct{} `cbor:",toarray"`
	Set       notebook.Set
	Head      notebook.Head
	Overtaken bool // of a deletion: the page has text that it had not seen
}

// NewRegisters are those of a page that has none set.
func NewRegisters(page notebook.PageID) *Registers { return &Registers{page: page} }

// Apply takes a set entry of the page, or the position of a text entry that the
// page's gate admitted, since text that a deletion had not seen undeletes the
// page. Entries come in an order in which none precedes what its author had
// seen. A *[trust.Void] says which rule a set entry breaks; nothing has changed then.
func (r *Registers) Apply(v trust.Verified) error {
	if !v.Valid() {
		return errors.New("apply to registers: the entry was not verified")
	}
	h, entry := v.Header(), v.Entry()
	if h.Page != r.page {
		return fmt.Errorf("apply to the registers of page %s: an entry of page %s", r.page, h.Page)
	}
	if reason := v.Void(); reason != "" {
		return &trust.Void{Reason: reason}
	}
	head := notebook.Head{Position: h.Position(), Hash: v.Hash()}
	switch h.Kind {
	case notebook.KindText:
		r.text(head.Position, v.Saw)
		return nil
	case notebook.KindSet:
		s, err := notebook.DecodeSet(entry.Body)
		if err != nil {
			return void("the new value was refused: %s", err)
		}
		if s.Register == notebook.RegisterPurged && h.Class != notebook.Typed {
			return void("only a person purges a page")
		}
		r.set(*s, head, v.Saw)
		return nil
	}
	return fmt.Errorf("apply to the registers of page %s: a %s entry", r.page, h.Kind)
}

func (r *Registers) set(s notebook.Set, head notebook.Head, saw func(notebook.Position) bool) {
	if s.Register == notebook.RegisterPurged {
		r.setPurged(s, head)
		return
	}
	r.values = slices.DeleteFunc(r.values, func(v Value) bool {
		return v.Set.Register == s.Register && saw(v.Head.Position)
	})
	v := Value{Set: s, Head: head}
	if s.Register == notebook.RegisterDeleted && s.Flag {
		// What text entries have seen is in what those have seen that saw them,
		// so the ones that nobody saw answer for all.
		v.Overtaken = slices.ContainsFunc(r.writers, func(w notebook.Position) bool { return !saw(w) })
	}
	r.values = append(r.values, v)
	slices.SortFunc(r.values, compareValues)
}

// setPurged keeps the purge of each device that said so: its word is what a
// device goes by that knows it, and not the others. Of two by one device, which
// may come in any order, the one with the lower hash stays.
func (r *Registers) setPurged(s notebook.Set, head notebook.Head) {
	i := slices.IndexFunc(r.values, func(v Value) bool {
		return v.Set.Register == s.Register && v.Head.Position.Device == head.Position.Device
	})
	switch {
	case i < 0:
		r.values = append(r.values, Value{Set: s, Head: head})
	case compareHashes(head.Hash, r.values[i].Head.Hash) < 0:
		r.values[i].Head = head
	}
	slices.SortFunc(r.values, compareValues)
	r.empty()
	r.excuse = nil
}

// Purge marks the page as purged before an entry that says so has come. The
// excuse is what that is known by; see [notebook.EncodeExcuse].
func (r *Registers) Purge(excuse []byte) {
	if len(r.Values(notebook.RegisterPurged)) == 0 && len(r.excuse) == 0 {
		r.excuse = bytes.Clone(excuse)
	}
	r.empty()
}

// empty makes what text entries had seen count no more, since no device need
// have them.
func (r *Registers) empty() {
	r.purged, r.writers = true, nil
	for i := range r.values {
		r.values[i].Overtaken = false
	}
}

func compareValues(a, b Value) int {
	if a.Set.Register != b.Set.Register {
		return int(a.Set.Register) - int(b.Set.Register)
	}
	return bytes.Compare(b.Head.Hash[:], a.Head.Hash[:])
}

func (r *Registers) text(at notebook.Position, saw func(notebook.Position) bool) {
	if r.purged {
		return
	}
	r.writers = slices.DeleteFunc(r.writers, func(w notebook.Position) bool { return saw(w) })
	r.writers = append(r.writers, at)
	slices.SortFunc(r.writers, notebook.Position.Compare)
	for i := range r.values {
		if v := &r.values[i]; v.Set.Register == notebook.RegisterDeleted && v.Set.Flag {
			v.Overtaken = true // it came before the text, so it had not seen it
		}
	}
}

// Values are the entries of a register that no other one had seen, the winner
// first. More than one means that devices wrote at once.
func (r *Registers) Values(register notebook.Register) []Value {
	var values []Value
	for _, v := range r.values {
		if v.Set.Register == register {
			values = append(values, v)
		}
	}
	return values
}

func (r *Registers) winner(register notebook.Register) Value {
	for _, v := range r.values {
		if v.Set.Register == register {
			return v
		}
	}
	return Value{}
}

// Title is the page's title, empty while it has none.
func (r *Registers) Title() string { return r.winner(notebook.RegisterTitle).Set.Text }

// Deleted reports whether the page is deleted. One that was purged is, for good.
func (r *Registers) Deleted() bool {
	v := r.winner(notebook.RegisterDeleted)
	return r.purged || v.Set.Flag && !v.Overtaken
}

// Purged reports whether the page's text is gone.
func (r *Registers) Purged() bool { return r.purged }

// PurgedBy reports whether a device has said that it purged the page.
func (r *Registers) PurgedBy(device notebook.DeviceID) bool {
	return slices.ContainsFunc(r.values, func(v Value) bool {
		return v.Set.Register == notebook.RegisterPurged && v.Head.Position.Device == device
	})
}

// Excuse is what a purge is known by of which no entry has come; nil once one has.
func (r *Registers) Excuse() []byte { return r.excuse }

// Undeleted reports whether the page would be deleted, had not text come that
// the deletion had not seen. The person is told.
func (r *Registers) Undeleted() bool {
	v := r.winner(notebook.RegisterDeleted)
	return v.Set.Flag && v.Overtaken
}

type registersRecord struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Page    notebook.PageID
	Values  []Value
	Writers []notebook.Position
	Purged  bool
	Excuse  []byte
}

const registersVersion = 2

// maxRegisters has room for as many writers as a page has actors, with a title
// of each that none of the others has seen. A record of that size is hostile
// work, and has to be readable all the same.
const maxRegisters = maxPageActors * (notebook.MaxTitle + 256)

// Record is the registers as they are kept, the same for equal registers.
func (r *Registers) Record() ([]byte, error) {
	return notebook.Marshal(&registersRecord{Version: registersVersion, Page: r.page, Values: r.values, Writers: r.writers, Purged: r.purged, Excuse: r.excuse})
}

// OpenRegisters reads what [Registers.Record] wrote.
func OpenRegisters(page notebook.PageID, record []byte) (*Registers, error) {
	var rec registersRecord
	if err := notebook.Unmarshal(record, &rec, maxRegisters); err != nil {
		return nil, err
	}
	if rec.Version != registersVersion || rec.Page != page {
		return nil, fmt.Errorf("registers of page %s: a record of version %d of page %s", page, rec.Version, rec.Page)
	}
	r := &Registers{page: page, values: rec.Values, writers: rec.Writers, purged: rec.Purged, excuse: rec.Excuse}
	if !slices.IsSortedFunc(r.values, compareValues) || !slices.IsSortedFunc(r.writers, notebook.Position.Compare) {
		return nil, fmt.Errorf("registers of page %s: the record is not sorted", page)
	}
	return r, nil
}
