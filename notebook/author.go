package notebook

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Class says through which door text came in. It is set by the door, never by
// a request's field, and another device's claim of it decides nothing here.
type Class uint8

const (
	Typed  Class = 1 + iota // by the person, in an editor of this device
	Agent                   // with an agent's token; the label is the agent's name
	Import                  // from a file or a pipe; the label names the source
	Moved                   // copied by the daemon; the source is the author whose text it was
)

func (c Class) String() string {
	switch c {
	case Typed:
		return "typed"
	case Agent:
		return "agent"
	case Import:
		return "import"
	case Moved:
		return "moved"
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Source is the author whose text a moved piece carries. It is never itself
// moved: a piece that moves again keeps its first source.
type Source struct {
	_      struct{} `cbor:",toarray"`
	Device DeviceID
	Class  Class
	Label  string
}

func (s Source) IsZero() bool { return s == Source{} }

// Author is who wrote a character: a device, the door, and what the door calls
// it. Authors are comparable.
type Author struct {
	Device DeviceID
	Class  Class
	Label  string // the agent's or the source's name; empty for typed and moved text
	Source Source // of moved text; zero otherwise
}

// Check says why a cannot be an author: an agent and an import have a name,
// typed text has none, moved text has none either but a source that is not
// itself moved.
func (a Author) Check() error {
	if a.Class == Moved {
		if a.Label != "" {
			return errors.New("moved text with a label of its own")
		}
		if a.Source.Class == Moved {
			return errors.New("the source of moved text is moved itself")
		}
		if err := checkDoor(a.Source.Device, a.Source.Class, a.Source.Label); err != nil {
			return fmt.Errorf("source of moved text: %w", err)
		}
		if a.Device.IsZero() {
			return errors.New("author without a device")
		}
		return nil
	}
	if !a.Source.IsZero() {
		return fmt.Errorf("%v text with a source", a.Class)
	}
	return checkDoor(a.Device, a.Class, a.Label)
}

// checkDoor checks an author that is not moved.
func checkDoor(d DeviceID, c Class, label string) error {
	if d.IsZero() {
		return errors.New("author without a device")
	}
	switch c {
	case Typed:
		if label != "" {
			return errors.New("typed text with a label")
		}
		return nil
	case Agent, Import:
		if err := CheckLabel(label); err != nil {
			return fmt.Errorf("label of an %v: %w", c, err)
		}
		return nil
	}
	return fmt.Errorf("unknown class %d", uint8(c))
}

// CheckLabel says why s cannot name an agent, an import or a device: a name is
// 1 to [MaxLabel] bytes of UTF-8 without control characters. What else is
// confusing in it is for [EscapeLine] to show.
func CheckLabel(s string) error {
	switch {
	case s == "":
		return errors.New("a name is empty")
	case len(s) > MaxLabel:
		return fmt.Errorf("a name of %d bytes where at most %d are allowed", len(s), MaxLabel)
	case !utf8.ValidString(s):
		return errors.New("a name is not valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("the name %q has control characters", s)
	}
	return nil
}

// Actor is the automerge actor under which a writes in an epoch. The gate
// recomputes it from the entry's header, so an actor cannot be borrowed.
func (a Author) Actor(e Epoch) ActorID {
	h := Digest("noted/actor/v1", a.Device[:], e[:], []byte{byte(a.Class)}, []byte(a.Label),
		a.Source.Device[:], []byte{byte(a.Source.Class)}, []byte(a.Source.Label))
	return ActorID(h[:16])
}

// Compare orders authors; the order means nothing but is total.
func (a Author) Compare(b Author) int {
	return cmp.Or(
		bytes.Compare(a.Device[:], b.Device[:]),
		cmp.Compare(a.Class, b.Class),
		cmp.Compare(a.Label, b.Label),
		bytes.Compare(a.Source.Device[:], b.Source.Device[:]),
		cmp.Compare(a.Source.Class, b.Source.Class),
		cmp.Compare(a.Source.Label, b.Source.Label),
	)
}

// Origin is the set of authors of a fence, sorted and without repetition.
type Origin []Author

// NewOrigin makes the set of authors.
func NewOrigin(authors ...Author) Origin {
	o := slices.Clone(authors)
	slices.SortFunc(o, Author.Compare)
	return Origin(slices.Compact(o))
}

// Union is the set of authors that are in o or in p.
func (o Origin) Union(p Origin) Origin {
	return NewOrigin(slices.Concat(o, p)...)
}

// Devices are those that wrote, moved, or are named as the source of something
// in o, sorted.
func (o Origin) Devices() []DeviceID {
	var devices []DeviceID
	for _, a := range o {
		devices = append(devices, a.Device)
		if !a.Source.IsZero() {
			devices = append(devices, a.Source.Device)
		}
	}
	slices.SortFunc(devices, func(a, b DeviceID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(devices)
}

// Only reports whether every author of a non-empty o is a. Of an empty set
// nothing is known, and absence of knowledge is never a good sign.
func (o Origin) Only(a Author) bool {
	return len(o) > 0 && !slices.ContainsFunc(o, func(b Author) bool { return b != a })
}
