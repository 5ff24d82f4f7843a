package crdt

import "noted/notebook"

// Model is a write model of one page: what makes, of an edit, the change that
// automerge makes of it. A [Writer] stands before it and holds all that it says
// against the page. It is not safe for concurrent use.
type Model interface {
	// Load takes changes that the page has taken, written one after the other,
	// and returns its sorted heads. Without changes it says which heads it has.
	Load(changes []byte) (notebook.Revision, error)
	// Text is the text that it has.
	Text() (string, error)
	// Splice commits splices of that text, which fit it, ascend and do not
	// overlap, as one change of the actor at a time in Unix milliseconds.
	Splice(actor notebook.ActorID, at int64, s []notebook.Splice) (change []byte, err error)
	// Close gives back what it holds. It is not used afterwards.
	Close() error
}
