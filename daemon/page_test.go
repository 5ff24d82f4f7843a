package daemon

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"noted/notebook"
)

// TestPagesThatWereReadAreClosed reads more pages than stay open.
func TestPagesThatWereReadAreClosed(t *testing.T) {
	const pages = 500
	d, person := alone(t, "laptop")
	for n := 0; n < pages; n += 50 {
		err := d.step(func(b *batch) error {
			for i := range 50 {
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
		_, open := d.open[p.ID]
		most = max(most, len(d.open))
		d.mu.Unlock()
		if !open {
			t.Errorf("%s was closed while it was read", title)
		}
	}
	if most > openPages || most < openPages/2 {
		t.Errorf("up to %d pages were open, and %d may", most, openPages)
	}
}

// TestOneStepChangesMorePagesThanStayOpen: a person's import or a peer may, and
// come back to the first of them in the same step. None is closed half way.
func TestOneStepChangesMorePagesThanStayOpen(t *testing.T) {
	const pages = openPages + openPages/2
	laptop, _ := alone(t, "laptop")
	phone, person := alone(t, "phone")
	invited(t, laptop, phone)
	err := laptop.step(func(b *batch) error {
		var ids []notebook.PageID
		for n := range pages {
			p, err := laptop.newPage(b, typed, fmt.Sprint("Page ", n))
			if err != nil {
				return err
			}
			ids = append(ids, p.id)
		}
		for n, id := range ids {
			p, err := laptop.page(id)
			if err == nil {
				err = laptop.edit(b, typed, p, p.shadow.Revision(), []notebook.Splice{{Insert: fmt.Sprint("text ", n, "\n")}})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	handed(t, laptop, phone)
	for n := range pages {
		title := fmt.Sprint("Page ", n)
		if p, err := person.Page(context.Background(), title); err != nil || p.Body != fmt.Sprint("text ", n, "\n") {
			t.Fatalf("%s: %+v %v", title, p, err)
		}
	}
}

// TestKeystrokesOfOthersDoNotReadTheWholePage: what another device typed key by
// key is applied without reading a long page from end to end for each of them.
func TestKeystrokesOfOthersDoNotReadTheWholePage(t *testing.T) {
	const keys = 100
	body := strings.Repeat("some text in a line of a page\n", 2000)
	laptop, _ := alone(t, "laptop")
	phone, person := alone(t, "phone")
	invited(t, laptop, phone)
	var id notebook.PageID
	err := laptop.step(func(b *batch) error {
		p, err := laptop.newPage(b, typed, "Long")
		if err != nil {
			return err
		}
		id = p.id
		return laptop.edit(b, typed, p, p.shadow.Revision(), []notebook.Splice{{Insert: body}})
	})
	if err != nil {
		t.Fatal(err)
	}
	handed(t, laptop, phone)
	err = laptop.step(func(b *batch) error {
		p, err := laptop.page(id)
		for i := range keys {
			if err == nil {
				err = laptop.edit(b, typed, p, p.shadow.Revision(), []notebook.Splice{{At: i, Insert: "x"}})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries := lacking(t, laptop, phone)
	if len(entries) < keys {
		t.Fatalf("%d entries for %d keys", len(entries), keys)
	}
	// Whoever reads a page makes a copy of it.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := phone.Accept(context.Background(), laptop.signer.Device(), entries); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / keys; each > uint64(len(body)) {
		t.Errorf("a key on a page of %d bytes takes %d bytes of memory", len(body), each)
	} else {
		t.Logf("a key takes %d bytes of memory", each)
	}
	if p, err := person.Page(context.Background(), "Long"); err != nil || p.Body != strings.Repeat("x", keys)+body {
		t.Errorf("the page has come otherwise: %v", err)
	}
}
