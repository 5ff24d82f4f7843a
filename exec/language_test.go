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
	for _, l := range languages {
		if l.name != queryLanguage.name && !strings.Contains(string(mod), l.version+"\n") && !strings.Contains(string(mod), l.version+" ") {
			t.Errorf("go.mod does not require %s", l.version)
		}
		if Engine(l.name) == (notebook.Hash{}) {
			t.Errorf("%s runs without an engine", l.name)
		}
	}
	if Engine("Lua") != (notebook.Hash{}) || Engine("cobol") != (notebook.Hash{}) {
		t.Error("an engine of a language that does not run")
	}
}
