package trust

import (
	"errors"
	"fmt"

	"noted/notebook"
)

// Why a log does not take an entry. The first eight concern the entry and not
// who sent it: everything else that came with it was taken, and a sender that
// knows less than this device may go on.
var (
	// ErrNewer says that an entry has a version or a kind that this program
	// does not know. It is not kept; its sender has it for when noted is updated here.
	ErrNewer = notebook.ErrNewer
	// ErrRemoved says that the roster known here has removed the device. What
	// it signed comes in only where the entry of a member rests on it.
	ErrRemoved = errors.New("the device was removed from the notebook")
	// ErrFrozen says that the device contradicted itself; see [Equivocation].
	// What it signed comes in only from other members, or where the entry of a
	// member rests on it.
	ErrFrozen = errors.New("the device signed two histories: nothing new of it is taken until you decide with noted device resolve")
	// ErrUnadded says that the device was added by an entry that does not
	// stand. What it signed comes in as that of a frozen device does, and is void.
	ErrUnadded = errors.New("the device was added by an entry that does not stand")
	// ErrLeaves holds an entry that would begin one more log or branch of a
	// device that has too many of them.
	ErrLeaves = errors.New("the device has too many logs that nothing continues")
	// ErrPaused holds an entry for which the caller has no room now; see [Log.Room].
	ErrPaused = errors.New("the device's log is paused here")
	// ErrUnexcused says that an entry came without its body, because of a purge
	// of its page by a device that is not known here as a member. It is not kept.
	ErrUnexcused = errors.New("its text was purged by a device that is not known here yet: a member will bring it")
	// ErrCloned says that somebody else writes with this device's key in the
	// epoch that it is writing in. The entry is taken as any other; the caller
	// begins another epoch, so that the two do not contradict each other.
	ErrCloned = errors.New("another program writes with this device's key: remove this device from another one, and pair it again under a new key")

	ErrMalformed = errors.New("not an entry")
	ErrNotebook  = errors.New("entry of another notebook")
	ErrSignature = errors.New("the signature does not hold")
	ErrBody      = errors.New("the body is not the one that was signed")
	ErrStranger  = errors.New("the device was not in the notebook when it signed the entry")
	// ErrRecall says that an entry cannot be compared with the one that stands
	// here, because the caller's store did not find that; see [Log.Recall].
	ErrRecall = errors.New("cannot look up an entry that the log holds")
	// ErrUndeclared says that more has been merged than one entry can name; see [Log.Declare].
	ErrUndeclared = errors.New("more was merged than one entry can name")
)

// Void is the error of an entry that is signed and chained but does not hold:
// it is kept and skipped, and what depends on it is void too.
type Void struct{ Reason string }

func (v *Void) Error() string { return "void: " + v.Reason }

// Equivocation says that a device contradicted itself: it signed two entries
// for one place of one epoch. The one with the lower hash stands and the other
// is void, with all that continues it.
type Equivocation struct {
	Position notebook.Position
	Hashes   [2]notebook.Hash  // of the entry that stands, and of the other
	Proof    [2]notebook.Entry // both, signed, without their bodies
}

func (e *Equivocation) Error() string {
	return fmt.Sprintf("device %s signed two entries for %v, %.8s and %.8s: nothing new of it is taken until you decide with noted device resolve",
		e.Position.Device.Short(), e.Position, e.Hashes[0], e.Hashes[1])
}

// refused puts the place of the entry before why it was not taken.
func refused(p notebook.Position, why error) error { return fmt.Errorf("entry %v: %w", p, why) }

// Held reports whether an error of [Log.Take] is of an entry that waits although
// all that it rests on is here: a later one may let it in.
func Held(err error) bool { return isHeld(err) }

// Innocent reports whether an error of [Log.Take] says nothing against who sent
// the entries: an exchange may go on after it.
func Innocent(err error) bool {
	if _, found := errors.AsType[*Equivocation](err); found {
		return true // who shows it does everybody a service
	}
	for _, e := range []error{ErrNewer, ErrRemoved, ErrFrozen, ErrUnadded, ErrLeaves, ErrPaused, ErrUnexcused, ErrCloned} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
