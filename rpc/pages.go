package rpc

import (
	"noted/notebook"
	"noted/rpc/notedv1"
)

// The values that a request's Via may have.
const (
	viaStdin  = "stdin"
	viaEditor = "editor"
)

func readVia(r *reader, s string) string { return word(r, "via", s, viaStdin, viaEditor) }

func writePageInfo(p *notebook.PageInfo) *notedv1.PageInfo {
	return &notedv1.PageInfo{
		Id:       idBytes(p.ID),
		Title:    text(p.Title),
		Revision: writeRevision(p.Revision),
		Size:     int64(p.Size),
		Fences:   int64(p.Fences),
		Changed:  timestamp(p.Changed),
		Deleted:  p.Deleted,
		Notes:    texts(p.Notes),
	}
}

func readPageInfo(r *reader, m *notedv1.PageInfo) notebook.PageInfo {
	return notebook.PageInfo{
		ID:       id[notebook.PageID](r, "id", m.GetId()),
		Title:    m.GetTitle(),
		Revision: within(r, "revision", m.GetRevision(), readRevision),
		Size:     r.integer("size", m.GetSize()),
		Fences:   r.integer("fences", m.GetFences()),
		Changed:  r.time("changed", m.GetChanged()),
		Deleted:  m.GetDeleted(),
		Notes:    m.GetNotes(),
	}
}

func writePageView(p *notebook.PageView) *notedv1.PageView {
	return &notedv1.PageView{Info: writePageInfo(&p.PageInfo), Body: text(p.Body), Fences: all(p.Fences, writeFenceInfo)}
}

func readPageView(r *reader, m *notedv1.PageView) notebook.PageView {
	return notebook.PageView{
		PageInfo: within(r, "info", m.GetInfo(), readPageInfo),
		Body:     m.GetBody(),
		Fences:   every(r, "fences", m.GetFences(), readFenceInfo),
	}
}

func writeRows(v *notebook.Rows) *notedv1.QueryResponse {
	m := &notedv1.QueryResponse{Rows: all(v.List, writeRow), Found: int64(v.Found), Unread: int64(v.Unread)}
	for _, page := range v.Damaged {
		m.Damaged = append(m.Damaged, page[:])
	}
	return m
}

func readRows(r *reader, m *notedv1.QueryResponse) notebook.Rows {
	v := notebook.Rows{List: every(r, "rows", m.GetRows(), readRow), Found: r.integer("found", m.GetFound()), Unread: r.integer("unread", m.GetUnread())}
	for _, page := range m.GetDamaged() {
		v.Damaged = append(v.Damaged, id[notebook.PageID](r, "damaged", page))
	}
	return v
}

func writeRow(w *notebook.Row) *notedv1.Row {
	return &notedv1.Row{
		Page: idBytes(w.Page), Title: text(w.Title), Line: int64(w.Line), Text: text(w.Text), Tags: texts(w.Tags),
		Task: string(w.Task), Date: text(w.Date), Standing: text(w.Standing),
	}
}

func readRow(r *reader, m *notedv1.Row) notebook.Row {
	return notebook.Row{
		Page:  id[notebook.PageID](r, "page", m.GetPage()),
		Title: m.GetTitle(), Line: r.integer("line", m.GetLine()), Text: m.GetText(), Tags: m.GetTags(),
		Task: word(r, "task", m.GetTask(), notebook.Todo, notebook.Done), Date: m.GetDate(), Standing: m.GetStanding(),
	}
}

func writeSplice(s *notebook.Splice) *notedv1.Splice {
	return &notedv1.Splice{At: int64(s.At), Delete: int64(s.Delete), Insert: s.Insert}
}

func readSplice(r *reader, m *notedv1.Splice) notebook.Splice {
	return notebook.Splice{At: r.integer("at", m.GetAt()), Delete: r.integer("delete", m.GetDelete()), Insert: m.GetInsert()}
}

func writeEdit(e *notebook.Edit) *notedv1.Edit {
	return &notedv1.Edit{Page: idBytes(e.Page), Base: writeRevision(e.Base), Splices: all(e.Splices, writeSplice), Via: e.Via}
}

func readEdit(r *reader, m *notedv1.Edit) notebook.Edit {
	return notebook.Edit{
		Page:    neededID[notebook.PageID](r, "page", m.GetPage()),
		Base:    needed(r, "base", m.GetBase(), readRevision),
		Splices: every(r, "splices", m.GetSplices(), readSplice),
		Via:     readVia(r, m.GetVia()),
	}
}

func writePut(p *notebook.Put) *notedv1.Put {
	return &notedv1.Put{
		Page:     idBytes(p.Page),
		Base:     writeRevision(p.Base),
		Body:     p.Body,
		Via:      p.Via,
		AsTyped:  p.AsTyped,
		Presence: writePresence(p.Presence),
	}
}

func readPut(r *reader, m *notedv1.Put) notebook.Put {
	return notebook.Put{
		Page:     neededID[notebook.PageID](r, "page", m.GetPage()),
		Base:     needed(r, "base", m.GetBase(), readRevision),
		Body:     m.GetBody(),
		Via:      readVia(r, m.GetVia()),
		AsTyped:  m.GetAsTyped(),
		Presence: within(r, "presence", m.GetPresence(), readPresence),
	}
}

func writeImportReport(p *notebook.ImportReport) *notedv1.ImportReport {
	return &notedv1.ImportReport{
		Source: text(p.Source),
		Files:  int64(p.Files),
		Pages:  int64(p.Pages),
		Fences: int64(p.Fences),
		Bytes:  p.Bytes,
		Lines:  all(p.Lines, writeImportLine),
	}
}

func readImportReport(r *reader, m *notedv1.ImportReport) notebook.ImportReport {
	return notebook.ImportReport{
		Source: m.GetSource(),
		Files:  r.integer("files", m.GetFiles()),
		Pages:  r.integer("pages", m.GetPages()),
		Fences: r.integer("fences", m.GetFences()),
		Bytes:  m.GetBytes(),
		Lines:  every(r, "lines", m.GetLines(), readImportLine),
	}
}

func writeImportLine(l *notebook.ImportLine) *notedv1.ImportLine {
	return &notedv1.ImportLine{Path: text(l.Path), Taken: l.Taken, Reason: text(l.Reason)}
}

func readImportLine(_ *reader, m *notedv1.ImportLine) notebook.ImportLine {
	return notebook.ImportLine{Path: m.GetPath(), Taken: m.GetTaken(), Reason: m.GetReason()}
}
