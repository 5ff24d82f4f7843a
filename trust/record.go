package trust

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"noted/notebook"
)

// Record is a key and a value that the caller stores as they are, in the same
// transaction as what they belong to. A nil value deletes the key.
type Record struct{ Key, Value []byte }

// recordVersion is the first byte of every record's value.
const recordVersion = 1

// maxRecord bounds a record that is read back: a vector of as many leaves as
// hostile devices can make fits it many times.
const maxRecord = 16 << 20

func newRecord(key []byte, v any) (Record, error) {
	b, err := notebook.Marshal(v)
	if err != nil {
		return Record{}, err
	}
	return Record{Key: key, Value: append([]byte{recordVersion}, b...)}, nil
}

func readRecord(value []byte, v any) error {
	switch {
	case len(value) == 0:
		return errors.New("empty record")
	case value[0] > recordVersion:
		return fmt.Errorf("record of version %d: update noted here", value[0])
	case value[0] < recordVersion:
		return fmt.Errorf("record of version %d", value[0])
	}
	return notebook.Unmarshal(value[1:], v, maxRecord)
}

// The first byte of a log's keys.
const (
	keySelf       = 's'
	keyChain      = 'c' // device and epoch, and for a branch its fork
	keyMembership = 'm' // device
	keyUnadded    = 'u' // device
	keyFrozen     = 'f' // device
)

type selfRecord struct {
	_        struct{} `cbor:",toarray"`
	Self     notebook.DeviceID
	Notebook notebook.NotebookID
	Own      notebook.Epoch
}

type chainRecord struct {
	_        struct{} `cbor:",toarray"`
	Base     notebook.Head
	BaseFork notebook.Hash
	From     uint64
	Last     uint64
	Lost     uint64
	Hash     notebook.Hash
	Seen     []notebook.Place
}

// parent is the chain that the chain of the record continues.
func (r *chainRecord) parent() chainID {
	return chainOf(notebook.Place{Position: r.Base.Position, Fork: r.BaseFork})
}

type membershipRecord struct {
	_       struct{} `cbor:",toarray"`
	Adds    []added
	Removes []removed
	Names   []named
}

type unaddedRecord struct {
	_  struct{} `cbor:",toarray"`
	At []notebook.Place
}

type frozenRecord struct {
	_        struct{} `cbor:",toarray"`
	Kept     bool
	Position notebook.Position
	Hashes   [2]notebook.Hash
	Headers  [2][]byte
	Sigs     [2][]byte
}

// Flush returns the records that changed since the last flush. They make the
// same log again, together with those of earlier flushes.
func (l *Log) Flush() []Record {
	var records []Record
	put := func(key []byte, v any) {
		r, err := newRecord(key, v)
		if err != nil {
			panic("trust: a record of fixed-size fields and checked names does not encode: " + err.Error())
		}
		records = append(records, r)
	}
	if l.changedSelf {
		r := selfRecord{Self: l.self, Notebook: l.nb}
		if l.own != nil {
			r.Own = l.own.id.epoch
		}
		put([]byte{keySelf}, &r)
	}
	for _, c := range l.changed {
		r := chainRecord{Base: c.base, From: c.from, Last: c.last, Lost: c.lost, Hash: c.tip().Hash}
		if c.parent != nil {
			r.BaseFork = c.parent.id.fork
		}
		for _, d := range c.seen.devices {
			for _, m := range d.leaves {
				r.Seen = append(r.Seen, m.chain.place(m.seq))
			}
		}
		key := slices.Concat([]byte{keyChain}, c.id.device[:], c.id.epoch[:])
		if !c.id.fork.IsZero() {
			key = append(key, c.id.fork[:]...)
		}
		put(key, &r)
		c.changed = false
		if l.recall != nil && len(c.recent) >= 2*keepHashes {
			c.recent = slices.Clone(c.recent[len(c.recent)-keepHashes:])
		}
	}
	for _, d := range l.members {
		key := append([]byte{keyMembership}, d[:]...)
		if m := l.roster.devices[d]; m != nil {
			put(key, &membershipRecord{Adds: m.adds, Removes: m.removes, Names: m.names})
		} else {
			records = append(records, Record{Key: key})
		}
	}
	for _, d := range l.unadded {
		key := append([]byte{keyUnadded}, d[:]...)
		if at := l.roster.unadded[d]; len(at) > 0 {
			put(key, &unaddedRecord{At: at})
		} else {
			records = append(records, Record{Key: key})
		}
	}
	for _, d := range l.newlyFrozen {
		f := l.frozen[d]
		e := f.proof
		put(append([]byte{keyFrozen}, d[:]...), &frozenRecord{
			Kept: f.kept, Position: e.Position, Hashes: e.Hashes,
			Headers: [2][]byte{e.Proof[0].Header, e.Proof[1].Header}, Sigs: [2][]byte{e.Proof[0].Sig, e.Proof[1].Sig},
		})
	}
	l.changed, l.members, l.unadded, l.newlyFrozen, l.changedSelf = nil, nil, nil, nil, false
	if l.recall != nil {
		clear(l.fresh)
	}
	return records
}

func readLog(self notebook.DeviceID, records iter.Seq2[[]byte, []byte]) (*Log, error) {
	l := newLog(self, notebook.NotebookID{})
	l.changedSelf = false
	var me selfRecord
	chains := make(map[chainID]*chainRecord)
	for key, value := range records {
		if err := l.readKey(key, value, &me, chains); err != nil {
			return nil, fmt.Errorf("open log: record %x: %w", key, err)
		}
	}
	switch {
	case me.Self.IsZero():
		return nil, errors.New("open log: no records of a log")
	case me.Self != self:
		return nil, fmt.Errorf("open log: the records are those of device %s, not %s: the key and the store do not belong together", me.Self.Short(), self.Short())
	}
	l.nb = me.Notebook
	for id := range chains {
		if err := l.plant(id, chains); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	for id, r := range chains {
		c := l.forest.chains[id]
		marks := make([]mark, len(r.Seen))
		for i, p := range r.Seen {
			marks[i] = mark{chain: l.forest.chains[chainOf(p)], seq: p.Position.Seq}
			if marks[i].chain == nil {
				return nil, fmt.Errorf("open log: %v has seen %v, of which there is no record", c.tip().Position, p.Position)
			}
		}
		c.seen = new(vector).with(marks)
		if c.isLeaf() {
			l.leaves[id.device] = append(l.leaves[id.device], c)
		}
	}
	if !me.Own.IsZero() {
		l.own = l.forest.chains[chainID{epochID: epochID{self, me.Own}}]
	}
	return l, nil
}

func (l *Log) readKey(key, value []byte, me *selfRecord, chains map[chainID]*chainRecord) error {
	rest := bytes.TrimPrefix(key, key[:min(1, len(key))])
	var device notebook.DeviceID
	copy(device[:], rest)
	switch {
	case len(key) == 1 && key[0] == keySelf:
		return readRecord(value, me)
	case (len(rest) == 48 || len(rest) == 80) && key[0] == keyChain:
		id, r := chainID{epochID: epochID{device, notebook.Epoch(rest[32:48])}}, new(chainRecord)
		copy(id.fork[:], rest[48:])
		chains[id] = r
		return readRecord(value, r)
	case len(rest) == 32 && key[0] == keyMembership:
		var r membershipRecord
		if err := readRecord(value, &r); err != nil {
			return err
		}
		if len(r.Adds) == 0 || len(r.Names) == 0 {
			return errors.New("a member that nobody added")
		}
		m := &membership{adds: r.Adds, removes: r.Removes, names: r.Names}
		m.skeleton = notebook.Skeleton(m.name())
		l.roster.devices[device] = m
		return nil
	case len(rest) == 32 && key[0] == keyFrozen:
		var r frozenRecord
		if err := readRecord(value, &r); err != nil {
			return err
		}
		l.frozen[device] = &frozen{kept: r.Kept, proof: &Equivocation{Position: r.Position, Hashes: r.Hashes, Proof: [2]notebook.Entry{
			{Header: r.Headers[0], Sig: r.Sigs[0]}, {Header: r.Headers[1], Sig: r.Sigs[1]},
		}}}
		return nil
	case len(rest) == 32 && key[0] == keyUnadded:
		var r unaddedRecord
		if err := readRecord(value, &r); err != nil {
			return err
		}
		l.roster.unadded[device] = r.At
		return nil
	}
	return errors.New("unknown key")
}

// plant makes the chain of a record, after those that it continues.
func (l *Log) plant(id chainID, records map[chainID]*chainRecord) error {
	var line []chainID
	for l.forest.chains[id] == nil {
		if records[id] == nil || len(line) > len(records) {
			return fmt.Errorf("an epoch of device %s continues one of which there is no record", id.device.Short())
		}
		line = append(line, id)
		if records[id].Base.IsZero() {
			break
		}
		id = records[id].parent()
	}
	for _, id := range slices.Backward(line) {
		r := records[id]
		var parent *chain
		if !r.Base.IsZero() {
			parent = l.forest.chains[r.parent()]
			parent.continued = max(parent.continued, r.Base.Position.Seq)
		}
		c := newChain(id, r.From, r.Base, parent)
		c.last, c.lost, c.recent = r.Last, r.Lost, []notebook.Hash{r.Hash}
		l.forest.plant(c)
	}
	return nil
}
