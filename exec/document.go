package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"noted/notebook"
)

// document is how a guest is told what to run and what it was granted: one JSON
// object on its standard input. No value is ever a part of a program.
type document struct {
	Parts []part            `json:"parts"` // in the order in which they run; the last one is the fence
	Args  map[string]string `json:"args,omitzero"`
	Page  *string           `json:"page,omitempty"` // its text
	Clock map[string]any    `json:"clock,omitempty"`
	Seed  string            `json:"seed,omitempty"` // 64 hexadecimal digits
	Query json.RawMessage   `json:"query,omitempty"`
	Dirs  []string          `json:"dirs,omitempty"` // where the granted directories are
}

type part struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// newDocument is the document of a request with directories, and the time that it
// grants in milliseconds, 0 if it grants none.
func newDocument(r *request, dirs []string) (b []byte, clock int64, err error) {
	d, clock, err := newValues(r)
	if err != nil {
		return nil, 0, err
	}
	d.Dirs = dirs
	for _, p := range r.before {
		d.Parts = append(d.Parts, part{p.name, p.value})
	}
	d.Parts = append(d.Parts, part{chunk, r.source})
	large := size(r.inputs) > largeInputs
	if large {
		runtime.GC()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it would make a page of markup six times as long
	err = e.Encode(d)
	if large {
		runtime.GC()
	}
	return text.Bytes(), clock, err
}

// largeInputs are those whose garbage is collected on the way: read, checked and
// written as JSON a page of a megabyte leaves ten behind, of the sixteen that a
// worker's heap may grow by. The collector alone runs beside all that, and on a busy
// machine it was too late for one worker in ten.
const largeInputs = 256 << 10

// newValues is what such a document says beside what is to run.
func newValues(r *request) (d document, clock int64, err error) {
	if r.args != nil {
		d.Args = map[string]string{}
		for _, f := range r.args {
			d.Args[f.name] = f.value
		}
	}
	for _, in := range r.inputs {
		switch notebook.Capability(in.name) {
		case notebook.CapPage:
			d.Page = &in.value
		case notebook.CapClock:
			if clock, err = strconv.ParseInt(in.value, 10, 64); err != nil || clock < 0 {
				return d, 0, errors.New("the clock that was granted is not a number of milliseconds")
			}
			d.Clock = clockValues(clock)
		case notebook.CapSeed:
			h := notebook.Digest("noted/seed/v1", []byte(in.value))
			d.Seed = fmt.Sprintf("%x", h[:])
		case notebook.CapQuery:
			if _, err := notebook.DecodeRows([]byte(in.value)); err != nil {
				return d, 0, errors.New("the rows that were granted cannot be read")
			}
			d.Query = json.RawMessage(in.value)
		default:
			return d, 0, fmt.Errorf("%s is not here yet", in.name)
		}
	}
	return d, clock, nil
}

// clockValues are a time as a fence gets it, in UTC.
func clockValues(ms int64) map[string]any {
	t := time.UnixMilli(ms).UTC()
	return map[string]any{
		"unix": t.Unix(), "ms": ms,
		"year": t.Year(), "month": int(t.Month()), "day": t.Day(),
		"hour": t.Hour(), "min": t.Minute(), "sec": t.Second(),
		"wday": int(t.Weekday()) + 1, "yday": t.YearDay(),
		"date": t.Format(time.DateOnly), "iso": t.Format(time.RFC3339),
	}
}
