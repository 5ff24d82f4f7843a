package exec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shellCheck says whether a program is made only of what is listed here, before
// any of it runs; a node that is not listed is refused. It also puts fixed values
// in the place of what the process would tell of itself, and the lines into names
// of files.
type shellCheck struct {
	seeded bool
	files  bool
	keyed  map[string]bool // arrays whose keys are words: they come in no order
	local  func(line uint) (part string, local uint)

	documents map[*syntax.Word]bool // here-documents, in which a tilde is a tilde
	places    []shellPlace
	line      uint
	reason    string
}

// shellPlace is a word that the interpreter will look up without saying where it
// stands: a pattern, or the file of a test.
type shellPlace struct {
	text     string // as far as it is literal and no pattern
	computed bool   // it begins with what is not
	pattern  bool
	line     uint
}

// place is the line of the first word that may stand for a name: one that begins
// with it, one that could begin with anything, or a pattern without a directory;
// 0 if there is none.
func (e *shellEngine) place(name string, pattern bool) uint {
	for _, may := range []func(shellPlace) bool{
		func(p shellPlace) bool { return strings.HasPrefix(p.text, name) },
		func(p shellPlace) bool { return p.computed },
		func(p shellPlace) bool { return pattern && !strings.HasPrefix(p.text, "/") },
	} {
		for _, p := range e.places {
			if p.pattern == pattern && may(p) {
				return p.line
			}
		}
	}
	return 0
}

// look notes a word that is going to be looked up.
func (c *shellCheck) look(n *syntax.Word, pattern bool) {
	text, computed := "", false
	for i, p := range n.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			computed = i == 0
			break
		}
		if end := strings.IndexAny(l.Value, "*?["); end >= 0 {
			text += l.Value[:end]
			break
		}
		text += l.Value
	}
	c.places = append(c.places, shellPlace{text, computed, pattern, n.Pos().Line()})
}

func isPattern(n *syntax.Word) bool {
	return slices.ContainsFunc(n.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.ContainsAny(l.Value, "*?[")
	})
}

// rollCommand and copyCommand are what stands for $RANDOM and in $(< FILE) once a
// program is checked. A program that calls them itself gets nothing else. The
// engine's own $(< FILE) puts the name before what is in the file where the name
// has two parts.
const (
	rollCommand = "roll (noted)"
	copyCommand = "copy (noted)"
)

// keys collects which arrays have words as keys. They can only be declared by
// name, see declare.
func (c *shellCheck) keys(p *syntax.File) {
	syntax.Walk(p, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause:
			if slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return strings.Contains(flagsOf(a), "A") }) {
				for _, a := range n.Args {
					if a.Name != nil {
						c.keyed[a.Name.Value] = true
					}
				}
			}
		case *syntax.Assign:
			if n.Name != nil && n.Array != nil && len(n.Array.Elems) > 0 && quotedKey(n.Array.Elems[0].Index) {
				c.keyed[n.Name.Value] = true
			}
		}
		return true
	})
}

func quotedKey(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		return false
	}
	switch w.Parts[0].(type) {
	case *syntax.SglQuoted, *syntax.DblQuoted:
		return true
	}
	return false
}

// check returns the line and the reason of the first node that is refused.
func (c *shellCheck) check(p *syntax.File) (line uint, reason string) {
	c.documents = map[*syntax.Word]bool{}
	syntax.Walk(p, func(n syntax.Node) bool {
		if c.reason != "" || n == nil {
			return false
		}
		c.node(n)
		return c.reason == ""
	})
	return c.line, c.reason
}

func (c *shellCheck) refuse(n syntax.Node, format string, args ...any) {
	if c.reason == "" {
		c.line, c.reason = n.Pos().Line(), fmt.Sprintf(format, args...)
	}
}

func (c *shellCheck) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.File, *syntax.Comment, *syntax.CallExpr, *syntax.Subshell, *syntax.Block, *syntax.IfClause,
		*syntax.WhileClause, *syntax.BinaryCmd, *syntax.SglQuoted, *syntax.Lit, *syntax.CaseClause, *syntax.TestClause,
		*syntax.ParenTest, *syntax.ExtGlob:
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			c.refuse(n, "nothing can go on in the background")
		}
	case *syntax.Assign:
		c.assign(n)
	case *syntax.Redirect:
		c.redirect(n)
	case *syntax.ForClause:
		if n.Select {
			c.refuse(n, "there is nobody to select")
		}
	case *syntax.WordIter:
		c.name(n, n.Name.Value)
	case *syntax.CStyleLoop:
		c.expressions(&n.Init, &n.Cond, &n.Post)
	case *syntax.FuncDecl:
		switch {
		case n.Name == nil || len(n.Names) > 0:
			c.refuse(n, "a function has one name")
		case interp.IsBuiltin(n.Name.Value) || n.Name.Value == rollCommand || n.Name.Value == copyCommand:
			c.refuse(n, "a function cannot be called %s, as a command of the shell is", n.Name.Value)
		}
	case *syntax.Word:
		c.tilde(n)
		c.parts(n.Parts)
		if isPattern(n) {
			c.look(n, true)
		}
	case *syntax.DblQuoted:
		c.parts(n.Parts)
		if len(n.Parts) == 1 {
			if p, ok := n.Parts[0].(*syntax.ParamExp); ok && p.Excl && p.Names == 0 && p.Param != nil && c.keyed[p.Param.Value] && literal(p.Index) == "@" {
				c.refuse(n, `the keys come in no order here: write ${!%s[@]} without quotes, which sorts them`, p.Param.Value)
			}
		}
	case *syntax.CmdSubst:
		if n.TempFile || n.ReplyVar {
			c.refuse(n, "write $( ) for the output of a command")
		}
		if len(n.Stmts) == 1 {
			if st := n.Stmts[0]; st.Cmd == nil && len(st.Redirs) == 1 && st.Redirs[0].Op == syntax.RdrIn {
				st.Cmd = call(copyCommand, st.Redirs[0].OpPos)
			}
		}
	case *syntax.ParamExp:
		c.parameter(n)
	case *syntax.ArithmExp:
		if n.Unsigned {
			c.refuse(n, "there is no unsigned arithmetic")
		}
		c.expressions(&n.X)
	case *syntax.ArithmCmd:
		c.expressions(&n.X)
	case *syntax.LetClause:
		for i := range n.Exprs {
			c.expressions(&n.Exprs[i])
		}
	case *syntax.BinaryArithm:
		c.binary(n)
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			c.target(n, n.X)
		}
		c.expressions(&n.X)
	case *syntax.ParenArithm:
		c.expressions(&n.X)
	case *syntax.CaseItem:
		if n.Op == syntax.ResumeKorn {
			c.refuse(n, "write ;;& to go on with the next pattern")
		}
	case *syntax.UnaryTest:
		c.unaryTest(n)
	case *syntax.BinaryTest:
		c.binaryTest(n)
	case *syntax.DeclClause:
		c.declare(n)
	case *syntax.ArrayExpr:
	case *syntax.ArrayElem:
		if n.Index != nil {
			c.expressions(&n.Index)
		}
	case *syntax.ProcSubst:
		c.refuse(n, "there is no process to read from or write to: use a pipe")
	case *syntax.TimeClause:
		c.refuse(n, "there is no clock to take the time with")
	case *syntax.CoprocClause:
		c.refuse(n, "nothing can go on beside the shell")
	default:
		c.refuse(n, "the shell here does not know this: %s", strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax."))
	}
}

// ownNames are the variables that the interpreter answers itself, from the
// process, whatever was assigned to them.
var ownNames = []string{"$", "PPID", "RANDOM", "SRANDOM"}

// name refuses a name that cannot be assigned to.
func (c *shellCheck) name(n syntax.Node, name string) {
	if slices.Contains(ownNames, name) {
		c.refuse(n, "nothing can be assigned to %s", name)
	}
}

func (c *shellCheck) assign(n *syntax.Assign) {
	if n.Name == nil {
		return // see declare
	}
	c.name(n, n.Name.Value)
	if n.Index != nil {
		c.subscript(n, n.Name.Value, &n.Index)
	}
}

// subscript checks the index of an array; the engine takes only a word for a key.
func (c *shellCheck) subscript(n syntax.Node, array string, index *syntax.ArithmExpr) {
	if _, ok := (*index).(*syntax.Word); c.keyed[array] {
		if !ok {
			c.refuse(n, "a key of %s is one word", array)
		}
		return
	}
	c.expressions(index)
}

func (c *shellCheck) redirect(n *syntax.Redirect) {
	if n.N != nil && !slices.Contains([]string{"0", "1", "2"}, n.N.Value) {
		c.refuse(n, "there are the descriptors 0, 1 and 2, and no %s", inWords(n.N.Value))
	}
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		c.documents[n.Hdoc] = true
	case syntax.WordHdoc, syntax.DplIn, syntax.DplOut:
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		n.Word.Parts = append(n.Word.Parts, &syntax.Lit{ValuePos: n.OpPos, Value: mark(n.OpPos.Line())})
	default:
		c.refuse(n, "the redirection %s is not here", n.Op)
	}
}

// marker stands between the name of a file and the line on which it is opened.
const marker = '\x1f'

func mark(line uint) string { return string(marker) + strconv.FormatUint(uint64(line), 10) }

func unmark(name string) (string, uint) {
	i := strings.LastIndexByte(name, marker)
	if i < 0 {
		return name, 0
	}
	line, err := strconv.ParseUint(name[i+1:], 10, 32)
	if err != nil {
		return name, 0
	}
	return name[:i], uint(line)
}

// tilde refuses a word that would be looked up among the people of the machine,
// also after the braces of the word are expanded.
func (c *shellCheck) tilde(n *syntax.Word) {
	if c.documents[n] {
		return
	}
	braces, tildes := false, false
	for i, p := range n.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		if i == 0 && strings.HasPrefix(l.Value, "~") {
			c.refuse(n, `there are no people here, and no homes of theirs: quote the "~"`)
		}
		braces = braces || strings.Contains(l.Value, "{")
		tildes = tildes || strings.Contains(strings.ReplaceAll(l.Value, `\~`, ""), "~")
	}
	if braces && tildes {
		c.refuse(n, `a "~" beside braces must be quoted`)
	}
}

// parts replaces what stands for a fixed value.
func (c *shellCheck) parts(parts []syntax.WordPart) {
	for i, p := range parts {
		x, ok := p.(*syntax.ParamExp)
		if !ok || x.Param == nil {
			continue
		}
		at, name := x.Pos(), x.Param.Value
		if name != "LINENO" && !slices.Contains(ownNames, name) {
			continue
		}
		if !plainParameter(x) {
			c.refuse(x, "$%s can only be written as such", name)
			return
		}
		parts[i] = c.fixed(x, name, at)
	}
}

func plainParameter(x *syntax.ParamExp) bool {
	return x.Flags == nil && !x.Excl && !x.Length && !x.Width && !x.IsSet && x.NestedParam == nil && x.Index == nil &&
		len(x.Modifiers) == 0 && x.Slice == nil && x.Repl == nil && x.Names == 0 && x.Exp == nil
}

// fixed is what stands for a name that the process would answer.
func (c *shellCheck) fixed(n syntax.Node, name string, at syntax.Pos) syntax.WordPart {
	text := func(s string) *syntax.Lit { return &syntax.Lit{ValuePos: at, ValueEnd: at, Value: s} }
	switch name {
	case "LINENO":
		_, line := c.local(at.Line())
		return text(strconv.FormatUint(uint64(line), 10))
	case "$":
		return text("1")
	case "PPID":
		return text("0")
	case "RANDOM":
		if !c.seeded {
			c.refuse(n, `$RANDOM needs the capability seed: the fence must want it, as in wants="seed"`)
		}
	case "SRANDOM":
		c.refuse(n, "$SRANDOM is not here, only $RANDOM, for a fence that is granted seed")
	}
	return &syntax.CmdSubst{Left: at, Right: at, Stmts: []*syntax.Stmt{{Position: at, Cmd: call(rollCommand, at)}}}
}

// call is a command of one word.
func call(name string, at syntax.Pos) *syntax.CallExpr {
	return &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.SglQuoted{Left: at, Right: at, Value: name}}}}}
}

var parameterOps = []syntax.ParExpOperator{
	syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
	syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull,
	syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix,
	syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll, syntax.OtherParamOps,
}

func (c *shellCheck) parameter(n *syntax.ParamExp) {
	if n.Param == nil || n.Flags != nil || n.NestedParam != nil || len(n.Modifiers) > 0 || n.Width || n.IsSet {
		c.refuse(n, "this is not an expansion of this shell")
		return
	}
	if all := literal(n.Index); n.Excl && n.Names == 0 && all != "@" && all != "*" {
		c.refuse(n, "a name is written, not computed: ${!%s} is not here", n.Param.Value)
	}
	if n.Index != nil {
		c.subscript(n, n.Param.Value, &n.Index)
	}
	if n.Slice != nil {
		c.expressions(&n.Slice.Offset, &n.Slice.Length)
	}
	if n.Exp == nil {
		return
	}
	switch {
	case !slices.Contains(parameterOps, n.Exp.Op):
		c.refuse(n, "the expansion %s is not here", n.Exp.Op)
	case n.Exp.Op == syntax.OtherParamOps && !slices.Contains([]string{"Q", "E", "a", "A", "U", "u", "L"}, literal(n.Exp.Word)):
		c.refuse(n, "after @ comes one of Q E a A U u L")
	}
}

// literal is the text of a word without expansions; empty for anything else.
func literal(n syntax.Node) string {
	if w, ok := n.(*syntax.Word); ok && w != nil {
		return w.Lit()
	}
	return ""
}

// expressions replaces names that stand alone in arithmetic, where they need no "$".
func (c *shellCheck) expressions(at ...*syntax.ArithmExpr) {
	for _, x := range at {
		w, ok := (*x).(*syntax.Word)
		if !ok {
			continue
		}
		if name := w.Lit(); name == "LINENO" || slices.Contains(ownNames, name) {
			*x = &syntax.Word{Parts: []syntax.WordPart{c.fixed(w, name, w.Pos())}}
		}
	}
}

var assignments = []syntax.BinAritOperator{
	syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
	syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
}

func (c *shellCheck) binary(n *syntax.BinaryArithm) {
	if slices.Contains(assignments, n.Op) {
		c.target(n, n.X)
	}
	c.expressions(&n.X, &n.Y)
}

// target checks what arithmetic assigns to: the engine takes only a plain name.
func (c *shellCheck) target(n syntax.Node, x syntax.ArithmExpr) {
	name := literal(x)
	if !syntax.ValidName(name) {
		c.refuse(n, "arithmetic assigns to a plain name")
	}
	c.name(n, name)
}

// fileTests are the tests of [[ ]] that look at a file.
var fileTests = []syntax.UnTestOperator{
	syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsSmbLink, syntax.TsRead, syntax.TsWrite, syntax.TsExec,
	syntax.TsNoEmpty, syntax.TsCharSp, syntax.TsBlckSp, syntax.TsNmPipe, syntax.TsSocket, syntax.TsSticky, syntax.TsGIDSet, syntax.TsUIDSet,
}

func (c *shellCheck) unaryTest(n *syntax.UnaryTest) {
	switch {
	case slices.Contains(fileTests, n.Op):
		if !c.files {
			c.refuse(n, "[[ %s ]] asks for a file, and no directory is granted", n.Op)
		} else if w, ok := n.X.(*syntax.Word); ok {
			c.look(w, false)
		}
	case n.Op == syntax.TsVarSet:
		if name := literal(n.X); !syntax.ValidName(name) || slices.Contains(ownNames, name) {
			c.refuse(n, "[[ -v ]] takes the name of a variable")
		}
	case n.Op != syntax.TsEmpStr && n.Op != syntax.TsNempStr && n.Op != syntax.TsOptSet && n.Op != syntax.TsNot:
		c.refuse(n, "[[ %s ]] is not here", n.Op)
	}
}

func (c *shellCheck) binaryTest(n *syntax.BinaryTest) {
	switch n.Op {
	case syntax.TsReMatch, syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr,
		syntax.AndTest, syntax.OrTest, syntax.TsBefore, syntax.TsAfter:
	case syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
		if _, ok := n.X.(*syntax.Word); !ok {
			c.refuse(n, "%s compares words", n.Op)
		}
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		if !c.files {
			c.refuse(n, "[[ %s ]] asks for files, and no directory is granted", n.Op)
		}
	default:
		c.refuse(n, "[[ %s ]] is not here", n.Op)
	}
}

// flagsOf is an argument of declare that is a flag.
func flagsOf(a *syntax.Assign) string {
	if a.Name == nil {
		if l := literal(a.Value); strings.HasPrefix(l, "-") {
			return l
		}
	}
	return ""
}

// declare lets through what names its variables and its flags as such: what
// would be computed could be any of them. A function is not shown: it has become
// another one here, see [shellCheck].
func (c *shellCheck) declare(n *syntax.DeclClause) {
	switch n.Variant.Value {
	case "declare", "local", "export", "readonly":
	default:
		c.refuse(n, "%s is not here: write declare", n.Variant.Value)
	}
	var flags string
	for _, a := range n.Args {
		f := flagsOf(a)
		if a.Name == nil && (f == "" || strings.Trim(f, "-aAgxrp") != "") {
			c.refuse(n, "%s takes plain names and the flags a A g p r x", n.Variant.Value)
			return
		}
		flags += f
	}
	for _, a := range n.Args {
		if a.Name == nil {
			continue
		}
		if strings.Contains(flags, "p") && c.keyed[a.Name.Value] {
			c.refuse(n, "the keys of %s come in no order here", a.Name.Value)
		}
		if strings.Contains(flags, "A") && a.Array != nil {
			for _, elem := range a.Array.Elems {
				if _, ok := elem.Index.(*syntax.Word); !ok {
					c.refuse(n, "each element of %s needs a key that is one word, as in ([a]=1 [b]=2)", a.Name.Value)
				}
			}
		}
	}
}
