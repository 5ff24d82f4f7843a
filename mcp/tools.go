package mcp

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// Bounds of one answer. They fit what an agent can take in at once; the rest is
// a further request.
const (
	maxPages   = 100
	maxFences  = 50
	maxText    = 64 << 10 // bytes of a page's text or a run's output, escaped
	maxCode    = 16 << 10 // bytes of one fence's code, escaped
	maxTitle   = 2 << 10  // bytes of a title or info string, escaped
	maxMessage = 2 << 10  // bytes of a reason or message, escaped
	maxNotes   = 3        // notes of a page
	maxNote    = 300      // bytes of one, escaped
	maxReason  = 1 << 10  // bytes of an agent's reason
	maxArgs    = 64       // arguments of a run
	maxArg     = 16 << 10 // bytes of one
)

// tools are the verbs; each method is one.
type tools struct{ Backend }

type pageListIn struct {
	Contains string `json:"contains,omitempty" jsonschema:"only pages whose title contains this text, whatever its letter case"`
	Offset   int    `json:"offset,omitempty" jsonschema:"how many pages to pass over: next of the answer before"`
}

type pageListOut struct {
	Pages []pageOut `json:"pages"`
	Next  int       `json:"next,omitempty" jsonschema:"offset of the next part, absent at the end"`
}

type pageOut struct {
	Ref      string   `json:"ref" jsonschema:"names the page in other tools, for good"`
	Title    string   `json:"title"`
	Bytes    int      `json:"bytes" jsonschema:"size of the body"`
	Fences   int      `json:"fences" jsonschema:"number of code fences"`
	Revision string   `json:"revision" jsonschema:"changes whenever the page does"`
	Notes    []string `json:"notes,omitempty" jsonschema:"what the person is told about the page"`
}

func (t *tools) pageList(ctx context.Context, in pageListIn) (pageListOut, error) {
	out := pageListOut{Pages: []pageOut{}}
	pages, err := t.Pages(ctx)
	if err != nil {
		return out, err
	}
	want := notebook.TitleKey(in.Contains)
	pages = slices.DeleteFunc(pages, func(p notebook.PageInfo) bool {
		return p.Deleted || !strings.Contains(notebook.TitleKey(p.Title), want)
	})
	slices.SortFunc(pages, func(a, b notebook.PageInfo) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), slices.Compare(a.ID[:], b.ID[:]))
	})
	part, next, err := cut(pages, in.Offset, maxPages)
	if err != nil {
		return out, err
	}
	for i := range part {
		out.Pages = append(out.Pages, showPage(&part[i]))
	}
	out.Next = next
	return out, nil
}

func showPage(p *notebook.PageInfo) pageOut {
	out := pageOut{Ref: "=" + p.ID.String(), Bytes: p.Size, Fences: p.Fences, Revision: revision(p.Revision)}
	out.Title, _ = clip(notebook.EscapeLine(p.Title), maxTitle)
	for _, note := range p.Notes[:min(len(p.Notes), maxNotes)] {
		note, _ = clip(notebook.EscapeLine(note), maxNote)
		out.Notes = append(out.Notes, note)
	}
	return out
}

// revision is one word for a page's state.
func revision(r notebook.Revision) string {
	heads := make([][]byte, len(r))
	for i := range r {
		heads[i] = r[i][:]
	}
	return notebook.Digest("noted/mcp/revision", heads...).String()
}

type pageGetIn struct {
	Page string `json:"page" jsonschema:"a page's ref or its title, or today"`
	From int    `json:"from,omitempty" jsonschema:"code points of the body to pass over: next of the answer before"`
}

type pageGetOut struct {
	Page pageOut `json:"page"`
	Text string  `json:"text" jsonschema:"the body, or a part of it; characters that do not show are written out"`
	Next int     `json:"next,omitempty" jsonschema:"from of the next part, absent at the end; compare revision, the page may change between"`
}

func (t *tools) pageGet(ctx context.Context, in pageGetIn) (pageGetOut, error) {
	p, err := t.Page(ctx, in.Page)
	if err != nil {
		return pageGetOut{}, err
	}
	rest, ok := skip(p.Body, in.From)
	if !ok {
		return pageGetOut{}, notebook.Errorf(notebook.CodeInvalid, "from is %d, the page has %d code points", in.From, utf8.RuneCountInString(p.Body)).
			With("begin with 0")
	}
	out := pageGetOut{Page: showPage(&p.PageInfo)}
	// Of the body, as much as fits when it is escaped.
	part, more := clip(rest, maxText)
	out.Text = notebook.Escape(part)
	for len(out.Text) > maxText {
		part, more = clip(part, len(part)/2)
		out.Text = notebook.Escape(part)
	}
	if more || len(part) < len(rest) {
		out.Next = in.From + utf8.RuneCountInString(part)
	}
	return out, nil
}

type queryIn struct {
	Query string `json:"query" jsonschema:"words and \"some words\" that have to be there, #tag, task:todo|done|any, date:|after:|before:2026-11-30, page:\"part of a title\"; - before a term means not; show:pages, sort:date, limit:N"`
}

type queryOut struct {
	Rows  []rowOut `json:"rows"`
	Found int      `json:"found" jsonschema:"how many there are; where rows has less, ask for less"`

	Unread int `json:"unread,omitempty" jsonschema:"pages that are damaged on this device and could not be read: what they hold is not here; tell the person, who has noted doctor for it"`
}

type rowOut struct {
	Page     string   `json:"page" jsonschema:"the page's ref"`
	Title    string   `json:"title" jsonschema:"of the page"`
	Line     int      `json:"line,omitempty" jsonschema:"of the block's first line, absent where a page was asked for"`
	Text     string   `json:"text,omitempty" jsonschema:"of the block, or its beginning"`
	Tags     []string `json:"tags,omitempty"`
	Task     string   `json:"task,omitempty" jsonschema:"todo or done"`
	Date     string   `json:"date,omitempty"`
	Standing string   `json:"standing" jsonschema:"who wrote it: local, or the others"`
}

// query answers with as many rows as fit an answer.
func (t *tools) query(ctx context.Context, in queryIn) (queryOut, error) {
	rows, err := t.Query(ctx, in.Query)
	if err != nil {
		return queryOut{Rows: []rowOut{}}, err
	}
	out := queryOut{Rows: []rowOut{}, Found: rows.Found, Unread: rows.Unread}
	size := 0
	for i := range rows.List {
		r := &rows.List[i]
		row := rowOut{Page: "=" + r.Page.String(), Line: r.Line, Text: notebook.Escape(r.Text), Task: string(r.Task), Date: r.Date}
		row.Title, _ = clip(notebook.EscapeLine(r.Title), maxTitle)
		row.Standing, _ = clip(notebook.EscapeLine(r.Standing), maxMessage)
		for _, tag := range r.Tags {
			row.Tags = append(row.Tags, notebook.EscapeLine(tag))
			size += len(tag)
		}
		if size += len(row.Title) + len(row.Text) + len(row.Standing); size > maxText {
			break
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

type pageAppendIn struct {
	Page     string `json:"page" jsonschema:"a page's ref or its title, or today"`
	Text     string `json:"text" jsonschema:"what to append; begin with a newline to begin a line"`
	Revision string `json:"revision,omitempty" jsonschema:"the page's revision as you read it; nothing is written if the page has another by now"`
}

type pageAppendOut struct {
	Page pageOut `json:"page"`
}

func (t *tools) pageAppend(ctx context.Context, in pageAppendIn) (pageAppendOut, error) {
	if in.Text == "" {
		return pageAppendOut{}, notebook.Errorf(notebook.CodeInvalid, "there is no text to append")
	}
	if len(in.Text) > notebook.MaxBody {
		return pageAppendOut{}, notebook.Errorf(notebook.CodeInvalid, "%d bytes are more than a page can hold", len(in.Text)).With("append less")
	}
	p, err := t.Page(ctx, in.Page)
	if err != nil {
		return pageAppendOut{}, err
	}
	if now := revision(p.Revision); in.Revision != "" && in.Revision != now {
		return pageAppendOut{}, notebook.Errorf(notebook.CodeStale, "the page has changed since you read it; its revision is %s", now).
			With("read it again with page_get")
	}
	info, err := t.Append(ctx, p.ID, in.Text, "")
	if err != nil {
		return pageAppendOut{}, err
	}
	return pageAppendOut{showPage(info)}, nil
}

// cut is the part of a list that one answer holds, and the offset of the next.
func cut[T any](list []T, offset, most int) (part []T, next int, err error) {
	if offset < 0 || offset > len(list) {
		return nil, 0, notebook.Errorf(notebook.CodeInvalid, "offset is %d, the list has %d", offset, len(list)).With("begin with 0")
	}
	part = list[offset:]
	if len(part) > most {
		return part[:most], offset + most, nil
	}
	return part, 0, nil
}

// skip is s without its first n code points; ok is false if it has fewer.
func skip(s string, n int) (rest string, ok bool) {
	if n < 0 {
		return "", false
	}
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 {
			return "", false
		}
		s = s[size:]
	}
	return s, true
}

// clip is the beginning of s that fits in most bytes, and whether that leaves any out.
func clip(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], true
}
