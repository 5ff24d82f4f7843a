package trust

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"noted/notebook"
)

// The example of the documentation holds.
func TestFixturesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/fixtures.toml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := TryPolicy(DefaultPolicy(), text)
	if err != nil || len(cases) != 17 {
		t.Fatalf("%d: %v", len(cases), err)
	}
	for _, c := range cases {
		if !c.Passed || c.Name == "" || c.Line == 0 || c.Rule+c.Reason == "" {
			t.Errorf("%+v", c)
		}
	}
}

// The same fixture under other policies, and every key that it has, once changed.
func TestFixturesTellWhatIsDecided(t *testing.T) {
	phone, desk := notebook.DeviceID{1}.String(), notebook.DeviceID{2}.String()
	for _, c := range []struct {
		policy, keys string
		want         string // decided, and a word of the rule or the reason
	}{
		{"", `standing = "local"`, `granted: local.lua = "granted" (default)`},
		{"[local]\nlua = \"ask\"", `standing = "local"`, `ask: local.lua = "ask" (policy.toml:2)`},
		{"[local]\nlua = \"refuse\"", `standing = "local"`, "refuse: policy.toml:2"},
		{"", `standing = "device:` + phone + `"`, `strict: foreign.lua = "strict" (default)`},
		{"[device." + phone + "]\nlua = \"refuse\"", `standing = "device:` + phone + `"`, "refuse: policy.toml:2"},
		{"[device." + phone + "]\nlua = \"refuse\"", `standing = "device:` + desk + `"`, "strict: default"},
		{"[device." + phone + "]\nlua = \"refuse\"", `standing = ["device:` + desk + `", "device:` + phone + `"]`, "refuse: policy.toml:2"},
		{"[foreign]\nlua = \"ask\"", `standing = "agent:scribe"`, "ask: policy.toml:2"},
		{"[foreign]\nlua = \"ask\"", `standing = "import:old vault"`, "ask: policy.toml:2"},
		{"[foreign]\nlua = \"ask\"", `standing = "structure"`, "ask: policy.toml:2"},
		{"[foreign]\nlua = \"ask\"", "standing = [\"local\", # and\n\"structure\"]", "ask: policy.toml:2"},
		{"[foreign]\nlua = \"ask\"", `standing = ["local"]`, "granted: default"},
		{"", "standing = \"local\"\nwants = [\"page\"]\npage = [\"local\"]", "granted: default"},
		{"", "standing = \"local\"\nwants = [\"page\"]\npage = [\"local\", \"agent:x\"]", "ask: holds text by agent:x"},
		{"", "standing = \"local\"\nwants = [\"clock\"]\npage = [\"agent:x\"]", "granted: default"},
		{"[local]\ncapabilities = [\"clock\"]", "standing = \"local\"\nwants = [\"page\"]", "ask: does not grant"},
		{"", "standing = \"local\"\nby = \"browser\"", "granted: default"},
		{"", "standing = \"local\"\nby = \"agent:scribe\"", "strict: default"},
		{"", "standing = \"local\"\nby = \"agent:scribe\"\nwants = [\"args\"]\nargs = true", "ask: holds text by agent:scribe"},
		{"", "standing = \"local\"\nby = \"agent:scribe\"\nwants = [\"args\"]\nargs = false", "ask: strict only"},
		{"", "standing = \"local\"\nargs = true\nwants = [\"args\"]", "granted: default"},
		{"[local]\ncapabilities = [\"query\"]", "standing = \"local\"\nwants = [\"query\"]", "granted: default"},
		{"[local]\ncapabilities = [\"query\"]", "standing = \"local\"\nwants = [\"query\"]\nquery = [\"agent:x\"]", "ask: holds text by agent:x"},
		{"[local]\ncapabilities = [\"query\"]", "standing = \"local\"\nquery = [\"agent:x\"]", "granted: default"},
		{"[local]\ncapabilities = [\"dir:/a:rw\"]", "standing = \"local\"\nwants = [\"dir:/a\"]", "granted: default"},
		{"[local]\ncapabilities = [\"dir:/a:rw\"]", "standing = \"local\"\nwants = [\"dir:/a/b\"]", "ask: does not grant"},
		{"[local]\ncapabilities = [\"net:a.b:443\"]", "standing = \"local\"\nwants = [\"net:a.b:443\"]", "granted: default"},
		{"[local]\ncapabilities = [\"net:a.b:443\"]", "standing = \"local\"\nwants = [\"net:a.b:444\"]", "ask: does not grant"},
		{"[local]\ncapabilities = [\"net:a.b:443\"]", "standing = \"agent:x\"\nwants = [\"net:a.b:443\"]", "ask: strict only"},
		{"[local]\ncapabilities = [\"net:a.b:443\"]", "standing = \"local\"\nby = \"agent:x\"\nwants = [\"net:a.b:443\"]", "ask: strict only"},
	} {
		cases, err := TryPolicy(policyOf(t, c.policy), []byte("[[fixture]]\nlanguage = \"lua\"\ndecision = \"granted\"\n"+c.keys))
		if err != nil {
			t.Errorf("%s: %v", c.keys, err)
			continue
		}
		got := cases[0]
		word, why, _ := strings.Cut(c.want, ": ")
		if got.Decided != word || !strings.Contains(got.Rule+got.Reason, why) || got.Passed != (word == "granted") || got.Expected != "granted" {
			t.Errorf("%q, %q: %+v, want %s", c.policy, c.keys, got, c.want)
		}
	}
	const handed = "[[fixture]]\nstanding = \"local\"\nlanguage = \"lua\"\nwants = [\"clock\"]\ndecision = \"granted\"\ncapabilities = "
	for list, passes := range map[string]bool{`["clock"]`: true, `["clock", "seed"]`: false, `[]`: false, `["page"]`: false} {
		cases, err := TryPolicy(DefaultPolicy(), []byte(handed+list))
		if err != nil || cases[0].Passed != passes || !strings.HasPrefix(cases[0].Decided, "granted with clock") {
			t.Errorf("%s: %+v %v", list, cases, err)
		}
	}
}

func TestFixtureErrorsNameTheLine(t *testing.T) {
	const whole = "[[fixture]]\nstanding = \"local\"\nlanguage = \"lua\"\ndecision = \"granted\"\n"
	if _, err := TryPolicy(DefaultPolicy(), []byte(whole)); err != nil {
		t.Fatal(err)
	}
	phone := notebook.DeviceID{1}
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"", 0, "there is none"},
		{"# nothing\n", 0, "there is none"},
		{"standing = \"local\"\n", 1, "stands in no fixture"},
		{"[fixture]\nstanding = \"local\"\n", 1, "unknown table fixture"},
		{"[[fixtures]]\n" + whole, 1, "unknown table fixtures"},
		{whole + "[local]\nlua = \"granted\"\n", 5, "unknown table local"},
		{whole + "stands = \"local\"\n", 5, "stands: unknown key"},
		{whole + "trust = true\n", 5, "unknown key"},
		{whole + "a.b = 1\n", 5, "a.b: unknown key"},
		{whole + "decision = \"granted\"\n", 5, "decision"},
		{whole + "by = \"Owner\"\n", 5, "by: it is"},
		{whole + "by = \"viewer\"\n", 5, "by: it is"},
		{whole + "by = \"agent:\"\n", 5, "by: it is"},
		{whole + "by = 1\n", 5, "by: it is"},
		{whole + "args = \"true\"\n", 5, "args: it is"},
		{whole + "wants = \"clock\"\n", 5, "wants: it is"},
		{whole + "wants = [\"shell\"]\n", 5, "wants: it is"},
		{whole + "wants = [\"dir:data\"]\n", 5, "not absolute"},
		{whole + "wants = [\"dir:/a\", \"dir:/a:rw\"]\n", 5, "at once"},
		{whole + "query = []\n", 5, "query: it is"},
		{whole + "wants = [\"clock\", \"clock\"]\n", 5, "wants: it is"},
		{whole + "wants = [1]\n", 5, "wants: it is"},
		{whole + "page = []\n", 5, "page: it is"},
		{whole + "name = 1\n", 5, "name: it is"},
		{whole + "name = \"a\\u001b\"\n", 5, "name: it is"},
		{strings.Replace(whole, `"local"`, `"device:phone"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `"device:`+phone.Short()+`"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `"device:`+notebook.DeviceID{}.String()+`"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `"local:x"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `"agent:"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `"everybody"`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"local"`, `[]`, 1), 2, "standing: it is"},
		{strings.Replace(whole, `"lua"`, `"lua {wants=page}"`, 1), 3, "language: it is"},
		{strings.Replace(whole, `"granted"`, `"host"`, 1), 4, "no policy decides more"},
		{strings.Replace(whole, `decision = "granted"`, `name = "x"`, 1), 1, "does not say its decision"},
		{strings.Replace(whole, "standing = \"local\"\n", "", 1), 1, "does not say its standing"},
		{whole + "[[fixture]]\n", 5, "does not say its"},
		{strings.Replace(whole, `"granted"`, `"ask"`, 1) + "capabilities = []\n", 1, "granted only"},
		{whole + "by = \"ow", 5, ""},
		{whole + "by = \"a\xff\"", 5, ""},
		{strings.Repeat(whole, maxFixtures+1), 4*maxFixtures + 1, "more than"},
		{strings.Repeat("#", maxFixtureBytes+1), 0, "allowed"},
	} {
		cases, err := TryPolicy(DefaultPolicy(), []byte(c.text))
		var e *notebook.Error
		if cases != nil || !errors.As(err, &e) {
			t.Errorf("%.100q: %+v %v", c.text, cases, err)
			continue
		}
		if line := fmt.Sprintf("line %d: ", c.line); !strings.Contains(e.Message, c.want) || c.line > 0 && !strings.Contains(e.Message, line) || e.Hint == "" {
			t.Errorf("%.100q: %q, want %s%s", c.text, e.Message, line, c.want)
		}
	}
}

func FuzzTryPolicy(f *testing.F) {
	f.Add("[[fixture]]\nstanding = \"local\"\nlanguage = \"lua\"\ndecision = \"granted\"\n")
	f.Add("[[fixture]]\nstanding = [\"agent:x\", \"structure\"]\nlanguage = \"lua\"\ndecision = \"ask\"\nwants = [\"page\"]\npage = [\"import:y\"]\nargs = true\nby = \"agent:z\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := TryPolicy(DefaultPolicy(), []byte(text))
		if (err == nil) == (len(cases) == 0) {
			t.Errorf("%d cases and %v", len(cases), err)
		}
	})
}
