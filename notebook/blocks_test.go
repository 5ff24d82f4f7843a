package notebook

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// stock reads a body's fences with goldmark as it comes: default blocks,
// default inline syntax, link reference definitions, no bounds.
func stock(body string) (infos, codes []string) {
	source := []byte(body)
	doc := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	).Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if f, ok := n.(*ast.FencedCodeBlock); ok && in {
			info := ""
			if f.Info != nil {
				info = string(f.Info.Segment.Value(source))
			}
			infos = append(infos, info)
			codes = append(codes, string(f.Lines().Value(source)))
		}
		return ast.WalkContinue, nil
	})
	return infos, codes
}

// checkSpans holds what every fence of a body must hold, whatever the body.
func checkSpans(t *testing.T, body string, fences []Fence) {
	t.Helper()
	end := 0
	for i, f := range fences {
		fail := func(what string) { t.Helper(); t.Errorf("%q: fence %d: %s: %+v", body, i+1, what, f) }
		if f.Whole.From < end || f.Whole.To <= f.Whole.From || f.Whole.To > len(body) {
			fail("overlaps the one before, or the end")
			return
		}
		end = f.Whole.To
		if f.Whole.From > 0 && body[f.Whole.From-1] != '\n' || f.Whole.To < len(body) && body[f.Whole.To-1] != '\n' {
			fail("is not made of whole lines")
		}
		if f.Whole.From > f.Open.From || f.Open.To > f.Info.From || f.Info.From > f.Info.To || f.Info.To > f.Whole.To {
			fail("delimiter and info are not in order")
			return
		}
		open := body[f.Open.From:f.Open.To]
		if len(open) < 3 || strings.Trim(open, open[:1]) != "" || open[0] != '`' && open[0] != '~' {
			fail("opens with " + open)
		}
		if info := body[f.Info.From:f.Info.To]; strings.Contains(info, "\n") || strings.Trim(info, blanks) != info {
			fail("info is not trimmed or has several lines")
		}
		at := f.Info.To
		for _, l := range f.Lines {
			if l.Pad < 0 || l.Span.From < at || l.Span.To < l.Span.From || l.Span.To > f.Whole.To {
				fail("lines are not in order")
				return
			}
			at = l.Span.To
		}
		if f.Closed() {
			closing := body[f.Close.From:f.Close.To]
			if f.Close.From < at || f.Close.To > f.Whole.To || len(closing) < len(open) || strings.Trim(closing, open[:1]) != "" {
				fail("closes with " + closing)
			}
			if rest := body[f.Close.To:f.Whole.To]; strings.Trim(rest, " \t\n\v\f\r") != "" {
				fail("has text after its closing delimiter")
			}
		}
	}
}

// agree compares the fences of a body with what stock goldmark renders.
func agree(t *testing.T, body string) {
	t.Helper()
	fences, err := Fences(body)
	if errors.Is(err, errNesting) || errors.Is(err, errSteps) {
		return
	}
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	checkSpans(t, body, fences)
	infos, codes := stock(body)
	if len(fences) != len(infos) {
		t.Fatalf("%q: %d fences, goldmark has %d", body, len(fences), len(infos))
	}
	for i := range fences {
		p := fences[i].Part(body)
		if p.Info != infos[i] || p.Code != codes[i] {
			t.Errorf("%q: fence %d is %q %q, goldmark has %q %q", body, i+1, p.Info, p.Code, infos[i], codes[i])
		}
	}
}

func FuzzFencesAgreeWithGoldmark(f *testing.F) {
	for _, s := range []string{
		"```lua\nprint(1)\n```\n", "> - ~~~ x=1\n>   a\n>   ~~~", "1. x\n\n   ```lua\n   a\n     b\n   ```\n",
		"-\t```lua\n\ta\n\t```\n", ">\t```lua\n>\t\ta\n>\t```\n", "* ```lua\n\tx\n  ```\n", "+ a\n  > ```lua\n  > x\n  y\n",
		"[a]: b\n```lua\nx\n```\n", "[a]:\n```\n```\n", "<div>\n```\n</div>\n\n~~~", "```\r\nx\r\n```\r\n", "a\n===\n```", "\ufeff```\nx", "```\x00\n\xff\n```",
		"- ```\n\n\tx\n", "    ```\n```lua{}", "```` a\n```\n`````  \n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 4<<10 { // stock goldmark takes quadratic time
			return
		}
		agree(t, body)
	})
}

// randomBody joins a few lines that mean something to a block parser, with
// prefixes that put them into lists and quotes.
func randomBody(r *rand.Rand, tabs bool) string {
	prefixes := []string{"", "", "", "", "> ", ">", "- ", "* ", "1. ", "  ", "    ", " ", "   ", "> > ", "> - ", "- - "}
	if tabs {
		prefixes = append(prefixes, "\t", ">\t", "-\t")
	}
	lines := []string{
		"```lua", "~~~ py q", "```lua", "```", "~~~", "````js", "````", "x", "x y", "", "", "# h", "---", "<div>", "</div>",
		"<!--", "-->", "[a]: b", "[a]:", "[a]: b", "-", "-", "***", "`", "\\```lua", "===", "<pre>", "``` a`b", "a ```lua",
		"2. y", "+ z", "<?x", "?>", "\"t", "'t'", "<b>",
	}
	var b strings.Builder
	for range 1 + r.IntN(7) {
		b.WriteString(prefixes[r.IntN(len(prefixes))])
		if r.IntN(4) == 0 {
			b.WriteString(prefixes[r.IntN(len(prefixes))])
		}
		b.WriteString(lines[r.IntN(len(lines))] + "\n")
	}
	return b.String()
}

func TestFencesAgreeWithGoldmark(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	for range 20_000 {
		body := randomBody(r, true)
		agree(t, body)
		if fences, _ := Fences(body); len(fences) > 0 {
			found++
		}
	}
	if found < 5_000 {
		t.Errorf("only %d of 20,000 documents have fences", found)
	}
}

// block is a fence as cmark tells of it.
type block struct {
	line       int
	info, code string
}

// cmark reads the fences that have an info string with CommonMark's reference
// implementation, whose output does not tell others from indented code.
func cmark(t *testing.T, body string) (blocks []block) {
	t.Helper()
	c := exec.Command("cmark", "-t", "xml", "--sourcepos")
	c.Stdin = strings.NewReader(body)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("cmark: %v", err)
	}
	d := xml.NewDecoder(bytes.NewReader(out))
	var current *block
	for {
		token, err := d.Token()
		if err == io.EOF {
			return blocks
		}
		if err != nil {
			t.Fatalf("cmark wrote %q: %v", out, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local != "code_block" {
				continue
			}
			current = new(block)
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "info":
					current.info = a.Value
				case "sourcepos":
					if _, err := fmt.Sscanf(a.Value, "%d:", &current.line); err != nil {
						t.Fatalf("cmark wrote sourcepos %q", a.Value)
					}
				}
			}
		case xml.CharData:
			if current != nil {
				current.code += string(e)
			}
		case xml.EndElement:
			if current != nil && e.Name.Local == "code_block" {
				if current.info != "" {
					blocks = append(blocks, *current)
				}
				current = nil
			}
		}
	}
}

// sameLines forgets the blanks of blank lines, of which the two readers keep
// different ones inside of containers.
func sameLines(code string) string {
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		if strings.Trim(l, " ") == "" {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

func TestFencesAgreeWithCmark(t *testing.T) {
	if _, err := exec.LookPath("cmark"); err != nil {
		t.Fatal("cmark is not installed: apt-get install cmark")
	}
	r := rand.New(rand.NewPCG(3, 2))
	found := 0
	for range 3_000 {
		body := randomBody(r, false)
		fences, err := Fences(body)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		var ours []block
		for i := range fences {
			f := &fences[i]
			if p := f.Part(body); p.Info != "" {
				ours = append(ours, block{1 + strings.Count(body[:f.Open.From], "\n"), p.Info, sameLines(p.Code)})
			}
		}
		theirs := cmark(t, body)
		for i := range theirs {
			theirs[i].code = sameLines(theirs[i].code)
		}
		if !slices.Equal(ours, theirs) {
			t.Errorf("%q:\n ours %+v\ncmark %+v", body, ours, theirs)
		}
		found += len(theirs)
	}
	if found < 1_000 {
		t.Errorf("only %d fences in 3,000 documents", found)
	}
}
