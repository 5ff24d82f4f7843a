package notebook

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
	Whole    Span // the opening line to the closing line, the final newline included
	Open     Span // the opening delimiter run
	Info     Span // the info string, trimmed; empty where there is none
	Lines    []Line
	Close    Span   // the closing delimiter run; empty where the fence is not closed by its own line
	Language string // first word of the info string, lower case; empty if it has other characters than a-z 0-9 + . _ -
}

// Closed reports whether the fence ends with its own closing line.
func (f *Fence) Closed() bool { return f.Close.To > f.Close.From }

// Part is one fence of a closure: its bytes as parsed, never a slice of the source.
type Part struct {
	_         struct{} `cbor:",toarray"`
	Delimiter string
	Language  string
	Info      string
	Code      string
}

// Closure is a fence and all that it includes, in order; the first is the fence itself.
type Closure []Part

// Hash names the exact bytes of the closure. It is what a person is shown, what
// a request to run names, and what an approval pins.
func (c Closure) Hash() Hash {
	parts := make([][]byte, 0, 4*len(c))
	for _, p := range c {
		parts = append(parts, []byte(p.Delimiter), []byte(p.Language), []byte(p.Info), []byte(p.Code))
	}
	return Digest("noted/closure/v1", parts...)
}
