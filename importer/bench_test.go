package importer

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func BenchmarkMarkdown(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("%d/page %d.md", i%20, i)] = strings.Repeat("A line of a page with some words.\n", 55) + "\n```lua\nreturn 1\n```\n"
	}
	write(b, dir, files)
	root, err := os.OpenRoot(dir)
	must(b, err)
	defer root.Close()
	for b.Loop() {
		im := Markdown(root, "bench")
		for _, err := range im.Pages() {
			must(b, err)
		}
		if r := im.Report(); r.Pages != 2000 || r.Fences != 2000 {
			b.Fatalf("the report is %+v", r)
		}
	}
	b.ReportMetric(float64(b.N)*2000/b.Elapsed().Seconds(), "pages/s")
}
