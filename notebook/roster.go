package notebook

import (
	"bytes"
	"errors"
	"fmt"
)

// Role is what a member of the roster is for, for good.
type Role uint8

const (
	RoleMember Role = 1 + iota // a person's device
	RoleHub                    // stores and relays, writes nothing
)

func (r Role) String() string {
	switch r {
	case RoleMember:
		return "member"
	case RoleHub:
		return "hub"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// RosterAct is what a roster entry does.
type RosterAct uint8

const (
	RosterGenesis RosterAct = 1 + iota // founds the notebook with its first device
	RosterAdd                          // takes a device in; carries its own signature
	RosterRemove                       // shuts a device out
	RosterCut                          // says how far a removed device's logs had been taken
	RosterRename                       // a device's new name, by itself
)

func (a RosterAct) String() string {
	switch a {
	case RosterGenesis:
		return "genesis"
	case RosterAdd:
		return "add"
	case RosterRemove:
		return "remove"
	case RosterCut:
		return "cut"
	case RosterRename:
		return "rename"
	}
	return fmt.Sprintf("act %d", uint8(a))
}

// RosterChange is the body of a roster entry. What an act has no use for is zero.
type RosterChange struct {
	_      struct{} `cbor:",toarray"`
	Act    RosterAct
	Device DeviceID   // whom it is about
	Name   string     // genesis, add, rename; see [CheckLabel]
	Role   Role       // genesis, add
	Number uint32     // add: 1 for the first time, one more for each new pairing of the same key
	Joiner []byte     // add: the device's ed25519 signature over its acceptance
	Keep   []DeviceID // remove: those of the devices that it had added which stay; sorted
	Cut    []Head     // remove, cut: how far the signer had taken the device's logs; see [CheckHeads]
	Salt   [16]byte   // genesis: makes two notebooks of one device two
}

// EncodeRosterChange encodes c as a body of an entry of [KindRoster].
func EncodeRosterChange(c *RosterChange) ([]byte, error) { return encodeBody(c, MaxSmall) }

// DecodeRosterChange reads what [EncodeRosterChange] writes, and nothing else.
func DecodeRosterChange(b []byte) (*RosterChange, error) {
	return decodeBody[RosterChange](b, MaxSmall)
}

func (c *RosterChange) check() error {
	named, added, founded, removed := false, false, false, false
	switch c.Act {
	case RosterGenesis:
		named, founded = true, true
	case RosterAdd:
		named, added = true, true
	case RosterRemove, RosterCut:
		removed = true
	case RosterRename:
		named = true
	default:
		return fmt.Errorf("unknown roster act %d", c.Act)
	}
	if c.Device.IsZero() {
		return fmt.Errorf("%v of no device", c.Act)
	}
	if named {
		if err := CheckLabel(c.Name); err != nil {
			return fmt.Errorf("%v: %w", c.Act, err)
		}
	}
	switch {
	case !named && c.Name != "",
		!added && (c.Number != 0 || len(c.Joiner) != 0),
		!founded && c.Salt != [16]byte{},
		!added && !founded && c.Role != 0,
		!removed && len(c.Cut) != 0,
		c.Act != RosterRemove && len(c.Keep) != 0:
		return fmt.Errorf("%v with a field that it has no use for", c.Act)
	case founded && c.Role != RoleMember:
		return errors.New("genesis: a notebook is founded by a member")
	case added && c.Role != RoleMember && c.Role != RoleHub:
		return fmt.Errorf("add: unknown role %d", c.Role)
	case added && c.Number == 0:
		return errors.New("add: pairings are counted from 1")
	case added && len(c.Joiner) != 64:
		return fmt.Errorf("add: a signature of %d bytes where ed25519 has 64", len(c.Joiner))
	}
	for i, d := range c.Keep {
		if d.IsZero() || d == c.Device || i > 0 && bytes.Compare(c.Keep[i-1][:], d[:]) >= 0 {
			return errors.New("remove: the kept devices are not a sorted list of others")
		}
	}
	if err := CheckHeads(c.Cut); err != nil {
		return fmt.Errorf("%v: %w", c.Act, err)
	}
	for _, h := range c.Cut {
		if h.Position.Device != c.Device {
			return fmt.Errorf("%v: a head of another device", c.Act)
		}
	}
	return nil
}
