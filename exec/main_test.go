package exec

import (
	"os"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[4] != "" && os.Args[4][0] == 'x' {
		openEverything = func(L *lua.LState) { L.OpenLibs() }
	}
	Worker()
	os.Exit(m.Run())
}
