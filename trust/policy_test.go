package trust

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"noted/notebook"
)

func TestPolicy(t *testing.T) {
	id := newDev(t, "phone").id()
	text := `# mine
[local]
lua = "strict"
capabilities = [
  "clock", # only the time
  "args",
]

[foreign]
lua = 'ask'

[device.` + id.String() + `]
lua = "refuse"

[limits]
time = "1.5s"
memory = "64 MiB"
output = "4KiB"
`
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p.Limits() != (notebook.Limits{Time: 1500 * time.Millisecond, Memory: 64 << 20, Output: 4 << 10, Source: 64 << 10}) {
		t.Errorf("limits %+v", p.Limits())
	}
	var got strings.Builder
	for _, l := range p.Lines() {
		fmt.Fprintf(&got, "%s=%s (%s)\n", strings.ReplaceAll(l.Rule, id.String(), "ID"), l.Value, l.Source)
	}
	const want = `local.javascript=granted (default)
local.lua=strict (policy.toml:3)
local.python=granted (default)
local.query=granted (default)
local.sh=granted (default)
local.wasm=granted (default)
local.capabilities=args clock (policy.toml:4)
foreign.javascript=ask (default)
foreign.lua=ask (policy.toml:10)
foreign.python=ask (default)
foreign.query=ask (default)
foreign.sh=ask (default)
foreign.wasm=ask (default)
device.ID.lua=refuse (policy.toml:13)
limits.time=1.5s (policy.toml:16)
limits.memory=64 MiB (policy.toml:17)
limits.output=4 KiB (policy.toml:18)
limits.source=64 KiB (default)
`
	if got.String() != want {
		t.Errorf("lines:\n%s\nwant:\n%s", got.String(), want)
	}
	if again, _ := ParsePolicy([]byte(text + "\n")); again.Digest() == p.Digest() {
		t.Error("the digest is not of the bytes")
	}
}

func TestDefaultPolicy(t *testing.T) {
	for _, p := range []*Policy{DefaultPolicy(), must(ParsePolicy(nil))} {
		var got strings.Builder
		for _, l := range p.Lines() {
			if l.Source != "default" {
				t.Errorf("%v is not a default", l)
			}
			fmt.Fprintf(&got, "%s=%s\n", l.Rule, l.Value)
		}
		const want = `local.javascript=granted
local.lua=granted
local.python=granted
local.query=granted
local.sh=granted
local.wasm=granted
local.capabilities=args clock page seed
foreign.javascript=ask
foreign.lua=strict
foreign.python=ask
foreign.query=ask
foreign.sh=ask
foreign.wasm=ask
limits.time=5s
limits.memory=128 MiB
limits.output=64 KiB
limits.source=64 KiB
`
		if got.String() != want {
			t.Errorf("lines:\n%s", got.String())
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPolicyErrorsNameTheLine(t *testing.T) {
	id := newDev(t, "phone").id().String()
	for _, c := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"foreign granted", "[foreign]\nlua = \"granted\"", 2, "strict"},
		{"foreign host", "[foreign]\n\nlua = \"host\"", 3, "strict"},
		{"device granted", "[device." + id + "]\nlua = \"granted\"", 2, "strict"},
		{"local host", "[local]\nlua = \"host\"", 2, "granted"},
		{"upper case", "[local]\nlua = \"Strict\"", 2, "unknown value"},
		{"empty", "[local]\nlua = \"\"", 2, "unknown value"},
		{"a number", "[local]\nlua = 1", 2, "unknown value"},
		{"true", "[foreign]\nlua = true", 2, "unknown value"},
		{"a list", "[foreign]\nlua = [\"strict\"]", 2, "unknown value"},
		{"a table", "[foreign]\nlua = { rung = \"strict\" }", 2, "unknown value"},
		{"unknown language", "[foreign]\nlau = \"strict\"", 2, "foreign.lau"},
		{"unknown key of local", "[local]\nauto = \"strict\"", 2, "local.auto"},
		{"unknown table", "[trust]\nx = 1", 1, "[trust]"},
		{"empty unknown table", "[trust]", 1, "[trust]"},
		{"key at the top", "lua = \"strict\"", 1, "unknown key lua"},
		{"dotted unknown", "a.b.c = 1", 1, "unknown key a.b.c"},
		{"inline table", "local = { lua = \"granted\" }", 1, "unknown key local"},
		{"list of tables", "\n[[foreign]]\nlua = \"strict\"", 2, "lists of tables"},
		{"no fingerprint", "[device.phone]\nlua = \"strict\"", 1, "device.phone"},
		{"short fingerprint", "[device." + id[:8] + "]\nlua = \"strict\"", 1, "unknown table"},
		{"dotted device", "device.phone.lua = \"strict\"", 1, "device.phone.lua"},
		{"key of all devices", "[device]\nlua = \"strict\"", 2, "device.lua"},
		{"one device in two spellings", "[device." + id + "]\nlua = \"refuse\"\n[device." + strings.ToUpper(id) + "]\nlua = \"strict\"", 4, "already"},
		{"unknown capability", "[local]\ncapabilities = [\"page\", \"shell\"]", 2, "capabilities"},
		{"an alias", "[local]\npy = \"ask\"", 2, "local.py"},
		{"another alias", "[foreign]\nbash = \"ask\"", 2, "foreign.bash"},
		{"foreign shell granted", "[foreign]\nsh = \"granted\"", 2, "strict"},
		{"shell at host", "[local]\nsh = \"host\"", 2, "granted"},
		{"a program", "[local]\ncapabilities = [\"page\", \"program:/bin/ls\"]", 2, "no policy grants a program"},
		{"a kind without its path", "[local]\ncapabilities = [\"dir\"]", 2, "not absolute"},
		{"a relative directory", "[local]\ncapabilities = [\"dir:data\"]", 2, "not absolute"},
		{"any host", "[local]\ncapabilities = [\"net:*:443\"]", 2, "the host is"},
		{"host as a capability", "[local]\ncapabilities = [\"host\"]", 2, "does not know"},
		{"a directory in two ways", "[local]\ncapabilities = [\"dir:/a\", \"dir:/a:rw\"]", 2, "at once"},
		{"capability twice", "[local]\ncapabilities = [\"page\", \"page\"]", 2, "capabilities"},
		{"capabilities not listed", "[local]\ncapabilities = \"page\"", 2, "capabilities"},
		{"capability a number", "[local]\ncapabilities = [1]", 2, "capabilities"},
		{"capabilities of others", "[foreign]\ncapabilities = [\"page\"]", 2, "foreign.capabilities"},
		{"unknown limit", "[limits]\nfiles = 3", 2, "limits.files"},
		{"time without unit", "[limits]\ntime = \"5\"", 2, "5s"},
		{"time a number", "[limits]\ntime = 5", 2, "5s"},
		{"no time", "[limits]\ntime = \"0s\"", 2, "10ms to 10m0s"},
		{"negative time", "[limits]\ntime = \"-5s\"", 2, "outside"},
		{"hours", "[limits]\ntime = \"1h\"", 2, "outside"},
		{"too much memory", "[limits]\nmemory = \"2 GiB\"", 2, "16 MiB to 1 GiB"},
		{"too little memory", "[limits]\nmemory = \"1 MiB\"", 2, "outside"},
		{"a size that overflows", "[limits]\nmemory = \"99999999999 GiB\"", 2, "64 KiB"},
		{"negative size", "[limits]\noutput = \"-1 KiB\"", 2, "64 KiB"},
		{"no output", "[limits]\noutput = \"0 KiB\"", 2, "outside"},
		{"too much output", "[limits]\noutput = \"1 MiB\"", 2, "outside"},
		{"too much source", "[limits]\nsource = \"1 GiB\"", 2, "outside"},
		{"key twice", "[local]\nlua = \"strict\"\nlua = \"granted\"", 3, "lua"},
		{"table twice", "[local]\nlua = \"strict\"\n[local]\nlua = \"granted\"", 3, "local"},
		{"not TOML", "[local\nlua", 1, ""},
		{"cut off", "[local]\nlua = \"str", 2, ""},
		{"not text", "[local]\nlua = \"a\xff\"", 2, ""},
	} {
		p, err := ParsePolicy([]byte(c.text))
		var e *notebook.Error
		if p != nil || !errors.As(err, &e) {
			t.Errorf("%s: parsed: %v", c.name, err)
			continue
		}
		if want := fmt.Sprintf("line %d: ", c.line); !strings.Contains(e.Message, want) || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %q, want %s…%s", c.name, e.Message, want, c.want)
		}
		if e.Hint == "" || !utf8.ValidString(e.Message) {
			t.Errorf("%s: %q, hint %q", c.name, e.Message, e.Hint)
		}
	}
	if _, err := ParsePolicy(make([]byte, maxPolicy+1)); err == nil {
		t.Error("parsed a file of any size")
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("[local]\nlua = \"strict\"\ncapabilities = [\"page\"]\n[limits]\ntime = \"1s\"")
	f.Add("[foreign]\nlua = \"granted\"")
	f.Add("[device.x]\nlua = 'ask'")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy([]byte(text))
		if err != nil {
			return
		}
		l := p.Limits()
		if l.Time > mostLimits.Time || l.Memory > mostLimits.Memory || l.Output > mostLimits.Output || l.Source > mostLimits.Source || l.Time <= 0 || l.Memory <= 0 || l.Output <= 0 || l.Source <= 0 {
			t.Errorf("limits %+v", l)
		}
		if r, _ := p.of(Standing{}, "lua"); r > ruleStrict {
			t.Errorf("foreign fences are %v", r)
		}
	})
}
