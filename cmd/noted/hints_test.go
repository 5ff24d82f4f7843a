package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A hint that names a command which is not there sends a person nowhere.
func TestHintsNameCommandsThatExist(t *testing.T) {
	known := map[string]bool{}
	var nouns []string
	commands := newApp(nil, strings.NewReader(""), io.Discard, io.Discard).root().Commands()
	for _, noun := range commands {
		nouns = append(nouns, noun.Name())
		known[noun.Name()] = !noun.HasSubCommands()
		for _, verb := range noun.Commands() {
			known[noun.Name()+" "+verb.Name()] = true
		}
	}
	if len(nouns) < 10 {
		t.Fatalf("only %v found", nouns)
	}
	// A command is written as "noted noun verb", with a lower-case word behind noted.
	command := regexp.MustCompile(`\bnoted ([a-z]+)(?: ([a-z]+))?`)
	prose := []string{"is", "has", "here", "runs", "keeps", "needs", "stopped", "does", "there", "and", "in", "on", "reads", "speaks", "now", "cannot", "decides", "uses", "imports", "sends", "ends", "sent", "for", "writes", "help"}
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "notedv1") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				if slices.Contains(prose, m[1]) {
					continue
				}
				found++
				if !known[m[1]] && !known[m[1]+" "+m[2]] && !(slices.Contains(nouns, m[1]) && m[2] == "") {
					t.Errorf("%s: %q names a command that does not exist", set.Position(lit.Pos()), m[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d commands are named in the whole program", found)
	}
}
