package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// maxJSONDepth is how deep values may be nested, in both directions. It also
// ends a table that holds itself.
const maxJSONDepth = 200

// luaJSON is what fences have of JSON:
//
//	json.decode(text)       the value; null is json.null, an array a marked table
//	json.encode(value [, indent])  text, with the keys of objects sorted
//	json.array(table)       the table, marked to be an array also when it is empty
//	json.null
type luaJSON struct {
	null  *lua.LTable // the one value that is null
	array *lua.LTable // the metatable of arrays
}

func newLuaJSON(L *lua.LState) *luaJSON {
	j := &luaJSON{null: L.NewTable(), array: L.NewTable()}
	m := L.NewTable()
	refuse := L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("json.null has no fields")
		return 0
	})
	m.RawSetString("__index", refuse)
	m.RawSetString("__newindex", refuse)
	m.RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString("null"))
		return 1
	}))
	m.RawSetString("__metatable", lua.LString("json.null"))
	j.null.Metatable = m
	j.array.RawSetString("__metatable", lua.LString("json.array"))
	return j
}

// open puts the library into globals.
func (j *luaJSON) open(L *lua.LState, globals *lua.LTable) {
	t := L.NewTable()
	t.RawSetString("array", L.NewFunction(func(L *lua.LState) int {
		v := L.CheckTable(1)
		if v == j.null || v.Metatable != lua.LNil && v.Metatable != j.array {
			L.ArgError(1, "a table of one's own, without a metatable, expected")
		}
		v.Metatable = j.array
		L.Push(v)
		return 1
	}))
	t.RawSetString("decode", L.NewFunction(j.decode))
	t.RawSetString("encode", L.NewFunction(j.encode))
	t.RawSetString("null", j.null)
	globals.RawSetString("json", t)
}

func (j *luaJSON) decode(L *lua.LState) int {
	text := L.CheckString(1)
	if !utf8.ValidString(text) {
		L.RaiseError("json.decode: the text is not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := j.value(L, d, 0)
	if err == nil {
		if _, more := d.Token(); more == nil {
			err = errors.New("there is more after the value")
		} else if more != io.EOF {
			err = more
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the text ends in the middle of a value")
		}
		line := 1 + strings.Count(text[:min(int(d.InputOffset()), len(text))], "\n")
		L.RaiseError("json.decode: line %d: %s", line, err.Error())
	}
	L.Push(v)
	return 1
}

// value reads the next value of d.
func (j *luaJSON) value(L *lua.LState, d *json.Decoder, depth int) (lua.LValue, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case nil:
		return j.null, nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), nil
	case json.Number:
		n, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", v)
		}
		return lua.LNumber(n), nil
	}
	t := L.NewTable()
	if token == json.Delim('[') {
		t.Metatable = j.array
		for d.More() {
			v, err := j.value(L, d, depth+1)
			if err != nil {
				return nil, err
			}
			t.Append(v)
		}
	} else {
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := j.value(L, d, depth+1)
			if err != nil {
				return nil, err
			}
			t.RawSetString(key.(string), v)
		}
	}
	_, err = d.Token() // the closing delimiter
	return t, err
}

func (j *luaJSON) encode(L *lua.LState) int {
	e := luaEncoder{json: j, indent: L.OptInt(2, 0)}
	if e.indent < 0 || e.indent > 8 {
		L.ArgError(2, "an indent of 0 to 8 expected")
	}
	if err := e.value(L.CheckAny(1), 0); err != nil {
		L.RaiseError("json.encode: %s", err.Error())
	}
	L.Push(lua.LString(e.text.String()))
	return 1
}

// luaEncoder writes one value.
type luaEncoder struct {
	json   *luaJSON
	indent int // spaces for each level; 0: all on one line
	text   strings.Builder
}

func (e *luaEncoder) value(v lua.LValue, depth int) error {
	if depth > maxJSONDepth {
		return fmt.Errorf("nested deeper than %d, or a table that holds itself", maxJSONDepth)
	}
	switch v := v.(type) {
	case *lua.LNilType:
		e.text.WriteString("null")
	case lua.LBool:
		e.text.WriteString(strconv.FormatBool(bool(v)))
	case lua.LString:
		return e.string(string(v))
	case lua.LNumber:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("%s is not a number in JSON", v.String())
		}
		b, err := json.Marshal(float64(v))
		e.text.Write(b)
		return err
	case *lua.LTable:
		return e.table(v, depth)
	default:
		return fmt.Errorf("a %s cannot be written", v.Type())
	}
	return nil
}

func (e *luaEncoder) string(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("a string is not UTF-8")
	}
	var b strings.Builder
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	err := w.Encode(s)
	e.text.WriteString(strings.TrimSuffix(b.String(), "\n"))
	return err
}

// table writes a table as an array if it is marked as one or its keys are
// exactly 1 to n, and as an object if all of its keys are strings.
func (e *luaEncoder) table(t *lua.LTable, depth int) error {
	if t == e.json.null {
		e.text.WriteString("null")
		return nil
	}
	var keys []string
	n, numbers := t.Len(), 0
	var wrong error
	t.ForEach(func(k, _ lua.LValue) {
		switch k := k.(type) {
		case lua.LString:
			keys = append(keys, string(k))
		case lua.LNumber:
			if i := int(k); lua.LNumber(i) != k || i < 1 || i > n {
				wrong = errors.New("an array has holes, or a table a key that is neither a string nor a place in it")
			}
			numbers++
		default:
			wrong = fmt.Errorf("a key is a %s", k.Type())
		}
	})
	marked := t.Metatable == e.json.array
	switch {
	case wrong != nil:
		return wrong
	case numbers != n:
		return errors.New("an array has holes")
	case len(keys) > 0 && (marked || n > 0):
		return errors.New("a table is both an array and an object")
	case marked || n > 0:
		return e.list('[', ']', n, depth, func(i int) error { return e.value(t.RawGetInt(i+1), depth+1) })
	}
	slices.Sort(keys)
	return e.list('{', '}', len(keys), depth, func(i int) error {
		if err := e.string(keys[i]); err != nil {
			return err
		}
		e.text.WriteByte(':')
		if e.indent > 0 {
			e.text.WriteByte(' ')
		}
		return e.value(t.RawGetString(keys[i]), depth+1)
	})
}

// list writes n elements between two delimiters.
func (e *luaEncoder) list(first, last byte, n, depth int, element func(int) error) error {
	e.text.WriteByte(first)
	for i := range n {
		if i > 0 {
			e.text.WriteByte(',')
		}
		e.line(depth + 1)
		if err := element(i); err != nil {
			return err
		}
	}
	if n > 0 {
		e.line(depth)
	}
	e.text.WriteByte(last)
	return nil
}

func (e *luaEncoder) line(depth int) {
	if e.indent > 0 {
		e.text.WriteByte('\n')
		e.text.WriteString(strings.Repeat(" ", depth*e.indent))
	}
}
