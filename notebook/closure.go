package notebook

import "strings"

// Part is one fence of a closure: its bytes as parsed, never a slice of the source.
type Part struct {
	_         struct{} `cbor:",toarray"`
	Delimiter string
	Language  string
	Info      string
	Code      string
}

// Bounds of a closure.
const (
	MaxClosure      = 32       // fences
	MaxClosureBytes = 64 << 10 // of all parts together

	MaxModule     = 256 << 10         // bytes of a module of WebAssembly that a fence is
	MaxModuleText = MaxModule * 3 / 2 // of such a fence: four characters of base64 for three bytes, and an eighth for ends of lines and its info string
)

// Closure is a fence and all that it includes, in the order in which they run:
// what a fence includes comes before it, in the order in which it names them,
// and the fence itself is the last. A fence that is named more than once is
// there once, at its first place.
type Closure []Part

// Main is the fence itself; the closure is not empty.
func (c Closure) Main() Part { return c[len(c)-1] }

// Hash names the exact bytes of the closure: two closures that differ in
// anything differ in it. It is what a person is shown, what a request to run
// names, and what an approval pins.
func (c Closure) Hash() Hash {
	parts := make([][]byte, 0, 4*len(c))
	for _, p := range c {
		parts = append(parts, []byte(p.Delimiter), []byte(p.Language), []byte(p.Info), []byte(p.Code))
	}
	return Digest("noted/closure/v1", parts...)
}

// MaxSize is the most that the parts may have together. A module has a bound of its
// own: base64 is read by no parser of a language.
func (c Closure) MaxSize() int {
	if Canonical(c.Main().Language) == "wasm" {
		return MaxModuleText
	}
	return MaxClosureBytes
}

// Size is the bytes of all parts together.
func (c Closure) Size() int {
	n := 0
	for _, p := range c {
		n += len(p.Delimiter) + len(p.Language) + len(p.Info) + len(p.Code)
	}
	return n
}

// Text is the closure as a person reads it and as two of them are compared,
// part after part: a delimiter with the info string, the code, and a delimiter.
func (c Closure) Text() string {
	var b strings.Builder
	for _, p := range c {
		b.WriteString(p.Delimiter + p.Info + "\n" + p.Code)
		if p.Code != "" && !strings.HasSuffix(p.Code, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(p.Delimiter + "\n")
	}
	return b.String()
}
