package crdt

import (
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// checkSplices says why s is not an edit of a text of length code points.
func checkSplices(s []notebook.Splice, length int) error {
	if len(s) > maxSplices {
		return notebook.Errorf(notebook.CodeInvalid, "an edit of %d splices has more than the %d that are allowed", len(s), maxSplices).
			With("send it in several edits")
	}
	end, size := 0, 0
	for _, x := range s {
		if x.At < end || x.Delete < 0 || x.At > length || x.Delete > length-x.At {
			return notebook.Errorf(notebook.CodeInvalid, "a splice of %d code points at %d does not fit the text or the splice before it", x.Delete, x.At).
				With("splices ascend, do not overlap, and lie within the text of their base revision")
		}
		end = x.At + x.Delete
		size += len(x.Insert)
		if err := notebook.CheckBody(x.Insert); err != nil {
			return err
		}
	}
	if size > notebook.MaxBody {
		return errTooLarge(size)
	}
	return nil
}

// apply is what splices make of a text. They fit, as of [checkSplices].
func apply(text string, s []notebook.Splice) string {
	var b strings.Builder
	at := 0 // in code points
	skip := func(n int) string {
		i := 0
		for ; n > 0; n-- {
			_, size := utf8.DecodeRuneInString(text[i:])
			i += size
		}
		head := text[:i]
		text = text[i:]
		return head
	}
	for _, x := range s {
		b.WriteString(skip(x.At - at))
		b.WriteString(x.Insert)
		skip(x.Delete)
		at = x.At + x.Delete
	}
	b.WriteString(text)
	return b.String()
}

// Split cuts an edit into pieces that each fit one change, to be made one after
// the other. Unlike the splices of one edit, those of a piece speak of the text
// as the pieces before have left it.
func Split(s []notebook.Splice) [][]notebook.Splice {
	var pieces [][]notebook.Splice
	var piece []notebook.Splice
	room := maxPieceOps
	next := func() {
		if len(piece) > 0 {
			pieces = append(pieces, piece)
		}
		piece, room = nil, maxPieceOps
	}
	shift := 0 // how much longer the finished pieces have made the text before here
	grown := 0 // and how much the present piece will have
	for _, x := range s {
		for x.Delete > 0 || x.Insert != "" {
			if room == 0 || len(piece) == maxSplices {
				next()
				shift, grown = shift+grown, 0
			}
			deleted := min(x.Delete, room)
			room -= deleted
			insert, rest := cut(x.Insert, room)
			inserted := utf8.RuneCountInString(insert)
			room -= inserted
			piece = append(piece, notebook.Splice{At: x.At + shift, Delete: deleted, Insert: insert})
			x.At += deleted
			x.Delete -= deleted
			x.Insert = rest
			grown += inserted - deleted
		}
	}
	next()
	return pieces
}

// cut splits s after n code points.
func cut(s string, n int) (head, rest string) {
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}
