package exec

import (
	"fmt"
	"io"
	"strings"

	"noted/notebook"
)

// queryLanguage is what a fence asks of the notebook's pages. Its code is asked
// before it runs, and outside: here what was found is shown, and nothing else is done.
var queryLanguage = language{
	name:    "query",
	version: "query 2",
	open:    func(w *workspace) (engine, error) { return queryEngine{w.out}, nil },
}

type queryEngine struct{ out io.Writer }

func (e queryEngine) run(r *request) outcome {
	if len(r.before) > 0 {
		return failed("a query includes no other fence")
	}
	if len(r.inputs) != 1 || notebook.Capability(r.inputs[0].name) != notebook.CapQuery {
		return failed("a query is given what it found, and nothing else")
	}
	rows, err := notebook.DecodeRows([]byte(r.inputs[0].value))
	if err != nil {
		return failed("the rows that were granted cannot be read: %v", err)
	}
	if _, err := io.WriteString(e.out, showRows(rows)); err != nil {
		return failed("nobody reads on")
	}
	return outcome{}
}

// showRows is what was found as lines of text, each with the title of its page.
// No text of a row can pass for another row: a line end in it shows as a blank,
// and what would not be seen is written out. Pages that could not be read are said
// to be missing.
func showRows(rows *notebook.Rows) string {
	var b strings.Builder
	for i := range rows.List {
		r := &rows.List[i]
		b.WriteString(notebook.EscapeLine(r.Title))
		if r.Line > 0 {
			fmt.Fprintf(&b, ":%d: %s", r.Line, taskMark(r.Task)+notebook.EscapeLine(strings.Join(strings.Fields(r.Text), " ")))
		}
		b.WriteByte('\n')
	}
	switch more := rows.Found - len(rows.List); {
	case rows.Found == 0:
		b.WriteString("nothing found\n")
	case more > 0:
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	if n := rows.Unread; n == 1 {
		b.WriteString("… 1 page is damaged and was not read: noted doctor names it\n")
	} else if n > 1 {
		fmt.Fprintf(&b, "… %d pages are damaged and were not read: noted doctor names them\n", n)
	}
	return b.String()
}

func taskMark(t notebook.Task) string {
	switch t {
	case notebook.Todo:
		return "[ ] "
	case notebook.Done:
		return "[x] "
	}
	return ""
}
