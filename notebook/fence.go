package notebook

import "strings"

// Span is a half-open range of byte offsets.
type Span struct{ From, To int }

// Line is one line of a fence's code: Pad spaces (what a container left of a
// tab), then the bytes of the span.
type Line struct {
	Pad  int
	Span Span
}

// Fence is a fenced code block, by byte offsets into the body it was read from.
type Fence struct {
	Whole    Span // the opening line to the closing line, or the last line that it has, with the final newline
	Open     Span // the opening delimiter run
	Info     Span // the info string, trimmed; empty where there is none
	Lines    []Line
	Close    Span   // the closing delimiter run; empty where the fence is not closed by its own line
	Language string // first word of the info string, lower case; empty if it has other characters than a-z 0-9 + . _ -
}

// Closed reports whether the fence ends with its own closing line.
func (f *Fence) Closed() bool { return f.Close.To > f.Close.From }

// Code is the fence's text as parsed: without the prefixes of lists and quotes
// and without the indentation of the opening line. Every line has its end, also
// one that the body ends without, unless nothing is left of it.
func (f *Fence) Code(body string) string {
	var b strings.Builder
	for _, l := range f.Lines {
		for range l.Pad {
			b.WriteByte(' ')
		}
		line := body[l.Span.From:l.Span.To]
		b.WriteString(line)
		if l.Pad+len(line) > 0 && !strings.HasSuffix(line, "\n") { // the last line of the body
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Part is the fence as a run, a digest and an approval take it.
func (f *Fence) Part(body string) Part {
	return Part{
		Delimiter: strings.Clone(body[f.Open.From:f.Open.To]),
		Language:  f.Language,
		Info:      strings.Clone(body[f.Info.From:f.Info.To]),
		Code:      f.Code(body),
	}
}

// languageOf reads the language from an info string.
func languageOf(info string) string {
	word, _ := cutWord(info)
	lower := []byte(word)
	for i, c := range lower {
		switch {
		case c >= 'A' && c <= 'Z':
			lower[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("+._-", c) >= 0:
		default:
			return ""
		}
	}
	return string(lower)
}

// cutWord splits an info string after its first word.
func cutWord(info string) (word, rest string) {
	if i := strings.IndexAny(info, " \t"); i >= 0 {
		return info[:i], info[i:]
	}
	return info, ""
}
