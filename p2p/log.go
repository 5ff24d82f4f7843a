package p2p

import (
	"context"
	"iter"

	"noted/notebook"
)

// Log is the notebook's log as the sync exchange needs it. The daemon provides it.
type Log interface {
	// Notebook is which notebook this is; zero while this device is in none,
	// and then nothing is synced.
	Notebook() notebook.NotebookID

	// Heads are the leaves of every device's log that are committed here
	// together with their bodies, sorted by position.
	Heads() []notebook.Head

	// Missing yields the committed entries that a peer with these heads lacks,
	// in an order in which no entry precedes one that its author had seen. A
	// head that is not known here is left out of the reckoning; of one chain
	// there may be several. The iteration stands still for as long as the peer
	// is slow, so it holds no transaction or lock between two entries.
	Missing(have []notebook.Head) iter.Seq2[notebook.Entry, error]

	// Accept takes entries that peer sent, in order, and returns once what it
	// took is committed. An entry whose past is not here yet waits inside; an
	// entry that nobody may send is an error, which ends the exchange and is
	// shown to the person.
	Accept(ctx context.Context, peer notebook.DeviceID, entries []notebook.Entry) error

	// Histories is how many histories the log holds beside the first one of each
	// device's epochs: of devices that signed several.
	Histories() int

	// Acknowledged says that peer has committed what these heads cover.
	Acknowledged(peer notebook.DeviceID, heads []notebook.Head)

	// Commits returns a channel that gets a value after commits. It holds one
	// value at most: a receiver looks at Heads and Missing again.
	Commits(ctx context.Context) <-chan struct{}

	// Member reports whether the roster holds the device now. It is asked at
	// every connection, stream and request.
	Member(notebook.DeviceID) bool
}
