package exec

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"noted/notebook"
)

func TestJSON(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	for _, c := range []struct{ name, source, output string }{
		{"a value comes back", `return json.encode(json.decode('{"b":[1,2.5,{"c":null}],"a":"x","d":true}'))`, `{"a":"x","b":[1,2.5,{"c":null}],"d":true}`},
		{"pairs in the order of the text", `local s = "" for k in pairs(json.decode('{"z":1,"a":2}')) do s = s .. k end return s`, "za"},
		{"an empty array stays one", `return json.encode(json.decode('{"a":[],"b":{}}'))`, `{"a":[],"b":{}}`},
		{"an empty table is an object", `return json.encode({}), json.encode(json.array({}))`, "{}\t[]"},
		{"null is a value", `local v = json.decode("[null]") return v[1] == json.null, tostring(json.null), json.encode(json.null), json.encode(nil)`, "true\tnull\tnull\tnull"},
		{"indented", `return json.encode({a = {1, 2}, b = {}}, 2)`, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}"},
		{"markup is not escaped, control characters are", `return json.encode("<a&b>\1\n\"")`, `"<a&b>\u0001\n\""`},
		{"numbers", `return json.encode({1, -0.5, 1e21, 12345678901234})`, `[1,-0.5,1e+21,12345678901234]`},
		{"the last of two keys", `return json.decode('{"a":1,"a":2}').a`, "2"},
		{"white space around", "return json.decode(' \\n 3 \\t')", "3"},
		{"as deep as allowed", `return #json.encode(json.decode(("["):rep(200) .. ("]"):rep(200)))`, "400"},
	} {
		if res := runSource(t, r, quick, c.source); res.Verdict != notebook.OK || res.Output != c.output+"\n" {
			t.Errorf("%s: %v %q %q, want %q", c.name, res.Verdict, res.Output, res.Error, c.output)
		}
	}
	for _, c := range []struct{ name, source, err string }{
		{"the line of the mistake", "json.decode('{\"a\": 1,\\n\"b\": x}')", "fence:1: json.decode: line 2: invalid character 'x' looking for beginning of value"},
		{"a value cut off", `json.decode('[1, ')`, "fence:1: json.decode: line 1: the text ends in the middle of a value"},
		{"nothing", `json.decode('')`, "fence:1: json.decode: line 1: the text ends in the middle of a value"},
		{"two values", `json.decode('1 2')`, "fence:1: json.decode: line 1: there is more after the value"},
		{"a key that is no string", `json.decode('{1:2}')`, "fence:1: json.decode: line 1: invalid character '1'"},
		{"a number too large", `json.decode('1e999')`, "fence:1: json.decode: line 1: the number 1e999 is too large"},
		{"bytes that are no text", `json.decode('"\255"')`, "fence:1: json.decode: the text is not UTF-8"},
		{"too deep", `json.decode(("["):rep(1e6))`, "fence:1: json.decode: line 1: nested deeper than 200"},
		{"a message with a percent sign", `json.decode('%d%s')`, "fence:1: json.decode: line 1: invalid character '%'"},
		{"a table in itself", `local t = {} t[1] = t json.encode(t)`, "fence:1: json.encode: nested deeper than 200"},
		{"a function", `json.encode({print})`, "fence:1: json.encode: a function cannot be written"},
		{"not a number", `json.encode(0/0)`, "fence:1: json.encode: NaN is not a number in JSON"},
		{"holes", `json.encode({1, nil, 3})`, "fence:1: json.encode: an array has holes"},
		{"a far place", `json.encode({[5] = 1})`, "fence:1: json.encode: an array has holes"},
		{"both", `json.encode({1, a = 2})`, "fence:1: json.encode: a table is both an array and an object"},
		{"a key of another kind", `json.encode({[true] = 1})`, "fence:1: json.encode: a key is a boolean"},
		{"bytes in a string", `json.encode("\255")`, "fence:1: json.encode: a string is not UTF-8"},
		{"bytes in a key", `json.encode({["\255"] = 1})`, "fence:1: json.encode: a string is not UTF-8"},
		{"null has no fields", `return json.null.a`, "fence:1: json.null has no fields"},
		{"null is no array", `json.array(json.null)`, "fence:1: bad argument #1 to array"},
		{"an indent beyond", `json.encode({}, 1e6)`, "fence:1: bad argument #2 to encode"},
	} {
		if res := runSource(t, r, quick, c.source); res.Verdict != notebook.Failed || !strings.HasPrefix(res.Error, c.err) {
			t.Errorf("%s: %v %q %q, want %q", c.name, res.Verdict, res.Output, res.Error, c.err)
		}
	}
}

// TestJSONIsWhatOthersRead: what a fence writes of a value that it read says the
// same to another reader as the value's own text.
func TestJSONIsWhatOthersRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 4)
		e := newLua(io.Discard)
		defer e.state.Close()
		again := func(text string) string {
			j := e.state.GetGlobal("json").(*lua.LTable)
			if err := e.state.CallByParam(lua.P{Fn: j.RawGetString("decode"), NRet: 1, Protect: true}, lua.LString(text)); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if err := e.state.CallByParam(lua.P{Fn: j.RawGetString("encode"), NRet: 1, Protect: true}, e.state.Get(-1)); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return e.state.Get(-1).String()
		}
		got := again(text)
		var a, b any
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got), &b); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		if x, y := fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b); x != y {
			t.Errorf("%s\nbecame\n%s", x, y)
		}
		if twice := again(got); twice != got {
			t.Errorf("%q became %q", got, twice)
		}
	})
}

// drawJSON draws the text of a value.
func drawJSON(t *rapid.T, depth int) string {
	most := 5
	if depth == 0 {
		most = 3
	}
	plain := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1, 2:
		return plain(rapid.Float64().Draw(t, "number"))
	case 3:
		return plain(rapid.String().Draw(t, "text"))
	case 4:
		var parts []string
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			parts = append(parts, drawJSON(t, depth-1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var parts []string
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		parts = append(parts, plain(rapid.String().Draw(t, "key"))+": "+drawJSON(t, depth-1))
	}
	return "{" + strings.Join(parts, ",\n") + "}"
}
