package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"noted/notebook"
)

// Rules of this file: data goes to stdout and talk to stderr; every string that
// a page, a peer, an agent or a fence may have chosen is escaped on its way to
// a person, here and nowhere else, so that no command can forget it; JSON holds
// the exact text. Colour says nothing that the words do not say.

// envelope is what --json writes: one, or for commands that stream, one a line.
type envelope struct {
	OK    bool       `json:"ok"`
	Data  any        `json:"data,omitempty"`
	Error *errorJSON `json:"error,omitempty"`
}

type errorJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// envelope writes e on one line. Characters that could confuse a terminal are
// written as escapes, which every JSON reader turns back into themselves.
func (a *app) envelope(e envelope) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := io.WriteString(a.stdout, plainJSON(b.String()))
	return err
}

// plainJSON writes every character of encoded JSON that is not visible as an
// escape. Outside of strings JSON has no such characters.
func plainJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == ' ' || (unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r)):
			b.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// answer writes what a command found: data under --json, otherwise the text
// that show writes.
func (a *app) answer(data any, show func(*text)) error {
	if a.json {
		return a.envelope(envelope{OK: true, Data: data})
	}
	t := a.text()
	show(t)
	return t.flush()
}

// say tells the person something that is not the answer.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", escaped(args)...)
}

// note is [app.say] where no JSON was asked for.
func (a *app) note(format string, args ...any) {
	if !a.json {
		a.say(format, args...)
	}
}

func (a *app) text() *text {
	return &text{out: a.stdout, colour: isTerminal(a.stdout) && a.env["NO_COLOR"] == "" && a.env["TERM"] != "dumb"}
}

// isTerminal reports whether stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// text collects what a person is to read.
type text struct {
	out    io.Writer
	buf    bytes.Buffer
	colour bool
}

func (t *text) flush() error {
	_, err := t.buf.WriteTo(t.out)
	return err
}

// line writes one line. Arguments are escaped; only format may hold line ends.
func (t *text) line(format string, args ...any) {
	fmt.Fprintf(&t.buf, format+"\n", escaped(args)...)
}

// block writes s, whose lines stay lines, with prefix before each.
func (t *text) block(prefix, s string) {
	if s == "" {
		return
	}
	for line := range strings.SplitSeq(notebook.Escape(strings.TrimSuffix(s, "\n")), "\n") {
		t.buf.WriteString(prefix)
		t.buf.WriteString(line)
		t.buf.WriteByte('\n')
	}
}

// flow writes a piece of a text that comes bit by bit, with prefix before each
// line. Open says that the last line of the piece before has not ended, and is
// returned for this one.
func (t *text) flow(prefix, s string, open bool) bool {
	for line := range strings.Lines(notebook.Escape(s)) {
		if !open {
			t.buf.WriteString(prefix)
		}
		t.buf.WriteString(line)
		open = !strings.HasSuffix(line, "\n")
	}
	return open
}

// piece is a part of a text in a colour of its own.
type piece struct {
	text   string
	colour colour
}

// pieces writes a text that is made of pieces, as [text.block] writes one.
func (t *text) pieces(prefix string, pieces []piece) {
	begun := false
	for _, p := range pieces {
		for i, line := range strings.Split(notebook.Escape(p.text), "\n") {
			if i > 0 {
				if !begun {
					t.buf.WriteString(prefix)
				}
				t.buf.WriteByte('\n')
				begun = false
			}
			if line == "" {
				continue
			}
			if !begun {
				t.buf.WriteString(prefix)
				begun = true
			}
			t.buf.WriteString(string(t.sgr(p.colour, line)))
		}
	}
	if begun {
		t.buf.WriteByte('\n')
	}
}

// table writes aligned columns; the first row names them.
func (t *text) table(rows ...[]string) { t.colouredTable(func(int) colour { return "" }, rows...) }

// colouredTable is a table whose rows have colours.
func (t *text) colouredTable(of func(row int) colour, rows ...[]string) {
	var plain bytes.Buffer
	w := tabwriter.NewWriter(&plain, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, notebook.EscapeLine(cell))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	for row := range len(rows) {
		line, _ := plain.ReadString('\n') // a cell has no line end
		t.buf.WriteString(string(t.sgr(of(row), strings.TrimSuffix(line, "\n"))))
		t.buf.WriteByte('\n')
	}
}

// colour is an SGR parameter.
type colour string

const (
	red     colour = "31"
	green   colour = "32"
	yellow  colour = "33"
	blue    colour = "34"
	magenta colour = "35"
	cyan    colour = "36"
	dim     colour = "2"
	bold    colour = "1"

	struck colour = ";9" // put behind another one
)

// safe is text that is already escaped.
type safe string

// paint escapes s and colours it where the output has colours.
func (t *text) paint(c colour, s string) safe { return t.sgr(c, notebook.EscapeLine(s)) }

// sgr colours s, which is escaped already.
func (t *text) sgr(c colour, s string) safe {
	if !t.colour || c == "" {
		return safe(s)
	}
	return safe("\x1b[" + string(c) + "m" + s + "\x1b[0m")
}

// escaped makes arguments of a format fit for a terminal line.
func escaped(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case safe:
			out[i] = string(v)
		case string:
			out[i] = notebook.EscapeLine(v)
		case error:
			out[i] = notebook.EscapeLine(v.Error())
		case fmt.Stringer:
			out[i] = notebook.EscapeLine(v.String())
		default:
			if out[i] = v; reflect.ValueOf(v).Kind() == reflect.String {
				out[i] = notebook.EscapeLine(reflect.ValueOf(v).String())
			}
		}
	}
	return out
}

// when is a time as a person reads it, in the zone of this machine.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// size is a number of bytes as a person reads it.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// clip shortens s to at most most characters.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// readAll reads text from r up to most bytes; more is refused by name.
func readAll(r io.Reader, most int) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the text: %w", err)
	}
	if len(b) > most {
		return "", notebook.Errorf(notebook.CodeInvalid, "the text is larger than %s, the most that a page holds", size(int64(most))).
			With("split it over several pages")
	}
	s, err := notebook.NormalizeText(string(b))
	if err != nil {
		if e, ok := errors.AsType[*notebook.Error](err); ok {
			return "", e
		}
		return "", notebook.Errorf(notebook.CodeInvalid, "%v", err)
	}
	return s, nil
}
