package exec

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"noted/notebook"
)

// engineFile is a file of the shell's interpreter, as it is linked.
func engineFile(t *testing.T, name string) *ast.File {
	t.Helper()
	dir, err := osexec.Command("go", "list", "-f", "{{.Dir}}", "mvdan.cc/sh/v3/"+filepath.Dir(name)).Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), filepath.Base(name)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// caseStrings are the strings after the cases within one function of a file.
func caseStrings(t *testing.T, file *ast.File, function string) []string {
	t.Helper()
	var found []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, x := range c.List {
					if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
						s, err := strconv.Unquote(l.Value)
						if err != nil {
							t.Fatal(err)
						}
						found = append(found, s)
					}
				}
			}
			return true
		})
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}

// TestShellCommands calls every command that the interpreter knows, from inside
// and by a name that is computed, and compares which of them answer. A command
// that a later version adds is refused, and fails the test.
func TestShellCommands(t *testing.T) {
	names := caseStrings(t, engineFile(t, "interp/builtin.go"), "IsBuiltin")
	if len(names) < 50 {
		t.Fatalf("the interpreter knows only %q", names)
	}
	r := newRunner(t, Config{Limits: quick})
	var lines strings.Builder
	answering := 0
	for _, name := range names {
		res := runJob(t, r, shellJob(quick, fmt.Sprintf("c='%s'\n$c\n:", name)))
		switch {
		case strings.HasSuffix(res.Error, "the command "+name+" is not here"):
			fmt.Fprintln(&lines, name, "refused")
		case strings.HasPrefix(res.Error, "fence:"), res.Verdict == notebook.OK, strings.HasPrefix(res.Error, "exit status"):
			fmt.Fprintln(&lines, name)
			answering++
		default:
			t.Errorf("%s: %v %q %q", name, res.Verdict, res.Output, res.Error)
		}
	}
	if answering != len(shellBuiltins) {
		t.Errorf("%d commands answer, %d are listed", answering, len(shellBuiltins))
	}
	golden(t, "testdata/golden/sh-commands.txt", lines.String())
}

// TestShellVariables lists what a fence finds set: what it is given as the
// interpreter's own names are, and what they hold.
func TestShellVariables(t *testing.T) {
	own := caseStrings(t, engineFile(t, "interp/vars.go"), "lookupVar")
	var source strings.Builder
	for _, name := range own {
		if name != "RANDOM" && name != "SRANDOM" { // refused, see TestShellIsDeterministic
			fmt.Fprintf(&source, "echo '%s' \"<${%[1]s}>\"\n", name)
		}
	}
	source.WriteString(conformance["sh"].names)
	r := newRunner(t, Config{Limits: quick})
	granted := shellJob(quick, source.String())
	granted.rung = notebook.Granted
	granted.request.inputs = []field{{"page", "a page"}, {"clock", "1796137982123"}, {"seed", "seed"}, {"query", string(notebook.EncodeRows(&notebook.Rows{Found: 1, List: []notebook.Row{{Title: "A"}}}))}}
	granted.request.args = []field{{"who", "me"}}
	for name, j := range map[string]job{"strict": shellJob(quick, source.String()), "granted": granted} {
		res := runJob(t, r, j)
		if res.Verdict != notebook.OK || res.Dropped > 0 {
			t.Fatalf("%s: %v %q %s", name, res.Verdict, res.Output, res.Error)
		}
		golden(t, "testdata/golden/sh-names-"+name+".txt", res.Output)
	}
}

// TestShellNodes: each kind of node that the parser makes is let through or
// refused by name. One that a later version adds is refused, and fails the test.
func TestShellNodes(t *testing.T) {
	nodes := map[string]bool{}
	for _, d := range engineFile(t, "syntax/nodes.go").Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Pos" && f.Recv != nil {
			if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
				nodes[star.X.(*ast.Ident).Name] = true
			}
		}
	}
	if len(nodes) < 35 {
		t.Fatalf("the parser makes only %v", nodes)
	}
	word := func() *syntax.Word { return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: "x"}}} }
	name := &syntax.Lit{Value: "x"}
	made := []syntax.Node{
		&syntax.File{}, &syntax.Comment{}, &syntax.Stmt{}, &syntax.Assign{Name: name}, &syntax.Redirect{Op: syntax.RdrIn, Word: word()}, &syntax.CallExpr{Args: []*syntax.Word{word()}}, &syntax.Subshell{}, &syntax.Block{},
		&syntax.IfClause{}, &syntax.WhileClause{}, &syntax.ForClause{}, &syntax.WordIter{Name: name}, &syntax.CStyleLoop{}, &syntax.BinaryCmd{X: &syntax.Stmt{}, Y: &syntax.Stmt{}}, &syntax.FuncDecl{Name: name}, word(), name,
		&syntax.SglQuoted{}, &syntax.DblQuoted{}, &syntax.CmdSubst{}, &syntax.ParamExp{Param: name}, &syntax.ArithmExp{X: word()}, &syntax.ArithmCmd{X: word()}, &syntax.BinaryArithm{X: word(), Y: word()}, &syntax.BinaryTest{Op: syntax.TsMatch, X: word(), Y: word()},
		&syntax.UnaryArithm{X: word()}, &syntax.UnaryTest{Op: syntax.TsEmpStr, X: word()}, &syntax.ParenArithm{X: word()}, &syntax.ParenTest{X: word()}, &syntax.CaseClause{Word: word()}, &syntax.CaseItem{Patterns: []*syntax.Word{word()}}, &syntax.TestClause{X: word()}, &syntax.DeclClause{Variant: &syntax.Lit{Value: "declare"}},
		&syntax.ArrayExpr{}, &syntax.ArrayElem{Value: word()}, &syntax.ExtGlob{Pattern: name}, &syntax.LetClause{},
		&syntax.ProcSubst{}, &syntax.TimeClause{}, &syntax.CoprocClause{Stmt: &syntax.Stmt{}}, &syntax.TestDecl{Description: word(), Body: &syntax.Stmt{}}, &syntax.FlagsArithm{Flags: name}, &syntax.BraceExp{Elems: []*syntax.Word{word()}},
	}
	var lines []string
	for _, n := range made {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*syntax.")
		if !nodes[kind] {
			t.Errorf("the parser makes no %s", kind)
		}
		delete(nodes, kind)
		c := shellCheck{documents: map[*syntax.Word]bool{}, files: true}
		c.node(n)
		if c.reason != "" {
			kind += " refused"
		}
		lines = append(lines, kind)
	}
	if len(nodes) > 0 {
		t.Errorf("nodes that nobody has thought of: %v", slices.Sorted(maps.Keys(nodes)))
	}
	slices.Sort(lines)
	golden(t, "testdata/golden/sh-nodes.txt", strings.Join(lines, "\n")+"\n")
}
