package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The document names the tests that hold the invariants: each has to exist in
// the package that it is said to be in, and no invariant goes without.
func TestSecurityDocumentNamesTestsThatExist(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{} // package → the text of its tests
	in := func(pkg string) string {
		if _, read := tests[pkg]; !read {
			files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
			var all strings.Builder
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(text)
			}
			tests[pkg] = all.String()
		}
		return tests[pkg]
	}
	invariant := regexp.MustCompile(`^\| (I\d+) \|`)
	group := regexp.MustCompile(`(?:\| |· )([a-z0-9/]+): ((?:` + "`" + `\w+` + "`" + ` ?)+)`)
	prefixed := regexp.MustCompile(`([a-z0-9/]+): ((?:` + "`" + `\w+` + "`" + ` ?)+)`)
	name := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	invariants, named := 0, 0
	for line := range strings.Lines(string(b)) {
		if m := invariant.FindStringSubmatch(line); m != nil {
			invariants++
			groups := group.FindAllStringSubmatch(line, -1)
			if len(groups) == 0 {
				t.Errorf("%s names no test", m[1])
			}
			for _, g := range groups {
				for _, n := range name.FindAllStringSubmatch(g[2], -1) {
					named++
					if !strings.Contains(in(g[1]), "func "+n[1]+"(") {
						t.Errorf("%s: package %s has no test %s", m[1], g[1], n[1])
					}
				}
			}
			continue
		}
		// Elsewhere a name is one of daemon, unless its package stands before it.
		for _, g := range prefixed.FindAllStringSubmatch(line, -1) {
			if info, err := os.Stat(filepath.Join(root, g[1])); err != nil || !info.IsDir() {
				continue // a word of a sentence
			}
			line = strings.Replace(line, g[0], "", 1)
			for _, n := range name.FindAllStringSubmatch(g[2], -1) {
				named++
				if !strings.Contains(in(g[1]), "func "+n[1]+"(") {
					t.Errorf("package %s has no test %s", g[1], n[1])
				}
			}
		}
		for _, n := range name.FindAllStringSubmatch(line, -1) {
			named++
			if !strings.Contains(in("daemon"), "func "+n[1]+"(") {
				t.Errorf("package daemon has no test %s", n[1])
			}
		}
	}
	if invariants != 14 || named < 60 {
		t.Errorf("%d invariants with %d tests were read", invariants, named)
	}
}
