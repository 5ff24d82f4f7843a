package trust

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"noted/notebook"
)

// Quarantine is the devices whose text this device does not run before a person
// has looked at it, whatever policy says of them. It is this device's own and
// never synced. It is used from one goroutine at a time.
type Quarantine struct {
	since   map[notebook.DeviceID]int64 // Unix milliseconds
	changed map[notebook.DeviceID]bool
}

// NewQuarantine returns one that holds no device.
func NewQuarantine() *Quarantine {
	return &Quarantine{since: make(map[notebook.DeviceID]int64), changed: make(map[notebook.DeviceID]bool)}
}

const keyQuarantine = 'd' // device

type quarantineRecord struct {
	_     struct{} `cbor:",toarray"`
	Since int64
}

// OpenQuarantine reads what [Quarantine.Flush] returned.
func OpenQuarantine(records iter.Seq2[[]byte, []byte]) (*Quarantine, error) {
	q := NewQuarantine()
	for key, value := range records {
		var r quarantineRecord
		if len(key) != 1+len(notebook.DeviceID{}) || key[0] != keyQuarantine {
			return nil, fmt.Errorf("quarantine: unknown key %x", key)
		}
		if err := readRecord(value, &r); err != nil {
			return nil, fmt.Errorf("quarantine: %w", err)
		}
		q.since[notebook.DeviceID(key[1:])] = r.Since
	}
	return q, nil
}

// Flush returns the records that changed since the last flush.
func (q *Quarantine) Flush() []Record {
	var records []Record
	for _, d := range sortedDevices(maps.Keys(q.changed)) {
		key := append([]byte{keyQuarantine}, d[:]...)
		since, held := q.since[d]
		if !held {
			records = append(records, Record{Key: key})
			continue
		}
		r, err := newRecord(key, &quarantineRecord{Since: since})
		if err != nil {
			panic("trust: a number does not encode: " + err.Error())
		}
		records = append(records, r)
	}
	q.changed = make(map[notebook.DeviceID]bool)
	return records
}

// Hold puts a device into quarantine. One that is held stays as it was, and
// Hold reports false.
func (q *Quarantine) Hold(d notebook.DeviceID, now time.Time) bool {
	if _, held := q.since[d]; held {
		return false
	}
	q.since[d] = now.UnixMilli()
	q.changed[d] = true
	return true
}

// Release ends the quarantine of a device, and reports whether there was one.
func (q *Quarantine) Release(d notebook.DeviceID) bool {
	if _, held := q.since[d]; !held {
		return false
	}
	delete(q.since, d)
	q.changed[d] = true
	return true
}

// Since is when the device was put into quarantine; the zero time if it is in none.
func (q *Quarantine) Since(d notebook.DeviceID) time.Time {
	if q == nil {
		return time.Time{}
	}
	if since, held := q.since[d]; held {
		return time.UnixMilli(since)
	}
	return time.Time{}
}

// Devices are those in quarantine, sorted.
func (q *Quarantine) Devices() []notebook.DeviceID { return sortedDevices(maps.Keys(q.since)) }

// of are the devices in quarantine that wrote something of an origin, also
// where this device, or another, moved it.
func (q *Quarantine) of(o notebook.Origin) (held []notebook.DeviceID) {
	if q == nil || len(q.since) == 0 {
		return nil
	}
	for _, d := range o.Devices() {
		if _, in := q.since[d]; in {
			held = append(held, d)
		}
	}
	return held
}

func sortedDevices(all iter.Seq[notebook.DeviceID]) []notebook.DeviceID {
	return slices.SortedFunc(all, func(a, b notebook.DeviceID) int { return bytes.Compare(a[:], b[:]) })
}

// ruled is what policy says of a fence that stands so, and the line that says
// it. Text of a device in quarantine lowers it to ask.
func (r *Request) ruled(s Standing) (rule, string) {
	says, line := r.policy().of(s, r.language())
	if held := r.Quarantine.of(r.Everyone()); len(held) > 0 && says >= ruleAsk {
		return ruleAsk, fmt.Sprintf("device:%s is in quarantine here", word(r.Roster.Shown(held[0])))
	}
	return says, line
}

// held finds a device in quarantine in what an approval would hand in, put
// there after the approval was given: that accepted the text of anyone who was
// not held then.
func (r *Request) held(a *approval) bool {
	for _, c := range a.Capabilities {
		in, _ := r.input(c)
		for _, d := range r.Quarantine.of(in.Authors) {
			if r.Quarantine.since[d] >= a.Given {
				return true
			}
		}
	}
	return false
}
