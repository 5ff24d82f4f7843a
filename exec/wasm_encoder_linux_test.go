package exec

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// moduleText builds small WebAssembly modules for tests: one function without
// parameters that is exported as _start or run as the start section, imports, one
// memory, one table, and data.
type moduleText struct {
	imports []moduleImport
	body    []byte // of the function
	locals  int    // of type i32
	start   bool   // in the start section and not as _start
	memory  []byte // limits, nil for none
	table   []byte // limits
	data    string // at address 1024
	more    []byte // sections that are appended as they are
}

type moduleImport struct {
	module, name string
	params       int // all of type i32, but for those in wide
	wide         []int
	result       bool
}

const (
	i32Type = 0x7f
	i64Type = 0x7e

	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opI32Load     = 0x28
	opI32Load8    = 0x2d
	opI64Load     = 0x29
	opI32Store8   = 0x3a
	opMemoryGrow  = 0x40
	opI32Eq       = 0x46
	opI32LtU      = 0x49
	opI32Add      = 0x6a
	opI32DivU     = 0x6e
	opI32RemU     = 0x70
	opI64DivU     = 0x80
	opI64RemU     = 0x82
	opI32Wrap     = 0xa7

	noType = 0x40
)

func uleb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func sleb(n int64) []byte {
	var b []byte
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func constant(n int64) []byte { return append([]byte{0x41}, sleb(int64(int32(n)))...) }
func constant64(n int64) []byte {
	return append([]byte{0x42}, sleb(n)...)
}
func calling(f int) []byte { return append([]byte{0x10}, uleb(uint64(f))...) }
func local(op byte, i int) []byte {
	return append([]byte{op}, uleb(uint64(i))...)
}

func name(s string) []byte { return append(uleb(uint64(len(s))), s...) }

func counted(all ...[]byte) []byte {
	return append(uleb(uint64(len(all))), slices.Concat(all...)...)
}

func sectionOf(id byte, content []byte) []byte {
	return slices.Concat([]byte{id}, uleb(uint64(len(content))), content)
}

func (m moduleText) encode() []byte {
	types := [][]byte{{0x60, 0, 0}}
	var imports [][]byte
	for i, f := range m.imports {
		t := append([]byte{0x60}, uleb(uint64(f.params))...)
		for p := range f.params {
			if slices.Contains(f.wide, p) {
				t = append(t, i64Type)
			} else {
				t = append(t, i32Type)
			}
		}
		if f.result {
			t = append(t, 1, i32Type)
		} else {
			t = append(t, 0)
		}
		types = append(types, t)
		imports = append(imports, slices.Concat(name(f.module), name(f.name), []byte{0}, uleb(uint64(i+1))))
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = append(b, sectionOf(1, counted(types...))...)
	if len(imports) > 0 {
		b = append(b, sectionOf(2, counted(imports...))...)
	}
	b = append(b, sectionOf(3, counted([]byte{0}))...)
	if m.table != nil {
		b = append(b, sectionOf(4, counted(append([]byte{0x70}, m.table...)))...)
	}
	if m.memory != nil {
		b = append(b, sectionOf(5, counted(m.memory))...)
	}
	function := uleb(uint64(len(m.imports)))
	if m.start {
		b = append(b, sectionOf(8, function)...)
	} else {
		exports := [][]byte{slices.Concat(name("_start"), []byte{0}, function)}
		if m.memory != nil {
			exports = append(exports, slices.Concat(name("memory"), []byte{2, 0}))
		}
		b = append(b, sectionOf(7, counted(exports...))...)
	}
	locals := counted()
	if m.locals > 0 {
		locals = counted(append(uleb(uint64(m.locals)), i32Type))
	}
	code := slices.Concat(locals, m.body, []byte{opEnd})
	b = append(b, sectionOf(10, counted(append(uleb(uint64(len(code))), code...)))...)
	if m.data != "" {
		b = append(b, sectionOf(11, counted(slices.Concat([]byte{0}, constant(1024), []byte{opEnd}, name(m.data))))...)
	}
	return append(b, m.more...)
}

// fence is the module as it is written in a fence.
func (m moduleText) fence() string { return base64.StdEncoding.EncodeToString(m.encode()) }

var (
	wasiWrite = moduleImport{"wasi_snapshot_preview1", "fd_write", 4, nil, true}
	wasiExit  = moduleImport{"wasi_snapshot_preview1", "proc_exit", 1, nil, false}
	onePage   = []byte{0, 1}
)

// writing writes n bytes from an address to a descriptor by the first import. The
// vector is at 0.
func writing(fd, address, n int) []byte {
	store := func(at, v int) []byte {
		return slices.Concat(constant(int64(at)), constant(int64(v)), []byte{0x36, 2, 0})
	}
	return slices.Concat(store(0, address), store(4, n), constant(int64(fd)), constant(0), constant(1), constant(8), calling(0), []byte{opDrop})
}

// printing prints what is on the stack as two digits and a line end.
func printing(l int) []byte {
	digit := func(at int64, div ...byte) []byte {
		return slices.Concat(constant(at), local(opLocalGet, l), div, constant(10), []byte{opI32RemU}, constant('0'), []byte{opI32Add, opI32Store8, 0, 0})
	}
	return slices.Concat(
		local(opLocalSet, l), digit(16, append(constant(10), opI32DivU)...), digit(17),
		constant(18), constant('\n'), []byte{opI32Store8, 0, 0}, writing(1, 16, 3),
	)
}

// prints is a module that prints text and then does what body says, with the
// imports after fd_write.
func prints(text string, body []byte, imports ...moduleImport) moduleText {
	return moduleText{
		imports: append([]moduleImport{wasiWrite}, imports...), memory: onePage, data: text, locals: 2,
		body: slices.Concat(writing(1, 1024, len(text)), body),
	}
}

// shows is a module that calls its second import with arguments and shows what
// comes back.
func shows(f moduleImport, arguments ...[]byte) moduleText {
	return moduleText{
		imports: []moduleImport{wasiWrite, f}, memory: onePage, locals: 2,
		body: slices.Concat(slices.Concat(arguments...), calling(1), printing(0)),
	}
}

// looping is a loop without end round a body.
func looping(body []byte) []byte {
	return slices.Concat([]byte{opLoop, noType}, body, []byte{opBr, 0, opEnd})
}
