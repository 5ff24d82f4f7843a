package exec

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestCase51AFloodOfDenials: the list is bounded, the count is exact.
func TestCase51AFloodOfDenials(t *testing.T) {
	d := newDenials()
	select {
	case <-d.first:
		t.Fatal("a denial before there is one")
	default:
	}
	if d.text() != "" {
		t.Errorf("%q", d.text())
	}
	const each, workers = 10_000, 10
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				d.add(fmt.Sprintf("denial %d of %d", i, w))
			}
		})
	}
	wg.Wait()
	<-d.first
	lines := strings.Split(d.text(), "\n")
	if len(lines) != maxDenials+1 || lines[maxDenials] != fmt.Sprintf("and %d more", each*workers-maxDenials) {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

// TestCase76EachDenialIsRecorded: nothing is remembered of the one before.
func TestCase76EachDenialIsRecorded(t *testing.T) {
	d := newDenials()
	for range 5 {
		d.add("ls")
	}
	if d.text() != "ls\nls\nls\nls\nls" {
		t.Errorf("%q", d.text())
	}
}
