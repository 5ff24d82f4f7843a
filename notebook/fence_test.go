package notebook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// show renders a fence by its spans, so that a table of expectations reads like
// the text that they are cut from.
func show(body string, f *Fence) string {
	cut := func(s Span) string { return body[s.From:s.To] }
	s := fmt.Sprintf("%q %s %q %q", cut(f.Whole), cut(f.Open), cut(f.Info), f.Code(body))
	if !f.Closed() {
		return s + " open"
	}
	return s + " " + cut(f.Close)
}

func TestFenceSpans(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{"```lua\nprint(1)\n```\n", []string{"\"```lua\\nprint(1)\\n```\\n\" ``` \"lua\" \"print(1)\\n\" ```"}},
		{"a\n~~~ lua x=1  \nprint(1)\n~~~~\nafter", []string{`"~~~ lua x=1  \nprint(1)\n~~~~\n" ~~~ "lua x=1" "print(1)\n" ~~~~`}},
		{"~~~\n~~~", []string{`"~~~\n~~~" ~~~ "" "" ~~~`}},
		{"~~~lua\nunclosed", []string{`"~~~lua\nunclosed" ~~~ "lua" "unclosed\n" open`}},
		{"  ~~~lua\n  ", []string{`"  ~~~lua\n  " ~~~ "lua" "" open`}},
		{"~~~lua", []string{`"~~~lua" ~~~ "lua" "" open`}},
		{"~~~~md\n~~~lua\nx\n~~~\n~~~~\n", []string{`"~~~~md\n~~~lua\nx\n~~~\n~~~~\n" ~~~~ "md" "~~~lua\nx\n~~~\n" ~~~~`}},
		{"- ~~~lua\n  a\n  ~~~\n", []string{`"- ~~~lua\n  a\n  ~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{"1. x\n\n   ~~~lua\n   a\n     b\n   ~~~\n", []string{`"   ~~~lua\n   a\n     b\n   ~~~\n" ~~~ "lua" "a\n  b\n" ~~~`}},
		{"> ~~~lua\n> a\n> ~~~\n", []string{`"> ~~~lua\n> a\n> ~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{"> ~~~lua\n> a\nlazy\n~~~\n", []string{`"> ~~~lua\n> a\n" ~~~ "lua" "a\n" open`, `"~~~\n" ~~~ "" "" open`}},
		{"> - ~~~lua\n>   a\n>   ~~~\n", []string{`"> - ~~~lua\n>   a\n>   ~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{"-\t~~~lua\n\ta\n\t~~~\n", []string{`"-\t~~~lua\n\ta\n\t~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{">\t~~~lua\n>\ta\n>\t~~~\n", []string{`">\t~~~lua\n>\ta\n>\t~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{"- a\n\n\t~~~lua\n\t\tx\n\t~~~\n", []string{`"\t~~~lua\n\t\tx\n\t~~~\n" ~~~ "lua" "\tx\n" ~~~`}},
		{"   ~~~lua\n    a\n  b\n   ~~~\n", []string{`"   ~~~lua\n    a\n  b\n   ~~~\n" ~~~ "lua" " a\nb\n" ~~~`}},
		{"    ~~~lua\n    indented code\n    ~~~\n", nil},
		{"para\n~~~lua\na\n~~~\n", []string{`"~~~lua\na\n~~~\n" ~~~ "lua" "a\n" ~~~`}},
		{"<div>\n~~~lua\n~~~\n</div>\n\n~~~lua\nreal\n~~~\n", []string{`"~~~lua\nreal\n~~~\n" ~~~ "lua" "real\n" ~~~`}},
		{"<!--\n~~~lua\nx\n~~~\n-->\n", nil},
		{"``` lua `x`\nno fence\n", nil},
		{"~~~lua\nx\n~~~ not its end\n~~~\n", []string{`"~~~lua\nx\n~~~ not its end\n~~~\n" ~~~ "lua" "x\n~~~ not its end\n" ~~~`}},
		{"~~~lua\nx\n    ~~~\n", []string{`"~~~lua\nx\n    ~~~\n" ~~~ "lua" "x\n    ~~~\n" open`}},
		{"- ~~~lua\n  a\n\n b\n", []string{`"- ~~~lua\n  a\n\n" ~~~ "lua" "a\n\n" open`}},
		{"[a]: b\n~~~lua\nx\n~~~\n", []string{`"~~~lua\nx\n~~~\n" ~~~ "lua" "x\n" ~~~`}},
		{"~~~l&#117;a\n~~~\n", []string{`"~~~l&#117;a\n~~~\n" ~~~ "l&#117;a" "" ~~~`}},
		{"~~\nx\n", nil},
		{"\u200b~~~lua\nx\n", nil},
		{"\u00a0~~~lua\nx\n", nil},
		{"\u202e~~~lua\nx\n", nil},
		{"\u02cb\u02cb\u02cblua\nx\n", nil},
		{"\uff5e\uff5e\uff5elua\nx\n", nil},
		{"a\u2028~~~lua\u2028x\n", nil},
		{"~~~lua\nx\n\u200b~~~\n~~~\n", []string{`"~~~lua\nx\n\u200b~~~\n~~~\n" ~~~ "lua" "x\n\u200b~~~\n" ~~~`}},
		{"~~~lua\n// \u202e\u2066\nx\n~~~\n", []string{`"~~~lua\n// \u202e\u2066\nx\n~~~\n" ~~~ "lua" "// \u202e\u2066\nx\n" ~~~`}},
		{"~~~\n~~~\n~~~\n~~~\n", []string{`"~~~\n~~~\n" ~~~ "" "" ~~~`, `"~~~\n~~~\n" ~~~ "" "" ~~~`}},
		{"~~~\n~~~~\n~~~~~\n", []string{`"~~~\n~~~~\n" ~~~ "" "" ~~~~`, `"~~~~~\n" ~~~~~ "" "" open`}},
		{"<script>\n~~~lua\n\n~~~\n</script>\n~~~\n~~~\n", []string{`"~~~\n~~~\n" ~~~ "" "" ~~~`}},
		{"", nil},
	} {
		fences, err := Fences(c.body)
		if err != nil {
			t.Errorf("%q: %v", c.body, err)
		}
		var got []string
		for i := range fences {
			got = append(got, show(c.body, &fences[i]))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q:\n got %s\nwant %s", c.body, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
		}
	}
}

// What stands above a fence can change its code without touching its bytes.
// That is why digests are over parsed code.
func TestCodeIsNotASliceOfTheSource(t *testing.T) {
	const fence = "      ~~~lua\n        x\n     y\n      ~~~\n"
	for _, c := range []struct{ above, code string }{
		{"1. a\n\n", "  x\ny\n"},
		{"1000. a\n\n", "  x\n"}, // y is left of the list, which ends
	} {
		fences, err := Fences(c.above + fence)
		if err != nil || len(fences) == 0 {
			t.Fatalf("%q: %v, %v", c.above, fences, err)
		}
		if got := fences[0].Code(c.above + fence); got != c.code {
			t.Errorf("below %q the code is %q, want %q", c.above, got, c.code)
		}
	}
}

func TestPart(t *testing.T) {
	const body = "- ~~~~ Lua {wants=\"page\"}  \n  a\n  ~~~~\n"
	fences, err := Fences(body)
	if err != nil || len(fences) != 1 {
		t.Fatal(fences, err)
	}
	want := Part{Delimiter: "~~~~", Language: "lua", Info: `Lua {wants="page"}`, Code: "a\n"}
	if got := fences[0].Part(body); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLanguage(t *testing.T) {
	for info, want := range map[string]string{
		"lua": "lua", "LUA": "lua", "c++ x": "c++", "obj-c\t{a=b}": "obj-c", "f.90_x": "f.90_x",
		"":         "",
		"lua{a=b}": "", "{a=b}": "", "l&#117;a": "", `l\ua`: "", "lua\u200b": "", "\u212ai": "", "lüa": "", "lua,js": "", "lua\u00a0x": "", "lua\x00": "",
	} {
		if got := languageOf(info); got != want {
			t.Errorf("%q: %q, want %q", info, got, want)
		}
	}
}

// hostile bodies cost a parser more than their size, or did when they were found.
func hostile(n int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	grow := func(next func(i int) string) string {
		var b strings.Builder
		for i := 0; ; i++ {
			if s := next(i); b.Len()+len(s) <= n {
				b.WriteString(s)
			} else {
				return b.String()
			}
		}
	}
	return map[string]string{
		"quotes":                    fill(">"),
		"lines of quotes":           fill(strings.Repeat(">", 60) + "\n"),
		"lines of deeper quotes":    fill(strings.Repeat(">", 200) + "\n"),
		"lines of deepest quotes":   fill(strings.Repeat(">", n/64) + "\n"),
		"quotes with tabs":          fill("\t>"),
		"lists":                     fill("- "),
		"lists under the bound":     fill(strings.Repeat("- ", 31) + "x\n"),
		"a deep list and its lines": strings.Repeat("- ", 31) + "x\n" + strings.Repeat(strings.Repeat(" ", 70)+"x\n", (n-70)/72),
		"a stair of lists":          grow(func(i int) string { return strings.Repeat("  ", i%1000) + "- a\n" }),
		"a stair of 30":             grow(func(i int) string { return strings.Repeat("  ", i%30) + "- a\n" }),
		"blank lines in a list":     "- a\n" + fill("\n")[8:] + "x",
		"blank lines in 31 lists":   strings.Repeat("- ", 31) + "x\n" + fill("\n")[80:] + "x",
		"blank lines in quotes":     fill(strings.Repeat(">", 60) + "\n\n"),
		"definitions":               fill("[a]: b\n"),
		"open definitions":          fill("[a]:\n"),
		"titles of definitions":     fill("[a]: b 'x\n"),
		"brackets":                  fill("["),
		"fences":                    fill("```lua\nx\n```\n"),
		"empty fences":              fill("```\n"),
		"fences in quotes":          fill("> ~~~\n\n"),
		"fence of blanks":           "~~~\n" + fill(" ")[4:],
		"fence of short lines":      "~~~\n" + fill("\n")[4:],
		"fence of tabs in a list":   "- ~~~\n" + fill("\t\n")[8:],
		"openings":                  fill("```lua\n"),
		"ticks":                     fill("`"),
		"longer and longer fences":  grow(func(i int) string { return strings.Repeat("~", i+3) + "\n" }),
		"a long info string":        "~~~" + fill("a")[4:],
		"comments":                  fill("<!--\n"),
		"instructions":              fill("<?\n\n"),
		"tags":                      fill("<a\n"),
		"one heading":               fill("a\n")[4:] + "===",
		"headings":                  fill("#\n"),
		"numbers":                   fill("1. "),
		"prose":                     fill("The quick brown fox jumps over the lazy dog.\n\n"),
		"one paragraph":             fill("The quick brown fox jumps over the lazy dog.\n"),
		"one line":                  fill("x"),
		"entities":                  fill("&amp;"),
		"pipes":                     fill("|a|\n|-|\n"),
	}
}

// TestHostileBodiesAreBounded gives every shape far more time than it needs, on
// a goroutine of its own so that one which takes for ever is a failure with a name.
func TestHostileBodiesAreBounded(t *testing.T) {
	const deadline = 20 * time.Second
	refused := 0
	for name, body := range hostile(hostileSize) {
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := Fences(body)
			done <- err
		}()
		select {
		case err := <-done:
			if errors.Is(err, errNesting) || errors.Is(err, errSteps) {
				refused++
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); testing.Verbose() {
				t.Logf("%4d ms  %s  %v", took.Milliseconds(), name, err)
			}
		case <-time.After(deadline):
			t.Fatalf("%s: not read after %v", name, deadline)
		}
	}
	if refused == 0 {
		t.Error("none of the shapes was refused")
	}
}

func TestNestingIsBounded(t *testing.T) {
	const fence = "~~~lua\n"
	for _, c := range []struct {
		name, prefix string
		each, most   int // blocks of one prefix, and how many may be nested
	}{{"quotes", ">", 1, maxNesting}, {"lists", "- ", 2, maxNesting / 2}, {"numbers", "1. ", 2, maxNesting / 2}} {
		if fences, err := Fences(strings.Repeat(c.prefix, c.most) + fence); err != nil || len(fences) != 1 {
			t.Errorf("%d %s: %d fences, %v", c.most, c.name, len(fences), err)
		}
		// The fence before the deep part is not known either: a page is read or it is not.
		fences, err := Fences(fence + "~~~\n" + strings.Repeat(c.prefix, c.most+1) + fence)
		var e *Error
		if !errors.As(err, &e) || fences != nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%d %s: %d fences, %v", c.most+1, c.name, len(fences), err)
		}
	}
}

// Lists and quotes within the bound of depth cost the parser memory for each
// level of each line.
func TestLinesTimesLevelsAreBounded(t *testing.T) {
	const fence = "~~~lua\nx\n~~~\n"
	page := func(lines int) string {
		return fence + strings.Repeat("- ", 31) + "x\n" + strings.Repeat("\n", lines) + fence
	}
	if fences, err := Fences(page(10_000)); err != nil || len(fences) != 2 {
		t.Errorf("10,000 lines: %d fences, %v", len(fences), err)
	}
	fences, err := Fences(page(20_000))
	if fences != nil || !errors.Is(err, errSteps) {
		t.Errorf("20,000 lines: %d fences, %v", len(fences), err)
	}
}

func TestOversizedBodyHasNoFences(t *testing.T) {
	fence := "~~~lua\n~~~\n"
	full := fence + strings.Repeat("x", MaxBody-len(fence))
	if fences, err := Fences(full); err != nil || len(fences) != 1 {
		t.Errorf("a full page: %d fences, %v", len(fences), err)
	}
	if fences, err := Fences(full + "x"); err == nil || fences != nil {
		t.Errorf("a page of one byte more: %d fences, %v", len(fences), err)
	}
}

func BenchmarkFences(b *testing.B) {
	for _, name := range []string{"prose", "fences"} {
		body := hostile(MaxBody)[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := Fences(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
