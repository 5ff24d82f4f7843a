package crdt

import (
	"errors"
	"fmt"
	"slices"
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

// Foreign reports whether the text is others'.
func (k Known) Foreign() bool { return !k.First && len(k.Sources) > 0 }

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

// Empty reports whether nothing was added.
func (t *ForeignText) Empty() bool { return t.size == 0 }

// Each yields what was added, the person's own first.
func (t *ForeignText) Each(yield func(notebook.Source, notebook.TextDigest) bool) {
	for _, own := range []bool{true, false} {
		for _, g := range t.groups {
			for _, d := range g.digests {
				if g.source.IsZero() == own && !yield(g.source, d) {
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
		group := foreignGroup{source: g.Source, digests: make([]notebook.TextDigest, 0, len(g.Digests)/len(notebook.TextDigest{}))}
		for d := range slices.Chunk(g.Digests, len(notebook.TextDigest{})) {
			group.digests = append(group.digests, notebook.TextDigest(d))
		}
		t.groups = append(t.groups, group)
		t.size += len(group.digests)
	}
	return t, nil
}

// Look adds what t has of the wanted digests to what is known of them. Steps
// are looked through in the order in which they were made.
func (t *ForeignText) Look(known map[notebook.TextDigest]*Known) {
	for s, d := range t.Each {
		k := known[d]
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

func isDelimiter(bare []byte) bool {
	return len(bare) >= 3 && (bare[0] == '`' || bare[0] == '~') && bare[1] == bare[0] && bare[2] == bare[0]
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
