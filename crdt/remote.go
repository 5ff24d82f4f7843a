package crdt

import (
	"errors"
	"fmt"
	"io"

	"noted/notebook"
)

// ErrGone says that the process behind a [Remote] did not answer, or answered
// what is no answer. Nothing is known of its documents any more. The changes
// that it made and that did not arrive were never signed, so that the page is
// where it was.
var ErrGone = errors.New("the process that holds the write model is gone")

// Remote makes write models that are held at the other end of a connection, by
// [Serve]. What comes from there is not trusted: it is capped, and a [Writer]
// holds it against the page as it does with every model. It is not safe for
// concurrent use, and neither are its models.
type Remote struct {
	conn      io.ReadWriter
	documents int
	broken    error
}

// NewRemote makes models at the other end of conn. Each request is one Write,
// followed by the Reads of its reply; deadlines are the conn's business.
func NewRemote(conn io.ReadWriter) *Remote { return &Remote{conn: conn} }

// Model returns an empty document. It costs nothing before it loads something,
// and what it costs then is given back with the process that holds it.
func (r *Remote) Model() Model { return &remote{at: r, document: -1} }

// Documents is how many documents were opened.
func (r *Remote) Documents() int { return r.documents }

// gone makes everything fail from now on.
func (r *Remote) gone(err error) error {
	r.broken = fmt.Errorf("%w: %w", ErrGone, err)
	return r.broken
}

// ask sends a request and returns what the reply holds.
func (r *Remote) ask(frame []byte, most int) ([]byte, error) {
	if r.broken != nil {
		return nil, r.broken
	}
	if len(frame)-4 > maxRequest {
		return nil, fmt.Errorf("a request of %d bytes where %d is the most", len(frame), maxRequest)
	}
	if err := writeFrame(r.conn, frame); err != nil {
		return nil, r.gone(err)
	}
	b, err := readFrame(r.conn, max(most, maxRefusal)+1)
	if err != nil {
		return nil, r.gone(err)
	}
	switch {
	case len(b) > 0 && b[0] == outOK && len(b)-1 <= most:
		return b[1:], nil
	case len(b) > 0 && b[0] == outRefused:
		return nil, errors.New(notebook.EscapeLine(string(b[1:])))
	}
	return nil, r.gone(errors.New("its reply is malformed"))
}

// remote is a document at the other end.
type remote struct {
	at       *Remote
	document int // -1 before it exists
}

func (m *remote) Load(changes []byte) (notebook.Revision, error) {
	number := m.document
	if number < 0 {
		if len(changes) == 0 {
			return nil, m.at.broken
		}
		if m.at.documents == maxDocuments {
			return nil, m.at.gone(errors.New("it holds too many documents"))
		}
		number = m.at.documents
	}
	b, err := m.at.ask(append(appendUleb(newFrame(opLoad, len(changes)), uint64(number)), changes...), maxReply)
	if err != nil && m.at.broken != nil {
		return nil, err
	}
	if m.document < 0 {
		m.document = number
		m.at.documents++
	}
	if err != nil {
		return nil, err
	}
	heads, err := decodeHeads(b)
	if err != nil {
		return nil, m.at.gone(err)
	}
	return heads, nil
}

func (m *remote) Text() (string, error) {
	if m.document < 0 {
		return "", m.at.broken
	}
	b, err := m.at.ask(appendUleb(newFrame(opText, 0), uint64(m.document)), maxReply)
	return string(b), err
}

func (m *remote) Splice(actor notebook.ActorID, at int64, s []notebook.Splice) ([]byte, error) {
	if m.document < 0 {
		return nil, errors.New("a document without its page's first change cannot be edited")
	}
	return m.at.ask(encodeSplice(m.document, actor, at, s), maxChunk)
}

func (m *remote) Close() error { return nil }
