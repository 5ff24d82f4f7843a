package exec

import "testing"

func TestWhatMayBeAnImport(t *testing.T) {
	for _, c := range []struct {
		source string
		line   int
	}{
		{"import('std')", 1},
		{"\n\nimport \t\n(x)", 3},
		{"import/**/('std')", 1},
		{"import // x\n('std')", 1},
		{"import<!-- x\n('std')", 1},
		{"import\n--> x\n('std')", 1},
		{"import\u00a0('std')", 1},
		{"import\u2028\ufeff('std')", 1},
		{"1import('std')", 1},
		{"\\u0061import('std')", 1},
		{"\u00e9import('std')", 1},
		{"x.import('std')", 1},
		{"'import (a)'", 1},
		{"important(); import('std')", 1},
		{"reimport('std'); $import('std'); _import('std')", 0},
		{"importance('std')", 0},
		{"x.import + 1", 0},
		{"({ import: 1 })", 0},
		{"import * as std from 'std'", 0}, // a script cannot say so
		{"import x, { y } from 'z'", 0},
		{"// import a / b", 0},
		{"IMPORT('std')", 0},
	} {
		if line := importLine(c.source); line != c.line {
			t.Errorf("%q: line %d, want %d", c.source, line, c.line)
		}
	}
}
