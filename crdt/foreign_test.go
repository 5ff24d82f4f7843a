package crdt

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"noted/notebook"
)

func textDigest(n int) notebook.TextDigest {
	return notebook.DigestText(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// TestFilter: nothing that was added is ever denied, and little else is let through.
func TestFilter(t *testing.T) {
	var f Filter
	if f.Has(textDigest(1)) {
		t.Error("an empty filter has something")
	}
	const n = 5 * firstLayer
	for i := range n {
		f.Add(textDigest(i))
		f.Add(textDigest(i / 2))
	}
	for i := range n {
		if !f.Has(textDigest(i)) {
			t.Fatalf("digest %d is gone", i)
		}
	}
	wrong := 0
	for i := range n {
		if f.Has(textDigest(n + i)) {
			wrong++
		}
	}
	if wrong > n/200 {
		t.Errorf("%d of %d answers are wrong", wrong, n)
	}
}

// TestForeignTextIsKept: the record says what was added, in the order of what
// decides, also where it takes more than one piece.
func TestForeignTextIsKept(t *testing.T) {
	phone := notebook.Source{Device: notebook.DeviceID{1}, Class: notebook.Typed}
	vault := notebook.Source{Device: notebook.DeviceID{2}, Class: notebook.Import, Label: "vault"}
	var text ForeignText
	if !text.Empty() {
		t.Error("nothing is something")
	}
	for i := range maxForeignDigests + 10 {
		text.Add(phone, textDigest(i))
	}
	text.Add(vault, textDigest(5))
	text.Add(notebook.Source{}, textDigest(-1))
	text.Add(notebook.Source{}, textDigest(7))
	if text.Add(phone, textDigest(3)) || text.Empty() {
		t.Error("the same text is new twice")
	}
	records, err := text.Records()
	must(t, err)
	if len(records) != 2 {
		t.Errorf("%d records", len(records))
	}
	known := map[notebook.TextDigest]*Known{}
	for _, i := range []int{-1, 3, 5, 7, maxForeignDigests + 9, maxForeignDigests + 10} {
		known[textDigest(i)] = &Known{}
	}
	for _, r := range records {
		part, err := OpenForeignText(r)
		must(t, err)
		part.Look(NewWanted(known))
	}
	for i, want := range map[int]Known{
		-1: {First: true}, 3: {Sources: []notebook.Source{phone}}, 5: {Sources: []notebook.Source{phone, vault}},
		7: {First: true, Sources: []notebook.Source{phone}}, maxForeignDigests + 9: {Sources: []notebook.Source{phone}}, maxForeignDigests + 10: {},
	} {
		got := known[textDigest(i)]
		if got.First != want.First || len(got.Sources) != len(want.Sources) {
			t.Errorf("%d: %+v, not %+v", i, got, want)
		}
		for k := range want.Sources {
			if got.Sources[k] != want.Sources[k] {
				t.Errorf("%d: %+v, not %+v", i, got, want)
			}
		}
	}
	for name, record := range map[string][]byte{"nothing": nil, "a part": records[1][:len(records[1])-1], "more": append(records[1][:len(records[1]):len(records[1])], 0)} {
		if _, err := OpenForeignText(record); err == nil {
			t.Errorf("a record of %s is read", name)
		}
	}
	broken, err := notebook.Marshal(&foreignRecord{Version: foreignVersion, Groups: []foreignDigests{{Source: phone, Digests: make([]byte, 17)}}})
	must(t, err)
	if _, err := OpenForeignText(broken); err == nil {
		t.Error("a part of a digest is read")
	}
	later, err := notebook.Marshal(&foreignRecord{Version: foreignVersion + 1})
	must(t, err)
	if _, err := OpenForeignText(later); err == nil {
		t.Error("a later version is read")
	}
}

// TestMoves: which characters of a fence are written again, and in whose name.
func TestMoves(t *testing.T) {
	group := devices(t, "v", "m")
	v, m := group[0], group[1]
	phone := notebook.Source{Device: m.signer.Device(), Class: notebook.Typed}
	vault := notebook.Source{Device: v.signer.Device(), Class: notebook.Import, Label: "vault"}
	m.change(m.author(), []notebook.Splice{{Insert: "é\n> ```lua\n> their line here\n"}})
	v.pull(m)
	v.change(v.author(), []notebook.Splice{{At: v.page.Len(), Insert: "> copied from the vault\n> mine alone\n> their line there\n> ```\n"}})
	v.change(v.author(), []notebook.Splice{{At: 13, Insert: "o"}}) // in their line
	record := map[notebook.TextDigest]Known{}
	say := func(line string, k Known) {
		d, _ := LineDigest(line)
		record[d] = k
	}
	say("otheir line here", Known{Sources: []notebook.Source{phone}})
	say("copied from the vault", Known{Sources: []notebook.Source{vault, phone}})
	say("mine alone", Known{First: true, Sources: []notebook.Source{phone}})
	say("their line there", Known{Sources: []notebook.Source{phone}})
	moves := func() []Move {
		fences, err := v.page.Fences()
		must(t, err)
		all, in, left, err := v.page.Moves(v.signer.Device(), []*Fence{&fences[0]}, v.page.Mark(), func(d notebook.TextDigest) bool { _, ok := record[d]; return ok },
			func(want map[notebook.TextDigest]*Known) error {
				for d, k := range want {
					*k = record[d]
				}
				return nil
			})
		must(t, err)
		if len(in) != 1 || left != 0 {
			t.Fatalf("%d fences hold foreign text", len(in))
		}
		return all
	}
	before := v.page.Text()
	all := moves()
	if len(all) != 2 || all[0].Source != phone || all[1].Source != vault || len(all[0].Splices) != 2 || len(all[1].Splices) != 1 {
		t.Fatalf("%+v", all)
	}
	if all[0].Splices[0].Insert != "o" || all[0].Splices[1].Insert != "their line there" || all[1].Splices[0].Insert != "copied from the vault" {
		t.Errorf("%+v", all)
	}
	for _, move := range all {
		v.change(notebook.Author{Device: v.signer.Device(), Class: notebook.Moved, Source: move.Source}, move.Splices)
	}
	if v.page.Text() != before {
		t.Errorf("the text became %q", v.page.Text())
	}
	say("copied from the vault", Known{Sources: []notebook.Source{phone}}) // it has its first source
	if again := moves(); len(again) != 0 {
		t.Errorf("what was moved is moved again: %+v", again)
	}
}

// TestMovesOfManyFences: the time of looking through fences that are all others'
// grows with their number, and what is written again with the edit that made
// them what they are. The others are told and not moved.
func TestMovesOfManyFences(t *testing.T) {
	const n = 20_000
	v := devices(t, "v")[0]
	phone := notebook.Source{Device: notebook.DeviceID{1}, Class: notebook.Typed}
	before := v.page.Mark()
	for from := 0; from < n; from += n / 5 {
		var text strings.Builder
		for i := range n / 5 {
			fmt.Fprintf(&text, "```\nline %05d\n```\n", from+i)
		}
		v.change(v.author(), []notebook.Splice{{At: v.page.Len(), Insert: text.String()}})
	}
	small := v.page.Mark()
	v.change(v.author(), []notebook.Splice{{At: v.page.Len(), Insert: "a"}})
	all, err := v.page.Fences()
	must(t, err)
	fences := make([]*Fence, len(all))
	for i := range all {
		fences[i] = &all[i]
	}
	look := func(since Mark) (chars, in, left int) {
		moves, found, left, err := v.page.Moves(v.signer.Device(), fences, since, func(notebook.TextDigest) bool { return true },
			func(want map[notebook.TextDigest]*Known) error {
				for _, k := range want {
					k.Sources = []notebook.Source{phone}
				}
				return nil
			})
		if err != nil {
			t.Error(err)
		}
		for _, m := range moves {
			for _, s := range m.Splices {
				chars += len(s.Insert)
			}
		}
		return chars, len(found), left
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if chars, in, left := look(before); chars != 10*n || in != n || left != 0 {
			t.Errorf("of a paste %d characters are moved, %d fences found and %d left", chars, in, left)
		}
		if chars, in, left := look(small); chars == 0 || chars > minMoves || in != n || left != n-chars/10 {
			t.Errorf("of one character %d characters are moved, %d fences found and %d left", chars, in, left)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second): // it takes a tenth of one
		t.Fatal("it takes too long")
	}
}
