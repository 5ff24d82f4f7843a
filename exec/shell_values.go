package exec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"

	"noted/notebook"
)

// grant puts the granted values into variables, where they are text: nothing in
// them is ever read as a part of the program.
func (e *shellEngine) grant(r *request) error {
	if r.args != nil {
		args := map[string]string{}
		for _, f := range r.args {
			args[f.name] = shellText(f.value)
		}
		e.names["args"] = expand.Variable{Set: true, Kind: expand.Associative, Map: args}
	}
	for _, in := range r.inputs {
		switch notebook.Capability(in.name) {
		case notebook.CapPage:
			lines := []string{}
			for l := range strings.Lines(shellText(in.value)) {
				lines = append(lines, strings.TrimSuffix(l, "\n"))
			}
			e.names.set("page", shellText(in.value))
			e.names.list("page_lines", lines)
		case notebook.CapClock:
			ms, err := strconv.ParseInt(in.value, 10, 64)
			if err != nil {
				return errors.New("the clock that was granted is not a number of milliseconds")
			}
			t := time.UnixMilli(ms).UTC()
			e.names.set("clock", in.value)
			e.names.set("clock_unix", strconv.FormatInt(t.Unix(), 10))
			e.names.set("clock_date", t.Format(time.DateOnly))
			e.names.set("clock_iso", t.Format(time.RFC3339))
		case notebook.CapQuery:
			rows, err := notebook.DecodeRows([]byte(in.value))
			if err != nil {
				return errors.New("the rows that were granted cannot be read")
			}
			e.rows(rows)
		case notebook.CapSeed:
			e.seed = rand.New(rand.NewChaCha8(notebook.Digest("noted/seed/v1", []byte(in.value))))
		default:
			return fmt.Errorf("%s is not here yet", in.name)
		}
	}
	return nil
}

// shellText is a value without the character that ends a text in a shell.
func shellText(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// rows are arrays of the same length, in which a row has one place: query holds
// the texts, query_title, query_page, query_line, query_tags, query_task and
// query_date what belongs to them; query_found is how many there were, and
// query_unread how many pages could not be read.
func (e *shellEngine) rows(rows *notebook.Rows) {
	var text, title, page, line, tags, task, date []string
	for _, r := range rows.List {
		text, title, page = append(text, shellText(r.Text)), append(title, shellText(r.Title)), append(page, r.Page.String())
		line, tags = append(line, strconv.Itoa(r.Line)), append(tags, strings.Join(r.Tags, " "))
		task, date = append(task, string(r.Task)), append(date, r.Date)
	}
	for name, list := range map[string][]string{"": text, "_title": title, "_page": page, "_line": line, "_tags": tags, "_task": task, "_date": date} {
		e.names.list("query"+name, list)
	}
	e.names.set("query_found", strconv.Itoa(rows.Found))
	e.names.set("query_unread", strconv.Itoa(rows.Unread))
}
