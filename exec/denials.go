package exec

import (
	"fmt"
	"strings"
	"sync"
)

// maxDenials is how many denials of a run are kept in words; the others are counted.
const maxDenials = 16

// denials are what a run asked for and was not given. Each is recorded, also one
// that was recorded before, and none can be taken back: a run that has one is
// over, whatever the engine makes of it.
type denials struct {
	mu    sync.Mutex
	kept  []string
	count int
	first chan struct{} // closed by the first denial
}

func newDenials() *denials { return &denials{first: make(chan struct{})} }

func (d *denials) add(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count == 0 {
		close(d.first)
	}
	d.count++
	if len(d.kept) < maxDenials {
		d.kept = append(d.kept, text)
	}
}

// text is the denials as the error of a run, one a line; empty if there are none.
func (d *denials) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := strings.Join(d.kept, "\n")
	if more := d.count - len(d.kept); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}
