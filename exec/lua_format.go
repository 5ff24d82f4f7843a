package exec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"noted/notebook"
)

// format is Lua's string.format, with the bounds of the language (two digits
// each for width and precision) and without the engine's detour through Go's
// verbs, which prints the process's own structures and pads by the gigabyte.
func (e *luaEngine) format(L *lua.LState) int {
	f := L.CheckString(1)
	var out strings.Builder
	arg := 1
	for {
		i := strings.IndexByte(f, '%')
		if i < 0 {
			out.WriteString(f)
			break
		}
		out.WriteString(f[:i])
		f = f[i+1:]
		if strings.HasPrefix(f, "%") {
			out.WriteByte('%')
			f = f[1:]
			continue
		}
		var d directive
		d, f = readDirective(L, f)
		arg++
		if arg > L.GetTop() {
			L.ArgError(arg, "no value")
		}
		e.directive(L, &out, d, arg)
	}
	L.Push(lua.LString(out.String()))
	return 1
}

// directive is one "%…" of a format: flags, a width, a precision, a verb.
type directive struct {
	flags     string
	width     int
	precision int // -1 where there is none
	verb      byte
}

func readDirective(L *lua.LState, f string) (directive, string) {
	d := directive{precision: -1}
	n := len(f) - len(strings.TrimLeft(f, "-+ #0"))
	if n > 5 {
		L.RaiseError("invalid format (repeated flags)")
	}
	d.flags, f = f[:n], f[n:]
	d.width, f = twoDigits(f)
	if strings.HasPrefix(f, ".") {
		d.precision, f = twoDigits(f[1:])
	}
	if f == "" || '0' <= f[0] && f[0] <= '9' {
		L.RaiseError("invalid format (width or precision too long)")
	}
	d.verb = f[0]
	return d, f[1:]
}

func twoDigits(f string) (int, string) {
	n := 0
	for n < 2 && n < len(f) && '0' <= f[n] && f[n] <= '9' {
		n++
	}
	v, _ := strconv.Atoi("0" + f[:n])
	return v, f[n:]
}

func (d *directive) has(flag string) bool { return strings.Contains(d.flags, flag) }

func (e *luaEngine) directive(L *lua.LState, out *strings.Builder, d directive, arg int) {
	switch d.verb {
	case 'c':
		d.pad(out, string([]byte{byte(L.CheckInt(arg))}))
	case 'd', 'i':
		d.number(out, "d", int64(whole(L, arg)))
	case 'u':
		d.number(out, "d", uint64(int64(whole(L, arg))))
	case 'o', 'x', 'X':
		d.number(out, string(d.verb), uint64(int64(whole(L, arg))))
	case 'e', 'E', 'f', 'g', 'G':
		v := float64(L.CheckNumber(arg))
		switch {
		case math.IsNaN(v):
			d.pad(out, "nan")
		case math.IsInf(v, 1):
			d.pad(out, "inf")
		case math.IsInf(v, -1):
			d.pad(out, "-inf")
		default:
			if d.precision < 0 {
				d.precision = 6
			}
			d.number(out, string(d.verb), v)
		}
	case 'q':
		quote(out, L.CheckString(arg))
	case 's':
		s := e.text(L, L.Get(arg))
		if d.precision >= 0 && d.precision < len(s) {
			s = s[:d.precision]
		}
		d.pad(out, s)
	default:
		L.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	}
}

// whole is an argument as an integer. What has no integer value is an error
// here, because processors disagree on what it becomes.
func whole(L *lua.LState, arg int) float64 {
	v := math.Trunc(float64(L.CheckNumber(arg)))
	if !(v >= -1<<63 && v < 1<<63) {
		L.ArgError(arg, "number has no integer value")
	}
	return v
}

func (d *directive) number(out *strings.Builder, verb string, v any) {
	f := "%" + d.flags
	if d.width > 0 {
		f += strconv.Itoa(d.width)
	}
	if d.precision >= 0 {
		f += "." + strconv.Itoa(d.precision)
	}
	fmt.Fprintf(out, f+verb, v)
}

func (d *directive) pad(out *strings.Builder, s string) {
	blanks := strings.Repeat(" ", max(0, d.width-len(s)))
	if d.has("-") {
		out.WriteString(s + blanks)
	} else {
		out.WriteString(blanks + s)
	}
}

// quote writes s so that Lua reads it back.
func quote(out *strings.Builder, s string) {
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out.WriteByte('\\')
			out.WriteByte(c)
		case '\r':
			out.WriteString(`\r`)
		case 0:
			out.WriteString(`\000`)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}

// random is math.random from a source of the run's own: the same seed gives the
// same numbers on every device.
func random(seed string) lua.LGFunction {
	source := rand.New(rand.NewChaCha8(notebook.Digest("noted/seed/v1", []byte(seed))))
	return func(L *lua.LState) int {
		from, to := int64(1), int64(0)
		switch L.GetTop() {
		case 0:
			L.Push(lua.LNumber(source.Float64()))
			return 1
		case 1:
			to = L.CheckInt64(1)
		default:
			from, to = L.CheckInt64(1), L.CheckInt64(2)
		}
		const most = 1 << 53 // beyond it a Lua number is no exact integer
		if from > to || from < -most || to > most {
			L.ArgError(L.GetTop(), "interval is empty")
		}
		L.Push(lua.LNumber(from + source.Int64N(to-from+1)))
		return 1
	}
}
