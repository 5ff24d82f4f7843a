package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// rowsForm is the answer to a query as a fence is handed it: one JSON object.
// Who wrote what is not in it, nor which pages could not be read.
type rowsForm struct {
	Found  int       `json:"found"`
	Unread int       `json:"unread"`
	Rows   []rowForm `json:"rows"`
}

type rowForm struct {
	Title string   `json:"title"`
	Page  string   `json:"page"` // its id
	Line  int      `json:"line"`
	Text  string   `json:"text"`
	Tags  []string `json:"tags"`
	Task  *string  `json:"task"` // null where there is none
	Date  *string  `json:"date"`
}

// rowsOverhead has room for what is around the rows.
const rowsOverhead = 96

func (r *Row) form() rowForm {
	f := rowForm{Title: r.Title, Page: r.Page.String(), Line: r.Line, Text: r.Text, Tags: r.Tags}
	if f.Tags == nil {
		f.Tags = []string{}
	}
	if r.Task != NoTask {
		f.Task = (*string)(&r.Task)
	}
	if r.Date != "" {
		f.Date = &r.Date
	}
	return f
}

func rowSize(r *Row) int { return len(encodeJSON(r.form())) + 1 }

// EncodeRows is an answer as JSON: the same bytes for the same answer.
func EncodeRows(r *Rows) []byte {
	form := rowsForm{Found: r.Found, Unread: r.Unread, Rows: make([]rowForm, len(r.List))}
	for i := range r.List {
		form.Rows[i] = r.List[i].form()
	}
	return encodeJSON(form)
}

// encodeJSON encodes strings and numbers, which cannot fail.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("notebook: strings and numbers do not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// DecodeRows reads what [EncodeRows] wrote. The rows have no authors, and no
// damaged page has an id.
func DecodeRows(b []byte) (*Rows, error) {
	if len(b) > MaxRowsOut {
		return nil, fmt.Errorf("rows of %d bytes, more than %d", len(b), MaxRowsOut)
	}
	var form rowsForm
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&form); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("rows: something follows them")
	}
	if len(form.Rows) > MaxRows || form.Found < len(form.Rows) || form.Unread < 0 {
		return nil, fmt.Errorf("rows: %d of %d, and %d pages unread", len(form.Rows), form.Found, form.Unread)
	}
	rows := &Rows{Found: form.Found, Unread: form.Unread}
	for _, f := range form.Rows {
		id, err := ParsePageID(f.Page)
		if err != nil {
			return nil, fmt.Errorf("rows: %w", err)
		}
		row := Row{Page: id, Title: f.Title, Line: f.Line, Text: f.Text, Tags: f.Tags}
		if f.Task != nil {
			row.Task = Task(*f.Task)
		}
		if f.Date != nil {
			row.Date = *f.Date
		}
		rows.List = append(rows.List, row)
	}
	return rows, nil
}
