package notebook

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestAttributes(t *testing.T) {
	for info, want := range map[string]map[string]string{
		"":                             nil,
		"lua":                          nil,
		"lua {}":                       {},
		"lua { }":                      {},
		"lua {wants=page}":             {"wants": "page"},
		`lua {wants="page clock"}`:     {"wants": "page clock"},
		`lua	{a=1	b_2="{=}" c-d=x/y }`: {"a": "1", "b_2": "{=}", "c-d": "x/y"},
		`lua {a=""}`:                   {"a": ""},
		`lua {a="\"}`:                  {"a": `\`},
		"lua {title=Zürich}":           {"title": "Zürich"},
	} {
		got, err := Part{Info: info}.Attributes()
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", info, got, err, want)
		}
	}
	for info, want := range map[string]string{
		"lua x":                     "follows the language",
		"lua linenos=1":             "follows the language",
		"lua {a=1":                  "closing brace is missing",
		"lua {":                     "closing brace is missing",
		"lua {a=1} x":               "follows the closing brace",
		"lua {a=1}{b=2}":            "follows the closing brace",
		"lua {a=1}}":                "follows the closing brace",
		"lua {a}":                   "key=value",
		"lua {.class}":              "key=value",
		"lua {#id}":                 "key=value",
		"lua {=1}":                  "key=value",
		"lua {a =1}":                "key=value",
		"lua {A=1}":                 "key=value",
		"lua {1a=1}":                "key=value",
		"lua {-a=1}":                "key=value",
		"lua {wänts=page}":          "key=value",
		"lua {want\u200bs=page}":    "key=value",
		"lua {a=}":                  "no value",
		"lua {a= 1}":                "no value",
		"lua {a==1}":                "no value",
		"lua {a=b=c}":               "follows the value",
		`lua {a=b"c"}`:              "follows the value",
		`lua {a="b"c}`:              "follows the value",
		`lua {a="b"c=d}`:            "follows the value",
		"lua {a={b}}":               "no value",
		"lua {a=b{}":                "follows the value",
		`lua {a="b}`:                "no closing quote",
		"lua {a=1 a=2}":             "given twice",
		`lua {wants=page wants=""}`: "given twice",
	} {
		got, err := Part{Info: info}.Attributes()
		var e *Error
		if got != nil || !errors.As(err, &e) || !strings.Contains(e.Message, want) || e.Hint == "" {
			t.Errorf("%q: %v, %v; want an error with %q", info, got, err, want)
		}
		if _, err := (Part{Info: info}).Wants(); err == nil {
			t.Errorf("%q: what it wants can be read", info)
		}
		if _, err := (Part{Info: info}).Includes(); err == nil {
			t.Errorf("%q: what it includes can be read", info)
		}
	}
}

func TestWants(t *testing.T) {
	for info, want := range map[string][]Capability{
		"lua":                           nil,
		"lua {}":                        nil,
		`lua {wants=""}`:                nil,
		"lua {want=page}":               nil,
		"lua {wants=clock}":             {CapClock},
		`lua {wants="seed  page args"}`: {CapArgs, CapPage, CapSeed},
		`lua {wants="page page"}`:       {CapPage},
		`sh {wants="program:/bin/ls dir:/a%20b:rw	net:a.b:1"}`: {"dir:/a%20b:rw", "net:a.b:1", "program:/bin/ls"},
	} {
		got, err := Part{Info: info}.Wants()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", info, got, err, want)
		}
	}
	for info, want := range map[string]string{
		"lua {wants=net}":                                           "the port is missing",
		"lua {wants=Page}":                                          "does not know",
		`lua {wants="page,clock"}`:                                  "does not know",
		`lua {wants="page net"}`:                                    "the port is missing",
		"lua {wants=host:example.com:443}":                          "does not know",
		`lua {wants="dir:/a dir:/a:rw"}`:                            "at once",
		`lua {wants="dir:/a b"}`:                                    "does not know", // b
		"lua {wants=\"page\u00a0clock\"}":                           "does not know",
		"lua {wants=\"page\xff\"}":                                  "does not know",
		`lua {wants="` + strings.Repeat("page ", MaxWants+1) + `"}`: "more than",
	} {
		if got, err := (Part{Info: info}).Wants(); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", info, got, err, want)
		}
	}
}

func FuzzAttributes(f *testing.F) {
	for _, s := range []string{"lua", `lua {a=1 b="x y"}`, "lua {a=1", "lua {a=1} x", "lua {=}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, info string) {
		attributes, err := Part{Info: info}.Attributes()
		if err != nil {
			return
		}
		// Written in the plainest form, what was read is read again.
		var b strings.Builder
		b.WriteString("lua {")
		for _, k := range slices.Sorted(maps.Keys(attributes)) {
			b.WriteString(k + `="` + attributes[k] + `" `)
		}
		b.WriteString("}")
		if again, err := (Part{Info: b.String()}).Attributes(); err != nil || !maps.Equal(again, attributes) {
			t.Errorf("%q is %v, and %q is %v, %v", info, attributes, b.String(), again, err)
		}
	})
}
