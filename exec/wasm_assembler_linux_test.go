package exec

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// hostFunctions are what a module can import, with their types, by name.
var hostFunctions = sync.OnceValue(func() map[string]api.FunctionDefinition {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wasmConfig())
	defer r.Close(ctx)
	imports, err := instantiateHost(ctx, r, &given{})
	if err != nil {
		panic(err)
	}
	all := map[string]api.FunctionDefinition{}
	for module := range imports {
		maps.Copy(all, r.Module(module).ExportedFunctionDefinitions())
	}
	return all
})

// hostNames are they as a list: module, name, and what it takes and returns.
func hostNames() string {
	var lines []string
	for name, d := range hostFunctions() {
		lines = append(lines, fmt.Sprintf("%s %s%v%v\n", d.ModuleName(), name, typeNames(d.ParamTypes()), typeNames(d.ResultTypes())))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func typeNames(types []api.ValueType) (names []string) {
	for _, t := range types {
		names = append(names, api.ValueTypeName(t))
	}
	return names
}

// operations are the instructions that the assembler knows: the bytes of each.
var operations = map[string]string{
	"unreachable": "00", "nop": "01", "block": "0240", "loop": "0340", "if": "0440", "else": "05", "end": "0b", "return": "0f", "drop": "1a",
	"i32.load": "280200", "i64.load": "290300", "i32.store": "360200", "i32.store8": "3a0000", "i64.store": "370300",
	"memory.size": "3f00", "memory.grow": "4000", "memory.copy": "fc0a0000", "memory.fill": "fc0b00", "ref.null": "d070", "table.grow": "fc0f00", "table.size": "fc1000",
	"i32.eqz": "45", "i32.eq": "46", "i32.ne": "47", "i32.lt_u": "49", "i32.add": "6a", "i32.sub": "6b", "i32.mul": "6c", "i32.div_s": "6d",
	"i64.add": "7c", "f64.div": "a3", "f64.convert_i32_s": "b7", "i32.const": "41", "i64.const": "42", "call": "10",
	"local.get": "20", "local.set": "21", "local.tee": "22", "br": "0c", "br_if": "0d", "call_indirect": "11",
}

var assemblerWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// assemble makes a module of its text: words of WebAssembly's own notation, in
// the order of the stack. A line that begins with
//
//	memory MIN MAX     has it have pages, a word that is - stands for no MAX
//	data OFFSET "TEXT" puts bytes there
//	func NAME [-> TYPE …] begins a function with eight locals, i32; it is exported, and
//	                   runs first if it is called start
//	section N HEX      puts a section there in place of its own
//
// What is called and is no function of its own is imported. print FD "TEXT" writes.
func assemble(text string) []byte {
	sections := map[byte][]byte{}
	var types, imports, functions, exports, bodies, data [][]byte
	index := map[string]int{}
	typeOf := func(from, to []api.ValueType) []byte {
		t := slices.Concat([]byte{0x60}, vector(from), vector(to))
		i := slices.IndexFunc(types, func(b []byte) bool { return bytes.Equal(b, t) })
		if i < 0 {
			i, types = len(types), append(types, t)
		}
		return unsigned(uint64(i))
	}
	words := assemblerWord.FindAllString(text, -1)
	var own []string
	for i, w := range words {
		switch {
		case w == "func":
			own = append(own, words[i+1])
		case w == "call" || w == "print":
			name := words[i+1]
			if w == "print" {
				name = "fd_write"
			}
			d, found := hostFunctions()[name]
			if _, known := index[name]; known || !found {
				continue
			}
			index[name] = len(imports)
			imports = append(imports, slices.Concat(vector([]byte(d.ModuleName())), vector([]byte(name)), []byte{0}, typeOf(d.ParamTypes(), d.ResultTypes())))
		}
	}
	for i, name := range own {
		index[name] = len(imports) + i
	}
	var body []byte
	finish := func() {
		if body != nil {
			body = append(body, 0x0b)
			bodies = append(bodies, slices.Concat(unsigned(uint64(len(body))), body))
		}
	}
	place := 4096 // of what is printed
	put := func(at int, b []byte) {
		data = append(data, slices.Concat([]byte{0, 0x41}, signed(int64(at)), []byte{0x0b}, vector(b)))
	}
	for len(words) > 0 {
		w := words[0]
		next := func() string {
			words = words[1:]
			return words[0]
		}
		number := func() int64 {
			n, err := strconv.ParseInt(next(), 0, 64)
			if err != nil {
				panic(err)
			}
			return n
		}
		quoted := func() []byte {
			s, err := strconv.Unquote(next())
			if err != nil {
				panic(err)
			}
			return []byte(s)
		}
		switch w {
		case "memory":
			least := unsigned(uint64(number()))
			if most := next(); most == "-" {
				sections[5] = slices.Concat([]byte{1, 0}, least)
			} else {
				n, _ := strconv.Atoi(most)
				sections[5] = slices.Concat([]byte{1, 1}, least, unsigned(uint64(n)))
			}
		case "data":
			at := number()
			put(int(at), quoted())
		case "section":
			id := number()
			b, err := hex.DecodeString(next())
			if err != nil {
				panic(err)
			}
			sections[byte(id)] = b
		case "func":
			finish()
			name := next()
			var results []api.ValueType
			for len(words) > 1 && words[1] == "->" {
				next()
				results = append(results, map[string]api.ValueType{"i32": api.ValueTypeI32, "i64": api.ValueTypeI64, "f64": api.ValueTypeF64, "externref": api.ValueTypeExternref}[next()])
			}
			body = []byte{1, 8, api.ValueTypeI32}
			functions = append(functions, typeOf(nil, results))
			exports = append(exports, slices.Concat(vector([]byte(name)), []byte{0}, unsigned(uint64(index[name]))))
			if name == "start" {
				sections[8] = unsigned(uint64(index[name]))
			}
		case "print":
			fd, b := number(), quoted()
			put(place, append([]byte{byte(place + 8), byte((place + 8) >> 8), byte((place + 8) >> 16), 0, byte(len(b)), byte(len(b) >> 8), 0, 0}, b...))
			body = slices.Concat(body, []byte{0x41}, signed(fd), []byte{0x41}, signed(int64(place)), []byte{0x41, 1, 0x41, 8, 0x10}, unsigned(uint64(index["fd_write"])), []byte{0x1a})
			place += 8 + (len(b)+7)&^7
		default:
			op, found := operations[w]
			if !found {
				panic("no instruction " + w)
			}
			b, _ := hex.DecodeString(op)
			body = append(body, b...)
			switch w {
			case "i32.const", "i64.const":
				n := number()
				if w == "i32.const" {
					n = int64(int32(n))
				}
				body = append(body, signed(n)...)
			case "call":
				name := next()
				i, found := index[name]
				if !found {
					panic("no function " + name)
				}
				body = append(body, unsigned(uint64(i))...)
			case "local.get", "local.set", "local.tee", "br", "br_if":
				body = append(body, unsigned(uint64(number()))...)
			case "call_indirect":
				body = append(body, append(unsigned(uint64(number())), 0)...)
			}
		}
		words = words[1:]
	}
	finish()
	module := []byte(moduleHeader)
	for id, all := range map[byte][][]byte{1: types, 2: imports, 3: functions, 7: exports, 10: bodies, 11: data} {
		if _, replaced := sections[id]; !replaced && len(all) > 0 {
			sections[id] = slices.Concat(unsigned(uint64(len(all))), bytes.Join(all, nil))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sections)) {
		module = slices.Concat(module, []byte{id}, vector(sections[id]))
	}
	return module
}

// vector puts the number of bytes before them.
func vector(b []byte) []byte { return append(unsigned(uint64(len(b))), b...) }

func unsigned(n uint64) (b []byte) {
	for n >= 0x80 {
		b, n = append(b, byte(n)|0x80), n>>7
	}
	return append(b, byte(n))
}

func signed(n int64) (b []byte) {
	for n < -64 || n > 63 {
		b, n = append(b, byte(n)|0x80), n>>7
	}
	return append(b, byte(n)&0x7f)
}

// module is the text of a fence with such a module.
func module(text string) string { return lines(assemble(text)) }

// lines are bytes in base64, in lines.
func lines(b []byte) string {
	text := base64.StdEncoding.EncodeToString(b)
	var s strings.Builder
	for len(text) > 0 {
		n := min(100, len(text))
		s.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return s.String()
}
