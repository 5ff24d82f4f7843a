package notebook

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a query.
const (
	MaxQuery   = 1 << 10 // bytes of its text
	maxTerms   = 32
	MaxRows    = 1000      // of an answer
	MaxRowsOut = 256 << 10 // bytes of an answer as [EncodeRows] has it
)

// Query asks for blocks or pages of a notebook. Its terms stand apart by blanks,
// and all of them have to be met:
//
//	word "some words"    in the block or in the title of its page, whatever the case
//	#tag tag:NAME        of the block or of its page, or a tag below it: tag/more
//	task:todo            todo, done, or any of both
//	date:2026-11-30      a day that the block names, or else that its journal page is
//	after: before:       a day behind this one, before this one
//	page:"part"          in the title of the page
//	-term                not so
//	show:pages           pages instead of blocks: each term is met by the title or by some block
//	sort:date            instead of sort:title
//	limit:N              at most so many
//
// Single quotes do as well as double ones, which an info string cannot hold.
type Query struct {
	terms  []term
	window *window // of the days that have to be there; nil if none has to
	pages  bool
	byDate bool
	limit  int
}

// term is a condition on a block and the page that holds it.
type term struct {
	kind  termKind
	not   bool
	value string // folded; of a task its state, or empty for any
	days  window
}

type termKind uint8

const (
	termText termKind = iota
	termTag
	termTask
	termDay // only negated: the others are in the window
	termPage
)

// window is the days from one on and before another; empty for no bound. A day
// with afterwards behind it is after that day and before all later ones.
type window struct{ from, before string }

const afterwards = "~"

func (w *window) has(day string) bool {
	return day >= w.from && (w.before == "" || day < w.before)
}

// ParseQuery reads a query. The error says what is wrong with it and what to do.
func ParseQuery(text string) (*Query, error) {
	if len(text) > MaxQuery {
		return nil, badQuery("ask for less", "it has %d bytes, and %d are the most", len(text), MaxQuery)
	}
	if !utf8.ValidString(text) {
		return nil, badQuery("ask for text", "it is not UTF-8")
	}
	q := &Query{limit: MaxRows}
	set := map[string]bool{}
	n := 0
	for rest := strings.TrimLeft(text, queryBlanks); rest != ""; rest = strings.TrimLeft(rest, queryBlanks) {
		if n++; n > maxTerms {
			return nil, badQuery("ask for less at once", "it has more than %d terms", maxTerms)
		}
		word, after, err := cutTerm(rest)
		if err != nil {
			return nil, err
		}
		if err := q.add(word, set); err != nil {
			return nil, err
		}
		rest = after
	}
	if n == 0 {
		return nil, badQuery("name a word, a #tag, or task:todo; show:pages asks for every page", "it is empty")
	}
	if w := q.window; w != nil && w.before != "" && w.from >= w.before {
		return nil, badQuery("take one of them out", "no day meets all its date:, after: and before:")
	}
	return q, nil
}

const (
	queryBlanks = " \t\n"
	quotes      = `"'`
)

func badQuery(hint, format string, args ...any) error {
	return Errorf(CodeInvalid, "the query cannot be read: "+format, args...).With("%s", hint)
}

// queryTerm is one term as it is written.
type queryTerm struct {
	not   bool
	key   string // before a colon; # of a tag; empty of text
	value string
}

// cutTerm reads the term at the beginning of s, which is no blank.
func cutTerm(s string) (t queryTerm, rest string, err error) {
	if s[0] == '-' {
		t.not, s = true, s[1:]
	}
	if s != "" && s[0] == '#' {
		t.key, s = "#", s[1:]
	} else if n := strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }); n > 0 && s[n] == ':' {
		t.key, s = s[:n], s[n+1:]
	}
	if s != "" && strings.IndexByte(quotes, s[0]) >= 0 {
		var closed bool
		if t.value, rest, closed = strings.Cut(s[1:], s[:1]); !closed {
			return t, "", badQuery("close it, or quote it with the other kind of quotes", "a quote is not closed: %s", quoted(s))
		}
		if rest != "" && strings.IndexByte(queryBlanks, rest[0]) < 0 {
			return t, "", badQuery("put a blank there", "%s follows a closing quote", quoted(rest))
		}
	} else {
		end := strings.IndexAny(s, queryBlanks)
		if end < 0 {
			end = len(s)
		}
		t.value, rest = s[:end], s[end:]
		if strings.Contains(t.value, `"`) {
			return t, "", badQuery("quote all of it, with single quotes", "a quote stands within %s", quoted(t.value))
		}
	}
	if t.value = strings.Trim(t.value, queryBlanks); t.value == "" {
		return t, "", badQuery(`write what is looked for behind it, as in -draft, #project or page:"some title"`, "a term has no value")
	}
	return t, rest, nil
}

// add takes a term into the query.
func (q *Query) add(t queryTerm, set map[string]bool) error {
	condition := func(k termKind, value string) {
		q.terms = append(q.terms, term{kind: k, not: t.not, value: value})
	}
	switch t.key {
	case "":
		condition(termText, foldText(t.value))
	case "#", "tag":
		condition(termTag, foldText(strings.TrimPrefix(t.value, "#")))
	case "page":
		condition(termPage, foldText(t.value))
	case "task":
		state := Task(t.value)
		if state == "any" {
			state = NoTask
		} else if state != Todo && state != Done {
			return badQuery("it is task:todo, task:done or task:any", "%s is no state of a task", quoted(t.value))
		}
		condition(termTask, string(state))
	case "date", "after", "before":
		return q.addDay(t)
	case "limit", "sort", "show":
		if t.not || set[t.key] {
			return badQuery("say it once, without a minus", "%s: is not a condition", t.key)
		}
		set[t.key] = true
		return q.setOutput(t)
	default:
		return badQuery(`the keys are tag, task, date, after, before, page, show, sort and limit; put text with a colon in quotes`,
			"it has a key %s:, which this noted does not know", quoted(t.key))
	}
	return nil
}

func (q *Query) addDay(t queryTerm) error {
	if !isDate(t.value) {
		return badQuery("write a day as 2026-11-30", "%s is no day", quoted(t.value))
	}
	w := window{from: t.value, before: t.value + afterwards}
	switch t.key {
	case "after":
		w = window{from: t.value + afterwards}
	case "before":
		w = window{before: t.value}
	}
	if t.not {
		q.terms = append(q.terms, term{kind: termDay, not: true, days: w})
		return nil
	}
	if q.window == nil {
		q.window = &window{}
	}
	q.window.from = max(q.window.from, w.from)
	if w.before != "" && (q.window.before == "" || w.before < q.window.before) {
		q.window.before = w.before
	}
	return nil
}

// setOutput takes a term that says what is answered.
func (q *Query) setOutput(t queryTerm) error {
	switch t.key + ":" + t.value {
	case "show:pages":
		q.pages = true
	case "sort:date":
		q.byDate = true
	case "show:blocks", "sort:title":
	default:
		n, err := strconv.ParseUint(t.value, 10, 16)
		if t.key != "limit" {
			return badQuery("it is show:blocks or show:pages, and sort:title or sort:date", "%s:%s is not known", t.key, quoted(t.value))
		}
		if err != nil || n < 1 || n > MaxRows {
			return badQuery("write limit:20, for example", "a limit is a number from 1 to %d, not %s", MaxRows, quoted(t.value))
		}
		q.limit = int(n)
	}
	return nil
}

// foldText is text as it is looked for and looked at: simple case folded, each
// blank a space.
func foldText(s string) string { return string(appendFolded(nil, s)) }

func appendFolded(b []byte, s string) []byte {
	b = slices.Grow(b, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, fold(r))
			i += size
			continue
		}
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '\t' || c == '\n':
			c = ' '
		}
		b = append(b, c)
		i++
	}
	return b
}
