package trust

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"noted/notebook"
)

// Standing is what the origin of a fence means on this device. The zero value
// is foreign, by nobody known.
type Standing struct {
	local   bool
	foreign []party
	mixed   bool // text that would stand local by itself is in it
}

// party is a foreign author as this device calls it.
type party struct {
	kind   string            // "agent", "device", "import" or "structure"
	device notebook.DeviceID // of kind device
	name   string            // as shown; of kind device it may change
}

var structure = party{kind: "structure"}

// Stand says how a fence stands on the device self. It is local only if every
// author is this device by a person's keys, the fence is recorded as typed here
// with these bytes (own), and its own closing line ends it (closed). What
// another device says of its text does not count: that text is always the
// device's. Text that the daemon moved stands as its source. Where nothing
// speaks against the fence but not enough for it, it stands structure.
func Stand(self notebook.DeviceID, roster *Roster, origin notebook.Origin, own, closed bool) Standing {
	foreign, mixed := parties(self, roster, origin)
	if !closed {
		foreign = append(foreign, structure)
	}
	if len(foreign) == 0 {
		if own && origin.Only(notebook.Author{Device: self, Class: notebook.Typed}) {
			return Standing{local: true}
		}
		foreign = append(foreign, structure)
	}
	return Standing{foreign: tidy(foreign), mixed: mixed}
}

// parties are the foreign authors of a text; own says that this person typed some of it here.
func parties(self notebook.DeviceID, roster *Roster, authors notebook.Origin) (foreign []party, own bool) {
	for _, a := range authors {
		if a.Class == notebook.Moved && a.Device == self {
			a = notebook.Author{Device: a.Source.Device, Class: a.Source.Class, Label: a.Source.Label}
		}
		switch {
		case a.Device.IsZero():
			foreign = append(foreign, structure)
		case a.Device != self:
			foreign = append(foreign, party{kind: "device", device: a.Device, name: roster.Shown(a.Device)})
		case a == notebook.Author{Device: self, Class: notebook.Typed}:
			own = true
		case a.Class == notebook.Agent && a.Source.IsZero():
			foreign = append(foreign, party{kind: "agent", name: a.Label})
		case a.Class == notebook.Import && a.Source.IsZero():
			foreign = append(foreign, party{kind: "import", name: a.Label})
		default:
			foreign = append(foreign, structure)
		}
	}
	return tidy(foreign), own
}

func tidy(p []party) []party {
	slices.SortFunc(p, func(a, b party) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name), slices.Compare(a.device[:], b.device[:]))
	})
	return slices.Compact(p)
}

// Local reports whether this person typed all of the fence here.
func (s Standing) Local() bool { return s.local }

// parties are the foreign authors; nobody known counts as one.
func (s Standing) parties() []party {
	if !s.local && len(s.foreign) == 0 {
		return []party{structure}
	}
	return s.foreign
}

// String is "local", or the foreign authors as "agent:NAME device:NAME
// import:SOURCE structure", sorted. A name with a blank or another character
// that could pass for the next author is quoted.
func (s Standing) String() string {
	if s.local {
		return "local"
	}
	var words []string
	for _, p := range s.parties() {
		words = append(words, p.String())
	}
	return strings.Join(words, " ")
}

func (p party) String() string {
	if p == structure {
		return p.kind
	}
	return p.kind + ":" + word(p.name)
}

// word is a name as one word.
func word(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.~/@+", r)
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return strconv.Quote(notebook.EscapeLine(name))
}
