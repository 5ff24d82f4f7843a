package p2p

import (
	"context"
	"errors"
	"fmt"
)

// farewell is the reason that one side gives the other when it ends an exchange.
type farewell uint8

const (
	byeClosing   farewell = 1 + iota // the program ends
	byeDuplicate                     // there is another exchange between the two
	byeVersion                       // the two speak different versions
	byeNotebook                      // the two are in different notebooks
	byeGarbage                       // what came was not the protocol
	byeFlood                         // more came than the protocol allows
	byeStalled                       // nothing came, or nothing was taken, for too long
	byeRefused                       // an entry was not accepted
	byeFailed                        // the log here failed
	byeBusy                          // too many exchanges in a short time
)

// fault is why an exchange ended, as a person reads it: a sentence whose subject
// is the other device.
type fault struct {
	problem string
	bye     farewell // what the other side is told; 0 for nothing
	theirs  bool     // the other device misbehaved: it is left alone for a while
	lasting bool     // trying again soon is of no use
	err     error
}

func (f *fault) Error() string {
	if f.err != nil {
		return f.problem + ": " + f.err.Error()
	}
	return f.problem
}

func (f *fault) Unwrap() error { return f.err }

// Ends that are nobody's fault and no person needs to know.
var (
	errClosing   = &fault{problem: "is being left: noted ends here", bye: byeClosing}
	errDuplicate = &fault{problem: "has another connection with this device", bye: byeDuplicate}
	errAgain     = &fault{problem: "is asked again for what was not taken from it", bye: byeClosing}
	errRemoved   = &fault{problem: "is not in the notebook any more"} // it is told nothing
)

func garbage(err error) *fault {
	return &fault{problem: "sent what is not noted's sync", bye: byeGarbage, theirs: true, err: err}
}

func flood(what string) *fault {
	return &fault{problem: "sent too much at once: " + what, bye: byeFlood, theirs: true}
}

func stalled(what string) *fault {
	return &fault{problem: what, bye: byeStalled, theirs: true}
}

func otherVersion(v uint16) *fault {
	where := "here"
	if v < ProtocolVersion {
		where = "there"
	}
	return &fault{
		problem: fmt.Sprintf("speaks sync version %d, this noted speaks %d: update noted %s", v, ProtocolVersion, where),
		bye:     byeVersion, lasting: true,
	}
}

func otherNotebook() *fault {
	return &fault{problem: "is in another notebook: remove it here, then pair it again", bye: byeNotebook, lasting: true}
}

// told is the fault behind the other side's farewell.
func told(f farewell, version uint16) error {
	switch f {
	case byeClosing:
		return &fault{problem: "has stopped noted"}
	case byeDuplicate:
		return errDuplicate
	case byeVersion:
		return otherVersion(version)
	case byeNotebook:
		return otherNotebook()
	case byeGarbage:
		return &fault{problem: "says that this noted sent what is not sync: update noted on both devices", lasting: true}
	case byeFlood, byeBusy:
		return &fault{problem: "says that this noted sends too much at once; it will be tried again"}
	case byeStalled:
		return &fault{problem: "heard nothing from this noted for too long; it will be tried again"}
	case byeRefused:
		return &fault{problem: "does not accept an entry that this noted sent: look at `noted status` there", lasting: true}
	case byeFailed:
		return &fault{problem: "could not read or keep its log: look at `noted status` there", lasting: true}
	}
	return &fault{problem: fmt.Sprintf("ended the exchange for reason %d: update noted on both devices", f)}
}

// asFault makes a fault of whatever ended an exchange.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) {
		return errClosing
	}
	return &fault{problem: "lost the connection", err: err}
}
