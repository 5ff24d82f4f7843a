package exec

import (
	"os"
	"strings"
	"testing"

	"noted/notebook"
)

func TestEngineIsTheOneThatIsLinked(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), luaVersion+"\n") && !strings.Contains(string(mod), luaVersion+" ") {
		t.Errorf("go.mod does not require %s", luaVersion)
	}
	if Engine("lua") == (notebook.Hash{}) || Engine("Lua") != (notebook.Hash{}) || Engine("python") != (notebook.Hash{}) {
		t.Error("an engine without a runtime, or a runtime without an engine")
	}
}
