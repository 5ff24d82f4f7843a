//go:build !cgo

package crdt

import (
	"errors"
	"slices"

	"noted/notebook"
)

// newScribe is the page itself.
func newScribe(p *Page) scribe { return pageScribe{Native(p)} }

type pageScribe struct{ model Model }

func (d pageScribe) load(change []byte) error {
	_, err := d.model.Load(change)
	return err
}

func (d pageScribe) state() (string, notebook.Revision, error) {
	text, err := d.model.Text()
	if err != nil {
		return "", nil, err
	}
	heads, err := d.model.Load(nil)
	return text, heads, err
}

// edit makes one edit of all those that f makes, one after the other.
func (d pageScribe) edit(actor notebook.ActorID, f func(editor)) ([]byte, error) {
	text, _, err := d.state()
	if err != nil {
		return nil, err
	}
	e := &recorder{}
	for i := range len([]rune(text)) {
		e.now = append(e.now, recorded{from: i})
	}
	length := len(e.now)
	f(e)
	return d.model.Splice(actor, 0, e.splices(length))
}

// recorder is a text of which it is known which characters were there before.
type recorder struct{ now []recorded }

type recorded struct {
	from int // where the character was, where char is 0
	char rune
}

func (e *recorder) Len() int                      { return len(e.now) }
func (e *recorder) Insert(at int, s string) error { return e.Splice(at, 0, s) }
func (e *recorder) Delete(at, del int) error      { return e.Splice(at, del, "") }

func (e *recorder) Splice(at, del int, s string) error {
	if at < 0 || del < 0 || at+del > len(e.now) {
		return errors.New("the splice does not fit the text")
	}
	var inserted []recorded
	for _, c := range s {
		inserted = append(inserted, recorded{char: c})
	}
	e.now = slices.Replace(e.now, at, at+del, inserted...)
	return nil
}

// splices is the edit of a text of length characters that was recorded.
func (e *recorder) splices(length int) []notebook.Splice {
	var s []notebook.Splice
	at := 0
	var insert []rune
	for _, x := range append(slices.Clone(e.now), recorded{from: length}) {
		if x.char != 0 {
			insert = append(insert, x.char)
			continue
		}
		if x.from > at || len(insert) > 0 {
			s = append(s, notebook.Splice{At: at, Delete: x.from - at, Insert: string(insert)})
		}
		at, insert = x.from+1, nil
	}
	return s
}
