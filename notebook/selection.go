package notebook

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Row is one answer to a query: a block, or a page.
type Row struct {
	Page  PageID
	Title string   // of the page
	Line  int      // of the block's first line, from 1; 0 of a page
	Text  string   // of the block, or its beginning; empty of a page
	Tags  []string // of the block and of its page; of a page, all
	Task  Task     // of a page todo while one of its blocks is, else done where one is
	Date  string   // the first day that the query asks for, or the first at all; empty if there is none

	Authors  Origin // who has a hand in any of this
	Standing string // of all of it, as this device calls them: "local", or the foreign authors
}

// Rows is the answer to a query.
type Rows struct {
	List  []Row
	Found int // how many there were, also those that are not in List

	// Unread is how many pages could not be read, because what is kept of them is
	// damaged: what they hold is not in the answer. Damaged are the first of them.
	Unread  int
	Damaged []PageID
}

// MaxDamaged is how many damaged pages an answer names.
const MaxDamaged = 20

// Authors are those of all rows together.
func (r *Rows) Authors() (all Origin) {
	var authors []Author
	for i := range r.List {
		authors = append(authors, r.List[i].Authors...)
	}
	return NewOrigin(authors...)
}

// maxRowText is how many bytes of a block are in its row.
const maxRowText = 2 << 10

// Selection looks pages through for a query and keeps the first of what it finds
// in the query's order, whatever the order of the pages.
type Selection struct {
	query  *Query
	kept   []ranked
	found  int
	last   *ranked // what is behind it is not kept; nil while all is
	folded []byte  // of the page
	block  []byte  // folded

	unread  int
	damaged []PageID
	before  *before // the page that is being looked through; nil between two
}

// before is what a selection was before a page, which counts for nothing if it
// cannot be read to its end.
type before struct {
	found int
	kept  int      // how much of what is kept was there, while nothing was dropped since
	list  []ranked // what was kept, once something was
	last  *ranked
	wrong error // why the page cannot be read
}

type ranked struct {
	Row
	key string // of the title
}

// Select begins a selection.
func (q *Query) Select() *Selection { return &Selection{query: q} }

// Look looks one page through. It asks for the authors of what a row holds by the
// spans of the body, beside who gave the page its title, for rows that it keeps.
// Where they cannot be told, nothing of the page is in the selection, and the error
// is returned. Its time is linear in the page.
func (s *Selection) Look(id PageID, title, body string, authors func([]Span) (Origin, error)) error {
	b := &before{found: s.found, kept: len(s.kept), last: s.last}
	s.before = b
	s.look(id, title, body, func(spans []Span) Origin {
		if b.wrong != nil {
			return nil
		}
		var origin Origin
		origin, b.wrong = authors(spans)
		return origin
	})
	s.before = nil
	if b.wrong == nil {
		return nil
	}
	if b.list == nil {
		clear(s.kept[b.kept:])
		b.list = s.kept[:b.kept]
	}
	s.found, s.kept, s.last = b.found, b.list, b.last
	return b.wrong
}

// Missed counts a page that could not be read.
func (s *Selection) Missed(id PageID) {
	if s.unread++; len(s.damaged) < MaxDamaged {
		s.damaged = append(s.damaged, id)
	}
}

func (s *Selection) look(id PageID, title, body string, authors func([]Span) Origin) {
	p := &looked{id: id, title: title, fold: foldText(title)}
	if isDate(title) {
		p.day = []string{title}
	}
	if !s.perhaps(p, body) {
		return
	}
	if s.query.pages {
		s.lookPage(p, body, authors)
		return
	}
	var tagged Origin // who wrote the page's own tags, which every row of it has
	known := false
	for b, tags := range Outline(body) {
		if p.meets == nil {
			p.meets = s.pageMeets(p, tags.Tags)
		}
		if !s.meets(p, b) {
			continue
		}
		row := ranked{Row: Row{
			Page: id, Title: title, Line: b.Line, Text: b.Text, Task: b.Task, Date: s.first("", p.days(b)),
		}}
		s.keep(p, row, func(row *Row) {
			row.Tags = slices.Clone(b.Tags)
			for _, tag := range tags.Tags {
				row.Tags = addTag(row.Tags, tag)
			}
			if !known && len(tags.Tags) > 0 {
				tagged, known = authors([]Span{tags.Span}), true
			}
			row.Authors = authors([]Span{b.Span}).Union(tagged)
		})
		if s.before.wrong != nil {
			return
		}
	}
}

// looked is a page that is being looked through.
type looked struct {
	id    PageID
	title string
	fold  string   // of the title
	day   []string // of a journal page, alone
	key   string   // of the title; empty until it is needed
	meets []bool   // by term: the page's title or its own tags meet it, whatever the block
}

// days are those of a block, or else of its journal page.
func (p *looked) days(b *Block) []string {
	if len(b.Dates) == 0 {
		return p.day
	}
	return b.Dates
}

// perhaps reports whether the page can have an answer: every word and tag that
// has to be there is somewhere in it.
func (s *Selection) perhaps(p *looked, body string) bool {
	ready := false
	in := func(word string) bool {
		if !ready {
			s.folded, ready = appendFolded(s.folded[:0], body), true
		}
		return bytes.Contains(s.folded, []byte(word))
	}
	for i := range s.query.terms {
		switch t := &s.query.terms[i]; {
		case t.not:
		case t.kind == termPage && !strings.Contains(p.fold, t.value):
			return false
		case t.kind == termText && !strings.Contains(p.fold, t.value):
			// A block is without the marks of its lines, so words are looked for one by one.
			for _, word := range strings.Fields(t.value) {
				if !in(word) {
					return false
				}
			}
		case t.kind == termTag && !in(t.value):
			return false
		}
	}
	return true
}

// pageMeets says which terms, their minus apart, a page's title or the tags that it
// gives itself meet. It is found out once a page: what each of many blocks would
// compare again is up to who wrote the page and the query.
func (s *Selection) pageMeets(p *looked, tags []string) []bool {
	meets := make([]bool, len(s.query.terms))
	for i := range s.query.terms {
		switch t := &s.query.terms[i]; t.kind {
		case termPage, termText:
			meets[i] = strings.Contains(p.fold, t.value)
		case termTag:
			meets[i] = slices.ContainsFunc(tags, t.names)
		}
	}
	return meets
}

// meets reports whether a block meets all terms.
func (s *Selection) meets(p *looked, b *Block) bool {
	ready := false
	for i := range s.query.terms {
		if s.holds(i, p, b, &ready) == s.query.terms[i].not {
			return false
		}
	}
	return s.query.window == nil || slices.ContainsFunc(p.days(b), s.query.window.has)
}

// holds reports whether the ith term, its minus apart, holds of a block. The folded
// text of the block is made when it is first needed.
func (s *Selection) holds(i int, p *looked, b *Block, ready *bool) bool {
	if p.meets[i] {
		return true
	}
	t := &s.query.terms[i]
	switch t.kind {
	case termPage:
		return false
	case termTask:
		return b.Task != NoTask && (t.value == "" || string(b.Task) == t.value)
	case termTag:
		return slices.ContainsFunc(b.Tags, t.names)
	case termDay:
		return slices.ContainsFunc(p.days(b), t.days.has)
	}
	if !*ready {
		s.block, *ready = appendFolded(s.block[:0], b.Text), true
	}
	return bytes.Contains(s.block, []byte(t.value))
}

// names reports whether the term asks for a tag, or for one above it.
func (t *term) names(tag string) bool {
	rest, found := strings.CutPrefix(foldText(tag), t.value)
	return found && (rest == "" || rest[0] == '/')
}

// first is the first day that the query asks for, or else the first, of day and
// those that follow it.
func (s *Selection) first(day string, days []string) string {
	w := s.query.window
	for _, d := range days {
		if day == "" || w != nil && !w.has(day) && w.has(d) {
			day = d
		}
	}
	return day
}

// lookPage is [Selection.Look] for pages as a whole.
func (s *Selection) lookPage(p *looked, body string, authors func([]Span) Origin) {
	row := ranked{Row: Row{Page: p.id, Title: p.title, Date: s.first("", p.day)}}
	held := make([]bool, len(s.query.terms))
	look := func(b *Block) {
		ready := false
		for k := range s.query.terms {
			held[k] = held[k] || s.holds(k, p, b, &ready)
		}
		if row.Task != Todo && b.Task != NoTask {
			row.Task = b.Task
		}
		for _, tag := range b.Tags {
			row.Tags = addTag(row.Tags, tag)
		}
		row.Date = s.first(row.Date, b.Dates)
	}
	p.meets = s.pageMeets(p, nil)
	look(&Block{}) // the title answers alone
	first := true
	for b, tags := range Outline(body) {
		if first {
			first, p.meets, row.Tags = false, s.pageMeets(p, tags.Tags), slices.Clone(tags.Tags)
		}
		look(b)
	}
	for k := range s.query.terms {
		if held[k] == s.query.terms[k].not {
			return
		}
	}
	if w := s.query.window; w != nil && (row.Date == "" || !w.has(row.Date)) {
		return
	}
	s.keep(p, row, func(row *Row) { row.Authors = authors([]Span{{0, len(body)}}) })
}

// keep counts a row, and keeps it unless enough others come before it. Of one that
// is kept fill adds what takes longer to find out.
func (s *Selection) keep(p *looked, row ranked, fill func(*Row)) {
	s.found++
	if p.key == "" {
		p.key = TitleKey(p.title)
	}
	row.key = p.key
	if s.last != nil && s.compare(&row, s.last) > 0 {
		return
	}
	fill(&row.Row)
	// What is kept holds on to no more of the page than it shows.
	row.Text, row.Date = clipRow(row.Text), strings.Clone(row.Date)
	for i := range row.Tags {
		row.Tags[i] = strings.Clone(row.Tags[i])
	}
	if s.kept = append(s.kept, row); len(s.kept) >= 2*s.query.limit {
		s.shorten()
	}
}

// shorten drops what is behind the query's limit.
func (s *Selection) shorten() {
	if b := s.before; b != nil && b.list == nil { // its rows come between those that were there
		b.list = slices.Clone(s.kept[:b.kept])
	}
	slices.SortFunc(s.kept, func(a, b ranked) int { return s.compare(&a, &b) })
	if n := s.query.limit; len(s.kept) >= n {
		clear(s.kept[n:])
		s.kept = s.kept[:n]
		last := s.kept[n-1]
		s.last = &last
	}
}

func (s *Selection) compare(a, b *ranked) int {
	if s.query.byDate {
		if (a.Date == "") != (b.Date == "") { // those without a day come last
			return cmp.Compare(len(b.Date), len(a.Date))
		}
		if c := strings.Compare(a.Date, b.Date); c != 0 {
			return c
		}
	}
	return cmp.Or(strings.Compare(a.key, b.key), bytes.Compare(a.Page[:], b.Page[:]), cmp.Compare(a.Line, b.Line))
}

// Rows is what was found, in order: as many rows as the query asks for and as
// fit [MaxRowsOut].
func (s *Selection) Rows() *Rows {
	s.shorten()
	rows := &Rows{Found: s.found, Unread: s.unread, Damaged: s.damaged}
	size := rowsOverhead
	for i := range s.kept {
		row := &s.kept[i].Row
		if size += rowSize(row); size > MaxRowsOut {
			break
		}
		rows.List = append(rows.List, *row)
	}
	return rows
}

// clipRow is the beginning of a block that has room in a row.
func clipRow(text string) string {
	const more = " …"
	if len(text) <= maxRowText {
		return strings.Clone(text)
	}
	end := maxRowText - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
