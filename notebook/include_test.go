package notebook

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	pageDigits = "000102030405060708090a0b0c0d0e0f"
	someShort  = "fabcdefg27"
)

func TestIncludes(t *testing.T) {
	here, there := Include{Fence: someShort}, Include{Page: PageID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Fence: someShort}
	for info, want := range map[string][]Include{
		"lua": nil, "lua {}": nil, "lua {wants=page}": nil, "lua {includes=x}": nil, `lua {title="include=x"}`: nil,
		"lua {include=#" + someShort + "}":                                                        {here},
		`lua {wants=page include="=` + pageDigits + "#" + someShort + `"}`:                        {there},
		`lua {include=" #` + someShort + "\t =" + pageDigits + "#" + someShort + ` " wants=page}`: {here, there},
		`lua {include="#` + someShort + " #" + someShort + `"}`:                                   {here, here},
	} {
		if got, err := (Part{Info: info}).Includes(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", info, got, err, want)
		}
	}
	for _, value := range []string{
		"", " ", "x", "Lib#1", "Lib#" + someShort, "#1", "#", someShort, "#" + someShort[1:], "#" + someShort[:9], "#" + someShort + "a",
		"#" + strings.ToUpper(someShort), "#f000000000", "#fabcdefg2\u00e9", "##" + someShort, "#" + someShort + "#" + someShort,
		pageDigits + "#" + someShort, "=#" + someShort, "=" + pageDigits, "=" + pageDigits + "#", "=" + pageDigits[:12] + "#" + someShort,
		"=" + pageDigits + "00#" + someShort, "=" + strings.ToUpper(pageDigits) + "#" + someShort, "==" + pageDigits + "#" + someShort,
		"=" + strings.Repeat("0", 32) + "#" + someShort, "=" + pageDigits[:31] + "g#" + someShort, "today#" + someShort,
		"#" + someShort + ",#" + someShort, "#" + someShort + "\u00a0#" + someShort, "#" + someShort + " Lib#1", "{#" + someShort + "}",
		strings.Repeat("#"+someShort+" ", MaxIncludes+1),
	} {
		got, err := Part{Info: `lua {include="` + value + `"}`}.Includes()
		if got != nil || err == nil || !strings.Contains(err.Error(), "includes cannot be read") || !strings.Contains(err.Error(), "noted fence include") {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	most := strings.Repeat("#"+someShort+" ", MaxIncludes)
	if got, err := (Part{Info: `lua {include="` + most + `"}`}).Includes(); err != nil || len(got) != MaxIncludes {
		t.Errorf("as many as there may be: %d, %v", len(got), err)
	}
}

func TestIncluding(t *testing.T) {
	one, other := Include{Fence: "faaaaaaaaa"}, Include{Page: PageID{1}, Fence: "fbbbbbbbbb"}
	written := `include="#faaaaaaaaa =01000000000000000000000000000000#fbbbbbbbbb"`
	for _, c := range []struct{ info, with, without string }{
		{"lua", "lua {" + written + "}", "lua"},
		{"lua {}", "lua {" + written + "}", "lua {}"},
		{"Lua\t{ }", "Lua\t{" + written + "}", "Lua\t{ }"},
		{`lua {wants="page clock" }`, `lua {wants="page clock" ` + written + "}", `lua {wants="page clock" }`},
		{"lua {include=#fccccccccc}", "lua {" + written + "}", "lua"},
		{"lua {include=x wants=page}", "lua {" + written + " wants=page}", "lua {wants=page}"},
		{`lua {a=1  include="x y"  b=2}`, "lua {a=1  " + written + "  b=2}", "lua {a=1  b=2}"},
		{`lua { a="}" include=x }`, `lua { a="}" ` + written + ` }`, `lua { a="}" }`},
	} {
		p := Part{Language: "lua", Info: c.info}
		if got, err := p.Including([]Include{one, other}); err != nil || got != c.with {
			t.Errorf("%q with: %q, %v; want %q", c.info, got, err, c.with)
		}
		if got, err := p.Including(nil); err != nil || got != c.without {
			t.Errorf("%q without: %q, %v; want %q", c.info, got, err, c.without)
		}
	}
	for _, p := range []Part{{Info: "lua {a"}, {Language: "lua", Info: "lua x"}, {Info: ""}} {
		if got, err := p.Including([]Include{one}); got != "" || err == nil {
			t.Errorf("%q: %q, %v", p.Info, got, err)
		}
	}
	if _, err := (Part{Language: "lua", Info: "lua"}).Including(make([]Include, MaxIncludes+1)); err == nil {
		t.Error("more than there may be were written")
	}
}

// What is written is read back, and every other attribute stays.
func TestIncludingIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Part{Language: "lua", Info: "lua " + rapid.StringMatching(`(\{( ?(a|wants|include)=("[^"]*"|[x-z]+)){0,3} ?\})?`).Draw(t, "info")}
		before, err := p.Attributes()
		if err != nil {
			return
		}
		var includes []Include
		for range rapid.IntRange(0, 4).Draw(t, "includes") {
			i := Include{Fence: rapid.StringMatching(`f[a-z2-7]{9}`).Draw(t, "fence")}
			if rapid.Bool().Draw(t, "elsewhere") {
				i.Page = PageID{rapid.Byte().Draw(t, "page"), 1}
			}
			includes = append(includes, i)
		}
		info, err := p.Including(includes)
		if err != nil {
			t.Fatal(err)
		}
		q := Part{Language: "lua", Info: info}
		if got, err := q.Includes(); err != nil || !slices.Equal(got, includes) {
			t.Fatalf("%q became %q, which includes %v (%v), not %v", p.Info, info, got, err, includes)
		}
		after, _ := q.Attributes()
		delete(before, "include")
		delete(after, "include")
		if !maps.Equal(before, after) {
			t.Fatalf("%q became %q", p.Info, info)
		}
	})
}

// FuzzIncludes: what is read as a reference is written as it was, and nothing
// else is one.
func FuzzIncludes(f *testing.F) {
	for _, s := range []string{"#" + someShort, "=" + pageDigits + "#" + someShort, "Lib#1", "=00#f", "", "#f#f", "=" + pageDigits + "#" + someShort + " #" + someShort} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if i, err := ParseInclude(s); err == nil && i.String() != s {
			t.Errorf("%q is read as %v", s, i)
		} else if err != nil && i != (Include{}) {
			t.Errorf("%q is an error and %v", s, i)
		}
		p := Part{Language: "lua", Info: `lua {include="` + s + `"}`}
		includes, err := p.Includes()
		if err != nil {
			return
		}
		if len(includes) == 0 && !strings.Contains(s, `"`) || len(includes) > MaxIncludes {
			t.Errorf("%q includes %d", s, len(includes))
		}
		for _, i := range includes {
			if i.Page != (PageID{}) && len(i.String()) != 1+32+1+10 || i.Page.IsZero() && len(i.String()) != 1+10 {
				t.Errorf("%q includes %v", s, i)
			}
		}
	})
}

func TestClosureParts(t *testing.T) {
	lib := Part{Delimiter: "~~~", Language: "lua", Info: "lua", Code: "x = 1\n"}
	main := Part{Delimiter: "```", Language: "lua", Info: "lua {include=#f}", Code: "return x\n"}
	if got, want := (Closure{lib, main}).Text(), "~~~lua\nx = 1\n~~~\n```lua {include=#f}\nreturn x\n```\n"; got != want {
		t.Errorf("it reads %q, not %q", got, want)
	}
	if c := (Closure{lib, main}); c.Main() != main || c.Size() != 3+3+3+6+3+3+len(main.Info)+9 {
		t.Errorf("%+v, %d bytes", c.Main(), c.Size())
	}
}
