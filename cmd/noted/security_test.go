package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	text, _, _ := strings.Cut(string(b), ninety)
	for line := range strings.Lines(text) {
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

// ninety is the heading of the table of what must not happen.
const ninety = "## Ninety things that must not happen\n"

// numbered finds the tests that have a number in their name, or parts with one:
// number → package → names.
func numbered(t *testing.T) map[int]map[string][]string {
	t.Helper()
	function := regexp.MustCompile(`^func (Test\w+)\(`)
	inName := regexp.MustCompile(`^TestCases?(\d+(?:And\d+)*)`)
	part := regexp.MustCompile(`^\t+(?:t\.Run\(|\{(?:name: )?)"(?:case )?(\d\d):? `)
	found := map[int]map[string][]string{}
	files, err := filepath.Glob(filepath.Join(root, "*", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, _ := filepath.Glob(filepath.Join(root, "*", "*", "*_test.go"))
	for _, file := range append(files, deeper...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		add := func(number, name string) {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > 90 {
				t.Errorf("%s: %s is not one of ninety", file, name)
				return
			}
			if found[n] == nil {
				found[n] = map[string][]string{}
			}
			if !slices.Contains(found[n][pkg], name) {
				found[n][pkg] = append(found[n][pkg], name)
			}
		}
		test := ""
		for line := range strings.Lines(string(b)) {
			if m := function.FindStringSubmatch(line); m != nil {
				test = m[1]
				if m := inName.FindStringSubmatch(test); m != nil {
					for number := range strings.SplitSeq(m[1], "And") {
						add(number, test)
					}
				}
			} else if m := part.FindStringSubmatch(line); m != nil && test != "" {
				add(m[1], test+"/"+m[1])
			}
		}
	}
	return found
}

// TestSecurityOfNinety holds the table of what must not happen to the tests: each of the
// ninety has one with its number, or a reason why it cannot happen here, and every
// test with a number is in the table.
func TestSecurityOfNinety(t *testing.T) {
	file := filepath.Join(root, "docs", "security.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, table, found := strings.Cut(string(b), ninety)
	if !found {
		t.Fatal("the table is not there")
	}
	tests := numbered(t)
	row := regexp.MustCompile(`^\| (\d+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|\n$`)
	var now strings.Builder
	now.WriteString(text + ninety)
	number := 0
	for line := range strings.Lines(table) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			now.WriteString(line)
			continue
		}
		number++
		if m[1] != strconv.Itoa(number) {
			t.Fatalf("after %d of ninety comes %s", number-1, m[1])
		}
		var named []string
		for _, pkg := range slices.Sorted(maps.Keys(tests[number])) {
			slices.Sort(tests[number][pkg])
			named = append(named, pkg+": `"+strings.Join(tests[number][pkg], "` `")+"`")
		}
		reason := strings.TrimSpace(m[4])
		if len(named) > 0 {
			reason = ""
		} else if reason == "" {
			t.Errorf("%d (%s) has neither a test nor a reason", number, m[2])
		}
		fmt.Fprintf(&now, "| %d | %s | %s | %s |\n", number, m[2], strings.Join(named, " · "), reason)
	}
	if number != 90 {
		t.Errorf("of ninety there are %d", number)
	}
	if *update {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now.String() != string(b) {
		t.Error("the table does not name the tests that there are: go test ./cmd/noted -run TestSecurityOfNinety -update")
	}
}
