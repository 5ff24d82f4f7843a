package exec

import (
	"io/fs"

	lua "github.com/yuin/gopher-lua"
)

// grantDirs gives a fence the table dir, if it was granted a directory. A path
// in it starts with that of a directory, as wants has it. A failure is nil and
// what was wrong, as in Lua's own io.
func (e *luaEngine) grantDirs(dirs []*dirGrant) {
	if len(dirs) == 0 {
		return
	}
	L := e.state
	on := func(act func(L *lua.LState, d *dirGrant, rest string) (lua.LValue, error)) lua.LGFunction {
		return func(L *lua.LState) int {
			name := L.CheckString(1)
			d, rest, err := findDir(dirs, name)
			if err == nil {
				var v lua.LValue
				if v, err = act(L, d, rest); err == nil {
					L.Push(v)
					return 1
				}
			}
			L.Push(lua.LNil)
			L.Push(lua.LString(name + ": " + plainError(err).Error()))
			return 2
		}
	}
	table := L.NewTable()
	for _, f := range []struct {
		name string
		act  lua.LGFunction
	}{
		{"list", on(func(L *lua.LState, d *dirGrant, rest string) (lua.LValue, error) {
			names, err := d.list(rest)
			t := L.CreateTable(len(names), 0)
			for _, n := range names {
				t.Append(lua.LString(n))
			}
			return t, err
		})},
		{"read", on(func(_ *lua.LState, d *dirGrant, rest string) (lua.LValue, error) {
			b, err := d.read(rest)
			return lua.LString(b), err
		})},
		{"stat", on(func(L *lua.LState, d *dirGrant, rest string) (lua.LValue, error) {
			info, err := d.stat(rest)
			if err != nil {
				return nil, err
			}
			t := L.NewTable()
			t.RawSetString("kind", lua.LString(kindOfFile(info.Mode())))
			t.RawSetString("size", lua.LNumber(info.Size()))
			t.RawSetString("modified", lua.LNumber(info.ModTime().UnixMilli()))
			return t, nil
		})},
		{"write", on(func(L *lua.LState, d *dirGrant, rest string) (lua.LValue, error) {
			text := L.CheckString(2)
			f, err := d.create(rest, false)
			if err != nil {
				return nil, err
			}
			_, err = f.Write([]byte(text))
			if e := f.Close(); err == nil {
				err = e
			}
			return lua.LTrue, err
		})},
	} {
		table.RawSetString(f.name, L.NewFunction(f.act))
	}
	L.SetGlobal("dir", table)
}

func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "dir"
	}
	return "other"
}
