package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnImportIsManySteps: between them others get their turn. Another client
// looks after each file that was read, and never finds more than a step's worth
// of them still on the way.
func TestAnImportIsManySteps(t *testing.T) {
	d, person := alone(t, "laptop")
	scribe, err := d.addAgent("scribe")
	if err != nil {
		t.Fatal(err)
	}
	other, err := d.Open(scribe)
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	for _, c := range []struct{ files, size int }{
		{5 * importPages, 100},
		{10, importBytes / 4},
	} {
		folder := t.TempDir()
		for n := range c.files {
			path := filepath.Join(folder, fmt.Sprintf("%d bytes, %d.md", c.size, n))
			if err := os.WriteFile(path, []byte(strings.Repeat("text\n", c.size/5)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		steps, seen := 0, before
		report, err := person.Import(context.Background(), "markdown", folder, func(done int, _ string) {
			pages, err := other.Pages(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if len(pages) > seen {
				steps, seen = steps+1, len(pages)
			}
			if waiting := before + done - len(pages); waiting >= importPages || waiting*c.size > importBytes {
				t.Fatalf("of %d files of %d bytes that were read, %d are no pages yet", done, c.size, waiting)
			}
		})
		if err != nil || report.Pages != c.files {
			t.Fatalf("%+v %v", report, err)
		}
		if steps < 2 || steps == c.files {
			t.Errorf("%d files of %d bytes came in %d steps", c.files, c.size, steps)
		}
		before += c.files
	}
}
