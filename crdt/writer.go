package crdt

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"noted/notebook"
)

// ErrQuarantined says that the write model does not agree with the shadow about
// a page, or failed at it. The page stays readable; nobody writes it here until a
// writer opens on it without this error.
var ErrQuarantined = errors.New("the page is quarantined: it can be read but not written on this device")

// ErrBehind says that the page and its writer are not at the same revision: a
// change that the writer made was not applied, or one that was applied was not
// loaded. A writer that is opened again starts from what is kept.
var ErrBehind = errors.New("the writer is not at the page's revision: open it again")

// Writer makes the changes of local edits of one page, by a write model. Nothing
// reaches the model that the page has not taken first, and nothing that it makes
// leaves here that the gate does not admit. It is not safe for concurrent use.
type Writer struct {
	page   *Page
	model  Model
	heads  notebook.Revision
	broken error
}

// loadBatch is how many bytes of changes are handed over at once when a writer
// opens: automerge sorts a batch faster than it is called.
const loadBatch = 1 << 20

// OpenWriter brings a write model to a page's revision by its changes: the
// bodies of the text entries that the page has taken, in that order. They are
// not read where the model is there already. The writer owns the model, which is
// closed on an error. [ErrQuarantined] says that the model comes to another text
// or other heads than the shadow, or failed; [ErrBehind] that there were fewer
// changes than the page has.
func OpenWriter(p *Page, m Model, changes iter.Seq2[[]byte, error]) (*Writer, error) {
	w := &Writer{page: p, model: m}
	if err := w.open(changes); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Writer) open(changes iter.Seq2[[]byte, error]) (err error) {
	defer w.guard(&err)
	if err := w.load(nil); err != nil {
		return err
	}
	if slices.Equal(w.heads, w.page.Revision()) {
		return w.compare()
	}
	batch := slices.Clone(firstChange)
	count := 1
	for change, err := range changes {
		if err != nil {
			return err
		}
		if err := w.known(change); err != nil {
			return err
		}
		count++
		if batch = append(batch, change...); len(batch) < loadBatch {
			continue
		}
		if err := w.load(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if count != len(w.page.changes) {
		return fmt.Errorf("%w: %d changes of %d", ErrBehind, count, len(w.page.changes))
	}
	if err := w.load(batch); err != nil {
		return err
	}
	return w.compare()
}

func (w *Writer) load(changes []byte) error {
	heads, err := w.model.Load(changes)
	if err != nil {
		return w.fail(err)
	}
	w.heads = heads
	return nil
}

// Close gives back what the writer holds. It is not used afterwards.
func (w *Writer) Close() (err error) {
	defer w.guard(&err)
	return w.model.Close()
}

// known refuses bytes that the page has not taken, so that a caller's mistake
// or a damaged store cannot bring to the write model what no gate has seen.
func (w *Writer) known(change []byte) error {
	if len(change) <= preludeSize || !slices.Equal(change[:len(magic)], magic) {
		return fmt.Errorf("page %s: a text entry is damaged", w.page.id)
	}
	h := ChangeHash(change)
	if w.page.lookup(h) < 0 || !slices.Equal(change[len(magic):preludeSize], h[:preludeSize-len(magic)]) {
		return fmt.Errorf("page %s: the page has not taken the change %s", w.page.id, h)
	}
	return nil
}

// compare holds the model against the shadow.
func (w *Writer) compare() error {
	if !slices.Equal(w.heads, w.page.Revision()) {
		return w.fail(errors.New("its write model has other heads than the shadow"))
	}
	text, err := w.model.Text()
	if err != nil {
		return w.fail(err)
	}
	if text != w.page.Text() {
		return w.fail(errors.New("its write model has another text than the shadow"))
	}
	return nil
}

// fail makes the writer refuse everything from now on.
func (w *Writer) fail(err error) error {
	w.broken = fmt.Errorf("page %s: %w: %w", w.page.id, ErrQuarantined, err)
	return w.broken
}

// guard turns a panic of the model into an error: automerge's binding panics on
// what it does not expect. What ends the process cannot be caught; that it does
// not come to that is the gate's work.
func (w *Writer) guard(err *error) {
	if r := recover(); r != nil {
		*err = w.fail(fmt.Errorf("its write model panicked: %v", r))
	}
}

// Load takes changes that the page has applied from elsewhere, up to the page's
// revision.
func (w *Writer) Load(changes ...[]byte) (err error) {
	if w.broken != nil {
		return w.broken
	}
	defer w.guard(&err)
	for _, change := range changes {
		if err := w.known(change); err != nil {
			return err
		}
	}
	if err := w.load(slices.Concat(changes...)); err != nil {
		return err
	}
	return w.compare()
}

// Splice makes the change that edits the present text as an author in an epoch,
// and gives it the time. The page does not have it yet: the caller signs it,
// applies it to the page, and keeps both; until then the writer answers
// [ErrBehind]. Larger edits come in pieces, see [Split]. What the change would
// break (size, alphabet) is found before the model is asked.
func (w *Writer) Splice(a notebook.Author, e notebook.Epoch, at time.Time, s []notebook.Splice) (change []byte, err error) {
	if w.broken != nil {
		return nil, w.broken
	}
	if !slices.Equal(w.heads, w.page.Revision()) {
		return nil, ErrBehind
	}
	if err := checkSplices(s, w.page.Len()); err != nil {
		return nil, err
	}
	if err := w.fits(s); err != nil {
		return nil, err
	}
	defer w.guard(&err)
	when := min(max(at.UnixMilli(), 0), maxTime) // a clock may be wrong, the edit is not
	change, err = w.model.Splice(a.Actor(e), when, s)
	if err != nil {
		return nil, w.fail(err)
	}
	arrival, err := w.page.admit(change, a, e)
	if errors.Is(err, ErrFull) {
		return nil, err
	} else if err != nil {
		return nil, w.fail(fmt.Errorf("its write model made a change that the gate refuses: %w", err))
	}
	if !w.page.does(arrival, when, s) {
		return nil, w.fail(errors.New("its write model made another change than the edit"))
	}
	w.heads = notebook.Revision{ChangeHash(change)}
	return change, nil
}

// fits says why an edit cannot be one change of the page.
func (w *Writer) fits(s []notebook.Splice) error {
	ops, size := 0, w.page.Size()
	for _, x := range s {
		n := x.Delete + len([]rune(x.Insert))
		ops += n
		size += len(x.Insert) - x.Delete
	}
	switch {
	case ops == 0:
		return notebook.Errorf(notebook.CodeInvalid, "the edit changes nothing")
	case ops > maxPieceOps:
		return notebook.Errorf(notebook.CodeInvalid, "an edit of %d characters is too large for one change", ops).
			With("make it in pieces")
	case len(w.page.chars)+ops > maxPageOps, w.page.next()+ops > maxCounter:
		return ErrFull
	case size > notebook.MaxBody:
		if size := len(apply(w.page.Text(), s)); size > notebook.MaxBody && size > w.page.Size() {
			return errTooLarge(size)
		}
	}
	return nil
}

// next is the counter of the next operation on top of everything.
func (p *Page) next() int {
	last := uint32(0)
	for _, k := range p.heads {
		last = max(last, p.changes[k].last())
	}
	return int(last) + 1
}
