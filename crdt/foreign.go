package crdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"noted/notebook"
)

// ForeignText is what one step adds to the record of foreign text: digests of
// what others wrote, by author, and of what this person typed before anybody
// else had it. The record is all that was ever added, in order. It never leaves
// the device, and nothing is taken out of it.
type ForeignText struct {
	groups []foreignGroup
	seen   map[foreignEntry]struct{}
	size   int
}

type foreignGroup struct {
	source  notebook.Source // zero: this person, first
	digests []notebook.TextDigest
}

type foreignEntry struct {
	group  int
	digest notebook.TextDigest
}

// Known is what is recorded of one text.
type Known struct {
	First   bool              // this person typed it before others had it
	Sources []notebook.Source // others who had it, the first one first
}

// Add notes that a source has the text; the zero source is this person who
// typed it first. It reports whether that is new in this step.
func (t *ForeignText) Add(s notebook.Source, d notebook.TextDigest) bool {
	g := slices.IndexFunc(t.groups, func(g foreignGroup) bool { return g.source == s })
	if g < 0 {
		g = len(t.groups)
		t.groups = append(t.groups, foreignGroup{source: s})
	}
	e := foreignEntry{g, d}
	if _, again := t.seen[e]; again {
		return false
	}
	if t.seen == nil {
		t.seen = map[foreignEntry]struct{}{}
	}
	t.seen[e] = struct{}{}
	t.groups[g].digests = append(t.groups[g].digests, d)
	t.size++
	return true
}

// Size is how many digests were added.
func (t *ForeignText) Size() int { return t.size }

// Empty reports whether nothing was added.
func (t *ForeignText) Empty() bool { return t.size == 0 }

// Each yields what was added, the person's own first.
func (t *ForeignText) Each(yield func(notebook.Source, notebook.TextDigest) bool) {
	for _, own := range []bool{true, false} {
		for _, g := range t.groups {
			if g.source.IsZero() != own {
				continue
			}
			for _, d := range g.digests {
				if !yield(g.source, d) {
					return
				}
			}
		}
	}
}

// foreignRecord is how a part of what a step added is kept.
type foreignRecord struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Groups  []foreignDigests
}

type foreignDigests struct {
	_       struct{} `cbor:",toarray"`
	Source  notebook.Source
	Digests []byte // one after the other
}

const foreignVersion = 1

// Records are what was added as it is kept, in records of bounded size.
func (t *ForeignText) Records() ([][]byte, error) {
	var records [][]byte
	part := foreignRecord{Version: foreignVersion}
	room := maxForeignDigests
	flush := func() error {
		b, err := notebook.Marshal(&part)
		records = append(records, b)
		part.Groups, room = nil, maxForeignDigests
		return err
	}
	for s, d := range t.Each {
		n := len(part.Groups) - 1
		if n < 0 || part.Groups[n].Source != s {
			part.Groups = append(part.Groups, foreignDigests{Source: s})
			n++
		}
		part.Groups[n].Digests = append(part.Groups[n].Digests, d[:]...)
		if room--; room == 0 || len(part.Groups) == maxForeignGroups {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if len(part.Groups) > 0 {
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// OpenForeignText reads what one of [ForeignText.Records] holds.
func OpenForeignText(record []byte) (*ForeignText, error) {
	var r foreignRecord
	if err := notebook.Unmarshal(record, &r, maxForeignRecord); err != nil {
		return nil, err
	}
	if r.Version != foreignVersion {
		return nil, fmt.Errorf("foreign text: a record of version %d, where this program knows version %d", r.Version, foreignVersion)
	}
	t := &ForeignText{}
	for _, g := range r.Groups {
		if len(g.Digests) == 0 || len(g.Digests)%len(notebook.TextDigest{}) != 0 {
			return nil, errors.New("foreign text: a record holds a part of a digest")
		}
		group := foreignGroup{source: g.Source, digests: make([]notebook.TextDigest, len(g.Digests)/len(notebook.TextDigest{}))}
		for i := range group.digests {
			group.digests[i] = notebook.TextDigest(g.Digests[i*len(notebook.TextDigest{}):])
		}
		t.groups = append(t.groups, group)
		t.size += len(group.digests)
	}
	return t, nil
}

// Wanted are digests that are looked for in the record, which has millions, with a quick no for most.
type Wanted struct {
	known   map[notebook.TextDigest]*Known
	perhaps [1 << 16 / 64]uint64 // by the first 16 bits
}

// NewWanted looks for the digests of known, and adds there what it finds.
func NewWanted(known map[notebook.TextDigest]*Known) *Wanted {
	w := &Wanted{known: known}
	for d := range known {
		n := binary.LittleEndian.Uint16(d[:])
		w.perhaps[n/64] |= 1 << (n % 64)
	}
	return w
}

// Look adds what t has of the wanted digests to what is known of them. Steps
// are looked through in the order in which they were made.
func (t *ForeignText) Look(w *Wanted) {
	for s, d := range t.Each {
		if n := binary.LittleEndian.Uint16(d[:]); w.perhaps[n/64]&(1<<(n%64)) == 0 {
			continue
		}
		k := w.known[d]
		switch {
		case k == nil:
		case s.IsZero():
			k.First = true
		case !slices.Contains(k.Sources, s):
			k.Sources = append(k.Sources, s)
		}
	}
}

// SourceOf is the author as the source of text that is moved from them. What
// another device says of who moved its text from where is its claim.
func SourceOf(self notebook.DeviceID, a notebook.Author) notebook.Source {
	switch {
	case a.Class != notebook.Moved:
		return notebook.Source{Device: a.Device, Class: a.Class, Label: a.Label}
	case a.Device == self:
		return a.Source
	}
	return notebook.Source{Device: a.Device, Class: notebook.Typed}
}

// ForeignSource is the first author of an origin that is not this person at the
// keys, as a source. Of text that is foreign for another reason (nobody's doing
// made it a fence) the person's own keys are: moved from there it stands structure.
func ForeignSource(self notebook.DeviceID, o notebook.Origin) notebook.Source {
	typed := notebook.Author{Device: self, Class: notebook.Typed}
	for _, a := range o {
		if a != typed && !a.Device.IsZero() {
			return SourceOf(self, a)
		}
	}
	return SourceOf(self, typed)
}

// LineDigest is the digest of a line of text at whatever length. A line with
// nothing to compare has none: an empty one, and one that could be the delimiter
// of a fence, with the language that half of all fences name.
func LineDigest(line string) (d notebook.TextDigest, chars int) {
	var room [128]byte
	bare := notebook.AppendBare(room[:0], line)
	if len(bare) == 0 || isDelimiter(bare) {
		return d, 0
	}
	return notebook.DigestText(bare), utf8.RuneCount(bare)
}

// LineDigests are the digests of a line of foreign text: of the whole, and of
// its parts where it holds a character that other programs end a line at.
func LineDigests(line string) (all []notebook.TextDigest) {
	add := func(line string) {
		if d, chars := LineDigest(line); chars > 0 {
			all = append(all, d)
		}
	}
	add(line)
	if strings.IndexFunc(line, endsLine) >= 0 {
		for part := range strings.FieldsFuncSeq(line, endsLine) {
			add(part)
		}
	}
	return all
}

func endsLine(r rune) bool {
	return r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// isDelimiter reports whether a line is that of a fence and says nothing but a language.
func isDelimiter(bare []byte) bool {
	n := 0
	for n < len(bare) && (bare[n] == '`' || bare[n] == '~') && bare[n] == bare[0] {
		n++
	}
	for _, c := range bare[n:] {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("+._-", c) < 0 {
			return false
		}
	}
	return n >= 3
}

// BodyDigests are the digests of a whole text, however it is wrapped: as its
// lines are compared, and as it stands.
func BodyDigests(text string) []notebook.TextDigest {
	solid := notebook.AppendSolid(nil, text)
	if len(solid) == 0 {
		return nil
	}
	all := []notebook.TextDigest{notebook.DigestText(solid)}
	var bare []byte
	for line := range linesOf(text) {
		bare = notebook.AppendBare(bare, line)
	}
	if len(bare) > 0 && len(bare) != len(solid) {
		all = append(all, notebook.DigestText(bare))
	}
	return all
}

// TypedDigest is the digest of a body by which this person had it first: line by
// line, because a remark that swallows what follows it is another text than the
// same characters on two lines. Of a single line it is that of the line.
func TypedDigest(body string) notebook.TextDigest {
	var bare []byte
	for line := range linesOf(body) {
		n := len(bare)
		if bare = notebook.AppendBare(bare, line); len(bare) > n {
			bare = append(bare, '\n')
		}
	}
	return notebook.DigestText(bytes.TrimSuffix(bare, []byte("\n")))
}
