//go:build cgo

package crdt

import (
	"slices"
	"time"

	"github.com/automerge/automerge-go"

	"noted/notebook"
)

// document is an automerge document as a write model.
//
// Of automerge it uses neither Apply (quadratic, and unsafe under garbage
// collection), nor Merge (deadlocks), nor the sync protocol (ends the process on
// ten hostile bytes). Its memory is C memory that comes back late or never, so
// the process that holds documents is one that can be replaced, see [Serve].
type document struct {
	doc   *automerge.Doc
	text  *automerge.Text
	actor notebook.ActorID
}

// Automerge returns an empty automerge document as a page's write model. It has
// no change at all, so the page's first one is to be loaded, too.
func Automerge() Model {
	m := &document{doc: automerge.New()}
	m.text = m.doc.Path(bodyKey).Text()
	return m
}

func (m *document) Load(changes []byte) (notebook.Revision, error) {
	if len(changes) > 0 {
		if err := m.doc.LoadIncremental(changes); err != nil {
			return nil, err
		}
	}
	var heads notebook.Revision
	for _, h := range m.doc.Heads() {
		heads = append(heads, notebook.Hash(h))
	}
	slices.SortFunc(heads, compareHashes)
	return heads, nil
}

func (m *document) Text() (string, error) { return m.text.Get() }

func (m *document) Splice(actor notebook.ActorID, at int64, s []notebook.Splice) ([]byte, error) {
	if m.actor != actor {
		if err := m.doc.SetActorID(actor.String()); err != nil {
			return nil, err
		}
		m.actor = actor
	}
	for _, x := range slices.Backward(s) { // so that positions stay what they were
		if x.Delete == 0 && x.Insert == "" {
			continue
		}
		if err := m.text.Splice(x.At, x.Delete, x.Insert); err != nil {
			return nil, err
		}
	}
	when := time.UnixMilli(at)
	hash, err := m.doc.Commit("", automerge.CommitOptions{Time: &when})
	if err != nil {
		return nil, err
	}
	made, err := m.doc.Change(hash)
	if err != nil {
		return nil, err
	}
	return made.Save(), nil
}

func (m *document) Close() error {
	m.doc, m.text = nil, nil
	return nil
}
