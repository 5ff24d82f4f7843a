package daemon

import (
	"strings"
	"testing"

	"noted/crdt"
	"noted/notebook"
)

// Two fences of one page may share a short id by malice. Then neither is meant.
func TestRoute03TwoFencesOfOneShortID(t *testing.T) {
	id := notebook.PageID{1}
	first := crdt.Fence{ID: notebook.FenceID{1}}
	second := crdt.Fence{ID: notebook.FenceID{1, 15: 1}}
	short := first.ID.Short()
	if second.ID.Short() != short {
		t.Fatal("the short ids differ")
	}
	two := &page{id: id, registers: crdt.NewRegisters(id), own: crdt.NewOwnFences(), fences: []crdt.Fence{first, second}, read: true}
	find := func(p *page) (notebook.FenceID, string) {
		c := &closer{pages: map[notebook.PageID]*looked{id: newLooked(p)}}
		in, _, no := c.find(id, short)
		if no != nil {
			return notebook.FenceID{}, no.Error()
		}
		return in.Fence, ""
	}
	if got, no := find(two); !got.IsZero() || !strings.Contains(no, "2 fences of that id") || !strings.Contains(no, "noted fence include") {
		t.Errorf("%v %q", got, no)
	}
	two.fences = two.fences[1:]
	if got, no := find(two); got != second.ID || no != "" {
		t.Errorf("the only one: %v %q", got, no)
	}
}
