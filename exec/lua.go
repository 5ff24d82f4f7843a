package exec

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"noted/notebook"
)

// luaLanguage is Lua 5.1, native: the engine is memory-safe.
var luaLanguage = language{
	name:    "lua",
	version: "github.com/yuin/gopher-lua v1.1.2",
	open: func(w *workspace) (engine, error) {
		e := newLua(w.out)
		e.grantDirs(w.dirs)
		e.grantNet(w.net)
		return e, nil
	},
	warm: warmLua,
}

// chunk is what a fence is called in its own error messages: "fence:3: …". What
// it includes is called by its short id: "f2ab3cd4ef:3: …".
const chunk = "fence"

// maxDepth is how many calls may be open in one coroutine.
const maxDepth = 4096

// luaNames is everything that a strict fence can reach: a name that is not
// listed here does not exist. Where the name is in [luaEngine.own] the function
// is ours, otherwise it is the engine's. The order is the order of pairs.
var luaNames = []struct {
	table string
	names []string
}{
	{"", []string{
		"assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "print", "rawequal", "rawget",
		"rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
	}},
	{"coroutine", []string{"create", "resume", "running", "status", "wrap", "yield"}},
	{"math", []string{
		"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp",
		"huge", "ldexp", "log", "log10", "max", "min", "modf", "pi", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh",
	}},
	{"string", []string{
		"byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper",
	}},
	{"table", []string{"concat", "insert", "maxn", "remove", "sort"}},
}

var luaLibraries = []lua.LGFunction{lua.OpenBase, lua.OpenCoroutine, lua.OpenMath, lua.OpenString, lua.OpenTable}

// openEverything, where a test sets it, replaces the allow-list by every library
// of the engine, to show that the jail alone holds. No code of the program sets it.
var openEverything func(*lua.LState)

// luaEngine is one Lua state, for one fence.
type luaEngine struct {
	state   *lua.LState
	out     io.Writer
	printed bool
	ids     map[lua.LValue]int
}

// warmLua touches what a fence is going to touch, in a state that is thrown away,
// so that the pages of the program are there when a fence comes.
func warmLua() {
	e := newLua(io.Discard)
	e.run(&request{source: "local t = {} for i = 1, 3 do t[i] = ('%d'):format(i) end return pcall(error, table.concat(t, ','))"})
	e.state.Close()
}

func newLua(out io.Writer) *luaEngine {
	e := &luaEngine{
		out: out,
		ids: map[lua.LValue]int{},
		state: lua.NewState(lua.Options{
			SkipOpenLibs:        true,
			CallStackSize:       maxDepth,
			MinimizeStackMemory: true,
			RegistrySize:        1 << 10,
			RegistryMaxSize:     1 << 20,
			RegistryGrowStep:    1 << 12,
		}),
	}
	L := e.state
	for _, open := range luaLibraries {
		L.Push(L.NewFunction(open))
		L.Call(0, 0)
	}
	if openEverything != nil {
		openEverything(L)
		return e
	}
	engine, own := L.G.Global, e.own(L)
	globals := L.NewTable()
	for _, l := range luaNames {
		from, to := engine, globals
		if l.table != "" {
			from, to = engine.RawGetString(l.table).(*lua.LTable), L.NewTable()
			globals.RawSetString(l.table, to)
		}
		for _, name := range l.names {
			v := from.RawGetString(name)
			if f, ok := own[strings.TrimPrefix(l.table+"."+name, ".")]; ok {
				v = L.NewFunction(f)
			}
			to.RawSetString(name, v)
		}
	}
	newLuaJSON(L).open(L, globals)
	globals.RawSetString("_G", globals)
	globals.RawSetString("_VERSION", lua.LString(lua.LuaVersion))
	L.G.Global, L.Env = globals, globals
	strings := L.NewTable()
	strings.RawSetString("__index", globals.RawGetString("string"))
	L.SetMetatable(lua.LString(""), strings)
	return e
}

// own are the functions that replace the engine's: those that would write to the
// process, show addresses, or take time or memory out of proportion.
func (e *luaEngine) own(L *lua.LState) map[string]lua.LGFunction {
	library := func(table, name string) lua.LGFunction {
		t := L.G.Global
		if table != "" {
			t = t.RawGetString(table).(*lua.LTable)
		}
		return t.RawGetString(name).(*lua.LFunction).GFunction
	}
	return map[string]lua.LGFunction{
		"print":            e.print,
		"tostring":         e.tostring,
		"string.format":    e.format,
		"pcall":            withoutAddresses(library("", "pcall")),
		"xpcall":           withoutAddresses(cleanHandler(library("", "xpcall"))),
		"coroutine.resume": withoutAddresses(library("coroutine", "resume")),
	}
}

// run runs what the fence includes, in order, and then the fence, each as a chunk
// of its own in one state: they share globals and no locals. Nothing runs before
// all of it could be read. What is printed goes out at once; what the fence
// itself returns is shown if nothing was printed.
func (e *luaEngine) run(r *request) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed("the Lua engine gave up: %v", v)
		}
	}()
	L := e.state
	if err := e.grant(r); err != nil {
		return failed("%v", err)
	}
	var parts []*lua.LFunction
	for _, p := range slices.Concat(r.before, []field{{chunk, r.source}}) {
		part, err := L.Load(strings.NewReader(p.value), p.name)
		if err != nil {
			return outcome{failed: true, text: clipError(syntaxError(p.name, err))}
		}
		parts = append(parts, part)
	}
	L.Push(L.NewFunction(func(L *lua.LState) int {
		last := len(parts) - 1
		for _, part := range parts[:last] {
			L.Push(part)
			L.Call(0, 0)
		}
		L.Push(parts[last])
		L.Call(0, lua.MultRet)
		if n := L.GetTop(); n > 0 && !e.printed {
			e.show(L, 1, n)
		}
		return 0
	}))
	if err := L.PCall(0, 0, nil); err != nil {
		return outcome{failed: true, text: clipError(e.runtimeError(err))}
	}
	return outcome{}
}

func failed(format string, args ...any) outcome {
	return outcome{failed: true, text: clipError(fmt.Sprintf(format, args...))}
}

// grant puts the granted values where the fence finds them.
func (e *luaEngine) grant(r *request) error {
	L := e.state
	if r.args != nil {
		args := L.NewTable()
		for _, f := range r.args {
			args.RawSetString(f.name, lua.LString(f.value))
		}
		L.SetGlobal("args", args)
	}
	for _, in := range r.inputs {
		switch notebook.Capability(in.name) {
		case notebook.CapPage:
			page, lines := L.NewTable(), L.NewTable()
			page.RawSetString("text", lua.LString(in.value))
			for l := range strings.Lines(in.value) {
				lines.Append(lua.LString(strings.TrimSuffix(l, "\n")))
			}
			page.RawSetString("lines", lines)
			L.SetGlobal("page", page)
		case notebook.CapClock:
			ms, err := strconv.ParseInt(in.value, 10, 64)
			if err != nil {
				return errors.New("the clock that was granted is not a number of milliseconds")
			}
			t := time.UnixMilli(ms).UTC()
			clock := L.NewTable()
			for _, f := range []struct {
				name  string
				value int64
			}{
				{"unix", t.Unix()},
				{"ms", ms},
				{"year", int64(t.Year())},
				{"month", int64(t.Month())},
				{"day", int64(t.Day())},
				{"hour", int64(t.Hour())},
				{"min", int64(t.Minute())},
				{"sec", int64(t.Second())},
				{"wday", int64(t.Weekday()) + 1},
				{"yday", int64(t.YearDay())},
			} {
				clock.RawSetString(f.name, lua.LNumber(f.value))
			}
			clock.RawSetString("date", lua.LString(t.Format(time.DateOnly)))
			clock.RawSetString("iso", lua.LString(t.Format(time.RFC3339)))
			L.SetGlobal("clock", clock)
		case notebook.CapSeed:
			L.GetGlobal("math").(*lua.LTable).RawSetString("random", L.NewFunction(random(in.value)))
		case notebook.CapQuery:
			rows, err := notebook.DecodeRows([]byte(in.value))
			if err != nil {
				return errors.New("the rows that were granted cannot be read")
			}
			L.SetGlobal("query", luaRows(L, rows))
		default:
			return fmt.Errorf("%s is not here yet", in.name)
		}
	}
	return nil
}

// luaRows is what was found as a table: an array of rows; found, how many there
// were; and unread, how many pages could not be read. What a row has not is nil.
func luaRows(L *lua.LState, rows *notebook.Rows) *lua.LTable {
	all := L.NewTable()
	for i := range rows.List {
		r := &rows.List[i]
		row, tags := L.NewTable(), L.NewTable()
		for _, tag := range r.Tags {
			tags.Append(lua.LString(tag))
		}
		row.RawSetString("title", lua.LString(r.Title))
		row.RawSetString("page", lua.LString(r.Page.String()))
		row.RawSetString("line", lua.LNumber(r.Line))
		row.RawSetString("text", lua.LString(r.Text))
		row.RawSetString("tags", tags)
		if r.Task != notebook.NoTask {
			row.RawSetString("task", lua.LString(r.Task))
		}
		if r.Date != "" {
			row.RawSetString("date", lua.LString(r.Date))
		}
		all.Append(row)
	}
	all.RawSetString("found", lua.LNumber(rows.Found))
	all.RawSetString("unread", lua.LNumber(rows.Unread))
	return all
}

// print writes its arguments as one line.
func (e *luaEngine) print(L *lua.LState) int {
	e.show(L, 1, L.GetTop())
	return 0
}

func (e *luaEngine) show(L *lua.LState, from, to int) {
	var line strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			line.WriteByte('\t')
		}
		line.WriteString(e.text(L, L.Get(i)))
	}
	line.WriteByte('\n')
	e.printed = true
	_, _ = io.WriteString(e.out, line.String()) // nobody reads on: the parent is gone and this process with it
}

func (e *luaEngine) tostring(L *lua.LState) int {
	L.Push(lua.LString(e.text(L, L.CheckAny(1))))
	return 1
}

// text is v as tostring gives it: the engine's form for plain values, and for
// the others their kind and the number under which they were first shown,
// because an address would differ from run to run.
func (e *luaEngine) text(L *lua.LState, v lua.LValue) string {
	if f, ok := L.GetMetaField(v, "__tostring").(*lua.LFunction); ok {
		L.Push(f)
		L.Push(v)
		L.Call(1, 1)
		s := L.Get(-1)
		L.Pop(1)
		if !lua.LVCanConvToString(s) {
			L.RaiseError("'__tostring' must return a string")
		}
		return s.String()
	}
	switch v.Type() {
	case lua.LTNil, lua.LTBool, lua.LTNumber, lua.LTString:
		return v.String()
	}
	id, ok := e.ids[v]
	if !ok {
		id = len(e.ids) + 1
		e.ids[v] = id
	}
	return fmt.Sprintf("%s: %d", v.Type(), id)
}

var addresses = regexp.MustCompile(`\b(table|function|userdata|thread|channel): 0x[0-9a-f]+`)

// clean takes addresses out of the engine's own messages, which name keys.
func clean(v lua.LValue) lua.LValue {
	if s, ok := v.(lua.LString); ok && strings.Contains(string(s), ": 0x") {
		return lua.LString(addresses.ReplaceAllString(string(s), "$1"))
	}
	return v
}

// withoutAddresses wraps a protected call: false and a message are what it
// leaves on failure.
func withoutAddresses(call lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		n := call(L)
		if n == 2 && L.Get(-2) == lua.LFalse {
			v := clean(L.Get(-1))
			L.Pop(1)
			L.Push(v)
		}
		return n
	}
}

// cleanHandler lets the handler of an xpcall see no address either.
func cleanHandler(call lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		handler := L.CheckFunction(2)
		L.Replace(2, L.NewFunction(func(L *lua.LState) int {
			v := clean(L.Get(1))
			L.SetTop(0)
			L.Push(handler)
			L.Push(v)
			L.Call(1, 1)
			return 1
		}))
		return call(L)
	}
}

func syntaxError(name string, err error) string {
	var api *lua.ApiError
	if errors.As(err, &api) && api.Cause != nil {
		err = api.Cause
	}
	var at *parse.Error
	if !errors.As(err, &at) {
		return strings.TrimSpace(err.Error())
	}
	if at.Pos.Line == parse.EOF {
		return fmt.Sprintf("%s: %s at the end of the fence", name, at.Message)
	}
	return fmt.Sprintf("%s:%d: %s near %q", name, at.Pos.Line, at.Message, at.Token)
}

// traceLine is a line of the engine's traceback that is in a chunk: those names
// and no others are given to chunks.
var traceLine = regexp.MustCompile(`(?m)^\t(` + chunk + `|f[a-z2-7]{9}):(\d+): in `)

// maxTrace is how many callers a message names.
const maxTrace = 5

// runtimeError is the message of a fence that raised an error, with the lines of
// the fence, and of what it includes, that were being called.
func (e *luaEngine) runtimeError(err error) string {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return err.Error()
	}
	text := e.errorText(api.Object)
	if api.Type == lua.ApiErrorPanic {
		text = "the Lua engine gave up: " + text
	}
	var lines []string
	for _, m := range traceLine.FindAllStringSubmatch(api.StackTrace, maxTrace+1) {
		if m[1] == chunk {
			lines = append(lines, m[2])
		} else {
			lines = append(lines, m[1]+":"+m[2])
		}
	}
	lines = slices.Compact(lines)
	if len(lines) < 2 {
		return text
	}
	return text + "\ncalled from line " + strings.Join(lines[1:], ", ")
}

// errorText is an error value in words; a __tostring of the fence's own runs
// protected, like the fence itself.
func (e *luaEngine) errorText(v lua.LValue) string {
	L := e.state
	text := "the error is a " + v.Type().String()
	L.Push(L.NewFunction(func(L *lua.LState) int {
		text = e.text(L, v)
		return 0
	}))
	if err := L.PCall(0, 0, nil); err != nil {
		return text
	}
	return clean(lua.LString(text)).String()
}

// clipError makes an error fit its frame, as valid text.
func clipError(s string) string {
	const more = " …"
	if s = plain([]byte(s)); len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText-len(more)], "") + more
	}
	return s
}
