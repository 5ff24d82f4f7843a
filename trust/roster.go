package trust

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"noted/notebook"
)

// maxMembers bounds the devices that are in a notebook at one time. A person
// has a handful; every entry names what it has seen of each.
const maxMembers = 256

// Roster is who is in the notebook as of the entries known here. It is a value:
// a [Log] makes a new one for every change.
type Roster struct {
	devices map[notebook.DeviceID]*membership
	// unadded are the adds that are void: some device may have taken entries of
	// who was added while they stood there.
	unadded map[notebook.DeviceID][]notebook.Place
}

// maxUnadded bounds the void adds that are remembered of one device; honest
// ones are as many as its pairings that another history has undone.
const (
	maxUnadded        = 16
	maxUnaddedDevices = 4 * maxMembers
)

func newRoster() *Roster {
	return &Roster{devices: make(map[notebook.DeviceID]*membership), unadded: make(map[notebook.DeviceID][]notebook.Place)}
}

// Member is a device that is or was in the notebook.
type Member struct {
	Device  notebook.DeviceID
	Name    string
	Role    notebook.Role
	AddedBy notebook.DeviceID // itself, of the founder
	Number  uint32            // of its newest pairing, from 1
	Removed bool
}

// membership is all that the roster's entries say of one device, as facts that
// are gathered in any order: the same facts make the same roster.
type membership struct {
	adds    []added
	removes []removed
	names   []named // those that no other has seen

	skeleton string // of the name; not kept
}

type added struct {
	_      struct{} `cbor:",toarray"`
	At     notebook.Position
	Hash   notebook.Hash
	By     notebook.DeviceID
	Role   notebook.Role
	Number uint32
}

// removed ends all pairings of the device up to a number: those that the
// remover had seen.
type removed struct {
	_      struct{} `cbor:",toarray"`
	At     notebook.Position
	Number uint32
}

type named struct {
	_    struct{} `cbor:",toarray"`
	At   notebook.Position
	Hash notebook.Hash
	Name string
}

// as is the device's state as far as seen reaches: the number of the pairing by
// which it is a member (0: it is none), that of its newest pairing, and its role.
func (m *membership) as(seen func(notebook.Position) bool) (now, newest uint32, role notebook.Role) {
	if m == nil {
		return 0, 0, 0
	}
	for _, a := range m.adds {
		if seen(a.At) {
			newest = max(newest, a.Number)
			role = max(role, a.Role) // a hub stays one, whoever says otherwise
		}
	}
	ended := uint32(0)
	for _, r := range m.removes {
		if seen(r.At) {
			ended = max(ended, r.Number)
		}
	}
	if newest > ended {
		now = newest
	}
	return now, newest, role
}

func everything(notebook.Position) bool { return true }

// Has reports whether the device is a member now.
func (r *Roster) Has(d notebook.DeviceID) bool {
	now, _, _ := r.devices[d].as(everything)
	return now > 0
}

// removed reports whether the device was a member and is none now.
func (r *Roster) removed(d notebook.DeviceID) bool {
	now, newest, _ := r.devices[d].as(everything)
	return newest > 0 && now == 0
}

// Name is the device's name, also of one that was removed, or the beginning of
// its fingerprint where the roster knows nothing of it. A name is hostile text
// and need not be unique: for a person to read there is [Roster.Shown].
func (r *Roster) Name(d notebook.DeviceID) string {
	if m := r.devices[d]; m != nil {
		return m.name()
	}
	return d.Short()
}

// Shown is the device's name for a person to read: with the beginning of its
// fingerprint, as NAME~FINGERPRINT, where another device, also one that was
// removed, has a name that could be taken for it, or where the name could pass
// for one with a fingerprint or is not seen at all.
func (r *Roster) Shown(d notebook.DeviceID) string {
	if r == nil || r.devices[d] == nil {
		return d.Short()
	}
	m := r.devices[d]
	taken := m.skeleton == "" || strings.Contains(m.skeleton, "~")
	for other, o := range r.devices {
		taken = taken || other != d && o.skeleton == m.skeleton
	}
	if taken {
		return m.name() + "~" + d.Short()
	}
	return m.name()
}

// name is the one of highest hash among those that no other has seen, so that
// all devices choose alike.
func (m *membership) name() string {
	return slices.MaxFunc(m.names, func(a, b named) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }).Name
}

// Number is how many times the device was paired; the next add names one more.
func (r *Roster) Number(d notebook.DeviceID) uint32 {
	_, newest, _ := r.devices[d].as(everything)
	return newest
}

// Members are all devices that are or were in the notebook, sorted by device.
func (r *Roster) Members() []Member {
	members := make([]Member, 0, len(r.devices))
	for d, m := range r.devices {
		now, newest, role := m.as(everything)
		members = append(members, Member{
			Device: d, Name: m.name(), Role: role, AddedBy: m.by(), Number: newest, Removed: now == 0,
		})
	}
	slices.SortFunc(members, func(a, b Member) int { return bytes.Compare(a.Device[:], b.Device[:]) })
	return members
}

// by is who added the device the last time; of several, the add of highest hash counts.
func (m *membership) by() notebook.DeviceID {
	return slices.MaxFunc(m.adds, func(a, b added) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), bytes.Compare(a.Hash[:], b.Hash[:]))
	}).By
}

// stranger reports whether the author of an entry with this past was never in
// the notebook by what it had seen.
func (r *Roster) stranger(d notebook.DeviceID, p past) bool {
	_, newest, _ := r.devices[d].as(p.saw)
	return newest == 0
}

// mentioned reports whether the author of an entry with this past had at least
// seen an add of itself, whether or not that stands. Where more adds were void
// than are remembered nobody can say, and is to be blamed: others may have heard
// of them in another order.
func (r *Roster) mentioned(d notebook.DeviceID, p past) bool {
	return len(r.unadded) >= maxUnaddedDevices || len(r.unadded[d]) >= maxUnadded || slices.ContainsFunc(r.unadded[d], p.sawPlace)
}

// isHub reports whether the device is a hub by what it had seen.
func (r *Roster) isHub(d notebook.DeviceID, p past) bool {
	_, _, role := r.devices[d].as(p.saw)
	return role == notebook.RoleHub
}

// check says why a change does not hold, by the causal past of its entry and
// nothing else, so that all devices agree; empty if it holds.
func (r *Roster) check(nb notebook.NotebookID, author notebook.DeviceID, c *notebook.RosterChange, p past) string {
	now, newest, role := r.devices[c.Device].as(p.saw)
	switch c.Act {
	case notebook.RosterAdd:
		switch {
		case now > 0:
			return "adds a device that is a member already"
		case c.Number != newest+1:
			return "does not count the pairings of the device it adds"
		case newest > 0 && c.Role != role:
			return "changes what the device is for"
		case !signed(c.Device, c.Joiner, joinDomain, joinParts(nb, author, c.Device, c.Number, c.Name)...):
			return "adds a device without its consent"
		case r.size(p) >= maxMembers:
			return "adds a device to a full notebook"
		}
	case notebook.RosterRemove:
		if now == 0 {
			return "removes a device that is no member"
		}
	case notebook.RosterRename:
		if c.Device != author {
			return "renames another device"
		}
	case notebook.RosterCut:
		if newest == 0 {
			return "cuts the log of a device that was never a member"
		}
	default:
		return "founds a notebook inside another"
	}
	return ""
}

func (r *Roster) size(p past) int {
	n := 0
	for _, m := range r.devices {
		if now, _, _ := m.as(p.saw); now > 0 {
			n++
		}
	}
	return n
}

// after returns the roster after an entry, and notes for the next flush what
// of it changed.
func (r *Roster) after(l *Log, h *notebook.Header, hash notebook.Hash, body []byte, p past, void string) *Roster {
	if h.Kind != notebook.KindRoster {
		return r
	}
	change, err := notebook.DecodeRosterChange(body)
	switch {
	case err != nil:
	case void == "":
		l.members = append(l.members, change.Device)
		return r.with(h, hash, change, p)
	case change.Act == notebook.RosterAdd && len(r.unadded[change.Device]) < maxUnadded && len(r.unadded) < maxUnaddedDevices &&
		signed(change.Device, change.Joiner, joinDomain, joinParts(l.nb, h.Device, change.Device, change.Number, change.Name)...):
		l.unadded = append(l.unadded, change.Device)
		n := &Roster{devices: r.devices, unadded: maps.Clone(r.unadded)}
		n.unadded[change.Device] = insert(r.unadded[change.Device], p.chain.place(h.Seq), func(at notebook.Place) notebook.Place { return at })
		return n
	}
	return r
}

// with returns the roster after a change that holds.
func (r *Roster) with(h *notebook.Header, hash notebook.Hash, c *notebook.RosterChange, p past) *Roster {
	n := &Roster{devices: maps.Clone(r.devices), unadded: r.unadded}
	m := new(membership)
	if old := r.devices[c.Device]; old != nil {
		*m = *old
	}
	n.devices[c.Device] = m
	at := h.Position()
	switch c.Act {
	case notebook.RosterGenesis, notebook.RosterAdd:
		a := added{At: at, Hash: hash, By: h.Device, Role: c.Role, Number: max(1, c.Number)}
		m.adds = insert(m.adds, a, func(a added) notebook.Position { return a.At })
		m.rename(named{At: at, Hash: hash, Name: c.Name}, p)
	case notebook.RosterRemove:
		now, _, _ := m.as(p.saw)
		m.removes = insert(m.removes, removed{At: at, Number: now}, func(r removed) notebook.Position { return r.At })
	case notebook.RosterRename:
		m.rename(named{At: at, Hash: hash, Name: c.Name}, p)
	}
	return n
}

func (m *membership) rename(n named, p past) {
	var names []named
	for _, old := range m.names {
		if !p.saw(old.At) {
			names = append(names, old)
		}
	}
	m.names = insert(names, n, func(n named) notebook.Position { return n.At })
	m.skeleton = notebook.Skeleton(m.name())
}

// insert returns a new slice with a fact at its place: they are kept sorted by
// the entry that states them, whatever order they came in.
func insert[T any, P interface{ Compare(P) int }](facts []T, f T, at func(T) P) []T {
	i, _ := slices.BinarySearchFunc(facts, at(f), func(g T, p P) int { return at(g).Compare(p) })
	return slices.Concat(facts[:i], []T{f}, facts[i:])
}
