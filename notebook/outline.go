package notebook

import (
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Block is the smallest part of a page that a query answers with: a list item, a
// heading, a paragraph, or a fenced code block, each with the lines that go on
// with it. What it finds is for listing; where a fence begins, and what runs, is
// for [Fences] alone to say.
type Block struct {
	Line  int      // of its first line, from 1
	Span  Span     // its lines in the body, without the last line end
	Text  string   // without the marks of lists, quotes, headings and tasks; of code, as it stands
	Task  Task     // none of most
	Tags  []string // as written, without the #; in the order of the text, each once
	Dates []string // as 2006-01-02, in the order of the text
}

// Task is the state of a block that is one.
type Task string

const (
	NoTask Task = ""
	Todo   Task = "todo"
	Done   Task = "done"
)

// taskWords begin a block that is a task, as outliners write them.
var taskWords = map[string]Task{
	"TODO": Todo, "DOING": Todo, "NOW": Todo, "LATER": Todo, "WAIT": Todo, "WAITING": Todo,
	"DONE": Done, "CANCELED": Done, "CANCELLED": Done,
}

const (
	maxTag    = 128 // bytes; what is longer is no tag
	maxMarker = 9   // digits of a list item's number
)

// PageTags are the tags that a page gives itself, and where they stand.
type PageTags struct {
	Tags []string
	Span Span
}

// Outline yields the blocks of a page's body that have text, in order, in time
// linear in the body, each with the tags that the page gives itself: those of the
// front matter, or of lines like "tags:: a, b" in its first block. Both are good
// until the next block.
func Outline(body string) iter.Seq2[*Block, *PageTags] {
	return func(yield func(*Block, *PageTags) bool) {
		o := outliner{body: body, yield: yield, first: true}
		if n := frontMatter(body); n > 0 {
			o.frontTags(body[:n])
			o.tags.Span = Span{0, n}
		}
		for o.at < len(body) && !o.over {
			o.line()
		}
		o.end()
	}
}

type outliner struct {
	body   string
	at     int // where the next line begins
	number int // of the line before, from 1
	tags   PageTags
	first  bool // no block was there yet
	yield  func(*Block, *PageTags) bool
	over   bool

	open   bool
	block  Block
	text   string // its first line
	more   []byte // all of it, once it has another one
	listed bool   // the block is a list item
	fence  string // the run that opened a code block; empty outside of one
}

// line reads one line of the body.
func (o *outliner) line() {
	from, to := o.at, len(o.body)
	if n := strings.IndexByte(o.body[from:], '\n'); n >= 0 {
		to = from + n
	}
	o.at, o.number = to+1, o.number+1
	line := o.body[from:to]
	if o.fence != "" {
		o.goOn(line, to)
		if rest := strings.Trim(line, "> \t"); len(rest) >= len(o.fence) && strings.Trim(rest, o.fence[:1]) == "" {
			o.end()
		}
		return
	}
	rest, marked, heading := unmark(line)
	run := fenceRun(rest)
	switch {
	case rest == "" || isRule(rest):
		o.end()
	case run != "":
		o.end()
		o.begin(from)
		o.fence = run
		o.goOn(line, to)
	case marked || heading || !o.open:
		o.end()
		o.begin(from)
		o.listed = marked
		o.goOn(rest, to)
		if heading {
			o.end()
		}
	default:
		o.goOn(rest, to)
	}
}

func (o *outliner) begin(from int) {
	o.open, o.block = true, Block{Line: o.number, Span: Span{From: from, To: from}}
	o.text, o.more = "", o.more[:0]
}

func (o *outliner) goOn(text string, to int) {
	switch {
	case o.block.Span.To == o.block.Span.From:
		o.text = text
	case len(o.more) == 0:
		o.more = append(append(append(o.more, o.text...), '\n'), text...)
	default:
		o.more = append(append(o.more, '\n'), text...)
	}
	o.block.Span.To = to
}

// end ends the block that is open, if there is one.
func (o *outliner) end() {
	if !o.open {
		return
	}
	b := &o.block
	text := o.text
	if len(o.more) > 0 {
		text = string(o.more)
	}
	text = strings.TrimRight(text, " \t\n")
	if o.fence == "" {
		b.Task, text = task(text, o.listed)
		b.Tags, b.Dates = inlineTags(text), dates(text)
	}
	if b.Text = text; text != "" && !o.over {
		if o.first && len(o.tags.Tags) == 0 {
			o.properties(text)
			o.tags.Span = b.Span
		}
		o.first = false
		o.over = !o.yield(b, &o.tags)
	}
	o.open, o.fence = false, ""
}

// unmark takes the marks of quotes, one list item and a heading from a line.
func unmark(line string) (rest string, marked, heading bool) {
	rest = strings.TrimLeft(strings.TrimRight(line, blanks), "> \t")
	if n := itemMark(rest); n > 0 {
		marked, rest = true, strings.TrimLeft(rest[n:], "> \t")
	}
	if n := len(rest) - len(strings.TrimLeft(rest, "#")); n > 0 && n <= 6 && (n == len(rest) || isBlank(rest[n])) {
		heading, rest = true, strings.Trim(rest[n:], blanks)
	}
	return rest, marked, heading
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// itemMark is the length of the mark that makes a line a list item, 0 if it is none.
func itemMark(line string) int {
	n := 0
	for n < len(line) && n < maxMarker && isDigit(line[n]) {
		n++
	}
	marks := "-*+"
	if n > 0 {
		marks = ".)"
	}
	if n == len(line) || strings.IndexByte(marks, line[n]) < 0 {
		return 0
	}
	if n++; n == len(line) || isBlank(line[n]) {
		return n
	}
	return 0
}

// isRule reports whether a line is made of one mark, so that it has no text.
func isRule(line string) bool {
	return len(line) >= 3 && strings.IndexByte("-=*_", line[0]) >= 0 && strings.Trim(line, line[:1]+" \t") == ""
}

// fenceRun is the run that would open a fenced code block; empty if none does.
func fenceRun(line string) string {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && (c == "~" || !strings.Contains(line[n:], c)) {
			return line[:n]
		}
	}
	return ""
}

// task takes the mark of a task from the beginning of a block's text.
func task(text string, listed bool) (Task, string) {
	if listed && len(text) >= 3 && text[0] == '[' && text[2] == ']' && (len(text) == 3 || isBlank(text[3]) || text[3] == '\n') {
		switch rest := strings.TrimLeft(text[3:], " \t\n"); text[1] {
		case ' ':
			return Todo, rest
		case 'x', 'X':
			return Done, rest
		}
	}
	word, rest := text, ""
	if i := strings.IndexAny(text[:min(len(text), 16)], " \t\n"); i >= 0 {
		word, rest = text[:i], strings.TrimLeft(text[i:], " \t\n")
	}
	if t := taskWords[word]; t != NoTask {
		return t, rest
	}
	return NoTask, text
}

// inlineTags are the tags of a text: #word or #[[some words]] at its beginning or
// behind a blank or an opening bracket, not between backticks of one line. A tag
// is made of letters, marks, digits, _, - and /, and not of digits alone.
func inlineTags(text string) (tags []string) {
	if strings.IndexByte(text, '#') < 0 {
		return nil
	}
	code, before := false, ' '
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case r == '`':
			code = !code
		case r == '\n':
			code = false
		case r == '#' && !code && (unicode.IsSpace(before) || strings.ContainsRune("([{", before)):
			tag, n := cutTag(text[i+1:])
			if tag != "" {
				tags = addTag(tags, tag)
			}
			if n > 0 {
				i, before = i+1+n, 'x'
				continue
			}
		}
		i, before = i+size, r
	}
	return tags
}

// cutTag reads the tag behind a #, and says how many bytes it takes.
func cutTag(s string) (tag string, n int) {
	if inner, ok := strings.CutPrefix(s, "[["); ok {
		if end := strings.Index(inner[:min(len(inner), maxTag+2)], "]]"); end > 0 && !strings.ContainsAny(inner[:end], "[#\n") {
			return strings.TrimSpace(inner[:end]), end + 4
		}
		return "", 0
	}
	n = strings.IndexFunc(s, func(r rune) bool { return !inTag(r) })
	if n < 0 {
		n = len(s)
	}
	tag = strings.Trim(s[:n], "/-")
	if len(tag) > maxTag || strings.Trim(tag, "0123456789") == "" {
		return "", n
	}
	return tag, n
}

func inTag(r rune) bool {
	return r == '_' || r == '-' || r == '/' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

// maxTags is how many tags of a block or a page are known: more than anybody
// gives, few enough to compare each with each.
const maxTags = 64

func addTag(tags []string, tag string) []string {
	if len(tags) >= maxTags || slices.Contains(tags, tag) {
		return tags
	}
	return append(tags, tag)
}

// dates are the days that a text names as 2006-01-02, not within a longer number.
func dates(text string) (found []string) {
	const size = len(time.DateOnly)
	for i := 0; i+size <= len(text); i++ {
		n := strings.IndexByte(text[i:], '-')
		if n < 0 {
			break
		}
		from := i + n - 4
		if i += n; from < 0 || from+size > len(text) {
			continue
		}
		day := text[from : from+size]
		if isDate(day) && (from == 0 || !isDigit(text[from-1])) && (from+size == len(text) || !isDigit(text[from+size])) {
			found = append(found, day)
			i = from + size - 1
		}
	}
	return found
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isDate reports whether s is a day of the calendar, as 2006-01-02.
func isDate(s string) bool {
	if len(s) != len(time.DateOnly) || s[4] != '-' || s[7] != '-' {
		return false
	}
	number := func(digits string) (n int) {
		for i := range len(digits) {
			if !isDigit(digits[i]) {
				return -1
			}
			n = 10*n + int(digits[i]-'0')
		}
		return n
	}
	year, month, day := number(s[:4]), number(s[5:7]), number(s[8:])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > 31 {
		return false
	}
	return day <= 28 || time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() == day
}

// frontMatter is the length of the block between two lines of --- that begins a
// body, 0 if none does.
func frontMatter(body string) int {
	rest, ok := strings.CutPrefix(body, "---\n")
	if !ok {
		return 0
	}
	end := strings.Index("\n"+rest, "\n---\n")
	if end < 0 {
		return 0
	}
	return len("---\n") + end
}

// frontTags reads "tags: a, b", "tags: [a, b]" and "tags:" with a list of lines.
func (o *outliner) frontTags(front string) {
	listing := false
	for line := range strings.Lines(front) {
		line = strings.TrimRight(line, " \t\n")
		key, value, ok := strings.Cut(line, ":")
		item, isItem := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- ")
		switch {
		case ok && isTags(key):
			o.takeTags(value)
			listing = strings.TrimSpace(value) == ""
		case listing && isItem:
			o.takeTags(item)
		default:
			listing = false
		}
	}
}

// properties reads the lines "tags:: a, b" of the page's first block.
func (o *outliner) properties(text string) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, "::"); ok && isTags(key) {
			o.takeTags(value)
		}
	}
}

func isTags(key string) bool { return strings.EqualFold(key, "tags") || strings.EqualFold(key, "tag") }

// takeTags reads a list of tags, apart by commas or blanks.
func (o *outliner) takeTags(list string) {
	list = strings.Trim(list, " \t\n[]")
	words := strings.Split(list, ",")
	if len(words) == 1 && !strings.Contains(list, "[[") {
		words = strings.Fields(list)
	}
	for _, w := range words {
		w = strings.Trim(w, " \t\"'#[]")
		if w != "" && len(w) <= maxTag {
			o.tags.Tags = addTag(o.tags.Tags, w)
		}
	}
}
