package notebook

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseCapability(t *testing.T) {
	for s, want := range map[string]struct {
		kind     Capability
		path     string
		writable bool
		address  string
	}{
		"page":                             {kind: CapPage},
		"clock":                            {kind: CapClock},
		"args":                             {kind: CapArgs},
		"seed":                             {kind: CapSeed},
		"query":                            {kind: CapQuery},
		"dir:/home/me/data":                {kind: CapDir, path: "/home/me/data"},
		"dir:/home/me/data:rw":             {kind: CapDir, path: "/home/me/data", writable: true},
		"dir:/a%20b%25%22%3Arw":            {kind: CapDir, path: `/a b%":rw`},
		"dir:/a%20b%25%22%3Arw:rw":         {kind: CapDir, path: `/a b%":rw`, writable: true},
		"dir:/Zürich/..x":                  {kind: CapDir, path: "/Zürich/..x"},
		"program:/usr/bin/pandoc":          {kind: CapProgram, path: "/usr/bin/pandoc"},
		"net:example.org:443":              {kind: CapNet, address: "example.org:443"},
		"net:localhost:1":                  {kind: CapNet, address: "localhost:1"},
		"net:xn--zrich-kva.ch:65535":       {kind: CapNet, address: "xn--zrich-kva.ch:65535"},
		"net:127.0.0.1:80":                 {kind: CapNet, address: "127.0.0.1:80"},
		"net:[::1]:80":                     {kind: CapNet, address: "[::1]:80"},
		"net:[2001:db8::1]:80":             {kind: CapNet, address: "[2001:db8::1]:80"},
		"net:4you.example:80":              {kind: CapNet, address: "4you.example:80"},
		"net:" + host(253) + ":443":        {kind: CapNet, address: host(253) + ":443"},
		"dir:/" + strings.Repeat("x", 507): {kind: CapDir, path: "/" + strings.Repeat("x", 507)},
	} {
		c, err := ParseCapability(s)
		if err != nil || string(c) != s || c.Kind() != want.kind || c.Path() != want.path || c.Writable() != want.writable || c.Address() != want.address {
			t.Errorf("%q: %q %q %q %v %q, %v", s, c, c.Kind(), c.Path(), c.Writable(), c.Address(), err)
		}
	}
	for s, want := range map[string]string{
		"": "does not know", " page": "does not know", "Page": "does not know", "page:": "does not know", "page:x": "does not know", "pages": "does not know",
		"host": "does not know", "host:example.com:443": "does not know", "Dir:/a": "does not know", "file:/a": "does not know", "page,clock": "does not know",
		"*": "does not know", "dir ": "does not know",

		"dir": "not absolute", "dir:": "not absolute", "dir:rw": "not absolute", "dir::rw": "not absolute", "dir:a": "not absolute", "dir:./a": "not absolute",
		"dir:~/a": "not absolute", `dir:C%3A\a`: "not absolute", "dir:%2Fa": "a blank is %20",
		"dir:/": "root", "dir:/:rw": "root", "program:/": "root",
		"dir:/a/": "shortest", "dir://a": "shortest", "dir:/a//b": "shortest", "dir:/a/../b": "shortest", "dir:/a/.": "shortest", "dir:/..": "shortest", "dir:/./a:rw": "shortest",
		"dir:/a b": "a blank is %20", `dir:/a"b`: "a blank is %20", "dir:/a%": "a blank is %20", "dir:/a%2": "a blank is %20", "dir:/a%41": "a blank is %20",
		"dir:/a%3a": "a blank is %20", "dir:/a%00": "a blank is %20", "dir:/a%2Fb": "a blank is %20", "dir:/a:ro": "a blank is %20", "dir:/a:rw:rw": "a blank is %20", "dir:/a:RW": "a blank is %20",
		"program:/a:rw": "a blank is %20", "dir:/%252e:x": "a blank is %20",
		"dir:/a\x00": "do not show", "dir:/a\nb": "do not show", "dir:/a\tb": "do not show", "dir:/a\u202eb": "do not show", "dir:/a\u200b": "do not show",
		"dir:/a\xff": "do not show", "dir:/a\u00a0b": "do not show", "dir:/a\u3000b": "do not show", "program:/usr/bin/\u200dls": "do not show",
		"dir:/" + strings.Repeat("x", 508): "512 at most",

		"net": "port is missing", "net:": "port is missing", "net:example.org": "port is missing",
		"net:example.org:": "65535", "net:example.org:0": "65535", "net:example.org:65536": "65535", "net:example.org:080": "65535", "net:example.org:+80": "65535",
		"net:example.org:https": "65535", "net:example.org:-1": "65535", "net:example.org:80 ": "65535",
		"net::80": "missing", "net:.:80": "a name of", "net:example.org.:80": "a name of", "net:a..b:80": "a name of", "net:-a.b:80": "a name of", "net:a-.b:80": "a name of",
		"net:Example.org:80": "a name of", "net:zürich.ch:80": "a name of", "net:*.example.org:80": "a name of", "net:a_b.c:80": "a name of", "net:a b:80": "a name of",
		"net:user@example.org:80": "a name of", "net:example.org:1:80": "a name of", "net:http://example.org:80": "a name of", "net:a/b:80": "a name of",
		"net:" + strings.Repeat("a", 64) + ".b:80": "a name of", "net:" + host(254) + ":80": "too long",
		"net:127.1:80": "looks like an IP", "net:2130706433:80": "looks like an IP", "net:0x7f.0x1:80": "looks like an IP", "net:0177.0.0.1:80": "looks like an IP",
		"net:1.2.3.4.5:80": "looks like an IP", "net:256.1.1.1:80": "looks like an IP", "net:01.2.3.4:80": "looks like an IP",
		"net:::1:80": "a name of", "net:[::1:80": "brackets", "net:[]:80": "brackets", "net:[127.0.0.1]:80": "brackets", "net:[::ffff:127.0.0.1]:80": "brackets",
		"net:[fe80::1%25eth0]:80": "brackets", "net:[0:0:0:0:0:0:0:1]:80": "brackets", "net:[2001:DB8::1]:80": "brackets", "net:[::1]x:80": "brackets",
	} {
		c, err := ParseCapability(s)
		var e *Error
		if c != "" || !errors.As(err, &e) || e.Code != CodeInvalid || e.Hint == "" || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %q, %v; want an error with %q", s, c, err, want)
		}
		if raw := Capability(s); raw.Kind() != "" || raw.Path() != "" || raw.Writable() || raw.Address() != "" {
			t.Errorf("%q is none and has a %q, %q, %v, %q", s, raw.Kind(), raw.Path(), raw.Writable(), raw.Address())
		}
	}
}

// host is a name of n bytes in labels of up to 63.
func host(n int) string {
	var b strings.Builder
	for b.Len() < n-1 {
		b.WriteString(strings.Repeat("a", min(63, n-1-b.Len())) + ".")
	}
	return (b.String() + "b")[:n-1] + "b"
}

func TestParseCapabilities(t *testing.T) {
	got, err := ParseCapabilities([]string{"seed", "dir:/a", "page", "dir:/b:rw", "seed"})
	if err != nil || !slices.Equal(got, []Capability{"dir:/a", "dir:/b:rw", "page", "seed"}) {
		t.Errorf("%v %v", got, err)
	}
	most := make([]string, MaxWants)
	for i := range most {
		most[i] = "page"
	}
	if got, err := ParseCapabilities(most); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	for want, words := range map[string][]string{
		"more than 16":           append(most, "page"),
		"does not know":          {"page", "shell"},
		"at once":                {"dir:/a:rw", "page", "dir:/a"},
		`"/a b" is to be read`:   {"dir:/a%20b", "dir:/a%20b:rw"},
		"the path is not absolu": {"page", "dir:a"},
	} {
		if got, err := ParseCapabilities(words); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", words, got, err, want)
		}
	}
}

// What is written of any path is read again as that path, or not at all.
func TestCapabilitiesOfPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := "/" + rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c %:"./]{0,12}`)).Draw(t, "path")
		write := rapid.Bool().Draw(t, "write")
		for _, c := range []Capability{Dir(p, write), Program(p)} {
			parsed, err := ParseCapability(string(c))
			fits := p != "/" && path.Clean(p) == p && len(c) <= MaxCapability
			if err == nil && (!fits || parsed.Path() != p || parsed.Writable() != (write && c.Kind() == CapDir)) {
				t.Fatalf("%q is %q with the path %q", p, c, parsed.Path())
			}
			if plain := strings.Trim(p, `abc %:"./`) == ""; err != nil && fits && plain {
				t.Fatalf("%q is written %q, which is not read: %v", p, c, err)
			}
			if err == nil && strings.ContainsAny(string(parsed), " \t\"\n{}") && !strings.ContainsAny(p, "{}") {
				t.Fatalf("%q cannot stand in wants", parsed)
			}
		}
	})
}

func TestCanonical(t *testing.T) {
	for word, want := range map[string]string{
		"py": "python", "js": "javascript", "shell": "sh", "bash": "sh",
		"lua": "lua", "python": "python", "sh": "sh", "": "", "zsh": "zsh", "python3": "python3", "PY": "PY",
	} {
		if got := Canonical(word); got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
		if Canonical(want) != want {
			t.Errorf("%q is an alias of an alias", word)
		}
	}
}

func FuzzParseCapability(f *testing.F) {
	for _, s := range []string{"page", "dir:/home/me:rw", "dir:/a%20b", "program:/bin/ls", "net:example.org:443", "net:[::1]:80", "net:1.2.3.4:5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCapability(s)
		if err != nil {
			return
		}
		var again Capability
		switch c.Kind() {
		case CapDir:
			again = Dir(c.Path(), c.Writable())
		case CapProgram:
			again = Program(c.Path())
		case CapNet:
			again = Net(c.Address())
		default:
			again = c.Kind()
		}
		if string(again) != s || string(c) != s {
			t.Errorf("%q is written %q", s, again)
		}
		if EscapeLine(s) != s || strings.ContainsAny(s, " \"\t") || len(s) > MaxCapability {
			t.Errorf("%q cannot be shown or written", s)
		}
		info := `lua {wants="` + s + `"}`
		if wants, err := (Part{Info: info}).Wants(); err != nil || len(wants) != 1 || wants[0] != c {
			t.Errorf("%q wants %q: %v", info, wants, err)
		}
	})
}
