package exec

import (
	"bytes"
	"errors"
	"io"

	lua "github.com/yuin/gopher-lua"
)

// grantNet gives a fence the table net, if it was granted a host. A failure is
// nil and what was wrong; the end of what the other side sends is nil alone.
func (e *luaEngine) grantNet(grant *netGrant) {
	if grant == nil {
		return
	}
	L := e.state
	answer := func(L *lua.LState, v lua.LValue, err error) int {
		switch {
		case errors.Is(err, io.EOF):
			L.Push(lua.LNil)
			return 1
		case err != nil:
			L.Push(lua.LNil)
			L.Push(lua.LString(err.Error()))
			return 2
		}
		L.Push(v)
		return 1
	}
	methods := func(c *netConn) *lua.LTable {
		t := L.NewTable()
		for name, f := range map[string]lua.LGFunction{
			"send": func(L *lua.LState) int { return answer(L, lua.LTrue, c.send(L.CheckString(2))) },
			"receive": func(L *lua.LState) int {
				most := L.OptInt(2, maxNetFrame)
				if most < 1 {
					L.ArgError(2, "it is less than one byte")
				}
				b, err := c.receive(most)
				return answer(L, lua.LString(b), err)
			},
			"line": func(L *lua.LState) int {
				b, err := c.line()
				return answer(L, lua.LString(b), err)
			},
			"close": func(L *lua.LState) int { return answer(L, lua.LTrue, c.close()) },
		} {
			t.RawSetString(name, L.NewFunction(f))
		}
		return t
	}
	table := L.NewTable()
	table.RawSetString("open", L.NewFunction(func(L *lua.LState) int {
		to := L.CheckString(1)
		c, err := grant.open(to)
		if err != nil {
			return answer(L, nil, errors.New(to+": "+err.Error()))
		}
		return answer(L, methods(c), nil)
	}))
	L.SetGlobal("net", table)
}

// line returns what comes before the next line end, or before the end.
func (c *netConn) line() ([]byte, error) {
	var line []byte
	for {
		b, err := c.receive(maxNetFrame)
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			c.buffer = append(b[i+1:len(b):len(b)], c.buffer...)
			return bytes.TrimSuffix(append(line, b[:i]...), []byte("\r")), nil
		}
		line = append(line, b...)
	}
}
