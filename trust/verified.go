package trust

import "noted/notebook"

// Verified is an entry whose encoding, signature, chain and author were
// checked, and whose causal past is known here. Only [Log] makes one that counts.
type Verified struct {
	entry  notebook.Entry
	header notebook.Header
	hash   notebook.Hash
	past   past
	void   string
	excuse []byte
}

// Valid reports whether v was made by a [Log]. The zero value is not.
func (v Verified) Valid() bool { return v.past.chain != nil }

// Entry is the record as it is kept and sent.
func (v Verified) Entry() notebook.Entry { return v.entry }

// Header is the decoded header of the entry. The caller does not change it.
func (v Verified) Header() *notebook.Header { return &v.header }

// Hash names the entry.
func (v Verified) Hash() notebook.Hash { return v.hash }

// Place is where the entry is kept on this device.
func (v Verified) Place() notebook.Place { return v.past.chain.place(v.header.Seq) }

// Author is who wrote the body, as far as the signing device may say so.
func (v Verified) Author() notebook.Author { return v.header.Author() }

// Saw reports whether the author had merged the entry at p when this one was
// written: its own earlier entries, and what its seen vectors name, transitively
// through the epochs that they continue. Where a device signed several entries
// for p, it is about the one that stands.
func (v Verified) Saw(p notebook.Position) bool { return v.past.saw(p) }

// Excuse is what came instead of the body, where that was purged: what
// [notebook.EncodeExcuse] wrote. Whoever is asked for room gets it.
func (v Verified) Excuse() []byte { return v.excuse }

// Lost reports whether the entry is void because its device signed another
// history, which stands.
func (v Verified) Lost() bool { return v.void == VoidLost }

// Void says why the entry does nothing although it is signed and chained, and
// is empty for entries that do something as far as the log can tell: a change
// of the roster that does not hold, an entry by a hub, which writes nothing, or
// one of a history that does not stand.
// Such an entry is kept and passed on, and its chain goes on.
func (v Verified) Void() string { return v.void }
