package notebook

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxNesting bounds the blocks within blocks of a page. Deeper pages cost the
// parser time that grows with the square of their size, and nobody writes them.
const maxNesting = 64

// maxSteps bounds how often, over all lines of a page, a list or quote goes on.
// The parser keeps 24 bytes for each until the outermost one ends: lists 32
// deep around a mebibyte of line feeds would cost it gigabytes.
const maxSteps = 1 << 20

// Fences reads body as CommonMark and returns its fenced code blocks in order,
// also those inside lists and quotes. It fails for a body that is too large or
// whose lists and quotes are nested more than 64 deep, or go on for too many
// lines at too many levels: the fences of such a page are not known, so none of
// them runs.
func Fences(body string) (fences []Fence, err error) {
	if len(body) > MaxBody {
		return nil, tooLarge(len(body))
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case errNesting, errSteps:
			fences, err = nil, p.(*Error)
		default:
			// The text is anybody's and the parser is not ours: what it trips over
			// costs the page its fences, not the person the daemon.
			fences, err = nil, Errorf(CodeFailed, "the markdown parser failed on this page: %v", p).
				With("the page can still be edited; its fences run again when the text that it trips over is gone")
		}
	}()
	found := &reading{source: []byte(body)}
	pc := parser.NewContext()
	pc.Set(readingKey, found)
	blocks.Parse(text.NewReader(found.source), parser.WithContext(pc))
	return found.fences, nil
}

var errNesting = Errorf(CodeInvalid, "the lists and quotes of this page are nested too deeply (more than %d) to read its fences", maxNesting).
	With("flatten them")

var errSteps = Errorf(CodeInvalid, "the lists and quotes of this page are too long for their depth to read its fences").
	With("flatten them, or split the page")

// blocks knows CommonMark's blocks and nothing within them: no inline syntax
// and no link reference definitions, which cannot change where a fence is and
// of which the latter cost quadratic time. The numbers are goldmark's own order.
var blocks = parser.NewParser(parser.WithBlockParsers(
	util.Prioritized(parser.NewSetextHeadingParser(), 100),
	util.Prioritized(parser.NewThematicBreakParser(), 200),
	util.Prioritized(container{parser.NewListParser()}, 300),
	util.Prioritized(container{parser.NewListItemParser()}, 400),
	util.Prioritized(parser.NewCodeBlockParser(), 500),
	util.Prioritized(parser.NewATXHeadingParser(), 600),
	util.Prioritized(fenceReader{parser.NewFencedCodeBlockParser()}, 700),
	util.Prioritized(container{parser.NewBlockquoteParser()}, 800),
	util.Prioritized(parser.NewHTMLBlockParser(), 900),
	util.Prioritized(parser.NewParagraphParser(), 1000),
))

// container is the parser of a block that holds others, with bounds. A panic
// is the only way out of a parse; [Fences] recovers it.
type container struct{ parser.BlockParser }

func (c container) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n, state := c.BlockParser.Open(parent, r, pc)
	if n != nil && len(pc.OpenedBlocks()) >= maxNesting {
		panic(errNesting)
	}
	return n, state
}

func (c container) Continue(n ast.Node, r text.Reader, pc parser.Context) parser.State {
	in := pc.Get(readingKey).(*reading)
	if in.steps++; in.steps > maxSteps {
		panic(errSteps)
	}
	return c.BlockParser.Continue(n, r, pc)
}

// reading is the state of one call of [Fences].
type reading struct {
	source []byte
	fences []Fence
	steps  int // how often a container went on
}

var readingKey = parser.NewContextKey()

// fenceReader is the parser of fenced code blocks, watched: the nodes that it
// makes do not say where their delimiters are.
type fenceReader struct{ parser.BlockParser }

func (p fenceReader) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	_, line := r.PeekLine()
	n, state := p.BlockParser.Open(parent, r, pc)
	if n == nil {
		return n, state
	}
	in := pc.Get(readingKey).(*reading)
	first := in.skipBlanks(line.Start)
	f := Fence{
		Whole: Span{bytes.LastIndexByte(in.source[:first], '\n') + 1, in.lineEnd(first)},
		Open:  in.run(first),
	}
	f.Info = Span{f.Open.To, f.Open.To}
	if info := n.(*ast.FencedCodeBlock).Info; info != nil {
		f.Info = Span{info.Segment.Start, info.Segment.Stop}
	}
	f.Language = languageOf(string(in.source[f.Info.From:f.Info.To]))
	in.fences = append(in.fences, f)
	return n, state
}

func (p fenceReader) Continue(n ast.Node, r text.Reader, pc parser.Context) parser.State {
	_, line := r.PeekLine()
	before := n.Lines().Len()
	state := p.BlockParser.Continue(n, r, pc)
	in := pc.Get(readingKey).(*reading)
	f := &in.fences[len(in.fences)-1] // one is open at a time: where the next opens, the last ends
	f.Whole.To = in.lineEnd(line.Start)
	if state&parser.Continue == 0 {
		// Only its closing line ends a fence here; the end of what contains it
		// does so without asking.
		f.Close = in.run(in.skipBlanks(line.Start))
	} else if n.Lines().Len() > before {
		l := n.Lines().At(before)
		f.Lines = append(f.Lines, Line{Pad: l.Padding, Span: Span{l.Start, l.Stop}})
	}
	return state
}

// lineEnd is the offset just behind the line of offset i, its newline included.
func (in *reading) lineEnd(i int) int {
	if n := bytes.IndexByte(in.source[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(in.source)
}

// skipBlanks is the offset of the first byte from i on that is no blank; the
// parser has seen that there is one.
func (in *reading) skipBlanks(i int) int {
	for in.source[i] == ' ' || in.source[i] == '\t' {
		i++
	}
	return i
}

// run is the run of equal bytes that begins at from.
func (in *reading) run(from int) Span {
	to := from
	for to < len(in.source) && in.source[to] == in.source[from] {
		to++
	}
	return Span{from, to}
}
